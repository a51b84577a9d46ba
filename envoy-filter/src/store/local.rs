//! Counts in the proxy's shared data: exact across the workers of one proxy, and gone with it.
//!
//! All limits of all plugins under one VM id share one table of fixed size
//! ([`weir_core::store::slots`]), a key of shared data for each set. A check reads the set, takes
//! the step and swaps the set; where another worker was first it takes the step anew.

use super::Failure;
use crate::host::{Clock, Entropy, HostError, SharedData, Swap, Value};
use weir_core::{
    decision::Decision,
    key::hash::{Digest, Secret},
    limiter::{Limiter, token_bucket::BucketState},
    policy::Limit,
    store::slots::{self, Set},
    units::Instant,
};

/// Swaps that may be lost before the store gives up. Four workers on one key never lost more than
/// two in a row.
const TRIES: u32 = 16;

/// Keys of shared data. The number is the version of the layout: another layout takes another, so
/// that modules of two versions never read each other's bytes during an update.
const SEED_KEY: &str = "weir/1/seed";
const SET_PREFIX: &str = "weir/1/set/";

/// The table in shared data.
#[derive(Clone, Copy, Debug)]
pub struct LocalStore {
    /// Keys the digests, so that no client can aim at a set or at another's bucket.
    secret: Secret,
}

impl LocalStore {
    /// Opens the table. The first to open it draws the secret; it lasts as long as the counts.
    ///
    /// # Errors
    /// [`HostError`] if the host has no entropy or refuses shared data.
    pub fn open(host: &(impl SharedData + Entropy)) -> Result<Self, HostError> {
        // Status 2, bad argument: what is stored under the key is no secret of ours.
        const NOT_OURS: HostError = HostError(2);
        if let Value { version: None, .. } = host.get(SEED_KEY)? {
            // Whether this or another worker's secret is kept does not matter.
            host.swap(SEED_KEY, &host.secret()?, None)?;
        }
        let secret = host.get(SEED_KEY)?.bytes.try_into().map_err(|_| NOT_OURS)?;
        Ok(Self { secret })
    }

    /// The identity of a bucket in this table.
    pub fn digest<'a>(
        &self,
        namespace: &'a str,
        limit: &'a str,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Digest {
        Digest::of(&self.secret, namespace, limit, parts)
    }

    /// Decides a request on the bucket of a digest.
    ///
    /// # Errors
    /// [`Failure`] if the table cannot say; nothing was charged then.
    pub fn check(
        &self,
        host: &impl SharedData,
        clock: &impl Clock,
        digest: Digest,
        limit: &Limit,
    ) -> Result<Decision, Failure> {
        let key = format!("{SET_PREFIX}{:04x}", slots::set_of(digest));
        for _ in 0..TRIES {
            let value = host.get(&key).map_err(|_| Failure::Host)?;
            let Some(mut set) = Set::decode(&value.bytes) else {
                return Err(clear(host, &key, &value));
            };
            // Only now: whoever wrote this set had read the clock before, so time does not go back
            // from worker to worker. With a time read before the set, an empty bucket would look as
            // if it owed more than it holds, and repairing it would give tokens away.
            let now = clock.now().map_err(|_| Failure::Host)?;
            let step = limit.limiter.step(set.state(digest), now, limit.cost);
            let Some(state) = step.state else { return Ok(step.decision) };
            let idle_at = idle_at(&limit.limiter, state, now);
            set.put(digest, state, idle_at, now).map_err(|_| Failure::TableFull)?;
            match host.swap(&key, &set.encode(), value.version).map_err(|_| Failure::Host)? {
                Swap::Done => return Ok(step.decision),
                Swap::Lost => {}
            }
        }
        Err(Failure::Contended)
    }
}

/// When a bucket in this state is full.
fn idle_at(limiter: &Limiter, state: BucketState, now: Instant) -> Instant {
    match limiter {
        Limiter::Closed => now,
        Limiter::TokenBucket(bucket) => now.saturating_add(bucket.full_after(state, now)),
    }
}

/// Empties a set that holds what no version of this module wrote there: left alone it would leave
/// its keys unchecked for ever.
fn clear(host: &impl SharedData, key: &str, found: &Value) -> Failure {
    // If another worker is first, it has cleared the set; if the host fails, the next one tries.
    let _ = host.swap(key, &Set::default().encode(), found.version);
    Failure::Host
}
