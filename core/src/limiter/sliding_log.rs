//! The sliding log: every charge with its time, so the count of the last window is exact.
//!
//! A charge at t counts until t + W, and no longer. Memory grows with the limit, up to
//! [`bounds::ENTRIES`]: for limits that are low and matter, such as logins.

use super::{Algorithm, Ask, Step, Unfit};
use crate::{
    bounds,
    decision::{Decision, Outcome},
    units::{Instant, Micros, Rate},
};
use alloc::vec::Vec;

/// A limit of so many tokens in any window of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    limit: u64,
    window: Micros,
}

/// The charges of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogState {
    /// The oldest first; times do not repeat.
    charges: Vec<Charge>,
}

/// What was taken at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// When.
    pub at: Instant,
    /// Tokens.
    pub cost: u64,
}

impl LogState {
    /// A log from its charges, in any order and with times that repeat; charges of nothing are
    /// left out. `None` if they are more in sum than [`bounds::ENTRIES`] allows.
    #[must_use]
    pub fn from_charges(mut charges: Vec<Charge>) -> Option<Self> {
        charges.retain(|charge| charge.cost > 0);
        charges.sort_unstable_by_key(|charge| charge.at);
        charges.dedup_by(|later, earlier| {
            let same = later.at == earlier.at;
            if same {
                earlier.cost = earlier.cost.saturating_add(later.cost);
            }
            same
        });
        let log = Self { charges };
        bounds::ENTRIES.contains(log.total()).then_some(log)
    }

    /// The charges, the oldest first.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    fn total(&self) -> u64 {
        self.charges.iter().fold(0, |sum, charge| sum.saturating_add(charge.cost))
    }
}

impl SlidingLog {
    /// A log that allows the count of `rate`, at most [`bounds::ENTRIES`], in any of its windows.
    ///
    /// # Errors
    /// [`Unfit`] says why there is no such log.
    pub fn new(rate: Rate) -> Result<Self, Unfit> {
        match rate.count() {
            0 => Err(Unfit::Closed),
            count if !bounds::ENTRIES.contains(count) => Err(Unfit::Entries),
            count => Ok(Self { limit: count, window: rate.window() }),
        }
    }

    /// The most that passes in a window, in tokens.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// How long a charge counts.
    #[must_use]
    pub const fn window(&self) -> Micros {
        self.window
    }

    /// The charges that count at `now`, and whether one had to be repaired: one from the future
    /// counts as made now, since no time has passed.
    fn at(&self, state: &LogState, now: Instant) -> (LogState, bool) {
        // By its age, so that a clock at the end of its range stands still and frees nobody.
        let counts = |charge: &&Charge| now.saturating_since(charge.at) < self.window;
        let ahead = state.charges.last().is_some_and(|charge| charge.at > now);
        let charges = state.charges.iter().filter(counts);
        let charges = charges.map(|charge| Charge { at: charge.at.min(now), ..*charge }).collect();
        (LogState::from_charges(charges).unwrap_or_default(), ahead)
    }

    fn decision(&self, outcome: Outcome, log: &LogState, now: Instant) -> Decision {
        let last = log.charges.last();
        Decision {
            outcome,
            limit: self.limit,
            remaining: self.limit.saturating_sub(log.total()),
            reset_after: last.map_or(Micros::ZERO, |charge| self.leaves_after(charge, now)),
        }
    }

    fn leaves_after(&self, charge: &Charge, now: Instant) -> Micros {
        let age = now.saturating_since(charge.at);
        Micros::new(self.window.get().saturating_sub(age.get()))
    }

    /// Time until the oldest charges have left that are in the way of `excess` tokens.
    fn retry_after(&self, log: &LogState, excess: u64, now: Instant) -> Micros {
        let mut left = 0_u64;
        for charge in &log.charges {
            left = left.saturating_add(charge.cost);
            if left >= excess {
                return self.leaves_after(charge, now);
            }
        }
        self.window
    }
}

impl Algorithm for SlidingLog {
    type State = LogState;

    fn step(&self, state: &LogState, now: Instant, ask: Ask) -> Step<LogState> {
        let (mut log, repaired) = self.at(state, now);
        let wait = |excess| self.retry_after(&log, excess, now);
        let outcome = ask.against(self.limit, log.total(), wait);
        let charged = ask.is_charged(outcome);
        if charged {
            let cost = ask.cost.get();
            match log.charges.last_mut() {
                Some(last) if last.at == now => last.cost = last.cost.saturating_add(cost),
                _ => log.charges.push(Charge { at: now, cost }),
            }
        }
        let decision = self.decision(outcome, &log, now);
        Step { decision, state: (charged || repaired).then_some(log) }
    }

    fn idle_after(&self, state: &LogState, now: Instant) -> Micros {
        let (log, _) = self.at(state, now);
        self.decision(Outcome::Allowed, &log, now).reset_after
    }

    fn refund(
        &self,
        state: &LogState,
        charged: Instant,
        now: Instant,
        ask: Ask,
    ) -> Option<LogState> {
        let (mut log, _) = self.at(state, now);
        let charge = log.charges.iter_mut().find(|charge| charge.at == charged)?;
        charge.cost = charge.cost.checked_sub(ask.cost.get())?;
        log.charges.retain(|charge| charge.cost > 0);
        Some(log)
    }
}
