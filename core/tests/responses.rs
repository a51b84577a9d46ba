//! What a client reads, for every verdict.

use weir_core::{
    config,
    decision::{Decision, Never, Outcome},
    policy::{Policy, quota::Quota},
    response::{Answer, Reply, Verdict, answer},
    units::Micros,
};

/// A policy with one limit of 1000 a minute, and these fields.
fn policy(fields: &str, limit: &str) -> Policy {
    let text =
        format!(r#"{{{fields}"limits":[{{"name":"per-key","rate":"1000/minute"{limit}}}]}}"#,);
    config::parse(text.as_bytes()).unwrap_or_else(|faults| panic!("{faults}"))
}

fn decided(policy: &Policy, outcome: Outcome, remaining: u64, draw: u32) -> Answer {
    let reset_after = Micros::new(1_020_000);
    let limit = &policy.limits[0];
    let decision = Decision { outcome, limit: 17, remaining, reset_after };
    answer(policy, limit, Verdict::Decided(limit.tiers.default.quota(), decision), draw)
}

fn reply(answer: Answer) -> Reply {
    match answer {
        Answer::Reply(reply) => reply,
        Answer::Pass { .. } => panic!("passed"),
    }
}

fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
}

const fn wait(micros: u64) -> Outcome {
    Outcome::Refused { retry_after: Micros::new(micros) }
}

#[test]
fn an_allowed_request_says_what_is_left_in_the_style_of_the_policy() {
    for (style, expected) in [
        (
            "draft-10",
            &[
                ("ratelimit-policy", "\"per-key\";q=1000;w=60"),
                ("ratelimit", "\"per-key\";r=16;t=2"),
            ][..],
        ),
        (
            "draft-07",
            &[
                ("ratelimit-policy", "1000;w=60"),
                ("ratelimit", "limit=1000, remaining=16, reset=2"),
            ],
        ),
        (
            "draft-03",
            &[("ratelimit-limit", "1000"), ("ratelimit-remaining", "16"), ("ratelimit-reset", "2")],
        ),
        (
            "x-ratelimit",
            &[
                ("x-ratelimit-limit", "1000"),
                ("x-ratelimit-remaining", "16"),
                ("x-ratelimit-reset", "2"),
            ],
        ),
    ] {
        let policy = policy(&format!(r#""headers":["{style}"],"#), "");
        let headers = expected.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let expected = Answer::Pass { delay: Micros::ZERO, headers };
        assert_eq!(decided(&policy, Outcome::Allowed, 16, 0), expected);
    }
}

#[test]
fn a_policy_may_tell_nothing_and_may_tell_in_two_styles() {
    let count = |headers: &str| match decided(&policy(headers, ""), Outcome::Allowed, 1, 0) {
        Answer::Pass { headers, .. } => headers.len(),
        Answer::Reply(_) => panic!("refused"),
    };
    assert_eq!(count(r#""headers":[],"#), 0);
    assert_eq!(count(r#""headers":["x-ratelimit","draft-10"],"#), 5);
}

#[test]
fn a_wait_of_a_millisecond_is_announced_as_a_second_and_never_as_zero() {
    // A37: at 1000/minute the next token is at most 60 ms away.
    let reply = reply(decided(&policy("", ""), wait(1_000), 0, 0));
    assert_eq!((reply.status, header(&reply, "retry-after")), (429, Some("1")));
}

#[test]
fn a_wait_is_rounded_up_by_less_than_a_second() {
    // dragonflydb/dragonfly#8288: rounded up one second too far.
    for (micros, seconds) in [(1_000_000, "1"), (1_000_001, "2"), (1_999_999, "2")] {
        let reply = reply(decided(&policy("", ""), wait(micros), 0, 0));
        assert_eq!(header(&reply, "retry-after"), Some(seconds));
    }
}

#[test]
fn jitter_spreads_the_return_of_the_refused_and_never_shortens_it() {
    // D23: at most 60 ms away is "1" for all, who then return in the same second.
    let policy = policy(r#""retry_after_jitter":"3s","#, "");
    let retry = |draw| {
        let reply = reply(decided(&policy, wait(1), 0, draw));
        header(&reply, "retry-after").map(str::to_owned)
    };
    assert_eq!(retry(0).as_deref(), Some("1"));
    assert_eq!(retry(1 << 30).as_deref(), Some("2"));
    assert_eq!(retry(u32::MAX).as_deref(), Some("4"));
}

#[test]
fn a_request_that_can_never_pass_promises_no_time() {
    let reply = reply(decided(&policy("", ""), Outcome::Never(Never::Closed), 0, 0));
    assert_eq!((reply.status, header(&reply, "retry-after")), (429, None));
}

#[test]
fn a_delayed_request_passes_after_its_delay() {
    let delay = Micros::new(5);
    let answer = decided(&policy("", ""), Outcome::Delayed { delay }, 1, 0);
    assert!(matches!(answer, Answer::Pass { delay: found, .. } if found == delay));
}

#[test]
fn a_refusal_is_a_problem_that_names_the_limit() {
    let reply = reply(decided(&policy("", ""), wait(1), 0, 0));
    let body: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(header(&reply, "content-type"), Some("application/problem+json"));
    assert_eq!(body["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((&body["status"], &body["violated-policies"][0]), (&429.into(), &"per-key".into()));
    assert_eq!(reply.grpc_status, 8, "RESOURCE_EXHAUSTED");
}

#[test]
fn a_missing_key_is_answered_as_the_limit_says() {
    for (missing, status, grpc) in [("unauthorized", 401, 16), ("deny", 403, 7)] {
        let policy = policy("", &format!(r#","missing_key":"{missing}""#));
        let reply = reply(answer(&policy, &policy.limits[0], Verdict::KeyMissing, 0));
        assert_eq!((reply.status, reply.grpc_status), (status, grpc));
    }
    let policy = policy("", r#","missing_key":"skip""#);
    assert_eq!(answer(&policy, &policy.limits[0], Verdict::KeyMissing, 0), Answer::UNTOUCHED);
}

#[test]
fn a_store_that_cannot_say_allows_or_answers_503_and_never_429() {
    let unchecked = |policy: &Policy| answer(policy, &policy.limits[0], Verdict::Unchecked, 0);
    assert_eq!(unchecked(&policy("", "")), Answer::UNTOUCHED);
    let reply = reply(unchecked(&policy("", r#","on_store_failure":"deny""#)));
    assert_eq!((reply.status, header(&reply, "retry-after")), (503, Some("1")));
    assert_eq!(reply.grpc_status, 14, "UNAVAILABLE");
}

#[test]
fn a_window_of_no_whole_seconds_is_left_out() {
    let policy = policy("", "");
    let quota = Quota::FixedWindow(weir_core::units::Rate::new(5, Micros::new(1_500_000)).unwrap());
    let decision =
        Decision { outcome: Outcome::Allowed, limit: 5, remaining: 4, reset_after: Micros::ZERO };
    let answer = answer(&policy, &policy.limits[0], Verdict::Decided(&quota, decision), 0);
    let Answer::Pass { headers, .. } = answer else { panic!("refused") };
    assert_eq!(headers[0].1, "\"per-key\";q=5");
}
