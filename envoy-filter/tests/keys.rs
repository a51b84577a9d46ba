//! What makes two requests share a bucket.

mod support;

use support::{Request, configured, send, status};
use weir_filter::host::fake::FakeHost;

/// A request's fields.
type Fields<'a> = &'a [(&'a str, &'a [u8])];

/// Checks that of a list of requests exactly those share a bucket whose numbers are equal.
fn check(key: &str, requests: &[(u32, Fields<'_>)]) {
    let host = FakeHost::default();
    let text = format!(r#"{{"limits":[{{"name":"a","key":{key},"rate":"1/hour","burst":1}}]}}"#);
    let plugin = configured(&host, &text);
    let mut seen = Vec::new();
    for (bucket, fields) in requests {
        let expected = if seen.contains(bucket) { 429 } else { 200 };
        seen.push(*bucket);
        assert_eq!(status(&send(&plugin, &host, &Request(fields))), expected, "{key} {fields:?}");
    }
}

#[test]
fn an_address_counts_as_its_network() {
    check(
        r#"["client-ip"]"#,
        &[
            (1, &[(".client-ip", b"192.0.2.1")]),
            (2, &[(".client-ip", b"192.0.2.2")]),
            (1, &[(".client-ip", b"::ffff:192.0.2.1")]),
            (3, &[(".client-ip", b"2001:db8::1")]),
            (3, &[(".client-ip", b"2001:db8::ffff:1")]),
            (4, &[(".client-ip", b"2001:db8:0:1::1")]),
        ],
    );
    check(
        r#"["client-ip/24/128"]"#,
        &[
            (1, &[(".client-ip", b"192.0.2.1")]),
            (1, &[(".client-ip", b"192.0.2.2")]),
            (2, &[(".client-ip", b"2001:db8::1")]),
            (3, &[(".client-ip", b"2001:db8::2")]),
        ],
    );
}

#[test]
fn what_a_client_says_of_its_address_is_not_heard() {
    // traefik/traefik#7067: a forged x-forwarded-for.
    check(
        r#"["client-ip"]"#,
        &[
            (1, &[(".client-ip", b"192.0.2.1"), ("x-forwarded-for", b"198.51.100.1")]),
            (1, &[(".client-ip", b"192.0.2.1"), ("x-forwarded-for", b"198.51.100.2")]),
        ],
    );
}

#[test]
fn every_part_is_read() {
    check(r#"["method"]"#, &[(1, &[(":method", b"GET")]), (2, &[(":method", b"PUT")])]);
    check(
        r#"["path"]"#,
        &[(1, &[(":path", b"/a?x")]), (1, &[(":path", b"/a")]), (2, &[(":path", b"/b")])],
    );
    check(r#"["host"]"#, &[(1, &[(":authority", b"a:80")]), (1, &[(":authority", b"A")])]);
    check(r#"["route"]"#, &[(1, &[(".route", b"r1")]), (2, &[(".route", b"r2")])]);
    check(
        r#"["cookie:sid"]"#,
        &[
            (1, &[("cookie", b"a=b; sid=1")]),
            (1, &[("cookie", b"sid=1")]),
            (2, &[("cookie", b"sid=2")]),
        ],
    );
    check(
        r#"["query:t"]"#,
        &[(1, &[(":path", b"/?t=%61")]), (1, &[(":path", b"/x?t=a")]), (2, &[(":path", b"/?t=b")])],
    );
    check(
        r#"["metadata:jwt/sub"]"#,
        &[(1, &[(".metadata/jwt/sub", b"u1")]), (2, &[(".metadata/jwt/sub", b"u2")])],
    );
}

#[test]
fn parts_make_one_key_together() {
    // traefik/traefik#8006: a key of several parts.
    check(
        r#"["header:x-api-key","path"]"#,
        &[
            (1, &[("x-api-key", b"a"), (":path", b"/1")]),
            (2, &[("x-api-key", b"a"), (":path", b"/2")]),
            (3, &[("x-api-key", b"b"), (":path", b"/1")]),
            (1, &[("x-api-key", b"a"), (":path", b"/1")]),
        ],
    );
}
