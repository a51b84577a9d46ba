//! A plugin on the fake host, and requests to it.

// Each test file is a crate of its own and uses its part of this.
#![allow(dead_code, unreachable_pub)]

use weir_core::{
    key::{Facts, FieldValue},
    response::{Answer, Reply},
    units::Instant,
};
use weir_filter::{facts::Fields, flow, host::fake::FakeHost, plugin::Plugin};

/// When the tests' clock stands still.
pub const NOW: u64 = 1_700_000_000_000_000;

/// A plugin with one limit of 1 token a second and a burst of 2, plus the given fields.
pub fn plugin(host: &FakeHost, fields: &str) -> Plugin {
    let text = format!(
        r#"{{"limits":[{{"name":"per-key","key":["header:x-api-key"],"rate":"1/second","burst":2{fields}}}]}}"#,
    );
    configured(host, &text)
}

pub fn configured(host: &FakeHost, text: &str) -> Plugin {
    host.set_now(Instant::from_micros(NOW));
    Plugin::configure(text.as_bytes(), host).unwrap_or_else(|error| panic!("{error}"))
}

/// A request as a list of header fields.
pub struct Request<'a>(pub &'a [(&'a str, &'a [u8])]);

impl Facts for Request<'_> {
    fn header(&self, name: &str) -> FieldValue<'_> {
        let values: Vec<_> = self.0.iter().filter(|(field, _)| *field == name).collect();
        match values.as_slice() {
            [] | [(_, b"")] => FieldValue::Missing,
            [(_, value)] => FieldValue::One(value),
            _ => FieldValue::Several,
        }
    }
}

/// The status of a request's answer; 200 stands for one that goes on.
pub fn status(answer: &Answer) -> u16 {
    match answer {
        Answer::Pass(_) => 200,
        Answer::Reply(Reply { status, .. }) => *status,
    }
}

/// The answer to a request of a caller.
pub fn ask(plugin: &Plugin, host: &FakeHost, key: &str) -> Answer {
    send(plugin, host, &Request(&[("x-api-key", key.as_bytes())]))
}

pub fn send(plugin: &Plugin, host: &FakeHost, facts: &impl Facts) -> Answer {
    flow::decide(plugin, facts, host, host)
}

/// The answer to headers in the proxy's encoding, whatever they are.
pub fn send_map(plugin: &Plugin, host: &FakeHost, map: &[u8]) -> Answer {
    send(plugin, host, &Fields::new(map))
}
