//! The corpus of decisions through the scripts on a real Redis, with the clock of the test.

mod support;

#[path = "scripts_on_redis/stage.rs"]
mod stage;
#[path = "../../core/tests/support/told.rs"]
mod told;

use anyhow::{Context, Result, bail};
use stage::{BATCH, Stage, asked};
use std::collections::{BTreeMap, VecDeque};
use told::told;
use weir_core::{
    config,
    key::hash::Digest,
    limiter::{Ask, Limiter, State},
    policy::RequestCost,
    script::{self, Call, Key, Release},
    units::{Cost, Instant},
};
use weir_vectors::{Case, Outcome as Expected, Told};

#[test]
fn the_scripts_decide_as_the_corpus_says() -> Result<()> {
    let mut stage = Stage::new()?;
    let cases = weir_vectors::corpus()?;
    let mut differences = Vec::new();
    for case in &cases {
        let seen = corpus_answers(&mut stage, case).with_context(|| case.name.clone())?;
        let mut seen = seen.into_iter();
        differences.extend(case.differences(|_| seen.next().context("an answer"))?);
        stage.client.run(&["FLUSHALL"])?;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    println!("{} cases agree", cases.len());
    Ok(())
}

/// What the scripts answer to every arrival of a case, in order.
fn corpus_answers(stage: &mut Stage, case: &Case) -> Result<Vec<Told>> {
    let limits =
        case.policies().iter().map(|text| corpus_limit(text)).collect::<Result<Vec<_>>>()?;
    let arrivals = case.arrivals()?;
    let mut held = BTreeMap::<&str, VecDeque<u64>>::new();
    let mut calls = Vec::new();
    let mut all = Vec::new();
    for (arrival, id) in arrivals.iter().zip(0..) {
        let (limiter, cost, reserve) = &limits[arrival.phase];
        let now = Instant::from_micros(arrival.now);
        let bucket = Digest::of(&[0; 16], "corpus", "limit", [arrival.key.as_bytes()]);
        let key = Key::new(Digest::from_bytes([7; 16]), bucket);
        let permits = held.entry(&arrival.key).or_default();
        for _ in 0..arrival.release {
            let id = permits.pop_front().context("no permit is held")?;
            let release = Release::new(limiter, key, id).context("no permits")?;
            calls.push(stage.at(now, &script::RELEASE, &[key.as_str()], &release.args));
        }
        let floor = if arrival.critical { 0 } else { *reserve };
        let asked = [asked(limiter, key, Ask { cost: *cost, floor, id })];
        // The answer of a limit of 0 is known without the store.
        let place = match limiter {
            Limiter::Closed => None,
            _ => Some(calls.len()),
        };
        if place.is_some() {
            calls.push(stage.check(&asked, now)?);
        }
        if arrival.outcome == Expected::Allowed {
            permits.push_back(id);
        }
        all.push((asked, place));
    }
    let mut seen = Vec::new();
    for calls in calls.chunks(BATCH) {
        seen.extend(stage.client.observe(calls, true)?);
    }
    let decisions = all.iter().map(|(asked, place)| match place {
        Some(place) => Ok(told(&Call::new(asked)?.decisions(&seen[*place].reply)?[0])),
        None => Ok(told(&asked[0].limiter.peek(&State::None, Instant::EPOCH))),
    });
    decisions.collect()
}

/// The limit of a case, what a call costs, and what is reserved, in tokens.
fn corpus_limit(policy: &str) -> Result<(Limiter, Cost, u64)> {
    let policy = config::parse(policy.as_bytes())?;
    let limit = policy.limits.first().context("a limit")?;
    let RequestCost::Fixed(cost) = limit.cost else { bail!("a fixed cost") };
    let tier = &limit.tiers.default;
    Ok((tier.limiter(0), cost, limit.reserved(tier, 0)))
}
