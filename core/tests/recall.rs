//! What is recalled of a decision, against the bucket that made it: on another clock, while others
//! go on taking.

mod models;

use models::{
    Limit,
    random::{Clock, START, calls, for_every_kind, limits, within},
};
use proptest::prelude::*;
use std::cell::Cell;
use weir_core::{
    bounds,
    decision::{Decision, Never, Outcome},
    limiter::{
        Ask, Limiter, Recalled, State, debt::DebtState, fixed_window::FixedWindow,
        leaky_bucket::LeakyBucket, sliding_log::SlidingLog, sliding_window::SlidingWindow,
        token_bucket::TokenBucket,
    },
    store::codec,
    units::{Cost, Instant, Micros, Rate},
};

const CASES: u32 = 300;

/// How many decisions are remembered at once.
const KNOWN: usize = 6;

/// What a caller adds to a clock that counts from the start of a machine.
const OFFSET: u64 = 1 << 51;

/// The other clock when the store's has gone on by so much in sum: it does not go back with it.
const fn other(uptime: u64, clock: &Clock) -> Instant {
    Instant::from_micros(OFFSET + uptime + clock.forward)
}

fn refuses(limiter: &Limiter, state: &State, now: Instant, ask: Ask) -> bool {
    !limiter.step(state, now, ask).decision.is_allowed()
}

#[test]
fn what_is_recalled_refuses_nothing_that_the_bucket_would_allow() {
    let refusals = Cell::new(0_u64);
    for_every_kind(
        CASES,
        |kind| {
            let lags = prop_oneof![Just(0), 0..3_u64, within(bounds::TIMEOUT)];
            (limits(kind), calls(), 0..1_u64 << 40, lags)
        },
        |(limit, calls, uptime, lag)| {
            let limiter = limit.limiter().unwrap();
            let mut clock = Clock::new(true);
            let mut state = State::None;
            let mut known: Vec<Recalled> = Vec::new();
            for (id, call) in (0..).zip(calls) {
                clock.step(call.step, &limit);
                let ask = call.ask(&limit, id);
                let here = other(uptime, &clock);
                known.retain(|known| here < known.until);
                known.drain(..known.len().saturating_sub(KNOWN));
                let mut asks = vec![ask];
                asks.extend((1..=4).filter_map(|n| {
                    let (capacity, _) = limit.size();
                    Cost::new(capacity.saturating_mul(n) / 4 + 1).map(Ask::of)
                }));
                for ask in asks {
                    let refused = |known: &&Recalled| refuses(&limiter, &known.state, here, ask);
                    if let Some(known) = known.iter().find(refused) {
                        refusals.set(refusals.get() + 1);
                        let real = refuses(&limiter, &state, clock.instant(), ask);
                        prop_assert!(real, "{known:?} in {state:?} at {clock:?} asked {ask:?}");
                    }
                }
                let step = limiter.step(&state, clock.instant(), ask);
                let sent = Instant::from_micros(here.as_micros() - lag.min(uptime));
                known.extend(limiter.recall(&step.decision, ask, sent));
                state = step.state.unwrap_or(state);
            }
            Ok(())
        },
    );
    println!("{} refusals recalled", refusals.get());
    assert!(refusals.get() > 1_000);
}

#[test]
fn a_refusal_is_recalled_unless_its_wait_is_short() {
    for_every_kind(
        CASES,
        |kind| (limits(kind), calls(), 0..1_u64 << 40),
        |(limit, calls, uptime)| {
            let limiter = limit.limiter().unwrap();
            let mut clock = Clock::new(true);
            let mut state = State::None;
            for (id, call) in (0..).zip(calls) {
                clock.step(call.step, &limit);
                let ask = call.ask(&limit, id);
                let step = limiter.step(&state, clock.instant(), ask);
                let seen = other(uptime, &clock);
                let recalled = limiter.recall(&step.decision, ask, seen);
                state = step.state.unwrap_or(state);
                if matches!(limit, Limit::Concurrency { .. }) {
                    prop_assert_eq!(recalled, None);
                    continue;
                }
                let Outcome::Refused { retry_after } = step.decision.outcome else { continue };
                // At the end of the calendar nothing is known of a time after it.
                if retry_after.get() < 3 * limit.tick() || seen.as_micros() > Clock::LATEST {
                    continue;
                }
                let recalled = recalled.expect("a refusal");
                prop_assert!(seen < recalled.until);
                prop_assert!(refuses(&limiter, &recalled.state, seen, ask), "{recalled:?}");
                let again = codec::decode(&codec::encode(&recalled.state));
                prop_assert_eq!(again, Some(recalled.state));
            }
            Ok(())
        },
    );
}

/// Whatever a store replies, and whenever: what is recalled is a state.
#[test]
fn any_decision_at_any_time_is_recalled_as_a_state_or_not_at_all() {
    for_every_kind(
        CASES,
        |kind| (limits(kind), any::<[u64; 4]>(), any::<[u8; 4]>(), 0..4_u64, calls()),
        |(limit, numbers, shifts, outcome, calls)| {
            let limiter = limit.limiter().unwrap();
            let number = |place: usize| numbers[place] >> (shifts[place] % 64);
            let wait = Micros::new(number(0));
            let decision = Decision {
                outcome: match outcome {
                    0 => Outcome::Allowed,
                    1 => Outcome::Delayed { delay: wait },
                    2 => Outcome::Never(Never::CostAboveCapacity),
                    _ => Outcome::Refused { retry_after: wait },
                },
                limit: limiter.capacity(),
                remaining: number(1),
                reset_after: Micros::new(number(2)),
            };
            let seen = Instant::from_micros(number(3));
            for call in calls {
                let ask = call.ask(&limit, 0);
                let Some(recalled) = limiter.recall(&decision, ask, seen) else { continue };
                prop_assert!(recalled.until >= seen);
                let again = codec::decode(&codec::encode(&recalled.state));
                prop_assert_eq!(again, Some(recalled.state));
            }
            Ok(())
        },
    );
}

/// A decision on a new key and then a refusal, and what is recalled of them at a time.
fn used_up(limiter: &Limiter, cost: u64) -> [Option<Recalled>; 2] {
    let (start, seen) = (Instant::from_micros(START), Instant::from_micros(OFFSET));
    let ask = Ask::of(Cost::new(cost).unwrap());
    let first = limiter.step(&State::None, start, ask);
    let second = limiter.step(&first.state.unwrap(), start, ask);
    assert!(matches!(second.decision.outcome, Outcome::Refused { .. }));
    [first.decision, second.decision].map(|decision| limiter.recall(&decision, ask, seen))
}

fn rate() -> Rate {
    Rate::new(10, Micros::SECOND).unwrap()
}

#[test]
fn a_bucket_at_one_unit_a_microsecond_is_recalled_whole() {
    let bucket = Limiter::TokenBucket(TokenBucket::new(rate(), 10).unwrap());
    let until = OFFSET + 600_000;
    let state = State::Debt(DebtState::from_parts(until, 0).unwrap());
    let known = Some(Recalled { state, until: Instant::from_micros(until) });
    assert_eq!(used_up(&bucket, 6), [known.clone(), known]);
}

#[test]
fn a_queue_is_recalled_by_what_waits_in_it() {
    let queue = Limiter::LeakyBucket(LeakyBucket::new(rate(), Micros::SECOND).unwrap());
    let [first, second] = used_up(&queue, 6).map(Option::unwrap);
    assert_eq!(first, second);
    let refused = |cost| {
        let ask = Ask::of(Cost::new(cost).unwrap());
        refuses(&queue, &first.state, Instant::from_micros(OFFSET), ask)
    };
    assert!(refused(6) && !refused(5));
}

#[test]
fn a_fixed_window_is_recalled_to_its_end() {
    let window = Limiter::FixedWindow(FixedWindow::new(rate()).unwrap());
    let [first, second] = used_up(&window, 6).map(Option::unwrap);
    assert_eq!(first, second);
    assert_eq!(first.until.as_micros(), OFFSET + 1_000_000);
    assert_eq!(window.peek(&first.state, Instant::from_micros(OFFSET + 999_999)).remaining, 4);
}

/// 6 of 10 are taken, and of that is known, by the refusal of 6 more, that 5 are.
#[test]
fn windows_that_slide_are_recalled_by_their_refusals_alone() {
    for limiter in [
        Limiter::SlidingWindow(SlidingWindow::new(rate()).unwrap()),
        Limiter::SlidingLog(SlidingLog::new(rate()).unwrap()),
    ] {
        let [first, second] = used_up(&limiter, 6);
        assert_eq!(first, None);
        let second = second.unwrap();
        assert_eq!(second.until.as_micros(), OFFSET + 1_000_000);
        for at in [OFFSET, OFFSET + 999_999] {
            let remaining = limiter.peek(&second.state, Instant::from_micros(at)).remaining;
            assert_eq!(remaining, 5, "{limiter:?}");
        }
    }
}

#[test]
fn nothing_is_recalled_of_another_limit_or_of_what_never_passes() {
    let bucket = Limiter::TokenBucket(TokenBucket::new(rate(), 10).unwrap());
    let ask = Ask::of(Cost::new(6).unwrap());
    let decision = bucket.step(&State::None, Instant::from_micros(START), ask).decision;
    let seen = Instant::from_micros(OFFSET);
    assert!(bucket.recall(&decision, ask, seen).is_some());
    let other = Limiter::TokenBucket(TokenBucket::new(rate(), 11).unwrap());
    assert_eq!(other.recall(&decision, ask, seen), None);
    let never = Decision { outcome: Outcome::Never(Never::CostAboveCapacity), ..decision };
    assert_eq!(bucket.recall(&never, ask, seen), None);
    let unused = Decision { reset_after: Micros::ZERO, ..decision };
    assert_eq!(bucket.recall(&unused, ask, seen), None);
    let closed = Limiter::Closed.peek(&State::None, seen);
    assert_eq!(Limiter::Closed.recall(&closed, ask, seen), None);
}

/// 7 per 366 days with a burst of 285 count in ticks of 10 us that drain 7 units each. The store
/// decides at the end of a tick, and that was the other clock's beginning of one: after another
/// microsecond a tick has drained there and none here.
#[test]
fn the_ticks_of_two_clocks_do_not_begin_together() {
    let rate = Rate::new(7, Micros::new(31_622_400_000_000)).unwrap();
    let bucket = TokenBucket::new(rate, 285).unwrap();
    assert_eq!(bucket.tick().length(), Micros::new(10));
    let token = bucket.units_per_token();
    // So many tokens and a tick's worth are owed, and the last tick drains a single unit.
    let owed = (1..8).find(|owed| owed * token % 7 == 1).unwrap();
    let units = owed * token + 7;
    let drained_at = (START / 10 + units / 7) * 10;
    let state = State::Debt(DebtState::from_parts(drained_at, units % 7).unwrap());
    let bucket = Limiter::TokenBucket(bucket);
    let decision = bucket.peek(&state, Instant::from_micros(START + 9));
    let recalled = bucket.recall(&decision, Ask::ONE, Instant::from_micros(OFFSET / 10 * 10));
    let recalled = recalled.unwrap();
    let rest = Ask::of(Cost::new(285 - owed).unwrap());
    assert!(refuses(&bucket, &state, Instant::from_micros(START + 9), rest));
    assert!(!refuses(&bucket, &state, Instant::from_micros(START + 10), rest));
    let later = Instant::from_micros(OFFSET / 10 * 10 + 1);
    assert!(!refuses(&bucket, &recalled.state, later, rest));
}

/// On a clock that has only begun, a window would have begun before it.
#[test]
fn a_window_from_before_the_clock_is_not_recalled() {
    let ask = Ask::of(Cost::new(10).unwrap());
    for limiter in [
        Limiter::FixedWindow(FixedWindow::new(rate()).unwrap()),
        Limiter::SlidingWindow(SlidingWindow::new(rate()).unwrap()),
        Limiter::SlidingLog(SlidingLog::new(rate()).unwrap()),
    ] {
        let start = Instant::from_micros(START + 500_000);
        let used = limiter.step(&State::None, start, ask).state.unwrap();
        let at = |micros| Instant::from_micros(START + 700_000 + micros);
        let refused = limiter.step(&used, at(0), Ask::ONE).decision;
        let recalled = |seen| limiter.recall(&refused, Ask::ONE, Instant::from_micros(seen));
        assert_eq!(recalled(0), None, "{limiter:?}");
        assert!(recalled(1_000_000).is_some(), "{limiter:?}");
    }
}
