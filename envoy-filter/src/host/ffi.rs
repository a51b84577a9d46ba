//! The proxy's functions, as it exports them (proxy-wasm ABI 0.2.1 and WASI preview 1).
//!
//! Declared here and not taken from the SDK, because the SDK panics on every status that it does
//! not expect, and a panic takes the worker's whole VM down.

#![allow(unsafe_code)]

pub(super) const OK: u32 = 0;
pub(super) const NOT_FOUND: u32 = 1;
pub(super) const CAS_MISMATCH: u32 = 8;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    pub(super) fn proxy_log(level: u32, message: *const u8, size: usize) -> u32;
    pub(super) fn proxy_get_current_time_nanoseconds(time: *mut u64) -> u32;
    pub(super) fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        max_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    pub(super) fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, size: *mut usize)
    -> u32;
    pub(super) fn proxy_get_property(
        path: *const u8,
        path_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    pub(super) fn proxy_add_header_map_value(
        map: u32,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    pub(super) fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
    pub(super) fn proxy_get_shared_data(
        key: *const u8,
        key_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
        version: *mut u32,
    ) -> u32;
    pub(super) fn proxy_set_shared_data(
        key: *const u8,
        key_size: usize,
        data: *const u8,
        size: usize,
        version: u32,
    ) -> u32;
    pub(super) fn proxy_define_metric(kind: u32, name: *const u8, size: usize, id: *mut u32)
    -> u32;
    pub(super) fn proxy_increment_metric(id: u32, offset: i64) -> u32;
    pub(super) fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    pub(super) fn proxy_set_effective_context(context: u32) -> u32;
    pub(super) fn proxy_continue_stream(stream: u32) -> u32;
    pub(super) fn proxy_close_stream(stream: u32) -> u32;
    pub(super) fn proxy_grpc_send(
        token: u32,
        message: *const u8,
        size: usize,
        end_stream: u32,
    ) -> u32;
    pub(super) fn proxy_grpc_cancel(token: u32) -> u32;
    pub(super) fn proxy_set_buffer_bytes(
        buffer: u32,
        start: usize,
        length: usize,
        data: *const u8,
        size: usize,
    ) -> u32;
    pub(super) fn proxy_replace_header_map_value(
        map: u32,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    pub(super) fn random_get(bytes: *mut u8, size: usize) -> u32;
    pub(super) fn clock_time_get(clock: u32, precision: u64, nanoseconds: *mut u64) -> u32;
}
