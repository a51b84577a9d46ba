//! The shared store of a policy, whichever way it is reached.

use super::{Failure, Pace, Settled, Ticket, command::Command, http::Http, redis::Redis};
use crate::host::{CalloutId, Callouts, Log, Moment, StreamId, Streams};
use weir_core::policy::Store;

/// A shared store.
#[derive(Debug)]
pub enum Remote {
    /// By streams.
    Redis(Redis),
    /// By callouts.
    Http(Box<Http>),
}

impl Remote {
    /// The store of a policy; `None` for the proxy's own.
    #[must_use]
    pub fn of(store: &Store) -> Option<Self> {
        match store {
            Store::Local => None,
            Store::Redis { cluster, streams, timeout } => {
                Some(Self::Redis(Redis::new(cluster, *streams, *timeout)))
            }
            Store::Http { cluster, api, token, host, timeout } => Some(Self::Http(Box::new(
                Http::new(cluster, *api, token.as_ref(), host.as_deref(), *timeout),
            ))),
        }
    }

    /// Sends a check, or says at once why not. `probe` asks for the same buckets and charges
    /// nothing.
    ///
    /// # Errors
    /// [`Failure`] says why nothing was sent.
    pub fn check(
        &mut self,
        host: &(impl Streams + Callouts + Log),
        now: Moment,
        ticket: Ticket,
        command: Command,
        probe: impl FnOnce() -> Option<Command>,
        settled: &mut Vec<Settled>,
    ) -> Result<(), Failure> {
        match self {
            Self::Redis(redis) => redis.check(host, now, ticket, command, probe, settled),
            Self::Http(http) => http.check(host, now, ticket, command, probe),
        }
    }

    /// Gives a charge back. Whether the store will be told.
    pub fn refund(&mut self, host: &(impl Streams + Log), now: Moment, command: Command) -> bool {
        match self {
            Self::Redis(redis) => redis.refund(host, now, command),
            Self::Http(http) => http.refund(command),
        }
    }

    /// Takes a message that came on a stream.
    pub fn on_message(
        &mut self,
        host: &(impl Streams + Log),
        now: Moment,
        id: StreamId,
        bytes: &[u8],
        settled: &mut Vec<Settled>,
    ) {
        if let Self::Redis(redis) = self {
            redis.on_message(host, now, id, bytes, settled);
        }
    }

    /// Takes the end of a stream.
    pub fn on_close(
        &mut self,
        host: &impl Log,
        now: Moment,
        id: StreamId,
        status: u32,
        settled: &mut Vec<Settled>,
    ) {
        if let Self::Redis(redis) = self {
            redis.on_close(host, now, id, status, settled);
        }
    }

    /// Takes the response to a callout; no body stands for one that failed.
    pub fn on_response(
        &mut self,
        host: &(impl Callouts + Log),
        now: Moment,
        id: CalloutId,
        body: Option<&[u8]>,
        settled: &mut Vec<Settled>,
    ) {
        if let Self::Http(http) = self {
            http.on_response(host, now, id, body, settled);
        }
    }

    /// Does what is due, from the root context.
    pub fn tick(
        &mut self,
        host: &(impl Streams + Callouts + Log),
        now: Moment,
        settled: &mut Vec<Settled>,
    ) {
        match self {
            Self::Redis(redis) => redis.tick(host, now, settled),
            Self::Http(http) => http.tick(host, now, settled),
        }
    }

    /// Answers the checks that have waited for their whole deadline.
    pub fn expire(&mut self, host: &impl Log, now: Moment, settled: &mut Vec<Settled>) {
        match self {
            Self::Redis(redis) => redis.expire(host, now, settled),
            Self::Http(http) => http.expire(host, now, settled),
        }
    }

    /// How soon a tick is wanted.
    #[must_use]
    pub fn pace(&self) -> Pace {
        match self {
            Self::Redis(redis) => redis.pace(),
            Self::Http(http) => http.pace(),
        }
    }
}
