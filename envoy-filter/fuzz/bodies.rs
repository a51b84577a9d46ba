//! What the fuzz targets run. The ordinary suite runs the same on the corpus that they have left
//! (`tests/fuzz_corpus.rs`).

#![allow(dead_code, reason = "each target takes one")]

use std::{borrow::Cow, collections::BTreeSet, net::IpAddr};
use weir_core::key::{Facts, fields::FieldValue};
use weir_filter::{
    bridge::frames::Frames,
    facts::Fields,
    flow::shared::{Answers, Progress, Shared},
    host::fake::FakeHost,
    plugin::Plugin,
    store::{
        http::{upstash, webdis},
        resp::Decoder,
    },
};

/// Bytes from a peer: whatever they are, reading them ends, and the pieces in which they come make
/// no difference.
pub(crate) fn replies(bytes: &[u8]) {
    let read = |size: usize| {
        let mut decoder = Decoder::default();
        let mut replies = Vec::new();
        for piece in bytes.chunks(size) {
            decoder.feed(piece);
            loop {
                match decoder.reply() {
                    Ok(Some(reply)) => replies.push(Some(reply)),
                    Ok(None) => break,
                    Err(_) => {
                        replies.push(None);
                        return replies;
                    }
                }
            }
        }
        replies
    };
    assert_eq!(read(1), read(bytes.len().max(1)));
    let _ = (upstash::reply(bytes), webdis::reply(bytes));
    let (mut whole, mut piecemeal) = (Frames::default(), Frames::default());
    let pieces: Result<Vec<_>, _> = bytes.iter().map(|byte| piecemeal.strip(&[*byte])).collect();
    assert_eq!(whole.strip(bytes), pieces.map(|pieces| pieces.concat()));
    let _ = Fields::new(bytes).iter().count();
}

const POLICIES: [&str; 3] = [
    r#"{"store":{"type":"redis"},"limits":[{"name":"a","key":["header:k"],"rate":"1/second"},{"name":"b","rate":"9/second","on_store_failure":"deny"}]}"#,
    r#"{"store":{"type":"http","api":"webdis","cluster":"w"},"limits":[{"name":"a","algorithm":"concurrency","limit":3}]}"#,
    r#"{"store":{"type":"redis","streams":2},"on_store_failure":"local","gateways":2,"limits":[{"name":"a","key":["header:k"],"algorithm":"sliding-log","rate":"5/second"}]}"#,
];

/// A store that does whatever the bytes say: every request gets exactly one answer, the last within
/// its deadline.
pub(crate) fn events(bytes: &[u8]) {
    let Some((policy, mut rest)) = bytes.split_first() else { return };
    let policy = POLICIES[usize::from(*policy) % POLICIES.len()];
    let host = FakeHost::default();
    let plugin = Plugin::configure(policy.as_bytes(), &host).expect("a policy");
    let mut shared = Shared::open(&plugin, &host).expect("a host").expect("a shared store");
    let mut waiting = BTreeSet::new();
    let mut next = 0_u32;
    while let Some((event, after)) = rest.split_first() {
        rest = after;
        let answers = match event % 8 {
            0 | 1 => {
                next += 1;
                match shared.begin(&plugin, next, &Caller(*event), &host, &host) {
                    Progress::Done(_) => {}
                    Progress::Waits => assert!(waiting.insert(next)),
                }
                Answers::new()
            }
            2 => shared.on_tick(&plugin, &host),
            3 => {
                host.pass_millis(u64::from(event >> 3));
                Answers::new()
            }
            4 => {
                let (piece, after) = rest.split_at(usize::from(event >> 3).min(rest.len()));
                rest = after;
                match host.streams().last() {
                    Some(stream) => shared.on_message(&plugin, &host, (*stream, piece)),
                    None => Answers::new(),
                }
            }
            5 => match host.streams().first().copied() {
                Some(stream) => {
                    host.end_stream(stream);
                    shared.on_close(&plugin, &host, (stream, 14))
                }
                None => Answers::new(),
            },
            6 => {
                let (piece, after) = rest.split_at(usize::from(event >> 3).min(rest.len()));
                rest = after;
                match host.take_callouts().first() {
                    Some(sent) => shared.on_response(&plugin, &host, (sent.id, Some(piece))),
                    None => Answers::new(),
                }
            }
            _ => {
                host.refuse_calls(event & 8 > 0);
                Answers::new()
            }
        };
        settle(&mut waiting, answers);
    }
    host.pass_millis(10);
    settle(&mut waiting, shared.on_tick(&plugin, &host));
    assert!(waiting.is_empty(), "{waiting:?} got no answer");
}

fn settle(waiting: &mut BTreeSet<u32>, answers: Answers) {
    for (context, _) in answers {
        assert!(waiting.remove(&context), "{context} got a second answer");
    }
}

/// A caller of one header.
struct Caller(u8);

impl Facts for Caller {
    fn header(&self, _: &str) -> FieldValue<'_> {
        FieldValue::One(core::slice::from_ref(&self.0))
    }

    fn method(&self) -> Option<&[u8]> {
        None
    }

    fn path(&self) -> Option<&[u8]> {
        None
    }

    fn host(&self) -> Option<&[u8]> {
        None
    }

    fn client_ip(&self) -> Option<IpAddr> {
        None
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn metadata(&self, _: &str, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}
