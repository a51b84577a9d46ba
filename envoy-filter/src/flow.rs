//! One request: from its fields to its answer.

use crate::{
    host::{Clock, Counters, SharedData},
    metrics::Metric,
    plugin::Plugin,
    store::Failure,
};
use weir_core::{
    decision::Decision,
    key::Facts,
    policy::{Limit, MissingKey},
    response::{self, Answer, Verdict},
};

/// Decides a request on the wall clock.
///
/// A validated policy has one limit, so a request that is refused has been charged nowhere.
pub fn decide(
    plugin: &Plugin,
    facts: &impl Facts,
    clock: &impl Clock,
    host: &(impl SharedData + Counters),
) -> Answer {
    let mut headers = Vec::new();
    for limit in &plugin.policy.limits {
        let verdict = verdict(plugin, limit, facts, clock, host);
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
    clock: &impl Clock,
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
    let checked = plugin.store.check(host, clock, digest, limit);
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
