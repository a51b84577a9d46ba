//! One stream of a limiter on the bridge's listener.

use super::frames::{self, Frames};
use crate::host::{HostError, Level, Log, wasm::Proxy, wire};
use proxy_wasm::{
    traits::{Context, HttpContext},
    types::Action,
};

/// A stream, for as long as its worker lives.
#[derive(Default)]
pub(crate) struct Bridge {
    requests: Frames,
}

impl Context for Bridge {}

impl HttpContext for Bridge {
    fn on_http_request_body(&mut self, size: usize, _: bool) -> Action {
        if size > 0
            && let Err(error) = self.strip(size)
        {
            Proxy.log(Level::Error, &format!("weir: a stream to the store is ended: {error}"));
            wire::abort();
        }
        Action::Continue
    }

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        if let Err(error) = wire::set_response_header("content-type", "application/grpc") {
            // The limiter ends a stream that brings no messages.
            Proxy.log(Level::Error, &format!("weir: the bridge cannot answer: {error}"));
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, _: bool) -> Action {
        if size > 0
            && let Some(prefix) = frames::prefix(size)
            && let Err(error) = wire::prepend_response_body(&prefix)
        {
            Proxy.log(Level::Error, &format!("weir: a stream to the store is ended: {error}"));
            wire::abort();
        }
        Action::Continue
    }
}

impl Bridge {
    /// Takes the prefixes out of what is in the proxy.
    fn strip(&mut self, size: usize) -> Result<(), HostError> {
        // Status 4, parse failure: this is no stream of a limiter.
        const NO_STREAM: HostError = HostError(4);
        let piece = wire::request_body(size)?;
        let stripped = self.requests.strip(&piece).map_err(|_| NO_STREAM)?;
        wire::replace_request_body(size, &stripped)
    }
}
