//! Where the counts are kept, as an operator writes it, and what is told of its faults.

#[path = "support/policies.rs"]
mod policies;

use policies::{accepted, refused};
use weir_core::{
    config,
    policy::{HttpApi, Store, Token},
};

/// A policy whose store is reached over HTTP, with these fields.
fn over_http(fields: &str) -> String {
    format!(
        r#"{{"store":{{"type":"http","cluster":"w",{fields}}},
            "limits":[{{"name":"a","rate":"1/second"}}]}}"#,
    )
}

#[test]
fn a_store_over_http_is_read() {
    let Store::Http { api, token, host, .. } = accepted(&over_http(r#""api":"webdis""#)).store
    else {
        panic!("http")
    };
    assert_eq!((api, token, host), (HttpApi::Webdis, None, None));
    let text = over_http(r#""api":"upstash","token":"AX-secret-of-8","host":"eu1.example.com""#);
    let Store::Http { api, token, host, .. } = accepted(&text).store else { panic!("http") };
    assert_eq!((api, host.as_deref()), (HttpApi::Upstash, Some("eu1.example.com")));
    assert_eq!(token.as_ref().map(Token::as_str), Some("AX-secret-of-8"));
}

#[test]
fn a_token_is_for_the_api_that_asks_for_one() {
    refused(
        &over_http(r#""api":"upstash""#),
        &["store.token is missing; the api upstash asks for one"],
    );
    refused(
        &over_http(r#""api":"webdis","token":"12345678""#),
        &["store.token is for the api upstash; webdis asks for none, so remove it"],
    );
    refused(&over_http(r#""token":"12345678""#), &["store.api is missing"]);
    refused(
        &over_http(r#""api":"upstsh","token":7"#),
        &[
            r#"store.api must be one of webdis, upstash; found "upstsh"; did you mean "upstash"?"#,
            "store.token must be 8 to 1024 visible ASCII characters; what was found is not shown",
        ],
    );
}

#[test]
fn a_token_is_what_can_stand_in_a_header_and_is_never_shown() {
    let with = |token: &str| over_http(&format!(r#""api":"upstash","token":"{token}""#));
    for token in
        ["1234567", "1234 5678", " 12345678", "1234567\\n", "12345678é", &"a".repeat(1_025)]
    {
        refused(
            &with(token),
            &[
                "store.token must be 8 to 1024 visible ASCII characters; what was found is not shown",
            ],
        );
    }
    for token in ["!~345678".to_owned(), "a".repeat(1_024)] {
        let policy = accepted(&with(&token));
        assert!(!format!("{policy:?}").contains(&token));
        assert!(!config::export(&policy).contains(&token));
    }
}

#[test]
fn a_host_is_a_name_or_an_address_with_its_port_if_any() {
    let with = |host: &str| over_http(&format!(r#""api":"webdis","host":"{host}""#));
    for host in ["a", "eu1.example.com:443", "10.0.0.7:7379", "[::1]", "[2001:db8::7]:65535"] {
        let Store::Http { host: found, .. } = accepted(&with(host)).store else { panic!("http") };
        assert_eq!(found.as_deref(), Some(host));
    }
    let long = "a".repeat(256);
    for host in [
        "",
        ":80",
        "a:",
        "a:0",
        "a:65536",
        "a:+80",
        "a:8:0",
        "a b",
        "a/b",
        "a@b",
        "https://a",
        "::1",
        "[::1",
        "[]",
        "[a]",
        "[::1]80",
        "a\\r\\nx-b: c",
        "é",
        &long,
    ] {
        let faults = config::parse(with(host).as_bytes()).expect_err(host).to_string();
        assert!(faults.contains("store.host must be a host like"), "{faults}");
    }
}

#[test]
fn what_belongs_to_another_store_is_not_known() {
    refused(
        r#"{"store":{"type":"redis","token":"12345678"},
            "limits":[{"name":"a","rate":"1/second"}]}"#,
        &[r#"store."token" is not known here"#],
    );
    refused(&over_http(r#""api":"webdis","streams":2"#), &[r#"store."streams" is not known here"#]);
}

#[test]
fn a_local_share_needs_a_shared_store() {
    refused(
        r#"{"limits":[{"name":"a","rate":"10/second","on_store_failure":"local"}]}"#,
        &[
            r#"limits[0].on_store_failure is "local", which needs a shared store; use allow or deny"#,
        ],
    );
}

/// A policy of 40 gateways whose limit falls back on shares, with these fields.
fn shared(fields: &str) -> String {
    format!(
        r#"{{"gateways":40,"store":{{"type":"redis"}},"on_store_failure":"local",
            "limits":[{{"name":"a",{fields}}}]}}"#,
    )
}

#[test]
fn a_limit_may_fall_back_on_a_share_of_it() {
    let policy = accepted(&shared(r#""rate":"1000/minute","burst":100"#));
    let share = policy.limits[0].tiers.default.share(policy.gateways);
    assert_eq!(share.capacity(), 3);
    accepted(&shared(r#""rate":"0/second""#));
    accepted(&shared(r#""algorithm":"sliding-log","rate":"5/minute""#));
}

#[test]
fn a_share_that_cannot_be_counted_is_refused() {
    // Five shards of a thousand each can be logged, the whole by one gateway cannot.
    let text = shared(r#""algorithm":"sliding-log","rate":"5000/minute","shards":5"#);
    refused(
        &text.replace("40", "1"),
        &["limits[0].on_store_failure is \"local\", but the share of one of 1 gateways is not \
             possible: a sliding log and a concurrency limit keep an entry for each token, so their \
             limit must be 0 to 1000 tokens; a sliding window or a token bucket has no such bound; \
             or change gateways, or use allow or deny"],
    );
    accepted(&text);
}

#[test]
fn a_share_in_which_no_request_could_pass_is_refused_for_each_tier() {
    refused(
        &shared(
            r#""rate":"1000/minute","burst":100,"cost":4,"key":["path"],
               "overrides":{"/a":{"rate":"1/second","burst":80},"/b":{"rate":"9/second","burst":80},
                            "/c":{"rate":"9/second","burst":160},"/d":{"rate":"0/second"}}"#,
        ),
        &[2, 3].map(|share| {
            format!(
                "limits[0].on_store_failure is \"local\", but the share of one of 40 gateways holds \
                 {share} and reserves 0, so no ordinary request, of 4, could ever pass; raise the \
                 limit, or use allow or deny",
            )
        }),
    );
    refused(
        &shared(r#""rate":"40/minute","burst":40,"reserve":{"share":"20%","for":{"path":"/a"}}"#),
        &[
            "limits[0].on_store_failure is \"local\", but the share of one of 40 gateways holds 1 and \
             reserves 1, so no ordinary request, of 1, could ever pass; raise the limit, or use \
             allow or deny",
        ],
    );
}
