//! A decision of the core as the corpus compares it.

use weir_core::{
    decision::{Decision, Outcome},
    units::Micros,
};
use weir_vectors::{Outcome as Expected, Seen, Told, Wait};

pub(crate) fn told(decision: &Decision) -> Told {
    let micros = |span: Micros| Some(Wait::Micros(span.get()));
    let (outcome, retry_after) = match decision.outcome {
        Outcome::Allowed => (Expected::Allowed, None),
        Outcome::Delayed { delay } => (Expected::Delayed, micros(delay)),
        Outcome::Refused { retry_after } => (Expected::Refused, micros(retry_after)),
        Outcome::Never(_) => (Expected::Never, None),
    };
    let seen = Seen { outcome, remaining: Some(decision.remaining), retry_after };
    Told { seen, reset_after: micros(decision.reset_after) }
}
