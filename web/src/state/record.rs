//! One decided request, and the events worth telling.

use weir_core::decision::{Decision, Outcome};

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The running traffic.
    Traffic,
    /// The burst button.
    Burst,
}

/// A request and what the bucket said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number since the reset, from 1.
    pub number: u64,
    /// When it came, in microseconds of simulated time.
    pub at: u64,
    /// Its place among the requests of its burst, from 0; 0 in the running traffic.
    pub place: u32,
    /// Where it came from.
    pub source: Source,
    /// What the bucket said.
    pub decision: Decision,
}

impl Record {
    /// Whether it passed.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// What the Retry-After header says, in whole seconds; `None` if it passed or never can.
    #[must_use]
    pub const fn retry_after(&self) -> Option<u64> {
        match self.decision.outcome {
            Outcome::Refused { retry_after } => Some(retry_after.whole_seconds_up()),
            Outcome::Allowed | Outcome::Delayed { .. } | Outcome::Never(_) => None,
        }
    }
}

/// Something that changed the picture, for a listener who cannot see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first refusal since a reset or since the bucket was last full.
    Empty {
        /// When, in microseconds.
        at: u64,
    },
    /// The bucket is full again after it had been empty.
    Full {
        /// When, in microseconds.
        at: u64,
    },
    /// A burst was decided.
    Burst(BurstResult),
}

/// What became of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstResult {
    /// Requests that passed.
    pub passed: u32,
    /// Requests that got 429.
    pub refused: u32,
}
