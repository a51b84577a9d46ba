//! The sliding window counter: this window's count, and the last one's by the share of it that
//! still overlaps.
//!
//! With e ticks of a window of W gone, `previous` and `current` counted and a limit of L, a request
//! of cost n passes iff previous · (W − e) + (current + n) · W ≤ L · W: the estimate of Cloudflare
//! (*How we built rate limiting capable of scaling to millions of domains*, 2017) plus the cost,
//! multiplied by W, so that nothing is divided and nothing rounded. Two numbers a key; never more
//! than a limit in a window as the estimate sees it, and up to twice the limit less one in a
//! rolling window for one who knows the edge.

use super::{
    Algorithm, Ask, Step, Unfit,
    tick::Tick,
    window::{Current, Window, WindowState},
};
use crate::{
    bounds,
    decision::{Decision, Never, Outcome},
    units::{Instant, Micros, Rate},
};
use core::num::NonZeroU64;

/// A limit of so many tokens per window, by estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    window: Window,
    limit: u64,
}

impl SlidingWindow {
    /// A counter for `rate`. The tick is the finest that divides the window and at which
    /// 2 · L · W stays in [`bounds::UNITS`].
    ///
    /// # Errors
    /// [`Unfit`] says why there is no such counter.
    pub fn new(rate: Rate) -> Result<Self, Unfit> {
        if rate.count() == 0 {
            return Err(Unfit::Closed);
        }
        let fit = |tick: &Tick| {
            let length = NonZeroU64::new(tick.within(rate.window().get()))?;
            let most = rate.count().checked_mul(length.get())?.checked_mul(2)?;
            let fits = tick.divides(rate.window().get()) && bounds::UNITS.contains(most);
            fits.then_some(Window { tick: *tick, length })
        };
        let window = Tick::ALL.iter().find_map(fit).ok_or(Unfit::TooLarge)?;
        Ok(Self { window, limit: rate.count() })
    }

    /// The tick of this counter: the resolution of its clock.
    #[must_use]
    pub const fn tick(&self) -> Tick {
        self.window.tick
    }

    /// The most that passes in a window, in tokens.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The length of a window in ticks.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.window.length.get()
    }

    /// The length of a window.
    pub(super) const fn span(&self) -> Micros {
        Micros::new(self.window.tick.micros(self.window.length.get()))
    }

    /// The estimate times W.
    fn weight(&self, current: &Current) -> u64 {
        let overlap = self.length().saturating_sub(current.elapsed);
        let previous = current.state.previous.saturating_mul(overlap);
        previous.saturating_add(current.state.current.saturating_mul(self.length()))
    }

    fn decision(&self, outcome: Outcome, current: &Current, now: Instant) -> Decision {
        let room = self.limit.saturating_mul(self.length()).saturating_sub(self.weight(current));
        Decision {
            outcome,
            limit: self.limit,
            remaining: room / self.window.length,
            reset_after: self.reset_after(current, now),
        }
    }

    fn reset_after(&self, current: &Current, now: Instant) -> Micros {
        let windows = match (current.state.previous, current.state.current) {
            (0, 0) => return Micros::ZERO,
            (_, 0) => 1,
            _ => 2,
        };
        self.window.until(current, self.length().saturating_mul(windows), now)
    }

    /// Ticks from the start of the current window until `cost` fits below `usable`.
    fn fits_at(&self, state: WindowState, usable: u64, cost: u64) -> u64 {
        // Within this window the last one's share must shrink; if this one's count alone is too
        // much, its share in the next window must.
        let (start, shrinking, fixed) = match state.current.checked_add(cost) {
            Some(fixed) if fixed <= usable => (0, state.previous, fixed),
            _ => (self.length(), state.current, cost),
        };
        let room = usable.saturating_sub(fixed).saturating_mul(self.length());
        let overlap = room.checked_div(shrinking).unwrap_or(room).min(self.length());
        start.saturating_add(self.length().saturating_sub(overlap))
    }
}

impl Algorithm for SlidingWindow {
    type State = WindowState;

    fn step(&self, state: &WindowState, now: Instant, ask: Ask) -> Step<WindowState> {
        let mut current = self.window.at(*state, now).within(self.limit);
        let kept = current.repaired.then_some(current.state);
        let refused =
            |outcome| Step { decision: self.decision(outcome, &current, now), state: kept };
        let cost = ask.cost.get();
        let usable = self.limit.saturating_sub(ask.floor);
        if cost > usable {
            return refused(Outcome::Never(Never::CostAboveCapacity));
        }
        let weight = self.weight(&current).saturating_add(cost.saturating_mul(self.length()));
        if weight > usable.saturating_mul(self.length()) && cost > 0 {
            let elapsed = self.fits_at(current.state, usable, cost);
            let retry_after = self.window.until(&current, elapsed, now);
            return refused(Outcome::Refused { retry_after });
        }
        current.state.current = current.state.current.saturating_add(cost);
        let state = if cost == 0 { kept } else { Some(current.state) };
        Step { decision: self.decision(Outcome::Allowed, &current, now), state }
    }

    fn idle_after(&self, state: &WindowState, now: Instant) -> Micros {
        self.reset_after(&self.window.at(*state, now).within(self.limit), now)
    }

    fn refund(
        &self,
        state: &WindowState,
        charged: Instant,
        now: Instant,
        ask: Ask,
    ) -> Option<WindowState> {
        let current = self.window.at(*state, now).within(self.limit);
        let WindowState { start, previous, current: taken } = current.state;
        let before = start.saturating_sub(self.window.tick.micros(self.length()));
        let charged = charged.as_micros();
        let less = |count: u64| count.checked_sub(ask.cost.get());
        if charged > now.as_micros() || charged < before {
            None
        } else if charged >= start {
            Some(WindowState { start, previous, current: less(taken)? })
        } else {
            Some(WindowState { start, previous: less(previous)?, current: taken })
        }
    }
}
