//! Rate-limit headers, by the version of their draft.

use super::Header;
use crate::{
    decision::Decision,
    policy::{mode::one_of, quota::Quota, style::Style},
    units::Micros,
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// The headers of a limit: its quota per window as configured, what is left in whole tokens, and
/// the seconds until nothing is missing, rounded up. A window that is no whole number of seconds is
/// left out.
pub(super) fn rate_limit(
    styles: &[Style],
    name: &str,
    quota: &Quota,
    decision: &Decision,
) -> Vec<Header> {
    let (count, window) = quota.told();
    let window = window.and_then(whole_seconds);
    let window = window.map_or_else(String::new, |seconds| format!(";w={seconds}"));
    let left = decision.remaining;
    let reset = decision.reset_after.whole_seconds_up();
    let headers = |style: &Style| match style {
        // A limit's name is made of characters that a structured-field string holds unescaped.
        Style::Draft10 => [
            ("ratelimit-policy", format!("\"{name}\";q={count}{window}")),
            ("ratelimit", format!("\"{name}\";r={left};t={reset}")),
        ]
        .to_vec(),
        Style::Draft07 => [
            ("ratelimit-policy", format!("{count}{window}")),
            ("ratelimit", format!("limit={count}, remaining={left}, reset={reset}")),
        ]
        .to_vec(),
        Style::Draft03 => three(
            ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
            [count, left, reset],
        ),
        Style::XRateLimit => three(
            ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
            [count, left, reset],
        ),
    };
    styles.iter().flat_map(headers).collect()
}

fn three(names: [&'static str; 3], values: [u64; 3]) -> Vec<Header> {
    names.into_iter().zip(values.iter().map(u64::to_string)).collect()
}

fn whole_seconds(window: Micros) -> Option<u64> {
    let seconds = window.whole_seconds_up();
    (seconds.checked_mul(Micros::SECOND.get()) == Some(window.get())).then_some(seconds)
}

/// `Retry-After` in whole seconds, rounded up and never 0: a client that waits so long is not
/// early, and one that reads 0 would come back at once. Up to `jitter` is added, chosen by the
/// number drawn.
pub(super) fn retry_after(wait: Micros, jitter: Micros, draw: u32) -> Header {
    let more = one_of(jitter.whole_seconds_up().saturating_add(1), draw);
    ("retry-after", wait.whole_seconds_up().max(1).saturating_add(more).to_string())
}
