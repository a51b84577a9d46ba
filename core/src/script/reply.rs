//! From the integers that a script replies to decisions.

use super::{Asked, Call, GENERAL, TOKEN_BUCKET_FAST, TOKEN_BUCKET_MICRO};
use crate::{
    bounds,
    decision::{Decision, Never, Outcome},
    limiter::Limiter,
    units::{Cost, Instant, Micros},
};
use alloc::vec::Vec;

/// Integers that a script replies for each limit: outcome, remaining, wait, reset. The two faster
/// token buckets reply a single one, what is owed.
pub const NUMBERS_PER_LIMIT: usize = 4;

/// Why a reply is none of the script that was called. The store answered, so this is no outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadReply {
    /// There are not as many integers as the script replies.
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
    /// An integer that stands alone is none that the script can reply there.
    Number {
        /// Its place in the reply.
        place: usize,
        /// What came.
        found: i64,
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
            Self::Number { place, found } => {
                write!(f, "the script cannot have replied {found} as integer {place}")
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
        if self.script == &GENERAL {
            return self.charged(reply).map(|(decisions, _)| decisions);
        }
        if self.script == &TOKEN_BUCKET_FAST || self.script == &TOKEN_BUCKET_MICRO {
            let &[found] = reply else {
                return Err(BadReply::Length { found: reply.len(), expected: 1 });
            };
            let decision = self.limits.first().and_then(|limit| by_debt(limit, found));
            return Ok([decision.ok_or(BadReply::Number { place: 0, found })?].into());
        }
        let expected = self.limits.len().saturating_mul(NUMBERS_PER_LIMIT);
        if reply.len() != expected {
            return Err(BadReply::Length { found: reply.len(), expected });
        }
        self.decided(reply)
    }

    /// What each limit of a call by the general script decided, and when by the store's clock it
    /// charged whatever it charged; see [`Refund`](super::Refund).
    ///
    /// # Errors
    /// [`BadReply`] for any integers that the script cannot have replied, and for any reply to a
    /// call that is not [`Call::refundable`] and has a single limit.
    pub fn charged(&self, reply: &[i64]) -> Result<(Vec<Decision>, Instant), BadReply> {
        let place = self.limits.len().saturating_mul(NUMBERS_PER_LIMIT);
        let length = BadReply::Length { found: reply.len(), expected: place.saturating_add(1) };
        let Some((found, numbers)) = reply.split_last() else { return Err(length) };
        if numbers.len() != place || self.script != &GENERAL {
            return Err(length);
        }
        let decisions = self.decided(numbers)?;
        let now = u64::try_from(*found).ok().filter(|now| *now <= Instant::MAX.as_micros());
        let now = now.ok_or(BadReply::Number { place, found: *found })?;
        Ok((decisions, Instant::from_micros(now)))
    }

    /// The decisions of as many numbers as belong to the limits.
    fn decided(&self, numbers: &[i64]) -> Result<Vec<Decision>, BadReply> {
        let (numbers, _) = numbers.as_chunks::<NUMBERS_PER_LIMIT>();
        let decisions = self.limits.iter().zip(numbers).enumerate();
        let decisions = decisions.map(|(place, (limit, found))| {
            decision(limit.limiter, *found).ok_or(BadReply::Numbers { limit: place, found: *found })
        });
        decisions.collect()
    }

    /// The limits of the call that were charged when they decided so: none if one that is enforced
    /// refused, and otherwise all but those in shadow mode that did.
    pub fn taken_from(&self, decisions: &[Decision]) -> impl Iterator<Item = Asked<'_>> {
        let all = self.limits.iter().zip(decisions);
        let passes = all.clone().all(|(asked, said)| said.is_allowed() || !asked.enforced);
        let charged = all.filter(move |(asked, said)| {
            passes && said.is_allowed() && asked.ask.cost > Cost::ZERO
        });
        charged.map(|(asked, _)| *asked)
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

/// The decision of a token bucket by what it owes after it: that many units if the request passed,
/// and -1 less that many if it did not. `None` for a number that its script cannot reply.
fn by_debt(asked: &Asked<'_>, found: i64) -> Option<Decision> {
    let Limiter::TokenBucket(bucket) = asked.limiter else { return None };
    let drain = bucket.drain();
    let price = drain.units(asked.ask.cost.get());
    let usable = drain.capacity.saturating_sub(drain.units(asked.ask.floor));
    let passes = found >= 0;
    let owed = u64::try_from(if passes { found } else { (-1_i64).checked_sub(found)? }).ok()?;
    // These scripts count by the microsecond.
    let micros_for = |units: u64| Micros::new(units.div_ceil(drain.refill.get()));
    // What the request would have made it owe.
    let charged = owed.saturating_add(price);
    let (outcome, possible) = if passes && price == 0 {
        (Outcome::Allowed, true)
    } else if passes {
        (Outcome::Allowed, price <= owed && owed <= usable)
    } else if price > usable {
        (Outcome::Never(Never::CostAboveCapacity), true)
    } else {
        let retry_after = micros_for(charged.saturating_sub(usable));
        (Outcome::Refused { retry_after }, price > 0 && charged > usable)
    };
    (possible && owed <= drain.capacity).then(|| Decision {
        outcome,
        limit: bucket.burst(),
        remaining: drain.capacity.saturating_sub(owed) / drain.token,
        reset_after: micros_for(owed),
    })
}

/// A span that a script can compute.
pub(super) fn micros(number: i64) -> Option<Micros> {
    let number = u64::try_from(number).ok()?;
    bounds::UNITS.contains(number).then_some(Micros::new(number))
}
