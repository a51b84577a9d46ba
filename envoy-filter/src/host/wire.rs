//! The proxy as host: streams, callouts, timers, the requests that wait, and the bodies that the
//! bridge passes on.
//!
//! Only what opens a stream and what sends a callout goes through the SDK, whose dispatcher has to
//! know the number that the proxy gives them; ARCHITECTURE.md says why neither can panic.

#![allow(unsafe_code)]

use super::{
    Callout, CalloutId, Callouts, HostError, StreamId, Streams, ffi,
    wasm::{self, Proxy, done, taken},
};
use core::time::Duration;
use proxy_wasm::hostcalls;
use weir_core::response::Reply;

/// The name of the bridge's method. Nothing reads it but a log.
const SERVICE: &str = "weir.Bridge";
const METHOD: &str = "Redis";

const REQUEST: u32 = 0;
const RESPONSE_HEADERS: u32 = 2;

const REQUEST_BODY: u32 = 0;
const RESPONSE_BODY: u32 = 1;
const CALLOUT_BODY: u32 = 4;
const MESSAGE: u32 = 5;

impl Streams for Proxy {
    fn open(&self, cluster: &str) -> Result<StreamId, HostError> {
        let opened = hostcalls::open_grpc_stream(cluster, SERVICE, METHOD, Vec::new());
        opened.map(StreamId).map_err(|status| HostError(status as u32))
    }

    fn send(&self, StreamId(token): StreamId, message: &[u8]) -> Result<(), HostError> {
        // SAFETY: the pointer and length are of one live slice, which the proxy only reads.
        done(unsafe { ffi::proxy_grpc_send(token, message.as_ptr(), message.len(), 0) })
    }

    fn cancel(&self, StreamId(token): StreamId) {
        // A stream that is gone needs no end.
        // SAFETY: no pointer is passed.
        let _ = unsafe { ffi::proxy_grpc_cancel(token) };
    }
}

impl Callouts for Proxy {
    fn dispatch(&self, callout: &Callout<'_>) -> Result<CalloutId, HostError> {
        // Zero would mean to wait for ever.
        let millis = callout.timeout.get().div_ceil(1_000).max(1);
        let sent = hostcalls::dispatch_http_call(
            callout.cluster,
            callout.headers.to_vec(),
            Some(callout.body),
            Vec::new(),
            Duration::from_millis(millis),
        );
        sent.map(CalloutId).map_err(|status| HostError(status as u32))
    }
}

/// Calls the root context's `on_tick` every so many milliseconds; 0 ends that.
pub fn tick_every(millis: u32) {
    // The proxy knows no reason to refuse.
    // SAFETY: no pointer is passed.
    let _ = unsafe { ffi::proxy_set_tick_period_milliseconds(millis) };
}

/// Makes the calls that follow those of another context.
///
/// # Errors
/// [`HostError`] if that context is gone.
pub fn act_for(context: u32) -> Result<(), HostError> {
    // SAFETY: no pointer is passed.
    done(unsafe { ffi::proxy_set_effective_context(context) })
}

/// Lets the request go on.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn resume() -> Result<(), HostError> {
    // SAFETY: no pointer is passed.
    done(unsafe { ffi::proxy_continue_stream(REQUEST) })
}

/// Answers the request that waits.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn reply(reply: &Reply) -> Result<(), HostError> {
    wasm::reply(reply, &format!("weir_{}", reply.status))
}

/// Ends the request and its connection to the peer.
pub fn abort() {
    // One that is gone needs no end.
    // SAFETY: no pointer is passed.
    let _ = unsafe { ffi::proxy_close_stream(REQUEST) };
}

/// What a callout was answered.
///
/// # Errors
/// [`HostError`] if there is no body.
pub fn callout_body(size: usize) -> Result<Vec<u8>, HostError> {
    buffer(CALLOUT_BODY, size)
}

/// The message that came on a stream.
///
/// # Errors
/// [`HostError`] if there is none.
pub fn message(size: usize) -> Result<Vec<u8>, HostError> {
    buffer(MESSAGE, size)
}

/// The bytes of the request's body that are in the proxy.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn request_body(size: usize) -> Result<Vec<u8>, HostError> {
    buffer(REQUEST_BODY, size)
}

/// Puts other bytes in the place of the first `size` of the request's body.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn replace_request_body(size: usize, bytes: &[u8]) -> Result<(), HostError> {
    set_buffer(REQUEST_BODY, size, bytes)
}

/// Puts bytes before those of the response's body that are in the proxy.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn prepend_response_body(bytes: &[u8]) -> Result<(), HostError> {
    set_buffer(RESPONSE_BODY, 0, bytes)
}

/// Sets a header of the response.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn set_response_header(name: &str, value: &str) -> Result<(), HostError> {
    // SAFETY: pointers and lengths are of live slices, which the proxy only reads.
    done(unsafe {
        ffi::proxy_replace_header_map_value(
            RESPONSE_HEADERS,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

fn buffer(buffer: u32, size: usize) -> Result<Vec<u8>, HostError> {
    taken(|data, length| {
        // SAFETY: both pointers are valid for one write.
        unsafe { ffi::proxy_get_buffer_bytes(buffer, 0, size, data, length) }
    })
}

fn set_buffer(buffer: u32, length: usize, bytes: &[u8]) -> Result<(), HostError> {
    // SAFETY: the pointer and length are of one live slice, which the proxy only reads.
    done(unsafe { ffi::proxy_set_buffer_bytes(buffer, 0, length, bytes.as_ptr(), bytes.len()) })
}
