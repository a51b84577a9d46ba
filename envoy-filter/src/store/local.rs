//! Counts in the proxy's shared data: exact across the workers of one proxy, and gone with it.
//!
//! All limits of all plugins under one VM id share one [`Table`]. A check reads the set, takes the
//! step and swaps the set.

use super::{
    Failure,
    table::{Kept, Purpose, Table},
};
use crate::host::{Clock, Entropy, HostError, SharedData};
use weir_core::{
    decision::Decision,
    key::hash::Digest,
    limiter::{Ask, Limiter, State},
    units::Instant,
};

/// The counts.
#[derive(Clone, Copy, Debug)]
pub struct LocalStore {
    table: Table,
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
    /// Opens the counts.
    ///
    /// # Errors
    /// [`HostError`] if the host has no entropy or refuses shared data.
    pub fn open(host: &(impl SharedData + Entropy)) -> Result<Self, HostError> {
        Ok(Self { table: Table::open(Purpose::Counts, host)? })
    }

    /// The table that holds them.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
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
        let Question { digest, limiter, ask } = *question;
        // Only a lost count would be worth a report, and none is lost here.
        let _ = self.table.update(
            host,
            || clock.now(),
            digest,
            |state, now| {
                let state = limiter.refund(state, charged, now, ask);
                ((), state.map(|state| kept(&limiter, state, now)))
            },
        );
    }

    fn step(
        &self,
        host: &impl SharedData,
        clock: &impl Clock,
        question: &Question,
        writes: impl Fn(&Decision) -> bool,
    ) -> Result<Checked, Failure> {
        let Question { digest, limiter, ask } = *question;
        self.table.update(
            host,
            || clock.now(),
            digest,
            |state, now| {
                let step = limiter.step(state, now, ask);
                let state = step.state.filter(|_| writes(&step.decision));
                let checked = Checked { decision: step.decision, at: now };
                (checked, state.map(|state| kept(&limiter, state, now)))
            },
        )
    }
}

fn kept(limiter: &Limiter, state: State, now: Instant) -> Kept {
    Kept { idle_after: limiter.idle_after(&state, now), state }
}
