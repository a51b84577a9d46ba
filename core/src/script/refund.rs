//! What gives a charge back that another slot of the store has made useless.

use super::{
    Asked, Key, REFUND, Script, Unsendable,
    call::{Step, steps},
    reply::BadReply,
};
use crate::units::Instant;
use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// A call that undoes what one request was charged, less what has come back of it since, as
/// [`Limiter::refund`](crate::limiter::Limiter::refund) does.
///
/// It is to be sent once for a charge: only a log and permits know whose a token is.
#[derive(Clone, Debug)]
pub struct Refund {
    /// What is called.
    pub script: &'static Script,
    /// ARGV, all of it printable ASCII; KEYS is [`Refund::keys`].
    pub args: Vec<String>,
    keys: Vec<Key>,
}

impl Refund {
    /// The call that undoes the charges that were made at `charged`, by the store's clock
    /// ([`Call::charged`](super::Call::charged)). `limits` are those that were charged and no
    /// others, as they were asked; see [`Call::taken_from`](super::Call::taken_from).
    ///
    /// # Errors
    /// [`Unsendable`] says why these limits cannot be paid back in one call.
    pub fn new(limits: &[Asked<'_>], charged: Instant) -> Result<Self, Unsendable> {
        let steps = steps(limits)?.into_iter().flat_map(|step: Step| step.labelled(true));
        let args = core::iter::once(charged.as_micros().to_string()).chain(steps).collect();
        let keys = limits.iter().map(|limit| limit.key).collect();
        Ok(Self { script: &REFUND, args, keys })
    }

    /// KEYS in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(Key::as_str)
    }

    /// Of each limit, whether something was given back; nothing is if all of it has come back by
    /// itself or the bucket is gone.
    ///
    /// # Errors
    /// [`BadReply`] for any integers that the script cannot have replied.
    pub fn outcome(&self, reply: &[i64]) -> Result<Vec<bool>, BadReply> {
        let (found, expected) = (reply.len(), self.keys.len());
        if found != expected {
            return Err(BadReply::Length { found, expected });
        }
        let given = reply.iter().enumerate().map(|(place, found)| match found {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadReply::Number { place, found: *found }),
        });
        given.collect()
    }
}
