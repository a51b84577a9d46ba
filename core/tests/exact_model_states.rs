//! Every limiter on any state: what another version, clock or limit may have left behind, and bytes
//! that nobody has written.

mod models;

use models::{
    Limit,
    random::{Call, Clock, START, calls, for_every_kind, forward_calls, limits, states},
};
use proptest::{prelude::*, sample::select};
use weir_core::{
    bounds,
    decision::Outcome,
    limiter::{
        Ask, Limiter, State,
        concurrency::{Permit, PermitState},
        debt::DebtState,
        sliding_log::{Charge, LogState},
        window::WindowState,
    },
    store::codec,
    units::{Cost, Instant, Micros, Rate},
};

/// A step yields a decision that makes sense, and a state that can be stored.
fn check_step(limiter: &Limiter, state: &State, now: Instant, ask: Ask) {
    let step = limiter.step(state, now, ask);
    assert!(step.decision.remaining <= step.decision.limit);
    assert_eq!(limiter.idle_after(&State::None, now), Micros::ZERO);
    if let Some(state) = &step.state {
        assert_eq!(codec::decode(&codec::encode(state)).as_ref(), Some(state));
        let _ = limiter.idle_after(state, now);
    }
    let state = step.state.as_ref().unwrap_or(state);
    if let Some(state) = limiter.refund(state, now, now, ask) {
        assert_eq!(codec::decode(&codec::encode(&state)), Some(state));
    }
}

/// Bytes of a state, mostly: a tag, and numbers as likely small as large, as many as it needs.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let number = (any::<u64>(), 0..64_u32).prop_map(|(n, shift)| n >> shift);
    let numbers = prop::collection::vec(number, 6);
    let lengths = select(vec![(1, 2), (2, 3), (3, 2), (3, 4), (4, 3), (4, 6), (5, 1), (0, 0)]);
    (lengths, numbers).prop_map(|((tag, length), numbers)| {
        let numbers = numbers.into_iter().take(length).flat_map(u64::to_le_bytes);
        std::iter::once(tag).chain(numbers).collect()
    })
}

#[test]
fn any_bytes_that_decode_and_any_time_give_a_decision() {
    for_every_kind(
        400,
        |kind| (limits(kind), bytes(), any::<u64>(), 0..64_u32, calls()),
        |(limit, bytes, time, shift, calls)| {
            let Some(state) = codec::decode(&bytes) else { return Ok(()) };
            let limiter = limit.limiter().unwrap();
            for call in calls {
                let ask = call.ask(&limit, 0);
                check_step(&limiter, &state, Instant::from_micros(time >> shift), ask);
            }
            Ok(())
        },
    );
}

#[test]
fn any_state_and_time_give_a_decision() {
    for_every_kind(
        250,
        |kind| (limits(kind), states(kind), any::<u64>(), 0..64_u32, calls()),
        |(limit, state, time, shift, calls)| {
            let limiter = limit.limiter().unwrap();
            let mut clock = Clock::new(true);
            for call in calls {
                clock.step(call.step, &limit);
                let ask = call.ask(&limit, 0);
                check_step(&limiter, &state, clock.instant(), ask);
                check_step(&limiter, &state, Instant::from_micros(time >> shift), ask);
            }
            Ok(())
        },
    );
}

/// A refusal that had nothing to repair writes nothing, one that had makes no other decision than
/// before, and both are the same when asked again.
#[test]
fn a_refusal_writes_only_a_repair_and_a_repair_changes_no_decision() {
    for_every_kind(
        250,
        |kind| (limits(kind), states(kind), calls()),
        |(limit, mut state, calls)| {
            let limiter = limit.limiter().unwrap();
            let mut clock = Clock::new(true);
            for (id, call) in (10..).zip(calls) {
                clock.step(call.step, &limit);
                let ask = call.ask(&limit, id);
                let step = limiter.step(&state, clock.instant(), ask);
                let kept = step.state.clone().unwrap_or_else(|| state.clone());
                if !step.decision.is_allowed() || ask.cost == Cost::ZERO {
                    let again = limiter.step(&kept, clock.instant(), ask);
                    prop_assert_eq!(again.decision, step.decision);
                    prop_assert_eq!(again.state, None, "a repair is made once");
                }
                if step.decision.is_allowed() && ask.cost > Cost::ZERO {
                    prop_assert!(step.state.is_some(), "a charge is stored");
                }
                let peeked = limiter.peek(&kept, clock.instant());
                prop_assert_eq!(peeked.outcome, Outcome::Allowed);
                prop_assert_eq!(peeked.remaining, step.decision.remaining);
                prop_assert_eq!(peeked.reset_after, step.decision.reset_after);
                state = kept;
            }
            Ok(())
        },
    );
}

/// So an entry may be dropped when it is idle: a key that is idle and one never seen are the same.
#[test]
fn an_idle_state_says_no_more_than_that_of_a_key_never_seen() {
    for_every_kind(
        250,
        |kind| {
            let before = prop_oneof![1 => Just(Vec::new()), 2 => calls()];
            (limits(kind), states(kind), before, forward_calls())
        },
        |(limit, mut state, calls, later)| {
            let limiter = limit.limiter().unwrap();
            let mut clock = Clock::new(true);
            for (id, call) in (10..).zip(&calls) {
                clock.step(call.step, &limit);
                let ask = call.ask(&limit, id);
                state = limiter.step(&state, clock.instant(), ask).state.unwrap_or(state);
            }
            // A store keeps what a step has repaired.
            let nothing = Ask::of(Cost::ZERO);
            state = limiter.step(&state, clock.instant(), nothing).state.unwrap_or(state);
            clock.now += limiter.idle_after(&state, clock.instant()).get();
            if clock.now > Clock::LATEST {
                return Ok(());
            }
            same_as_never_seen(&limit, state, clock, &later)
        },
    );
}

fn same_as_never_seen(
    limit: &Limit,
    mut state: State,
    mut clock: Clock,
    calls: &[Call],
) -> Result<(), TestCaseError> {
    let limiter = limit.limiter().unwrap();
    let mut fresh = State::None;
    clock.both_ways = false;
    for (id, call) in (100..).zip(calls) {
        clock.step(call.step, limit);
        let ask = call.ask(limit, id);
        let known = limiter.step(&state, clock.instant(), ask);
        let unknown = limiter.step(&fresh, clock.instant(), ask);
        prop_assert_eq!(known.decision, unknown.decision, "{:?} at {:?}", state, clock);
        state = known.state.unwrap_or(state);
        fresh = unknown.state.unwrap_or(fresh);
    }
    Ok(())
}

/// A state that says more is not idle: what has been taken is seen until then.
#[test]
fn a_state_is_not_idle_while_anything_is_taken() {
    for_every_kind(
        250,
        |kind| (limits(kind), calls()),
        |(limit, calls)| {
            let limiter = limit.limiter().unwrap();
            let mut state = State::None;
            let mut clock = Clock::new(true);
            for (id, call) in (10..).zip(calls) {
                clock.step(call.step, &limit);
                let step = limiter.step(&state, clock.instant(), call.ask(&limit, id));
                state = step.state.unwrap_or(state);
                let idle = limiter.idle_after(&state, clock.instant());
                prop_assert!(idle >= step.decision.reset_after);
                // Windows that a clock put off their places are known for one more.
                if !matches!(limit, Limit::FixedWindow { .. }) {
                    prop_assert_eq!(idle, step.decision.reset_after);
                }
            }
            Ok(())
        },
    );
}

/// At the end of the calendar, where a clock stands still, nothing is forgotten; only a permit, which
/// is kept until an instant, has no time left to be held.
#[test]
fn a_clock_at_the_end_of_its_range_frees_nobody() {
    for_every_kind(50, limits, |limit| {
        if matches!(limit, Limit::Concurrency { .. }) {
            return Ok(());
        }
        let limiter = limit.limiter().unwrap();
        let mut state = State::None;
        let mut passed = 0_u64;
        for id in 0..100 {
            let step = limiter.step(&state, Instant::MAX, Ask { id, ..Ask::ONE });
            state = step.state.unwrap_or(state);
            passed += u64::from(step.decision.is_allowed());
        }
        let capacity = limiter.peek(&State::None, Instant::from_micros(START)).limit;
        prop_assert_eq!(passed, capacity.min(100));
        Ok(())
    });
}

#[test]
fn a_number_that_no_step_writes_is_no_state() {
    let most = bounds::UNITS.max;
    for (a, b, c) in [(most + 1, 0, 0), (0, most + 1, 0), (0, 0, most + 1)] {
        assert_eq!(DebtState::from_parts(a.max(c), b), None);
        assert_eq!(DebtState::from_parts(a, b.max(c)), None);
        assert_eq!(WindowState::from_parts(a, b, c), None);
    }
    assert!(DebtState::from_parts(most, most).is_some());
    assert!(WindowState::from_parts(most, most, most).is_some());
}

/// A log or permits hold a thousand tokens at most, in sum, and none of nothing: a sum of anything
/// else would be wrong, and a thousand permits of nothing would leave no room for a true one.
#[test]
fn a_log_and_permits_hold_what_a_step_writes() {
    let at = |n: u64| Instant::from_micros(START + n);
    let permits = |cost, times: u64| {
        let permits = (0..times).map(|id| Permit { id, until: at(id), cost });
        PermitState::from_permits(permits.collect()).map(|held| held.permits().len())
    };
    let charges = |cost, times| {
        let charges = (0..times).map(|n| Charge { at: at(n), cost });
        LogState::from_charges(charges.collect()).map(|log| log.charges().len())
    };
    for (cost, times, kept) in [
        (0, 1_001, Some(0)),
        (1, 1_000, Some(1_000)),
        (1, 1_001, None),
        (500, 2, Some(2)),
        (501, 2, None),
        (u64::MAX, 2, None),
    ] {
        assert_eq!(permits(cost, times), kept, "{cost} {times}");
        assert_eq!(charges(cost, times), kept, "{cost} {times}");
    }
}

/// What a sliding window has left of the window before says nothing to a fixed one, not even where
/// the windows begin.
#[test]
fn a_fixed_window_knows_only_its_own_count() {
    let rate = Rate::new(5, Micros::SECOND).unwrap();
    let window = Limit::FixedWindow { rate }.limiter().unwrap();
    let at = |micros| Instant::from_micros(START + micros);
    let state = |previous, current| {
        State::Window(WindowState::from_parts(START + 300_000, previous, current).unwrap())
    };
    let step = |state| window.step(&state, at(500_000), Ask::ONE);
    assert_eq!(step(state(4, 0)), step(State::None));
    assert_eq!(step(state(9, 2)), step(state(0, 2)));
    assert_eq!(step(state(0, 2)).decision.reset_after, Micros::new(800_000));
    assert_eq!(window.idle_after(&state(4, 0), at(500_000)), Micros::ZERO);
    assert_eq!(window.idle_after(&state(0, 2), at(500_000)), Micros::new(1_800_000));
    assert_eq!(window.idle_after(&state(0, 2), at(1_400_000)), Micros::new(900_000));
}

/// 7 per 366 days with a burst of 285 count in ticks of 10 us and of 7 units each: an instant
/// between two ticks, which a limit of finer ticks has left, is rounded up to the later one.
#[test]
fn a_debt_of_finer_ticks_is_rounded_up() {
    let rate = Rate::new(7, Micros::new(31_622_400_000_000)).unwrap();
    let bucket = Limit::TokenBucket { rate, burst: 285 }.limiter().unwrap();
    let reset_after = |until: u64, left| {
        let state = State::Debt(DebtState::from_parts(START + until, left).unwrap());
        bucket.peek(&state, Instant::from_micros(START)).reset_after.get()
    };
    for (until, left, reset) in
        [(13, 0, 20), (13, 3, 20), (13, 7, 20), (20, 0, 20), (20, 3, 30), (20, 6, 30), (20, 7, 30)]
    {
        assert_eq!(reset_after(until, left), reset, "{until} {left}");
    }
}
