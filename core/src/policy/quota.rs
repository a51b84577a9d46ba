//! How much a limit allows, as written and as compiled.

use crate::{
    bounds,
    limiter::{
        Limiter, Unfit, concurrency::Concurrency, fixed_window::FixedWindow,
        leaky_bucket::LeakyBucket, sliding_log::SlidingLog, sliding_window::SlidingWindow,
        token_bucket::TokenBucket,
    },
    units::{Micros, Rate},
};
use alloc::vec::Vec;

/// An algorithm with its numbers, as a policy writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// `token-bucket`: a rate, and the most that passes at once.
    TokenBucket {
        /// Sustained rate.
        rate: Rate,
        /// Tokens of a full bucket.
        burst: u64,
    },
    /// `fixed-window`: a rate, all of it back at the start of each window.
    FixedWindow(Rate),
    /// `sliding-window`: a rate, by estimate over the last window.
    SlidingWindow(Rate),
    /// `sliding-log`: a rate, exact over the last window.
    SlidingLog(Rate),
    /// `leaky-bucket`: a rate at which requests leave, and the longest that one waits.
    LeakyBucket {
        /// Rate at which requests leave.
        rate: Rate,
        /// Longest wait.
        max_delay: Micros,
    },
    /// `concurrency`: so many at once.
    Concurrency {
        /// Permits.
        limit: u64,
        /// How long a permit lasts if nobody gives it back.
        lease: Micros,
    },
}

/// How much a limit, a plan or an override allows, as far as it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// A rate.
    pub rate: Option<Rate>,
    /// The burst of a token bucket; without one, a second's worth.
    pub burst: Option<u64>,
    /// The permits of a concurrency limit.
    pub limit: Option<u64>,
}

/// Why a quota cannot be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaError {
    /// An algorithm refuses the numbers.
    Unfit(Unfit),
    /// There are fewer tokens than shards.
    MoreShardsThanTokens,
}

impl core::fmt::Display for QuotaError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::MoreShardsThanTokens => f.write_str(
                "there are more shards than tokens to split, so some shard would never allow \
                 anything; use fewer shards",
            ),
        }
    }
}

impl core::error::Error for QuotaError {}

impl Quota {
    /// The most that can ever pass at once.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        match self {
            Self::TokenBucket { burst, .. } => *burst,
            Self::FixedWindow(rate) | Self::SlidingWindow(rate) | Self::SlidingLog(rate) => {
                rate.count()
            }
            Self::LeakyBucket { rate, max_delay } => {
                LeakyBucket::new(*rate, *max_delay).map_or(0, |queue| queue.places())
            }
            Self::Concurrency { limit, .. } => *limit,
        }
    }

    /// The rate, if the algorithm has one.
    #[must_use]
    pub const fn rate(&self) -> Option<Rate> {
        match self {
            Self::TokenBucket { rate, .. } | Self::LeakyBucket { rate, .. } => Some(*rate),
            Self::FixedWindow(rate) | Self::SlidingWindow(rate) | Self::SlidingLog(rate) => {
                Some(*rate)
            }
            Self::Concurrency { .. } => None,
        }
    }

    /// Tokens per window and the window's length, as a client is told; a concurrency limit has no
    /// window.
    #[must_use]
    pub fn told(&self) -> (u64, Option<Micros>) {
        self.rate().map_or((self.capacity(), None), |rate| (rate.count(), Some(rate.window())))
    }

    /// The name of the algorithm in a policy.
    #[must_use]
    pub const fn algorithm(&self) -> &'static str {
        match self {
            Self::TokenBucket { .. } => "token-bucket",
            Self::FixedWindow(_) => "fixed-window",
            Self::SlidingWindow(_) => "sliding-window",
            Self::SlidingLog(_) => "sliding-log",
            Self::LeakyBucket { .. } => "leaky-bucket",
            Self::Concurrency { .. } => "concurrency",
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Concurrency { limit, .. } => *limit == 0,
            other => other.rate().is_some_and(|rate| rate.count() == 0),
        }
    }

    /// The quota of one of `shards` equal shards. The first ones get what does not divide.
    fn shard(&self, index: u64, shards: u64) -> Option<Self> {
        let part = |tokens: u64| {
            let whole = tokens.checked_div(shards)?;
            let rest = tokens.checked_rem(shards)?;
            Some(whole.saturating_add(u64::from(index < rest)))
        };
        let slower = |rate: Rate| Rate::new(part(rate.count())?, rate.window());
        Some(match *self {
            Self::TokenBucket { rate, burst } => {
                Self::TokenBucket { rate: slower(rate)?, burst: part(burst)? }
            }
            Self::FixedWindow(rate) => Self::FixedWindow(slower(rate)?),
            Self::SlidingWindow(rate) => Self::SlidingWindow(slower(rate)?),
            Self::SlidingLog(rate) => Self::SlidingLog(slower(rate)?),
            Self::LeakyBucket { rate, max_delay } => {
                Self::LeakyBucket { rate: slower(rate)?, max_delay }
            }
            Self::Concurrency { limit, lease } => Self::Concurrency { limit: part(limit)?, lease },
        })
    }

    /// The limiter of the whole.
    pub(super) fn limiter(&self) -> Result<Limiter, Unfit> {
        if self.is_closed() {
            return Ok(Limiter::Closed);
        }
        match *self {
            Self::TokenBucket { rate, burst } => {
                TokenBucket::new(rate, burst).map(Limiter::TokenBucket)
            }
            Self::FixedWindow(rate) => FixedWindow::new(rate).map(Limiter::FixedWindow),
            Self::SlidingWindow(rate) => SlidingWindow::new(rate).map(Limiter::SlidingWindow),
            Self::SlidingLog(rate) => SlidingLog::new(rate).map(Limiter::SlidingLog),
            Self::LeakyBucket { rate, max_delay } => {
                LeakyBucket::new(rate, max_delay).map(Limiter::LeakyBucket)
            }
            Self::Concurrency { limit, lease } => {
                Concurrency::new(limit, lease).map(Limiter::Concurrency)
            }
        }
    }
}

/// A quota, compiled: a limiter for each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    quota: Quota,
    /// At least one.
    shards: Vec<Shard>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    limiter: Limiter,
    capacity: u64,
}

impl Tier {
    /// Compiles a quota, split into integers that sum to the whole over so many shards
    /// ([`bounds::SHARDS`]).
    ///
    /// # Errors
    /// [`QuotaError`] says why there is no such tier.
    pub fn new(quota: Quota, shards: u64) -> Result<Self, QuotaError> {
        let shards = shards.clamp(bounds::SHARDS.min, bounds::SHARDS.max);
        let compile = |index| {
            let part = quota.shard(index, shards).ok_or(QuotaError::MoreShardsThanTokens)?;
            let empty = !quota.is_closed() && (part.is_closed() || part.capacity() == 0);
            if empty && shards > 1 {
                return Err(QuotaError::MoreShardsThanTokens);
            }
            let limiter = part.limiter().map_err(QuotaError::Unfit)?;
            Ok(Shard { limiter, capacity: part.capacity() })
        };
        let shards = (0..shards).map(compile).collect::<Result<_, _>>()?;
        Ok(Self { quota, shards })
    }

    /// The quota as written.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The limiter of a shard; of one that does not exist, a closed one.
    #[must_use]
    pub fn limiter(&self, shard: usize) -> Limiter {
        self.shards.get(shard).map_or(Limiter::Closed, |shard| shard.limiter)
    }

    /// The most that can ever pass at once in a shard.
    #[must_use]
    pub fn capacity(&self, shard: usize) -> u64 {
        self.shards.get(shard).map_or(0, |shard| shard.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::rust_2024::*;

    fn rate(count: u64) -> Rate {
        Rate::new(count, Micros::SECOND).unwrap()
    }

    /// The most that passes at once in each shard.
    fn capacities(quota: Quota, shards: u64) -> Vec<u64> {
        let tier = Tier::new(quota, shards).unwrap();
        (0..tier.shards()).map(|shard| tier.capacity(shard)).collect()
    }

    #[test]
    fn shards_sum_to_the_whole_and_the_first_get_what_does_not_divide() {
        let lease = Micros::SECOND;
        for quota in [
            Quota::TokenBucket { rate: rate(20), burst: 11 },
            Quota::FixedWindow(rate(11)),
            Quota::SlidingWindow(rate(11)),
            Quota::SlidingLog(rate(11)),
            Quota::Concurrency { limit: 11, lease },
        ] {
            assert_eq!(capacities(quota, 4), [3, 3, 3, 2], "{quota:?}");
            assert_eq!(capacities(quota, 1), [11], "{quota:?}");
        }
    }

    #[test]
    fn no_shard_may_be_left_without_tokens() {
        let quota = Quota::TokenBucket { rate: rate(3), burst: 9 };
        assert_eq!(Tier::new(quota, 3).map(|tier| tier.shards()), Ok(3));
        assert_eq!(Tier::new(quota, 4), Err(QuotaError::MoreShardsThanTokens));
    }

    #[test]
    fn a_shard_that_does_not_exist_is_closed() {
        let tier = Tier::new(Quota::FixedWindow(rate(3)), 1).unwrap();
        assert_eq!((tier.limiter(1), tier.capacity(1)), (Limiter::Closed, 0));
    }
}
