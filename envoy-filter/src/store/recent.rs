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
    limiter::{Ask, Limiter},
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
}

impl Recent {
    /// Opens the table.
    ///
    /// # Errors
    /// [`HostError`] if the host has no entropy or refuses shared data.
    pub fn open(host: &(impl SharedData + Entropy)) -> Result<Self, HostError> {
        Ok(Self { table: Table::open(Purpose::Refusals, host)? })
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
        let now = instant(now);
        // A table that cannot say knows of no refusal.
        let place = self.table.place_of("refusal", bucket);
        let state = self.table.state(host, place, now).ok()??;
        limiter.recalled_refusal(&state, now, ask)
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
        let now = instant(now);
        let Some(recalled) = limiter.recall(decision, ask, instant(sent)) else { return };
        if limiter.step(&recalled.state, now, ask).decision.is_allowed() {
            return;
        }
        let idle_after = recalled.until.saturating_since(now).min(LONGEST);
        let kept = Kept { state: recalled.state, idle_after };
        // What cannot be kept costs a call more.
        let _ = self.table.update(
            host,
            || Ok(now),
            self.table.place_of("refusal", bucket),
            |_, _| ((), Some(kept.clone())),
        );
    }
}

fn instant(moment: Moment) -> Instant {
    Instant::from_micros(moment.0.saturating_add(OFFSET))
}
