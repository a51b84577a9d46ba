//! Limits on counts in a shared store.
//!
//! What the store would certainly refuse is refused without a call. The other limits are asked in
//! one call for each slot, all at once, and the request waits for the replies, each no longer than
//! the deadline. A call charges all of its limits or none; where a limit in another call refuses,
//! or must not go unchecked and could not be, the charge is given back, less what has refilled.

mod calls;
mod outcome;

use super::{Asked, Decided, Request, combine};
use crate::{
    host::{CalloutId, Clock, Entropy, Host, HostError, Moment, SharedData, StreamId},
    metrics::Metric,
    plugin::Plugin,
    store::{
        Failure, Pace, Settled, Ticket, complaints::Complaints, recent::Recent, remote::Remote,
        resp::Reply,
    },
};
use calls::Charged;
use std::collections::BTreeMap;
use weir_core::{
    decision::{Decision, Outcome},
    key::Facts,
    limiter::State,
    response::Answer,
    units::Instant,
};

/// The shared store of one plugin, and the requests that wait for it.
#[derive(Debug)]
pub struct Shared {
    store: Remote,
    recent: Recent,
    waiting: BTreeMap<u32, Waiting>,
    /// Requests that have been decided and are to hear of it at the next event.
    due: Answers,
    complaints: Complaints,
}

/// Where a request stands.
#[derive(Clone, Debug)]
pub enum Progress {
    /// It is decided.
    Done(Decided),
    /// It waits; its answer will be among the [`Answers`] of a later call.
    Waits,
}

/// Requests that have been decided after a wait, by their contexts.
pub type Answers = Vec<(u32, Decided)>;

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    /// Limits that are known to refuse, all in shadow mode.
    known: Vec<(Asked, Decision)>,
    calls: Vec<Sent>,
    at: Moment,
}

/// One call.
#[derive(Debug)]
struct Sent {
    asked: Vec<Asked>,
    result: Option<Result<Charged, Failure>>,
}

impl Shared {
    /// The store of a plugin; `None` where that is the proxy's own.
    ///
    /// # Errors
    /// [`HostError`] if the host refuses shared data.
    pub fn open(
        plugin: &Plugin,
        host: &(impl SharedData + Entropy),
    ) -> Result<Option<Self>, HostError> {
        let Some(store) = Remote::of(&plugin.policy.store) else { return Ok(None) };
        let recent = Recent::open(plugin.store, host)?;
        Ok(Some(Self {
            store,
            recent,
            waiting: BTreeMap::new(),
            due: Answers::new(),
            complaints: Complaints::default(),
        }))
    }

    /// Begins a request. Others may be decided meanwhile, since their deadlines have come; they
    /// hear of it at the next event: the proxy stops the request in whose callback it sends a
    /// reply, whichever request that is for, and this one would hang.
    pub fn begin(
        &mut self,
        plugin: &Plugin,
        context: u32,
        facts: &impl Facts,
        clock: &impl Clock,
        host: &impl Host,
    ) -> Progress {
        let request = Request { plugin, host };
        let asked = match request.ask_all(facts) {
            Ok(asked) if asked.is_empty() => return Progress::Done(Answer::UNTOUCHED.into()),
            Ok(asked) => asked,
            Err(answer) => return Progress::Done(answer.into()),
        };
        // Without a clock there is no deadline, so nothing may wait.
        let Ok(now) = host.moment() else {
            let failed = Sent { asked, result: Some(Err(Failure::Host)) };
            let waiting = Waiting { known: Vec::new(), calls: vec![failed], at: Moment::END };
            return Progress::Done(self.finish(&request, waiting, Moment::END));
        };
        let (known, open) = self.refusals(&request, now, asked);
        if known.iter().any(|(asked, _)| asked.enforced) {
            let said: Vec<_> = known.iter().filter_map(|(a, d)| request.said(a, *d)).collect();
            return Progress::Done(request.tell(&combine(&said), &said).into());
        }
        let mut settled = Vec::new();
        self.store.expire(host, now, &mut settled);
        let groups = calls::by_slot(open);
        let refundable = groups.len() > 1;
        let mut sent = Vec::new();
        for (call, asked) in groups.into_iter().enumerate() {
            let ticket = Ticket { context, call };
            let result =
                self.send(&request, clock, now, (ticket, &asked), refundable, &mut settled);
            sent.push(Sent { asked, result: result.err().map(Err) });
        }
        self.waiting.insert(context, Waiting { known, calls: sent, at: now });
        self.settle(&request, now, settled);
        // What was lost on sending has its result by now.
        let own = self.due.iter().position(|(decided, _)| *decided == context);
        let own = own.map(|place| self.due.swap_remove(place).1);
        own.or_else(|| self.complete(&request, now, context))
            .map_or(Progress::Waits, Progress::Done)
    }

    /// Takes a message that came on a stream.
    pub fn on_message(
        &mut self,
        plugin: &Plugin,
        host: &impl Host,
        (stream, bytes): (StreamId, &[u8]),
    ) -> Answers {
        self.step(plugin, host, |store, now, settled| {
            store.on_message(host, now, stream, bytes, settled);
            store.expire(host, now, settled);
        })
    }

    /// Takes the end of a stream.
    pub fn on_close(
        &mut self,
        plugin: &Plugin,
        host: &impl Host,
        (stream, status): (StreamId, u32),
    ) -> Answers {
        self.step(plugin, host, |store, now, settled| {
            store.on_close(host, now, stream, status, settled);
            store.expire(host, now, settled);
        })
    }

    /// Takes the response to a callout; no body stands for one that failed.
    pub fn on_response(
        &mut self,
        plugin: &Plugin,
        host: &impl Host,
        (callout, body): (CalloutId, Option<&[u8]>),
    ) -> Answers {
        self.step(plugin, host, |store, now, settled| {
            store.on_response(host, now, callout, body, settled);
        })
    }

    /// Does what is due, from the root context.
    pub fn on_tick(&mut self, plugin: &Plugin, host: &impl Host) -> Answers {
        self.step(plugin, host, |store, now, settled| store.tick(host, now, settled))
    }

    /// How soon a tick is wanted.
    #[must_use]
    pub fn pace(&self) -> Pace {
        if self.due.is_empty() { self.store.pace() } else { Pace::Soon }
    }

    fn step(
        &mut self,
        plugin: &Plugin,
        host: &impl Host,
        event: impl FnOnce(&mut Remote, Moment, &mut Vec<Settled>),
    ) -> Answers {
        // Without a clock everything is overdue.
        let now = host.moment().unwrap_or(Moment::END);
        let mut settled = Vec::new();
        event(&mut self.store, now, &mut settled);
        self.settle(&Request { plugin, host }, now, settled);
        core::mem::take(&mut self.due)
    }

    /// Limits that would certainly refuse, and those that have to be asked. The request is known
    /// to be refused if one of the first is enforced.
    fn refusals(
        &self,
        request: &Request<'_, impl Host>,
        now: Moment,
        asked: Vec<Asked>,
    ) -> (Vec<(Asked, Decision)>, Vec<Asked>) {
        let (mut known, mut open) = (Vec::new(), Vec::new());
        for asked in asked {
            let Asked { limiter, ask, digest, .. } = &asked;
            let unused = limiter.step(&State::None, Instant::EPOCH, *ask).decision;
            if let Outcome::Never(_) = unused.outcome {
                known.push((asked, unused));
            } else if let Some(refusal) =
                self.recent.refusal(request.host, now, *digest, limiter, *ask)
            {
                request.count(Metric::Recalled);
                known.push((asked, refusal));
            } else {
                open.push(asked);
            }
        }
        (known, open)
    }

    /// Sends one call of a request, whose deadline counts from `at`.
    fn send(
        &mut self,
        request: &Request<'_, impl Host>,
        clock: &impl Clock,
        at: Moment,
        (ticket, asked): (Ticket, &[Asked]),
        refundable: bool,
        settled: &mut Vec<Settled>,
    ) -> Result<(), Failure> {
        let host = request.host;
        let command = calls::command(asked, refundable, clock)?;
        let probe = || calls::probe(asked, clock);
        let sent = self.store.check(host, at, ticket, command, probe, settled);
        match sent {
            Ok(()) => request.count(Metric::StoreCall),
            Err(Failure::Unsent) => {
                self.complaints.tell(host, at, b"the proxy sends no call to it; see its cluster");
            }
            Err(_) => {}
        }
        sent
    }

    /// Puts results where they belong, and decides the requests that have all of theirs.
    fn settle(&mut self, request: &Request<'_, impl Host>, now: Moment, mut settled: Vec<Settled>) {
        // What is sent meanwhile may come to nothing at once.
        while !settled.is_empty() {
            for one in core::mem::take(&mut settled) {
                let Settled::Check { ticket, result } = one else {
                    request.count(Metric::RefundLost);
                    continue;
                };
                self.settle_check(request, now, (ticket, result), &mut settled);
                if let Some(answer) = self.complete(request, now, ticket.context) {
                    self.due.push((ticket.context, answer));
                }
            }
        }
    }

    fn settle_check(
        &mut self,
        request: &Request<'_, impl Host>,
        now: Moment,
        (ticket, result): (Ticket, Result<Reply, Failure>),
        settled: &mut Vec<Settled>,
    ) {
        let Some(waiting) = self.waiting.get_mut(&ticket.context) else { return };
        let refundable = waiting.calls.len() > 1;
        let Some(call) = waiting.calls.get_mut(ticket.call) else { return };
        if call.asked.len() > 1 && result.as_ref().is_ok_and(calls::is_half_moved) {
            return self.ask_one_by_one(request, ticket, settled);
        }
        let result = result.and_then(|reply| {
            calls::charged(&call.asked, refundable, reply).map_err(|complaint| {
                self.complaints.tell(request.host, now, &complaint);
                Failure::Error
            })
        });
        call.result.get_or_insert(result);
    }

    /// Asks the limits of one call by a call each, within the same deadline: their slot is on its
    /// way from one node to another, and neither has all of its keys.
    fn ask_one_by_one(
        &mut self,
        request: &Request<'_, impl Host>,
        ticket: Ticket,
        settled: &mut Vec<Settled>,
    ) {
        let Some(waiting) = self.waiting.get_mut(&ticket.context) else { return };
        let Some(call) = waiting.calls.get_mut(ticket.call) else { return };
        let (at, others) = (waiting.at, call.asked.split_off(1));
        // The first has the place of the call that it was in.
        let mut places = vec![ticket.call];
        for asked in others {
            places.push(waiting.calls.len());
            waiting.calls.push(Sent { asked: vec![asked], result: None });
        }
        for call in places {
            let ticket = Ticket { call, ..ticket };
            let Some(asked) = self.call(ticket).map(|call| call.asked.clone()) else { continue };
            let sent = self.send(request, request.host, at, (ticket, &asked), true, settled);
            if let (Err(failure), Some(call)) = (sent, self.call(ticket)) {
                call.result = Some(Err(failure));
            }
        }
    }

    fn call(&mut self, ticket: Ticket) -> Option<&mut Sent> {
        self.waiting.get_mut(&ticket.context)?.calls.get_mut(ticket.call)
    }

    /// The answer to a request that has all of its results.
    fn complete(
        &mut self,
        request: &Request<'_, impl Host>,
        now: Moment,
        context: u32,
    ) -> Option<Decided> {
        let waiting = self.waiting.get(&context)?;
        if waiting.calls.iter().any(|call| call.result.is_none()) {
            return None;
        }
        let waiting = self.waiting.remove(&context)?;
        Some(self.finish(request, waiting, now))
    }
}
