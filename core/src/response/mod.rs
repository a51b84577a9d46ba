//! From a verdict to what the client reads, in one place.

pub mod headers;

use crate::{
    decision::{Decision, Outcome},
    policy::{Limit, MissingKey, OnStoreFailure},
    units::Micros,
};
use alloc::{format, string::String, vec::Vec};

/// What a limit made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The limit was asked.
    Decided(Decision),
    /// The request lacks the limit's key and the limit says what that means.
    KeyMissing,
    /// The store could not say.
    Unchecked,
}

/// What becomes of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It goes on to the upstream; these headers are added to the response.
    Pass(Vec<Header>),
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
    /// Headers, in the order in which they are sent.
    pub headers: Vec<Header>,
    /// Body: a problem (RFC 9457) as JSON.
    pub body: String,
}

/// The answer to a request on which `limit` returned `verdict`.
#[must_use]
pub fn answer(limit: &Limit, verdict: Verdict) -> Answer {
    match verdict {
        Verdict::Decided(decision) => match decision.outcome {
            Outcome::Allowed | Outcome::Delayed { .. } => {
                Answer::Pass(headers::rate_limit(limit, &decision))
            }
            Outcome::Refused { retry_after } => {
                Answer::Reply(over_limit(limit, &decision, Some(retry_after)))
            }
            Outcome::Never(_) => Answer::Reply(over_limit(limit, &decision, None)),
        },
        Verdict::KeyMissing => match limit.missing_key {
            MissingKey::Share | MissingKey::Skip => Answer::Pass(Vec::new()),
            MissingKey::Unauthorized => Answer::Reply(problem(limit, &UNAUTHORIZED, Vec::new())),
            MissingKey::Deny => Answer::Reply(problem(limit, &FORBIDDEN, Vec::new())),
        },
        Verdict::Unchecked => match limit.on_store_failure {
            OnStoreFailure::Allow => Answer::Pass(Vec::new()),
            OnStoreFailure::Deny => {
                let retry = headers::retry_after(Micros::SECOND);
                Answer::Reply(problem(limit, &REDUCED_CAPACITY, [retry].into()))
            }
        },
    }
}

/// A request over its limit; without `retry_after`, one that no waiting helps.
fn over_limit(limit: &Limit, decision: &Decision, retry_after: Option<Micros>) -> Reply {
    let mut headers = headers::rate_limit(limit, decision);
    headers.extend(retry_after.map(headers::retry_after));
    problem(limit, &QUOTA_EXCEEDED, headers)
}

/// The fixed part of a problem.
struct Problem {
    status: u16,
    /// Fragment of a registered problem type, or `None` for a problem that its status describes.
    kind: Option<&'static str>,
    title: &'static str,
}

// Types of draft-ietf-httpapi-ratelimit-headers-10, section "Problem Types".
const QUOTA_EXCEEDED: Problem =
    Problem { status: 429, kind: Some("quota-exceeded"), title: "Request quota exceeded" };
const REDUCED_CAPACITY: Problem = Problem {
    status: 503,
    kind: Some("temporary-reduced-capacity"),
    title: "The limit of this request cannot be checked at the moment",
};
const UNAUTHORIZED: Problem =
    Problem { status: 401, kind: None, title: "A key is needed for this request" };
const FORBIDDEN: Problem =
    Problem { status: 403, kind: None, title: "This request lacks the key its limit needs" };

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
    Reply { status: problem.status, headers, body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decision::Never,
        limiter::{Limiter, token_bucket::TokenBucket},
        units::{Cost, Rate},
    };
    use alloc::{vec, vec::Vec};

    fn limit() -> Limit {
        let rate = Rate::new(1000, Micros::new(60_000_000)).unwrap();
        Limit {
            name: "per-key".into(),
            key: Vec::new(),
            missing_key: MissingKey::Share,
            rate,
            limiter: Limiter::TokenBucket(TokenBucket::new(rate, 17).unwrap()),
            cost: Cost::ONE,
            on_store_failure: OnStoreFailure::Allow,
        }
    }

    fn decided(outcome: Outcome, remaining: u64) -> Verdict {
        let reset_after = Micros::new(1_020_000);
        Verdict::Decided(Decision { outcome, limit: 17, remaining, reset_after })
    }

    fn reply(limit: &Limit, verdict: Verdict) -> Reply {
        match answer(limit, verdict) {
            Answer::Reply(reply) => reply,
            Answer::Pass(_) => panic!("passed"),
        }
    }

    fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
        reply.headers.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn an_allowed_request_says_what_is_left() {
        let expected = vec![
            ("ratelimit-policy", "\"per-key\";q=1000;w=60".into()),
            ("ratelimit", "\"per-key\";r=16;t=2".into()),
        ];
        assert_eq!(answer(&limit(), decided(Outcome::Allowed, 16)), Answer::Pass(expected));
    }

    #[test]
    fn a_wait_of_a_millisecond_is_announced_as_a_second_and_never_as_zero() {
        // A37: at 1000/minute the next token is at most 60 ms away.
        let refused = Outcome::Refused { retry_after: Micros::new(1_000) };
        let reply = reply(&limit(), decided(refused, 0));
        assert_eq!((reply.status, header(&reply, "retry-after")), (429, Some("1")));
    }

    #[test]
    fn a_wait_is_rounded_up_by_less_than_a_second() {
        // dragonflydb/dragonfly#8288: rounded up one second too far.
        for (micros, seconds) in [(1_000_000, "1"), (1_000_001, "2"), (1_999_999, "2")] {
            let refused = Outcome::Refused { retry_after: Micros::new(micros) };
            let reply = reply(&limit(), decided(refused, 0));
            assert_eq!(header(&reply, "retry-after"), Some(seconds));
        }
    }

    #[test]
    fn a_request_that_can_never_pass_promises_no_time() {
        let reply = reply(&limit(), decided(Outcome::Never(Never::Closed), 0));
        assert_eq!((reply.status, header(&reply, "retry-after")), (429, None));
    }

    #[test]
    fn a_refusal_is_a_problem_that_names_the_limit() {
        let refused = Outcome::Refused { retry_after: Micros::new(1) };
        let reply = reply(&limit(), decided(refused, 0));
        let body: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(header(&reply, "content-type"), Some("application/problem+json"));
        assert_eq!(body["status"], 429);
        assert_eq!(body["violated-policies"][0], "per-key");
    }

    #[test]
    fn a_missing_key_is_answered_as_the_limit_says() {
        for (policy, status) in [(MissingKey::Unauthorized, 401), (MissingKey::Deny, 403)] {
            let limit = Limit { missing_key: policy, ..limit() };
            assert_eq!(reply(&limit, Verdict::KeyMissing).status, status);
        }
        let limit = Limit { missing_key: MissingKey::Skip, ..limit() };
        assert_eq!(answer(&limit, Verdict::KeyMissing), Answer::Pass(Vec::new()));
    }

    #[test]
    fn a_store_that_cannot_say_allows_or_answers_503_and_never_429() {
        assert_eq!(answer(&limit(), Verdict::Unchecked), Answer::Pass(Vec::new()));
        let limit = Limit { on_store_failure: OnStoreFailure::Deny, ..limit() };
        let reply = reply(&limit, Verdict::Unchecked);
        assert_eq!((reply.status, header(&reply, "retry-after")), (503, Some("1")));
    }
}
