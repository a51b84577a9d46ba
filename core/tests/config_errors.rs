//! Every fault of a policy, as an operator reads it.

use weir_core::{
    config,
    key::KeyPart,
    limiter::Limiter,
    policy::{MissingKey, OnStoreFailure, Policy},
};

/// Checks that a policy is refused with exactly these faults, one a line.
fn refused(text: &str, faults: &[&str]) {
    let found = config::parse(text.as_bytes()).expect_err("accepted");
    let found: Vec<_> = found.as_slice().iter().map(ToString::to_string).collect();
    assert_eq!(found, faults);
}

/// Checks that a limit with this in it is refused with exactly these faults.
fn limit_refused(fields: &str, faults: &[&str]) {
    refused(&format!(r#"{{"limits":[{{"name":"a","rate":"10/second",{fields}}}]}}"#), faults);
}

fn accepted(text: &str) -> Policy {
    config::parse(text.as_bytes()).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn the_smallest_policy_is_a_token_bucket_with_a_burst_of_one_second() {
    let text = r#"{"limits":[{"name":"per-key","key":["header:X-Api-Key"],"rate":"1000/minute"}]}"#;
    let policy = accepted(text);
    let [limit] = policy.limits.as_slice() else { panic!("one limit") };
    let Limiter::TokenBucket(bucket) = limit.limiter else { panic!("a bucket") };
    let [KeyPart::Header(header)] = limit.key.as_slice() else { panic!("one header") };
    assert_eq!((bucket.burst(), header.as_str()), (17, "x-api-key"));
    assert_eq!(limit.missing_key, MissingKey::Share);
    assert_eq!(limit.on_store_failure, OnStoreFailure::Allow);
}

#[test]
fn a_rate_of_zero_is_a_closed_limit() {
    let policy = accepted(r#"{"limits":[{"name":"a","rate":"0/second"}]}"#);
    assert_eq!(policy.limits[0].limiter, Limiter::Closed);
}

#[test]
fn a_limit_overrides_the_failure_policy_of_the_whole() {
    let policy = accepted(
        r#"{"on_store_failure":"allow",
            "limits":[{"name":"a","rate":"1/second","on_store_failure":"deny"}]}"#,
    );
    assert_eq!(policy.limits[0].on_store_failure, OnStoreFailure::Deny);
}

#[test]
fn all_faults_are_told_at_once_each_with_its_path() {
    refused(
        r#"{"namespace":"a b","limits":[{"name":"","key":["hdr:x"],"rte":"1/second","burst":0}],
            "sotre":{}}"#,
        &[
            r#"namespace must be 1 to 64 characters of a-z, A-Z, 0-9, "-", "_" and "."; found "a b""#,
            r#""sotre" is not known here; did you mean "store"?"#,
            r#"limits[0].name must be 1 to 64 characters of a-z, A-Z, 0-9, "-", "_" and "."; found """#,
            r#"limits[0].key[0] must be like "header:x-api-key"; found "hdr:x""#,
            "limits[0].rate is missing",
            "limits[0].burst must be 1 to 1000000000 tokens, a whole number; found the number 0",
            r#"limits[0]."rte" is not known here; did you mean "rate"?"#,
        ],
    );
}

#[test]
fn what_is_no_json_is_told_with_line_and_column() {
    let faults = config::parse(b"{\n  \"limits\": [,]\n}").unwrap_err().to_string();
    assert!(
        faults.contains("is not valid JSON") && faults.contains("line 2 column 14"),
        "{faults}"
    );
}

#[test]
fn a_fraction_is_refused_with_its_place() {
    let faults = config::parse(br#"{"limits":[{"name":"a","rate":"1/second","burst":1.5}]}"#);
    let faults = faults.unwrap_err().to_string();
    assert!(faults.contains("1.5") && faults.contains("line 1 column 52"), "{faults}");
}

#[test]
fn a_policy_without_limits_is_refused() {
    refused("{}", &["limits is missing"]);
    refused(r#"{"limits":[]}"#, &["limits is empty, so nothing would be limited; add a limit"]);
    refused(r#"{"limits":{}}"#, &["limits must be a list; found an object"]);
    refused("[]", &["the policy must be an object; found a list of 0"]);
}

#[test]
fn negative_and_oversized_numbers_are_refused_with_the_range() {
    limit_refused(
        r#""burst":-1"#,
        &["limits[0].burst must be 1 to 1000000000 tokens, a whole number; found the number -1"],
    );
    limit_refused(
        r#""cost":1000000001"#,
        &[
            "limits[0].cost must be 1 to 1000000000 tokens, a whole number; found the number 1000000001",
        ],
    );
}

#[test]
fn a_cost_that_could_never_pass_is_refused() {
    limit_refused(
        r#""cost":11"#,
        &[
            "limits[0].cost of 11 is above the burst of 10, so no request could ever pass; raise the burst",
        ],
    );
}

#[test]
fn a_field_given_twice_is_refused() {
    limit_refused(r#""burst":5,"burst":6"#, &["limits[0].burst is given twice"]);
}

#[test]
fn what_this_version_cannot_enforce_is_refused_by_name_and_not_ignored() {
    // higress-group/higress#3310: a setting accepted and then ignored.
    limit_refused(
        r#""algorithm":"sliding-log""#,
        &[r#"limits[0].algorithm must be one of token-bucket; found "sliding-log""#],
    );
    limit_refused(
        r#""mode":"shadow""#,
        &["limits[0].mode is not supported by this version; remove it"],
    );
    limit_refused(
        r#""key":["client-ip/128"]"#,
        &[
            r#"limits[0].key[0] of kind "client-ip" is not supported by this version; use "header:…""#,
        ],
    );
    refused(
        r#"{"store":{"type":"redis"},"limits":[{"name":"a","rate":"1/second"}]}"#,
        &[r#"store.type must be one of local; found "redis""#],
    );
    refused(
        r#"{"limits":[{"name":"a","rate":"1/second"},{"name":"b","rate":"1/second"}]}"#,
        &["limits has 2 limits; this version enforces one per filter"],
    );
}

#[test]
fn a_bucket_that_cannot_be_counted_exactly_is_refused_with_the_reason() {
    let faults = config::parse(br#"{"limits":[{"name":"a","rate":"1/366d","burst":1000000000}]}"#);
    let faults = faults.unwrap_err().to_string();
    assert!(faults.contains("limits[0].rate with burst 1000000000"), "{faults}");
    assert!(faults.contains("lower the burst"), "{faults}");
}

#[test]
fn hostile_texts_are_shown_escaped_and_cut() {
    let long = "\\u0000".repeat(1000);
    let faults = config::parse(
        format!(r#"{{"limits":[{{"name":"{long}","rate":"1/second"}}]}}"#).as_bytes(),
    );
    let faults = faults.unwrap_err().to_string();
    assert!(faults.len() < 400 && !faults.contains('\0'), "{faults}");
}

#[test]
fn deep_nesting_is_refused_and_does_not_exhaust_the_stack() {
    let text = "[".repeat(100_000);
    assert!(config::parse(text.as_bytes()).unwrap_err().to_string().contains("recursion limit"));
}
