//! The lab's Redis: it runs while its value lives, and shows what a script has left.

mod support;

use std::net::TcpStream;
use support::artefact;
use weir_lab::redis::{Expiry, Redis, ScriptCall};

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
