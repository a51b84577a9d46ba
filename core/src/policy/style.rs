//! Which headers tell a client of its limit.

/// A way to tell a client of its limit. The drafts are those of
/// draft-ietf-httpapi-ratelimit-headers, whose format has changed three times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Style {
    /// `draft-10`: `RateLimit-Policy: "name";q=100;w=60` and `RateLimit: "name";r=50;t=30`.
    Draft10,
    /// `draft-07`: `RateLimit-Policy: 100;w=60` and `RateLimit: limit=100, remaining=50, reset=30`.
    Draft07,
    /// `draft-03`: `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`.
    Draft03,
    /// `x-ratelimit`: the same three with `X-` before them, as before any draft.
    XRateLimit,
}
