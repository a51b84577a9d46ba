//! The leaky bucket as a queue: requests leave at a constant rate, and wait for their turn.
//!
//! The queue is a debt of service time (see [`DebtState`]): a request that finds D units queued
//! waits D / l ticks, rounded up, and adds its own cost. With a cost of 1 and rate r, the k-th
//! request behind an idle server waits k / r, and what leaves is spaced by 1 / r exactly. A request
//! that would wait for longer than `max_delay` is refused; one of cost n must have all its n turns
//! within `max_delay` and one more.

use super::{
    Algorithm, Ask, Step, Unfit,
    debt::{DebtState, Drain},
    tick::Tick,
};
use crate::{
    bounds,
    decision::Outcome,
    units::{Instant, Micros, Rate},
};

/// A leaky bucket of one rate and longest wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {
    /// Its capacity is the longest wait in units, and one token: the one being served.
    drain: Drain,
}

impl LeakyBucket {
    /// A queue that `rate` drains and in which nobody waits for longer than `max_delay`
    /// ([`bounds::MAX_DELAY`]), which is rounded down to the tick.
    ///
    /// # Errors
    /// [`Unfit`] says why there is no such queue.
    pub fn new(rate: Rate, max_delay: Micros) -> Result<Self, Unfit> {
        if rate.count() == 0 {
            return Err(Unfit::Closed);
        }
        if !bounds::MAX_DELAY.contains(max_delay.get()) {
            return Err(Unfit::MaxDelay);
        }
        let drain = Drain::fit(rate, |token, refill, tick| {
            let ticks = tick.within(max_delay.get());
            ticks.checked_mul(refill.get())?.checked_add(token.get())
        });
        drain.map(|drain| Self { drain }).ok_or(Unfit::TooLarge)
    }

    /// The tick of this queue: the resolution of its clock.
    #[must_use]
    pub const fn tick(&self) -> Tick {
        self.drain.tick
    }

    /// Requests of cost 1 that find room at once when the queue is empty.
    #[must_use]
    pub fn places(&self) -> u64 {
        self.drain.capacity / self.drain.token
    }

    /// What the debt of this queue drains by.
    pub(crate) const fn drain(&self) -> &Drain {
        &self.drain
    }

    /// A request that finds so many units queued waits until they have drained.
    fn passes(&self, ahead: u64, now: Instant) -> Outcome {
        match self.drain.time_for(ahead, now) {
            Micros::ZERO => Outcome::Allowed,
            delay => Outcome::Delayed { delay },
        }
    }
}

impl Algorithm for LeakyBucket {
    type State = DebtState;

    fn step(&self, state: &DebtState, now: Instant, ask: Ask) -> Step<DebtState> {
        self.drain.step(self.places(), *state, now, ask, |ahead| self.passes(ahead, now))
    }

    fn idle_after(&self, state: &DebtState, now: Instant) -> Micros {
        self.drain.idle_after(*state, now)
    }

    fn refund(
        &self,
        state: &DebtState,
        charged: Instant,
        now: Instant,
        ask: Ask,
    ) -> Option<DebtState> {
        self.drain.refund(*state, charged, now, ask)
    }
}
