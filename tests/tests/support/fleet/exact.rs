//! One limit that all gateways share, exceeded five times over by several callers at once, each
//! spread in its own way: what each was allowed is what one bucket gives, to the token.
//!
//! That is checked twice, by what the store holds and by the clock. Neither knows of the other.

use super::{
    CALLER, CONNECTIONS, GATEWAYS, PATH, Stage,
    bucket::{BURST, Between, FIRST, LIMIT, RATE, TOKEN, exhaust, given, open},
    key, number,
};
use anyhow::{Context, Result};
use std::time::Duration;
use weir_lab::fleet::{
    load::{self, Plan, Stream},
    ops::Ops,
    report::{Counts, Report},
    spread::Spread,
};

/// The load of a caller.
const PER_SECOND: u32 = 5 * RATE;
const SECONDS: u32 = 20;

/// A caller who has asked once.
struct Caller {
    name: &'static str,
    first: Between,
    /// When its bucket was to be full then.
    full_at: u64,
}

/// Checks it on gateways with the limit of [`super::bucket`].
pub async fn check(stage: &mut Stage, case: &str) -> Result<()> {
    let ops = Ops::of(&mut stage.nodes)?;
    let before = stage.counters().await?;
    let mut callers = Vec::new();
    for (gateway, spread) in Spread::ALL.into_iter().enumerate() {
        callers.push(Caller::start(stage, gateway, spread.name()).await?);
    }
    let report = load::run(&plan(stage)?).await?;
    let mut closing = Vec::new();
    for (place, caller) in callers.iter().enumerate() {
        closing.push(caller.finish(stage, &report.of_stream(place)).await?);
    }

    println!("{case}, {SECONDS} s, {} callers\n{report}", callers.len());
    for (caller, end) in callers.iter().zip(&closing) {
        println!("{}", end.told(caller));
    }
    println!("calls by node: {}", Ops::of(&mut stage.nodes)?.since(&ops));
    let Counts { allowed, refused, unchecked, other } = report.counts();
    assert_eq!((unchecked, other, report.unanswered), (0, 0, 0), "{}", stage.fleet.log());
    for (caller, end) in callers.iter().zip(&closing) {
        end.check(caller);
    }
    // The gateways' counters say what was seen.
    let after = stage.counters().await?;
    let apart: u64 = closing.iter().map(|end| end.allowed_after + 1).sum();
    let expected = [number(allowed) + apart, number(refused) + number(callers.len()), 0];
    assert_eq!([0, 1, 2].map(|place| after[place] - before[place]), expected);
    assert_eq!(after[2], 0, "unchecked");
    stage.assert_never_reloaded().await
}

fn plan(stage: &Stage) -> Result<Plan> {
    let stream = |spread: Spread| Stream {
        path: PATH.to_owned(),
        headers: vec![(CALLER.to_owned(), spread.name().to_owned())],
        spread,
        per_second: PER_SECOND,
        requests: (PER_SECOND * SECONDS) as usize,
    };
    let streams = Spread::ALL.map(stream).into();
    Ok(Plan { gateways: stage.fleet.addresses("ingress")?, connections: CONNECTIONS, streams })
}

impl Caller {
    async fn start(stage: &mut Stage, gateway: usize, name: &'static str) -> Result<Self> {
        let first = open(stage, gateway, name, time).await?;
        let full_at = full_at(stage, name)?;
        let state = first.before + FIRST * TOKEN..=first.after + FIRST * TOKEN;
        assert!(state.contains(&full_at), "{name}: {full_at} is no time within {state:?}");
        Ok(Self { name, first, full_at })
    }

    async fn finish(&self, stage: &mut Stage, report: &Report) -> Result<End> {
        let gateways: Vec<usize> = (0..GATEWAYS).collect();
        let (allowed_after, refused) = exhaust(stage, &gateways, self.name, time).await?;
        Ok(End {
            allowed: number(report.counts().allowed),
            allowed_after,
            refused,
            full_at: full_at(stage, self.name)?,
            within_a_second: number(report.most_allowed_within(Duration::from_secs(1))),
            slowest: report.slowest(),
        })
    }
}

/// What has become of a caller.
struct End {
    /// Requests of the load, and after it, that were allowed.
    allowed: u64,
    allowed_after: u64,
    /// The first refusal after the load.
    refused: Between,
    full_at: u64,
    within_a_second: u64,
    slowest: Duration,
}

impl End {
    /// Tokens that the bucket has given.
    fn given(&self) -> u64 {
        FIRST + self.allowed + self.allowed_after
    }

    fn told(&self, caller: &Caller) -> String {
        let bounds = given(caller.first, self.refused);
        format!(
            "{:>9}: {} tokens given, {} to {} by the clock, {} by the bucket's state; at most {} \
             within a second",
            caller.name,
            self.given(),
            bounds.start(),
            bounds.end(),
            FIRST + (self.full_at - caller.full_at) / TOKEN,
            self.within_a_second,
        )
    }

    fn check(&self, caller: &Caller) {
        let name = caller.name;
        // By the store: each token has put off by so much when the bucket is full. It would be put
        // off further if the bucket had been full meanwhile.
        let put_off = (self.allowed + self.allowed_after) * TOKEN;
        assert_eq!(self.full_at, caller.full_at + put_off, "{name}: by the bucket's state");
        // By the clock.
        let bounds = given(caller.first, self.refused);
        assert!(bounds.contains(&self.given()), "{name}: {} of {bounds:?}", self.given());
        // What was answered within a second was decided in it or as long before as an answer took.
        let micros = 1_000_000 + u64::try_from(self.slowest.as_micros()).unwrap_or(u64::MAX);
        let most = BURST + micros / TOKEN;
        assert!(self.within_a_second <= most, "{name}: {} of {most}", self.within_a_second);
    }
}

fn time(stage: &mut Stage) -> Result<u64> {
    stage.nodes.first_mut().context("no shared store")?.time()
}

/// When a caller's bucket will be full, in microseconds since the epoch, as the store holds it.
fn full_at(stage: &mut Stage, caller: &str) -> Result<u64> {
    let state = stage.state(key(LIMIT, &[caller.as_bytes()]))?;
    state.parse().with_context(|| format!("{caller} has the state {state}"))
}
