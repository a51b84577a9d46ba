//! The length of one step of a limiter's clock.
//!
//! A bucket computes in whole ticks. One microsecond serves nearly every limit; where the numbers
//! would reach 2^53, above which a Redis script is no longer exact, a coarser tick is taken. The
//! choice is made here, once, and so is the same in every place that decides.

use crate::units::{Instant, Micros};
use core::num::NonZeroU64;

/// Microseconds per tick: 1, 10, 100, 1,000, 10,000, 100,000 or 1,000,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(NonZeroU64);

impl Tick {
    /// One microsecond.
    pub const MICROSECOND: Tick = Self::of(1);

    /// All ticks, the finest first.
    pub const ALL: [Tick; 7] = [
        Self::MICROSECOND,
        Self::of(10),
        Self::of(100),
        Self::of(1_000),
        Self::of(10_000),
        Self::of(100_000),
        Self::of(1_000_000),
    ];

    /// Only for [`Tick::ALL`]: no tick is 0.
    const fn of(micros: u64) -> Self {
        match NonZeroU64::new(micros) {
            Some(micros) => Self(micros),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// The length of this tick.
    #[must_use]
    pub const fn length(self) -> Micros {
        Micros::new(self.0.get())
    }

    /// The tick in which an instant lies, counted from the epoch (rounded down).
    #[must_use]
    pub fn containing(self, now: Instant) -> u64 {
        self.within(now.as_micros())
    }

    /// Ticks that cover a number of microseconds (rounded up).
    #[must_use]
    pub(crate) fn covering(self, micros: u64) -> u64 {
        if self == Self::MICROSECOND { micros } else { micros.div_ceil(self.0.get()) }
    }

    /// Whole ticks in a number of microseconds (rounded down).
    #[must_use]
    pub(crate) fn within(self, micros: u64) -> u64 {
        // Nearly every limit has this tick, and a division is what a step spends its time on.
        if self == Self::MICROSECOND { micros } else { micros / self.0 }
    }

    /// So many ticks in microseconds, saturating.
    #[must_use]
    pub(crate) const fn micros(self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.0.get())
    }

    /// Whether a number of microseconds is a whole number of ticks.
    #[must_use]
    pub(crate) fn divides(self, micros: u64) -> bool {
        self == Self::MICROSECOND || micros.is_multiple_of(self.0.get())
    }

    /// Time from `now` to the start of a tick; zero if that is past.
    #[must_use]
    pub(crate) fn until(self, tick: u64, now: Instant) -> Micros {
        Micros::new(self.micros(tick).saturating_sub(now.as_micros()))
    }
}
