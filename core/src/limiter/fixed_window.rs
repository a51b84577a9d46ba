//! The fixed window: so many tokens in each window, all back at once when the next begins.
//!
//! The cheapest counter, with a hole at its edge: a client that spends a limit at the end of one
//! window and again at the start of the next passes twice the limit in no time.

use super::{
    Algorithm, Ask, Step, Unfit,
    tick::Tick,
    window::{Current, Window, WindowState},
};
use crate::{
    decision::{Decision, Outcome},
    units::{Instant, Micros, Rate},
};
use core::num::NonZeroU64;

/// A limit of so many tokens per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    window: Window,
    limit: u64,
}

impl FixedWindow {
    /// A counter that starts anew with every window of `rate`.
    ///
    /// # Errors
    /// [`Unfit::Closed`] if the rate is 0.
    pub fn new(rate: Rate) -> Result<Self, Unfit> {
        if rate.count() == 0 {
            return Err(Unfit::Closed);
        }
        let length = NonZeroU64::new(rate.window().get()).ok_or(Unfit::TooLarge)?;
        Ok(Self { window: Window { tick: Tick::MICROSECOND, length }, limit: rate.count() })
    }

    /// The most that passes in a window, in tokens.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The length of a window.
    #[must_use]
    pub const fn window(&self) -> Micros {
        Micros::new(self.length())
    }

    /// The window at `now`. The one before it says nothing here.
    fn at(&self, state: WindowState, now: Instant) -> Current {
        let mut current = self.window.at(WindowState { previous: 0, ..state }, now);
        current.state.previous = 0;
        current.within(self.limit)
    }

    fn decision(&self, outcome: Outcome, current: &Current, now: Instant) -> Decision {
        let taken = current.state.current;
        let reset_after =
            if taken == 0 { Micros::ZERO } else { self.window.until(current, self.length(), now) };
        let remaining = self.limit.saturating_sub(taken);
        Decision { outcome, limit: self.limit, remaining, reset_after }
    }

    const fn length(&self) -> u64 {
        self.window.length.get()
    }
}

impl Algorithm for FixedWindow {
    type State = WindowState;

    fn step(&self, state: &WindowState, now: Instant, ask: Ask) -> Step<WindowState> {
        let mut current = self.at(*state, now);
        let wait = |_| self.window.until(&current, self.length(), now);
        let outcome = ask.against(self.limit, current.state.current, wait);
        let charged = ask.is_charged(outcome);
        if charged {
            current.state.current = current.state.current.saturating_add(ask.cost.get());
        }
        let decision = self.decision(outcome, &current, now);
        Step { decision, state: (charged || current.repaired).then_some(current.state) }
    }

    fn idle_after(&self, state: &WindowState, now: Instant) -> Micros {
        let known = self.window.at(WindowState { previous: 0, ..*state }, now);
        // A window on the multiples of its length is over when it ends; of another, the one that
        // follows is known for as long again.
        let follows = u64::from(!self.window.is_aligned(&known));
        let windows = follows.saturating_add(u64::from(known.state.current > 0));
        self.window.until(&known, self.length().saturating_mul(windows), now)
    }

    fn refund(
        &self,
        state: &WindowState,
        charged: Instant,
        now: Instant,
        ask: Ask,
    ) -> Option<WindowState> {
        let current = self.at(*state, now);
        // A charge of an earlier window has been given back with that window.
        let same = charged.as_micros() >= current.state.start && charged <= now;
        let left = current.state.current.checked_sub(ask.cost.get()).filter(|_| same)?;
        Some(WindowState { current: left, ..current.state })
    }
}
