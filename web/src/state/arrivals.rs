//! When requests arrive: evenly or at random, computed in integers.
//!
//! An even arrival n lies at exactly n/λ seconds, rounded down to a microsecond. Random arrivals
//! have exponential gaps (a Poisson stream). A gap is k · ln 2 + y: k counts the tails before the
//! first head of a fair coin, y comes from `QUANTILES` by linear interpolation. Both are exact
//! integers from a seeded generator, so every machine draws the same stream.

use super::settings::{Settings, Spacing};

const SECOND: u64 = 1_000_000;

/// One mean gap in the units of `QUANTILES`.
const MEAN: u64 = 1 << 20;

/// The stream every reset begins with.
const SEED: u64 = 0x5745_4952;

/// An endless stream of arrival times in microseconds of simulated time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    spacing: Spacing,
    rate: u64,
    start: u64,
    /// Even: arrivals since `start`.
    index: u64,
    /// Poisson: the sum of gaps since `start`, in units of 1/`MEAN` gaps.
    gaps: u64,
    random: SplitMix,
}

impl Arrivals {
    /// A stream that begins at time 0: evenly spaced, its first request is at 0.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let mut arrivals = Self {
            spacing: settings.spacing,
            rate: settings.traffic,
            start: 0,
            index: 0,
            gaps: 0,
            random: SplitMix(SEED),
        };
        arrivals.gaps = arrivals.random.gap();
        arrivals
    }

    /// Continues at `now` with new settings. The next request comes one new gap later.
    pub fn restart(&mut self, settings: &Settings, now: u64) {
        self.spacing = settings.spacing;
        self.rate = settings.traffic;
        self.start = now;
        self.index = 1;
        self.gaps = self.random.gap();
    }

    /// The time of the next request, or `None` without traffic.
    #[must_use]
    pub fn next_at(&self) -> Option<u64> {
        let offset = match self.spacing {
            Spacing::Even => self.index.saturating_mul(SECOND).checked_div(self.rate)?,
            Spacing::Poisson => {
                let scaled = u128::from(self.gaps).saturating_mul(u128::from(SECOND));
                let mean = u128::from(MEAN).saturating_mul(u128::from(self.rate));
                u64::try_from(scaled.checked_div(mean)?).unwrap_or(u64::MAX)
            }
        };
        Some(self.start.saturating_add(offset))
    }

    /// Moves on to the request after the next one.
    pub fn pass(&mut self) {
        self.index = self.index.saturating_add(1);
        if self.spacing == Spacing::Poisson {
            self.gaps = self.gaps.saturating_add(self.random.gap());
        }
    }

    /// The times of the requests before `end`, at most `most` of them, without consuming any.
    #[must_use]
    pub fn upcoming(&self, end: u64, most: usize) -> Vec<u64> {
        let mut ahead = self.clone();
        let mut times = Vec::new();
        while let Some(at) = ahead.next_at().filter(|at| *at < end && times.len() < most) {
            times.push(at);
            ahead.pass();
        }
        times
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): small, seeded, the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SplitMix(u64);

impl SplitMix {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An exponential gap with mean `MEAN`.
    fn gap(&mut self) -> u64 {
        let tails = u64::from(self.draw().leading_zeros());
        let bits = self.draw();
        let [row, high, low, ..] = bits.to_be_bytes();
        let (from, to) = quantiles(usize::from(row));
        let part = u64::from(u16::from_be_bytes([high, low]));
        let within = to.saturating_sub(from).saturating_mul(part) >> 16;
        tails.saturating_mul(LN_2).saturating_add(from).saturating_add(within)
    }
}

/// The quantiles at both ends of a row, from 0 to 255.
fn quantiles(row: usize) -> (u64, u64) {
    let from = QUANTILES.get(row).copied().unwrap_or(0);
    (from, QUANTILES.get(row.saturating_add(1)).copied().unwrap_or(LN_2))
}

/// ln 2 · 2^20, rounded; the last of `QUANTILES`.
const LN_2: u64 = 726_817;

/// −ln(1 − i/512) · 2^20 for i from 0 to 256, rounded: the quantiles of an exponential draw that
/// is known to lie below ln 2.
#[rustfmt::skip]
const QUANTILES: [u64; 257] = [
    0, 2050, 4104, 6162, 8224, 10_290, 12_361, 14_435, 16_513, 18_596,
    20_683, 22_774, 24_869, 26_968, 29_071, 31_179, 33_291, 35_407, 37_528, 39_652,
    41_781, 43_915, 46_053, 48_195, 50_341, 52_492, 54_648, 56_807, 58_972, 61_140,
    63_314, 65_491, 67_674, 69_860, 72_052, 74_248, 76_448, 78_653, 80_863, 83_078,
    85_297, 87_521, 89_750, 91_983, 94_221, 96_464, 98_712, 100_964, 103_222, 105_484,
    107_751, 110_023, 112_301, 114_583, 116_870, 119_161, 121_458, 123_760, 126_068, 128_380,
    130_697, 133_020, 135_347, 137_680, 140_018, 142_361, 144_709, 147_063, 149_422, 151_786,
    154_156, 156_531, 158_912, 161_297, 163_689, 166_085, 168_488, 170_895, 173_309, 175_728,
    178_152, 180_582, 183_018, 185_459, 187_906, 190_359, 192_818, 195_282, 197_752, 200_228,
    202_710, 205_198, 207_691, 210_191, 212_697, 215_208, 217_726, 220_249, 222_779, 225_315,
    227_857, 230_405, 232_959, 235_520, 238_087, 240_660, 243_240, 245_826, 248_418, 251_017,
    253_622, 256_233, 258_852, 261_476, 264_108, 266_746, 269_390, 272_041, 274_699, 277_364,
    280_036, 282_714, 285_399, 288_091, 290_790, 293_496, 296_209, 298_929, 301_657, 304_391,
    307_132, 309_881, 312_636, 315_400, 318_170, 320_948, 323_733, 326_525, 329_325, 332_132,
    334_947, 337_770, 340_600, 343_438, 346_284, 349_137, 351_998, 354_867, 357_743, 360_628,
    363_521, 366_421, 369_330, 372_247, 375_172, 378_105, 381_046, 383_996, 386_954, 389_920,
    392_895, 395_878, 398_869, 401_870, 404_878, 407_896, 410_922, 413_957, 417_001, 420_053,
    423_115, 426_185, 429_265, 432_354, 435_451, 438_558, 441_674, 444_800, 447_935, 451_079,
    454_232, 457_395, 460_568, 463_750, 466_942, 470_144, 473_356, 476_577, 479_809, 483_050,
    486_301, 489_563, 492_835, 496_116, 499_409, 502_711, 506_024, 509_348, 512_682, 516_027,
    519_382, 522_748, 526_125, 529_513, 532_912, 536_322, 539_744, 543_176, 546_619, 550_074,
    553_541, 557_019, 560_508, 564_009, 567_522, 571_047, 574_583, 578_132, 581_692, 585_265,
    588_850, 592_447, 596_056, 599_678, 603_313, 606_960, 610_620, 614_293, 617_979, 621_677,
    625_389, 629_114, 632_852, 636_604, 640_369, 644_148, 647_940, 651_746, 655_566, 659_400,
    663_248, 667_110, 670_987, 674_877, 678_783, 682_703, 686_637, 690_587, 694_551, 698_530,
    702_525, 706_535, 710_560, 714_601, 718_657, 722_729, 726_817,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(traffic: u64, spacing: Spacing) -> Settings {
        Settings { traffic, spacing, ..Settings::default() }
    }

    #[test]
    fn even_arrival_n_is_at_n_over_the_rate_rounded_down() {
        let arrivals = Arrivals::new(&settings(6, Spacing::Even));
        let times = arrivals.upcoming(1_000_000, 99);
        assert_eq!(times, [0, 166_666, 333_333, 500_000, 666_666, 833_333]);
    }

    #[test]
    fn no_traffic_brings_no_request() {
        for spacing in [Spacing::Even, Spacing::Poisson] {
            assert_eq!(Arrivals::new(&settings(0, spacing)).next_at(), None);
        }
    }

    #[test]
    fn a_restart_waits_one_gap_so_that_dragging_a_slider_sends_nothing() {
        let mut arrivals = Arrivals::new(&settings(6, Spacing::Even));
        arrivals.restart(&settings(4, Spacing::Even), 1_000_000);
        assert_eq!(arrivals.next_at(), Some(1_250_000));
    }

    #[test]
    fn the_table_holds_the_rounded_logarithms() {
        let scale = 1_048_576.0_f64;
        for (i, value) in QUANTILES.iter().enumerate() {
            let exact = -(1.0 - i as f64 / 512.0).ln() * scale;
            assert!((*value as f64 - exact).abs() <= 0.5, "row {i}: {value} is not {exact}");
        }
        assert_eq!(QUANTILES[256], LN_2);
    }

    #[test]
    fn random_gaps_have_the_mean_the_spread_and_the_tail_of_an_exponential() {
        let mut random = SplitMix(SEED);
        let gaps: Vec<f64> = (0..200_000).map(|_| random.gap() as f64 / MEAN as f64).collect();
        let mean = gaps.iter().sum::<f64>() / 200_000.0;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / 200_000.0;
        let tail = gaps.iter().filter(|gap| **gap > 3.0).count() as f64 / 200_000.0;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
        assert!((square - 2.0).abs() < 0.04, "second moment {square}");
        assert!((tail - (-3.0_f64).exp()).abs() < 0.002, "beyond three gaps {tail}");
    }

    #[test]
    fn the_same_seed_draws_the_same_stream() {
        let first = Arrivals::new(&settings(3, Spacing::Poisson)).upcoming(u64::MAX, 50);
        let again = Arrivals::new(&settings(3, Spacing::Poisson)).upcoming(u64::MAX, 50);
        assert_eq!(first, again);
        assert!(first.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
