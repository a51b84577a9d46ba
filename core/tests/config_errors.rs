//! Every fault of a policy, as an operator reads it.

#[path = "support/policies.rs"]
mod policies;

use policies::{accepted, refused};
use weir_core::{
    config,
    key::KeyPart,
    policy::{
        Limit, RequestCost, Store,
        mode::{MissingKey, Mode, OnStoreFailure},
        quota::Quota,
    },
};

/// Checks that a limit with this in it is refused with exactly these faults.
fn limit_refused(fields: &str, faults: &[&str]) {
    refused(&format!(r#"{{"limits":[{{"name":"a","rate":"10/second",{fields}}}]}}"#), faults);
}

/// The only limit of a policy with these fields.
fn limit(fields: &str) -> Limit {
    accepted(&format!(r#"{{"limits":[{{"name":"a",{fields}}}]}}"#)).limits.remove(0)
}

#[test]
fn the_smallest_policy_is_a_token_bucket_with_a_burst_of_one_second() {
    let limit = limit(r#""key":["header:X-Api-Key"],"rate":"1000/minute""#);
    let Quota::TokenBucket { burst, .. } = limit.tiers.default.quota() else { panic!("a bucket") };
    let [KeyPart::Header(header)] = limit.key.as_slice() else { panic!("one header") };
    assert_eq!((*burst, header.as_str()), (17, "x-api-key"));
    assert_eq!(limit.missing_key, MissingKey::Share);
    assert_eq!(limit.on_store_failure, OnStoreFailure::Allow);
    assert!(limit.applies.is_any());
}

#[test]
fn the_policy_of_the_design_is_accepted() {
    let policy = accepted(include_str!("data/design.json"));
    assert_eq!(policy.limits.len(), 4);
    assert!(matches!(&policy.store, Store::Redis { streams: 3, .. }));
    let [per_key, login, platform, in_flight] = policy.limits.as_slice() else { panic!("four") };
    assert_eq!(per_key.tiers.by_plan.as_ref().unwrap().plans.len(), 2);
    assert_eq!(login.on_store_failure, OnStoreFailure::Deny);
    assert_eq!(platform.tiers.default.shards(), 12);
    assert_eq!(in_flight.tiers.default.quota().capacity(), 100);
}

#[test]
fn a_limit_of_zero_is_a_closed_limit_for_every_algorithm() {
    for fields in [
        r#""rate":"0/second""#,
        r#""rate":"0/second","algorithm":"fixed-window""#,
        r#""rate":"0/second","algorithm":"sliding-window""#,
        r#""rate":"0/second","algorithm":"sliding-log""#,
        r#""rate":"0/second","algorithm":"leaky-bucket""#,
        r#""limit":0,"algorithm":"concurrency""#,
        r#""rate":"0/second","shards":4"#,
        r#""rate":"0/second","cost":4"#,
    ] {
        let limit = limit(fields);
        assert_eq!(limit.tiers.default.limiter(0), weir_core::limiter::Limiter::Closed, "{fields}");
    }
}

#[test]
fn a_limit_overrides_the_failure_policy_of_the_whole() {
    let policy = accepted(
        r#"{"on_store_failure":"deny",
            "limits":[{"name":"a","rate":"1/second","on_store_failure":"allow"},
                      {"name":"b","rate":"1/second"}]}"#,
    );
    let failures: Vec<_> = policy.limits.iter().map(|limit| limit.on_store_failure).collect();
    assert_eq!(failures, [OnStoreFailure::Allow, OnStoreFailure::Deny]);
}

#[test]
fn modes_and_costs_are_read() {
    assert_eq!(limit(r#""rate":"1/second","mode":"25%""#).mode, Mode::Percent(25));
    assert_eq!(limit(r#""rate":"1/second","mode":"shadow""#).mode, Mode::Shadow);
    let cost = limit(r#""rate":"1/second","cost":"header:x-cost""#).cost;
    assert!(matches!(cost, RequestCost::Header(name) if name.as_str() == "x-cost"));
}

#[test]
fn all_faults_are_told_at_once_each_with_its_path() {
    refused(
        r#"{"namespace":"a b","limits":[{"name":"","key":["hdr:x"],"rte":"1/second","burst":0},
            {"name":"b","rate":"1/second"},{"name":"b","rate":"x"}],"sotre":{}}"#,
        &[
            r#"namespace must be 1 to 64 characters of a-z, A-Z, 0-9, "-", "_" and "."; found "a b""#,
            r#""sotre" is not known here; did you mean "store"?"#,
            r#"limits[0].name must be 1 to 64 characters of a-z, A-Z, 0-9, "-", "_" and "."; found """#,
            r#"limits[0].key[0] must be like "header:x-api-key" or "client-ip"; found "hdr:x""#,
            "limits[0].burst must be 1 to 1000000000 tokens, a whole number; found the number 0",
            r#"limits[0]."rte" is not known here; did you mean "rate"?"#,
            r#"limits[2].rate must be like "1000/minute" or "5/90s" (units: ms, s, m, h, d); found "x""#,
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
    let many = vec![r#"{"name":"a","rate":"1/second"}"#; 33].join(",");
    refused(
        &format!(r#"{{"limits":[{many}]}}"#),
        &["limits has 33 limits; allowed are 1 to 32 limits"],
    );
}

#[test]
fn a_name_used_twice_is_refused() {
    refused(
        r#"{"limits":[{"name":"a","rate":"1/second"},{"name":"a","rate":"2/second"}]}"#,
        &["limits[1].name is the name of limits[0] too; names are unique"],
    );
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
            "limits[0].cost of 11 is above the 10 that the limit, or one of its shards, can hold less \
           its reserve, so no ordinary request could ever pass; raise the limit",
        ],
    );
    limit_refused(
        r#""cost":3,"shards":4"#,
        &[
            "limits[0].cost of 3 is above the 2 that the limit, or one of its shards, can hold less \
           its reserve, so no ordinary request could ever pass; raise the limit",
        ],
    );
}

#[test]
fn more_shards_than_tokens_are_refused() {
    limit_refused(
        r#""shards":11,"burst":20"#,
        &[
            "limits[0].rate with burst 20: there are more shards than tokens to split, so some shard \
           would never allow anything; use fewer shards",
        ],
    );
}

#[test]
fn a_field_given_twice_is_refused() {
    limit_refused(r#""burst":5,"burst":6"#, &["limits[0].burst is given twice"]);
}

#[test]
fn what_belongs_to_another_algorithm_is_refused_and_not_ignored() {
    // higress-group/higress#3310: a setting accepted and then ignored.
    limit_refused(
        r#""algorithm":"fixed-window","burst":3"#,
        &[r#"limits[0].rate stands beside "burst", which only a token bucket has"#],
    );
    limit_refused(
        r#""max_delay":"1s""#,
        &["limits[0].max_delay belongs to the algorithm leaky-bucket; remove it"],
    );
    limit_refused(
        r#""algorithm":"concurrency","limit":1"#,
        &[r#"limits[0].limit stands beside "rate" or "burst", which a concurrency limit has not"#],
    );
    limit_refused(
        r#""limit":5"#,
        &[r#"limits[0].rate stands beside "limit", which only a concurrency limit has"#],
    );
    limit_refused(
        r#""algorithm":"sliding-windw""#,
        &[
            r#"limits[0].algorithm must be one of token-bucket, fixed-window, sliding-window, sliding-log, leaky-bucket, concurrency; found "sliding-windw"; did you mean "sliding-window"?"#,
        ],
    );
}

#[test]
fn a_log_that_would_grow_too_large_is_refused_with_the_remedy() {
    let faults = config::parse(
        br#"{"limits":[{"name":"a","rate":"5000/minute","algorithm":"sliding-log"}]}"#,
    );
    let faults = faults.unwrap_err().to_string();
    assert!(faults.contains("0 to 1000 tokens") && faults.contains("sliding window"), "{faults}");
}

#[test]
fn plans_that_do_not_exist_and_rates_beside_plans_are_refused() {
    let with = |limit: &str| {
        format!(
            r#"{{"plans":{{"free":{{"rate":"10/second"}},"pro":{{"rate":"100/second"}}}},
                "limits":[{{"name":"a",{limit}}}]}}"#,
        )
    };
    refused(
        &with(r#""plan":{"from":"header:x-plan","default":"fre"}"#),
        &[
            r#"limits[0].plan.default must be one of the plans (free, pro); found "fre"; did you mean "free"?"#,
        ],
    );
    refused(
        &with(r#""rate":"1/second","plan":{"from":"header:x-plan","default":"free"}"#),
        &[
            r#"limits[0].rate is given beside "plan"; the plans say how much, so remove one of both"#,
        ],
    );
}

#[test]
fn faults_of_plans_and_overrides_are_all_told() {
    refused(
        r#"{"plans":{"a":{"rate":"5000/minute"},"b":{"rate":"6000/minute"}},
            "limits":[{"name":"l","key":["nope"],"algorithm":"sliding-log",
                       "plan":{"from":"header:x-plan","default":"a"},
                       "overrides":{"x y":{"rate":"1/fortnight"},"z":{"burst":3}}}]}"#,
        &[
            r#"limits[0].key[0] must be like "header:x-api-key" or "client-ip"; found "nope""#,
            &format!("plans.a is not possible: {LOG}"),
            &format!("plans.b is not possible: {LOG}"),
            r#"limits[0].overrides."x y".rate must be like "1000/minute" or "5/90s" (units: ms, s, m, h, d); found "1/fortnight""#,
            r#"limits[0].overrides.z stands beside "burst", which only a token bucket has"#,
        ],
    );
}

/// Why a log is not possible.
const LOG: &str = "a sliding log and a concurrency limit keep an entry for each token, so their \
                   limit must be 0 to 1000 tokens; a sliding window or a token bucket has no such \
                   bound";

#[test]
fn an_override_needs_a_key_of_one_part() {
    limit_refused(
        r#""overrides":{"alice":{"rate":"1/second"}}"#,
        &["limits[0].overrides needs a key of one part; this limit has 0"],
    );
}

#[test]
fn a_reserve_needs_a_share_and_a_condition() {
    limit_refused(
        r#""reserve":{"share":"120%","for":{}}"#,
        &[
            r#"limits[0].reserve.share must be a share like "20%", 0 to 100 percent; found "120%""#,
            "limits[0].reserve.for names no condition, so every request would be critical",
        ],
    );
}

#[test]
fn a_reserve_that_leaves_nothing_for_others_is_refused() {
    limit_refused(
        r#""burst":1,"reserve":{"share":"20%","for":{"methods":["POST"]}}"#,
        &[
            "limits[0].cost of 1 is above the 0 that the limit, or one of its shards, can hold less \
           its reserve, so no ordinary request could ever pass; raise the limit",
        ],
    );
}

#[test]
fn an_override_of_what_no_request_can_have_is_refused() {
    limit_refused(
        r#""key":["client-ip"],"overrides":{"vip":{"rate":"1/second"}}"#,
        &["limits[0].overrides.vip is nothing that a request can have as client-ip"],
    );
    limit_refused(
        r#""key":["client-ip"],
           "overrides":{"2001:db8::1":{"rate":"1/second"},"2001:db8::2":{"rate":"1/second"}}"#,
        &[r#"limits[0].overrides."2001:db8::2" is the same client-ip as "2001:db8::1""#],
    );
}

#[test]
fn a_header_that_is_to_have_two_values_is_refused() {
    limit_refused(
        r#""match":{"header":{"x-a":"1","X-A":"2"}}"#,
        &["limits[0].match.header names x-a twice, and no request could meet both"],
    );
}

#[test]
fn the_secret_is_never_shown() {
    let secret = "short-secret";
    let text =
        format!(r#"{{"key_secret":"{secret}","limits":[{{"name":"a","rate":"1/second"}}]}}"#);
    let faults = config::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(faults.contains("key_secret") && !faults.contains(secret), "{faults}");
    let policy = accepted(&text.replace(secret, "0123456789abcdef"));
    assert!(!format!("{policy:?}").contains("0123456789abcdef"));
    assert!(!config::export(&policy).contains("0123456789abcdef"));
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
