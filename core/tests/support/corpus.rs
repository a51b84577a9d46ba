//! The corpus of decisions, run by the core: natively, and in the page's tests in a browser.

#[path = "told.rs"]
mod told;

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
};
use told::told;
use weir_core::{
    config,
    key::{Facts, fields::FieldValue},
    limiter::{Ask, State},
    policy::{Limit, Policy},
    units::Instant,
};
use weir_vectors::{Arrival, Case, Told};

/// What is kept of one caller.
#[derive(Default)]
struct Caller {
    state: State,
    /// Permits that it holds, the oldest first.
    permits: VecDeque<u64>,
}

/// An arrival as the facts of a request.
struct Request<'a>(&'a Arrival);

impl Facts for Request<'_> {
    fn header(&self, name: &str) -> FieldValue<'_> {
        match name {
            "x-api-key" => FieldValue::One(self.0.key.as_bytes()),
            "x-priority" if self.0.critical => FieldValue::One(b"critical"),
            _ => FieldValue::Missing,
        }
    }

    fn method(&self) -> Option<&[u8]> {
        None
    }

    fn path(&self) -> Option<&[u8]> {
        None
    }

    fn host(&self) -> Option<&[u8]> {
        None
    }

    fn client_ip(&self) -> Option<IpAddr> {
        None
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn metadata(&self, _: &str, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

/// Runs a case against states that live in a map, and lists what differs.
pub(crate) fn differences(case: &Case) -> anyhow::Result<Vec<String>> {
    let policies: Vec<Policy> = case
        .policies()
        .iter()
        .map(|text| config::parse(text.as_bytes()))
        .collect::<Result<_, _>>()?;
    let mut callers = BTreeMap::<String, Caller>::new();
    let mut id = 0;
    case.differences(|arrival| {
        id += 1;
        let caller = callers.entry(arrival.key.clone()).or_default();
        caller.release(arrival.release);
        Ok(caller.ask(&policies[arrival.phase].limits[0], arrival, id))
    })
}

impl Caller {
    fn release(&mut self, permits: u64) {
        for _ in 0..permits {
            let Some(id) = self.permits.pop_front() else { return };
            if let State::Permits(held) = &self.state
                && let Some(left) = held.release(id)
            {
                self.state = State::Permits(left);
            }
        }
    }

    fn ask(&mut self, limit: &Limit, arrival: &Arrival, id: u64) -> Told {
        let facts = Request(arrival);
        let tier = &limit.tiers.default;
        let ask = Ask { cost: limit.cost.of(&facts), floor: limit.floor(tier, 0, &facts), id };
        let step = tier.limiter(0).step(&self.state, Instant::from_micros(arrival.now), ask);
        if let Some(state) = step.state {
            self.state = state;
        }
        if step.decision.is_allowed() {
            self.permits.push_back(id);
        }
        told(&step.decision)
    }
}
