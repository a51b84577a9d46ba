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
    limiter::{Ask, Limiter, State},
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

/// One bucket and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Whose bucket it is.
    pub digest: Digest,
    /// What decides.
    pub limiter: Limiter,
    /// What is asked.
    pub ask: Ask,
}

/// What the table says.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    /// The decision.
    pub decision: Decision,
    /// When it was made, by the clock of the store.
    pub at: Instant,
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

    /// Decides, and charges what is allowed.
    ///
    /// # Errors
    /// [`Failure`] if the table cannot say; nothing was charged then.
    pub fn check(
        &self,
        host: &impl SharedData,
        clock: &impl Clock,
        question: &Question,
    ) -> Result<Checked, Failure> {
        self.step(host, clock, question, |_| true)
    }

    /// Decides, and charges nothing. A state in need of repair is repaired all the same, or it
    /// would count as used up anew each time.
    ///
    /// # Errors
    /// [`Failure`] if the table cannot say.
    pub fn peek(
        &self,
        host: &impl SharedData,
        clock: &impl Clock,
        question: &Question,
    ) -> Result<Checked, Failure> {
        self.step(host, clock, question, |decision| !decision.is_allowed())
    }

    /// Gives a charge back, less what the key has got back of it since. What cannot be given back
    /// is lost to the key until it refills: too little is allowed then, never too much.
    pub fn refund(
        &self,
        host: &impl SharedData,
        clock: &impl Clock,
        question: &Question,
        charged: Instant,
    ) {
        let Question { digest, limiter, ask } = question;
        // Only a lost count would be worth a report, and none is lost here.
        let _ = self.update(host, clock, question, |set, now| {
            ((), limiter.refund(set.state(*digest), charged, now, *ask))
        });
    }

    fn step(
        &self,
        host: &impl SharedData,
        clock: &impl Clock,
        question: &Question,
        writes: impl Fn(&Decision) -> bool,
    ) -> Result<Checked, Failure> {
        self.update(host, clock, question, |set, now| {
            let step = question.limiter.step(set.state(question.digest), now, question.ask);
            let state = step.state.filter(|_| writes(&step.decision));
            (Checked { decision: step.decision, at: now }, state)
        })
    }

    /// Reads a set, changes one of its states, and swaps it. A change without a new state writes
    /// nothing.
    fn update<T>(
        &self,
        host: &impl SharedData,
        clock: &impl Clock,
        question: &Question,
        change: impl Fn(&Set, Instant) -> (T, Option<State>),
    ) -> Result<T, Failure> {
        let digest = question.digest;
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
            let (result, state) = change(&set, now);
            let Some(state) = state else { return Ok(result) };
            let idle_at = now.saturating_add(question.limiter.idle_after(&state, now));
            set.put(digest, state, idle_at, now).map_err(|_| Failure::TableFull)?;
            match host.swap(&key, &set.encode(), value.version).map_err(|_| Failure::Host)? {
                Swap::Done => return Ok(result),
                Swap::Lost => {}
            }
        }
        Err(Failure::Contended)
    }
}

/// Empties a set that holds what no version of this module wrote there: left alone it would leave
/// its keys unchecked for ever.
fn clear(host: &impl SharedData, key: &str, found: &Value) -> Failure {
    // If another worker is first, it has cleared the set; if the host fails, the next one tries.
    let _ = host.swap(key, &Set::default().encode(), found.version);
    Failure::Host
}
