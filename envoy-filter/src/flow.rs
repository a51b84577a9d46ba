//! One request: from its fields to its answer.
//!
//! All limits that apply must allow a request, and a refused one is charged to none: the limits are
//! asked first, and charged only if all of them would allow. Where one then refuses all the same,
//! because another worker took its last token in between, the others get their charge back.

use crate::{
    host::{Clock, Counters, Entropy, SharedData},
    metrics::Metric,
    plugin::Plugin,
    store::{
        Failure,
        local::{Checked, Question},
    },
};
use weir_core::{
    combine::{Combined, Vote},
    key::Facts,
    limiter::Ask,
    policy::{
        Limit,
        mode::{MissingKey, Mode, OnStoreFailure, one_of},
        quota::Quota,
    },
    response::{self, Answer, Verdict},
};

/// A limit that applies to a request, and what is asked of it.
struct Asked<'a> {
    limit: &'a Limit,
    quota: &'a Quota,
    enforced: bool,
    question: Question,
}

/// One request on its way.
struct Request<'a, C, H> {
    plugin: &'a Plugin,
    clock: &'a C,
    host: &'a H,
}

/// Decides a request on the wall clock.
pub fn decide(
    plugin: &Plugin,
    facts: &impl Facts,
    clock: &impl Clock,
    host: &(impl SharedData + Counters + Entropy),
) -> Answer {
    let request = Request { plugin, clock, host };
    let mut asked = Vec::new();
    for limit in plugin.policy.limits.iter().filter(|limit| limit.applies.applies(facts)) {
        match request.ask(limit, facts) {
            Ok(question) => asked.extend(question),
            Err(answer) => return answer,
        }
    }
    match asked.as_slice() {
        [] => Answer::UNTOUCHED,
        // One limit needs no asking first: it is charged exactly if it allows.
        [_] => request.charge(&asked),
        _ => request.refusal(&asked).unwrap_or_else(|| request.charge(&asked)),
    }
}

impl<C: Clock, H: SharedData + Counters + Entropy> Request<'_, C, H> {
    /// What to ask of a limit: nothing where the request is to skip it, or an answer at once where
    /// it is to be turned away.
    fn ask<'p>(
        &'p self,
        limit: &'p Limit,
        facts: &impl Facts,
    ) -> Result<Option<Asked<'p>>, Answer> {
        let enforced = self.enforces(limit.mode);
        let parts: Vec<_> = limit.key.iter().map(|part| part.value(facts)).collect();
        if parts.contains(&None) {
            self.count(Metric::MissingKey);
            match limit.missing_key {
                MissingKey::Share => {}
                MissingKey::Skip => return Ok(None),
                MissingKey::Unauthorized | MissingKey::Deny if enforced => {
                    return Err(self.answer(limit, Verdict::KeyMissing));
                }
                MissingKey::Unauthorized | MissingKey::Deny => {
                    self.count(Metric::ShadowRefused);
                    return Ok(None);
                }
            }
        }
        // No part that is present is empty, so an empty one stands for the missing.
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_deref().unwrap_or(b"")).collect();
        let tier = limit.tiers.select(&parts, facts);
        let shard = self.shard(tier.shards());
        // Only a sharded limit has the shard in its bucket's identity, so that sharding does not
        // rename the buckets of limits without it.
        let tag = (tier.shards() > 1).then(|| shard.to_le_bytes());
        let place = usize::try_from(shard).unwrap_or(usize::MAX);
        let limiter = tier.limiter(place);
        // The kind of state is part of the identity: under two configurations of one limit, as
        // during an update, each would otherwise take the other's state for none and start anew.
        let kind = core::iter::once(limiter.state_kind().as_bytes());
        let identity = kind.chain(parts).chain(tag.as_ref().map(<[u8; 8]>::as_slice));
        let (cost, floor) = (limit.cost.of(facts), limit.floor(tier, place, facts));
        let question = Question {
            digest: self.plugin.store.digest(&self.plugin.policy.namespace, &limit.name, identity),
            limiter,
            ask: Ask { cost, floor, id: 0 },
        };
        Ok(Some(Asked { limit, quota: tier.quota(), enforced, question }))
    }

    /// The answer to a request that one of its limits refuses, charged to none; `None` if all would
    /// allow it. What the store cannot say is no refusal yet.
    fn refusal(&self, asked: &[Asked<'_>]) -> Option<Answer> {
        let store = &self.plugin.store;
        let peek = |asked: &Asked<'_>| store.peek(self.host, self.clock, &asked.question);
        let checked: Vec<_> = asked.iter().map(|asked| peek(asked).ok()).collect();
        let (votes, limits) = votes(asked, &checked);
        let combined = Combined::of(&votes);
        if combined.outcome.is_allowed() {
            None
        } else {
            Some(self.tell(&combined, &votes, &limits))
        }
    }

    /// Charges every limit, and undoes it if one of them refuses or must not go unchecked.
    fn charge(&self, asked: &[Asked<'_>]) -> Answer {
        let mut checked: Vec<Option<Checked>> = Vec::new();
        for one in asked {
            match self.plugin.store.check(self.host, self.clock, &one.question) {
                Ok(answer) => {
                    checked.push(Some(answer));
                    if one.enforced && !answer.decision.is_allowed() {
                        break;
                    }
                }
                Err(failure) => {
                    self.count_failure(failure);
                    if one.enforced && one.limit.on_store_failure != OnStoreFailure::Allow {
                        self.refund(asked, &checked);
                        return self.answer(one.limit, Verdict::Unchecked);
                    }
                    checked.push(None);
                }
            }
        }
        let (votes, limits) = votes(asked, &checked);
        let combined = Combined::of(&votes);
        if !combined.outcome.is_allowed() {
            self.refund(asked, &checked);
        }
        self.tell(&combined, &votes, &limits)
    }

    fn refund(&self, asked: &[Asked<'_>], checked: &[Option<Checked>]) {
        for (one, checked) in asked.iter().zip(checked) {
            if let Some(Checked { decision, at }) = checked
                && decision.is_allowed()
            {
                self.plugin.store.refund(self.host, self.clock, &one.question, *at);
            }
        }
    }

    /// Counts what came out, and answers from the limit that binds.
    fn tell(&self, combined: &Combined, votes: &[Vote], asked: &[&Asked<'_>]) -> Answer {
        for _ in votes.iter().filter(|vote| !vote.enforced && !vote.decision.is_allowed()) {
            self.count(Metric::ShadowRefused);
        }
        if !votes.is_empty() {
            let allowed = combined.outcome.is_allowed();
            self.count(if allowed { Metric::Allowed } else { Metric::Refused });
        }
        let binding = combined.binding.and_then(|place| asked.get(place).zip(votes.get(place)));
        let Some((asked, vote)) = binding else { return Answer::UNTOUCHED };
        self.answer(asked.limit, Verdict::Decided(asked.quota, vote.decision))
    }

    fn answer(&self, limit: &Limit, verdict: Verdict<'_>) -> Answer {
        let policy = &self.plugin.policy;
        let jitters = policy.retry_after_jitter > weir_core::units::Micros::ZERO;
        response::answer(policy, limit, verdict, if jitters { self.draw() } else { 0 })
    }

    fn enforces(&self, mode: Mode) -> bool {
        match mode {
            Mode::Percent(_) => mode.enforces(self.draw()),
            Mode::Enforce | Mode::Shadow => mode.enforces(0),
        }
    }

    fn shard(&self, shards: usize) -> u64 {
        let shards = u64::try_from(shards).unwrap_or(1);
        if shards > 1 { one_of(shards, self.draw()) } else { 0 }
    }

    /// A number drawn by chance; the smallest where the host has none to give.
    fn draw(&self) -> u32 {
        self.host.draw().unwrap_or(0)
    }

    fn count(&self, metric: Metric) {
        self.plugin.metrics.count(self.host, metric);
    }

    fn count_failure(&self, failure: Failure) {
        self.count(Metric::Unchecked);
        self.count(match failure {
            Failure::TableFull => Metric::TableFull,
            Failure::Contended => Metric::Contended,
            Failure::Host => Metric::StoreError,
        });
    }
}

/// The votes of the limits that could say, each with its limit.
fn votes<'a, 'p>(
    asked: &'a [Asked<'p>],
    checked: &[Option<Checked>],
) -> (Vec<Vote>, Vec<&'a Asked<'p>>) {
    let said = asked.iter().zip(checked).filter_map(|(asked, checked)| {
        let decision = checked.as_ref()?.decision;
        Some((Vote { decision, enforced: asked.enforced }, asked))
    });
    said.unzip()
}
