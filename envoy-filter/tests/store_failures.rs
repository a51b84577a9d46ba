//! Every way in which a shared store can fail, under every failure policy.

mod support;

use support::{REDIS, Stage, UPSTASH, WEBDIS, allowed, now, status, statuses};
use weir_filter::{
    flow::shared::{Answers, Progress},
    store::redis::Pace,
};

/// What a request of `alice` that the store could not check came to.
fn outcome(progress: Progress, later: impl FnOnce() -> Answers) -> u16 {
    match progress {
        Progress::Done(decided) => status(&decided.answer),
        Progress::Waits => {
            let answers = later();
            assert_eq!(answers.len(), 1, "{answers:?}");
            status(&answers[0].1.answer)
        }
    }
}

/// Checks that a failure lets the request pass, turns it away with a 503, or asks this gateway's
/// share, and is counted once by its reason. `fail` brings it about for the request it is given,
/// three times in a row.
fn check(store: &str, reason: &str, fail: impl Fn(&mut Stage) -> u16) {
    for (policy, expected, counter) in [
        ("allow", [200; 3], "unchecked"),
        ("deny", [503; 3], "unavailable"),
        // A burst of 2 over 2 gateways.
        ("local", [200, 429, 429], "by_share"),
    ] {
        let mut stage = Stage::of(&format!(
            r#"{{{store},"gateways":2,"on_store_failure":"{policy}","limits":[{{"name":"per-key","key":["header:x-api-key"],"rate":"1/second","burst":2}}]}}"#,
        ));
        stage.tick();
        let got = [(); 3].map(|()| fail(&mut stage));
        assert_eq!(got, expected, "{policy}");
        assert_eq!(stage.count(counter), 3, "{policy}");
        assert!(stage.count(reason) >= 1, "{policy}: {reason}");
    }
}

fn by_stream(reason: &str, fail: impl Fn(&mut Stage) -> Answers) {
    check(REDIS, reason, |stage| {
        let progress = stage.ask("alice");
        outcome(progress, || fail(stage))
    });
}

fn by_callout(reason: &str, respond: impl Fn(&mut Stage) -> Answers) {
    for store in [WEBDIS, UPSTASH] {
        check(store, reason, |stage| {
            let progress = stage.ask("alice");
            outcome(progress, || respond(stage))
        });
    }
}

#[test]
fn no_reply_in_time() {
    by_stream("store_timeout", |stage| {
        stage.host.pass_millis(10);
        stage.tick()
    });
}

#[test]
fn a_stream_that_closes() {
    by_stream("store_down", Stage::close);
}

#[test]
fn a_stream_that_is_gone_when_a_request_comes() {
    check(REDIS, "store_down", |stage| {
        for stream in stage.host.streams() {
            stage.host.end_stream(stream);
        }
        let progress = stage.ask("alice");
        outcome(progress, Vec::new)
    });
}

#[test]
fn a_cluster_that_does_not_exist() {
    for (policy, expected) in [("allow", 200), ("deny", 503), ("local", 200)] {
        let mut stage = Stage::of(&format!(
            r#"{{{REDIS},"on_store_failure":"{policy}","limits":[{{"name":"a","rate":"1/second"}}]}}"#
        ));
        stage.host.refuse_calls(true);
        let progress = stage.ask("alice");
        assert_eq!(outcome(progress, || stage.tick()), expected, "{policy}");
        assert_eq!(stage.log().len(), 1);
        assert!(stage.log()[0].contains("weir_bridge"), "{:?}", stage.log());
    }
}

#[test]
fn a_reply_that_is_none() {
    by_stream("store_down", |stage| stage.reply(b"HTTP/1.1 400 Bad Request\r\n"));
}

#[test]
fn a_reply_without_an_end() {
    by_stream("store_down", |stage| stage.reply(&[b'+'; 70_000]));
}

#[test]
fn an_error_of_the_store() {
    for error in [
        "-LOADING Redis is loading the dataset in memory",
        "-READONLY You can't write against a read only replica.",
        "-OOM command not allowed when used memory > 'maxmemory'.",
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
        "-ERR Error running script",
        "-NOAUTH Authentication required.",
        "-CROSSSLOT Keys in request don't hash to the same slot",
        "-upstream failure",
    ] {
        let bytes = format!("{error}\r\n");
        by_stream("store_error", |stage| stage.reply(bytes.as_bytes()));
    }
}

#[test]
fn numbers_that_the_script_cannot_have_replied() {
    for reply in [
        &b":999999\r\n"[..],
        b":2000001\r\n",
        b":-1\r\n",
        b":-2000002\r\n",
        b"+OK\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*4\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n",
    ] {
        by_stream("store_error", |stage| stage.reply(reply));
    }
}

#[test]
fn too_many_calls_without_a_reply() {
    let mut stage = Stage::open(r#","on_store_failure":"deny""#);
    for n in 0..1_024 {
        assert_eq!(now(&stage.ask(&n.to_string())), 0, "{n}");
    }
    assert_eq!(now(&stage.ask("one more")), 503);
    assert_eq!(stage.count("store_busy"), 1);
}

#[test]
fn a_callout_that_fails() {
    by_callout("store_down", |stage| {
        let id = stage.callout().id;
        stage.respond(id, None)
    });
}

#[test]
fn a_callout_that_takes_too_long() {
    by_callout("store_timeout", |stage| {
        stage.host.pass_millis(10);
        stage.tick()
    });
}

#[test]
fn a_callout_that_cannot_be_sent() {
    for store in [WEBDIS, UPSTASH] {
        check(store, "store_down", |stage| {
            stage.host.refuse_calls(true);
            let progress = stage.ask("alice");
            outcome(progress, Vec::new)
        });
    }
}

#[test]
fn a_response_that_is_none_of_the_store() {
    for body in [
        &b""[..],
        b"upstream request timeout",
        b"{}",
        b"[1,2]",
        b"{\"a\":[1.5]}",
        b"{\"a\":[1],\"b\":[1]}",
        &[0xff; 70_000],
    ] {
        by_callout("store_down", |stage| {
            let id = stage.callout().id;
            stage.respond(id, Some(body))
        });
    }
}

#[test]
fn an_error_in_a_response() {
    for (store, body) in [
        (WEBDIS, &br#"{"EVALSHA":[false,"WRONGTYPE Operation against a key"]}"#[..]),
        (WEBDIS, br#"{"EVALSHA":99}"#),
        (UPSTASH, br#"{"error":"WRONGTYPE Operation against a key"}"#),
        (UPSTASH, br#"{"result":"OK"}"#),
        (UPSTASH, br#"{"result":99}"#),
    ] {
        check(
            store,
            if body.ends_with(b"\"OK\"}") { "store_down" } else { "store_error" },
            |stage| {
                let progress = stage.ask("alice");
                outcome(progress, || {
                    let id = stage.callout().id;
                    stage.respond(id, Some(body))
                })
            },
        );
    }
}

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
