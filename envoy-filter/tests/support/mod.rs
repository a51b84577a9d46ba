//! A plugin on the fake host, and requests to it.

// Each test file is a crate of its own and uses its part of this.
#![allow(dead_code, unreachable_pub)]

use core::net::IpAddr;
use std::borrow::Cow;
use weir_core::{
    key::{Facts, fields::FieldValue},
    response::{Answer, Reply},
    units::Instant,
};
use weir_filter::{flow, host::fake::FakeHost, plugin::Plugin};

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

/// A request as a list of header fields, pseudo-headers among them. Fields whose names begin with a
/// dot stand for what the proxy knows besides: `.client-ip`, `.route`, `.metadata/namespace/path`.
pub struct Request<'a>(pub &'a [(&'a str, &'a [u8])]);

impl Request<'_> {
    fn owned(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.header(name).one().map(Cow::Borrowed)
    }
}

impl Facts for Request<'_> {
    fn header(&self, name: &str) -> FieldValue<'_> {
        let named = self.0.iter().filter(|(field, _)| *field == name);
        FieldValue::of(named.map(|(_, value)| *value))
    }

    fn method(&self) -> Option<&[u8]> {
        self.header(":method").one()
    }

    fn path(&self) -> Option<&[u8]> {
        self.header(":path").one()
    }

    fn host(&self) -> Option<&[u8]> {
        self.header(":authority").one()
    }

    fn client_ip(&self) -> Option<IpAddr> {
        core::str::from_utf8(self.header(".client-ip").one()?).ok()?.parse().ok()
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        self.owned(".route")
    }

    fn metadata(&self, namespace: &str, path: &str) -> Option<Cow<'_, [u8]>> {
        self.owned(&format!(".metadata/{namespace}/{path}"))
    }
}

/// The status of a request's answer; 200 stands for one that goes on.
pub fn status(answer: &Answer) -> u16 {
    match answer {
        Answer::Pass { .. } => 200,
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
