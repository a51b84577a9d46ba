//! One request: from its fields to its answer.

use crate::{
    host::{Counters, HostError, SharedData},
    metrics::Metric,
    plugin::Plugin,
    store::Failure,
};
use weir_core::{
    decision::Decision,
    key::Facts,
    policy::{Limit, MissingKey},
    response::{self, Answer, Verdict},
    units::Instant,
};

/// Decides a request. `now` is the wall clock's time, or what the host said instead of one.
///
/// A validated policy has one limit, so a request that is refused has been charged nowhere.
pub fn decide(
    plugin: &Plugin,
    facts: &impl Facts,
    now: Result<Instant, HostError>,
    host: &(impl SharedData + Counters),
) -> Answer {
    let mut headers = Vec::new();
    for limit in &plugin.policy.limits {
        let verdict = verdict(plugin, limit, facts, now, host);
        match response::answer(limit, verdict) {
            Answer::Pass(more) => headers.extend(more),
            reply @ Answer::Reply(_) => return reply,
        }
    }
    Answer::Pass(headers)
}

fn verdict(
    plugin: &Plugin,
    limit: &Limit,
    facts: &impl Facts,
    now: Result<Instant, HostError>,
    host: &(impl SharedData + Counters),
) -> Verdict {
    let parts: Vec<_> = limit.key.iter().map(|part| part.value(facts)).collect();
    if parts.contains(&None) {
        plugin.metrics.count(host, Metric::MissingKey);
        if limit.missing_key != MissingKey::Share {
            return Verdict::KeyMissing;
        }
    }
    // No part that is present is empty, so an empty one stands for the missing.
    let parts = parts.into_iter().map(Option::unwrap_or_default);
    let digest = plugin.store.digest(&plugin.policy.namespace, &limit.name, parts);
    let checked =
        now.map_err(|_| Failure::Host).and_then(|now| plugin.store.check(host, digest, limit, now));
    count(plugin, host, checked);
    checked.map_or(Verdict::Unchecked, Verdict::Decided)
}

fn count(plugin: &Plugin, host: &impl Counters, checked: Result<Decision, Failure>) {
    let metric = match checked {
        Ok(decision) if decision.is_allowed() => Metric::Allowed,
        Ok(_) => Metric::Refused,
        Err(failure) => {
            plugin.metrics.count(host, Metric::Unchecked);
            match failure {
                Failure::TableFull => Metric::TableFull,
                Failure::Contended => Metric::Contended,
                Failure::Host => Metric::StoreError,
            }
        }
    };
    plugin.metrics.count(host, metric);
}
