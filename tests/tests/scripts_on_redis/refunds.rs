//! What was charged on one slot and is given back, since a limit on another has refused.

use crate::{
    key,
    random::one_of_each,
    stage::{Stage, asked},
};
use anyhow::{Context, Result};
use weir_core::{
    decision::Decision,
    limiter::{Ask, Limiter, State, token_bucket::TokenBucket},
    script::{Asked, Call, Refund},
    units::{Cost, Instant, Micros, Rate},
};

const START: u64 = 1_700_000_000_000_000;

const fn at(micros: u64) -> Instant {
    Instant::from_micros(START + micros)
}

fn cost(tokens: u64) -> Ask {
    Ask::of(Cost::new(tokens).unwrap())
}

/// Asks and returns what was allowed, and the time of the charge.
fn ask(stage: &mut Stage, limits: &[Asked<'_>], now: Instant) -> Result<(Vec<bool>, Instant)> {
    let call = Call::refundable(limits)?;
    let seen = stage.client.observe(&[stage.call(&call, now)], true)?.remove(0);
    let (decisions, charged) = call.charged(&seen.reply)?;
    Ok((decisions.iter().map(Decision::is_allowed).collect(), charged))
}

fn refund(
    stage: &mut Stage,
    limits: &[Asked<'_>],
    charged: Instant,
    now: Instant,
) -> Result<Vec<bool>> {
    let refund = Refund::new(limits, charged)?;
    let seen = stage.client.observe(&[stage.refund(&refund, now)], true)?.remove(0);
    Ok(refund.outcome(&seen.reply)?)
}

/// A bucket of 10 that fills by one a second. Without the charge it would have been full after
/// 0.1 s, so that the refill of that time would have been lost; whoever gives back all gives that
/// away too, and 10.1 pass where 10 may.
#[test]
fn a_refund_leaves_out_what_has_refilled_since() -> Result<()> {
    let mut stage = Stage::new()?;
    let rate = Rate::new(1, Micros::SECOND).context("a rate")?;
    let bucket = Limiter::TokenBucket(TokenBucket::new(rate, 10)?);
    let with = |tokens| [asked(&bucket, key(1), cost(tokens))];
    let (allowed, charged) = ask(&mut stage, &with(1), at(0))?;
    assert_eq!((allowed, charged), (vec![true], at(0)));
    assert_eq!(ask(&mut stage, &with(9), at(100_000))?.0, [true]);
    assert_eq!(refund(&mut stage, &with(1), charged, at(100_000))?, [true]);
    // 9 are owed, and not 8.9.
    let owed = (START + 9_100_000).to_string();
    assert_eq!(stage.client.get(key(1).as_str())?, Some(owed));
    assert_eq!(ask(&mut stage, &with(1), at(100_000))?.0, [true]);
    assert_eq!(ask(&mut stage, &with(1), at(100_000))?.0, [false]);
    assert_eq!(ask(&mut stage, &with(1), at(1_099_999))?.0, [false]);
    Ok(())
}

#[test]
fn a_charge_that_is_given_back_at_once_leaves_no_trace() -> Result<()> {
    let mut stage = Stage::new()?;
    let limiters = one_of_each(Micros::SECOND);
    let limits = |tokens, id| {
        let limits = limiters.iter().zip(0..);
        let limits = limits
            .map(move |(limiter, number)| asked(limiter, key(number), Ask { id, ..cost(tokens) }));
        limits.collect::<Vec<_>>()
    };
    let texts = |stage: &mut Stage| -> Result<Vec<_>> {
        (0..limiters.len() as u64).map(|number| stage.client.get(key(number).as_str())).collect()
    };
    for others in [0, 1] {
        if others > 0 {
            ask(&mut stage, &limits(others, 1), at(0))?;
        }
        let before = texts(&mut stage)?;
        let (allowed, charged) = ask(&mut stage, &limits(2, 2), at(10))?;
        assert!(allowed.iter().all(|allowed| *allowed));
        assert_ne!(texts(&mut stage)?, before);
        let given = refund(&mut stage, &limits(2, 2), charged, at(10))?;
        assert!(given.iter().all(|given| *given), "{given:?}");
        assert_eq!(texts(&mut stage)?, before, "with {others} of others");
    }
    Ok(())
}

#[test]
fn what_has_come_back_by_itself_is_not_given_twice() -> Result<()> {
    let mut stage = Stage::new()?;
    for (limiter, number) in one_of_each(Micros::SECOND).iter().zip(0..) {
        let with = |tokens| [asked(limiter, key(number), cost(tokens))];
        let (_, charged) = ask(&mut stage, &with(1), at(0))?;
        // A window that slides has forgotten it after two at the latest.
        ask(&mut stage, &with(2), at(2_000_000))?;
        let before = stage.client.get(key(number).as_str())?;
        if !matches!(limiter, Limiter::Concurrency(_)) {
            assert_eq!(refund(&mut stage, &with(1), charged, at(2_000_000))?, [false]);
        }
        assert_eq!(stage.client.get(key(number).as_str())?, before, "{limiter:?}");
    }
    Ok(())
}

#[test]
fn a_limit_that_was_not_charged_is_not_paid_back() -> Result<()> {
    let mut stage = Stage::new()?;
    let [limiter, ..] = one_of_each(Micros::SECOND);
    let first = asked(&limiter, key(1), cost(1));
    let shadow = Asked { enforced: false, ..asked(&limiter, key(2), cost(3)) };
    ask(&mut stage, &[shadow], at(0))?;
    let limits = [first, shadow];
    let call = Call::refundable(&limits)?;
    let seen = stage.client.observe(&[stage.call(&call, at(0))], true)?.remove(0);
    let (decisions, charged) = call.charged(&seen.reply)?;
    let taken: Vec<_> = call.taken_from(&decisions).collect();
    assert_eq!(taken.iter().map(|asked| asked.key).collect::<Vec<_>>(), [key(1)]);
    let before = stage.client.get(key(2).as_str())?;
    assert_eq!(refund(&mut stage, &taken, charged, at(0))?, [true]);
    assert_eq!(stage.client.get(key(1).as_str())?, None);
    assert_eq!(stage.client.get(key(2).as_str())?, before);
    Ok(())
}

#[test]
fn a_refund_that_meets_a_key_of_another_type_writes_nothing() -> Result<()> {
    let mut stage = Stage::new()?;
    let [limiter, ..] = one_of_each(Micros::SECOND);
    let limits = [asked(&limiter, key(1), cost(1)), asked(&limiter, key(2), cost(1))];
    let (_, charged) = ask(&mut stage, &limits, at(0))?;
    stage.client.run(&["DEL", key(2).as_str()])?;
    stage.client.run(&["RPUSH", key(2).as_str(), "x"])?;
    let before = stage.client.get(key(1).as_str())?;
    let call = stage.refund(&Refund::new(&limits, charged)?, at(0));
    let error = stage.client.call(&call).unwrap_err();
    assert!(format!("{error:#}").to_uppercase().contains("WRONGTYPE"), "{error:#}");
    assert_eq!(stage.client.get(key(1).as_str())?, before);
    Ok(())
}

/// By Redis's own clock: the time that the charge tells is one within the call, and it is one that
/// the log knows it by.
#[test]
fn on_redis_own_clock_a_charge_tells_its_time() -> Result<()> {
    let mut stage = Stage::new()?;
    let log = one_of_each(Micros::new(60_000_000))[4];
    let limits = [asked(&log, key(1), cost(2))];
    let call = Call::refundable(&limits)?;
    let seen = stage.client.observe(&[crate::sent(&call)], false)?.remove(0);
    let (_, charged) = call.charged(&seen.reply)?;
    assert!((seen.between.0..=seen.between.1).contains(&charged.as_micros()));
    let undo = Refund::new(&limits, charged)?;
    let keys = undo.keys().map(str::to_owned).collect();
    let sha1 = undo.script.sha1().to_owned();
    let undo_call = weir_lab::redis::ScriptCall { sha1, keys, args: undo.args.clone() };
    assert_eq!(undo.outcome(&stage.client.call(&undo_call)?)?, [true]);
    assert_eq!(stage.client.count()?, 0);
    assert_eq!(log.refund(&State::None, charged, charged, Ask::ONE), None);
    Ok(())
}
