//! One request in the proxy: carries out what [`crate::flow`] decides.

use crate::{
    facts::Fields,
    flow::{Decided, shared::Progress},
    host::{
        CalloutId, Level, Log,
        wasm::{self, Proxy},
        wire,
    },
    limiter::Limiter,
    request::ProxyFacts,
};
use proxy_wasm::{
    traits::{Context, HttpContext},
    types::Action,
};
use std::rc::Rc;
use weir_core::response::{Answer, Header, Reply};

/// A request, from its headers to those of its response.
pub(crate) struct Http {
    context: u32,
    limiter: Option<Rc<Limiter>>,
    /// What to add to the upstream's response.
    headers: Vec<Header>,
}

impl Http {
    pub(crate) fn new(context: u32, limiter: Option<Rc<Limiter>>) -> Self {
        Self { context, limiter, headers: Vec::new() }
    }

    fn begin(&self) -> Progress {
        let Some(limiter) = &self.limiter else {
            return Progress::Done(Answer::Reply(not_configured()).into());
        };
        // Without its headers a request has no key, and the limit says what that means.
        let map = wasm::request_headers().unwrap_or_default();
        let fields = Fields::new(&map);
        #[cfg(feature = "test-clock")]
        test_clock::trap(fields);
        limiter.begin(self.context, &ProxyFacts(fields), &clock(fields))
    }

    /// Headers that came while the request waited, if it did.
    fn told(&self) -> Vec<Header> {
        self.limiter.as_ref().map(|limiter| limiter.take_told(self.context)).unwrap_or_default()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // The client may have gone before the response came.
        self.told();
    }
}

impl Context for Http {
    fn on_http_call_response(&mut self, callout: u32, headers: usize, size: usize, _: usize) {
        if let Some(limiter) = &self.limiter {
            limiter.on_response(CalloutId(callout), headers, size);
        }
    }
}

impl HttpContext for Http {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        let Progress::Done(Decided { answer, permits }) = self.begin() else {
            return Action::Pause;
        };
        if let Some(limiter) = &self.limiter {
            limiter.hold_permits(self.context, permits);
        }
        match answer {
            Answer::Pass { delay, headers } => {
                self.headers = headers;
                #[cfg(feature = "test-clock")]
                self.headers.push(test_clock::told(delay));
                let limiter = self.limiter.as_ref();
                let held = limiter.is_some_and(|limiter| limiter.hold(self.context, delay));
                if held { Action::Pause } else { Action::Continue }
            }
            Answer::Reply(reply) => send(&reply),
        }
    }

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        let mut headers = core::mem::take(&mut self.headers);
        headers.extend(self.told());
        for (name, value) in headers {
            if let Err(error) = wasm::add_response_header(name, &value) {
                Proxy.log(Level::Warn, &format!("weir: the header {name} is left out: {error}"));
            }
        }
        Action::Continue
    }

    fn on_log(&mut self) {
        if let Some(limiter) = &self.limiter {
            limiter.on_end(self.context);
        }
    }
}

/// A request that could neither be answered nor go on would hang, so one that cannot be answered
/// goes on.
fn send(reply: &Reply) -> Action {
    match wire::reply(reply) {
        Ok(()) => Action::Pause,
        Err(error) => {
            Proxy.log(Level::Error, &format!("weir: a request went on unanswered: {error}"));
            Action::Continue
        }
    }
}

/// For a request before any configuration, which the proxy does not send.
fn not_configured() -> Reply {
    Reply { status: 503, grpc_status: 14, headers: Vec::new(), body: "weir has no policy\n".into() }
}

#[cfg(not(feature = "test-clock"))]
fn clock(_: Fields<'_>) -> Proxy {
    Proxy
}

#[cfg(feature = "test-clock")]
fn clock(fields: Fields<'_>) -> test_clock::RequestClock<'_> {
    test_clock::RequestClock(fields)
}

#[cfg(feature = "test-clock")]
pub(crate) mod test_clock {
    use crate::{
        facts::Fields,
        host::{Clock, HostError},
    };
    use weir_core::{
        key::fields::FieldValue,
        response::Header,
        units::{Instant, Micros},
    };

    /// Marks a module that is built with this clock: `cargo xtask tidy` looks for the export. The
    /// header's name would not do, since the compiler compares it piece by piece.
    #[allow(unsafe_code)]
    #[unsafe(export_name = "weir_test_clock")]
    extern "C" fn marker() {}

    /// The header that holds the time.
    const HEADER: &str = "x-weir-test-now";
    /// The header that asks for a trap.
    const TRAP: &str = "x-weir-test-trap";

    /// Ends the VM as a bug would, if a request asks for it.
    pub(super) fn trap(fields: Fields<'_>) {
        if fields.field(TRAP) != FieldValue::Missing {
            core::arch::wasm32::unreachable();
        }
    }

    /// Tells how long the request would be held.
    pub(crate) fn told(delay: Micros) -> Header {
        ("x-weir-test-delay", delay.get().to_string())
    }

    /// A clock that stands still.
    pub(crate) struct StoppedClock(pub(crate) Instant);

    impl Clock for StoppedClock {
        fn now(&self) -> Result<Instant, HostError> {
            Ok(self.0)
        }
    }

    /// The time that a test has put in the request, in microseconds since the epoch.
    pub(super) struct RequestClock<'a>(pub(super) Fields<'a>);

    impl Clock for RequestClock<'_> {
        fn now(&self) -> Result<Instant, HostError> {
            let FieldValue::One(micros) = self.0.field(HEADER) else {
                return Err(HostError(2));
            };
            let micros = core::str::from_utf8(micros).ok().and_then(|micros| micros.parse().ok());
            micros.map(Instant::from_micros).ok_or(HostError(2))
        }
    }
}
