//! One gateway's share of a limit, for an outage of the store that counts it for all gateways.

use super::quota::{Quota, Tier};
use crate::{
    bounds,
    limiter::{Limiter, Unfit, debt::gcd, tick::Tick},
    units::{Micros, Rate},
};
use core::num::NonZeroU64;

impl Quota {
    /// The limiter of one of so many equal gateways ([`bounds::GATEWAYS`]). What may pass at once
    /// is divided, rounded up to whole tokens, so that every gateway passes one at least; all
    /// together let less than a token for each of them pass above the limit. In the long run they
    /// let pass no more than the limit: a rate is slowed down exactly, and a window whose count was
    /// rounded up is made longer by as much (rounded up to the tick). Only where the numbers would
    /// leave their bounds is the rate rounded up too, by less than a token a window.
    ///
    /// # Errors
    /// [`Unfit`] says why the share cannot be counted.
    pub fn share(&self, gateways: u64) -> Result<Limiter, Unfit> {
        let gateways = gateways.clamp(bounds::GATEWAYS.min, bounds::GATEWAYS.max);
        let gateways = NonZeroU64::new(gateways).unwrap_or(NonZeroU64::MIN);
        let part = |tokens: u64| tokens.div_ceil(gateways.get());
        match *self {
            Self::TokenBucket { rate, burst } => first_fit(slower(rate, gateways), |rate| {
                Self::TokenBucket { rate, burst: part(burst) }
            }),
            Self::FixedWindow(rate) => first_fit(fewer(rate, gateways), Self::FixedWindow),
            Self::SlidingWindow(rate) => first_fit(fewer(rate, gateways), Self::SlidingWindow),
            Self::SlidingLog(rate) => first_fit(fewer(rate, gateways), Self::SlidingLog),
            // Nobody waits for longer than before, and so fewer wait by as much as the queue is
            // slower.
            Self::LeakyBucket { rate, max_delay } => {
                first_fit(slower(rate, gateways), |rate| Self::LeakyBucket { rate, max_delay })
            }
            Self::Concurrency { limit, lease } => {
                Self::Concurrency { limit: part(limit), lease }.limiter()
            }
        }
    }
}

impl Tier {
    /// This gateway's share of the whole tier, of all its shards together; see [`Quota::share`].
    /// In a policy a limit that falls back on shares has none that cannot be counted; such a one
    /// would be closed.
    #[must_use]
    pub fn share(&self, gateways: u64) -> Limiter {
        self.quota().share(gateways).unwrap_or(Limiter::Closed)
    }
}

/// The limiter of the first of some rates that makes one.
fn first_fit(
    rates: impl Iterator<Item = Rate>,
    quota: impl Fn(Rate) -> Quota,
) -> Result<Limiter, Unfit> {
    let mut unfit = Unfit::TooLarge;
    for rate in rates {
        match quota(rate).limiter() {
            Ok(limiter) => return Ok(limiter),
            Err(error) => unfit = error,
        }
    }
    Err(unfit)
}

/// A rate divided exactly, by a longer window, and then one rounded up to whole tokens.
fn slower(rate: Rate, gateways: NonZeroU64) -> impl Iterator<Item = Rate> {
    let common = gcd(rate.count(), gateways.get());
    let exact = || {
        let longer = gateways.get().checked_div(common)?.checked_mul(rate.window().get())?;
        Rate::new(rate.count().checked_div(common)?, Micros::new(longer))
    };
    let count = rate.count().div_ceil(gateways.get());
    exact().into_iter().chain(Rate::new(count, rate.window()))
}

/// A count divided and rounded up, in windows that are longer by as much, the finest first, and
/// then in the same windows.
fn fewer(rate: Rate, gateways: NonZeroU64) -> impl Iterator<Item = Rate> {
    let count = rate.count().div_ceil(gateways.get());
    let all = u128::from(count).saturating_mul(gateways.get().into());
    let longer = u128::from(rate.window().get())
        .saturating_mul(all)
        .checked_next_multiple_of(rate.count().into())
        .and_then(|micros| micros.checked_div(rate.count().into()))
        .and_then(|micros| u64::try_from(micros).ok());
    let longer = Tick::ALL
        .iter()
        .filter_map(move |tick| Rate::new(count, Micros::new(tick.micros(tick.covering(longer?)))));
    longer.chain(Rate::new(count, rate.window()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{
        concurrency::Concurrency, fixed_window::FixedWindow, leaky_bucket::LeakyBucket,
        sliding_log::SlidingLog, sliding_window::SlidingWindow, token_bucket::TokenBucket,
    };

    fn rate(count: u64, seconds: u64) -> Rate {
        Rate::new(count, Micros::new(seconds * 1_000_000)).unwrap()
    }

    #[test]
    fn a_bucket_is_slowed_down_exactly_and_its_burst_rounded_up() {
        let share = Quota::TokenBucket { rate: rate(1000, 60), burst: 100 }.share(48);
        let bucket = TokenBucket::new(rate(1000, 60 * 48), 3).unwrap();
        assert_eq!(share, Ok(Limiter::TokenBucket(bucket)));
    }

    #[test]
    fn a_rate_that_would_need_too_long_a_window_is_reduced_or_else_rounded_up() {
        let day = 86_400;
        for (count, gateways, reduced) in
            [(1500, 1000, rate(3, 2 * day)), (1000, 1000, rate(1, day)), (1001, 1000, rate(2, day))]
        {
            let share = Quota::TokenBucket { rate: rate(count, day), burst: 1 }.share(gateways);
            let bucket = TokenBucket::new(reduced, 1).unwrap();
            assert_eq!(share, Ok(Limiter::TokenBucket(bucket)), "{count}");
        }
    }

    #[test]
    fn a_window_is_longer_by_as_much_as_its_count_was_rounded_up() {
        // 5 a minute by 40 gateways: one in 8 minutes each.
        let one = rate(1, 8 * 60);
        let login = rate(5, 60);
        let fixed = FixedWindow::new(one).map(Limiter::FixedWindow);
        assert_eq!(Quota::FixedWindow(login).share(40), fixed);
        let sliding = SlidingWindow::new(one).map(Limiter::SlidingWindow);
        assert_eq!(Quota::SlidingWindow(login).share(40), sliding);
        let log = SlidingLog::new(one).map(Limiter::SlidingLog);
        assert_eq!(Quota::SlidingLog(login).share(40), log);
        // 100 a minute by 40: 3 in 72 seconds each. By 33: 4 in 79.2.
        let hundred = Quota::FixedWindow(rate(100, 60));
        let fixed = |rate| FixedWindow::new(rate).map(Limiter::FixedWindow);
        assert_eq!(hundred.share(40), fixed(rate(3, 72)));
        let window = Rate::new(4, Micros::new(79_200_000)).unwrap();
        assert_eq!(hundred.share(33), fixed(window));
        // The year has no longer window.
        assert_eq!(
            Quota::FixedWindow(rate(3, 366 * 86_400)).share(2),
            fixed(rate(2, 366 * 86_400))
        );
    }

    #[test]
    fn a_queue_keeps_its_longest_wait_and_permits_their_lease() {
        let max_delay = Micros::SECOND;
        let share = Quota::LeakyBucket { rate: rate(50, 1), max_delay }.share(20);
        let queue = LeakyBucket::new(rate(50, 20), max_delay).map(Limiter::LeakyBucket);
        assert_eq!(share, queue);
        let share = Quota::Concurrency { limit: 100, lease: Micros::SECOND }.share(40);
        assert_eq!(share, Concurrency::new(3, Micros::SECOND).map(Limiter::Concurrency));
    }

    #[test]
    fn a_closed_limit_stays_closed() {
        for quota in [
            Quota::TokenBucket { rate: rate(0, 1), burst: 5 },
            Quota::FixedWindow(rate(0, 1)),
            Quota::SlidingWindow(rate(0, 1)),
            Quota::SlidingLog(rate(0, 1)),
            Quota::LeakyBucket { rate: rate(0, 1), max_delay: Micros::SECOND },
            Quota::Concurrency { limit: 0, lease: Micros::SECOND },
        ] {
            assert_eq!(quota.share(40), Ok(Limiter::Closed), "{quota:?}");
        }
    }

    #[test]
    fn a_share_is_of_the_whole_and_not_of_a_shard() {
        let quota = Quota::TokenBucket { rate: rate(120, 1), burst: 120 };
        let tier = Tier::new(quota, 12).unwrap();
        assert_eq!(tier.share(1), Tier::new(quota, 1).unwrap().limiter(0));
        let log = Tier::new(Quota::SlidingLog(rate(5_000, 60)), 5).unwrap();
        assert_eq!(log.quota().share(1), Err(Unfit::Entries));
        assert_eq!(log.share(1), Limiter::Closed);
        assert_eq!(log.share(5), log.limiter(0));
    }
}
