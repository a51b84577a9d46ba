//! The lab's Redis: it runs while its value lives, and shows what a script has left.

mod support;

use std::{
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};
use support::artefact;
use weir_lab::redis::{Expiry, Options, Redis, ScriptCall};

/// How long a test waits for what must not come.
const SHORT: Duration = Duration::from_millis(200);

fn start() -> Redis {
    Redis::start(&artefact("WEIR_REDIS")).unwrap()
}

#[test]
fn it_answers_while_the_value_lives() {
    let redis = start();
    let address = redis.address();
    let mut client = redis.client().unwrap();
    assert!(client.time().unwrap() > 1_700_000_000_000_000);
    assert_eq!(client.count().unwrap(), 0);
    drop(redis);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn two_run_side_by_side() {
    let (one, other) = (start(), start());
    one.client().unwrap().run(&["SET", "a", "1"]).unwrap();
    assert_eq!(other.client().unwrap().count().unwrap(), 0);
}

#[test]
fn what_a_script_left_is_seen() {
    let redis = start();
    let mut client = redis.client().unwrap();
    let text = "redis.call('SET', KEYS[1], 1, 'PX', 60000) return {7}";
    let sha1 = client.load(text).unwrap();
    let call = ScriptCall { sha1, keys: vec!["a".into()], args: Vec::new() };
    let seen = client.observe(&[call.clone(), call.clone()], true).unwrap();
    assert_eq!(seen[1].reply, [7]);
    assert!(matches!(seen[1].expiry[..], [Expiry::At(at)] if at > seen[1].between.0 / 1000));
    assert_eq!(client.ttl("a").unwrap(), None);
    client.run(&["SCRIPT", "FLUSH"]).unwrap();
    assert!(client.call(&call).is_err());
    assert_eq!(client.call_or_eval(&call, text).unwrap(), [7]);
    assert!(client.ttl("a").unwrap().is_some_and(|millis| millis <= 60_000));
}

#[test]
fn it_starts_again_empty_on_the_same_port() {
    let mut redis = start();
    let address = redis.address();
    let mut client = redis.client().unwrap();
    client.run(&["SET", "a", "1"]).unwrap();
    let sha1 = client.load("return {1}").unwrap();
    redis.restart().unwrap();
    assert!(client.time().is_err());
    let mut client = redis.client().unwrap();
    assert_eq!((redis.address(), client.count().unwrap()), (address, 0));
    let call = ScriptCall { sha1, keys: vec!["a".into()], args: Vec::new() };
    assert!(client.call(&call).unwrap_err().to_string().contains("NoScript"));
}

#[test]
fn a_killed_one_stays_down_until_it_is_restarted() {
    let mut redis = start();
    redis.kill();
    assert!(TcpStream::connect(redis.address()).is_err());
    redis.restart().unwrap();
    assert_eq!(redis.client().unwrap().count().unwrap(), 0);
}

#[test]
fn a_frozen_one_answers_when_it_is_thawed() {
    let mut redis = start();
    redis.freeze().unwrap();
    assert!(TcpStream::connect(redis.address()).is_ok());
    assert!(redis.client_within(SHORT).is_err());
    redis.thaw();
    assert!(redis.client().is_ok());
}

#[test]
fn a_frozen_one_can_be_restarted_killed_and_dropped() {
    let began = Instant::now();
    let mut redis = start();
    redis.freeze().unwrap();
    redis.restart().unwrap();
    assert!(redis.client().is_ok());
    redis.freeze().unwrap();
    redis.kill();
    redis.restart().unwrap();
    redis.freeze().unwrap();
    drop(redis);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn it_lets_nobody_in_without_the_password() {
    let password = "s3cret/ %&\"'";
    let options = Options { password: Some(password.to_owned()), ..Options::default() };
    let redis = Redis::start_with(&artefact("WEIR_REDIS"), options).unwrap();
    assert_eq!(redis.password(), Some(password));
    assert_eq!(redis.client().unwrap().count().unwrap(), 0);
    assert!(cli(&["-p", &redis.address().port().to_string()]).contains("NOAUTH"));
}

#[test]
fn its_certificate_is_good_for_those_who_trust_its_authority() {
    let options = Options { tls: true, ..Options::default() };
    let redis = Redis::start_with(&artefact("WEIR_REDIS"), options).unwrap();
    let tls = redis.tls().unwrap();
    let port = tls.address().port().to_string();
    let authority = tls.authority().to_str().unwrap();
    let (ip, name) = ("127.0.0.1", "localhost");
    for host in [ip, name] {
        let args = ["-h", host, "-p", &port, "--tls", "--cacert", authority];
        assert_eq!(cli(&args), "PONG\n");
    }
    let untrusted = cli(&["-p", &port, "--tls"]);
    assert!(untrusted.contains("certificate verify failed"), "{untrusted}");
    assert!(!cli(&["-p", &port]).contains("PONG"));
    // It is there again, with the same authority, after a restart.
    let mut redis = redis;
    redis.restart().unwrap();
    let authority = redis.tls().unwrap().authority().to_str().unwrap();
    assert_eq!(cli(&["-p", &port, "--tls", "--cacert", authority]), "PONG\n");
}

#[test]
fn calls_of_scripts_are_counted() {
    let redis = start();
    let mut client = redis.client().unwrap();
    assert_eq!(client.script_calls().unwrap(), 0);
    let text = "return {1}";
    let unknown = ScriptCall { sha1: "0".repeat(40), keys: vec!["a".into()], args: Vec::new() };
    assert_eq!(client.call_or_eval(&unknown, text).unwrap(), [1]);
    assert_eq!(client.script_calls().unwrap(), 2);
    let sha1 = client.load(text).unwrap();
    client.call(&ScriptCall { sha1, ..unknown }).unwrap();
    assert_eq!(client.script_calls().unwrap(), 3);
}

#[test]
fn parameters_can_be_set_and_memory_runs_out() {
    let redis = start();
    let mut client = redis.client().unwrap();
    client.config_set("maxmemory-policy", "allkeys-random").unwrap();
    assert!(client.config_set("no-such", "1").is_err());
    assert_eq!(client.evicted().unwrap(), 0);
    let limit = client.used_memory().unwrap() + 1_000_000;
    client.config_set("maxmemory", &limit.to_string()).unwrap();
    let value = "x".repeat(100_000);
    for key in 0..30 {
        client.run(&["SET", &key.to_string(), &value]).unwrap();
    }
    assert!(client.evicted().unwrap() > 0);
}

/// What the `redis-cli` beside the server says to a PING, on both of its outputs.
fn cli(args: &[&str]) -> String {
    let program = artefact("WEIR_REDIS").with_file_name("redis-cli");
    let output = Command::new(program).args(args).arg("PING").output().unwrap();
    let bytes = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}
