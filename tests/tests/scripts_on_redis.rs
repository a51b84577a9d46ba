//! The scripts on a real Redis against the core: the same calls, the same decisions.
//!
//! Most calls run on a clock that the test sets (`Script::on_test_clock`), the others on Redis's
//! own. Every call is looked at from outside too: what it left of its keys' expiry.

mod support;

#[path = "scripts_on_redis/model.rs"]
mod model;
#[path = "scripts_on_redis/planned.rs"]
mod planned;
#[path = "scripts_on_redis/random.rs"]
mod random;
#[path = "scripts_on_redis/refunds.rs"]
mod refunds;
#[path = "scripts_on_redis/stage.rs"]
mod stage;

use anyhow::{Context, Result, ensure};
use model::{Model, stores};
use planned::{Answer, Planned};
use random::Random;
use stage::{BATCH, Stage, asked};
use std::time::Duration;
use weir_core::{
    decision::Outcome,
    key::hash::Digest,
    limiter::{Ask, Limiter, State},
    script::{self, Asked, Call, Key, Refund, Release},
    units::{Cost, Instant, Micros},
};
use weir_lab::{
    eventually::blocking,
    redis::{Client, Expiry, ScriptCall},
};

/// Random calls, counted over all tests of them.
const CALLS: usize = 30_000;
/// A call as it is shipped.
fn shipped(asked: &[Asked<'_>]) -> Result<ScriptCall> {
    Ok(sent(&Call::new(asked)?))
}

fn sent(call: &Call<'_>) -> ScriptCall {
    let keys = call.keys().map(str::to_owned).collect();
    ScriptCall { sha1: call.script.sha1().to_owned(), keys, args: call.args.clone() }
}

fn key(number: u64) -> Key {
    let digest = |name| Digest::of(&[0; 16], "test", name, [number.to_le_bytes().as_slice()]);
    Key::new(Digest::from_bytes([7; 16]), digest("limit"))
}

/// A run of calls on the same keys, whose limits change now and then, on a clock that steps both
/// ways.
fn random_run(stage: &mut Stage, seed: u64, limits: usize, calls: usize) -> Result<[usize; 6]> {
    let mut random = Random::new(seed);
    let mut model = Model::default();
    let mut now = random.start();
    // So that what is planned can borrow them, all limits that will be in force come first.
    let changes = calls.div_ceil(20);
    let mut versions = vec![(0..limits).map(|_| random.limiter()).collect::<Vec<_>>()];
    for _ in 0..changes {
        let mut next = versions[versions.len() - 1].clone();
        let place = random.below_len(limits);
        next[place] = random.changed(&next[place]);
        versions.push(next);
    }
    let keys: Vec<Vec<Key>> = (0..3)
        .map(|bucket| {
            (0..limits).map(|place| key(seed * 1_000 + bucket * 100 + place as u64)).collect()
        })
        .collect();
    let mut planned = Vec::new();
    let mut charges: Vec<(&[Key], Vec<Ask>, Instant)> = Vec::new();
    for number in 0..calls {
        let version = &versions[number * versions.len() / calls];
        let keys = keys[random.below_len(keys.len())].as_slice();
        let paces = random.below_len(limits);
        now = random.step(now, &version[paces]);
        let note = format!("seed {seed}, call {number} at {now:?}: {version:?}");
        if let (Limiter::Concurrency(_), true) = (&version[0], random.percent(25)) {
            let id = random.id();
            let release = Release::new(&version[0], keys[0], id).context("permits")?;
            let key = [keys[0].as_str()];
            let call = stage.at(now, &script::RELEASE, &key, &release.args);
            let (released, left) = model.release(&version[0], keys[0], id, now);
            planned.push(Planned {
                call,
                expected: Answer::Released(release, released, left),
                note,
            });
            continue;
        }
        if !charges.is_empty() && random.percent(20) {
            let (keys, asks, charged) = random.taken(&mut charges);
            let limits = version.iter().zip(keys).zip(asks);
            let limits = limits.map(|((limiter, key), ask)| asked(limiter, *key, ask));
            // What costs more than there is was never charged.
            let limits = limits
                .filter(|asked| (1..=asked.limiter.capacity()).contains(&asked.ask.cost.get()));
            let limits: Vec<_> = limits.collect();
            if let Ok(refund) = Refund::new(&limits, charged) {
                let call = stage.refund(&refund, now);
                let expected = model.refund(&limits, charged, now);
                let note = format!("{note} back from {charged:?}: {limits:?}");
                planned.push(Planned { call, expected: Answer::Refunded(refund, expected), note });
            }
            continue;
        }
        let asked: Vec<_> = version
            .iter()
            .zip(keys)
            .map(|(limiter, key)| Asked {
                limiter,
                key: *key,
                ask: random.ask(limiter),
                enforced: limits == 1 || !random.percent(15),
            })
            .collect();
        let expected = model.check(&asked, now);
        let note = format!("{note} {asked:?}");
        // Charged or not, it is tried to be given back.
        charges.push((keys, asked.iter().map(|asked| asked.ask).collect(), now));
        let tells = random.percent(20);
        let call = if tells { Call::refundable(&asked)? } else { Call::new(&asked)? };
        let call = stage.call(&call, now);
        let expected = Answer::Checked(asked, expected, tells.then_some(now));
        planned.push(Planned { call, expected, note });
    }
    let mut outcomes = [0; 6];
    for batch in planned.chunks(BATCH) {
        let calls: Vec<_> = batch.iter().map(|planned| planned.call.clone()).collect();
        let seen = stage.client.observe(&calls, true).with_context(|| batch[0].note.clone())?;
        for (planned, seen) in batch.iter().zip(&seen) {
            planned.compare(seen).with_context(|| planned.note.clone())?;
            let outcome = match &planned.expected {
                Answer::Checked(_, decisions, _) => match decisions[0].0.outcome {
                    Outcome::Refused { .. } => 0,
                    Outcome::Allowed => 1,
                    Outcome::Never(_) => 2,
                    Outcome::Delayed { .. } => 3,
                },
                Answer::Refunded(..) => 4 + usize::try_from(seen.reply[0])?,
                Answer::Released(..) => continue,
            };
            outcomes[outcome] += 1;
        }
    }
    for (key, state) in &model.states {
        let stored = stage.client.get(key.as_str())?;
        ensure!(stores(stored.as_deref(), state), "seed {seed}: {stored:?} for {state:?}");
    }
    stage.client.run(&["FLUSHALL"])?;
    Ok(outcomes)
}

fn random_runs(
    seeds: std::ops::Range<u64>,
    limits: impl Fn(u64) -> usize,
    calls: usize,
) -> Result<()> {
    let mut stage = Stage::new()?;
    let mut outcomes = [0; 6];
    for seed in seeds {
        for (sum, count) in
            outcomes.iter_mut().zip(random_run(&mut stage, seed, limits(seed), calls)?)
        {
            *sum += count;
        }
    }
    println!("refused, allowed, never, delayed, not given back, given back: {outcomes:?}");
    // A run in which hardly anything is refused, or passes, or comes back, compares little.
    let total: usize = outcomes.iter().sum();
    ensure!(outcomes[0] * 10 > total && outcomes[1] * 10 > total && outcomes[3] > 0, "lopsided");
    ensure!(outcomes[4] * 40 > total && outcomes[5] * 40 > total, "lopsided");
    Ok(())
}

#[test]
fn a_script_decides_and_forgets_as_the_core_does() -> Result<()> {
    let calls = 100;
    random_runs(0..(CALLS / calls) as u64 * 2 / 3, |_| 1, calls)
}

#[test]
fn several_limits_in_one_script_decide_as_the_core_does_on_each() -> Result<()> {
    let calls = 100;
    random_runs(
        1_000_000..1_000_000 + (CALLS / calls) as u64 / 3,
        |seed| 2 + (seed % 4) as usize,
        calls,
    )
}

#[test]
fn on_redis_own_clock_a_decision_is_the_cores_at_a_time_within_the_call() -> Result<()> {
    let mut stage = Stage::new()?;
    for (number, limiter) in random::one_of_each(Micros::new(20_000)).iter().enumerate() {
        // Every state that the key may be in, given when its calls may have been decided.
        let mut states = vec![State::None];
        for call in 0..60 {
            let asked = [asked(limiter, key(number as u64), Ask { id: call, ..Ask::ONE })];
            let seen = stage.client.observe(&[shipped(&asked)?], false)?.remove(0);
            let decision = Call::new(&asked)?.decisions(&seen.reply)?.remove(0);
            let stored = stage.client.get(asked[0].key.as_str())?;
            let mut next = Vec::new();
            for state in &states {
                for now in seen.between.0..=seen.between.1 {
                    let step = limiter.step(state, Instant::from_micros(now), asked[0].ask);
                    let after = step.state.unwrap_or_else(|| state.clone());
                    // A key that has expired since then is idle, whatever it held.
                    let same = stored.is_none() || stores(stored.as_deref(), &after);
                    if step.decision == decision && same && !next.contains(&after) {
                        next.push(after);
                    }
                }
            }
            ensure!(!next.is_empty(), "call {call} of {limiter:?}: {decision:?} in {seen:?}");
            states = if stored.is_some() { next } else { vec![State::None] };
        }
    }
    Ok(())
}

#[test]
fn no_key_is_left_when_its_limit_is_idle() -> Result<()> {
    let mut stage = Stage::new()?;
    let limiters = random::one_of_each(Micros::new(50_000));
    for round in 0..20 {
        for (number, limiter) in limiters.iter().enumerate() {
            let call = asked(limiter, key(number as u64), Ask { id: round, ..Ask::ONE });
            stage.client.call(&shipped(&[call])?)?;
        }
        let all: Vec<_> = limiters
            .iter()
            .enumerate()
            .map(|(number, limiter)| asked(limiter, key(100 + number as u64), Ask::ONE))
            .collect();
        stage.client.call(&shipped(&all)?)?;
    }
    assert!(stage.client.count()? > 0);
    assert!(blocking(Duration::from_secs(30), || matches!(stage.client.count(), Ok(0))));
    Ok(())
}

#[test]
fn a_request_that_one_limit_refuses_is_charged_to_none() -> Result<()> {
    let mut stage = Stage::new()?;
    let limiters = random::one_of_each(Micros::SECOND);
    let now = Instant::from_micros(1_700_000_000_000_000);
    for refusing in 0..limiters.len() {
        let limits: Vec<_> = limiters
            .iter()
            .enumerate()
            .map(|(number, limiter)| asked(limiter, key(number as u64), Ask::ONE))
            .collect();
        let one = limits[refusing].limiter.peek(&State::None, now).limit;
        let drain = Ask::of(Cost::new(one).context("a cost")?);
        let drained = stage.check(&[Asked { ask: drain, ..limits[refusing] }], now)?;
        stage.client.observe(&[stage.check(&limits, now)?], true)?;
        stage.client.run(&["DEL", limits[refusing].key.as_str()])?;
        stage.client.observe(&[drained], true)?;
        let texts = |client: &mut Client| -> Result<Vec<_>> {
            limits.iter().map(|limit| client.get(limit.key.as_str())).collect()
        };
        let before = texts(&mut stage.client)?;
        assert!(before.iter().all(Option::is_some));
        let seen = stage.client.observe(&[stage.check(&limits, now)?], false)?.remove(0);
        for (place, decision) in Call::new(&limits)?.decisions(&seen.reply)?.iter().enumerate() {
            assert_eq!(decision.is_allowed(), place != refusing, "{place} of {refusing}");
        }
        assert_eq!(texts(&mut stage.client)?, before);
        assert!(seen.expiry.iter().all(|expiry| *expiry == Expiry::Never));
        stage.client.run(&["FLUSHALL"])?;
    }
    Ok(())
}

#[test]
fn a_text_that_no_step_wrote_is_that_of_a_key_never_seen() -> Result<()> {
    let mut stage = Stage::new()?;
    let now = Instant::from_micros(1_700_000_000_000_000);
    let limiters = random::one_of_each(Micros::SECOND);
    for limiter in &limiters {
        for text in [
            "",
            "x",
            "-1",
            "1e3",
            "0x10",
            "nan",
            "inf",
            " 1",
            "1.5",
            "1:",
            ":1",
            "1:2:",
            "1:-2:3",
            "1:2:3:4",
            "L",
            "Lx,",
            "L1",
            "L1:,x",
            "P",
            "P1,",
            "Pzz@1,",
            "99999999999999999999",
            "9007199254740992",
            "1700000000000000:9007199254740992",
            "9007199254740992:1:1",
            "1:1:99999999999999999999",
            "L99999999999999999999,",
            "L1:99999999999,",
            "P1@99999999999999999999,",
            "\u{0}",
            "1\n",
        ] {
            let asked = [asked(limiter, key(1), Ask::ONE)];
            stage.client.run(&["SET", key(1).as_str(), text])?;
            let seen = stage.client.observe(&[stage.check(&asked, now)?], true)?.remove(0);
            let decision = Call::new(&asked)?.decisions(&seen.reply)?.remove(0);
            let fresh = limiter.step(&State::None, now, Ask::ONE).decision;
            assert_eq!(decision, fresh, "{text:?} under {limiter:?}");
            assert!(matches!(seen.expiry[..], [Expiry::At(_)]), "{text:?}");
        }
    }
    Ok(())
}

#[test]
fn a_key_of_another_type_is_an_error_and_nothing_is_written() -> Result<()> {
    let mut stage = Stage::new()?;
    let limiters = random::one_of_each(Micros::SECOND);
    stage.client.run(&["RPUSH", key(1).as_str(), "x"])?;
    for limiter in &limiters {
        let alone = shipped(&[asked(limiter, key(1), Ask::ONE)])?;
        let both = [asked(limiter, key(2), Ask::ONE), asked(limiter, key(1), Ask::ONE)];
        for call in [alone, shipped(&both)?] {
            let error = stage.client.call(&call).unwrap_err();
            assert!(format!("{error:#}").to_uppercase().contains("WRONGTYPE"), "{error:#}");
        }
    }
    assert_eq!(stage.client.count()?, 1);
    Ok(())
}

#[test]
fn a_script_that_redis_has_forgotten_is_sent_as_text() -> Result<()> {
    let mut stage = Stage::new()?;
    stage.client.run(&["SCRIPT", "FLUSH"])?;
    let limiter = random::one_of_each(Micros::SECOND)[0];
    let asked = [asked(&limiter, key(1), Ask::ONE)];
    let call = shipped(&asked)?;
    assert!(stage.client.call(&call).is_err());
    let reply = stage.client.call_or_eval(&call, Call::new(&asked)?.script.text)?;
    assert!(Call::new(&asked)?.decisions(&reply)?[0].is_allowed());
    let again = stage.redis.client()?.call(&call)?;
    assert!(Call::new(&asked)?.decisions(&again)?[0].is_allowed(), "Redis knows it now");
    Ok(())
}
