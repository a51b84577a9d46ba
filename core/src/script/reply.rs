//! From the integers that a script replies to decisions.

use super::Call;
use crate::{
    bounds,
    decision::{Decision, Never, Outcome},
    limiter::Limiter,
    units::Micros,
};
use alloc::vec::Vec;

/// Integers that a script replies for each limit: outcome, remaining, wait, reset.
pub const NUMBERS_PER_LIMIT: usize = 4;

/// Why a reply is none of the script that was called. The store answered, so this is no outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadReply {
    /// There are not [`NUMBERS_PER_LIMIT`] integers for each limit.
    Length {
        /// How many came.
        found: usize,
        /// How many should have.
        expected: usize,
    },
    /// The four integers of one limit are none that its script can reply.
    Numbers {
        /// The limit's place in the call.
        limit: usize,
        /// Outcome, remaining, wait and reset as they came.
        found: [i64; NUMBERS_PER_LIMIT],
    },
}

impl core::fmt::Display for BadReply {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length { found, expected } => {
                write!(f, "the script replied {found} integers instead of {expected}")
            }
            Self::Numbers { limit, found } => {
                write!(f, "the script cannot have replied {found:?} for limit {limit} of the call")
            }
        }
    }
}

impl core::error::Error for BadReply {}

impl Call<'_> {
    /// What each limit of the call decided, in the order in which they were given.
    ///
    /// # Errors
    /// [`BadReply`] for any integers that the script cannot have replied.
    pub fn decisions(&self, reply: &[i64]) -> Result<Vec<Decision>, BadReply> {
        let expected = self.limits.len().saturating_mul(NUMBERS_PER_LIMIT);
        let (numbers, rest) = reply.as_chunks::<NUMBERS_PER_LIMIT>();
        if numbers.len() != self.limits.len() || !rest.is_empty() {
            return Err(BadReply::Length { found: reply.len(), expected });
        }
        let decisions = self.limits.iter().zip(numbers).enumerate();
        let decisions = decisions.map(|(place, (limit, found))| {
            decision(limit.limiter, *found).ok_or(BadReply::Numbers { limit: place, found: *found })
        });
        decisions.collect()
    }
}

/// The decision of one limit; `None` for integers that its script cannot reply.
fn decision(limiter: &Limiter, numbers: [i64; NUMBERS_PER_LIMIT]) -> Option<Decision> {
    let [outcome, remaining, wait, reset] = numbers;
    let limit = limiter.capacity();
    let wait = micros(wait)?;
    let outcome = match (outcome, wait) {
        (0, Micros::ZERO) => None,
        (0, retry_after) => Some(Outcome::Refused { retry_after }),
        (1, Micros::ZERO) => Some(Outcome::Allowed),
        (2, Micros::ZERO) => Some(Outcome::Never(Never::CostAboveCapacity)),
        (3, Micros::ZERO) => None,
        (3, delay) if matches!(limiter, Limiter::LeakyBucket(_)) => {
            Some(Outcome::Delayed { delay })
        }
        _ => None,
    };
    let remaining = u64::try_from(remaining).ok().filter(|remaining| *remaining <= limit)?;
    Some(Decision { outcome: outcome?, limit, remaining, reset_after: micros(reset)? })
}

/// A span that a script can compute.
pub(super) fn micros(number: i64) -> Option<Micros> {
    let number = u64::try_from(number).ok()?;
    bounds::UNITS.contains(number).then_some(Micros::new(number))
}
