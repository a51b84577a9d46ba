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
use weir_filter::{
    flow::{
        self,
        shared::{Answers, Progress, Shared},
    },
    host::{
        CalloutId, StreamId,
        fake::{FakeHost, SentCallout},
    },
    plugin::Plugin,
};

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
    flow::decide(plugin, facts, host, host).answer
}

/// A limiter with a shared store on the fake host, whose store is the test.
pub struct Stage {
    pub host: FakeHost,
    pub plugin: Plugin,
    pub shared: Shared,
    next: u32,
}

/// The store of a policy that reaches Redis by a stream.
pub const REDIS: &str = r#""store":{"type":"redis"}"#;
/// The same by callouts.
pub const WEBDIS: &str = r#""store":{"type":"http","api":"webdis","cluster":"webdis"}"#;
pub const UPSTASH: &str =
    r#""store":{"type":"http","api":"upstash","cluster":"upstash","token":"secret-token"}"#;

/// A reply of the script of [`Stage::new`]'s limit: passes, with so many of 2 tokens left.
pub fn allowed(left: u32) -> Vec<u8> {
    format!(":{}\r\n", 2_000_000 - left * 1_000_000).into_bytes()
}

/// The same: refused for half a second.
pub fn refused() -> Vec<u8> {
    b":-1500001\r\n".to_vec()
}

impl Stage {
    /// One limit of 1 token a second and a burst of 2, plus the given fields.
    pub fn new(store: &str, fields: &str) -> Self {
        Self::of(&format!(
            r#"{{{store},"limits":[{{"name":"per-key","key":["header:x-api-key"],"rate":"1/second","burst":2{fields}}}]}}"#,
        ))
    }

    pub fn of(policy: &str) -> Self {
        let host = FakeHost::default();
        let plugin = configured(&host, policy);
        let shared = Shared::open(&plugin, &host).expect("a host").expect("a shared store");
        host.pass_millis(1_000);
        Self { host, plugin, shared, next: 0 }
    }

    /// A stage whose stream is open.
    pub fn open(fields: &str) -> Self {
        let mut stage = Self::new(REDIS, fields);
        assert!(stage.tick().is_empty());
        stage
    }

    /// Begins a request of a caller, in a context of the next number.
    pub fn ask(&mut self, key: &str) -> Progress {
        self.next += 1;
        let facts: [(&str, &[u8]); 1] = [("x-api-key", key.as_bytes())];
        let (plugin, host) = (&self.plugin, &self.host);
        self.shared.begin(plugin, self.next, &Request(&facts), host, host)
    }

    pub fn tick(&mut self) -> Answers {
        self.shared.on_tick(&self.plugin, &self.host)
    }

    /// The store sends bytes on the newest stream.
    pub fn reply(&mut self, bytes: &[u8]) -> Answers {
        let stream = *self.host.streams().last().expect("a stream");
        self.shared.on_message(&self.plugin, &self.host, (stream, bytes))
    }

    /// The newest stream ends.
    pub fn close(&mut self) -> Answers {
        let stream = *self.host.streams().last().expect("a stream");
        self.host.end_stream(stream);
        self.closed(stream)
    }

    pub fn closed(&mut self, stream: StreamId) -> Answers {
        self.shared.on_close(&self.plugin, &self.host, (stream, 14))
    }

    /// A callout gets a response; no body stands for a failure.
    pub fn respond(&mut self, id: CalloutId, body: Option<&[u8]>) -> Answers {
        self.shared.on_response(&self.plugin, &self.host, (id, body))
    }

    /// The only callout since the last.
    pub fn callout(&self) -> SentCallout {
        let mut callouts = self.host.take_callouts();
        assert_eq!(callouts.len(), 1, "{callouts:?}");
        callouts.remove(0)
    }

    /// The commands since the last, as their words.
    pub fn commands(&self) -> Vec<Vec<String>> {
        let messages = self.host.take_messages();
        messages.iter().flat_map(|(_, bytes)| commands_in(bytes)).collect()
    }

    /// Lines that were logged.
    pub fn log(&self) -> Vec<String> {
        self.host.lines().into_iter().map(|(_, line)| line).collect()
    }

    pub fn count(&self, name: &str) -> u64 {
        self.host.count(&format!("weir.{name}"))
    }
}

/// The statuses of answers, by context.
pub fn statuses(answers: &Answers) -> Vec<(u32, u16)> {
    answers.iter().map(|(context, decided)| (*context, status(&decided.answer))).collect()
}

/// The status of a request that has its answer; 0 stands for one that waits.
pub fn now(progress: &Progress) -> u16 {
    match progress {
        Progress::Done(decided) => status(&decided.answer),
        Progress::Waits => 0,
    }
}

fn commands_in(bytes: &[u8]) -> Vec<Vec<String>> {
    use weir_filter::store::resp::{Decoder, Reply};
    let mut decoder = Decoder::default();
    decoder.feed(bytes);
    let next = || decoder.reply().expect("RESP");
    let commands = core::iter::from_fn(next).map(|command| {
        let Reply::Array(Some(words)) = command else { panic!("{command:?}") };
        let words = words.into_iter().map(|word| match word {
            Reply::Text(Some(word)) => String::from_utf8(word).expect("text"),
            other => panic!("{other:?}"),
        });
        words.collect()
    });
    commands.collect()
}
