//! The bucket as a textbook tells it: a level of tokens, and when it was last written.

use super::{Limit, Model, NEVER, until, whole};
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use weir_core::{
    decision::{Decision, Outcome},
    limiter::Ask,
    units::Rate,
};

pub(crate) struct LevelBucket {
    tick: u64,
    per_tick: BigRational,
    burst: BigRational,
    level: BigRational,
    written: u64,
}

impl LevelBucket {
    pub(crate) fn new(rate: Rate, burst: u64, tick: u64) -> Self {
        let per_tick = whole(rate.count()) * whole(tick) / whole(rate.window().get());
        Self { tick, per_tick, burst: whole(burst), level: whole(burst), written: 0 }
    }

    /// The level at a tick before or after the last writing, and whether it had run below zero.
    fn level_at(&self, tick: u64) -> (BigRational, bool) {
        let elapsed = whole(tick) - whole(self.written);
        let level = &self.level + elapsed * &self.per_tick;
        if level.is_negative() {
            return (BigRational::zero(), true);
        }
        (level.min(self.burst.clone()), false)
    }

    fn decision(&self, outcome: Outcome, level: &BigRational, now: u64) -> Decision {
        let missing = (&self.burst - level) / &self.per_tick;
        Decision {
            outcome,
            limit: self.burst.to_integer().to_u64().expect("a burst"),
            remaining: level.to_integer().to_u64().expect("a level"),
            reset_after: until(self.tick, &(whole(now / self.tick) + missing), now),
        }
    }
}

impl Model for LevelBucket {
    fn ask(&mut self, now: u64, ask: Ask) -> (Decision, bool) {
        let tick = now / self.tick;
        let (mut level, repaired) = self.level_at(tick);
        if repaired {
            (self.level, self.written) = (level.clone(), tick);
        }
        let cost = whole(ask.cost.get());
        let needed = &cost + whole(ask.floor);
        let outcome = if cost.is_zero() {
            Outcome::Allowed
        } else if needed > self.burst {
            NEVER
        } else if level < needed {
            let due = whole(tick) + (needed - &level) / &self.per_tick;
            Outcome::Refused { retry_after: until(self.tick, &due, now) }
        } else {
            level -= cost;
            (self.level, self.written) = (level.clone(), tick);
            Outcome::Allowed
        };
        (self.decision(outcome, &level, now), repaired)
    }

    fn change(&mut self, now: u64, limit: &Limit, debt_until: Option<&BigRational>) {
        let Limit::TokenBucket { rate, burst } = *limit else { panic!("{limit:?}") };
        *self = Self::new(rate, burst, limit.tick());
        let Some(until) = debt_until else { return };
        self.written = now / self.tick;
        let ticks = until / whole(self.tick) - whole(self.written);
        self.level = &self.burst - ticks * &self.per_tick;
    }

    fn debt_until(&self) -> Option<BigRational> {
        let ticks = (&self.burst - &self.level) / &self.per_tick;
        Some((whole(self.written) + ticks) * whole(self.tick))
    }

    fn refund(&mut self, charged: u64, now: u64, ask: Ask) {
        let tick = now / self.tick;
        let elapsed = whole(tick.saturating_sub(charged / self.tick));
        let back = whole(ask.cost.get()) - elapsed * &self.per_tick;
        if back.is_positive() {
            let (level, _) = self.level_at(tick);
            (self.level, self.written) = ((level + back).min(self.burst.clone()), tick);
        }
    }
}
