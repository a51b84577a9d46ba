//! Random limits over all that the bounds table accepts, and random calls that seek their edges.

use super::Limit;
use proptest::{prelude::*, sample::select, test_runner::TestRunner};
use weir_core::{
    bounds::{self, Bound},
    limiter::{
        Ask, State,
        concurrency::{Permit, PermitState},
        debt::DebtState,
        sliding_log::{Charge, LogState},
        window::WindowState,
    },
    units::{Cost, Instant, Micros, Rate},
};

/// When the clock starts.
pub(crate) const START: u64 = 1_700_000_000_000_000;

/// The algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
    SlidingLog,
    LeakyBucket,
    Concurrency,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::TokenBucket,
        Self::FixedWindow,
        Self::SlidingWindow,
        Self::SlidingLog,
        Self::LeakyBucket,
        Self::Concurrency,
    ];
}

/// Runs a property for every algorithm.
pub(crate) fn for_every_kind<S: Strategy>(
    cases: u32,
    strategy: impl Fn(Kind) -> S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    for kind in Kind::ALL {
        TestRunner::new(ProptestConfig::with_cases(cases))
            .run(&strategy(kind), &property)
            .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

/// Numbers of any size within a bound, as likely small as large.
pub(crate) fn within(bound: Bound) -> impl Strategy<Value = u64> + Clone {
    (0..=64 - bound.max.leading_zeros(), any::<u64>()).prop_map(move |(bits, noise)| {
        let size = 1_u64.checked_shl(bits).unwrap_or(u64::MAX).saturating_sub(1);
        (noise & size).clamp(bound.min, bound.max)
    })
}

fn windows() -> impl Strategy<Value = u64> + Clone {
    let round = select(vec![1_000_u64, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000]);
    prop_oneof![4 => within(bounds::WINDOW), 4 => round, 1 => Just(bounds::WINDOW.max)]
}

fn rates(counts: impl Strategy<Value = u64> + Clone) -> impl Strategy<Value = Rate> + Clone {
    (counts, windows()).prop_map(|(count, window)| {
        Rate::new(count.max(1), Micros::new(window)).expect("within bounds")
    })
}

fn few_or(bound: Bound) -> impl Strategy<Value = u64> + Clone {
    prop_oneof![2 => 1..20_u64, 3 => within(bound).prop_map(|n| n.max(1)), 1 => Just(bound.max)]
}

/// Parameters of an algorithm, whether or not they make a limiter.
pub(crate) fn parameters(kind: Kind) -> BoxedStrategy<Limit> {
    let any_rate = rates(few_or(bounds::RATE_COUNT));
    let low_rate = rates(few_or(bounds::ENTRIES));
    match kind {
        Kind::TokenBucket => (any_rate, few_or(bounds::BURST))
            .prop_map(|(rate, burst)| Limit::TokenBucket { rate, burst })
            .boxed(),
        Kind::FixedWindow => any_rate.prop_map(|rate| Limit::FixedWindow { rate }).boxed(),
        Kind::SlidingWindow => any_rate.prop_map(|rate| Limit::SlidingWindow { rate }).boxed(),
        Kind::SlidingLog => low_rate.prop_map(|rate| Limit::SlidingLog { rate }).boxed(),
        Kind::LeakyBucket => (any_rate, within(bounds::MAX_DELAY))
            .prop_map(|(rate, delay)| Limit::LeakyBucket { rate, max_delay: Micros::new(delay) })
            .boxed(),
        Kind::Concurrency => (few_or(bounds::ENTRIES), within(bounds::LEASE))
            .prop_map(|(limit, lease)| Limit::Concurrency { limit, lease: Micros::new(lease) })
            .boxed(),
    }
}

/// Parameters of an algorithm that make a limiter.
pub(crate) fn limits(kind: Kind) -> impl Strategy<Value = Limit> {
    parameters(kind).prop_filter("fits no tick", |limit| limit.limiter().is_ok())
}

/// A number of tokens, by itself or as eighths of what the limit can hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    Tokens(u64),
    Eighths(u64, i64),
}

impl Amount {
    fn of(self, limit: &Limit) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Eighths(eighths, more) => {
                let (capacity, _) = limit.size();
                let tokens = (capacity * eighths / 8).saturating_add_signed(more);
                tokens.min(bounds::COST.max)
            }
        }
    }
}

/// How the clock moves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Micros(i64),
    /// 64ths of the time that one token takes.
    Tokens(i64),
    /// 64ths of the window, the lease, or the time in which a debt drains.
    Windows(i64),
    /// To the time that the last refusal promised, and so many microseconds on.
    Due(i64),
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) step: Move,
    cost: Amount,
    floor: Amount,
    /// Of the permits held, or of the charges made, one to give back before: the last, or the
    /// first, if any.
    pub(crate) back: Option<bool>,
}

impl Call {
    pub(crate) fn ask(&self, limit: &Limit, id: u64) -> Ask {
        let cost = Cost::new(self.cost.of(limit)).expect("a cost");
        Ask { cost, floor: self.floor.of(limit), id }
    }
}

/// Calls under a clock that only goes on.
pub(crate) fn forward_calls() -> impl Strategy<Value = Vec<Call>> + Clone {
    calls_with(moves(0))
}

/// Calls under a clock that goes on and back.
pub(crate) fn calls() -> impl Strategy<Value = Vec<Call>> + Clone {
    calls_with(moves(200))
}

fn moves(back: i64) -> impl Strategy<Value = Move> + Clone {
    prop_oneof![
        2 => (-back.signum() * 3..4_i64).prop_map(Move::Micros),
        4 => (-back..200_i64).prop_map(Move::Tokens),
        2 => (-back..200_i64).prop_map(Move::Windows),
        1 => (0..100_000_i64).prop_map(Move::Tokens),
        2 => (-1..=1_i64).prop_map(Move::Due),
        2 => Just(Move::Micros(0)),
    ]
}

fn calls_with(
    moves: impl Strategy<Value = Move> + Clone,
) -> impl Strategy<Value = Vec<Call>> + Clone {
    let cost = prop_oneof![
        4 => Just(Amount::Tokens(1)),
        1 => (0..6_u64).prop_map(Amount::Tokens),
        3 => (0..=8_u64, -1..=1_i64).prop_map(|(n, more)| Amount::Eighths(n, more)),
        1 => within(bounds::COST).prop_map(Amount::Tokens),
    ];
    let floor = prop_oneof![
        6 => Just(Amount::Tokens(0)),
        1 => (0..6_u64).prop_map(Amount::Tokens),
        1 => (0..=9_u64, -1..=1_i64).prop_map(|(n, more)| Amount::Eighths(n, more)),
    ];
    let back = prop_oneof![4 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let call = (moves, cost, floor, back).prop_map(|(step, cost, floor, back)| Call {
        step,
        cost,
        floor,
        back,
    });
    prop::collection::vec(call, 1..40)
}

/// A clock, and what it has been told to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) now: u64,
    pub(crate) due: u64,
    /// The sum of its steps forward.
    pub(crate) forward: u64,
    /// Whether it may step back.
    pub(crate) both_ways: bool,
}

impl Clock {
    /// A window of any length and a tick remain until the end of the range.
    pub(crate) const LATEST: u64 = (1 << 52) - (1 << 47);

    pub(crate) const fn new(both_ways: bool) -> Self {
        Self { now: START, due: START, forward: 0, both_ways }
    }

    /// Moves, and stays far from either end of its range.
    pub(crate) fn step(&mut self, step: Move, limit: &Limit) {
        let parts = |sixty_fourths: i64, of: u64| i128::from(sixty_fourths) * i128::from(of) / 64;
        let (capacity, span) = limit.size();
        let per_token = (span / capacity).max(1);
        let span = span.max(limit.window().min(span.saturating_mul(1_000)));
        let by = match step {
            Move::Micros(micros) => i128::from(micros),
            Move::Tokens(n) => parts(n, per_token),
            Move::Windows(n) => parts(n, span),
            Move::Due(micros) => i128::from(self.due) + i128::from(micros) - i128::from(self.now),
        };
        let by = by.clamp(if self.both_ways { -(1 << 50) } else { 0 }, 1 << 50);
        let next = (i128::from(self.now) + by).clamp(1 << 40, i128::from(Self::LATEST));
        let next = u64::try_from(next).expect("within the range");
        self.forward += next.saturating_sub(self.now);
        self.now = next;
    }

    pub(crate) const fn instant(&self) -> Instant {
        Instant::from_micros(self.now)
    }
}

/// States of an algorithm, from what a step could write to any numbers at all.
pub(crate) fn states(kind: Kind) -> BoxedStrategy<State> {
    let any = prop_oneof![
        3 => (-1_000_000..100_000_000_i64).prop_map(|ahead| START.saturating_add_signed(ahead)),
        1 => within(bounds::UNITS),
        1 => within(bounds::FILL_TIME),
    ];
    let count = prop_oneof![3 => 0..20_u64, 1 => within(bounds::UNITS)];
    // Six of them are what a log or permits can hold.
    let cost = prop_oneof![3 => 0..20_u64, 1 => 0..=bounds::ENTRIES.max / 6];
    let some = match kind {
        Kind::TokenBucket | Kind::LeakyBucket => (any, count)
            .prop_map(|(until, left)| State::Debt(DebtState::from_parts(until, left).unwrap()))
            .boxed(),
        Kind::FixedWindow | Kind::SlidingWindow => (any, count.clone(), count)
            .prop_map(|(start, a, b)| State::Window(WindowState::from_parts(start, a, b).unwrap()))
            .boxed(),
        Kind::SlidingLog => prop::collection::vec((any, cost), 0..6)
            .prop_map(|charges| {
                let charge = |(at, cost)| Charge { at: Instant::from_micros(at), cost };
                let charges = charges.into_iter().map(charge).collect();
                State::Log(LogState::from_charges(charges).unwrap())
            })
            .boxed(),
        Kind::Concurrency => prop::collection::vec((0..4_u64, any, cost), 0..6)
            .prop_map(|permits| {
                let permit =
                    |(id, until, cost)| Permit { id, until: Instant::from_micros(until), cost };
                let permits = permits.into_iter().map(permit).collect();
                State::Permits(PermitState::from_permits(permits).unwrap())
            })
            .boxed(),
    };
    prop_oneof![9 => some, 1 => Just(State::None)].boxed()
}
