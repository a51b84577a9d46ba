//! The calls of a random run, each with what the core says of it.

use crate::model::{Left, check_expiry};
use anyhow::{Result, ensure};
use weir_core::{
    decision::Decision,
    script::{Asked, Call, Refund, Release, Released},
    units::Instant,
};
use weir_lab::redis::{Observed, ScriptCall};

/// One call of a random run, and what the core says.
pub(crate) struct Planned<'a> {
    pub(crate) call: ScriptCall,
    pub(crate) expected: Answer<'a>,
    pub(crate) note: String,
}

/// What the core says of a call.
pub(crate) enum Answer<'a> {
    /// With the time of the call, if it is to tell it.
    Checked(Vec<Asked<'a>>, Vec<(Decision, Left)>, Option<Instant>),
    Refunded(Refund, Vec<(bool, Left)>),
    Released(Release<'a>, Released, Left),
}

impl Planned<'_> {
    /// Whether the script replied and left what the core says.
    pub(crate) fn compare(&self, seen: &Observed) -> Result<()> {
        match &self.expected {
            Answer::Checked(asked, expected, now) => {
                let decisions = match now {
                    Some(now) => {
                        let (decisions, charged) = Call::refundable(asked)?.charged(&seen.reply)?;
                        ensure!(charged == *now, "charged at {charged:?}");
                        decisions
                    }
                    None => Call::new(asked)?.decisions(&seen.reply)?,
                };
                for (place, (decision, left)) in expected.iter().enumerate() {
                    let found = decisions[place];
                    ensure!(found == *decision, "limit {place}: {decision:?}\nscript: {found:?}");
                    check_expiry(seen, place, *left)?;
                }
                Ok(())
            }
            Answer::Refunded(refund, expected) => {
                let found = refund.outcome(&seen.reply)?;
                for (place, (given, left)) in expected.iter().enumerate() {
                    ensure!(found[place] == *given, "limit {place}: {given}");
                    check_expiry(seen, place, *left)?;
                }
                Ok(())
            }
            Answer::Released(release, expected, left) => {
                let found = release.outcome(&seen.reply)?;
                ensure!(found == *expected, "{expected:?}\nscript: {found:?}");
                check_expiry(seen, 0, *left)
            }
        }
    }
}
