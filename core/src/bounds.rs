//! Every limit on every quantity, each declared once.
//!
//! Validation, error messages, documentation and the generators of the tests read this table; no
//! other file holds a minimum or maximum of a policy's quantity.

/// The allowed range of one quantity, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The unit, in the plural.
    pub unit: &'static str,
    /// The smallest allowed value.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
}

impl Bound {
    /// Whether a value lies in the range.
    #[must_use]
    pub const fn contains(&self, value: u64) -> bool {
        self.min <= value && value <= self.max
    }

    /// Whether a length lies in the range.
    #[must_use]
    pub fn contains_len(&self, length: usize) -> bool {
        u64::try_from(length).is_ok_and(|length| self.contains(length))
    }
}

impl core::fmt::Display for Bound {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} to {} {}", self.min, self.max, self.unit)
    }
}

const fn bound(unit: &'static str, min: u64, max: u64) -> Bound {
    Bound { unit, min, max }
}

/// Tokens per window of a rate. 0 refuses everything.
pub const RATE_COUNT: Bound = bound("tokens", 0, 1_000_000_000);
/// Window of a rate: 1 ms to 366 days.
pub const WINDOW: Bound = bound("microseconds", 1_000, 31_622_400_000_000);
/// Capacity of a token bucket.
pub const BURST: Bound = bound("tokens", 1, 1_000_000_000);
/// Tokens of a sliding log, and permits of a concurrency limit: each may need an entry of its own,
/// so this bounds the state of one key.
pub const ENTRIES: Bound = bound("tokens", 0, 1_000);
/// Longest wait in the queue of a leaky bucket.
pub const MAX_DELAY: Bound = bound("microseconds", 0, 60_000_000);
/// How long a permit lasts if nobody gives it back.
pub const LEASE: Bound = bound("microseconds", 1_000, 86_400_000_000);
/// What one call takes. 0 takes nothing.
pub const COST: Bound = bound("tokens", 0, 1_000_000_000);
/// What one request of a configured limit takes.
pub const REQUEST_COST: Bound = bound("tokens", 1, COST.max);
/// Time an empty bucket may need to fill: 2^52 − 1 µs, about 142 years, so that "full again at"
/// stays below 2^53 µs.
pub const FILL_TIME: Bound = bound("microseconds", 0, (1 << 52) - 1);
/// Capacity of a bucket plus one refill, in units: below 2^53, up to which a double is exact.
pub const UNITS: Bound = bound("units", 0, (1 << 53) - 1);

/// Length of a namespace or a limit's name.
pub const NAME: Bound = bound("characters", 1, 64);
/// Length of a header's name.
pub const HEADER_NAME: Bound = bound("characters", 1, 128);
/// Length of the name of a cookie, a parameter or metadata.
pub const KEY_NAME: Bound = bound("characters", 1, 256);
/// Key parts of one limit.
pub const KEY_PARTS: Bound = bound("parts", 0, 8);
/// Shards of one limit.
pub const SHARDS: Bound = bound("shards", 1, 1_024);
/// Gateways that share a limit in an outage of the store.
pub const GATEWAYS: Bound = bound("gateways", 1, 100_000);
/// Share of requests or of a limit.
pub const PERCENT: Bound = bound("percent", 0, 100);
/// Plans, and overrides of one limit.
pub const TIERS: Bound = bound("entries", 0, 1_000);
/// Length of a key that has a limit of its own, and of a value to match.
pub const VALUE: Bound = bound("bytes", 1, 512);
/// Methods and headers of one match.
pub const MATCHES: Bound = bound("entries", 1, 16);
/// Streams to Redis, one for each range of slots.
pub const STREAMS: Bound = bound("streams", 1, 1_000);
/// Length of the token that opens a store over HTTP.
pub const TOKEN: Bound = bound("visible ASCII characters", 8, 1_024);
/// Length of the host that a store over HTTP is asked for, with its port.
pub const HOST: Bound = bound("characters", 1, 255);
/// How long a store may take to answer.
pub const TIMEOUT: Bound = bound("microseconds", 1_000, 10_000_000);
/// What is added to Retry-After at most.
pub const JITTER: Bound = bound("microseconds", 0, 3_600_000_000);
/// Length of `key_secret`.
pub const SECRET: Bound = bound("bytes", 16, 1_024);
/// Limits of one policy.
pub const LIMITS: Bound = bound("limits", 1, 32);
/// Size of a policy's text.
pub const POLICY_TEXT: Bound = bound("bytes", 2, 1 << 20);

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::rust_2024::*;

    #[test]
    fn a_bound_includes_both_ends() {
        assert!(BURST.contains(1) && BURST.contains(1_000_000_000));
        assert!(!BURST.contains(0) && !BURST.contains(1_000_000_001));
    }

    #[test]
    fn a_bound_reads_as_a_range_with_its_unit() {
        assert_eq!(BURST.to_string(), "1 to 1000000000 tokens");
    }
}
