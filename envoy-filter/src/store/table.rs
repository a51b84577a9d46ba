//! The table in the proxy's shared data: states by digest, in sets of fixed size
//! ([`weir_core::store::slots`]), a key of shared data for each set.
//!
//! A change reads a set, changes it and swaps it; where another worker was first it starts anew.

use super::Failure;
use crate::host::{Entropy, HostError, SharedData, Swap, Value};
use weir_core::{
    key::hash::{Digest, Secret},
    limiter::State,
    store::slots::{self, Set},
    units::{Instant, Micros},
};

/// Swaps that may be lost before the store gives up. Four workers on one key never lost more than
/// two in a row.
const TRIES: u32 = 16;

/// Keys of shared data. The number is the version of the layout: another layout takes another, so
/// that modules of two versions never read each other's bytes during an update.
const SEED_KEY: &str = "weir/1/seed";

/// What a table is for; each has keys of its own, since each is on a clock of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Counts, on the wall clock.
    Counts,
    /// What a shared store has refused, on the monotonic clock.
    Refusals,
}

/// A table of one purpose.
#[derive(Clone, Copy)]
pub struct Table {
    purpose: Purpose,
    /// Keys the digests, so that no client can aim at a set or at another's bucket.
    secret: Secret,
}

/// A state to store, and how long it says anything.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The state.
    pub state: State,
    /// From then on it may give up its place.
    pub idle_after: Micros,
}

impl core::fmt::Debug for Table {
    /// Without the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Table").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

impl Table {
    /// Opens a table. The first to open one draws the secret; it lasts as long as the counts.
    ///
    /// # Errors
    /// [`HostError`] if the host has no entropy or refuses shared data.
    pub fn open(purpose: Purpose, host: &(impl SharedData + Entropy)) -> Result<Self, HostError> {
        // Status 2, bad argument: what is stored under the key is no secret of ours.
        const NOT_OURS: HostError = HostError(2);
        if let Value { version: None, .. } = host.get(SEED_KEY)? {
            // Whether this or another worker's secret is kept does not matter.
            host.swap(SEED_KEY, &host.secret()?, None)?;
        }
        let secret = host.get(SEED_KEY)?.bytes.try_into().map_err(|_| NOT_OURS)?;
        Ok(Self { purpose, secret })
    }

    /// The secret of the digests.
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Where a bucket of a shared store has its place here; another store's has another.
    #[must_use]
    pub fn place_of(&self, name: &str, store: Digest, bucket: Digest) -> Digest {
        let parts = [store.to_bytes(), bucket.to_bytes()];
        Digest::of(&self.secret, name, "", parts.iter().map(<[u8; 16]>::as_slice))
    }

    /// The state of a bucket, unless it has gone idle.
    ///
    /// # Errors
    /// [`Failure`] if the table cannot say.
    pub fn state(
        &self,
        host: &impl SharedData,
        digest: Digest,
        now: Instant,
    ) -> Result<Option<State>, Failure> {
        let value = host.get(&self.key(digest)).map_err(|_| Failure::Host)?;
        let set = Set::decode(&value.bytes).ok_or(Failure::Host)?;
        Ok(set.busy(digest, now).cloned())
    }

    /// Reads a set, changes one of its states, and swaps it. A change without a new state writes
    /// nothing.
    ///
    /// # Errors
    /// [`Failure`] if the table cannot say; nothing was written then.
    pub fn update<T>(
        &self,
        host: &impl SharedData,
        now: impl Fn() -> Result<Instant, HostError>,
        digest: Digest,
        change: impl Fn(&State, Instant) -> (T, Option<Kept>),
    ) -> Result<T, Failure> {
        let key = self.key(digest);
        for _ in 0..TRIES {
            let value = host.get(&key).map_err(|_| Failure::Host)?;
            let Some(mut set) = Set::decode(&value.bytes) else {
                return Err(clear(host, &key, &value));
            };
            // Only now: whoever wrote this set had read the clock before, so time does not go back
            // from worker to worker. With a time read before the set, an empty bucket would look as
            // if it owed more than it holds, and repairing it would give tokens away.
            let now = now().map_err(|_| Failure::Host)?;
            let (result, kept) = change(set.state(digest), now);
            let Some(Kept { state, idle_after }) = kept else { return Ok(result) };
            set.put(digest, state, now.saturating_add(idle_after), now)
                .map_err(|_| Failure::TableFull)?;
            match host.swap(&key, &set.encode(), value.version).map_err(|_| Failure::Host)? {
                Swap::Done => return Ok(result),
                Swap::Lost => {}
            }
        }
        Err(Failure::Contended)
    }

    fn key(&self, digest: Digest) -> String {
        let purpose = match self.purpose {
            Purpose::Counts => "set",
            Purpose::Refusals => "refusals",
        };
        format!("weir/1/{purpose}/{:04x}", slots::set_of(digest))
    }
}

/// Empties a set that holds what no version of this module wrote there: left alone it would leave
/// its keys unchecked for ever.
fn clear(host: &impl SharedData, key: &str, found: &Value) -> Failure {
    // If another worker is first, it has cleared the set; if the host fails, the next one tries.
    let _ = host.swap(key, &Set::default().encode(), found.version);
    Failure::Host
}
