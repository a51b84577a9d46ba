//! A shared store that is broken in every way, on each way to it: what clients get, what the
//! operator reads, and that limits are checked again afterwards without a restart.
//!
//! What is seen of a fault is written down in the order of [`Way::SHARED`]: straight to Redis, by
//! Envoy's Redis client, by webdis, by REST.

mod support;

#[path = "store_faults/inject.rs"]
mod inject;
#[path = "store_faults/replies.rs"]
mod replies;
#[path = "store_faults/stage.rs"]
mod stage;

use anyhow::Result;
use inject::{Fault, circuit_breaker, gone, narrow_circuit_breaker, no_host, unknown_cluster};
use serde_json::Value;
use stage::{Counts, LIMITS, Setup, Stage};
use std::time::Duration;
use support::stores::Way;
use weir_lab::{
    config::Config,
    faults::Fault::{Finish, Hang, Repeat, Reset, Silence},
    http::Answer,
    load::{self, LONGEST, Plan, Report},
};

/// A deadline that nothing should reach: a busy machine is no outage.
const AMPLE: Duration = Duration::from_secs(5);
/// A deadline that is to be reached.
const TIGHT: Duration = Duration::from_millis(800);

/// Requests of a crowd.
const REQUESTS: usize = 64;

/// What an operator sees of a fault: a counter that says why limits could not be checked, and a
/// part of the one line in the log.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// Requests wait for a deadline, and then the breaker keeps others from waiting.
    TimedOut,
    /// The breaker opens at once.
    Out(&'static str),
    /// The store says so.
    Error(&'static str),
    /// Envoy sends nothing.
    Unsent,
}
use Seen::{Error, Out, TimedOut, Unsent};

/// On every way alike.
const fn all(seen: Seen) -> [Seen; 4] {
    [seen; 4]
}

const REFUSED: &str = "closed with gRPC status 14";
const NO_JSON: &str = "a response is none of Redis";
const NO_RESP: &str = "it answers no replies of Redis";
const NOT_OPENED: &str = "it cannot be opened";

#[tokio::test]
async fn a_cluster_that_envoy_does_not_have() -> Result<()> {
    let seen = [Out(NOT_OPENED), Out(NOT_OPENED), Unsent, Unsent];
    check(Fault::Configuration(unknown_cluster), AMPLE, seen).await
}

#[tokio::test]
async fn a_cluster_without_a_host() -> Result<()> {
    let seen = [Out(REFUSED), Error("no upstream host"), Unsent, Unsent];
    check(Fault::Configuration(no_host), AMPLE, seen).await
}

#[tokio::test]
async fn a_circuit_breaker_of_envoy_that_lets_nothing_through() -> Result<()> {
    let seen = [Out(NOT_OPENED), Out(NOT_OPENED), Unsent, Unsent];
    check(Fault::Configuration(circuit_breaker), AMPLE, seen).await
}

#[tokio::test]
async fn connections_are_refused() -> Result<()> {
    let seen = [Out(REFUSED), Error("upstream failure"), Out(NO_JSON), Out(NO_JSON)];
    check(Fault::Refused, AMPLE, seen).await
}

#[tokio::test]
async fn a_hang_before_the_reply() -> Result<()> {
    check(Fault::Server(|_| Silence), TIGHT, all(TimedOut)).await
}

#[tokio::test]
async fn a_hang_in_the_middle_of_the_reply() -> Result<()> {
    check(Fault::Server(|way| Hang(replies::half(way).into())), TIGHT, all(TimedOut)).await
}

#[tokio::test]
async fn slow_replies() -> Result<()> {
    check(Fault::Slow(TIGHT), TIGHT, all(TimedOut)).await
}

#[tokio::test]
async fn a_reset_in_the_middle_of_the_reply() -> Result<()> {
    let seen = [Out("closed with"), Error("upstream failure"), Out(NO_JSON), Out(NO_JSON)];
    check(Fault::Server(|way| Reset(replies::half(way).into())), AMPLE, seen).await
}

#[tokio::test]
async fn an_end_in_the_middle_of_the_reply() -> Result<()> {
    let seen = [Out("closed with"), Error("upstream failure"), Out(NO_JSON), Out(NO_JSON)];
    check(Fault::Server(|way| Finish(replies::half(way).into())), AMPLE, seen).await
}

#[tokio::test]
async fn another_server_in_its_place() -> Result<()> {
    let seen = [Out(NO_RESP), Error("no numbers"), Out(NO_JSON), Out(NO_JSON)];
    check(Fault::Server(|way| Repeat(replies::garbage(way).into())), AMPLE, seen).await
}

#[tokio::test]
async fn an_oversized_reply() -> Result<()> {
    let seen = [Out(NO_RESP), Out(NO_RESP), Out(NO_JSON), Out(NO_JSON)];
    check(Fault::Server(|way| Repeat(replies::oversized(way).into())), AMPLE, seen).await
}

#[tokio::test]
async fn loading() -> Result<()> {
    const TEXT: &str = "LOADING Redis is loading the dataset in memory";
    let server = Fault::Server(|way| Repeat(replies::error(way, TEXT).into()));
    check(server, AMPLE, all(Error(TEXT))).await
}

#[tokio::test]
async fn an_error_of_the_script() -> Result<()> {
    const TEXT: &str = "ERR Error running script (call to f_e24f100b): @user_script:3: wrong";
    let server = Fault::Server(|way| Repeat(replies::error(way, TEXT).into()));
    check(server, AMPLE, all(Error(TEXT))).await
}

#[tokio::test]
async fn a_replica_that_cannot_be_written() -> Result<()> {
    let redis = Fault::Redis(&[&["REPLICAOF", "127.0.0.1", "1"]], &[&["REPLICAOF", "NO", "ONE"]]);
    check(redis, AMPLE, all(Error("READONLY"))).await
}

#[tokio::test]
async fn no_memory() -> Result<()> {
    let redis = Fault::Redis(
        &[&["CONFIG", "SET", "maxmemory", "1"]],
        &[&["CONFIG", "SET", "maxmemory", "0"]],
    );
    check(redis, AMPLE, all(Error("OOM"))).await
}

#[tokio::test]
async fn a_key_of_another_type() -> Result<()> {
    // The keys of the requests are there before them.
    const LISTS: &str = "for _, key in ipairs(redis.call('KEYS', '*')) do \
                         redis.call('DEL', key) redis.call('RPUSH', key, 'x') end";
    let redis = Fault::Redis(&[&["EVAL", LISTS, "0"]], &[&["FLUSHALL"]]);
    check(redis, AMPLE, all(Error("WRONGTYPE"))).await
}

#[tokio::test]
async fn a_password_that_has_changed() -> Result<()> {
    // What stands before Redis has no connection any more, and says so in its own way.
    let seen = [Error("NOAUTH"), Error("NOAUTH"), Out(NO_JSON), Error("ERR no Redis")];
    check(Fault::Password, AMPLE, seen).await
}

/// Breaks the store of each way, and checks all that there is to see.
async fn check(fault: Fault, deadline: Duration, seen: [Seen; 4]) -> Result<()> {
    for (way, seen) in Way::SHARED.into_iter().zip(seen) {
        let guarded = matches!(fault, Fault::Password);
        let mut stage = Stage::start(&Setup { way, deadline, edit: fault.edit(), guarded }).await?;
        if !matches!(fault, Fault::Configuration(_)) {
            stage.assert_checks("before").await?;
            // So that a fault can be in its key.
            at_once(&stage, "during").await?;
        }
        let injected = fault.inject(&mut stage).await?;
        assert_goes_by_policy(&stage, seen).await?;
        if fault.mend(&mut stage, injected)? {
            stage.assert_checks_again().await?;
        }
        stage.running.assert_never_reloaded().await?;
    }
    Ok(())
}

/// Checks what clients get, what is counted and what is logged while the store is broken.
async fn assert_goes_by_policy(stage: &Stage, seen: Seen) -> Result<()> {
    // Whoever waits for the deadline waits together.
    let mut statuses = Vec::new();
    if let TimedOut = seen {
        statuses.extend(at_once(stage, "during").await?);
    } else {
        for limit in LIMITS {
            statuses.push(stage.ask(limit, "during").await?.status);
        }
    }
    assert_eq!(statuses, [200, 503, 200], "{stage}");
    let denied = stage.ask("deny", "during").await?;
    assert_says_unavailable(&denied)?;
    let mut statuses = vec![denied.status];
    for limit in ["allow", "local", "local"] {
        statuses.push(stage.ask(limit, "during").await?.status);
    }
    // The share of a burst of 4 is 2.
    assert_eq!(statuses, [503, 200, 200, 429], "{stage}");
    let counts = Counts { unchecked: 2, unavailable: 2, by_share: 3 };
    assert_eq!(stage.counts().await?, counts, "{stage}");
    assert_seen(stage, seen).await
}

/// A 503 that says that it is not the client's fault.
fn assert_says_unavailable(answer: &Answer) -> Result<()> {
    let problem: Value = serde_json::from_slice(&answer.body)?;
    let kind = problem["type"].as_str().unwrap_or_default();
    assert!(kind.ends_with("#temporary-reduced-capacity"), "{problem}");
    assert_eq!(problem["violated-policies"][0], "deny");
    assert!(answer.header("retry-after").is_some_and(|value| value.parse::<u32>().is_ok()));
    Ok(())
}

async fn assert_seen(stage: &Stage, seen: Seen) -> Result<()> {
    let reasons = stage.reasons().await?;
    let log = stage.log();
    println!("{reasons:?} {stage}");
    let [line] = log.as_slice() else { panic!("one line was expected: {stage}") };
    let (reason, expected) = match seen {
        TimedOut => ("store_timeout", ["is out", "no answer came for a whole deadline"]),
        Out(why) => ("store_down", ["is out", why]),
        Error(text) => ("store_error", ["cannot check a limit", text]),
        Unsent => ("store_down", ["cannot check a limit", "the proxy sends no call to it"]),
    };
    assert!(expected.iter().all(|part| line.contains(part)), "{seen:?}: {stage}");
    assert!(reasons.iter().any(|(found, _)| *found == reason), "{seen:?}: {reasons:?}");
    let errors = reasons.iter().any(|(found, _)| *found == "store_error");
    assert_eq!(errors, matches!(seen, Error(_)), "{seen:?}: {reasons:?}");
    Ok(())
}

fn ordinary(way: Way, deadline: Duration) -> Setup {
    let edit = |_, _: &mut Config| Ok(());
    Setup { way, deadline, edit, guarded: false }
}

#[tokio::test]
async fn a_redis_that_starts_again_empty_is_used_again() -> Result<()> {
    for way in Way::SHARED {
        let mut stage = Stage::start(&ordinary(way, AMPLE)).await?;
        stage.assert_checks("before").await?;
        // It is back before Envoy knows.
        stage.link.freeze();
        stage.behind.redis().restart()?;
        stage.link.heal()?;
        if way.is_bridge() {
            gone(&stage).await?;
        }
        stage.assert_checks_again().await?;
        // No request was in flight. Webdis and the REST server lose the first that they pass on.
        assert!(!way.is_bridge() || stage.reasons().await?.is_empty(), "{stage}");
        assert!(stage.log().len() <= 2, "{stage}");
        stage.running.assert_never_reloaded().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_redis_that_forgets_its_scripts_is_told_them_again() -> Result<()> {
    for way in Way::SHARED {
        let mut stage = Stage::start(&ordinary(way, AMPLE)).await?;
        stage.assert_checks("before").await?;
        let mut redis = stage.behind.redis().client()?;
        redis.run(&["SCRIPT", "FLUSH"])?;
        redis.run(&["FLUSHALL"])?;
        let report = crowd(&stage, "deny", 1).await?;
        assert_eq!((report.count(200), report.count(429)), (4, 60), "{stage}");
        redis.run(&["SCRIPT", "FLUSH"])?;
        stage.assert_checks("after").await?;
        assert_eq!((stage.reasons().await?, stage.log()), (vec![], vec![]), "{way:?}");
        stage.running.assert_never_reloaded().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_link_that_is_frozen_for_existing_connections_is_left() -> Result<()> {
    for way in Way::SHARED {
        let mut stage = Stage::start(&ordinary(way, TIGHT)).await?;
        stage.assert_checks("before").await?;
        // As many connections as requests at once, where each needs its own.
        stage.link.delay(TIGHT / 8);
        at_once(&stage, "warm").await?;
        stage.link.delay(Duration::ZERO);
        stage.link.freeze_existing();
        assert_eq!(at_once(&stage, "during").await?, [200, 503, 200], "{stage}");
        let counts = Counts { unchecked: 1, unavailable: 1, by_share: 1 };
        assert_eq!(stage.counts().await?, counts, "{stage}");
        // They stay frozen: new ones are made.
        stage.assert_checks_again().await?;
        assert_eq!(stage.log().len(), 2, "{stage}");
        stage.running.assert_never_reloaded().await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_beyond_a_circuit_breaker_goes_unchecked_and_the_rest_is_checked() -> Result<()> {
    for way in [Way::Webdis, Way::Rest] {
        let setup = Setup { edit: narrow_circuit_breaker, ..ordinary(way, AMPLE) };
        let mut stage = Stage::start(&setup).await?;
        let report = crowd(&stage, "allow", REQUESTS).await?;
        assert_eq!(report.count(200), REQUESTS, "{stage}");
        let unchecked = usize::try_from(stage.counts().await?.unchecked)?;
        assert!((1..REQUESTS).contains(&unchecked), "{unchecked} of {REQUESTS}: {stage}");
        assert!(stage.log().len() < REQUESTS / 4, "{stage}");
        stage.assert_checks_again().await?;
        stage.running.assert_never_reloaded().await?;
    }
    Ok(())
}

/// So many requests of one limit, 16 at a time, of so many keys in turn.
async fn crowd(stage: &Stage, limit: &str, keys: usize) -> Result<Report> {
    let headers = |key| vec![("x-api-key".to_owned(), format!("one of a crowd, {key}"))];
    let plan = Plan {
        target: stage.running.envoy.address("ingress")?,
        path: format!("/{limit}"),
        headers: (0..keys).map(headers).collect(),
        connections: 16,
        duration: LONGEST,
        requests: REQUESTS,
    };
    load::run(&plan).await
}

/// One request of each limit.
async fn at_once(stage: &Stage, key: &str) -> Result<[u16; 3]> {
    let [allow, deny, local] = LIMITS.map(|limit| stage.ask(limit, key));
    let (allow, deny, local) = tokio::try_join!(allow, deny, local)?;
    Ok([allow.status, deny.status, local.status])
}
