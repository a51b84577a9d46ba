//! One request: from its fields to its answer.
//!
//! All limits that apply must allow a request, and a refused one is charged to none. [`ask`] says
//! which limits are asked what; [`local`] asks them in the proxy's shared data, [`shared`] in a
//! store that they share with other proxies, whose answer comes later.

mod ask;
mod local;
pub mod shared;

pub use local::decide;

use crate::{
    host::{Clock, Counters, Entropy, SharedData},
    metrics::Metric,
    plugin::Plugin,
    store::{Failure, local::Question},
};
use ask::Asked;
use weir_core::{
    combine::{Combined, Vote},
    decision::Decision,
    policy::{Limit, mode::Mode, quota::Quota},
    response::{self, Answer, Verdict},
    units::Instant,
};

/// What becomes of a request.
#[derive(Clone, Debug)]
pub struct Decided {
    /// Its answer.
    pub answer: Answer,
    /// What it holds until it ends; none if it does not pass.
    pub permits: Vec<Permit>,
}

/// A permit of a limit on requests in flight.
#[derive(Clone, Copy, Debug)]
pub struct Permit(Held);

#[derive(Clone, Copy, Debug)]
enum Held {
    /// In the proxy's shared data.
    Counts(Question),
    /// In the shared store.
    Store(Asked),
}

impl From<Answer> for Decided {
    fn from(answer: Answer) -> Self {
        Self { answer, permits: Vec::new() }
    }
}

/// Gives back what a request has held in the proxy's shared data.
pub fn release(plugin: &Plugin, permits: &[Permit], clock: &impl Clock, host: &impl SharedData) {
    for permit in permits {
        if let Permit(Held::Counts(question)) = permit {
            // When it was taken does not matter: a permit has a name.
            plugin.counts.refund(host, clock, question, Instant::EPOCH);
        }
    }
}

/// A plugin with what is asked of its host for every request.
struct Request<'a, H> {
    plugin: &'a Plugin,
    host: &'a H,
}

/// What a limit decided.
struct Said<'a> {
    limit: &'a Limit,
    quota: &'a Quota,
    vote: Vote,
}

impl<H> Request<'_, H> {
    /// A decision of a limit that was asked.
    fn said<'a>(&'a self, asked: &'a Asked, decision: Decision) -> Option<Said<'a>> {
        let vote = Vote { decision, enforced: asked.enforced };
        Some(Said { limit: self.limit(asked)?, quota: &asked.quota, vote })
    }
}

impl<H: Counters + Entropy> Request<'_, H> {
    /// Counts what came out, and answers from the limit that binds.
    fn tell(&self, combined: &Combined, said: &[Said<'_>]) -> Answer {
        for _ in
            said.iter().filter(|Said { vote, .. }| !vote.enforced && !vote.decision.is_allowed())
        {
            self.count(Metric::ShadowRefused);
        }
        if !said.is_empty() {
            let allowed = combined.outcome.is_allowed();
            self.count(if allowed { Metric::Allowed } else { Metric::Refused });
        }
        let binding = combined.binding.and_then(|place| said.get(place));
        let Some(Said { limit, quota, vote }) = binding else { return Answer::UNTOUCHED };
        self.answer(limit, Verdict::Decided(quota, vote.decision))
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

    /// A number drawn by chance; the smallest where the host has none to give.
    fn draw(&self) -> u32 {
        self.host.draw().unwrap_or(0)
    }

    fn count(&self, metric: Metric) {
        self.plugin.metrics.count(self.host, metric);
    }

    /// Counts the limits that nobody checked, of a request that is let through.
    fn count_unchecked(&self, limits: usize) {
        for _ in 0..limits {
            self.count(Metric::Unchecked);
        }
    }

    /// Counts why a limit could not be checked.
    fn count_failure(&self, failure: Failure) {
        self.count(match failure {
            Failure::TableFull => Metric::TableFull,
            Failure::Contended => Metric::Contended,
            Failure::Host | Failure::Error => Metric::StoreError,
            Failure::Timeout => Metric::StoreTimeout,
            Failure::Down | Failure::Lost | Failure::Unsent => Metric::StoreDown,
            Failure::Busy => Metric::StoreBusy,
        });
    }
}

/// The outcome of all votes.
fn combine(said: &[Said<'_>]) -> Combined {
    Combined::of(&said.iter().map(|said| said.vote).collect::<Vec<_>>())
}
