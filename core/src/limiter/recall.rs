//! What a decision of a shared store says of the times after it, on another clock.
//!
//! A cache in front of a store asks itself first: where even the little that it knows refuses a
//! request, the store would. What it knows is a decision, and when the question was *sent*, by a
//! clock that has nothing in common with the store's but its pace. Since the store decided no
//! earlier, more time seems to have passed than has, and so no less seems to have come back.

use super::{
    Ask, Limiter, State, Step,
    debt::Drain,
    fixed_window::FixedWindow,
    sliding_log::{Charge, LogState, SlidingLog},
    sliding_window::SlidingWindow,
    tick::Tick,
    window::WindowState,
};
use crate::{
    decision::{Decision, Outcome},
    units::{Instant, Micros},
};
use alloc::vec;

/// What is known of a bucket in a shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// At most as charged as the bucket is, at every time before `until`.
    pub state: State,
    /// When no more is known.
    pub until: Instant,
}

impl Limiter {
    /// The refusal that a recalled state certainly means; `None` where the store has to be asked.
    ///
    /// How long it holds is the least that is known: the store may hold it for longer. A state that
    /// owes more than this limit allows was recalled under another limit, which the store may have
    /// forgotten by now.
    #[must_use]
    pub fn recalled_refusal(&self, state: &State, now: Instant, ask: Ask) -> Option<Decision> {
        let Step { mut decision, state: None } = self.step(state, now, ask) else { return None };
        if let (Self::SlidingWindow(limit), Outcome::Refused { retry_after }) =
            (self, &mut decision.outcome)
        {
            // Nothing is known of what the next window takes over.
            let length = limit.span().get();
            let end = decision.reset_after.get().saturating_sub(length);
            *retry_after = Micros::new(end).min(*retry_after);
        }
        (!decision.is_allowed()).then_some(decision)
    }

    /// What a decision that a store made for `ask` says of its bucket from `seen` on. `seen` is
    /// when the store was asked, at or before the time at which it decided, by any clock of the
    /// same pace that does not go back.
    ///
    /// A request that [`Limiter::recalled_refusal`] refuses on the recalled state at `seen` or later and before
    /// [`Recalled::until`] is refused by the store too: others can only have taken more. That does
    /// not hold if the charge of `ask` or another is given back ([`Limiter::refund`]), if the
    /// store's clock jumps ahead, or under another limit. The wait until it passes is the least of
    /// what the step says and the time that is left until `until`.
    ///
    /// `None` where nothing is known that could refuse: of closed limits and of permits, which can
    /// be given back at any time; of windows that slide unless the request was refused for now;
    /// where nothing is owed; of a decision that names another limit. Also `None` if a window would
    /// have begun before the clock did: add to `seen` more than the longest window
    /// ([`bounds::WINDOW`](crate::bounds::WINDOW)).
    #[must_use]
    pub fn recall(&self, decision: &Decision, ask: Ask, seen: Instant) -> Option<Recalled> {
        if decision.limit != self.capacity() || matches!(decision.outcome, Outcome::Never(_)) {
            return None;
        }
        match self {
            Self::Closed | Self::Concurrency(_) => None,
            Self::TokenBucket(bucket) => debt(bucket.drain(), decision, seen),
            Self::LeakyBucket(queue) => debt(queue.drain(), decision, seen),
            Self::FixedWindow(window) => fixed_window(window, decision, seen),
            Self::SlidingWindow(window) => {
                sliding_window(window, Held::of(decision, ask, seen, window.span())?)
            }
            Self::SlidingLog(log) => sliding_log(log, Held::of(decision, ask, seen, log.window())?),
        }
    }
}

/// A debt whose last unit will have drained after a known number of ticks is more than one tick
/// less drains. Where a tick is longer than a microsecond, a tick of the store's clock that has
/// begun before the decision may end sooner than one of this clock, which is one more.
fn debt(drain: &Drain, decision: &Decision, seen: Instant) -> Option<Recalled> {
    let ticks = drain.tick.covering(decision.reset_after.get());
    let early = u64::from(drain.tick != Tick::MICROSECOND);
    let whole = ticks.checked_sub(1)?.checked_sub(early)?;
    let units = whole.saturating_mul(drain.refill.get()).saturating_add(1);
    let owing = drain.owing(units.min(drain.capacity), drain.tick.containing(seen));
    let until = seen.saturating_add(decision.reset_after);
    Some(Recalled { state: State::Debt(owing), until })
}

/// What was taken in a window stays taken until its end.
fn fixed_window(window: &FixedWindow, decision: &Decision, seen: Instant) -> Option<Recalled> {
    let current = decision.limit.checked_sub(decision.remaining)?;
    if current == 0 {
        return None;
    }
    let until = seen.saturating_add(decision.reset_after);
    let start = until.as_micros().checked_sub(window.window().get())?;
    let state = WindowState { start, previous: 0, current };
    Some(Recalled { state: State::Window(state), until })
}

/// What a refusal says of a limit that counts by a window that slides: a number of tokens, and
/// until when at least as many are taken.
struct Held {
    tokens: u64,
    until: Instant,
}

impl Held {
    /// A request of cost n that must leave some is refused as long as more than `usable` − n is
    /// taken, which need not be whole; and any other that, with one token more than that, goes
    /// beyond what it may use.
    fn of(decision: &Decision, ask: Ask, seen: Instant, window: Micros) -> Option<Self> {
        let Outcome::Refused { retry_after } = decision.outcome else { return None };
        let usable = decision.limit.saturating_sub(ask.floor);
        let tokens = usable.checked_sub(ask.cost.get())?.saturating_add(1).min(decision.limit);
        Some(Self { tokens, until: seen.saturating_add(retry_after.min(window)) })
    }
}

/// A window that began so that it ends when no more is known, with all of it taken in this one.
fn sliding_window(window: &SlidingWindow, held: Held) -> Option<Recalled> {
    let end = window.tick().covering(held.until.as_micros());
    let start = window.tick().micros(end.checked_sub(window.length())?);
    let state = WindowState { start, previous: 0, current: held.tokens };
    Some(Recalled { state: State::Window(state), until: held.until })
}

/// A charge that leaves the log when no more is known.
fn sliding_log(log: &SlidingLog, held: Held) -> Option<Recalled> {
    let at = held.until.as_micros().checked_sub(log.window().get())?;
    let charge = Charge { at: Instant::from_micros(at), cost: held.tokens };
    let state = LogState::from_charges(vec![charge])?;
    Some(Recalled { state: State::Log(state), until: held.until })
}
