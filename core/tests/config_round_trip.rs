//! A policy comes back from its canonical text: over random policies of the whole format.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use weir_core::config;

fn maybe(
    name: &'static str,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Vec<(String, Value)>> {
    prop::option::of(value)
        .prop_map(move |value| value.map(|value| (name.to_owned(), value)).into_iter().collect())
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::sample::select(words).prop_map(Value::from)
}

fn rates() -> impl Strategy<Value = Value> {
    let window = prop_oneof![
        prop::sample::select(&["second", "minute", "hour", "day"][..]).prop_map(str::to_owned),
        (1..5000_u64, prop::sample::select(&["ms", "s", "m", "h"][..]))
            .prop_map(|(n, unit)| format!("{n}{unit}")),
    ];
    (0..900_u64, window).prop_map(|(count, window)| json!(format!("{count}/{window}")))
}

fn conditions() -> impl Strategy<Value = Value> {
    (
        maybe("path", word(&["/", "/login", "/api/*", "/*"])),
        maybe(
            "methods",
            prop::sample::subsequence(&["GET", "POST", "PUT"][..], 1..3).prop_map(|m| json!(m)),
        ),
        maybe("host", word(&["example.com", "a-b.example"])),
        maybe("header", Just(json!({ "x-priority": "critical" }))),
    )
        .prop_map(|(a, b, c, d)| object([a, b, c, d]))
}

fn object(parts: impl IntoIterator<Item = Vec<(String, Value)>>) -> Value {
    Value::Object(parts.into_iter().flatten().collect::<Map<_, _>>())
}

fn algorithm() -> impl Strategy<Value = Value> {
    let rate = |algorithm: &'static str| {
        rates().prop_map(move |rate| json!({ "algorithm": algorithm, "rate": rate }))
    };
    prop_oneof![
        rate("fixed-window"),
        rate("sliding-window"),
        rate("sliding-log"),
        (rates(), maybe("burst", (1..2000_u64).prop_map(Value::from)))
            .prop_map(|(rate, burst)| object([vec![("rate".into(), rate)], burst])),
        (rates(), maybe("max_delay", word(&["0s", "250ms", "1s", "1m"]))).prop_map(
            |(rate, delay)| object([
                vec![("algorithm".into(), json!("leaky-bucket")), ("rate".into(), rate)],
                delay
            ])
        ),
        (0..500_u64, maybe("lease", word(&["1s", "60s", "1h"]))).prop_map(|(limit, lease)| object(
            [
                vec![("algorithm".into(), json!("concurrency")), ("limit".into(), json!(limit))],
                lease
            ]
        )),
        Just(
            json!({ "plan": { "from": "metadata:envoy.filters.http.ext_authz/plan", "default": "free" } })
        ),
    ]
}

fn limits() -> impl Strategy<Value = Value> {
    let limit = (
        algorithm(),
        maybe(
            "key",
            prop::sample::subsequence(
                &["header:x-api-key", "client-ip/56", "path", "cookie:sid", "metadata:a/b"][..],
                0..4,
            )
            .prop_map(|k| json!(k)),
        ),
        maybe("missing_key", word(&["share", "skip", "unauthorized", "deny"])),
        maybe("cost", prop_oneof![(1..3_u64).prop_map(Value::from), Just(json!("header:x-cost"))]),
        maybe("mode", word(&["enforce", "shadow", "0%", "33%"])),
        maybe("match", conditions()),
        maybe("reserve", Just(json!({ "share": "20%", "for": { "methods": ["POST"] } }))),
        maybe("on_store_failure", word(&["allow", "deny"])),
        maybe("shards", (1..5_u64).prop_map(Value::from)),
    );
    prop::collection::vec(limit, 1..4).prop_map(|limits| {
        let named =
            limits.into_iter().enumerate().map(|(i, (algorithm, a, b, c, d, e, f, g, h))| {
                let mut limit = object([
                    vec![("name".into(), json!(format!("limit-{i}")))],
                    a,
                    b,
                    c,
                    d,
                    e,
                    f,
                    g,
                    h,
                ]);
                limit.as_object_mut().unwrap().extend(algorithm.as_object().unwrap().clone());
                limit
            });
        named.collect()
    })
}

fn policies() -> impl Strategy<Value = Value> {
    (
        limits(),
        maybe("namespace", word(&["weir", "shop"])),
        maybe("gateways", (1..90_u64).prop_map(Value::from)),
        maybe("store", prop_oneof![
            Just(json!({ "type": "local" })),
            Just(json!({ "type": "redis", "streams": 3, "timeout": "1s" })),
            Just(json!({ "type": "http", "cluster": "webdis", "api": "webdis" })),
            Just(json!({ "type": "http", "cluster": "u", "api": "upstash", "token": TOKEN,
                         "host": "eu1.example.com:443", "timeout": "1s" })),
        ]),
        maybe("headers", prop::sample::subsequence(&["draft-03", "draft-07", "draft-10", "x-ratelimit"][..], 0..4).prop_map(|h| json!(h))),
        maybe("retry_after_jitter", word(&["0s", "5s", "1m"])),
        maybe("on_store_failure", word(&["allow", "deny"])),
    )
        .prop_map(|(limits, a, b, c, d, e, f)| {
            let plans = json!({ "free": { "rate": "10/second" }, "pro": { "rate": "20/second", "burst": 50 } });
            object([vec![("limits".into(), limits), ("plans".into(), plans)], a, b, c, d, e, f])
        })
}

/// What opens the stores that ask for it.
const TOKEN: &str = "0123456789abcdef";

/// An exported policy with the token put in again, if its store asks for one.
fn with_token(text: &str) -> String {
    let api = r#""api": "upstash","#;
    text.replacen(api, &format!(r#"{api} "token": "{TOKEN}","#), 1)
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn a_policy_comes_back_from_its_canonical_text(written in policies()) {
        let Ok(policy) = config::parse(written.to_string().as_bytes()) else {
            return Err(TestCaseError::reject("a cost or a shard does not fit"));
        };
        let exported = config::export(&policy);
        prop_assert!(!exported.contains(TOKEN));
        let read = config::parse(with_token(&exported).as_bytes());
        prop_assert_eq!(read.as_ref(), Ok(&policy), "{}", exported);
        prop_assert_eq!(config::export(&policy), exported);
    }
}
