//! The life of an outage: when the breaker opens and closes, how a stream is opened anew, and what
//! the log says.

mod support;

use support::{REDIS, Stage, WEBDIS, allowed, now, statuses};
use weir_filter::store::Pace;

#[test]
fn while_the_store_is_out_nobody_waits() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    stage.host.pass_millis(10);
    stage.tick();
    stage.commands();
    for _ in 0..100 {
        assert_eq!(now(&stage.ask("alice")), 200);
    }
    assert_eq!(stage.commands().len(), 0, "nothing is sent for them");
    assert_eq!(stage.log().len(), 1, "{:?}", stage.log());
    assert!(stage.log()[0].contains("the store is out"), "{:?}", stage.log());
}

#[test]
fn a_probe_that_is_answered_in_time_ends_the_outage_without_a_request() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    stage.host.pass_millis(10);
    stage.tick();
    assert_eq!(stage.shared.pace(), Pace::Soon);
    let commands = stage.commands();
    let probe = commands.last().expect("a probe");
    assert_eq!(probe[4..], ["1000000", "2000000", "0"], "it charges nothing: {probe:?}");
    // The expired check's reply, which is late, and the probe's.
    stage.host.pass_millis(5);
    stage.reply(&[allowed(1), allowed(1)].concat());
    assert_eq!(now(&stage.ask("alice")), 0, "it is checked again");
    assert_eq!(stage.log().len(), 2, "{:?}", stage.log());
    assert!(stage.log()[1].contains("answers again"), "{:?}", stage.log());
}

#[test]
fn a_silent_stream_is_given_up_after_a_second_and_opened_anew() {
    let mut stage = Stage::open("");
    let first = stage.host.streams();
    stage.ask("alice");
    for _ in 0..110 {
        stage.host.pass_millis(10);
        stage.tick();
    }
    let second = stage.host.streams();
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    let late = stage.shared.on_message(&stage.plugin, &stage.host, (first[0], &allowed(1)));
    assert!(late.is_empty());
    // The new one answers the probe that was sent when it was opened, and the next.
    stage.host.pass_millis(100);
    stage.tick();
    stage.reply(&[allowed(2), allowed(2)].concat());
    assert_eq!(now(&stage.ask("alice")), 0);
}

#[test]
fn a_store_that_cannot_be_reached_is_tried_at_growing_intervals() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    stage.close();
    let mut opened = Vec::new();
    for millis in 0..5_000 {
        stage.tick();
        if !stage.host.streams().is_empty() {
            opened.push(millis);
            stage.close();
        }
        stage.host.pass_millis(1);
    }
    let pauses: Vec<_> = opened.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses[..4], [100, 200, 200, 200], "{opened:?}");
    assert_eq!(stage.log().len(), 1, "{:?}", stage.log());
}

#[test]
fn a_stream_that_worked_is_opened_anew_at_once() {
    let mut stage = Stage::open("");
    stage.ask("alice");
    stage.reply(&allowed(1));
    stage.close();
    assert_eq!(now(&stage.ask("alice")), 0, "it waits for the stream");
    stage.tick();
    assert_eq!(statuses(&stage.reply(&allowed(0))), [(2, 200)]);
    assert_eq!(stage.log(), [] as [&str; 0]);
}

#[test]
fn a_stream_that_ends_in_the_middle_of_its_first_reply_did_not_work() {
    let mut stage = Stage::open("");
    for _ in 0..3 {
        if now(&stage.ask("alice")) == 0 {
            stage.reply(b"*4\r\n:1\r\n");
            stage.close();
        }
        stage.tick();
    }
    assert_eq!(stage.count("store_calls"), 1, "one request waits for it");
    assert_eq!(stage.log().len(), 1, "{:?}", stage.log());
    assert!(stage.log()[0].contains("the store is out"), "{:?}", stage.log());
}

#[test]
fn half_a_reply_does_not_keep_a_silent_stream() {
    let mut stage = Stage::open("");
    let first = stage.host.streams();
    stage.ask("alice");
    for _ in 0..99 {
        stage.host.pass_millis(10);
        stage.reply(b"+");
        stage.tick();
    }
    assert_eq!(first, stage.host.streams());
    stage.host.pass_millis(10);
    stage.tick();
    assert_ne!(first, stage.host.streams(), "a second is over");
}

#[test]
fn a_limiter_that_gets_no_requests_gives_up_quietly() {
    let mut stage = Stage::open("");
    stage.close();
    assert_eq!(stage.shared.pace(), Pace::Never);
    assert_eq!(stage.log(), [] as [&str; 0]);
    assert_eq!(now(&stage.ask("alice")), 0);
    assert_eq!(stage.shared.pace(), Pace::Soon, "and opens it when one comes");
}

#[test]
fn errors_of_the_store_do_not_fill_the_log() {
    let mut stage = Stage::open("");
    for n in 0..100 {
        stage.ask(&n.to_string());
        stage.reply(b"-WRONGTYPE \x1b[31mOperation\xff\r\n");
    }
    assert_eq!(stage.log(), ["weir: the store cannot check a limit: WRONGTYPE ?[31mOperation?"]);
    stage.host.pass_millis(10_000);
    stage.ask("alice");
    stage.reply(b"-ERR other\r\n");
    assert!(stage.log()[1].ends_with("ERR other (99 more since the last of these lines)"));
}

#[test]
fn one_slow_key_does_not_open_the_breaker() {
    let mut stage = Stage::open("");
    stage.ask("slow");
    stage.host.pass_millis(5);
    stage.ask("quick");
    // Replies come in order, so the slow one's came in time as well.
    stage.reply(&[allowed(1), allowed(1)].concat());
    stage.host.pass_millis(6);
    assert_eq!(now(&stage.ask("alice")), 0);
    assert_eq!(stage.log(), [] as [&str; 0]);
}

/// Envoy stops the request in whose callback it sends a reply to another: it would hang.
#[test]
fn a_request_is_answered_in_no_callback_of_another() {
    for (policy, status) in [("allow", 200), ("deny", 503)] {
        let mut stage = Stage::of(&format!(
            r#"{{{REDIS},"on_store_failure":"{policy}","limits":[{{"name":"a","rate":"1/second"}}]}}"#
        ));
        stage.tick();
        assert_eq!(now(&stage.ask("")), 0, "{policy}");
        stage.host.pass_millis(10);
        assert_eq!(now(&stage.ask("")), status, "{policy}: the breaker has opened");
        assert_eq!(stage.shared.pace(), Pace::Soon, "{policy}");
        assert_eq!(statuses(&stage.tick()), [(1, status)], "{policy}");
        assert!(stage.tick().is_empty(), "{policy}");
    }
}

#[test]
fn a_redis_that_takes_no_clients_is_not_stormed() {
    // It says so on each connection, unasked, and closes it.
    let mut stage = Stage::open("");
    stage.ask("alice");
    for _ in 0..1_000 {
        if !stage.host.streams().is_empty() {
            stage.reply(b"-ERR max number of clients reached\r\n");
            stage.close();
        }
        stage.host.pass_millis(1);
        stage.tick();
        let progress = stage.ask("alice");
        assert_eq!(now(&progress), 200, "nobody waits");
    }
    assert!(stage.count("store_calls") == 1, "{}", stage.count("store_calls"));
    assert_eq!(stage.log().len(), 2, "{:?}", stage.log());
}

#[test]
fn one_bad_response_among_good_ones_is_no_outage() {
    let mut stage = Stage::new(WEBDIS, "");
    for key in ["alice", "bob"] {
        stage.ask(key);
    }
    stage.host.pass_millis(1);
    let ids: Vec<_> = stage.host.take_callouts().iter().map(|sent| sent.id).collect();
    stage.respond(ids[0], Some(br#"{"EVALSHA":1000000}"#));
    assert_eq!(statuses(&stage.respond(ids[1], None)), [(2, 200)]);
    assert_eq!(now(&stage.ask("carol")), 0, "the others are asked as before");
    assert_eq!(stage.log(), [] as [&str; 0]);
}

#[test]
fn a_deadline_above_a_second_holds() {
    let policy = r#"{"store":{"type":"redis","timeout":"3s"},"limits":[{"name":"a","key":["header:x-api-key"],"rate":"1/second","burst":2}]}"#;
    let mut stage = Stage::of(policy);
    stage.tick();
    stage.ask("alice");
    stage.host.pass_millis(2_500);
    assert!(stage.tick().is_empty());
    assert_eq!(statuses(&stage.reply(&allowed(1))), [(1, 200)]);
    assert_eq!(stage.count("unchecked"), 0);
}

#[test]
fn whatever_comes_answers_those_whose_deadline_is_over() {
    let mut stage = Stage::open(r#","on_store_failure":"deny""#);
    stage.ask("alice");
    stage.ask("bob");
    stage.host.pass_millis(10);
    assert_eq!(statuses(&stage.reply(&allowed(1))), [(1, 200), (2, 503)]);
}

#[test]
fn a_response_that_the_proxy_makes_up_after_the_deadline_is_a_missed_deadline() {
    let mut stage = Stage::new(WEBDIS, "");
    stage.ask("alice");
    let id = stage.callout().id;
    stage.host.pass_millis(15);
    assert_eq!(statuses(&stage.respond(id, Some(b"upstream request timeout"))), [(1, 200)]);
    assert_eq!((stage.count("store_timeout"), stage.count("store_down")), (1, 0));
}
