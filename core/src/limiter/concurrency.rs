//! The concurrency limit: so many permits at once, each given back at the end of its request or,
//! if its holder is gone, at the end of its lease.

use super::{Algorithm, Ask, Step, Unfit};
use crate::{
    bounds,
    decision::{Decision, Outcome},
    units::{Instant, Micros},
};
use alloc::vec::Vec;

/// A limit on what is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    limit: u64,
    lease: Micros,
}

/// The permits that are held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermitState {
    /// The first to expire first.
    permits: Vec<Permit>,
}

/// One request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Names the request, so that it can be given back.
    pub id: u64,
    /// When it is free again at the latest.
    pub until: Instant,
    /// Permits it holds.
    pub cost: u64,
}

impl PermitState {
    /// Held permits, in any order; permits of nothing are left out. `None` if they are more in sum
    /// than [`bounds::ENTRIES`] allows.
    #[must_use]
    pub fn from_permits(mut permits: Vec<Permit>) -> Option<Self> {
        permits.retain(|permit| permit.cost > 0);
        permits.sort_by_key(|permit| (permit.until, permit.id));
        let state = Self { permits };
        bounds::ENTRIES.contains(state.held()).then_some(state)
    }

    /// The permits, the first to expire first.
    #[must_use]
    pub fn permits(&self) -> &[Permit] {
        &self.permits
    }

    /// The state after a permit is given back; `None` if it is not held.
    #[must_use]
    pub fn release(&self, id: u64) -> Option<Self> {
        let held = |permit: &&Permit| permit.id != id;
        let permits: Vec<_> = self.permits.iter().filter(held).copied().collect();
        (permits.len() < self.permits.len()).then_some(Self { permits })
    }

    fn held(&self) -> u64 {
        self.permits.iter().fold(0, |sum, permit| sum.saturating_add(permit.cost))
    }
}

impl Concurrency {
    /// A limit of so many permits ([`bounds::ENTRIES`]), each for at most `lease`
    /// ([`bounds::LEASE`]).
    ///
    /// # Errors
    /// [`Unfit`] says why there is no such limit.
    pub fn new(limit: u64, lease: Micros) -> Result<Self, Unfit> {
        if limit == 0 {
            Err(Unfit::Closed)
        } else if !bounds::ENTRIES.contains(limit) {
            Err(Unfit::Entries)
        } else if !bounds::LEASE.contains(lease.get()) {
            Err(Unfit::Lease)
        } else {
            Ok(Self { limit, lease })
        }
    }

    /// Permits in all.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// How long a permit lasts if nobody gives it back.
    #[must_use]
    pub const fn lease(&self) -> Micros {
        self.lease
    }

    /// The permits that are held at `now`, and whether one had to be repaired: none lasts for
    /// longer than a lease from now.
    fn at(&self, state: &PermitState, now: Instant) -> (PermitState, bool) {
        let latest = now.saturating_add(self.lease);
        let ahead = state.permits.iter().any(|permit| permit.until > latest);
        let held = state.permits.iter().filter(|permit| permit.until > now);
        let held = held.map(|permit| Permit { until: permit.until.min(latest), ..*permit });
        (PermitState::from_permits(held.collect()).unwrap_or_default(), ahead)
    }

    fn decision(&self, outcome: Outcome, held: &PermitState, now: Instant) -> Decision {
        let last = held.permits.last();
        Decision {
            outcome,
            limit: self.limit,
            remaining: self.limit.saturating_sub(held.held()),
            reset_after: last.map_or(Micros::ZERO, |permit| permit.until.saturating_since(now)),
        }
    }

    /// Time until the permits have expired that are in the way of `excess` more. Requests that end
    /// before their lease make it shorter.
    fn retry_after(&self, held: &PermitState, excess: u64, now: Instant) -> Micros {
        let mut freed = 0_u64;
        for permit in &held.permits {
            freed = freed.saturating_add(permit.cost);
            if freed >= excess {
                return permit.until.saturating_since(now);
            }
        }
        self.lease
    }
}

impl Algorithm for Concurrency {
    type State = PermitState;

    fn step(&self, state: &PermitState, now: Instant, ask: Ask) -> Step<PermitState> {
        let (mut held, repaired) = self.at(state, now);
        let wait = |excess| self.retry_after(&held, excess, now);
        let outcome = ask.against(self.limit, held.held(), wait);
        let charged = ask.is_charged(outcome);
        if charged {
            let cost = ask.cost.get();
            let until = now.saturating_add(self.lease);
            let mut permits = held.permits;
            permits.push(Permit { id: ask.id, until, cost });
            held = PermitState::from_permits(permits).unwrap_or_default();
        }
        let decision = self.decision(outcome, &held, now);
        Step { decision, state: (charged || repaired).then_some(held) }
    }

    fn idle_after(&self, state: &PermitState, now: Instant) -> Micros {
        let (held, _) = self.at(state, now);
        self.decision(Outcome::Allowed, &held, now).reset_after
    }

    fn refund(
        &self,
        state: &PermitState,
        _charged: Instant,
        now: Instant,
        ask: Ask,
    ) -> Option<PermitState> {
        self.at(state, now).0.release(ask.id)
    }
}
