//! A debt that drains: the arithmetic that the token bucket and the leaky bucket share.
//!
//! A rate of L tokens per W ticks is reduced by its greatest common divisor to l per w. A token is
//! then w *units* and a tick drains l of them, all integers. What is owed is kept as the time at
//! which it will have drained: an instant T and a remainder r < l. At `now` the debt is
//! D = max(0, (T − now) · l + r), and a debt of D is kept as T, r = `now` + D / l, with remainder.
//! Nothing is rounded, so nothing drifts.

use super::{Ask, Step, tick::Tick};
use crate::{
    bounds,
    decision::{Decision, Never, Outcome},
    units::{Instant, Micros, Rate},
};
use core::num::NonZeroU64;

/// When a debt will have drained. [`DebtState::NONE`] is the state of a key never seen: no debt and
/// no entry are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DebtState {
    /// T: microseconds since the epoch; a whole number of ticks of the limit that wrote it.
    drained_at: u64,
    /// r: units still owed at T; less than one tick's worth.
    remainder: u64,
}

impl DebtState {
    /// Nothing is owed at any time.
    pub const NONE: DebtState = DebtState { drained_at: 0, remainder: 0 };

    /// A stored state, or `None` if a number is outside what a step can write (2^53 − 1 each).
    #[must_use]
    pub const fn from_parts(drained_at: u64, remainder: u64) -> Option<Self> {
        if bounds::UNITS.contains(drained_at) && bounds::UNITS.contains(remainder) {
            Some(Self { drained_at, remainder })
        } else {
            None
        }
    }

    /// T in microseconds since the epoch, and the remainder r in units.
    #[must_use]
    pub const fn to_parts(self) -> (u64, u64) {
        (self.drained_at, self.remainder)
    }
}

/// How fast a debt drains, and how much of it there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drain {
    /// Length of the tick that T is counted in.
    pub(crate) tick: Tick,
    /// w: units that make one token.
    pub(crate) token: NonZeroU64,
    /// l: units that one tick drains.
    pub(crate) refill: NonZeroU64,
    /// The most that may be owed, in units.
    pub(crate) capacity: u64,
}

/// What is owed at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Debt {
    /// Units owed, at most the capacity.
    pub(super) units: u64,
    /// Whether the state claimed more than the capacity, so that it counts as full debt now and is
    /// to be written back.
    pub(super) repaired: bool,
}

impl Drain {
    /// The drain of a rate at the finest tick at which its numbers stay in [`bounds::UNITS`] and
    /// [`bounds::FILL_TIME`]. `capacity` gives the most that may be owed from the units of a token,
    /// the units of a tick, and the tick.
    pub(super) fn fit(
        rate: Rate,
        capacity: impl Fn(NonZeroU64, NonZeroU64, Tick) -> Option<u64>,
    ) -> Option<Self> {
        Tick::ALL.iter().find_map(|&tick| {
            let per_window = rate.count().checked_mul(tick.length().get())?;
            let window = rate.window().get();
            let divisor = gcd(per_window, window);
            let refill = NonZeroU64::new(per_window.checked_div(divisor)?)?;
            let token = NonZeroU64::new(window.checked_div(divisor)?)?;
            let capacity = capacity(token, refill, tick)?;
            let fits = bounds::UNITS.contains(capacity.checked_add(refill.get())?)
                && bounds::FILL_TIME.contains(tick.micros(capacity.div_ceil(refill.get())));
            fits.then_some(Self { tick, token, refill, capacity })
        })
    }

    /// What is owed at a tick.
    #[inline]
    pub(super) fn debt(&self, state: DebtState, now_tick: u64) -> Debt {
        let (tick, remainder) = self.aligned(state);
        let units = match tick.checked_sub(now_tick) {
            // Where the product would not fit, it is above any capacity all the same.
            Some(ahead) => ahead.saturating_mul(self.refill.get()).saturating_add(remainder),
            None => {
                let drained = now_tick.saturating_sub(tick).saturating_mul(self.refill.get());
                remainder.saturating_sub(drained)
            }
        };
        Debt { units: units.min(self.capacity), repaired: units > self.capacity }
    }

    /// T in ticks, and its remainder. After a change of the limit, a time that is no whole number
    /// of these ticks and a remainder that this rate does not know are rounded up, by less than one
    /// tick.
    #[inline]
    fn aligned(&self, state: DebtState) -> (u64, u64) {
        let tick = self.tick.covering(state.drained_at);
        if !self.tick.divides(state.drained_at) {
            (tick, 0)
        } else if state.remainder < self.refill.get() {
            (tick, state.remainder)
        } else {
            (tick.saturating_add(1), 0)
        }
    }

    /// The state in which `units` are owed at a tick: (T, r) = now + units / l.
    #[inline]
    pub(super) fn owing(&self, units: u64, now_tick: u64) -> DebtState {
        // Most rates reduce to one unit a tick, and then nothing is divided.
        let (ticks, remainder) = match self.refill {
            NonZeroU64::MIN => (units, 0),
            refill => (units / refill, units % refill),
        };
        let tick = now_tick.saturating_add(ticks);
        DebtState { drained_at: self.tick.micros(tick), remainder }
    }

    /// Ticks in which so many units drain, rounded up.
    #[inline]
    pub(super) fn ticks_for(&self, units: u64) -> u64 {
        match self.refill {
            NonZeroU64::MIN => units,
            refill => units.div_ceil(refill.get()),
        }
    }

    /// Time from `now` until so many units have drained, rounded up to the tick.
    #[inline]
    pub(super) fn time_for(&self, units: u64, now: Instant) -> Micros {
        self.tick.until(self.tick.containing(now).saturating_add(self.ticks_for(units)), now)
    }

    /// Units of so many tokens, saturating.
    #[inline]
    pub(crate) fn units(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.token.get())
    }

    /// Decides a request: `limit` is the capacity in tokens, and `passes` says how one passes that
    /// finds so many units owed before it.
    #[inline]
    pub(super) fn step(
        &self,
        limit: u64,
        state: DebtState,
        now: Instant,
        ask: Ask,
        passes: impl FnOnce(u64) -> Outcome,
    ) -> Step<DebtState> {
        let now_tick = self.tick.containing(now);
        let Debt { units: owed, repaired } = self.debt(state, now_tick);
        let kept = repaired.then(|| self.owing(owed, now_tick));
        let decision = |outcome, owed| Decision {
            outcome,
            limit,
            remaining: self.capacity.saturating_sub(owed) / self.token,
            reset_after: self.time_for(owed, now),
        };
        let price = self.units(ask.cost.get());
        let usable = self.capacity.saturating_sub(self.units(ask.floor));
        if price > usable {
            let never = Outcome::Never(Never::CostAboveCapacity);
            return Step { decision: decision(never, owed), state: kept };
        }
        if price == 0 {
            return Step { decision: decision(Outcome::Allowed, owed), state: kept };
        }
        // Both at most the capacity, which is below 2^53.
        let charged = owed.saturating_add(price);
        if charged > usable {
            let retry_after = self.time_for(charged.saturating_sub(usable), now);
            let refused = Outcome::Refused { retry_after };
            return Step { decision: decision(refused, owed), state: kept };
        }
        let decision = decision(passes(owed), charged);
        Step { decision, state: Some(self.owing(charged, now_tick)) }
    }

    /// Time from `now` until nothing is owed.
    pub(super) fn idle_after(&self, state: DebtState, now: Instant) -> Micros {
        self.time_for(self.debt(state, self.tick.containing(now)).units, now)
    }

    /// The state after a request charged at `charged` is undone at `now`, less what has drained of
    /// it since; see [`super::Algorithm::refund`].
    pub(super) fn refund(
        &self,
        state: DebtState,
        charged: Instant,
        now: Instant,
        ask: Ask,
    ) -> Option<DebtState> {
        let now_tick = self.tick.containing(now);
        let ticks = now_tick.saturating_sub(self.tick.containing(charged));
        let drained = ticks.saturating_mul(self.refill.get());
        let left = self.units(ask.cost.get()).saturating_sub(drained);
        let owed = self.debt(state, now_tick).units;
        (left > 0 && owed > 0).then(|| self.owing(owed.saturating_sub(left), now_tick))
    }
}

/// Greatest common divisor by Euclid; of 0 and n it is n.
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}
