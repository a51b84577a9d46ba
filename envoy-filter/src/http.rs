//! One request in the proxy: carries out what [`flow`] decides.

use crate::{
    facts::Fields,
    flow,
    host::wasm::{self, Level, Proxy},
    plugin::Plugin,
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
    plugin: Option<Rc<Plugin>>,
    /// What to add to the upstream's response.
    headers: Vec<Header>,
}

impl Http {
    pub(crate) fn new(plugin: Option<Rc<Plugin>>) -> Self {
        Self { plugin, headers: Vec::new() }
    }

    fn answer(&self) -> Answer {
        let Some(plugin) = &self.plugin else { return Answer::Reply(not_configured()) };
        // Without its headers a request has no key, and the limit says what that means.
        let map = wasm::request_headers().unwrap_or_default();
        let fields = Fields::new(&map);
        flow::decide(plugin, &ProxyFacts(fields), &clock(fields), &Proxy)
    }
}

impl Context for Http {}

impl HttpContext for Http {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        match self.answer() {
            // No limit that this filter accepts delays a request.
            Answer::Pass { headers, .. } => {
                self.headers = headers;
                Action::Continue
            }
            Answer::Reply(reply) => send(&reply),
        }
    }

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        for (name, value) in core::mem::take(&mut self.headers) {
            if let Err(error) = wasm::add_response_header(name, &value) {
                wasm::log(Level::Warn, &format!("weir: the header {name} is left out: {error}"));
            }
        }
        Action::Continue
    }
}

/// A request that could neither be answered nor go on would hang, so one that cannot be answered
/// goes on.
fn send(reply: &Reply) -> Action {
    let details = format!("weir_{}", reply.status);
    match wasm::reply(reply, &details) {
        Ok(()) => Action::Pause,
        Err(error) => {
            wasm::log(Level::Error, &format!("weir: a request went on unanswered: {error}"));
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
mod test_clock {
    use crate::{
        facts::Fields,
        host::{Clock, HostError},
    };
    use weir_core::{key::fields::FieldValue, units::Instant};

    /// Marks a module that is built with this clock: `cargo xtask tidy` looks for the export. The
    /// header's name would not do, since the compiler compares it piece by piece.
    #[allow(unsafe_code)]
    #[unsafe(export_name = "weir_test_clock")]
    extern "C" fn marker() {}

    /// The header that holds the time.
    const HEADER: &str = "x-weir-test-now";

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
