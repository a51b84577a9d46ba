//! What a request asks of each limit.

use super::Request;
use crate::{
    host::{Counters, Entropy},
    metrics::Metric,
};
use weir_core::{
    key::{Facts, hash::Digest},
    limiter::{Ask, Limiter},
    policy::{
        Limit,
        mode::{MissingKey, OnStoreFailure, one_of},
        quota::Quota,
    },
    response::{Answer, Verdict},
    script::Key,
};

/// A limit that applies to a request, and what is asked of it. It outlives the request's headers:
/// a shared store answers when they are gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// The limit, by its place in the policy.
    limit: usize,
    pub(super) quota: Quota,
    pub(super) enforced: bool,
    /// Whose bucket it is.
    pub(super) digest: Digest,
    /// The bucket in a shared store.
    pub(super) key: Key,
    pub(super) limiter: Limiter,
    pub(super) ask: Ask,
    /// This proxy's share of the limit, and what is asked of it, where it decides in an outage.
    pub(super) share: Option<(Limiter, Ask)>,
}

impl Asked {
    /// Whether what it takes is given back when the request ends.
    pub(super) const fn is_held(&self) -> bool {
        matches!(self.limiter, Limiter::Concurrency(_))
    }
}

impl<H> Request<'_, H> {
    /// The limit that was asked.
    pub(super) fn limit(&self, asked: &Asked) -> Option<&Limit> {
        self.plugin.policy.limits.get(asked.limit)
    }
}

impl<H: Counters + Entropy> Request<'_, H> {
    /// What to ask of the limits that apply, or the answer at once where the request is to be
    /// turned away.
    pub(super) fn ask_all(&self, facts: &impl Facts) -> Result<Vec<Asked>, Answer> {
        let limits = self.plugin.policy.limits.iter().enumerate();
        // One for all: limits of as many shards then go to the same one, and in one call.
        let mut drawn = None;
        let mut asked = Vec::new();
        for (place, limit) in limits.filter(|(_, limit)| limit.applies.applies(facts)) {
            let shard = |shards| one_of(shards, *drawn.get_or_insert_with(|| self.draw()));
            asked.extend(self.ask(place, limit, facts, shard)?);
        }
        Ok(asked)
    }

    /// A number that names the request, where the limit needs one: no two requests that hold a
    /// permit at a time have the same but by a chance of one in 2^64.
    fn name_for(&self, limiter: &Limiter) -> u64 {
        match limiter {
            Limiter::Concurrency(_) => u64::from(self.draw()) << 32 | u64::from(self.draw()),
            _ => 0,
        }
    }

    /// What to ask of a limit: nothing where the request is to skip it. `shard` chooses one of so
    /// many shards.
    fn ask(
        &self,
        place: usize,
        limit: &Limit,
        facts: &impl Facts,
        shard: impl FnOnce(u64) -> u64,
    ) -> Result<Option<Asked>, Answer> {
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
        let shards = u64::try_from(tier.shards()).unwrap_or(1);
        // Only a sharded limit has the shard in its bucket's identity, so that sharding does not
        // rename the buckets of limits without it.
        let sharded = (shards > 1).then(|| shard(shards));
        let tag = sharded.map(u64::to_le_bytes);
        let shard = sharded.map_or(0, |shard| usize::try_from(shard).unwrap_or(usize::MAX));
        let limiter = tier.limiter(shard);
        // The kind of state is part of the identity: under two configurations of one limit, as
        // during an update, each would otherwise take the other's state for none and start anew.
        let kind = core::iter::once(limiter.state_kind().as_bytes());
        let parts = || parts.iter().copied().chain(tag.as_ref().map(<[u8; 8]>::as_slice));
        let (secret, namespace) = (&self.plugin.secret, &self.plugin.policy.namespace);
        let digest = Digest::of(secret, namespace, &limit.name, kind.chain(parts()));
        // Limits with the same key parts share a slot of a cluster: one script can ask them all.
        let slot = Digest::of(secret, namespace, "", parts());
        let key = match sharded {
            Some(shard) => Key::of_shard(slot, digest, shard, shards),
            None => Key::new(slot, digest),
        };
        let (cost, floor) = (limit.cost.of(facts), limit.floor(tier, shard, facts));
        let ask = Ask { cost, floor, id: self.name_for(&limiter) };
        let share = (limit.on_store_failure == OnStoreFailure::Local).then(|| {
            let share = tier.share(self.plugin.policy.gateways);
            let floor = limit.share_floor(&share, facts);
            (share, Ask { floor, ..ask })
        });
        Ok(Some(Asked {
            limit: place,
            quota: *tier.quota(),
            enforced,
            digest,
            key,
            limiter,
            ask,
            share,
        }))
    }
}
