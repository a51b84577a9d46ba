//! Rate-limit headers.
//!
//! `RateLimit` and `RateLimit-Policy` follow draft-ietf-httpapi-ratelimit-headers-10.

use super::Header;
use crate::{decision::Decision, policy::Limit, units::Micros};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// `RateLimit-Policy` (q tokens per w seconds, as configured) and `RateLimit` (r tokens left, full
/// again in t seconds, rounded up). A window that is no whole number of seconds is left out.
pub(super) fn rate_limit(limit: &Limit, decision: &Decision) -> Vec<Header> {
    let window = limit.rate.window();
    let seconds = window.whole_seconds_up();
    let whole = seconds.checked_mul(Micros::SECOND.get()) == Some(window.get());
    let window = if whole { format!(";w={seconds}") } else { String::new() };
    let reset = decision.reset_after.whole_seconds_up();
    // A limit's name is made of characters that a structured-field string can hold unescaped.
    let name = &limit.name;
    [
        ("ratelimit-policy", format!("\"{name}\";q={}{window}", limit.rate.count())),
        ("ratelimit", format!("\"{name}\";r={};t={reset}", decision.remaining)),
    ]
    .into()
}

/// `Retry-After` in whole seconds, rounded up and never 0: a client that waits so long is not
/// early, and one that reads 0 would come back at once.
pub(super) fn retry_after(wait: Micros) -> Header {
    ("retry-after", wait.whole_seconds_up().max(1).to_string())
}
