//! What the reader can set: three sliders and how requests arrive.

use weir_core::bounds::{self, Bound};

/// The range of one slider, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The value at the start.
    pub default: u64,
}

impl Range {
    /// A part of what a policy allows; any other does not compile.
    const fn within(bound: &Bound, min: u64, max: u64, default: u64) -> Self {
        assert!(bound.contains(min) && bound.contains(max));
        assert!(min <= default && default <= max);
        Self { min, max, default }
    }

    /// The nearest value of the range.
    #[must_use]
    pub const fn clamp(self, value: u64) -> u64 {
        if value < self.min {
            self.min
        } else if value > self.max {
            self.max
        } else {
            value
        }
    }
}

/// Incoming traffic, in requests per second.
pub const TRAFFIC: Range = Range { min: 0, max: 20, default: 6 };
/// Refill rate, in tokens per second.
pub const REFILL: Range = Range::within(&bounds::RATE_COUNT, 1, 20, 4);
/// Capacity, in tokens: the largest burst.
pub const CAPACITY: Range = Range::within(&bounds::BURST, bounds::BURST.min, 30, 10);

/// Requests that one press of the burst button sends at one instant.
pub const BURST: u32 = 12;

/// How the running traffic is spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// One request every 1/λ seconds.
    Even,
    /// Independent requests: exponential gaps with the same mean.
    Poisson,
}

/// The settings of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Requests per second, in [`TRAFFIC`].
    pub traffic: u64,
    /// Tokens per second, in [`REFILL`].
    pub refill: u64,
    /// Tokens of a full bucket, in [`CAPACITY`].
    pub capacity: u64,
    /// How requests are spaced.
    pub spacing: Spacing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            traffic: TRAFFIC.default,
            refill: REFILL.default,
            capacity: CAPACITY.default,
            spacing: Spacing::Even,
        }
    }
}

/// An experiment the page can set up with one press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// More traffic than refill, from a full bucket.
    Drain,
    /// A burst on a full bucket that traffic below the refill rate keeps full.
    Burst,
    /// The same burst on a bucket of three.
    SmallBurst,
    /// Random arrivals below the refill rate on a bucket of three.
    Random,
}

impl Experiment {
    /// The settings to run it with.
    #[must_use]
    pub fn settings(self) -> Settings {
        let calm = Settings { traffic: 3, ..Settings::default() };
        match self {
            Self::Drain => Settings::default(),
            Self::Burst => calm,
            Self::SmallBurst => Settings { capacity: 3, ..calm },
            Self::Random => Settings { capacity: 3, spacing: Spacing::Poisson, ..calm },
        }
    }

    /// Whether it begins with a burst.
    #[must_use]
    pub const fn bursts(self) -> bool {
        matches!(self, Self::Burst | Self::SmallBurst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_clamps_to_its_ends() {
        assert_eq!(REFILL.clamp(0), 1);
        assert_eq!(REFILL.clamp(7), 7);
        assert_eq!(REFILL.clamp(99), 20);
    }

    #[test]
    fn every_experiment_stays_inside_the_sliders() {
        use Experiment::{Burst, Drain, Random, SmallBurst};
        for experiment in [Drain, Burst, SmallBurst, Random] {
            let set = experiment.settings();
            assert_eq!(TRAFFIC.clamp(set.traffic), set.traffic);
            assert_eq!(REFILL.clamp(set.refill), set.refill);
            assert_eq!(CAPACITY.clamp(set.capacity), set.capacity);
        }
    }
}
