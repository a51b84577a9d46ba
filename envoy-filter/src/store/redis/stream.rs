//! One stream to Redis: commands go out as they come, and replies come back in the same order.

use super::super::{
    Failure, Pace, Settled, Ticket,
    breaker::{Breaker, NO_ANSWER},
    command::{By, Command},
    resp::{self, Decoder, Reply},
};
use crate::host::{Log, Moment, StreamId, Streams};
use std::{borrow::Cow, collections::VecDeque};
use weir_core::units::Micros;

/// Calls that may wait for a reply at a time, expired ones among them.
const MOST_OUTSTANDING: usize = 1_024;
/// A stream on which no reply came for so long while something waited is given up: a host that is
/// gone without a word keeps its connections for many minutes.
const SILENCE: Micros = Micros::new(1_000_000);
/// Before a stream that brought nothing is opened anew, at first and at most; it doubles between.
const SHORTEST_PAUSE: Micros = Micros::new(50_000);
const LONGEST_PAUSE: Micros = Micros::new(200_000);

/// A stream, open or about to be.
#[derive(Debug)]
pub(super) struct Stream {
    cluster: String,
    timeout: Micros,
    link: Link,
    /// How long to wait after the next failure.
    pause: Micros,
    queue: VecDeque<Pending>,
    /// Commands that came before the stream was open.
    unsent: Vec<u8>,
    decoder: Decoder,
    breaker: Breaker,
    /// Whether a request has ever come. The proxy's main thread has a limiter too, which gets none.
    used: bool,
}

#[derive(Clone, Copy, Debug)]
enum Link {
    /// To be opened at the next tick.
    Unopened,
    /// To be opened then.
    Paused { until: Moment },
    /// Open. `heard` is when a whole reply last came; `worked`, whether one was no error: a Redis
    /// that takes no clients says so on each connection, and closes it.
    Open { id: StreamId, heard: Option<Moment>, worked: bool },
    /// Lost before there was ever a request: to be opened when one comes.
    Dormant,
}

/// A command without its reply.
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
    /// A check that was answered when its deadline came. Its reply still has its place.
    Expired,
    Refund,
    Probe,
}

impl Stream {
    pub(super) fn new(number: u64, cluster: &str, timeout: Micros) -> Self {
        Self {
            cluster: cluster.to_owned(),
            timeout,
            link: Link::Unopened,
            pause: SHORTEST_PAUSE,
            queue: VecDeque::new(),
            unsent: Vec::new(),
            decoder: Decoder::default(),
            breaker: Breaker::new(format!("stream {number} to {cluster}"), timeout),
            used: false,
        }
    }

    pub(super) fn is(&self, stream: StreamId) -> bool {
        matches!(self.link, Link::Open { id, .. } if id == stream)
    }

    /// Sends a check, or says at once why not.
    pub(super) fn check(
        &mut self,
        host: &(impl Streams + Log),
        now: Moment,
        ticket: Ticket,
        command: Command,
        probe: impl FnOnce() -> Option<Command>,
        settled: &mut Vec<Settled>,
    ) -> Result<(), Failure> {
        self.used = true;
        if matches!(self.link, Link::Dormant) {
            self.link = Link::Unopened;
        }
        self.breaker.keep_probe(probe);
        if self.breaker.is_open() {
            return Err(Failure::Down);
        }
        if self.queue.len() >= MOST_OUTSTANDING {
            return Err(Failure::Busy);
        }
        self.send(host, (now, now), Purpose::Check(ticket), command, By::Digest, settled);
        Ok(())
    }

    /// Sends what nobody waits for, in an outage too. Whether it could be. A stream that is gone is
    /// noticed by what comes next.
    pub(super) fn refund(&mut self, host: &impl Streams, now: Moment, command: Command) -> bool {
        let bytes = encoded(&command, By::Digest);
        let takes = self.queue.len() < MOST_OUTSTANDING
            && match self.link {
                Link::Open { id, .. } => host.send(id, &bytes).is_ok(),
                Link::Unopened => {
                    self.unsent.extend(bytes);
                    true
                }
                Link::Paused { .. } | Link::Dormant => false,
            };
        if takes {
            let purpose = Purpose::Refund;
            self.queue.push_back(Pending { purpose, command, by: By::Digest, sent: now });
        }
        takes
    }

    fn send(
        &mut self,
        host: &(impl Streams + Log),
        (now, sent): (Moment, Moment),
        purpose: Purpose,
        command: Command,
        by: By,
        settled: &mut Vec<Settled>,
    ) {
        let bytes = encoded(&command, by);
        let Link::Open { id, .. } = self.link else {
            self.unsent.extend(bytes);
            self.queue.push_back(Pending { purpose, command, by, sent });
            return;
        };
        self.queue.push_back(Pending { purpose, command, by, sent });
        if host.send(id, &bytes).is_err() {
            self.lost(host, now, "it is gone", settled);
        }
    }

    /// Takes the bytes of one message.
    pub(super) fn receive(
        &mut self,
        host: &(impl Streams + Log),
        now: Moment,
        bytes: &[u8],
        settled: &mut Vec<Settled>,
    ) {
        self.decoder.feed(bytes);
        loop {
            let reply = match self.decoder.reply() {
                Ok(Some(reply)) => reply,
                Ok(None) => return,
                Err(resp::Malformed) => {
                    return self.give_up(host, now, "it answers no replies of Redis", settled);
                }
            };
            let Some(pending) = self.queue.pop_front() else {
                return self.give_up(host, now, "it replies unasked", settled);
            };
            let works = !matches!(reply, Reply::Error(_)) || pending.by.is_unknown(&reply);
            if let Link::Open { heard, worked, .. } = &mut self.link {
                *heard = Some(now);
                *worked |= works;
            }
            if works {
                self.pause = SHORTEST_PAUSE;
                self.breaker.on_answer(host, pending.sent, now);
            }
            self.answer(host, now, pending, reply, settled);
        }
    }

    fn answer(
        &mut self,
        host: &(impl Streams + Log),
        now: Moment,
        pending: Pending,
        reply: Reply,
        settled: &mut Vec<Settled>,
    ) {
        let Pending { purpose, command, by, sent } = pending;
        match purpose {
            Purpose::Expired => {}
            _ if by.is_unknown(&reply) => {
                // Its deadline still counts from when it was first sent; for a probe it counts anew.
                let sent = if purpose == Purpose::Probe { now } else { sent };
                self.send(host, (now, sent), purpose, command, By::Text, settled);
            }
            Purpose::Check(ticket) => settled.push(Settled::Check { ticket, result: Ok(reply) }),
            Purpose::Refund if matches!(reply, Reply::Error(_)) => {
                settled.push(Settled::RefundLost);
            }
            Purpose::Refund | Purpose::Probe => {}
        }
    }

    /// The stream has ended.
    pub(super) fn on_close(
        &mut self,
        host: &impl Log,
        now: Moment,
        status: u32,
        settled: &mut Vec<Settled>,
    ) {
        self.lost(host, now, &format!("it was closed with gRPC status {status}"), settled);
    }

    /// What is due: checks that have waited for too long, a silent stream, one to open, a probe.
    pub(super) fn tick(
        &mut self,
        host: &(impl Streams + Log),
        now: Moment,
        settled: &mut Vec<Settled>,
    ) {
        self.expire(host, now, settled);
        let waits_since = self.queue.front().map(|oldest| oldest.sent);
        if let (Link::Open { heard, .. }, Some(sent)) = (self.link, waits_since)
            && now.since(heard.map_or(sent, |heard| heard.max(sent))) >= SILENCE.max(self.timeout)
        {
            self.give_up(host, now, "it is silent", settled);
        }
        match self.link {
            Link::Unopened => self.open(host, now, settled),
            Link::Paused { until } if until <= now => self.open(host, now, settled),
            _ => {}
        }
        if matches!(self.link, Link::Open { .. })
            && let Some(probe) = self.breaker.probe(now)
        {
            self.send(host, (now, now), Purpose::Probe, probe, By::Digest, settled);
        }
    }

    /// Answers the checks that have waited for their whole deadline.
    pub(super) fn expire(&mut self, host: &impl Log, now: Moment, settled: &mut Vec<Settled>) {
        for pending in &mut self.queue {
            let Purpose::Check(ticket) = pending.purpose else { continue };
            if now.since(pending.sent) < self.timeout {
                continue;
            }
            pending.purpose = Purpose::Expired;
            settled.push(Settled::Check { ticket, result: Err(Failure::Timeout) });
            self.breaker.on_failure(host, pending.sent, now, NO_ANSWER);
        }
    }

    fn open(&mut self, host: &(impl Streams + Log), now: Moment, settled: &mut Vec<Settled>) {
        match host.open(&self.cluster) {
            Ok(id) => {
                self.link = Link::Open { id, heard: None, worked: false };
                let unsent = core::mem::take(&mut self.unsent);
                if !unsent.is_empty() && host.send(id, &unsent).is_err() {
                    self.lost(host, now, "it is gone", settled);
                }
            }
            Err(error) => self.lost(host, now, &format!("it cannot be opened: {error}"), settled),
        }
    }

    fn give_up(
        &mut self,
        host: &(impl Streams + Log),
        now: Moment,
        why: &str,
        settled: &mut Vec<Settled>,
    ) {
        if let Link::Open { id, worked, .. } = &mut self.link {
            host.cancel(*id);
            // Whatever came from it does not count: it is not to be opened anew at once.
            *worked = false;
        }
        self.lost(host, now, why, settled);
    }

    /// The stream is no more: whoever waits gets the failure policy.
    fn lost(&mut self, host: &impl Log, now: Moment, why: &str, settled: &mut Vec<Settled>) {
        let worked = matches!(self.link, Link::Open { worked: true, .. });
        for Pending { purpose, .. } in self.queue.drain(..) {
            match purpose {
                Purpose::Check(ticket) => {
                    settled.push(Settled::Check { ticket, result: Err(Failure::Lost) });
                }
                Purpose::Refund => settled.push(Settled::RefundLost),
                Purpose::Expired | Purpose::Probe => {}
            }
        }
        self.unsent.clear();
        self.decoder = Decoder::default();
        if worked {
            self.link = Link::Unopened;
        } else if self.used {
            self.link = Link::Paused { until: now.after(self.pause) };
            self.pause = Micros::new(self.pause.get().saturating_mul(2)).min(LONGEST_PAUSE);
            self.breaker.on_loss(host, now, why);
        } else {
            self.link = Link::Dormant;
        }
    }

    /// Whether something is to happen soon, or something is to happen at all, without a message.
    pub(super) fn pace(&self) -> Pace {
        let waits = self.queue.iter().any(|pending| pending.purpose != Purpose::Expired);
        match self.link {
            Link::Unopened => Pace::Soon,
            _ if waits => Pace::Soon,
            Link::Paused { .. } => Pace::Later,
            _ if !self.queue.is_empty() || self.breaker.is_open() => Pace::Later,
            _ => Pace::Never,
        }
    }
}

fn encoded(command: &Command, by: By) -> Vec<u8> {
    resp::command(command.words(by).iter().map(Cow::as_ref))
}
