//! From a verdict to what the client reads, in one place.

pub mod headers;

use crate::{
    decision::{Decision, Outcome},
    policy::{
        Limit, Policy,
        mode::{MissingKey, OnStoreFailure},
        quota::Quota,
    },
    units::Micros,
};
use alloc::{format, string::String, vec::Vec};

/// What a limit made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The limit was asked, and this is the quota that it was asked for.
    Decided(&'a Quota, Decision),
    /// The request lacks the limit's key and the limit says what that means.
    KeyMissing,
    /// Neither the store nor a share of the limit could say.
    Unchecked,
}

/// What becomes of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It goes on to the upstream.
    Pass {
        /// How long it is held before.
        delay: Micros,
        /// Headers that are added to the response.
        headers: Vec<Header>,
    },
    /// It is answered here.
    Reply(Reply),
}

/// A header: its name in lower case, and its value.
pub type Header = (&'static str, String);

/// A response that the limit gives in place of the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Status of a gRPC call (google.rpc.Code), for a request that is one.
    pub grpc_status: u8,
    /// Headers, in the order in which they are sent.
    pub headers: Vec<Header>,
    /// Body: a problem (RFC 9457) as JSON.
    pub body: String,
}

impl Answer {
    /// A request that goes on at once and hears nothing.
    pub const UNTOUCHED: Answer = Answer::Pass { delay: Micros::ZERO, headers: Vec::new() };
}

/// The answer to a request on which `limit`, the one that binds, returned `verdict`. `draw` chooses
/// the jitter of `Retry-After`, all numbers being equally likely.
#[must_use]
pub fn answer(policy: &Policy, limit: &Limit, verdict: Verdict<'_>, draw: u32) -> Answer {
    let retry = |wait| headers::retry_after(wait, policy.retry_after_jitter, draw);
    match verdict {
        Verdict::Decided(quota, decision) => {
            let mut told = headers::rate_limit(&policy.headers, &limit.name, quota, &decision);
            match decision.outcome {
                Outcome::Allowed => Answer::Pass { delay: Micros::ZERO, headers: told },
                Outcome::Delayed { delay } => Answer::Pass { delay, headers: told },
                Outcome::Refused { retry_after } => {
                    told.push(retry(retry_after));
                    Answer::Reply(problem(limit, &QUOTA_EXCEEDED, told))
                }
                // No waiting helps, so none is promised.
                Outcome::Never(_) => Answer::Reply(problem(limit, &QUOTA_EXCEEDED, told)),
            }
        }
        Verdict::KeyMissing => match limit.missing_key {
            MissingKey::Share | MissingKey::Skip => Answer::UNTOUCHED,
            MissingKey::Unauthorized => Answer::Reply(problem(limit, &UNAUTHORIZED, Vec::new())),
            MissingKey::Deny => Answer::Reply(problem(limit, &FORBIDDEN, Vec::new())),
        },
        Verdict::Unchecked => match limit.on_store_failure {
            OnStoreFailure::Allow => Answer::UNTOUCHED,
            OnStoreFailure::Deny | OnStoreFailure::Local => {
                let headers = [retry(Micros::SECOND)].into();
                Answer::Reply(problem(limit, &REDUCED_CAPACITY, headers))
            }
        },
    }
}

/// The fixed part of a problem.
struct Problem {
    status: u16,
    grpc_status: u8,
    /// Fragment of a registered problem type, or `None` for a problem that its status describes.
    kind: Option<&'static str>,
    title: &'static str,
}

// Types of draft-ietf-httpapi-ratelimit-headers-10, section "Problem Types".
const QUOTA_EXCEEDED: Problem = Problem {
    status: 429,
    grpc_status: 8, // RESOURCE_EXHAUSTED
    kind: Some("quota-exceeded"),
    title: "Request quota exceeded",
};
const REDUCED_CAPACITY: Problem = Problem {
    status: 503,
    grpc_status: 14, // UNAVAILABLE
    kind: Some("temporary-reduced-capacity"),
    title: "The limit of this request cannot be checked at the moment",
};
const UNAUTHORIZED: Problem = Problem {
    status: 401,
    grpc_status: 16, // UNAUTHENTICATED
    kind: None,
    title: "A key is needed for this request",
};
const FORBIDDEN: Problem = Problem {
    status: 403,
    grpc_status: 7, // PERMISSION_DENIED
    kind: None,
    title: "This request lacks the key its limit needs",
};

fn problem(limit: &Limit, problem: &Problem, mut headers: Vec<Header>) -> Reply {
    headers.push(("content-type", String::from("application/problem+json")));
    let kind = problem.kind.map_or_else(
        || String::from("about:blank"),
        |kind| format!("https://iana.org/assignments/http-problem-types#{kind}"),
    );
    // A limit's name is made of characters that mean nothing to JSON (config::validate).
    let body = format!(
        "{{\"type\":\"{kind}\",\"title\":\"{}\",\"status\":{},\"violated-policies\":[\"{}\"]}}\n",
        problem.title, problem.status, limit.name,
    );
    Reply { status: problem.status, grpc_status: problem.grpc_status, headers, body }
}
