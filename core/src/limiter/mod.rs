//! The limiters: pure steps from (state, now, cost) to (decision, new state).
//!
//! A store makes a step atomic and may run it again; a step never reads a clock.

pub mod tick;
pub mod token_bucket;

use crate::{
    bounds,
    decision::{Decision, Never, Outcome},
    units::{Cost, Instant, Micros, Rate},
};
use token_bucket::{BucketState, TokenBucket, Unfit};

/// One limit, ready to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// A limit of 0: refuses every request and keeps no state.
    Closed,
    /// The token bucket, which is also GCRA.
    TokenBucket(TokenBucket),
}

impl Limiter {
    /// A token bucket of `rate` that holds `burst` tokens, or the closed limit if the rate is 0.
    ///
    /// # Errors
    /// [`Unfit`] if `burst` is outside [`bounds::BURST`] or no tick represents the bucket exactly.
    pub fn token_bucket(rate: Rate, burst: u64) -> Result<Self, Unfit> {
        if rate.count() == 0 {
            return Ok(Self::Closed);
        }
        TokenBucket::new(rate, burst).map(Self::TokenBucket)
    }

    /// Decides one request: the decision, and the state to keep where it changed.
    #[must_use]
    pub fn step(&self, state: BucketState, now: Instant, cost: Cost) -> Step {
        match self {
            Self::Closed => Step { decision: CLOSED, state: None },
            Self::TokenBucket(bucket) => bucket.step(state, now, cost),
        }
    }
}

/// What a step yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The answer to the request.
    pub decision: Decision,
    /// The state to store; `None` where the stored one stays as it is.
    pub state: Option<BucketState>,
}

const CLOSED: Decision = Decision {
    outcome: Outcome::Never(Never::Closed),
    limit: bounds::RATE_COUNT.min,
    remaining: 0,
    reset_after: Micros::ZERO,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_zero_refuses_everything_and_never_means_unlimited() {
        // traefik/traefik#13512: two back ends took 0 for "allow all" and for "deny all".
        let rate = Rate::new(0, Micros::SECOND).unwrap();
        let limiter = Limiter::token_bucket(rate, 10).unwrap();
        let step = limiter.step(BucketState::FULL, Instant::from_micros(1), Cost::ONE);
        assert_eq!(step.decision.outcome, Outcome::Never(Never::Closed));
        assert_eq!(step.state, None);
    }
}
