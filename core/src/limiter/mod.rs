//! The limiters: pure steps from (state, now, what is asked) to (decision, new state).
//!
//! A store makes a step atomic and may run it again; a step never reads a clock. All limiters have
//! two rules in common. A refusal leaves the state as it is, with one exception, *repair*: a state
//! that owes more than the limit allows has been written under another clock or another limit; it
//! counts as used up now, and that is stored. And a clock that goes back is no time passed, while a
//! changed limit applies at once. So nobody is locked out for longer than a used-up limit needs,
//! and never more passes than a full limit and its refill over the sum of forward time.

pub mod concurrency;
pub mod debt;
pub mod fixed_window;
pub mod leaky_bucket;
mod recall;
pub mod sliding_log;
pub mod sliding_window;
pub mod tick;
pub mod token_bucket;
pub mod window;

pub use recall::Recalled;

use crate::{
    bounds,
    decision::{Decision, Never, Outcome},
    units::{Cost, Instant, Micros},
};
use concurrency::{Concurrency, PermitState};
use debt::DebtState;
use fixed_window::FixedWindow;
use leaky_bucket::LeakyBucket;
use sliding_log::{LogState, SlidingLog};
use sliding_window::SlidingWindow;
use token_bucket::TokenBucket;
use window::WindowState;

/// What a request asks of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What it takes.
    pub cost: Cost,
    /// Tokens that must be left after it: what is reserved for requests more critical than this.
    pub floor: u64,
    /// Names the request, for a limit whose permits are given back.
    pub id: u64,
}

impl Ask {
    /// An ordinary request of cost 1.
    pub const ONE: Ask = Ask::of(Cost::ONE);

    /// A request of a cost that may draw all there is.
    #[must_use]
    pub const fn of(cost: Cost) -> Self {
        Self { cost, floor: 0, id: 0 }
    }

    /// What a limit answers that counts whole tokens and has counted `taken`; `wait` tells when so
    /// many of them are back.
    fn against(self, limit: u64, taken: u64, wait: impl FnOnce(u64) -> Micros) -> Outcome {
        let cost = self.cost.get();
        let usable = limit.saturating_sub(self.floor);
        let excess = taken.saturating_add(cost).saturating_sub(usable);
        if cost > usable {
            Outcome::Never(Never::CostAboveCapacity)
        } else if excess > 0 && cost > 0 {
            Outcome::Refused { retry_after: wait(excess) }
        } else {
            Outcome::Allowed
        }
    }

    /// Whether a request that was so answered is charged: asking for nothing takes nothing.
    fn is_charged(self, outcome: Outcome) -> bool {
        outcome.is_allowed() && self.cost > Cost::ZERO
    }
}

/// One algorithm with its parameters.
pub trait Algorithm {
    /// What is kept for a key. Its default is the state of a key never seen.
    type State: Clone + Default;

    /// Decides a request at `now`. A cost of 0 takes nothing and is allowed: it asks what is left.
    fn step(&self, state: &Self::State, now: Instant, ask: Ask) -> Step<Self::State>;

    /// Time from `now` until the state says no more than that of a key never seen.
    fn idle_after(&self, state: &Self::State, now: Instant) -> Micros;

    /// The state after a charge made at `charged` is undone at `now`, less what the key has got
    /// back of it since; giving back all would let more pass than the limit. `None` where nothing
    /// is left to give back.
    fn refund(
        &self,
        state: &Self::State,
        charged: Instant,
        now: Instant,
        ask: Ask,
    ) -> Option<Self::State>;
}

/// What a step yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<S> {
    /// The answer to the request.
    pub decision: Decision,
    /// The state to store; `None` where the stored one stays as it is.
    pub state: Option<S>,
}

/// One limit, ready to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// A limit of 0: refuses every request and keeps no state.
    Closed,
    /// The token bucket, which is also GCRA.
    TokenBucket(TokenBucket),
    /// The fixed window.
    FixedWindow(FixedWindow),
    /// The sliding window counter.
    SlidingWindow(SlidingWindow),
    /// The sliding log.
    SlidingLog(SlidingLog),
    /// The leaky bucket as a queue.
    LeakyBucket(LeakyBucket),
    /// The concurrency limit.
    Concurrency(Concurrency),
}

/// The state of one key under one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Of a key never seen.
    #[default]
    None,
    /// Of a token or leaky bucket.
    Debt(DebtState),
    /// Of a fixed or sliding window.
    Window(WindowState),
    /// Of a sliding log.
    Log(LogState),
    /// Of a concurrency limit.
    Permits(PermitState),
}

/// Why numbers make no limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The limit is 0; [`Limiter::Closed`] is that limit.
    Closed,
    /// The burst is outside [`bounds::BURST`].
    Burst,
    /// The longest wait is outside [`bounds::MAX_DELAY`].
    MaxDelay,
    /// The lease is outside [`bounds::LEASE`].
    Lease,
    /// The limit is outside [`bounds::ENTRIES`].
    Entries,
    /// Not even with a tick of 1 s can the limit be counted below 2^53.
    TooLarge,
}

impl core::fmt::Display for Unfit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Closed => f.write_str("a limit of 0 counts nothing"),
            Self::Burst => write!(f, "burst must be {}", bounds::BURST),
            Self::MaxDelay => write!(f, "max_delay must be {}", bounds::MAX_DELAY),
            Self::Lease => write!(f, "lease must be {}", bounds::LEASE),
            Self::Entries => write!(
                f,
                "a sliding log and a concurrency limit keep an entry for each token, so their \
                 limit must be {}; a sliding window or a token bucket has no such bound",
                bounds::ENTRIES,
            ),
            Self::TooLarge => f.write_str(
                "this cannot be counted exactly: the limit would need 2^53 units or over 142 years \
                 to recover, even at a tick of 1 s; lower the burst or the count, or shorten the \
                 window",
            ),
        }
    }
}

impl core::error::Error for Unfit {}

impl Limiter {
    /// Decides a request at `now`. A state of another algorithm counts as that of a key never seen:
    /// a limit whose algorithm was changed starts anew.
    #[must_use]
    pub fn step(&self, state: &State, now: Instant, ask: Ask) -> Step<State> {
        match self {
            Self::Closed => Step { decision: CLOSED, state: None },
            Self::TokenBucket(limit) => step(limit, state.debt(), now, ask, State::Debt),
            Self::FixedWindow(limit) => step(limit, state.window(), now, ask, State::Window),
            Self::SlidingWindow(limit) => step(limit, state.window(), now, ask, State::Window),
            Self::SlidingLog(limit) => step(limit, state.log(), now, ask, State::Log),
            Self::LeakyBucket(limit) => step(limit, state.debt(), now, ask, State::Debt),
            Self::Concurrency(limit) => step(limit, state.permits(), now, ask, State::Permits),
        }
    }

    /// The most that could ever pass at once, in tokens: the limit that each decision names.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Closed => CLOSED.limit,
            Self::TokenBucket(limit) => limit.burst(),
            Self::FixedWindow(limit) => limit.limit(),
            Self::SlidingWindow(limit) => limit.limit(),
            Self::SlidingLog(limit) => limit.limit(),
            Self::LeakyBucket(limit) => limit.places(),
            Self::Concurrency(limit) => limit.limit(),
        }
    }

    /// The kind of state that the algorithm keeps. Limits of one kind read each other's state.
    #[must_use]
    pub const fn state_kind(&self) -> &'static str {
        match self {
            Self::Closed => "none",
            Self::TokenBucket(_) | Self::LeakyBucket(_) => "debt",
            Self::FixedWindow(_) | Self::SlidingWindow(_) => "window",
            Self::SlidingLog(_) => "log",
            Self::Concurrency(_) => "permits",
        }
    }

    /// What is left at `now`, taking nothing.
    #[must_use]
    pub fn peek(&self, state: &State, now: Instant) -> Decision {
        const NOTHING: Ask = Ask { cost: Cost::ZERO, floor: 0, id: 0 };
        self.step(state, now, NOTHING).decision
    }

    /// Time from `now` until the state says no more than that of a key never seen.
    #[must_use]
    pub fn idle_after(&self, state: &State, now: Instant) -> Micros {
        match self {
            Self::Closed => Micros::ZERO,
            Self::TokenBucket(limit) => idle_after(limit, state.debt(), now),
            Self::FixedWindow(limit) => idle_after(limit, state.window(), now),
            Self::SlidingWindow(limit) => idle_after(limit, state.window(), now),
            Self::SlidingLog(limit) => idle_after(limit, state.log(), now),
            Self::LeakyBucket(limit) => idle_after(limit, state.debt(), now),
            Self::Concurrency(limit) => idle_after(limit, state.permits(), now),
        }
    }

    /// The state after a charge is undone; see [`Algorithm::refund`].
    #[must_use]
    pub fn refund(&self, state: &State, charged: Instant, now: Instant, ask: Ask) -> Option<State> {
        let times = (charged, now);
        match self {
            Self::Closed => None,
            Self::TokenBucket(limit) => refund(limit, state.debt(), times, ask, State::Debt),
            Self::FixedWindow(limit) => refund(limit, state.window(), times, ask, State::Window),
            Self::SlidingWindow(limit) => refund(limit, state.window(), times, ask, State::Window),
            Self::SlidingLog(limit) => refund(limit, state.log(), times, ask, State::Log),
            Self::LeakyBucket(limit) => refund(limit, state.debt(), times, ask, State::Debt),
            Self::Concurrency(limit) => refund(limit, state.permits(), times, ask, State::Permits),
        }
    }
}

fn step<A: Algorithm>(
    limit: &A,
    state: Option<&A::State>,
    now: Instant,
    ask: Ask,
    wrap: fn(A::State) -> State,
) -> Step<State> {
    let fresh = A::State::default();
    let Step { decision, state } = limit.step(state.unwrap_or(&fresh), now, ask);
    Step { decision, state: state.map(wrap) }
}

fn idle_after<A: Algorithm>(limit: &A, state: Option<&A::State>, now: Instant) -> Micros {
    state.map_or(Micros::ZERO, |state| limit.idle_after(state, now))
}

fn refund<A: Algorithm>(
    limit: &A,
    state: Option<&A::State>,
    (charged, now): (Instant, Instant),
    ask: Ask,
    wrap: fn(A::State) -> State,
) -> Option<State> {
    limit.refund(state?, charged, now, ask).map(wrap)
}

impl State {
    const fn debt(&self) -> Option<&DebtState> {
        if let Self::Debt(state) = self { Some(state) } else { None }
    }

    const fn window(&self) -> Option<&WindowState> {
        if let Self::Window(state) = self { Some(state) } else { None }
    }

    const fn log(&self) -> Option<&LogState> {
        if let Self::Log(state) = self { Some(state) } else { None }
    }

    const fn permits(&self) -> Option<&PermitState> {
        if let Self::Permits(state) = self { Some(state) } else { None }
    }
}

const CLOSED: Decision = Decision {
    outcome: Outcome::Never(Never::Closed),
    limit: 0,
    remaining: 0,
    reset_after: Micros::ZERO,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    #[test]
    fn a_limit_of_zero_refuses_everything_and_never_means_unlimited() {
        // traefik/traefik#13512: two back ends took 0 for "allow all" and for "deny all".
        let step = Limiter::Closed.step(&State::None, Instant::from_micros(1), Ask::ONE);
        assert_eq!(step.decision.outcome, Outcome::Never(Never::Closed));
        assert_eq!(step.state, None);
    }

    #[test]
    fn no_algorithm_takes_a_limit_of_zero_for_no_limit() {
        let rate = Rate::new(0, Micros::SECOND).unwrap();
        assert_eq!(TokenBucket::new(rate, 1), Err(Unfit::Closed));
        assert_eq!(FixedWindow::new(rate), Err(Unfit::Closed));
        assert_eq!(SlidingWindow::new(rate), Err(Unfit::Closed));
        assert_eq!(SlidingLog::new(rate), Err(Unfit::Closed));
        assert_eq!(LeakyBucket::new(rate, Micros::SECOND), Err(Unfit::Closed));
        assert_eq!(Concurrency::new(0, Micros::SECOND), Err(Unfit::Closed));
    }

    #[test]
    fn the_state_of_another_algorithm_is_that_of_a_key_never_seen() {
        let rate = Rate::new(1, Micros::SECOND).unwrap();
        let now = Instant::from_micros(1_700_000_000_000_000);
        let bucket = Limiter::TokenBucket(TokenBucket::new(rate, 1).unwrap());
        let window = Limiter::FixedWindow(FixedWindow::new(rate).unwrap());
        let used = bucket.step(&State::None, now, Ask::ONE).state.unwrap();
        assert!(!bucket.step(&used, now, Ask::ONE).decision.is_allowed());
        assert!(window.step(&used, now, Ask::ONE).decision.is_allowed());
    }
}
