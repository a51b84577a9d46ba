//! The corpus of decisions, run by the core: natively, and in the page's tests in a browser.

use std::collections::BTreeMap;
use weir_core::{
    config,
    decision::{Decision, Outcome},
    limiter::{Ask, State},
    policy::RequestCost,
    units::Instant,
};
use weir_vectors::{Case, Outcome as Expected, Seen, Wait};

/// Runs a case against buckets that live in a map, and lists what differs.
pub(crate) fn differences(case: &Case) -> anyhow::Result<Vec<String>> {
    let policies: Vec<_> = case
        .policies()
        .iter()
        .map(|text| config::parse(text.as_bytes()))
        .collect::<Result<_, _>>()?;
    let mut buckets = BTreeMap::<String, State>::new();
    case.differences(|arrival| {
        let limit = &policies[arrival.phase].limits[0];
        let state = buckets.get(&arrival.key).cloned().unwrap_or_default();
        let limiter = limit.tiers.default.limiter(0);
        let RequestCost::Fixed(cost) = limit.cost else { anyhow::bail!("a fixed cost") };
        let step = limiter.step(&state, Instant::from_micros(arrival.now), Ask::of(cost));
        if let Some(state) = step.state {
            buckets.insert(arrival.key.clone(), state);
        }
        Ok(seen(&step.decision))
    })
}

fn seen(decision: &Decision) -> Seen {
    let (outcome, retry_after) = match decision.outcome {
        Outcome::Allowed | Outcome::Delayed { .. } => (Expected::Allowed, None),
        Outcome::Refused { retry_after } => {
            (Expected::Refused, Some(Wait::Micros(retry_after.get())))
        }
        Outcome::Never(_) => (Expected::Never, None),
    };
    Seen { outcome, remaining: Some(decision.remaining), retry_after }
}
