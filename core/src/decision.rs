//! What a limit says about one request.

use crate::units::Micros;

/// The answer of one limit to one request, with what the client may be told.
///
/// All spans count from the `now` that was given to the step. `limit`, `remaining` and the spans
/// describe the limit *after* the request was charged, or, refused, as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request passes, and if not, why and until when.
    pub outcome: Outcome,
    /// The most that could ever pass at once, in tokens.
    pub limit: u64,
    /// Whole tokens left, rounded down.
    pub remaining: u64,
    /// Time until the limit is as if unused, rounded up to a whole microsecond.
    pub reset_after: Micros,
}

/// Whether a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request passes and has been charged.
    Allowed,
    /// The request has been charged and passes after a wait in the queue.
    Delayed {
        /// How long to hold the request, rounded up to the tick of the limit; never zero.
        delay: Micros,
    },
    /// The request does not pass now. Nothing was charged.
    Refused {
        /// The same request passes at exactly this time from `now` (rounded up to the tick of the
        /// limit) if nothing else is charged meanwhile, and at no earlier time.
        retry_after: Micros,
    },
    /// The request can never pass, however long the client waits.
    Never(Never),
}

/// Why a request can never pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {
    /// The limit is 0: the incident switch.
    Closed,
    /// The request costs more than the limit can ever hold.
    CostAboveCapacity,
}

impl Outcome {
    /// Whether the request passes, at once or after a wait.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed | Self::Delayed { .. })
    }
}

impl Decision {
    /// Whether the request passes, at once or after a wait.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.outcome.is_allowed()
    }
}
