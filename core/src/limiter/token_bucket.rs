//! The token bucket, which is also GCRA: one instant, told two ways.
//!
//! A bucket holds up to `burst` tokens and refills at a rate; a request takes tokens, and passes if
//! there are enough. What is missing from a full bucket is a debt that drains, so the whole state
//! is **when the bucket will be full again** (see [`DebtState`]): with l units a tick and w units a
//! token, a request of cost n passes iff D + n · w ≤ burst · w, where D is the debt at `now`. That
//! instant is also the theoretical arrival time of the generic cell rate algorithm (ATM Forum,
//! *Traffic Management 4.0*, 1996), so a bucket and a GCRA decide alike.
//!
//! ```
//! use weir_core::limiter::{Algorithm, Ask, debt::DebtState, token_bucket::TokenBucket};
//! use weir_core::units::{Instant, Micros, Rate};
//!
//! let rate = Rate::new(4, Micros::SECOND).unwrap();
//! let bucket = TokenBucket::new(rate, 10).unwrap();
//! let now = Instant::from_micros(1_700_000_000_000_000);
//! let mut state = DebtState::NONE;
//! let mut passed = 0;
//! for _ in 0..12 {
//!     let step = bucket.step(&state, now, Ask::ONE);
//!     passed += u64::from(step.decision.is_allowed());
//!     state = step.state.unwrap_or(state);
//! }
//! assert_eq!(passed, 10); // a burst of 12 on a full bucket of 10
//! ```

use super::{
    Algorithm, Ask, Step, Unfit,
    debt::{DebtState, Drain},
    tick::Tick,
};
use crate::{
    bounds,
    decision::Outcome,
    units::{Instant, Micros, Rate},
};

/// A token bucket of one rate and burst, reduced to whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    drain: Drain,
    /// Tokens of a full bucket.
    burst: u64,
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
        let drain = Drain::fit(rate, |token, _, _| burst.checked_mul(token.get()));
        drain.map(|drain| Self { drain, burst }).ok_or(Unfit::TooLarge)
    }

    /// The tick of this bucket: the resolution of its clock.
    #[must_use]
    pub const fn tick(&self) -> Tick {
        self.drain.tick
    }

    /// Tokens of a full bucket.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// Units that make one token (w).
    #[must_use]
    pub const fn units_per_token(&self) -> u64 {
        self.drain.token.get()
    }

    /// Units in the bucket at `now`, from 0 to `burst · units_per_token`: a level finer than a
    /// token, to draw.
    #[must_use]
    pub fn level(&self, state: DebtState, now: Instant) -> u64 {
        let debt = self.drain.debt(state, self.drain.tick.containing(now));
        self.drain.capacity.saturating_sub(debt.units)
    }

    /// What the debt of this bucket drains by.
    pub(crate) const fn drain(&self) -> &Drain {
        &self.drain
    }
}

impl Algorithm for TokenBucket {
    type State = DebtState;

    #[inline]
    fn step(&self, state: &DebtState, now: Instant, ask: Ask) -> Step<DebtState> {
        self.drain.step(self.burst, *state, now, ask, |_| Outcome::Allowed)
    }

    fn idle_after(&self, state: &DebtState, now: Instant) -> Micros {
        self.drain.idle_after(*state, now)
    }

    fn refund(
        &self,
        state: &DebtState,
        charged: Instant,
        now: Instant,
        ask: Ask,
    ) -> Option<DebtState> {
        self.drain.refund(*state, charged, now, ask)
    }
}
