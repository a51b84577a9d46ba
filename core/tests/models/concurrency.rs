//! Permits: every request in flight on its own, until it gives its permit back or its lease ends.

use super::{Limit, Model, NEVER, micros};
use num_rational::BigRational;
use weir_core::{
    decision::{Decision, Outcome},
    limiter::Ask,
    units::Micros,
};

#[derive(Clone)]
pub(crate) struct Permits {
    limit: u64,
    lease: u64,
    held: Vec<Held>,
}

#[derive(Clone)]
struct Held {
    id: u64,
    until: u64,
    cost: u64,
}

impl Permits {
    pub(crate) fn new(limit: u64, lease: Micros) -> Self {
        Self { limit, lease: lease.get(), held: Vec::new() }
    }

    fn held(&self, at: u64) -> u64 {
        self.held.iter().filter(|held| held.until > at).map(|held| held.cost).sum()
    }

    /// Drops what has expired; nothing lasts for longer than a lease from now.
    fn repair(&mut self, now: u64) -> bool {
        let latest = now + self.lease;
        let ahead = self.held.iter().any(|held| held.until > latest);
        self.held.iter_mut().for_each(|held| held.until = held.until.min(latest));
        self.held.retain(|held| held.until > now);
        ahead
    }

    fn answer(&mut self, now: u64, ask: Ask) -> Outcome {
        let cost = ask.cost.get();
        let most = self.limit.checked_sub(ask.floor).and_then(|left| left.checked_sub(cost));
        match most {
            _ if cost == 0 => Outcome::Allowed,
            None => NEVER,
            Some(most) if self.held(now) > most => {
                let ends = self.held.iter().map(|held| held.until);
                let due = ends.filter(|&at| self.held(at) <= most).min().expect("an end");
                Outcome::Refused { retry_after: micros(due - now) }
            }
            Some(_) => {
                self.held.push(Held { id: ask.id, until: now + self.lease, cost });
                Outcome::Allowed
            }
        }
    }

    fn decision(&self, outcome: Outcome, now: u64) -> Decision {
        let last = self.held.iter().map(|held| held.until - now).max();
        Decision {
            outcome,
            limit: self.limit,
            remaining: self.limit.saturating_sub(self.held(now)),
            reset_after: micros(last.unwrap_or(0)),
        }
    }
}

impl Model for Permits {
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
        let Limit::Concurrency { limit, lease } = *limit else { panic!("{limit:?}") };
        (self.limit, self.lease) = (limit, lease.get());
    }

    fn refund(&mut self, _charged: u64, _now: u64, ask: Ask) {
        self.held.retain(|held| held.id != ask.id);
    }
}
