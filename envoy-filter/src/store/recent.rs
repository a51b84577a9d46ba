//! What a shared store has refused lately, for all workers of this proxy: a flood on one key then
//! costs the store next to nothing.
//!
//! A refused bucket has not been charged, and others can only have taken more of it since. So what
//! is kept is a state that owes no more than the bucket did when the call was *sent*, on this
//! proxy's monotonic clock; if even that refuses a request, the store would.

use super::table::{Kept, Purpose, Table};
use crate::host::{Entropy, HostError, Moment, SharedData};
use weir_core::{
    decision::Decision,
    key::hash::Digest,
    limiter::{Ask, Limiter, Recalled, State},
    units::{Instant, Micros},
};

/// How long a refusal is remembered at most: a limit that was raised, or a charge that was given
/// back, is noticed after so long.
const LONGEST: Micros = Micros::new(1_000_000);

/// Added to the monotonic clock, which may have started a moment ago: a window that has begun
/// before then still has a time.
const OFFSET: u64 = 1 << 51;

/// The refusals of one plugin.
#[derive(Clone, Copy, Debug)]
pub struct Recent {
    table: Table,
    /// Whose refusals.
    store: Digest,
}

impl Recent {
    /// Opens the table.
    ///
    /// # Errors
    /// [`HostError`] if the host has no entropy or refuses shared data.
    pub fn open(store: Digest, host: &(impl SharedData + Entropy)) -> Result<Self, HostError> {
        Ok(Self { table: Table::open(Purpose::Refusals, host)?, store })
    }

    /// The refusal of a request that the store would certainly refuse.
    pub fn refusal(
        &self,
        host: &impl SharedData,
        now: Moment,
        bucket: Digest,
        limiter: &Limiter,
        ask: Ask,
    ) -> Option<Decision> {
        // A test's clock goes back and forth, and what is recalled holds on one that does not.
        if cfg!(feature = "test-clock") {
            return None;
        }
        // A table that cannot say knows of no refusal.
        let state = self.table.state(host, self.place(bucket), time(now)).ok()??;
        limiter.recalled_refusal(&state, time(now), ask)
    }

    /// Keeps what the store has decided on a call that was sent at `sent`, if it would refuse the
    /// same request now.
    pub fn keep(
        &self,
        host: &impl SharedData,
        (sent, now): (Moment, Moment),
        bucket: Digest,
        (limiter, ask): (&Limiter, Ask),
        decision: &Decision,
    ) {
        let now = time(now);
        let recalled = limiter.recall(decision, ask, time(sent));
        let Some(Recalled { state, until }) = recalled else { return };
        if limiter.recalled_refusal(&state, now, ask).is_none() {
            return;
        }
        let kept = Kept { state, idle_after: until.saturating_since(now).min(LONGEST) };
        // What cannot be kept costs a call more.
        let keep = |_: &State, _: Instant| ((), Some(kept.clone()));
        let _ = self.table.update(host, || Ok(now), self.place(bucket), keep);
    }

    fn place(&self, bucket: Digest) -> Digest {
        self.table.place_of("refusal", self.store, bucket)
    }
}

/// A time on the clock of the refusals.
fn time(moment: Moment) -> Instant {
    Instant::from_micros(moment.0.saturating_add(OFFSET))
}
