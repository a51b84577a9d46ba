//! Redis by HTTP callouts through the proxy: to [`webdis`] or to a REST endpoint in the manner of
//! [`upstash`]. Each call is a request of its own, so replies come in any order.

pub mod upstash;
pub mod webdis;

use super::{
    Failure, Pace, Settled, Ticket,
    breaker::{Breaker, NO_ANSWER},
    command::{By, Command},
    resp::Reply,
};
use crate::host::{Callout, CalloutId, Callouts, Log, Moment};
use std::collections::BTreeMap;
use weir_core::{
    policy::{HttpApi, Token},
    units::Micros,
};

/// Calls that may wait for a reply at a time.
const MOST_OUTSTANDING: usize = 1_024;
/// How much longer than the deadline the proxy waits: a response that it makes up for a call that
/// took too long is then not taken for a store that cannot be reached.
const GRACE: Micros = Micros::new(5_000);
/// The longest body that is read. A script replies less than 2 KiB.
pub const LONGEST: usize = 64 << 10;

/// The endpoint of one plugin.
#[derive(Debug)]
pub struct Http {
    cluster: String,
    host: String,
    api: HttpApi,
    /// The value of the `authorization` header. It is never shown.
    authorization: Option<Authorization>,
    timeout: Micros,
    waiting: BTreeMap<CalloutId, Pending>,
    breaker: Breaker,
    /// What is to be sent from the root context, since nobody waits for it.
    unsent: Vec<Command>,
}

struct Authorization(String);

impl core::fmt::Debug for Authorization {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Authorization(…)")
    }
}

/// A call without its reply.
#[derive(Debug)]
struct Pending {
    purpose: Purpose,
    command: Command,
    by: By,
    sent: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Check(Ticket),
    Refund,
    Probe,
}

impl Purpose {
    /// Tells whoever the call was for that nothing came of it.
    fn fail(self, failure: Failure, settled: &mut Vec<Settled>) {
        match self {
            Self::Check(ticket) => settled.push(Settled::Check { ticket, result: Err(failure) }),
            Self::Refund => settled.push(Settled::RefundLost),
            Self::Probe => {}
        }
    }
}

/// An HTTP request for one command.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// Its path.
    pub path: &'static str,
    /// The type of its body.
    pub content_type: &'static str,
    /// Its body.
    pub body: Vec<u8>,
}

impl Http {
    /// The endpoint behind a cluster. `host` goes into the `:authority` of each request.
    #[must_use]
    pub fn new(
        cluster: &str,
        api: HttpApi,
        token: Option<&Token>,
        host: Option<&str>,
        timeout: Micros,
    ) -> Self {
        let bearer = |token: &Token| Authorization(format!("Bearer {}", token.as_str()));
        Self {
            cluster: cluster.to_owned(),
            host: host.unwrap_or(cluster).to_owned(),
            api,
            authorization: token.map(bearer),
            timeout,
            waiting: BTreeMap::new(),
            breaker: Breaker::new(format!("callouts to {cluster}"), timeout),
            unsent: Vec::new(),
        }
    }

    /// Sends a check, or says at once why not. `probe` asks for the same buckets and charges
    /// nothing.
    ///
    /// # Errors
    /// [`Failure`] says why nothing was sent.
    pub fn check(
        &mut self,
        host: &(impl Callouts + Log),
        now: Moment,
        ticket: Ticket,
        command: Command,
        probe: impl FnOnce() -> Option<Command>,
    ) -> Result<(), Failure> {
        self.breaker.keep_probe(probe);
        if self.breaker.is_open() {
            return Err(Failure::Down);
        }
        if self.waiting.len() >= MOST_OUTSTANDING {
            return Err(Failure::Busy);
        }
        self.send(host, now, Purpose::Check(ticket), command, By::Digest)
    }

    /// Sends what nobody waits for, at the next tick, or after an outage. Whether it will be.
    pub fn refund(&mut self, command: Command) -> bool {
        let takes = self.unsent.len() < MOST_OUTSTANDING;
        if takes {
            self.unsent.push(command);
        }
        takes
    }

    fn send(
        &mut self,
        host: &impl Callouts,
        sent: Moment,
        purpose: Purpose,
        command: Command,
        by: By,
    ) -> Result<(), Failure> {
        let request = match self.api {
            HttpApi::Webdis => webdis::request(&command, by),
            HttpApi::Upstash => upstash::request(&command, by),
        };
        let mut headers = vec![
            (":method", "POST"),
            (":path", request.path),
            (":authority", &self.host),
            ("content-type", request.content_type),
        ];
        if let Some(Authorization(value)) = &self.authorization {
            headers.push(("authorization", value));
        }
        let callout = Callout {
            cluster: &self.cluster,
            headers: &headers,
            body: &request.body,
            timeout: Micros::new(self.timeout.get().saturating_add(GRACE.get())),
        };
        // That the proxy sends none at the moment does not open the breaker: nobody waits for it,
        // and its circuit breaker may let the next one through.
        let id = host.dispatch(&callout).map_err(|_| Failure::Unsent)?;
        self.waiting.insert(id, Pending { purpose, command, by, sent });
        Ok(())
    }

    /// Takes the response to a callout; `None` stands for one that failed.
    pub fn on_response(
        &mut self,
        host: &(impl Callouts + Log),
        now: Moment,
        id: CalloutId,
        body: Option<&[u8]>,
        settled: &mut Vec<Settled>,
    ) {
        self.expire(host, now, settled);
        let Some(Pending { purpose, command, by, sent }) = self.waiting.remove(&id) else { return };
        let reply = body.filter(|body| body.len() <= LONGEST).and_then(|body| match self.api {
            HttpApi::Webdis => webdis::reply(body),
            HttpApi::Upstash => upstash::reply(body),
        });
        let Some(reply) = reply else {
            // One bad response among good ones is no outage.
            self.breaker.on_failure(host, sent, now, "a response is none of Redis");
            purpose.fail(Failure::Lost, settled);
            return;
        };
        // As with streams, an error is no sign that the store works.
        if !matches!(reply, Reply::Error(_)) || by.is_unknown(&reply) {
            self.breaker.on_answer(host, sent, now);
        }
        if by.is_unknown(&reply) {
            let sent = if matches!(purpose, Purpose::Check(_)) { sent } else { now };
            if let Err(failure) = self.send(host, sent, purpose, command, By::Text) {
                purpose.fail(failure, settled);
            }
            return;
        }
        match (purpose, reply) {
            (Purpose::Check(ticket), reply) => {
                settled.push(Settled::Check { ticket, result: Ok(reply) });
            }
            (Purpose::Refund, Reply::Error(_)) => settled.push(Settled::RefundLost),
            (Purpose::Refund | Purpose::Probe, _) => {}
        }
    }

    /// Does what is due, from the root context.
    pub fn tick(&mut self, host: &(impl Callouts + Log), now: Moment, settled: &mut Vec<Settled>) {
        self.expire(host, now, settled);
        let due =
            if self.breaker.is_open() { Vec::new() } else { core::mem::take(&mut self.unsent) };
        for command in due {
            if let Err(failure) = self.send(host, now, Purpose::Refund, command, By::Digest) {
                Purpose::Refund.fail(failure, settled);
            }
        }
        if let Some(probe) = self.breaker.probe(now) {
            // A probe that cannot be sent leaves the breaker open.
            let _ = self.send(host, now, Purpose::Probe, probe, By::Digest);
        }
    }

    /// Answers the checks that have waited for their whole deadline, and forgets what nobody waits
    /// for any more: the proxy gives up a callout at the same time, and tells it only to a request
    /// that still exists.
    pub fn expire(&mut self, host: &impl Log, now: Moment, settled: &mut Vec<Settled>) {
        let (timeout, breaker) = (self.timeout, &mut self.breaker);
        self.waiting.retain(|_, pending| {
            let waits = now.since(pending.sent) < timeout;
            if !waits {
                pending.purpose.fail(Failure::Timeout, settled);
            }
            if !waits && matches!(pending.purpose, Purpose::Check(_)) {
                breaker.on_failure(host, pending.sent, now, NO_ANSWER);
            }
            waits
        });
    }

    /// How soon a tick is wanted.
    #[must_use]
    pub fn pace(&self) -> Pace {
        if !self.waiting.is_empty() || (!self.unsent.is_empty() && !self.breaker.is_open()) {
            Pace::Soon
        } else if self.breaker.is_open() {
            Pace::Later
        } else {
            Pace::Never
        }
    }
}

/// The reply that a JSON number or array stands for.
fn integers(value: &serde_json::Value) -> Option<Reply> {
    match value {
        serde_json::Value::Number(number) => number.as_i64().map(Reply::Integer),
        serde_json::Value::Array(items) => {
            items.iter().map(integers).collect::<Option<_>>().map(|items| Reply::Array(Some(items)))
        }
        _ => None,
    }
}
