//! Requests through the whole filter, but for the proxy.

mod support;

use proptest::prelude::*;
use support::{NOW, Request, ask, configured, plugin, send, status};
use weir_core::{response::Answer, units::Instant};
use weir_filter::host::fake::FakeHost;

fn header(answer: &Answer, name: &str) -> Option<String> {
    let headers = match answer {
        Answer::Pass { headers, .. } => headers,
        Answer::Reply(reply) => &reply.headers,
    };
    headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

#[test]
fn a_burst_passes_and_the_rest_is_refused() {
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    let answers: Vec<_> = (0..3).map(|_| ask(&plugin, &host, "alice")).collect();
    assert_eq!(answers.iter().map(status).collect::<Vec<_>>(), [200, 200, 429]);
    assert_eq!(header(&answers[0], "ratelimit").as_deref(), Some("\"per-key\";r=1;t=1"));
    assert_eq!(header(&answers[2], "retry-after").as_deref(), Some("1"));
    assert_eq!((host.count("weir.allowed"), host.count("weir.refused")), (2, 1));
}

#[test]
fn a_bucket_refills_with_the_clock() {
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    let ask_at = |micros| {
        host.set_now(Instant::from_micros(NOW + micros));
        status(&ask(&plugin, &host, "alice"))
    };
    assert_eq!([0, 0, 999_999, 1_000_000, 1_000_000].map(ask_at), [200, 200, 429, 200, 429]);
}

#[test]
fn two_callers_do_not_disturb_one_another() {
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    let statuses = ["alice", "bob", "alice", "bob", "alice", "bob"]
        .map(|key| status(&ask(&plugin, &host, key)));
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
}

#[test]
fn a_request_without_its_key_gets_what_the_limit_says() {
    for (fields, statuses) in [
        ("", [200, 200, 429]),
        (r#","missing_key":"share""#, [200, 200, 429]),
        (r#","missing_key":"skip""#, [200, 200, 200]),
        (r#","missing_key":"unauthorized""#, [401, 401, 401]),
        (r#","missing_key":"deny""#, [403, 403, 403]),
    ] {
        let host = FakeHost::default();
        let plugin = plugin(&host, fields);
        let seen = [(); 3].map(|()| status(&send(&plugin, &host, &Request(&[]))));
        assert_eq!((seen, host.count("weir.missing_key")), (statuses, 3), "{fields}");
    }
}

#[test]
fn a_second_value_of_the_key_buys_no_fresh_bucket() {
    let host = FakeHost::default();
    let plugin = plugin(&host, r#","missing_key":"unauthorized""#);
    let twice = Request(&[("x-api-key", b"alice"), ("x-api-key", b"other")]);
    assert_eq!(status(&send(&plugin, &host, &twice)), 401);
}

#[test]
fn a_caller_cannot_pretend_to_be_the_bucket_of_those_without_a_key() {
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    for _ in 0..3 {
        send(&plugin, &host, &Request(&[]));
    }
    assert_eq!(status(&ask(&plugin, &host, "\0")), 200);
}

#[test]
fn a_limit_without_a_key_is_one_bucket_for_all() {
    let host = FakeHost::default();
    let text = r#"{"limits":[{"name":"all","rate":"1/second","burst":2}]}"#;
    let plugin = configured(&host, text);
    let statuses = ["a", "b", "c"].map(|key| status(&ask(&plugin, &host, key)));
    assert_eq!(statuses, [200, 200, 429]);
}

#[test]
fn namespaces_of_one_store_do_not_share_buckets() {
    let host = FakeHost::default();
    let policy = |namespace: &str| {
        format!(r#"{{"namespace":"{namespace}","limits":[{{"name":"a","rate":"1/second"}}]}}"#)
    };
    let (shop, bank) = (configured(&host, &policy("shop")), configured(&host, &policy("bank")));
    assert_eq!(status(&ask(&shop, &host, "k")), 200);
    assert_eq!(status(&ask(&shop, &host, "k")), 429);
    assert_eq!(status(&ask(&bank, &host, "k")), 200);
}

#[test]
fn a_changed_limit_applies_at_once_to_live_buckets() {
    // apache/apisix#8190: changed limits not applied, or late, to live keys.
    let host = FakeHost::default();
    let before = plugin(&host, "");
    for _ in 0..3 {
        ask(&before, &host, "alice");
    }
    let raised =
        r#"{"limits":[{"name":"per-key","key":["header:x-api-key"],"rate":"1/second","burst":5}]}"#;
    let after = configured(&host, raised);
    let statuses = [(); 4].map(|()| status(&ask(&after, &host, "alice")));
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[test]
fn a_refused_request_writes_nothing() {
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    for _ in 0..2 {
        ask(&plugin, &host, "alice");
    }
    let (_, writes) = host.calls();
    for _ in 0..10 {
        ask(&plugin, &host, "alice");
    }
    assert_eq!(host.calls().1, writes);
}

#[test]
fn a_hundred_thousand_callers_leave_a_fixed_number_of_keys() {
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    for caller in 0..100_000 {
        ask(&plugin, &host, &caller.to_string());
    }
    assert!(host.keys().len() as u64 <= weir_core::store::slots::SETS + 1);
}

proptest! {
    #[test]
    fn any_key_is_limited(key in prop::collection::vec(any::<u8>(), 1..64)) {
        let host = FakeHost::default();
        let plugin = plugin(&host, "");
        let facts: [(&str, &[u8]); 1] = [("x-api-key", &key)];
        let statuses = [(); 3].map(|()| status(&send(&plugin, &host, &Request(&facts))));
        prop_assert_eq!(statuses, [200, 200, 429]);
    }

    #[test]
    fn any_policy_text_is_accepted_or_refused(text: Vec<u8>) {
        let host = FakeHost::default();
        let _ = weir_filter::plugin::Plugin::configure(&text, &host);
    }
}
