//! Exact models of the limiters, to compare the core with: textbook forms in rational numbers and
//! lists of charges, of another shape than the core's and slow.

#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod concurrency;
pub(crate) mod gcra;
pub(crate) mod leaky_bucket;
pub(crate) mod level_bucket;
pub(crate) mod random;
pub(crate) mod sliding_log;
pub(crate) mod windows;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use weir_core::{
    decision::{Decision, Never, Outcome},
    limiter::{
        Ask, Limiter, State, Unfit, concurrency::Concurrency, fixed_window::FixedWindow,
        leaky_bucket::LeakyBucket, sliding_log::SlidingLog, sliding_window::SlidingWindow,
        token_bucket::TokenBucket,
    },
    units::{Micros, Rate},
};

/// A limiter as a textbook tells it.
pub(crate) trait Model {
    /// What it says at `now` (µs), and whether it had to correct its memory because the clock had
    /// gone back or the limit been changed.
    fn ask(&mut self, now: u64, ask: Ask) -> (Decision, bool);

    /// Goes on under another limit of the same algorithm. `debt_until` is when a debt will have
    /// drained in the new limit's ticks, for the models that have one.
    fn change(&mut self, now: u64, limit: &Limit, debt_until: Option<&BigRational>);

    /// When a debt will have drained, in microseconds; nothing where there is no debt.
    fn debt_until(&self) -> Option<BigRational> {
        None
    }

    /// Takes back what was charged at a time.
    fn refund(&mut self, charged: u64, now: u64, ask: Ask);
}

/// An algorithm and its parameters, as written in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    TokenBucket { rate: Rate, burst: u64 },
    FixedWindow { rate: Rate },
    SlidingWindow { rate: Rate },
    SlidingLog { rate: Rate },
    LeakyBucket { rate: Rate, max_delay: Micros },
    Concurrency { limit: u64, lease: Micros },
}

impl Limit {
    pub(crate) fn limiter(&self) -> Result<Limiter, Unfit> {
        Ok(match *self {
            Self::TokenBucket { rate, burst } => {
                Limiter::TokenBucket(TokenBucket::new(rate, burst)?)
            }
            Self::FixedWindow { rate } => Limiter::FixedWindow(FixedWindow::new(rate)?),
            Self::SlidingWindow { rate } => Limiter::SlidingWindow(SlidingWindow::new(rate)?),
            Self::SlidingLog { rate } => Limiter::SlidingLog(SlidingLog::new(rate)?),
            Self::LeakyBucket { rate, max_delay } => {
                Limiter::LeakyBucket(LeakyBucket::new(rate, max_delay)?)
            }
            Self::Concurrency { limit, lease } => {
                Limiter::Concurrency(Concurrency::new(limit, lease)?)
            }
        })
    }

    /// The textbooks on this limit; the token bucket has two.
    pub(crate) fn models(&self) -> Vec<Box<dyn Model>> {
        match *self {
            Self::TokenBucket { rate, burst } => vec![
                Box::new(level_bucket::LevelBucket::new(rate, burst, self.tick())),
                Box::new(gcra::Gcra::new(rate, burst, self.tick())),
            ],
            Self::FixedWindow { rate } => {
                vec![Box::new(windows::Windows::new(rate, 1, windows::Count::Fixed))]
            }
            Self::SlidingWindow { rate } => {
                vec![Box::new(windows::Windows::new(rate, self.tick(), windows::Count::Sliding))]
            }
            Self::SlidingLog { rate } => vec![Box::new(sliding_log::Log::new(rate))],
            Self::LeakyBucket { rate, max_delay } => {
                vec![Box::new(leaky_bucket::Queue::new(rate, max_delay, self.tick()))]
            }
            Self::Concurrency { limit, lease } => {
                vec![Box::new(concurrency::Permits::new(limit, lease))]
            }
        }
    }

    /// The resolution of the limiter's clock in microseconds.
    pub(crate) fn tick(&self) -> u64 {
        let tick = match self.limiter().expect("a limit that fits") {
            Limiter::TokenBucket(bucket) => bucket.tick(),
            Limiter::LeakyBucket(queue) => queue.tick(),
            Limiter::SlidingWindow(window) => window.tick(),
            _ => return 1,
        };
        tick.length().get()
    }

    /// The rate in tokens a microsecond, where the algorithm has one.
    pub(crate) fn per_micro(&self) -> BigRational {
        match self {
            Self::TokenBucket { rate, .. }
            | Self::FixedWindow { rate }
            | Self::SlidingWindow { rate }
            | Self::SlidingLog { rate }
            | Self::LeakyBucket { rate, .. } => whole(rate.count()) / whole(rate.window().get()),
            Self::Concurrency { limit, lease } => whole(*limit) / whole(lease.get()),
        }
    }

    /// The most that could pass at once, in tokens; a leaky bucket's need not be whole.
    pub(crate) fn capacity(&self) -> BigRational {
        match self {
            Self::TokenBucket { burst, .. } => whole(*burst),
            Self::FixedWindow { rate }
            | Self::SlidingWindow { rate }
            | Self::SlidingLog { rate } => whole(rate.count()),
            Self::LeakyBucket { max_delay, .. } => {
                let delay = whole(max_delay.get() / self.tick() * self.tick());
                delay * self.per_micro() + whole(1)
            }
            Self::Concurrency { limit, .. } => whole(*limit),
        }
    }

    /// The most that could pass at once in whole tokens, and the microseconds in which it comes back.
    pub(crate) fn size(&self) -> (u64, u64) {
        let (count, window) = match *self {
            Self::TokenBucket { rate, .. }
            | Self::FixedWindow { rate }
            | Self::SlidingWindow { rate }
            | Self::SlidingLog { rate }
            | Self::LeakyBucket { rate, .. } => (rate.count(), rate.window().get()),
            Self::Concurrency { limit, lease } => (limit, lease.get()),
        };
        let per_window = |tokens: u64| u128::from(tokens) * u128::from(window) / u128::from(count);
        let clipped = |micros: u128| u64::try_from(micros).unwrap_or(u64::MAX);
        match *self {
            Self::TokenBucket { burst, .. } => (burst, clipped(per_window(burst))),
            Self::LeakyBucket { max_delay, .. } => {
                let delay = max_delay.get();
                let queued = u128::from(delay) * u128::from(count) / u128::from(window);
                (clipped(queued + 1), delay + clipped(per_window(1)))
            }
            _ => (count, window),
        }
    }

    /// The window of a rate or the lease of a permit, in microseconds.
    pub(crate) fn window(&self) -> u64 {
        match self {
            Self::TokenBucket { rate, .. }
            | Self::FixedWindow { rate }
            | Self::SlidingWindow { rate }
            | Self::SlidingLog { rate }
            | Self::LeakyBucket { rate, .. } => rate.window().get(),
            Self::Concurrency { lease, .. } => lease.get(),
        }
    }
}

/// When the debt that one limit has left will have drained under another, in microseconds: the
/// instant stays, but for what is no whole number of the new ticks or units.
pub(crate) fn realigned(state: &State, to: &Limit) -> Option<BigRational> {
    let State::Debt(debt) = state else { return None };
    let (until, remainder) = debt.to_parts();
    let tick = to.tick();
    let units_per_tick = to.per_micro() * whole(tick);
    let refill = BigRational::from_integer(units_per_tick.numer().clone());
    Some(if until % tick != 0 {
        whole(until - until % tick + tick)
    } else if whole(remainder) < refill {
        whole(until) + whole(remainder) / refill * whole(tick)
    } else {
        whole(until + tick)
    })
}

/// An integer as a rational.
pub(crate) fn whole(n: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(n))
}

/// A rational that is known to be a small natural number.
pub(crate) fn natural(n: &BigRational) -> u64 {
    assert!(n.is_integer(), "{n}");
    n.to_integer().to_u64().expect("a natural number")
}

pub(crate) fn micros(n: u64) -> Micros {
    Micros::new(n)
}

/// Time from `now` to the start of a tick, none if that is past.
pub(crate) fn until(tick: u64, number: &BigRational, now: u64) -> Micros {
    micros(natural(&number.ceil()).saturating_mul(tick).saturating_sub(now))
}

pub(crate) const NEVER: Outcome = Outcome::Never(Never::CostAboveCapacity);
