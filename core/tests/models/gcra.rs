//! The generic cell rate algorithm as a textbook tells it: a theoretical arrival time, an emission
//! interval T and a tolerance τ.
//!
//! With a burst of B the tolerance of one cell is τ = (B − 1) · T. A request of cost n that must
//! leave f tokens is n cells at once, so its tolerance is (B − f − n) · T, and it conforms iff
//! `now` ≥ TAT − τ.

use super::{Limit, Model, NEVER, until, whole};
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use weir_core::{
    decision::{Decision, Outcome},
    limiter::Ask,
    units::Rate,
};

pub(crate) struct Gcra {
    tick: u64,
    /// T in ticks.
    interval: BigRational,
    burst: BigRational,
    /// TAT in ticks.
    arrival: BigRational,
}

impl Gcra {
    pub(crate) fn new(rate: Rate, burst: u64, tick: u64) -> Self {
        let interval = whole(rate.window().get()) / whole(rate.count()) / whole(tick);
        Self { tick, interval, burst: whole(burst), arrival: BigRational::zero() }
    }

    fn decision(&self, outcome: Outcome, now: u64) -> Decision {
        let at = whole(now / self.tick);
        let arrival = self.arrival.clone().max(at.clone());
        let latest = at + &self.burst * &self.interval;
        Decision {
            outcome,
            limit: self.burst.to_integer().to_u64().expect("a burst"),
            remaining: ((latest - &arrival) / &self.interval)
                .to_integer()
                .to_u64()
                .expect("a number of tokens"),
            reset_after: until(self.tick, &arrival, now),
        }
    }
}

impl Model for Gcra {
    fn ask(&mut self, now: u64, ask: Ask) -> (Decision, bool) {
        let at = whole(now / self.tick);
        let latest = &at + &self.burst * &self.interval;
        let repaired = self.arrival > latest;
        if repaired {
            self.arrival = latest;
        }
        let cells = whole(ask.cost.get());
        let tolerance = (&self.burst - whole(ask.floor) - &cells) * &self.interval;
        let earliest = &self.arrival - &tolerance;
        let outcome = if cells.is_zero() {
            Outcome::Allowed
        } else if tolerance.is_negative() {
            NEVER
        } else if at < earliest {
            Outcome::Refused { retry_after: until(self.tick, &earliest, now) }
        } else {
            self.arrival = self.arrival.clone().max(at) + cells * &self.interval;
            Outcome::Allowed
        };
        (self.decision(outcome, now), repaired)
    }

    fn change(&mut self, _now: u64, limit: &Limit, debt_until: Option<&BigRational>) {
        let Limit::TokenBucket { rate, burst } = *limit else { panic!("{limit:?}") };
        *self = Self::new(rate, burst, limit.tick());
        if let Some(until) = debt_until {
            self.arrival = until / whole(self.tick);
        }
    }

    fn debt_until(&self) -> Option<BigRational> {
        Some(&self.arrival * whole(self.tick))
    }

    fn refund(&mut self, charged: u64, now: u64, ask: Ask) {
        let at = whole(now / self.tick);
        let elapsed = whole((now / self.tick).saturating_sub(charged / self.tick));
        let back = whole(ask.cost.get()) * &self.interval - elapsed;
        if back.is_positive() && self.arrival > at {
            let latest = &at + &self.burst * &self.interval;
            self.arrival = (self.arrival.clone().min(latest) - back).max(at);
        }
    }
}
