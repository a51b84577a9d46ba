//! Random limits over the bounds table, and requests that try them.

use weir_core::{
    bounds::{self, Bound},
    limiter::{
        Ask, Limiter, State, concurrency::Concurrency, fixed_window::FixedWindow,
        leaky_bucket::LeakyBucket, sliding_log::SlidingLog, sliding_window::SlidingWindow,
        token_bucket::TokenBucket,
    },
    units::{Cost, Instant, Micros, Rate},
};

/// A limit of each algorithm, of 5 in a window.
pub(crate) fn one_of_each(window: Micros) -> [Limiter; 7] {
    let rate = Rate::new(5, window).unwrap();
    // Three of a rate that does not divide the second leave a remainder.
    let odd = Rate::new(3, Micros::new(window.get() + 1)).unwrap();
    [
        Limiter::TokenBucket(TokenBucket::new(rate, 5).unwrap()),
        Limiter::TokenBucket(TokenBucket::new(odd, 5).unwrap()),
        Limiter::FixedWindow(FixedWindow::new(rate).unwrap()),
        Limiter::SlidingWindow(SlidingWindow::new(rate).unwrap()),
        Limiter::SlidingLog(SlidingLog::new(rate).unwrap()),
        Limiter::LeakyBucket(LeakyBucket::new(rate, window).unwrap()),
        Limiter::Concurrency(Concurrency::new(5, window).unwrap()),
    ]
}

/// A sequence of numbers that a seed decides: SplitMix64 (Steele, Lea and Flood, *Fast splittable
/// pseudorandom number generators*, 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above 0.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number below `end`, which is above 0.
    pub(crate) fn below_len(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap()
    }

    /// True in so many of a hundred.
    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// A number of the range, every order of magnitude as likely as another.
    fn between(&mut self, min: u64, max: u64) -> u64 {
        let bits = self.below(65 - u64::from((max - min).leading_zeros()));
        min + self.below((1 << bits).min(max - min) + 1)
    }

    /// One of some, mostly of the last, which is no longer among them.
    pub(crate) fn taken<T>(&mut self, from: &mut Vec<T>) -> T {
        let back = if self.percent(60) { from.len().min(3) } else { from.len() };
        let place = from.len() - 1 - self.below_len(back);
        from.remove(place)
    }

    fn within(&mut self, bound: Bound) -> u64 {
        self.between(bound.min, bound.max)
    }

    fn rate(&mut self, most: u64) -> Rate {
        let common = [1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000];
        let window = if self.percent(50) {
            common[self.below_len(common.len())]
        } else {
            self.within(bounds::WINDOW)
        };
        Rate::new(self.between(1, most), Micros::new(window)).unwrap()
    }

    /// A limit of any algorithm and numbers. Half have small counts, which a run can use up.
    pub(crate) fn limiter(&mut self) -> Limiter {
        loop {
            let kind = self.below(7);
            if let Some(limiter) = self.limiter_of(kind) {
                return limiter;
            }
        }
    }

    fn limiter_of(&mut self, kind: u64) -> Option<Limiter> {
        let most = if self.percent(50) { 50 } else { bounds::RATE_COUNT.max };
        let rate = self.rate(most);
        let small = Rate::new(rate.count().min(bounds::ENTRIES.max), rate.window())?;
        let entries = self.between(1, if most == 50 { 20 } else { bounds::ENTRIES.max });
        match kind {
            0 | 1 => {
                let burst = self.between(1, if most == 50 { 100 } else { bounds::BURST.max });
                TokenBucket::new(rate, burst).ok().map(Limiter::TokenBucket)
            }
            2 => FixedWindow::new(rate).ok().map(Limiter::FixedWindow),
            3 => SlidingWindow::new(rate).ok().map(Limiter::SlidingWindow),
            4 => SlidingLog::new(small).ok().map(Limiter::SlidingLog),
            5 => {
                let delay = Micros::new(self.within(bounds::MAX_DELAY));
                LeakyBucket::new(rate, delay).ok().map(Limiter::LeakyBucket)
            }
            _ => {
                let lease = Micros::new(self.within(bounds::LEASE));
                Concurrency::new(entries, lease).ok().map(Limiter::Concurrency)
            }
        }
    }

    /// Another limit, mostly of the same algorithm.
    pub(crate) fn changed(&mut self, limiter: &Limiter) -> Limiter {
        let kind = match limiter {
            Limiter::Closed | Limiter::TokenBucket(_) => 0,
            Limiter::FixedWindow(_) => 2,
            Limiter::SlidingWindow(_) => 3,
            Limiter::SlidingLog(_) => 4,
            Limiter::LeakyBucket(_) => 5,
            Limiter::Concurrency(_) => 6,
        };
        if self.percent(20) {
            return self.limiter();
        }
        loop {
            if let Some(limiter) = self.limiter_of(kind) {
                return limiter;
            }
        }
    }

    /// When a run begins: today, or at an end of the clock's range.
    pub(crate) fn start(&mut self) -> Instant {
        match self.below(10) {
            0 => Instant::from_micros(self.within(bounds::WINDOW)),
            1 => Instant::from_micros(Instant::MAX.as_micros() - self.within(bounds::WINDOW)),
            _ => Instant::from_micros(1_700_000_000_000_000 + self.below(1_000_000_000)),
        }
    }

    /// The time of the next call, mostly later by a share of what the limit takes to recover.
    pub(crate) fn step(&mut self, now: Instant, limiter: &Limiter) -> Instant {
        let one = limiter.step(&State::None, now, Ask::ONE).decision.reset_after.get().max(1);
        let back = |span: u64| Instant::from_micros(now.as_micros().saturating_sub(span));
        let ahead = |span: u64| now.saturating_add(Micros::new(span));
        match self.below(100) {
            0..30 => now,
            30..60 => ahead(self.between(0, one)),
            60..75 => ahead(self.below(one.saturating_mul(3))),
            75..80 => ahead(one - 1),
            80..85 => ahead(one),
            85..90 => ahead(self.within(bounds::WINDOW)),
            90..96 => back(self.between(0, one.saturating_mul(3))),
            _ => back(self.within(bounds::WINDOW)),
        }
    }

    pub(crate) fn id(&mut self) -> u64 {
        if self.percent(90) { self.below(30) } else { u64::MAX - self.below(3) }
    }

    /// A request, of costs and reserves that the limit can and cannot meet.
    pub(crate) fn ask(&mut self, limiter: &Limiter) -> Ask {
        let limit = limiter.peek(&State::None, Instant::EPOCH).limit;
        let cost = match self.below(100) {
            0..8 => 0,
            8..45 => 1,
            45..70 => self.between(1, limit.max(2) / 2),
            70..92 => self.between(1, limit),
            92..96 => limit,
            96..98 => limit + 1,
            _ => self.within(bounds::COST),
        };
        let floor = match self.below(20) {
            0..14 => 0,
            14..18 => self.between(0, limit.max(2) / 2),
            18 => self.between(0, limit),
            _ => u64::MAX - self.below(2),
        };
        let cost = Cost::new(cost.min(bounds::COST.max)).unwrap();
        Ask { cost, floor, id: self.id() }
    }
}
