//! The proxy as host: headers, properties, answers, clocks, shared data and counters. What goes over
//! the wire is in [`super::wire`]; no other file calls the proxy.
//!
//! Every call returns its status; none panics. Bytes that the proxy hands over were allocated by
//! this module's own allocator, on the proxy's request, and are taken over as a `Vec`.

#![allow(unsafe_code)]

use super::{
    Clock, CounterId, Counters, Entropy, HostError, Level, Log, Moment, SharedData, Stopwatch,
    Swap, Value, Version, ffi,
};
use core::ptr;
use weir_core::{response::Reply, units::Instant};

/// The proxy that runs this module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proxy;

/// The buffer that holds a plugin's configuration.
const PLUGIN_CONFIGURATION: u32 = 7;
/// The map of a request's headers.
const REQUEST_HEADERS: u32 = 0;
/// The map of a response's headers.
const RESPONSE_HEADERS: u32 = 2;
/// The kind of a metric that only grows.
const COUNTER: u32 = 0;
/// A version that no value can have in practice (it is the last before the count starts anew).
/// With it the proxy inserts a key that does not exist and reports a mismatch on one that does;
/// with version 0 it would overwrite whatever another worker has just put there.
const NEVER_CURRENT: u32 = u32::MAX;

/// The clock that never goes back (WASI preview 1).
const MONOTONIC: u32 = 1;

pub(super) fn done(status: u32) -> Result<(), HostError> {
    if status == ffi::OK { Ok(()) } else { Err(HostError(status)) }
}

/// The plugin's configuration.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn configuration() -> Result<Vec<u8>, HostError> {
    taken(|data, size| {
        // SAFETY: both pointers are valid for one write.
        unsafe { ffi::proxy_get_buffer_bytes(PLUGIN_CONFIGURATION, 0, usize::MAX, data, size) }
    })
}

/// The request's headers, in the proxy's encoding; see [`crate::facts::Fields`].
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn request_headers() -> Result<Vec<u8>, HostError> {
    taken(|data, size| {
        // SAFETY: both pointers are valid for one write.
        unsafe { ffi::proxy_get_header_map_pairs(REQUEST_HEADERS, data, size) }
    })
}

/// A property of the request (Envoy's attributes) by its path; nothing if it is absent.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn property(path: &[&str]) -> Result<Option<Vec<u8>>, HostError> {
    let path = path.join("\0");
    let value = taken(|data, size| {
        // SAFETY: the path is a live slice; both pointers are valid for one write.
        unsafe { ffi::proxy_get_property(path.as_ptr(), path.len(), data, size) }
    });
    match value {
        Ok(bytes) => Ok(Some(bytes)),
        Err(HostError(ffi::NOT_FOUND)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds a header to the response.
///
/// # Errors
/// [`HostError`] if the proxy refuses.
pub fn add_response_header(name: &str, value: &str) -> Result<(), HostError> {
    // SAFETY: pointers and lengths are of live slices, which the proxy only reads.
    done(unsafe {
        ffi::proxy_add_header_map_value(
            RESPONSE_HEADERS,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

/// Answers the request. `details` is what the proxy's access log shows as response code details.
///
/// # Errors
/// [`HostError`] if the proxy refuses; the request is then still to be continued.
pub fn reply(reply: &Reply, details: &str) -> Result<(), HostError> {
    let headers = crate::facts::encode(&reply.headers);
    // SAFETY: pointers and lengths are of live slices, which the proxy only reads.
    done(unsafe {
        ffi::proxy_send_local_response(
            u32::from(reply.status),
            details.as_ptr(),
            details.len(),
            reply.body.as_ptr(),
            reply.body.len(),
            headers.as_ptr(),
            headers.len(),
            i32::from(reply.grpc_status),
        )
    })
}

impl Log for Proxy {
    fn log(&self, level: Level, message: &str) {
        // SAFETY: the pointer and length are of one live slice, which the proxy only reads.
        let _ = unsafe { ffi::proxy_log(level as u32, message.as_ptr(), message.len()) };
    }
}

impl Stopwatch for Proxy {
    fn moment(&self) -> Result<Moment, HostError> {
        let mut nanos = 0;
        // SAFETY: the pointer is valid for one write.
        done(unsafe { ffi::clock_time_get(MONOTONIC, 0, &raw mut nanos) })?;
        Ok(Moment(nanos / 1_000))
    }
}

impl Clock for Proxy {
    fn now(&self) -> Result<Instant, HostError> {
        let mut nanos = 0;
        // SAFETY: the pointer is valid for one write.
        done(unsafe { ffi::proxy_get_current_time_nanoseconds(&raw mut nanos) })?;
        Ok(Instant::from_micros(nanos / 1_000))
    }
}

impl Entropy for Proxy {
    fn secret(&self) -> Result<[u8; 16], HostError> {
        let mut secret = [0; 16];
        // SAFETY: pointer and length are of one live array.
        done(unsafe { ffi::random_get(secret.as_mut_ptr(), secret.len()) })?;
        Ok(secret)
    }

    fn draw(&self) -> Result<u32, HostError> {
        let mut bytes = [0; 4];
        // SAFETY: pointer and length are of one live array.
        done(unsafe { ffi::random_get(bytes.as_mut_ptr(), bytes.len()) })?;
        Ok(u32::from_le_bytes(bytes))
    }
}

impl SharedData for Proxy {
    fn get(&self, key: &str) -> Result<Value, HostError> {
        let mut version = 0;
        let bytes = taken(|data, size| {
            // SAFETY: the key is a live slice; the three pointers are valid for one write.
            unsafe {
                ffi::proxy_get_shared_data(key.as_ptr(), key.len(), data, size, &raw mut version)
            }
        });
        match bytes {
            Ok(bytes) => Ok(Value { bytes, version: Version::new(version) }),
            Err(HostError(ffi::NOT_FOUND)) => Ok(Value::default()),
            Err(error) => Err(error),
        }
    }

    fn swap(&self, key: &str, bytes: &[u8], version: Option<Version>) -> Result<Swap, HostError> {
        let version = version.map_or(NEVER_CURRENT, Version::get);
        // SAFETY: pointers and lengths are of live slices, which the proxy only reads.
        let status = unsafe {
            ffi::proxy_set_shared_data(
                key.as_ptr(),
                key.len(),
                bytes.as_ptr(),
                bytes.len(),
                version,
            )
        };
        match status {
            ffi::CAS_MISMATCH => Ok(Swap::Lost),
            status => done(status).map(|()| Swap::Done),
        }
    }
}

impl Counters for Proxy {
    fn define(&self, name: &str) -> Result<CounterId, HostError> {
        let mut id = 0;
        // SAFETY: the name is a live slice; the pointer is valid for one write.
        let status =
            unsafe { ffi::proxy_define_metric(COUNTER, name.as_ptr(), name.len(), &raw mut id) };
        done(status).map(|()| CounterId(id))
    }

    fn increment(&self, CounterId(id): CounterId) {
        // A defined counter takes a 1; there is no remedy if it ever should not.
        // SAFETY: no pointer is passed.
        let _ = unsafe { ffi::proxy_increment_metric(id, 1) };
    }
}

/// Bytes that a call of the proxy allocates and hands over.
pub(super) fn taken(
    call: impl FnOnce(*mut *mut u8, *mut usize) -> u32,
) -> Result<Vec<u8>, HostError> {
    let mut data = ptr::null_mut();
    let mut size = 0;
    done(call(&raw mut data, &raw mut size))?;
    if data.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the proxy got the memory from `proxy_on_memory_allocate`, which the SDK exports as a
    // forgotten `Vec<u8>` of this very capacity, has filled all of it, and keeps no pointer to it.
    Ok(unsafe { Vec::from_raw_parts(data, size, size) })
}
