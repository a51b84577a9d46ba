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
