//! The shared store by a stream: what is sent, and how replies find their requests.

mod support;

use support::{REDIS, Stage, allowed, now, refused, statuses};
use weir_core::script::TOKEN_BUCKET_FAST;
use weir_filter::store::Pace;

const WAITS: u16 = 0;

#[test]
fn a_request_waits_for_its_reply_and_hears_what_is_left() {
    let mut stage = Stage::open("");
    assert_eq!(now(&stage.ask("alice")), WAITS);
    let answers = stage.reply(&allowed(1));
    assert_eq!(statuses(&answers), [(1, 200)]);
    let answer = format!("{:?}", answers[0].1);
    assert!(answer.contains(r#"\"per-key\";r=1;t=1"#), "{answer}");
    assert_eq!(stage.count("allowed"), 1);
    assert_eq!(stage.shared.pace(), Pace::Never);
}

#[test]
fn a_call_names_the_script_by_its_digest_and_no_key_in_the_clear() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    let commands = stage.commands();
    let [words] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!(words[..3], ["EVALSHA", TOKEN_BUCKET_FAST.sha1(), "1"]);
    assert!(words[3].starts_with("weir{") && words[3].len() == 28, "{words:?}");
    assert_eq!(words[4..], ["1000000", "2000000"]);
    assert!(!words.concat().contains("alice"));
}

#[test]
fn the_key_secret_changes_every_key() {
    let key = |fields: &str| {
        let policy = format!(
            r#"{{{REDIS}{fields},"limits":[{{"name":"a","key":["header:x-api-key"],"rate":"1/second"}}]}}"#
        );
        let mut stage = Stage::of(&policy);
        stage.tick();
        stage.ask("alice");
        stage.commands()[0][3].clone()
    };
    let secret = r#","key_secret":"sixteen bytes or more""#;
    assert_eq!(key(""), key(""));
    assert_eq!(key(secret), key(secret));
    assert_ne!(key(""), key(secret));
    assert_ne!(key(secret), key(r#","key_secret":"sixteen bytes of another""#));
}

#[test]
fn a_request_before_the_stream_is_open_waits_for_it() {
    let mut stage = Stage::new(REDIS, "");
    assert_eq!(now(&stage.ask("alice")), WAITS);
    assert_eq!(stage.commands().len(), 0);
    assert!(stage.tick().is_empty());
    assert_eq!(stage.commands().len(), 1);
    assert_eq!(statuses(&stage.reply(&allowed(1))), [(1, 200)]);
}

#[test]
fn replies_find_their_requests_in_order_whatever_the_pieces() {
    let mut stage = Stage::open("");
    for key in ["alice", "bob", "carol"] {
        stage.ask(key);
    }
    let bytes = [allowed(1), refused(), allowed(0)].concat();
    let mut answers = Vec::new();
    for byte in bytes {
        answers.extend(stage.reply(&[byte]));
    }
    assert_eq!(statuses(&answers), [(1, 200), (2, 429), (3, 200)]);
}

#[test]
fn a_store_that_does_not_know_the_script_gets_its_text_on_the_same_stream() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    let by_digest = stage.commands().remove(0);
    assert!(stage.reply(b"-NOSCRIPT No matching script.\r\n").is_empty());
    let by_text = stage.commands().remove(0);
    assert_eq!(by_text[..2], ["EVAL", TOKEN_BUCKET_FAST.text]);
    assert_eq!(by_text[2..], by_digest[2..], "the same keys and arguments");
    assert_eq!(statuses(&stage.reply(&allowed(1))), [(1, 200)]);
    assert_eq!(stage.host.streams().len(), 1);
}

#[test]
fn a_reply_after_the_deadline_keeps_its_place_and_resumes_nobody() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    stage.host.pass_millis(10);
    assert_eq!(statuses(&stage.tick()), [(1, 200)]);
    // The store is slow and not out: it answers the probe in time, after the late reply.
    stage.tick();
    assert!(stage.reply(&refused()).is_empty(), "late");
    assert!(stage.reply(&allowed(2)).is_empty(), "the probe's");
    assert_eq!(now(&stage.ask("bob")), WAITS);
    assert_eq!(statuses(&stage.reply(&allowed(1))), [(2, 200)]);
    assert_eq!(stage.count("unchecked"), 1);
}

#[test]
fn a_refusal_is_remembered_for_all_workers() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    assert_eq!(statuses(&stage.reply(&refused())), [(1, 429)]);
    stage.commands();
    assert_eq!(now(&stage.ask("alice")), 429);
    let mut other = Stage::open("");
    core::mem::swap(&mut other.host, &mut stage.host);
    assert_eq!(now(&other.ask("alice")), 429, "another worker of the same proxy");
    core::mem::swap(&mut other.host, &mut stage.host);
    assert_eq!(now(&stage.ask("bob")), WAITS, "and for nobody else");
    assert_eq!(stage.commands().len(), 1);
    assert_eq!(stage.count("recalled"), 2);
}

#[test]
fn a_remembered_refusal_ends_when_the_token_is_there() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    stage.reply(&refused());
    stage.host.pass_millis(499);
    assert_eq!(now(&stage.ask("alice")), 429);
    stage.host.pass_millis(1);
    assert_eq!(now(&stage.ask("alice")), WAITS);
}

#[test]
fn a_refusal_is_remembered_for_a_second_at_most() {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS},"limits":[{{"name":"a","key":["header:x-api-key"],"rate":"1/minute","burst":1}}]}}"#
    ));
    stage.tick();
    stage.ask("alice");
    stage.reply(b":-60000001\r\n");
    stage.host.pass_millis(999);
    assert_eq!(now(&stage.ask("alice")), 429);
    stage.host.pass_millis(1);
    assert_eq!(now(&stage.ask("alice")), WAITS, "the charge may have been given back");
}

#[test]
fn a_request_that_takes_the_last_token_is_remembered_too() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    stage.reply(&allowed(0));
    assert_eq!(now(&stage.ask("alice")), 429);
}

#[test]
fn a_cost_above_the_limit_and_a_closed_limit_need_no_store() {
    for rate in [r#""1/second","burst":2,"cost":"header:x-api-key""#, r#""0/second""#] {
        let mut stage =
            Stage::of(&format!(r#"{{{REDIS},"limits":[{{"name":"a","rate":{rate}}}]}}"#));
        stage.tick();
        assert_eq!(now(&stage.ask("3")), 429, "{rate}");
        assert_eq!(stage.commands().len(), 0);
    }
}

#[test]
fn slots_are_split_over_the_streams() {
    let mut stage = Stage::of(
        r#"{"store":{"type":"redis","streams":3},"limits":[{"name":"a","key":["header:x-api-key"],"rate":"1/second"}]}"#,
    );
    stage.tick();
    assert_eq!(stage.host.streams().len(), 3);
    for n in 0..60 {
        stage.ask(&n.to_string());
    }
    let sent = stage.host.take_messages();
    for stream in stage.host.streams() {
        assert!(sent.iter().filter(|(to, _)| *to == stream).count() > 8, "{stream:?}");
    }
}

#[test]
fn a_shadow_limit_is_asked_and_refuses_nobody() {
    let mut stage = Stage::open(r#","mode":"shadow""#);
    stage.ask("alice");
    assert_eq!(statuses(&stage.reply(&refused())), [(1, 200)]);
    assert_eq!((stage.count("shadow_refused"), stage.count("allowed")), (1, 1));
}

#[test]
fn what_one_store_refuses_says_nothing_of_another() {
    let of = |cluster: &str| {
        let mut stage = Stage::of(&format!(
            r#"{{"store":{{"type":"redis","cluster":"{cluster}"}},"limits":[{{"name":"per-key","key":["header:x-api-key"],"rate":"1/second","burst":2}}]}}"#,
        ));
        stage.tick();
        stage
    };
    let mut here = of("eu_bridge");
    here.ask("alice");
    here.reply(&refused());
    let mut there = of("us_bridge");
    core::mem::swap(&mut here.host, &mut there.host);
    assert_eq!(now(&there.ask("alice")), WAITS);
}
