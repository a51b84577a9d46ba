//! The leaky bucket as a textbook tells it: one server that takes requests in turn, each for the
//! time 1 / rate, and a queue in front of it.

use super::{Limit, Model, NEVER, until, whole};
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use weir_core::{
    decision::{Decision, Outcome},
    limiter::Ask,
    units::{Micros, Rate},
};

pub(crate) struct Queue {
    tick: u64,
    /// Time that the server takes for a token, in ticks.
    service: BigRational,
    /// Longest time until the server is free, in ticks: the longest wait and one service.
    longest: BigRational,
    /// When the server has done all that it has accepted, in ticks.
    free_at: BigRational,
}

impl Queue {
    pub(crate) fn new(rate: Rate, max_delay: Micros, tick: u64) -> Self {
        let service = whole(rate.window().get()) / whole(rate.count()) / whole(tick);
        let longest = whole(max_delay.get() / tick) + &service;
        Self { tick, service, longest, free_at: BigRational::zero() }
    }

    fn decision(&self, outcome: Outcome, now: u64) -> Decision {
        let tokens = |ticks: BigRational| {
            (ticks / &self.service).to_integer().to_u64().expect("a number of tokens")
        };
        let at = whole(now / self.tick);
        let free_at = self.free_at.clone().max(at.clone());
        Decision {
            outcome,
            limit: tokens(self.longest.clone()),
            remaining: tokens(at + &self.longest - &free_at),
            reset_after: until(self.tick, &free_at, now),
        }
    }
}

impl Model for Queue {
    fn ask(&mut self, now: u64, ask: Ask) -> (Decision, bool) {
        let at = whole(now / self.tick);
        let latest = &at + &self.longest;
        let repaired = self.free_at > latest;
        if repaired {
            self.free_at = latest.clone();
        }
        let turn = self.free_at.clone().max(at.clone());
        let work = whole(ask.cost.get()) * &self.service;
        let reserved = whole(ask.floor) * &self.service;
        let done = &turn + &work;
        let outcome = if work.is_zero() {
            Outcome::Allowed
        } else if &work + &reserved > self.longest {
            NEVER
        } else if &done + &reserved > latest {
            let due = &at + (done + reserved - latest);
            Outcome::Refused { retry_after: until(self.tick, &due, now) }
        } else {
            self.free_at = done;
            if turn > at {
                Outcome::Delayed { delay: until(self.tick, &turn, now) }
            } else {
                Outcome::Allowed
            }
        };
        (self.decision(outcome, now), repaired)
    }

    fn change(&mut self, _now: u64, limit: &Limit, debt_until: Option<&BigRational>) {
        let Limit::LeakyBucket { rate, max_delay } = *limit else { panic!("{limit:?}") };
        *self = Self::new(rate, max_delay, limit.tick());
        if let Some(until) = debt_until {
            self.free_at = until / whole(self.tick);
        }
    }

    fn debt_until(&self) -> Option<BigRational> {
        Some(&self.free_at * whole(self.tick))
    }

    fn refund(&mut self, charged: u64, now: u64, ask: Ask) {
        let at = whole(now / self.tick);
        let elapsed = whole((now / self.tick).saturating_sub(charged / self.tick));
        let back = whole(ask.cost.get()) * &self.service - elapsed;
        if back.is_positive() && self.free_at > at {
            let latest = &at + &self.longest;
            self.free_at = (self.free_at.clone().min(latest) - back).max(at);
        }
    }
}
