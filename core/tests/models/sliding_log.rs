//! The sliding log: every charge on its own, and the count of those that are younger than the
//! window.

use super::{Limit, Model, NEVER, micros};
use num_rational::BigRational;
use weir_core::{
    decision::{Decision, Outcome},
    limiter::Ask,
    units::Rate,
};

#[derive(Clone)]
pub(crate) struct Log {
    limit: u64,
    window: u64,
    /// Time and cost, in the order of the calls.
    charges: Vec<(u64, u64)>,
}

impl Log {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { limit: rate.count(), window: rate.window().get(), charges: Vec::new() }
    }

    fn counted(&self, at: u64) -> u64 {
        let counts = |&&(charged, _): &&(u64, u64)| at - charged.min(at) < self.window;
        self.charges.iter().filter(counts).map(|(_, cost)| cost).sum()
    }

    /// Drops what has left the window; what was charged later than now was charged now.
    fn repair(&mut self, now: u64) -> bool {
        let mut ahead = false;
        for (at, _) in &mut self.charges {
            ahead |= *at > now;
            *at = now.min(*at);
        }
        self.charges.retain(|(at, _)| at + self.window > now);
        ahead
    }

    fn answer(&mut self, now: u64, ask: Ask) -> Outcome {
        let cost = ask.cost.get();
        let most = self.limit.checked_sub(ask.floor).and_then(|left| left.checked_sub(cost));
        match most {
            _ if cost == 0 => Outcome::Allowed,
            None => NEVER,
            Some(most) if self.counted(now) > most => {
                // The count drops only when a charge leaves: try each of those times.
                let leaves = self.charges.iter().map(|(at, _)| at + self.window);
                let due = leaves.filter(|&at| self.counted(at) <= most).min().expect("a time");
                Outcome::Refused { retry_after: micros(due - now) }
            }
            Some(_) => {
                self.charges.push((now, cost));
                Outcome::Allowed
            }
        }
    }

    fn decision(&self, outcome: Outcome, now: u64) -> Decision {
        let youngest = self.charges.iter().map(|(at, _)| at + self.window - now).max();
        Decision {
            outcome,
            limit: self.limit,
            remaining: self.limit.saturating_sub(self.counted(now)),
            reset_after: micros(youngest.unwrap_or(0)),
        }
    }
}

impl Model for Log {
    fn ask(&mut self, now: u64, ask: Ask) -> (Decision, bool) {
        let mut seen = self.clone();
        let repaired = seen.repair(now);
        let outcome = seen.answer(now, ask);
        let decision = seen.decision(outcome, now);
        // A refusal is forgotten, and so is all that was only looked at.
        if repaired || (outcome == Outcome::Allowed && ask.cost.get() > 0) {
            *self = seen;
        }
        (decision, repaired)
    }

    fn change(&mut self, _now: u64, limit: &Limit, _: Option<&BigRational>) {
        let Limit::SlidingLog { rate } = *limit else { panic!("{limit:?}") };
        (self.limit, self.window) = (rate.count(), rate.window().get());
    }

    fn refund(&mut self, charged: u64, now: u64, ask: Ask) {
        let left = charged + self.window <= now;
        let charge = self.charges.iter().position(|charge| *charge == (charged, ask.cost.get()));
        if let Some(charge) = charge.filter(|_| !left) {
            self.charges.remove(charge);
        }
    }
}
