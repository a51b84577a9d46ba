//! Charges that are to be given back, and what becomes of them when the store fails.

mod support;

use support::{REDIS, Stage, WEBDIS, statuses};

/// A limit by key and one for everyone, which are in different slots.
fn two_slots(store: &str) -> Stage {
    let mut stage = Stage::of(&format!(
        r#"{{{store},"limits":[
            {{"name":"per-key","key":["header:x-api-key"],"rate":"1/second","burst":2}},
            {{"name":"everyone","rate":"10/second"}}]}}"#,
    ));
    stage.tick();
    stage
}

/// The reply of a script for one limit that charged, and of one that refused.
const CHARGED: &[u8] = b"*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1700000000000000\r\n";
const REFUSED: &[u8] = b"*5\r\n:0\r\n:0\r\n:100000\r\n:1000000\r\n:1700000000000000\r\n";

/// A request that one slot has charged and the other refused: its refund has been sent.
fn refunding() -> Stage {
    let mut stage = two_slots(REDIS);
    stage.ask("alice");
    stage.reply(CHARGED);
    assert_eq!(statuses(&stage.reply(REFUSED)), [(1, 429)]);
    assert_eq!(stage.commands().len(), 3);
    stage
}

#[test]
fn one_that_succeeds_is_not_counted() {
    let mut stage = refunding();
    stage.reply(b"*1\r\n:1\r\n");
    stage.close();
    assert_eq!(stage.count("refund_lost"), 0);
}

#[test]
fn one_that_cannot_be_sent_is_counted() {
    let mut stage = two_slots(REDIS);
    stage.ask("alice");
    stage.reply(CHARGED);
    for stream in stage.host.streams() {
        stage.host.end_stream(stream);
        stage.shared.on_message(&stage.plugin, &stage.host, (stream, REFUSED));
    }
    assert_eq!(stage.count("refund_lost"), 1);
}

#[test]
fn one_that_is_answered_by_an_error_is_counted() {
    let mut stage = refunding();
    stage.reply(b"-NOSCRIPT\r\n");
    assert_eq!(stage.commands().len(), 1, "it is sent again by its text");
    assert_eq!(stage.count("refund_lost"), 0);
    stage.reply(b"-TRYAGAIN\r\n");
    assert_eq!(stage.count("refund_lost"), 1);
}

#[test]
fn one_whose_stream_ends_first_is_counted() {
    let mut stage = refunding();
    assert!(stage.close().is_empty());
    assert_eq!(stage.count("refund_lost"), 1);
}

#[test]
fn one_whose_callout_fails_is_counted() {
    let failures: [(Option<&[u8]>, u64); 3] =
        [(Some(br#"{"EVALSHA":[1]}"#), 0), (None, 1), (Some(br#"{"EVALSHA":[false,"ERR"]}"#), 1)];
    for (body, lost) in failures {
        let mut stage = two_slots(WEBDIS);
        stage.ask("alice");
        let asked = stage.host.take_callouts();
        stage.respond(asked[0].id, Some(br#"{"EVALSHA":[1,1,0,1000000,1700000000000000]}"#));
        let refused = br#"{"EVALSHA":[0,0,100000,1000000,1700000000000000]}"#;
        assert_eq!(statuses(&stage.respond(asked[1].id, Some(refused))), [(1, 429)]);
        stage.tick();
        let refund = stage.callout();
        stage.respond(refund.id, body);
        assert_eq!(stage.count("refund_lost"), lost, "{body:?}");
    }
}
