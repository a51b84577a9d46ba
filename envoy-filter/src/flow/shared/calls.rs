//! Calls of the store's scripts: which limits go together, what is sent, what a reply says.

use super::super::Asked;
use crate::{
    host::Clock,
    store::{Failure, command::Command, resp::Reply},
};
use weir_core::{
    decision::Decision,
    script::{self, Call, Key, Refund, Unsendable},
    units::{Cost, Instant},
};

/// What a call decided.
#[derive(Debug)]
pub(super) struct Charged {
    /// Of each limit.
    pub(super) decisions: Vec<Decision>,
    /// When, by the store's clock; known where the charge may have to be given back.
    pub(super) at: Option<Instant>,
}

/// Limits that one call can ask, each group in one slot.
pub(super) fn by_slot(asked: Vec<Asked>) -> Vec<Vec<Asked>> {
    let mut groups: Vec<Vec<Asked>> = Vec::new();
    for asked in asked {
        let same = |group: &&mut Vec<Asked>| {
            group.first().is_some_and(|first| first.key.tag() == asked.key.tag())
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(asked),
            None => groups.push(vec![asked]),
        }
    }
    groups
}

fn keys(asked: &[Asked]) -> Vec<Key> {
    asked.iter().map(|asked| asked.key).collect()
}

fn as_script(asked: &[Asked]) -> Vec<script::Asked<'_>> {
    let limits = asked.iter().map(|asked| script::Asked {
        limiter: &asked.limiter,
        key: asked.key,
        ask: asked.ask,
        enforced: asked.enforced,
    });
    limits.collect()
}

fn call<'a>(limits: &'a [script::Asked<'a>], refundable: bool) -> Result<Call<'a>, Unsendable> {
    if refundable { Call::refundable(limits) } else { Call::new(limits) }
}

/// The call that decides some limits.
pub(super) fn command(
    asked: &[Asked],
    refundable: bool,
    clock: &impl Clock,
) -> Result<Command, Failure> {
    let limits = as_script(asked);
    // Two buckets with one key, which 128 bits let happen to nobody.
    let call = call(&limits, refundable).map_err(|_| Failure::Host)?;
    Command::new(call.script, keys(asked), call.args, clock).map_err(|_| Failure::Host)
}

/// The call that asks the same buckets and charges nothing.
pub(super) fn probe(asked: &[Asked], clock: &impl Clock) -> Option<Command> {
    let mut asked = asked.to_vec();
    for asked in &mut asked {
        asked.ask.cost = Cost::ZERO;
    }
    command(&asked, false, clock).ok()
}

/// What a reply says, or what is wrong with it.
pub(super) fn charged(asked: &[Asked], refundable: bool, reply: Reply) -> Result<Charged, Vec<u8>> {
    let numbers = match reply {
        Reply::Error(text) => return Err(text),
        reply => reply.integers().ok_or_else(|| b"it replies with no numbers".to_vec())?,
    };
    let limits = as_script(asked);
    let call = call(&limits, refundable).map_err(|error| error.to_string().into_bytes())?;
    if refundable {
        let charged = call.charged(&numbers);
        charged.map(|(decisions, at)| Charged { decisions, at: Some(at) })
    } else {
        call.decisions(&numbers).map(|decisions| Charged { decisions, at: None })
    }
    .map_err(|error| error.to_string().into_bytes())
}

/// Whether a call was refused because its slot is on its way from one node of a cluster to another,
/// and neither node has all of its keys. Nothing was charged.
pub(super) fn is_half_moved(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"TRYAGAIN"))
}

/// The call that undoes what some limits were charged at `at`, by the store's clock.
pub(super) fn refund(taken: &[Asked], at: Instant, clock: &impl Clock) -> Option<Command> {
    let limits = as_script(taken);
    let refund = Refund::new(&limits, at).ok()?;
    Command::new(refund.script, keys(taken), refund.args, clock).ok()
}
