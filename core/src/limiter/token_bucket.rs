//! The token bucket, which is also GCRA: one instant, told two ways.
//!
//! A rate of L tokens per W ticks is reduced by its greatest common divisor to l per w. A token is
//! then w *units*, a tick brings l units, and a full bucket holds burst · w units: all integers.
//! The whole state is **when the bucket will be full again**: a time T and a remainder r < l. At
//! `now` the bucket lacks D = max(0, (T − now) · l + r) units; a request of cost n passes iff
//! D + n · w ≤ burst · w, and then T and r are `now` plus (D + n · w) divided by l, with
//! remainder. T is also the theoretical arrival time of the generic cell rate algorithm (ATM
//! Forum, *Traffic Management 4.0*, 1996), so a bucket and a GCRA decide alike; nothing is
//! rounded, so nothing drifts.
//!
//! ```
//! use weir_core::limiter::token_bucket::{BucketState, TokenBucket};
//! use weir_core::units::{Cost, Instant, Micros, Rate};
//!
//! let rate = Rate::new(4, Micros::SECOND).unwrap();
//! let bucket = TokenBucket::new(rate, 10).unwrap();
//! let now = Instant::from_micros(1_700_000_000_000_000);
//! let mut state = BucketState::FULL;
//! let mut passed = 0;
//! for _ in 0..12 {
//!     let step = bucket.step(state, now, Cost::ONE);
//!     passed += u64::from(step.decision.is_allowed());
//!     state = step.state.unwrap_or(state);
//! }
//! assert_eq!(passed, 10); // a burst of 12 on a full bucket of 10
//! ```

use super::{Step, tick::Tick};
use crate::{
    bounds,
    decision::{Decision, Never, Outcome},
    units::{Cost, Instant, Micros, Rate},
};
use core::num::NonZeroU64;

/// A token bucket of one rate and burst, reduced to whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Length of the tick that T is counted in.
    tick: Tick,
    /// w: units that make one token.
    token: NonZeroU64,
    /// l: units that one tick brings.
    refill: NonZeroU64,
    /// burst · w: units of a full bucket.
    capacity: u64,
    /// Tokens of a full bucket.
    burst: u64,
}

/// When the bucket will be full again. [`BucketState::FULL`] is the state of a key never seen:
/// a full bucket and no bucket are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BucketState {
    /// T: microseconds since the epoch; a whole number of ticks of the bucket that wrote it.
    full_at: u64,
    /// r: units still missing at T; less than one tick of refill.
    remainder: u64,
}

/// Why a rate and burst make no bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The burst is outside [`bounds::BURST`].
    Burst,
    /// The rate is 0; [`super::Limiter::Closed`] is that limit.
    Closed,
    /// With every tick, capacity would reach 2^53 units or filling would take more than 2^52 µs.
    TooLarge,
}

impl core::fmt::Display for Unfit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Burst => write!(f, "burst must be {}", bounds::BURST),
            Self::Closed => f.write_str("a rate of 0 needs no bucket"),
            Self::TooLarge => f.write_str(
                "this rate with this burst cannot be counted exactly: the bucket would need 2^53 \
                 units or over 142 years to fill, even at a tick of 1 s; lower the burst or shorten \
                 the window",
            ),
        }
    }
}

impl core::error::Error for Unfit {}

impl BucketState {
    /// A full bucket: nothing is missing at any time.
    pub const FULL: BucketState = BucketState { full_at: 0, remainder: 0 };

    /// A stored state, or `None` if a number is outside what [`TokenBucket::step`] can write
    /// (2^53 − 1 each).
    #[must_use]
    pub const fn from_parts(full_at: u64, remainder: u64) -> Option<Self> {
        if bounds::UNITS.contains(full_at) && bounds::UNITS.contains(remainder) {
            Some(Self { full_at, remainder })
        } else {
            None
        }
    }

    /// T in microseconds since the epoch, and the remainder r in units.
    #[must_use]
    pub const fn to_parts(self) -> (u64, u64) {
        (self.full_at, self.remainder)
    }
}

impl TokenBucket {
    /// A bucket that `rate` fills and that holds `burst` tokens.
    ///
    /// The tick is the finest at which capacity plus one refill stays below 2^53 units and filling
    /// takes less than 2^52 µs; see [`bounds::UNITS`] and [`bounds::FILL_TIME`].
    ///
    /// # Errors
    /// [`Unfit`] says why there is no such bucket.
    pub fn new(rate: Rate, burst: u64) -> Result<Self, Unfit> {
        if rate.count() == 0 {
            return Err(Unfit::Closed);
        }
        if !bounds::BURST.contains(burst) {
            return Err(Unfit::Burst);
        }
        Tick::ALL.iter().find_map(|&tick| Self::with_tick(rate, burst, tick)).ok_or(Unfit::TooLarge)
    }

    /// The bucket at one tick, if its numbers stay in range.
    fn with_tick(rate: Rate, burst: u64, tick: Tick) -> Option<Self> {
        let per_window = rate.count().checked_mul(tick.length().get())?;
        let window = rate.window().get();
        let divisor = gcd(per_window, window);
        let refill = NonZeroU64::new(per_window.checked_div(divisor)?)?;
        let token = NonZeroU64::new(window.checked_div(divisor)?)?;
        let capacity = burst.checked_mul(token.get())?;
        let fits = bounds::UNITS.contains(capacity.checked_add(refill.get())?)
            && bounds::FILL_TIME.contains(tick.micros(capacity.div_ceil(refill.get())));
        fits.then_some(Self { tick, token, refill, capacity, burst })
    }

    /// The tick of this bucket: the resolution of its clock.
    #[must_use]
    pub const fn tick(&self) -> Tick {
        self.tick
    }

    /// Tokens of a full bucket.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// Units that make one token, for drawing a level finer than a token.
    #[must_use]
    pub const fn units_per_token(&self) -> u64 {
        self.token.get()
    }

    /// Units in the bucket at `now`, from 0 to `burst · units_per_token`.
    #[must_use]
    pub fn level(&self, state: BucketState, now: Instant) -> u64 {
        self.capacity.saturating_sub(self.debt(state, self.tick.containing(now)).0)
    }

    /// Time from `now` until the bucket is full, rounded up to the tick.
    #[must_use]
    pub fn full_after(&self, state: BucketState, now: Instant) -> Micros {
        self.ticks_from(
            now,
            self.debt(state, self.tick.containing(now)).0.div_ceil(self.refill.get()),
        )
    }

    /// Decides a request of `cost` at `now`.
    ///
    /// A refusal leaves the state as it is, with one exception, *repair*: a bucket that lacks more
    /// than its capacity has been written under another clock or another limit. It counts as empty
    /// now, and that is stored even on a refusal, so nobody is locked out for longer than an empty
    /// bucket needs. A clock that steps back by δ costs at most δ of refill.
    #[must_use]
    pub fn step(&self, state: BucketState, now: Instant, cost: Cost) -> Step {
        let now_tick = self.tick.containing(now);
        let (debt, repaired) = self.debt(state, now_tick);
        let kept = repaired.then(|| self.owing(debt, now_tick));
        let Some(price) = self.price(cost) else {
            let outcome = Outcome::Never(Never::CostAboveCapacity);
            return Step { decision: self.decision(outcome, debt, now), state: kept };
        };
        // Both at most `capacity`, which is below 2^53.
        let room = self.capacity.saturating_sub(debt);
        if price > room {
            let missing = price.saturating_sub(room).div_ceil(self.refill.get());
            let outcome = Outcome::Refused { retry_after: self.ticks_from(now, missing) };
            return Step { decision: self.decision(outcome, debt, now), state: kept };
        }
        let owed = debt.saturating_add(price);
        let state = if price == 0 { kept } else { Some(self.owing(owed, now_tick)) };
        Step { decision: self.decision(Outcome::Allowed, owed, now), state }
    }

    /// Units missing at a tick, and whether the state had to be repaired to say so.
    fn debt(&self, state: BucketState, now_tick: u64) -> (u64, bool) {
        let (full_tick, remainder) = self.aligned(state);
        let debt = match full_tick.checked_sub(now_tick) {
            // Where the product would not fit, it is above any capacity all the same.
            Some(ahead) => ahead.saturating_mul(self.refill.get()).saturating_add(remainder),
            None => {
                let refilled = now_tick.saturating_sub(full_tick).saturating_mul(self.refill.get());
                remainder.saturating_sub(refilled)
            }
        };
        if debt > self.capacity { (self.capacity, true) } else { (debt, false) }
    }

    /// T in this bucket's ticks, and its remainder. After a change of the limit, a time that is no
    /// whole number of these ticks and a remainder that this refill does not know are rounded up,
    /// by less than one tick.
    fn aligned(&self, state: BucketState) -> (u64, u64) {
        let tick = self.tick.covering(state.full_at);
        if !self.tick.divides(state.full_at) {
            (tick, 0)
        } else if state.remainder < self.refill.get() {
            (tick, state.remainder)
        } else {
            (tick.saturating_add(1), 0)
        }
    }

    /// The state that lacks `debt` units at a tick: (T, r) = now + debt / l.
    fn owing(&self, debt: u64, now_tick: u64) -> BucketState {
        let full_tick = now_tick.saturating_add(debt / self.refill);
        BucketState { full_at: self.tick.micros(full_tick), remainder: debt % self.refill }
    }

    /// Units of a cost; `None` above capacity.
    fn price(&self, cost: Cost) -> Option<u64> {
        cost.get().checked_mul(self.token.get()).filter(|price| *price <= self.capacity)
    }

    /// Time from `now` to the start of the tick that is `ticks` after the one `now` lies in.
    fn ticks_from(&self, now: Instant, ticks: u64) -> Micros {
        let at = self.tick.micros(self.tick.containing(now).saturating_add(ticks));
        Micros::new(at.saturating_sub(now.as_micros()))
    }

    fn decision(&self, outcome: Outcome, debt: u64, now: Instant) -> Decision {
        Decision {
            outcome,
            limit: self.burst,
            remaining: self.capacity.saturating_sub(debt) / self.token,
            reset_after: self.ticks_from(now, debt.div_ceil(self.refill.get())),
        }
    }
}

/// Greatest common divisor by Euclid; of 0 and n it is n.
fn gcd(mut a: u64, mut b: u64) -> u64 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}
