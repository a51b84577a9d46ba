//! Fixed and sliding windows: charges, each with the window it fell into, and a walk from window
//! to window.
//!
//! The window of a key without charges begins at a multiple of its length. It is followed by others
//! without a gap as long as a charge of one of the last two remains. A clock that is before the
//! window makes it begin now, with its charges and those of the window before it.

use super::{Limit, Model, NEVER, micros, whole};
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use weir_core::{
    decision::{Decision, Outcome},
    limiter::Ask,
    units::{Micros, Rate},
};

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// The charges of the window.
    Fixed,
    /// And the share of the ones before that still overlaps.
    Sliding,
}

#[derive(Clone)]
pub(crate) struct Windows {
    count: Count,
    limit: u64,
    tick: u64,
    /// In ticks, as all times here.
    length: u64,
    start: i128,
    charges: Vec<Charge>,
}

#[derive(Clone)]
struct Charge {
    window: i128,
    cost: u64,
}

impl Windows {
    pub(crate) fn new(rate: Rate, tick: u64, count: Count) -> Self {
        let (limit, length) = (rate.count(), rate.window().get() / tick);
        Self { count, limit, tick, length, start: 0, charges: Vec::new() }
    }

    /// Walks to the window in which a tick lies; whether the clock was before it.
    fn walk(&mut self, tick: u64) -> bool {
        let (now, length) = (i128::from(tick), i128::from(self.length));
        let back = !self.charges.is_empty() && now < self.start;
        if back {
            let shift = self.start - now;
            self.charges.iter_mut().for_each(|charge| charge.window -= shift);
            self.start = now;
        }
        while !self.charges.is_empty() && now >= self.start + length {
            self.start += length;
            let oldest = self.start - length;
            self.charges.retain(|charge| charge.window >= oldest);
        }
        if self.charges.is_empty() {
            self.start = now - now % length;
        }
        back
    }

    fn taken(&self, window: i128) -> u64 {
        self.charges.iter().filter(|c| c.window == window).map(|c| c.cost).sum()
    }

    /// Forgets what the window has taken beyond the limit.
    fn cut(&mut self, window: i128) -> bool {
        let mut left = self.limit;
        let above = self.taken(window) > left;
        for charge in self.charges.iter_mut().filter(|charge| charge.window == window) {
            charge.cost = charge.cost.min(left);
            left -= charge.cost;
        }
        self.charges.retain(|charge| charge.cost > 0);
        above
    }

    fn previous(&self) -> i128 {
        self.start - i128::from(self.length)
    }

    /// Tokens that count at a tick of this window.
    fn estimate(&self, tick: u64) -> BigRational {
        let current = whole(self.taken(self.start));
        if self.count == Count::Fixed {
            return current;
        }
        let ends = self.start + i128::from(self.length);
        let overlap = whole(u64::try_from(ends - i128::from(tick)).expect("within the window"));
        current + whole(self.taken(self.previous())) * overlap / whole(self.length)
    }

    /// The first tick from one on at which so many tokens would be counted at most, if nothing
    /// else happened: a search, since the count never grows.
    fn drops_to(&self, most: u64, from: u64) -> u64 {
        let holds = |tick: u64| {
            let mut later = self.clone();
            later.walk(tick);
            later.estimate(tick) <= whole(most)
        };
        let (mut low, mut high) = (from, from + 2 * self.length);
        assert!(holds(high));
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }

    fn reset_after(&self, now: u64) -> Micros {
        let windows = match (self.taken(self.previous()), self.taken(self.start)) {
            (_, current) if current > 0 => 1 + i128::from(self.count == Count::Sliding),
            (previous, _) if previous > 0 && self.count == Count::Sliding => 1,
            _ => return Micros::ZERO,
        };
        let ends = self.start + windows * i128::from(self.length);
        micros(u64::try_from(ends).expect("a time") * self.tick - now)
    }

    /// Walks to a tick, and whether something had to be put right there.
    fn repair(&mut self, tick: u64) -> bool {
        let mut repaired = self.walk(tick);
        repaired |= self.cut(self.start);
        if self.count == Count::Sliding {
            repaired |= self.cut(self.previous());
        }
        repaired
    }

    fn answer(&mut self, now: u64, ask: Ask) -> Outcome {
        let (tick, cost) = (now / self.tick, ask.cost.get());
        let most = self.limit.checked_sub(ask.floor).and_then(|left| left.checked_sub(cost));
        match most {
            _ if cost == 0 => Outcome::Allowed,
            None => NEVER,
            Some(most) if self.estimate(tick) > whole(most) => {
                let due = self.drops_to(most, tick) * self.tick;
                Outcome::Refused { retry_after: micros(due - now) }
            }
            Some(_) => {
                self.charges.push(Charge { window: self.start, cost });
                Outcome::Allowed
            }
        }
    }

    fn decision(&self, outcome: Outcome, now: u64) -> Decision {
        let estimate = self.estimate(now / self.tick);
        let room = (whole(self.limit) - estimate).max(BigRational::zero());
        Decision {
            outcome,
            limit: self.limit,
            remaining: room.to_integer().to_u64().expect("a number of tokens"),
            reset_after: self.reset_after(now),
        }
    }
}

impl Model for Windows {
    fn ask(&mut self, now: u64, ask: Ask) -> (Decision, bool) {
        let mut seen = self.clone();
        let repaired = seen.repair(now / self.tick);
        let outcome = seen.answer(now, ask);
        let decision = seen.decision(outcome, now);
        // A refusal is forgotten, and so is all that was only looked at.
        if repaired || (outcome == Outcome::Allowed && ask.cost.get() > 0) {
            *self = seen;
        }
        (decision, repaired)
    }

    fn change(&mut self, _now: u64, limit: &Limit, _: Option<&BigRational>) {
        let (Limit::FixedWindow { rate } | Limit::SlidingWindow { rate }) = *limit else {
            panic!("{limit:?}")
        };
        let mut changed = Self::new(rate, limit.tick(), self.count);
        // The window goes on with its charges, and so does the one before it.
        let start = self.start * i128::from(self.tick) / i128::from(changed.tick);
        let previous = start - i128::from(changed.length);
        changed.start = start;
        changed.charges = self.charges.clone();
        for charge in &mut changed.charges {
            charge.window = if charge.window == self.start { start } else { previous };
        }
        *self = changed;
    }

    fn refund(&mut self, charged: u64, now: u64, ask: Ask) {
        self.walk(now / self.tick);
        let tick = i128::from(charged / self.tick);
        let window = if tick >= self.start { self.start } else { self.previous() };
        let counts = tick >= window && (window == self.start || self.count == Count::Sliding);
        let charge = self
            .charges
            .iter()
            .position(|charge| charge.window == window && charge.cost == ask.cost.get());
        if let Some(charge) = charge.filter(|_| counts) {
            self.charges.swap_remove(charge);
        }
    }
}
