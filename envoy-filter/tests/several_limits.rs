//! Several limits on one request: all must allow it, and a refused one is charged to none.

mod support;

use std::cell::Cell;
use support::{NOW, Request, configured, send, status};
use weir_core::{response::Answer, units::Instant};
use weir_filter::{host::fake::FakeHost, plugin::Plugin};

/// Limits by key and for all, without a refill that could blur a count.
const TWO: &str = r#"{"limits":[
    {"name":"per-key","key":["header:x-api-key"],"rate":"1/hour","burst":2},
    {"name":"all","rate":"1/hour","burst":3}]}"#;

fn ask(plugin: &Plugin, host: &FakeHost, key: &str) -> Answer {
    send(plugin, host, &Request(&[("x-api-key", key.as_bytes())]))
}

fn statuses<const N: usize>(plugin: &Plugin, host: &FakeHost, keys: [&str; N]) -> [u16; N] {
    keys.map(|key| status(&ask(plugin, host, key)))
}

fn violated(answer: &Answer) -> String {
    let Answer::Reply(reply) = answer else { panic!("passed") };
    let name = reply.body.split("violated-policies\":[\"").nth(1).unwrap_or_default();
    name.split('"').next().unwrap_or_default().to_owned()
}

#[test]
fn all_must_allow() {
    let host = FakeHost::default();
    let plugin = configured(&host, TWO);
    assert_eq!(statuses(&plugin, &host, ["a", "a", "a", "b", "b"]), [200, 200, 429, 200, 429]);
}

#[test]
fn a_refused_request_is_charged_to_none() {
    // envoyproxy/ratelimit#427: one denies, the others are charged all the same.
    let host = FakeHost::default();
    let plugin = configured(&host, TWO);
    assert_eq!(statuses(&plugin, &host, ["a", "a"]), [200, 200]);
    assert_eq!(statuses(&plugin, &host, ["a"; 10]), [429; 10]);
    assert_eq!(statuses(&plugin, &host, ["b", "b"]), [200, 429], "one of three was left");
}

#[test]
fn the_answer_names_the_limit_that_binds() {
    let host = FakeHost::default();
    let plugin = configured(&host, TWO);
    assert_eq!(statuses(&plugin, &host, ["a", "a"]), [200, 200]);
    assert_eq!(violated(&ask(&plugin, &host, "a")), "per-key");
    assert_eq!(statuses(&plugin, &host, ["b"]), [200]);
    assert_eq!(violated(&ask(&plugin, &host, "c")), "all");
}

#[test]
fn an_allowed_answer_tells_of_the_limit_with_least_left() {
    let host = FakeHost::default();
    let plugin = configured(&host, TWO);
    let Answer::Pass { headers, .. } = ask(&plugin, &host, "a") else { panic!("refused") };
    assert!(headers[1].1.starts_with("\"per-key\";r=1"), "{headers:?}");
}

#[test]
fn what_was_charged_before_a_race_was_lost_is_given_back() {
    let host = FakeHost::default();
    let plugin = configured(&host, TWO);
    statuses(&plugin, &host, ["x", "y"]);
    // One of three is left for all. A rival takes it after this request has asked both limits and
    // charged its own key: reads 1 and 2 ask, read 3 charges the key, read 4 the limit for all.
    let other = plugin.clone();
    let reads = Cell::new(0);
    host.set_rival(move |host, _| {
        reads.set(reads.get() + 1);
        if reads.get() == 4 {
            ask(&other, host, "z");
        }
    });
    assert_eq!(status(&ask(&plugin, &host, "a")), 429);
    host.set_rival(|_, _| {});
    let alone =
        r#"{"limits":[{"name":"per-key","key":["header:x-api-key"],"rate":"1/hour","burst":2}]}"#;
    let alone = configured(&host, alone);
    assert_eq!(statuses(&alone, &host, ["a", "a", "a"]), [200, 200, 429], "both are there again");
}

#[test]
fn limits_apply_where_they_match() {
    let host = FakeHost::default();
    let plugin = configured(
        &host,
        r#"{"limits":[
            {"name":"api","match":{"path":"/api/*"},"rate":"1/hour","burst":1},
            {"name":"login","match":{"path":"/login","methods":["POST"]},"rate":"0/second"},
            {"name":"partner","match":{"host":"partner.example","header":{"x-tier":"low"}},"rate":"0/second"}]}"#,
    );
    let ask = |method: &str, host_name: &str, path: &str, tier: &str| {
        let fields: [(&str, &[u8]); 4] = [
            (":method", method.as_bytes()),
            (":authority", host_name.as_bytes()),
            (":path", path.as_bytes()),
            ("x-tier", tier.as_bytes()),
        ];
        status(&send(&plugin, &host, &Request(&fields)))
    };
    assert_eq!(ask("GET", "a", "/", ""), 200);
    assert_eq!([(); 2].map(|()| ask("GET", "a", "/api/x?y=/", "")), [200, 429]);
    assert_eq!([ask("GET", "a", "/login", ""), ask("POST", "a", "/login?x", "")], [200, 429]);
    assert_eq!(ask("POST", "a", "/login/x", ""), 200);
    assert_eq!(ask("GET", "Partner.Example:8080", "/", "low"), 429);
    assert_eq!([ask("GET", "partner.example", "/", ""), ask("GET", "b", "/", "low")], [200, 200]);
}

#[test]
fn shadow_mode_counts_and_lets_pass() {
    let host = FakeHost::default();
    let plugin =
        configured(&host, r#"{"limits":[{"name":"a","rate":"1/hour","burst":1,"mode":"shadow"}]}"#);
    assert_eq!(statuses(&plugin, &host, ["k"; 4]), [200; 4]);
    assert_eq!((host.count("weir.shadow_refused"), host.count("weir.refused")), (3, 0));
}

#[test]
fn a_limit_is_enforced_for_its_share_of_requests() {
    let host = FakeHost::default();
    let plugin = configured(&host, r#"{"limits":[{"name":"a","rate":"0/second","mode":"25%"}]}"#);
    let refused = (0..1000_u32).filter(|n| {
        host.set_draw(n * (u32::MAX / 1000));
        status(&ask(&plugin, &host, "k")) == 429
    });
    assert_eq!(refused.count(), 251, "draws from 0 to just below a quarter");
}

#[test]
fn plans_and_overrides_choose_how_much() {
    let host = FakeHost::default();
    let plugin = configured(
        &host,
        r#"{"plans":{"free":{"rate":"1/hour","burst":1},"pro":{"rate":"1/hour","burst":3}},
            "limits":[{"name":"a","key":["header:x-api-key"],
                       "plan":{"from":"metadata:auth/plan","default":"free"},
                       "overrides":{"vip":{"rate":"1/hour","burst":2}}}]}"#,
    );
    let most = |key: &str, plan: &str| {
        let fields: [(&str, &[u8]); 2] =
            [("x-api-key", key.as_bytes()), (".metadata/auth/plan", plan.as_bytes())];
        (0..9).filter(|_| status(&send(&plugin, &host, &Request(&fields))) == 200).count()
    };
    assert_eq!([most("a", ""), most("b", "free"), most("c", "no such")], [1, 1, 1]);
    assert_eq!([most("d", "pro"), most("vip", "pro")], [3, 2]);
}

#[test]
fn a_reserve_is_for_the_critical() {
    let host = FakeHost::default();
    let plugin = configured(
        &host,
        r#"{"limits":[{"name":"all","rate":"1/hour","burst":10,
            "reserve":{"share":"20%","for":{"header":{"x-priority":"critical"}}}}]}"#,
    );
    let most = |priority: &str| {
        let fields: [(&str, &[u8]); 1] = [("x-priority", priority.as_bytes())];
        (0..20).filter(|_| status(&send(&plugin, &host, &Request(&fields))) == 200).count()
    };
    assert_eq!([most("low"), most("critical"), most("critical")], [8, 2, 0]);
}

#[test]
fn shards_sum_to_the_whole() {
    let host = FakeHost::default();
    let plugin =
        configured(&host, r#"{"limits":[{"name":"all","rate":"10/hour","burst":10,"shards":3}]}"#);
    let allowed = (0..3).map(|shard| {
        host.set_draw(shard * (u32::MAX / 3) + 1);
        (0..20).filter(|_| status(&ask(&plugin, &host, "k")) == 200).count()
    });
    assert_eq!(allowed.collect::<Vec<_>>(), [4, 3, 3]);
}

#[test]
fn a_cost_comes_from_a_header_and_is_never_less_than_one() {
    let host = FakeHost::default();
    let plugin = configured(
        &host,
        r#"{"limits":[{"name":"a","rate":"1/hour","burst":10,"cost":"header:x-cost"}]}"#,
    );
    let left = |cost: &str| {
        let fields: [(&str, &[u8]); 1] = [("x-cost", cost.as_bytes())];
        match send(&plugin, &host, &Request(&fields)) {
            Answer::Pass { headers, .. } => headers[1].1.clone(),
            Answer::Reply(reply) => reply.status.to_string(),
        }
    };
    assert!(left("4").contains("r=6"));
    for (cost, expected) in [("", "r=5"), ("0", "r=4"), ("-5", "r=3"), ("x", "r=2")] {
        assert!(left(cost).contains(expected), "{cost}");
    }
    assert_eq!(left("99999999999"), "429");
}

#[test]
fn every_algorithm_of_the_filter_limits() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window", "sliding-log"] {
        let host = FakeHost::default();
        let burst = if algorithm == "token-bucket" { r#","burst":2"# } else { "" };
        let text = format!(
            r#"{{"limits":[{{"name":"a","algorithm":"{algorithm}","rate":"2/minute"{burst}}}]}}"#,
        );
        let plugin = configured(&host, &text);
        let ask_at = |micros| {
            host.set_now(Instant::from_micros(NOW + micros));
            status(&ask(&plugin, &host, "k"))
        };
        assert_eq!([0, 1, 2].map(ask_at), [200, 200, 429], "{algorithm}");
        assert_eq!(
            [150_000_000, 150_000_001, 150_000_002].map(ask_at),
            [200, 200, 429],
            "{algorithm}"
        );
    }
}

#[test]
fn what_has_no_effect_or_no_way_through_envoy_is_refused_by_name() {
    let refused = |text: &str, fault: &str| {
        let host = FakeHost::default();
        let error = Plugin::configure(text.as_bytes(), &host).expect_err("configured").to_string();
        assert!(error.contains(fault), "{error}");
    };
    refused(
        r#"{"store":{"type":"redis","cluster":"analytics"},"limits":[{"name":"a","rate":"1/second"}]}"#,
        "store.cluster is a name that Envoy takes for an encoded message",
    );
    refused(
        r#"{"gateways":40,"limits":[{"name":"a","rate":"1/second"}]}"#,
        "gateways is for a shared store",
    );
    refused(
        r#"{"key_secret":"0123456789abcdef","limits":[{"name":"a","rate":"1/second"}]}"#,
        "key_secret is for a shared store",
    );
}

#[test]
fn a_limit_in_shadow_mode_turns_nobody_away_for_a_missing_key() {
    for mode in ["shadow", "0%"] {
        let host = FakeHost::default();
        let text = format!(
            r#"{{"limits":[{{"name":"a","key":["header:x-api-key"],"rate":"1/hour",
                            "missing_key":"deny","mode":"{mode}"}}]}}"#,
        );
        let plugin = configured(&host, &text);
        assert_eq!(status(&send(&plugin, &host, &Request(&[]))), 200, "{mode}");
        assert_eq!(host.count("weir.shadow_refused"), 1, "{mode}");
    }
}

#[test]
fn an_override_meets_its_key_however_it_is_written() {
    for (key, written, field, value) in [
        ("client-ip", "192.0.2.7", ".client-ip", "192.0.2.7"),
        ("client-ip", "2001:db8::", ".client-ip", "2001:db8::77"),
        ("host", "API.example.com", ":authority", "api.Example.com:8080"),
        ("header:x-api-key", "vip", "x-api-key", "vip"),
    ] {
        let host = FakeHost::default();
        let text = format!(
            r#"{{"limits":[{{"name":"a","key":["{key}"],"rate":"9/hour","burst":9,
                            "overrides":{{"{written}":{{"rate":"0/second"}}}}}}]}}"#,
        );
        let plugin = configured(&host, &text);
        let fields: [(&str, &[u8]); 1] = [(field, value.as_bytes())];
        assert_eq!(status(&send(&plugin, &host, &Request(&fields))), 429, "{key} {written}");
    }
}

#[test]
fn two_configurations_of_one_limit_do_not_cancel_each_other() {
    let host = FakeHost::default();
    let policy = |algorithm: &str| {
        format!(r#"{{"limits":[{{"name":"a","rate":"1/hour","algorithm":"{algorithm}"}}]}}"#)
    };
    let (old, new) =
        (configured(&host, &policy("token-bucket")), configured(&host, &policy("fixed-window")));
    let allowed = (0..10).flat_map(|_| [&old, &new]);
    let allowed = allowed.filter(|plugin| status(&ask(plugin, &host, "k")) == 200).count();
    assert_eq!(allowed, 2, "one of each");
}

#[test]
fn a_cost_that_is_too_large_or_comes_twice_is_the_most_there_is() {
    let host = FakeHost::default();
    let plugin = configured(
        &host,
        r#"{"limits":[{"name":"a","rate":"1/hour","burst":10,"cost":"header:x-cost"}]}"#,
    );
    let huge: [(&str, &[u8]); 1] = [("x-cost", b"18446744073709551616")];
    let twice: [(&str, &[u8]); 2] = [("x-cost", b"5"), ("x-cost", b"1")];
    assert_eq!(status(&send(&plugin, &host, &Request(&huge))), 429);
    assert_eq!(status(&send(&plugin, &host, &Request(&twice))), 429);
}
