//! Every way in which the local store can fail, under every failure policy.

mod support;

use std::cell::Cell;
use support::{NOW, Request, ask, plugin, status};
use weir_core::units::Instant;
use weir_filter::{
    flow,
    host::{
        Clock, CounterId, Counters, Entropy, HostError, SharedData, Swap, Value, Version,
        fake::FakeHost,
    },
    plugin::Plugin,
};

const ALLOW: &str = r#","on_store_failure":"allow""#;
const DENY: &str = r#","on_store_failure":"deny""#;

/// Checks that a failure lets the request pass or answers 503, and is counted, once as what became
/// of the request and once by its reason.
fn check(reason: &str, fail: impl Fn(&FakeHost, &Plugin) -> u16) {
    for (fields, expected, unchecked, unavailable) in [(ALLOW, 200, 1, 0), (DENY, 503, 0, 1)] {
        let host = FakeHost::default();
        let plugin = plugin(&host, fields);
        assert_eq!(fail(&host, &plugin), expected, "{fields}");
        let counts = ["weir.unchecked", "weir.unavailable", reason].map(|name| host.count(name));
        assert_eq!(counts, [unchecked, unavailable, 1], "{fields}");
    }
}

/// The set in which the only bucket of a host lies.
fn set_key(host: &FakeHost) -> String {
    host.keys().into_iter().find(|key| key.contains("/set/")).expect("a set")
}

/// Bumps the version of a key, as a worker does that charges another bucket of the set.
fn touch(host: &FakeHost, key: &str, bytes: &[u8]) {
    if key.contains("/set/") {
        host.overwrite(key, bytes);
    }
}

#[test]
fn shared_data_that_fails() {
    check("weir.store_error", |host, plugin| {
        host.break_shared_data();
        status(&ask(plugin, host, "alice"))
    });
}

/// A clock that cannot tell the time.
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Result<Instant, HostError> {
        Err(HostError(10))
    }
}

#[test]
fn a_clock_that_fails() {
    check("weir.store_error", |host, plugin| {
        let facts: [(&str, &[u8]); 1] = [("x-api-key", b"alice")];
        status(&flow::decide(plugin, &Request(&facts), &NoClock, host).answer)
    });
}

#[test]
fn a_set_that_another_worker_always_wins() {
    check("weir.contended", |host, plugin| {
        host.set_rival(|host, key| touch(host, key, &[1]));
        let status = status(&ask(plugin, host, "alice"));
        assert_eq!(host.calls().1, 1 + 16, "the seed, and sixteen tries");
        status
    });
}

#[test]
fn a_set_full_of_owing_buckets() {
    check("weir.table_full", |host, plugin| {
        ask(plugin, host, "alice");
        let key = set_key(host);
        // Eight strangers that owe until the end of time.
        let mut set = vec![1];
        for n in 0..8_u8 {
            set.extend([n; 16]);
            set.extend(u64::MAX.to_le_bytes());
            set.extend(17_u32.to_le_bytes());
            set.push(1);
            set.extend((1_u64 << 52).to_le_bytes());
            set.extend([0; 8]);
        }
        host.overwrite(&key, &set);
        status(&ask(plugin, host, "alice"))
    });
}

#[test]
fn a_set_of_foreign_bytes_fails_once_and_is_then_cleared() {
    check("weir.store_error", |host, plugin| {
        ask(plugin, host, "alice");
        host.overwrite(&set_key(host), b"not a set");
        let failed = status(&ask(plugin, host, "alice"));
        let statuses = [(); 3].map(|()| status(&ask(plugin, host, "alice")));
        assert_eq!(statuses, [200, 200, 429]);
        failed
    });
}

#[test]
fn a_lost_race_is_taken_anew_and_loses_no_count() {
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    ask(&plugin, &host, "alice");
    let other = plugin.clone();
    let met = Cell::new(false);
    host.set_rival(move |host, _| {
        if !met.replace(true) {
            ask(&other, host, "bob");
            ask(&other, host, "alice");
        }
    });
    assert_eq!(status(&ask(&plugin, &host, "alice")), 429, "the rival took the last token");
    host.set_rival(|_, _| {});
    assert_eq!(status(&ask(&plugin, &host, "alice")), 429);
    assert_eq!(host.count("weir.unchecked"), 0);
}

#[test]
fn two_workers_that_meet_on_a_new_key_both_count() {
    // The put-if-absent of other filters is an overwrite: the first hit of one of them is lost.
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    let other = plugin.clone();
    let met = Cell::new(false);
    host.set_rival(move |host, key| {
        if key.contains("/set/") && !met.replace(true) {
            ask(&other, host, "alice");
        }
    });
    assert_eq!(status(&ask(&plugin, &host, "alice")), 200);
    assert_eq!(status(&ask(&plugin, &host, "alice")), 429, "burst 2: the other had one");
}

#[test]
fn a_foreign_seed_is_refused_at_configure() {
    let host = FakeHost::default();
    host.overwrite("weir/1/seed", b"short");
    let text = br#"{"limits":[{"name":"a","rate":"1/second"}]}"#;
    let error = Plugin::configure(text, &host).expect_err("configured").to_string();
    assert!(error.contains("status 2"), "{error}");
}

#[test]
fn two_workers_that_start_at_once_agree_on_the_seed() {
    let host = FakeHost::default();
    host.set_now(Instant::from_micros(NOW));
    let met = Cell::new(false);
    host.set_rival(move |host, key| {
        if key == "weir/1/seed" && !met.replace(true) {
            host.overwrite(key, &[99; 16]);
        }
    });
    let text = br#"{"limits":[{"name":"a","rate":"1/second"}]}"#;
    Plugin::configure(text, &host).expect("configured");
    assert_eq!(host.get("weir/1/seed").expect("a seed").bytes, [99; 16]);
}

/// A host on which another worker, a second later, takes a token just before each read.
struct Overtaken<'a> {
    host: &'a FakeHost,
    plugin: &'a Plugin,
}

impl SharedData for Overtaken<'_> {
    fn get(&self, key: &str) -> Result<Value, HostError> {
        self.host.set_now(Instant::from_micros(NOW + 1_000_000));
        ask(self.plugin, self.host, "alice");
        self.host.get(key)
    }

    fn swap(&self, key: &str, bytes: &[u8], version: Option<Version>) -> Result<Swap, HostError> {
        self.host.swap(key, bytes, version)
    }
}

impl Entropy for Overtaken<'_> {
    fn secret(&self) -> Result<[u8; 16], HostError> {
        self.host.secret()
    }

    fn draw(&self) -> Result<u32, HostError> {
        self.host.draw()
    }
}

impl Counters for Overtaken<'_> {
    fn define(&self, name: &str) -> Result<CounterId, HostError> {
        self.host.define(name)
    }

    fn increment(&self, counter: CounterId) {
        self.host.increment(counter);
    }
}

#[test]
fn a_worker_that_is_overtaken_gives_no_token_away() {
    // Seen on four workers: the overtaken one took the empty bucket for one that needs repair.
    let host = FakeHost::default();
    let plugin = plugin(&host, "");
    for _ in 0..2 {
        ask(&plugin, &host, "alice");
    }
    let facts: [(&str, &[u8]); 1] = [("x-api-key", b"alice")];
    let overtaken = Overtaken { host: &host, plugin: &plugin };
    let answer = flow::decide(&plugin, &Request(&facts), &host, &overtaken).answer;
    assert_eq!(status(&answer), 429);
    assert_eq!(status(&ask(&plugin, &host, "alice")), 429, "the next token comes in a second");
}
