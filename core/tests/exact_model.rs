//! The token bucket against a textbook bucket in rational numbers, over all policies that the
//! bounds table accepts.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, Zero};
use proptest::{prelude::*, test_runner::TestRunner};
use std::cell::Cell;
use weir_core::{
    bounds::{self, Bound},
    decision::{Decision, Never, Outcome},
    limiter::{Algorithm, Ask, Unfit, debt::DebtState, token_bucket::TokenBucket},
    units::{Cost, Instant, Micros, Rate},
};

/// A bucket as a textbook tells it: a level of tokens and when it was last written.
struct Textbook {
    per_micro: BigRational,
    burst: BigRational,
    level: BigRational,
    written: u64,
}

fn whole(n: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(n))
}

impl Textbook {
    fn new(rate: Rate, burst: u64) -> Self {
        let per_micro = whole(rate.count()) / whole(rate.window().get());
        Self { per_micro, burst: whole(burst), level: whole(burst), written: 0 }
    }

    /// The level at a time before or after the last writing, and whether it had run below zero.
    fn level_at(&self, now: u64) -> (BigRational, bool) {
        let elapsed = whole(now) - whole(self.written);
        let level = &self.level + elapsed * &self.per_micro;
        if level.is_negative() {
            return (BigRational::zero(), true);
        }
        (level.min(self.burst.clone()), false)
    }

    /// `None`: allowed. Otherwise ticks to wait, or nothing if it can never pass.
    fn ask(&mut self, now: u64, cost: u64, tick: u64) -> Option<Option<BigInt>> {
        let (level, repaired) = self.level_at(now);
        let cost = whole(cost);
        if repaired {
            (self.level, self.written) = (level.clone(), now);
        }
        if cost > self.burst {
            return Some(None);
        }
        if level < cost {
            let ticks = (cost - level) / &self.per_micro / whole(tick);
            return Some(Some(ticks.ceil().to_integer()));
        }
        // A charge of nothing is no writing.
        if !cost.is_zero() {
            (self.level, self.written) = (level - cost, now);
        }
        None
    }
}

/// Numbers of any size within a bound, as likely small as large.
fn within(bound: Bound) -> impl Strategy<Value = u64> + Clone {
    (0..=64_u32, any::<u64>()).prop_map(move |(bits, noise)| {
        let size = 1_u64.checked_shl(bits).unwrap_or(u64::MAX).saturating_sub(1);
        (noise & size).clamp(bound.min, bound.max)
    })
}

/// A rate within the bounds; its window often a round one.
fn rates() -> impl Strategy<Value = Rate> + Clone {
    let round = prop::sample::select(vec![1_000_u64, 1_000_000, 60_000_000, 3_600_000_000]);
    let window = prop_oneof![within(bounds::WINDOW), round, Just(bounds::WINDOW.max)];
    let count = prop_oneof![within(bounds::RATE_COUNT), Just(1_000_000), Just(1)];
    (count, window).prop_map(|(count, window)| {
        Rate::new(count.max(1), Micros::new(window)).expect("within bounds")
    })
}

/// A call: how far the clock moves, in 64ths of the time that one token takes, and the cost.
fn calls() -> impl Strategy<Value = Vec<(i64, u64)>> + Clone {
    let moves =
        prop_oneof![4 => 0..200_i64, 1 => Just(0_i64), 1 => -500..0_i64, 1 => 0..100_000_i64];
    let costs = prop_oneof![4 => Just(1_u64), 1 => 0..6_u64, 1 => within(bounds::COST)];
    prop::collection::vec((moves, costs), 1..60)
}

/// A bucket together with its rate and burst.
fn buckets() -> impl Strategy<Value = (Rate, u64, TokenBucket)> + Clone {
    (rates(), prop_oneof![within(bounds::BURST), 1..20_u64])
        .prop_filter_map("fits no tick", |(rate, burst)| {
            Some((rate, burst, TokenBucket::new(rate, burst).ok()?))
        })
}

/// The clock after a move, always a whole tick.
fn moved(now: u64, step: i64, rate: Rate, tick: u64) -> u64 {
    let token = (rate.window().get() / rate.count()).max(1);
    let micros = u128::from(step.unsigned_abs()) * u128::from(token) / 64;
    let micros = u64::try_from(micros).unwrap_or(u64::MAX).min(1 << 50) / tick * tick;
    let now = if step < 0 { now.saturating_sub(micros) } else { now.saturating_add(micros) };
    now.min(Instant::MAX.as_micros() / tick * tick)
}

fn asking(cost: u64) -> Ask {
    Ask::of(Cost::new(cost).expect("a cost"))
}

const START: u64 = 1_700_000_000_000_000;

fn check(
    bucket: &TokenBucket,
    textbook: &mut Textbook,
    state: &mut DebtState,
    now: u64,
    cost: u64,
) {
    let tick = bucket.tick().length().get();
    let (_, below_zero) = textbook.level_at(now);
    let expected = textbook.ask(now, cost, tick);
    let before = *state;
    let step = bucket.step(&before, Instant::from_micros(now), asking(cost));
    *state = step.state.unwrap_or(before);
    let told = match step.decision.outcome {
        Outcome::Allowed | Outcome::Delayed { .. } => None,
        Outcome::Refused { retry_after } => Some(Some(BigInt::from(retry_after.get() / tick))),
        Outcome::Never(Never::CostAboveCapacity) => Some(None),
        Outcome::Never(Never::Closed) => panic!("not closed"),
    };
    assert_eq!(told, expected, "{bucket:?} {before:?} at {now} cost {cost}");
    if !step.decision.is_allowed() {
        assert_eq!(step.state.is_some(), below_zero, "a refusal writes only a repair");
    }
    let (level, _) = textbook.level_at(now);
    assert_eq!(BigInt::from(step.decision.remaining), level.to_integer(), "remaining");
    check_reset(&step.decision, textbook, now, tick);
}

fn check_reset(decision: &Decision, textbook: &Textbook, now: u64, tick: u64) {
    let (level, _) = textbook.level_at(now);
    let ticks = ((&textbook.burst - level) / &textbook.per_micro / whole(tick)).ceil().to_integer();
    assert_eq!(BigInt::from(decision.reset_after.get() / tick), ticks, "reset");
}

#[test]
fn every_decision_equals_the_textbook_in_rationals() {
    let decisions = Cell::new(0_usize);
    TestRunner::new(ProptestConfig::with_cases(2_000))
        .run(&(buckets(), calls()), |((rate, burst, bucket), calls)| {
            let tick = bucket.tick().length().get();
            let mut textbook = Textbook::new(rate, burst);
            let mut state = DebtState::NONE;
            let mut now = START;
            for (step, cost) in calls {
                now = moved(now, step, rate, tick);
                check(&bucket, &mut textbook, &mut state, now, cost);
                decisions.set(decisions.get() + 1);
            }
            Ok(())
        })
        .unwrap();
    println!("{} decisions equal", decisions.get());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_promised_wait_is_exact((rate, _, bucket) in buckets(), calls in calls()) {
        let tick = bucket.tick().length().get();
        let (mut state, mut now) = (DebtState::NONE, START);
        for (step, cost) in calls {
            now = moved(now, step, rate, tick);
            let at = Instant::from_micros(now);
            let cost = asking(cost);
            let step = bucket.step(&state, at, cost);
            state = step.state.unwrap_or(state);
            if let Outcome::Refused { retry_after } = step.decision.outcome {
                let due = at.saturating_add(retry_after);
                if due == Instant::MAX {
                    continue; // the promise lies beyond the calendar
                }
                let early = Instant::from_micros(due.as_micros() - tick);
                prop_assert!(!bucket.step(&state, early, cost).decision.is_allowed());
                prop_assert!(bucket.step(&state, due, cost).decision.is_allowed());
            }
        }
    }

    /// With clocks stepping both ways and limits changing mid-way.
    #[test]
    fn nobody_is_locked_out_for_longer_than_an_empty_bucket_needs(
        first in buckets(), second in buckets(), calls in calls(), back in 0..1_u64 << 51,
    ) {
        let mut state = DebtState::NONE;
        let mut now = START;
        for (step, cost) in calls {
            now = moved(now, step, first.0, first.2.tick().length().get());
            let cost = asking(cost);
            state = first.2.step(&state, Instant::from_micros(now), cost).state.unwrap_or(state);
        }
        let (_, burst, bucket) = second;
        let tick = bucket.tick().length().get();
        let later = Instant::from_micros(now.saturating_sub(back) / tick * tick);
        let empty = bucket.step(&DebtState::NONE, later, asking(burst)).state;
        let worst = bucket.step(&empty.unwrap_or_default(), later, Ask::ONE).decision;
        let decision = bucket.step(&state, later, Ask::ONE).decision;
        let wait = |decision: Decision| match decision.outcome {
            Outcome::Refused { retry_after } => retry_after,
            _ => Micros::ZERO,
        };
        prop_assert!(wait(decision) <= wait(worst));
    }

    /// With a clock that steps both ways.
    #[test]
    fn never_more_passes_than_burst_and_refill_over_forward_time(
        (rate, burst, bucket) in buckets(), calls in calls(),
    ) {
        let tick = bucket.tick().length().get();
        let (mut state, mut now) = (DebtState::NONE, START);
        let (mut forward, mut passed) = (0_u64, BigInt::zero());
        for (step, cost) in calls {
            let next = moved(now, step, rate, tick);
            forward += next.saturating_sub(now);
            now = next;
            let step = bucket.step(&state, Instant::from_micros(now), asking(cost));
            state = step.state.unwrap_or(state);
            if step.decision.is_allowed() {
                passed += BigInt::from(cost);
            }
        }
        let refilled = whole(rate.count()) * whole(forward) / whole(rate.window().get());
        prop_assert!(BigRational::from_integer(passed) <= whole(burst) + refilled);
    }

    #[test]
    fn any_state_and_time_give_a_decision(
        (_, _, bucket) in buckets(), full_at: u64, remainder: u64, now: u64, cost in within(bounds::COST),
    ) {
        let Some(state) = DebtState::from_parts(full_at >> 11, remainder >> 11) else {
            return Ok(());
        };
        let step = bucket.step(&state, Instant::from_micros(now), asking(cost));
        let (full_at, remainder) = step.state.unwrap_or(state).to_parts();
        prop_assert!(DebtState::from_parts(full_at, remainder).is_some());
        prop_assert!(step.decision.remaining <= bucket.burst());
    }
}

#[test]
fn most_policies_of_the_bounds_table_are_accepted() {
    let (accepted, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    TestRunner::new(ProptestConfig::with_cases(10_000))
        .run(&(rates(), within(bounds::BURST)), |(rate, burst)| {
            match TokenBucket::new(rate, burst) {
                Ok(_) => accepted.set(accepted.get() + 1),
                Err(unfit) => {
                    prop_assert_eq!(unfit, Unfit::TooLarge);
                    refused.set(refused.get() + 1);
                }
            }
            Ok(())
        })
        .unwrap();
    println!("{} of {} random policies accepted", accepted.get(), accepted.get() + refused.get());
    assert!(accepted.get() > refused.get());
}

#[test]
fn the_finest_tick_that_fits_is_taken() {
    let tick = |count, window, burst| {
        let rate = Rate::new(count, Micros::new(window)).expect("a rate");
        TokenBucket::new(rate, burst).map(|bucket| bucket.tick().length().get())
    };
    assert_eq!(tick(1000, 60_000_000, 1000), Ok(1));
    assert_eq!(tick(1_000_000, 1_000_000, 1_000_000_000), Ok(1));
    // w = 31,622,400,000,000 at 1 µs: 2^53 leaves room for 284 tokens, and 142 years for 142.
    assert_eq!(tick(1, 31_622_400_000_000, 142), Ok(1));
    assert_eq!(tick(1, 31_622_400_000_000, 143), Err(Unfit::TooLarge));
    assert_eq!(tick(7, 31_622_400_000_000, 284), Ok(1));
    assert_eq!(tick(7, 31_622_400_000_000, 285), Ok(10));
    assert_eq!(tick(1000, 31_622_400_000_000, 0), Err(Unfit::Burst));
}
