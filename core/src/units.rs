//! Quantities with their units: instants, spans, costs and rates.
//!
//! Every type keeps its integer private, is built through a constructor that checks the range in
//! [`crate::bounds`], and is read through a getter that names the unit. No operation here wraps:
//! each is checked or saturates where its documentation says so.

use crate::bounds;

/// A point in time: whole microseconds since the Unix epoch, from 0 to 2^52 − 1 (the year 2112).
///
/// The range leaves room for an instant plus the time a bucket needs to fill
/// ([`bounds::FILL_TIME`]) below 2^53, up to which a Redis script computes exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The Unix epoch.
    pub const EPOCH: Instant = Instant(0);
    /// The last instant of the range.
    pub const MAX: Instant = Instant((1 << 52) - 1);

    /// An instant from microseconds since the epoch; later than [`Instant::MAX`] becomes that.
    ///
    /// ```
    /// use weir_core::units::Instant;
    /// assert_eq!(Instant::from_micros(5).as_micros(), 5);
    /// assert_eq!(Instant::from_micros(u64::MAX), Instant::MAX);
    /// ```
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        if micros > Self::MAX.0 { Self::MAX } else { Self(micros) }
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This instant plus a span, no later than [`Instant::MAX`].
    #[must_use]
    pub const fn saturating_add(self, span: Micros) -> Self {
        Self::from_micros(self.0.saturating_add(span.0))
    }

    /// The span from an earlier instant to this one; zero if `earlier` is in fact later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Instant) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time in whole microseconds, from 0 to 2^64 − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(u64);

impl Micros {
    /// No time.
    pub const ZERO: Micros = Micros(0);
    /// One second.
    pub const SECOND: Micros = Micros(1_000_000);

    /// A span of so many microseconds.
    #[must_use]
    pub const fn new(micros: u64) -> Self {
        Self(micros)
    }

    /// The span in microseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The span in whole seconds, rounded up: what `Retry-After` can say without asking a client
    /// to come back too early.
    ///
    /// ```
    /// use weir_core::units::Micros;
    /// assert_eq!(Micros::new(0).whole_seconds_up(), 0);
    /// assert_eq!(Micros::new(1).whole_seconds_up(), 1);
    /// assert_eq!(Micros::new(1_000_000).whole_seconds_up(), 1);
    /// assert_eq!(Micros::new(1_000_001).whole_seconds_up(), 2);
    /// ```
    #[must_use]
    pub const fn whole_seconds_up(self) -> u64 {
        self.0.div_ceil(Self::SECOND.0)
    }
}

/// What one request takes from a limit, in tokens; see [`bounds::COST`]. A cost of 0 asks whether
/// anything could pass and takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Takes nothing.
    pub const ZERO: Cost = Cost(0);
    /// The cost of an ordinary request.
    pub const ONE: Cost = Cost(1);

    /// A cost in tokens, or `None` outside [`bounds::COST`].
    #[must_use]
    pub const fn new(tokens: u64) -> Option<Self> {
        if bounds::COST.contains(tokens) { Some(Self(tokens)) } else { None }
    }

    /// The cost of a request, brought into [`bounds::REQUEST_COST`].
    #[must_use]
    pub fn of_request(tokens: u64) -> Self {
        Self(tokens.clamp(bounds::REQUEST_COST.min, bounds::REQUEST_COST.max))
    }

    /// The cost in tokens.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// So many tokens per window: `1000/minute` is a count of 1000 and a window of 60 s.
///
/// The pair is kept as written, not reduced: it is also what a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    count: u64,
    window: Micros,
}

impl Rate {
    /// A rate of `count` tokens ([`bounds::RATE_COUNT`]) per `window` ([`bounds::WINDOW`]), or
    /// `None` outside those ranges. A count of 0 is allowed and refuses every request.
    ///
    /// ```
    /// use weir_core::units::{Micros, Rate};
    /// let rate = Rate::new(1000, Micros::new(60_000_000)).unwrap();
    /// assert_eq!(rate.per_second_up(), 17); // 16.667 tokens arrive in a second
    /// ```
    #[must_use]
    pub const fn new(count: u64, window: Micros) -> Option<Self> {
        if bounds::RATE_COUNT.contains(count) && bounds::WINDOW.contains(window.0) {
            Some(Self { count, window })
        } else {
            None
        }
    }

    /// Tokens per window.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.count
    }

    /// The window.
    #[must_use]
    pub const fn window(self) -> Micros {
        self.window
    }

    /// Tokens that one second brings, rounded up: the burst of a limit that names none.
    #[must_use]
    pub const fn per_second_up(self) -> u64 {
        // At most 10^9 · 10^6, far below 2^64.
        self.count.saturating_mul(Micros::SECOND.0).div_ceil(self.window.0)
    }
}
