//! Every way in which a shared store can fail, under every failure policy.

mod support;

use support::{REDIS, Stage, UPSTASH, WEBDIS, now, status};
use weir_filter::flow::shared::{Answers, Progress};

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
