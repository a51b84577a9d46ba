//! A limiter in the proxy: the plugin, its shared store if it has one, and what is on its way
//! between the contexts.

use crate::{
    flow::{
        self, Decided, Permit,
        shared::{Answers, Progress, Shared},
    },
    host::{CalloutId, Clock, Level, Log, Moment, SharedData, Stopwatch, Swap, wasm::Proxy, wire},
    plugin::Plugin,
    store::{Pace, http::LONGEST},
};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
};
use weir_core::{
    key::Facts,
    response::{Answer, Header},
    units::Micros,
};

/// The key of shared data that says that a warning has been logged.
const WARNED_KEY: &str = "weir/1/warned";

/// All that the contexts of one configuration have in common.
pub(crate) struct Limiter {
    plugin: Plugin,
    shared: Option<RefCell<Shared>>,
    /// Headers for the responses of requests that have gone on after a wait, by their contexts.
    told: RefCell<BTreeMap<u32, Vec<Header>>>,
    /// What requests hold until they end, by their contexts.
    permits: RefCell<BTreeMap<u32, Vec<Permit>>>,
    /// Requests that are held back, by when they go on.
    held: RefCell<BTreeSet<(Moment, u32)>>,
    /// Milliseconds between ticks; 0 for none.
    ticks: Cell<u32>,
    /// The time of the last request.
    #[cfg(feature = "test-clock")]
    latest: Cell<weir_core::units::Instant>,
}

impl Limiter {
    /// A limiter, whose first tick opens the streams to its store.
    pub(crate) fn new(plugin: Plugin, shared: Option<Shared>) -> Self {
        // Every worker configures; one of them tells.
        if let Some(warning) = plugin.warning()
            && matches!(Proxy.swap(WARNED_KEY, b"1", None), Ok(Swap::Done))
        {
            Proxy.log(Level::Warn, &format!("weir: {warning}"));
        }
        let limiter = Self {
            plugin,
            shared: shared.map(RefCell::new),
            told: RefCell::default(),
            permits: RefCell::default(),
            held: RefCell::default(),
            ticks: Cell::new(0),
            #[cfg(feature = "test-clock")]
            latest: Cell::default(),
        };
        limiter.set_pace();
        limiter
    }

    /// Begins a request.
    pub(crate) fn begin(&self, context: u32, facts: &impl Facts, clock: &impl Clock) -> Progress {
        #[cfg(feature = "test-clock")]
        self.latest.set(clock.now().unwrap_or_default());
        let Some(shared) = &self.shared else {
            return Progress::Done(flow::decide(&self.plugin, facts, clock, &Proxy));
        };
        // Nothing that holds the borrow calls back; were it so, the request would go unchecked.
        let Ok(mut shared) = shared.try_borrow_mut() else {
            return Progress::Done(Answer::UNTOUCHED.into());
        };
        let progress = shared.begin(&self.plugin, context, facts, clock, &Proxy);
        drop(shared);
        self.set_pace();
        progress
    }

    /// Lets the store take an event, and answers the requests that were waiting for it.
    pub(crate) fn on_event(&self, event: impl FnOnce(&mut Shared, &Plugin) -> Answers) {
        let Some(shared) = &self.shared else { return };
        let Ok(mut shared) = shared.try_borrow_mut() else { return };
        let answers = event(&mut shared, &self.plugin);
        drop(shared);
        self.deliver(answers);
        self.set_pace();
    }

    /// Does what is due.
    pub(crate) fn on_tick(&self) {
        self.release_held();
        self.on_event(|shared, plugin| shared.on_tick(plugin, &Proxy));
        self.reset_pace();
    }

    /// Takes the response to a callout.
    pub(crate) fn on_response(&self, callout: CalloutId, headers: usize, size: usize) {
        // A call that failed has no headers, and asking for its body would be an error.
        // What is too long is not even fetched: the module's memory never shrinks.
        let fetched = headers > 0 && size <= LONGEST;
        let body = if fetched { wire::callout_body(size).ok() } else { None };
        self.on_event(|shared, plugin| {
            shared.on_response(plugin, &Proxy, (callout, body.as_deref()))
        });
    }

    /// Keeps the permits of a request until it ends.
    pub(crate) fn hold_permits(&self, context: u32, permits: Vec<Permit>) {
        if permits.is_empty() {
            return;
        }
        match self.permits.try_borrow_mut() {
            Ok(mut held) => drop(held.insert(context, permits)),
            // They end with their lease.
            Err(_) => self.release(&permits),
        }
    }

    /// The request has ended: gives back what it has held.
    pub(crate) fn on_end(&self, context: u32) {
        let permits = self.permits.try_borrow_mut().ok().and_then(|mut held| held.remove(&context));
        self.release(&permits.unwrap_or_default());
    }

    #[cfg(not(feature = "test-clock"))]
    fn clock(&self) -> Proxy {
        Proxy
    }

    /// The time of the last request.
    #[cfg(feature = "test-clock")]
    fn clock(&self) -> crate::http::test_clock::StoppedClock {
        crate::http::test_clock::StoppedClock(self.latest.get())
    }

    fn release(&self, permits: &[Permit]) {
        if permits.is_empty() {
            return;
        }
        match &self.shared {
            None => flow::release(&self.plugin, permits, &self.clock(), &Proxy),
            Some(shared) => {
                if let Ok(mut shared) = shared.try_borrow_mut() {
                    shared.release(&self.plugin, &Proxy, &self.clock(), permits);
                }
            }
        }
        self.set_pace();
    }

    /// Headers for the response of a request.
    pub(crate) fn take_told(&self, context: u32) -> Vec<Header> {
        let told = self.told.try_borrow_mut().ok().and_then(|mut told| told.remove(&context));
        told.unwrap_or_default()
    }

    fn deliver(&self, answers: Answers) {
        for (context, Decided { answer, permits }) in answers {
            // The client may have gone meanwhile.
            if wire::act_for(context).is_err() {
                self.release(&permits);
                continue;
            }
            self.hold_permits(context, permits);
            let done = match answer {
                Answer::Pass { delay, headers } => {
                    #[cfg(feature = "test-clock")]
                    let headers = [headers, vec![crate::http::test_clock::told(delay)]].concat();
                    let held = self.hold(context, delay);
                    if !headers.is_empty()
                        && let Ok(mut told) = self.told.try_borrow_mut()
                    {
                        told.insert(context, headers);
                    }
                    if held { Ok(()) } else { wire::resume() }
                }
                // A request that can neither be answered nor go on would hang.
                Answer::Reply(reply) => wire::reply(&reply).or_else(|_| wire::resume()),
            };
            if let Err(error) = done {
                Proxy.log(Level::Error, &format!("weir: a request cannot be answered: {error}"));
            }
        }
    }

    /// Holds a request back for a time. Whether it is held: it goes on at once for no time, and
    /// where the host has no clock to hold it by.
    pub(crate) fn hold(&self, context: u32, delay: Micros) -> bool {
        // On a test's clock there is no time to wait.
        if delay == Micros::ZERO || cfg!(feature = "test-clock") {
            return false;
        }
        let (Ok(now), Ok(mut held)) = (Proxy.moment(), self.held.try_borrow_mut()) else {
            return false;
        };
        held.insert((now.after(delay), context));
        drop(held);
        self.set_pace();
        true
    }

    /// Lets the requests go on that have been held for long enough.
    fn release_held(&self) {
        let Ok(mut held) = self.held.try_borrow_mut() else { return };
        let now = Proxy.moment().unwrap_or(Moment::END);
        while held.first().is_some_and(|(until, _)| *until <= now) {
            let Some((_, context)) = held.pop_first() else { return };
            // The client may have gone meanwhile.
            if wire::act_for(context).is_ok() {
                let _ = wire::resume();
            }
        }
    }

    /// Ticks as often as something is due, and no less often than before: a timer that is set anew
    /// with each request would never come.
    fn set_pace(&self) {
        let (now, wanted) = (self.ticks.get(), self.wanted_ticks());
        if wanted > 0 && (now == 0 || wanted < now) {
            self.ticks.set(wanted);
            wire::tick_every(wanted);
        }
    }

    /// The same, or less often, at a tick.
    fn reset_pace(&self) {
        let wanted = self.wanted_ticks();
        if self.ticks.replace(wanted) != wanted {
            wire::tick_every(wanted);
        }
    }

    /// Milliseconds between ticks; 0 for none.
    fn wanted_ticks(&self) -> u32 {
        let store = self.shared.as_ref().and_then(|shared| shared.try_borrow().ok());
        let store = store.map_or(Pace::Never, |shared| shared.pace());
        let holds = self.held.try_borrow().is_ok_and(|held| !held.is_empty());
        match store.max(if holds { Pace::Soon } else { Pace::Never }) {
            Pace::Never => 0,
            Pace::Later => 20,
            // The proxy's timers come every 4 ms or so at best.
            Pace::Soon => 2,
        }
    }
}
