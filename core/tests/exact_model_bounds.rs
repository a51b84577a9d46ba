//! What every limiter promises whatever the clock does and however the limit is changed: waits that
//! are exact and bounded, and never more than the limit lets through.

mod models;

use models::{
    Limit,
    random::{Call, Clock, Kind, calls, for_every_kind, forward_calls, limits, states},
    whole,
};
use num_traits::ToPrimitive;
use proptest::prelude::*;
use weir_core::{
    decision::{Decision, Outcome},
    limiter::{Algorithm, Ask, Limiter, State, debt::DebtState, token_bucket::TokenBucket},
    units::{Cost, Instant, Micros, Rate},
};

fn wait(decision: &Decision) -> Option<Micros> {
    if let Outcome::Refused { retry_after } = decision.outcome { Some(retry_after) } else { None }
}

/// From any state, reached or not: refused a microsecond before the promised time, allowed at it.
#[test]
fn a_promised_wait_is_exact() {
    for_every_kind(
        300,
        |kind| (limits(kind), states(kind), calls()),
        |(limit, mut state, calls)| {
            let limiter = limit.limiter().unwrap();
            let mut clock = Clock::new(true);
            for (id, call) in (10..).zip(calls) {
                clock.step(call.step, &limit);
                let ask = call.ask(&limit, id);
                let step = limiter.step(&state, clock.instant(), ask);
                state = step.state.unwrap_or(state);
                let Some(wait) = wait(&step.decision) else { continue };
                clock.due = clock.now + wait.get();
                if clock.due > Instant::MAX.as_micros() {
                    continue; // the promise lies beyond the calendar
                }
                let passes =
                    |at| limiter.step(&state, Instant::from_micros(at), ask).decision.is_allowed();
                prop_assert!(wait > Micros::ZERO);
                prop_assert!(!passes(clock.due - 1), "{state:?} {ask:?} early at {clock:?}");
                prop_assert!(passes(clock.due), "{state:?} {ask:?} late at {clock:?}");
            }
            Ok(())
        },
    );
}

/// The longest wait that a used-up limit makes, in microseconds; a promise is made in whole ticks.
///
/// A debt at its most must drain by the cost and by what is reserved. A fixed window must end, the
/// oldest charge of a log leave, a lease end. A sliding window that has just begun and is full must
/// end, and then overlap the next by no more than there is room.
fn longest_wait(limit: &Limit, ask: Ask) -> u64 {
    let ticks = match limit {
        Limit::TokenBucket { .. } | Limit::LeakyBucket { .. } => {
            let needed = whole(ask.cost.get()) + whole(ask.floor);
            needed / limit.per_micro() / whole(limit.tick())
        }
        Limit::SlidingWindow { rate } => {
            let room = rate.count() - ask.floor - ask.cost.get();
            let overlap = whole(room) / whole(rate.count());
            (whole(2) - overlap) * whole(limit.window()) / whole(limit.tick())
        }
        _ => whole(limit.window()),
    };
    ticks.ceil().to_integer().to_u64().unwrap() * limit.tick()
}

/// The longest time until a limit is as if unused.
fn longest_reset(limit: &Limit) -> u64 {
    let ticks = match limit {
        Limit::TokenBucket { .. } | Limit::LeakyBucket { .. } => {
            limit.capacity() / limit.per_micro() / whole(limit.tick())
        }
        Limit::SlidingWindow { .. } => whole(2 * limit.window()) / whole(limit.tick()),
        _ => whole(limit.window()),
    };
    ticks.ceil().to_integer().to_u64().unwrap() * limit.tick()
}

/// Whatever another clock or another limit has written.
#[test]
fn nobody_is_locked_out_for_longer_than_a_used_up_limit_needs() {
    for_every_kind(
        300,
        |kind| (limits(kind), states(kind), calls()),
        |(limit, state, calls)| {
            let limiter = limit.limiter().unwrap();
            let mut clock = Clock::new(true);
            for call in calls {
                clock.step(call.step, &limit);
                let ask = call.ask(&limit, 0);
                let decision = limiter.step(&state, clock.instant(), ask).decision;
                match decision.outcome {
                    Outcome::Refused { retry_after } => {
                        prop_assert!(retry_after.get() <= longest_wait(&limit, ask));
                    }
                    Outcome::Delayed { delay } => {
                        let Limit::LeakyBucket { max_delay, .. } = limit else {
                            panic!("only a queue delays")
                        };
                        prop_assert!(Micros::ZERO < delay && delay <= max_delay);
                    }
                    Outcome::Allowed | Outcome::Never(_) => {}
                }
                prop_assert!(decision.reset_after.get() <= longest_reset(&limit));
                prop_assert!(decision.remaining <= decision.limit);
            }
            Ok(())
        },
    );
}

/// What was let through, and after how much forward time.
struct Passed {
    forward: u64,
    tokens: u64,
}

/// Whether so many tokens may pass while the clock goes forward by so many microseconds in all, as
/// the limiter sees it (in whole ticks), whatever the state before. Steps back count nothing.
///
/// - A debt never exceeds its capacity, a charge adds to it, and only forward time drains it (a
///   repair lowers what is owed only to what can be owed): capacity + rate · F. A leaky bucket's
///   capacity is what it can serve within `max_delay`, and the one token that it serves now.
/// - Every window takes at most the limit L, and one that is charged begins at least a length W
///   after the last one that was; the first may end at once: L · (⌈F / W⌉ + 1). That holds for a
///   sliding window too, whose estimate only ever refuses more.
/// - A charge of a log counts until the clock has gone forward by W: L · (⌊F / W⌋ + 1).
/// - A permit is held until the clock has gone forward by its lease, if it is not given back.
///
/// All hold for any part of a run, so a changed limit adds at most one full limit: that of the part
/// in which it is in force.
fn may_pass(limit: &Limit, tokens: u64, forward: u64) -> bool {
    let (tokens, forward, window) =
        (u128::from(tokens), u128::from(forward), u128::from(limit.window()));
    let in_windows = |count: u64, windows: u128| tokens <= u128::from(count) * windows;
    match *limit {
        Limit::TokenBucket { rate, burst } => {
            tokens * window <= u128::from(burst) * window + u128::from(rate.count()) * forward
        }
        Limit::LeakyBucket { rate, max_delay } => {
            let delay = u128::from(max_delay.get() / limit.tick() * limit.tick());
            tokens * window <= window + u128::from(rate.count()) * (delay + forward)
        }
        Limit::FixedWindow { rate } | Limit::SlidingWindow { rate } => {
            in_windows(rate.count(), forward.div_ceil(window) + 1)
        }
        Limit::SlidingLog { rate } => in_windows(rate.count(), forward / window + 1),
        Limit::Concurrency { limit, .. } => in_windows(limit, forward / window + 1),
    }
}

/// Checks every part of a run.
fn never_more_than_allowed(limit: &Limit, passed: &[Passed]) -> Result<(), TestCaseError> {
    for (first, from) in passed.iter().enumerate() {
        let mut tokens = 0;
        for to in &passed[first..] {
            tokens += to.tokens;
            let forward = to.forward - from.forward;
            prop_assert!(
                may_pass(limit, tokens, forward),
                "{tokens} tokens in {forward} us of {limit:?}"
            );
        }
    }
    Ok(())
}

/// With a clock that steps both ways, from any state, and with limits that change.
#[test]
fn never_more_passes_than_a_limit_and_its_refill_over_forward_time() {
    for_every_kind(
        300,
        |kind| (states(kind), prop::collection::vec((limits(kind), calls()), 1..4)),
        |(mut state, phases)| {
            let mut clock = Clock::new(true);
            for (limit, calls) in phases {
                let limiter = limit.limiter().unwrap();
                let (mut passed, mut forward) = (Vec::new(), 0);
                for (id, call) in (10..).zip(calls) {
                    let before = clock.now / limit.tick();
                    clock.step(call.step, &limit);
                    forward += (clock.now / limit.tick()).saturating_sub(before) * limit.tick();
                    let ask = call.ask(&limit, id);
                    let step = limiter.step(&state, clock.instant(), ask);
                    state = step.state.unwrap_or(state);
                    if step.decision.is_allowed() {
                        passed.push(Passed { forward, tokens: ask.cost.get() });
                    }
                    clock.due = clock.now + wait(&step.decision).unwrap_or(Micros::ZERO).get();
                }
                never_more_than_allowed(&limit, &passed)?;
            }
            Ok(())
        },
    );
}

/// What is given back while the clock goes forward, less what has come back by itself: what passes
/// and is kept is never more than the limit and its refill, in any part of a run.
#[test]
fn refunds_let_no_more_pass_than_the_limit() {
    for_every_kind(
        300,
        |kind| (limits(kind), forward_calls()),
        |(limit, calls)| {
            let limiter = limit.limiter().unwrap();
            let mut state = State::None;
            let mut clock = Clock::new(false);
            let mut passed: Vec<(Passed, u64, Ask)> = Vec::new();
            for (id, call) in (10..).zip(calls) {
                clock.step(call.step, &limit);
                if let Some(index) = chosen(&call, passed.len()) {
                    let (_, charged, ask) = passed.remove(index);
                    let charged = Instant::from_micros(charged);
                    state = limiter.refund(&state, charged, clock.instant(), ask).unwrap_or(state);
                }
                let ask = call.ask(&limit, id);
                let step = limiter.step(&state, clock.instant(), ask);
                state = step.state.unwrap_or(state);
                if step.decision.is_allowed() {
                    let forward = clock.now / limit.tick() * limit.tick();
                    passed.push((Passed { forward, tokens: ask.cost.get() }, clock.now, ask));
                }
                clock.due = clock.now + wait(&step.decision).unwrap_or(Micros::ZERO).get();
            }
            let kept: Vec<_> = passed.into_iter().map(|(passed, ..)| passed).collect();
            if matches!(limit, Limit::Concurrency { .. }) {
                return Ok(()); // a permit that is given back may be taken again at once
            }
            never_more_than_allowed(&limit, &kept)
        },
    );
}

fn chosen(call: &Call, of: usize) -> Option<usize> {
    let last = of.checked_sub(1)?;
    call.back.map(|at_last| if at_last { last } else { 0 })
}

/// Permits that nobody has given back and whose lease has not passed in forward time.
#[test]
fn never_more_permits_are_held_than_the_limit() {
    for_every_kind(
        200,
        |_| (limits(Kind::Concurrency), calls()),
        |(limit, calls)| {
            let limiter = limit.limiter().unwrap();
            let mut state = State::None;
            let mut clock = Clock::new(true);
            let mut held: Vec<(u64, u64, u64)> = Vec::new();
            for (id, call) in (10..).zip(calls) {
                clock.step(call.step, &limit);
                if let (Some(index), State::Permits(permits)) = (chosen(&call, held.len()), &state)
                {
                    let (id, ..) = held.remove(index);
                    state = permits.release(id).map_or(state, State::Permits);
                }
                let ask = call.ask(&limit, id);
                let step = limiter.step(&state, clock.instant(), ask);
                state = step.state.unwrap_or(state);
                if step.decision.is_allowed() {
                    held.push((id, clock.forward, ask.cost.get()));
                }
                held.retain(|(_, since, _)| clock.forward - since < limit.window());
                let sum: u64 = held.iter().map(|(.., cost)| cost).sum();
                prop_assert!(whole(sum) <= limit.capacity());
                clock.due = clock.now + wait(&step.decision).unwrap_or(Micros::ZERO).get();
            }
            Ok(())
        },
    );
}

/// A tenth of the token has come back by itself when it is given back. To give back all of it would
/// let 10.1 of 10 pass within no time.
#[test]
fn a_refund_gives_back_what_has_not_come_back_by_itself() {
    let bucket = TokenBucket::new(Rate::new(1, Micros::SECOND).unwrap(), 10).unwrap();
    let at = |millis: u64| Instant::from_micros(models::random::START + millis * 1_000);
    let nine = Ask::of(Cost::new(9).unwrap());
    let charged = bucket.step(&DebtState::NONE, at(0), Ask::ONE).state.unwrap();
    let others = bucket.step(&charged, at(100), nine).state.unwrap();
    let refunded = bucket.refund(&others, at(0), at(100), Ask::ONE).unwrap();
    let last = bucket.step(&refunded, at(100), Ask::ONE);
    assert!(last.decision.is_allowed());
    assert_eq!(bucket.level(last.state.unwrap(), at(100)), 0);
    assert_eq!(bucket.refund(&refunded, at(0), at(1_000), Ask::ONE), None);
    assert_eq!(bucket.refund(&DebtState::NONE, at(0), at(0), Ask::ONE), None);
    let limiter = Limiter::TokenBucket(bucket);
    assert_eq!(limiter.refund(&State::None, at(0), at(1), Ask::ONE), None);
}
