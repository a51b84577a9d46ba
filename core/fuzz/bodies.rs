//! What the fuzz targets run. The ordinary suite runs the same on the corpus that they have left
//! (`tests/fuzz_corpus.rs`).

#![allow(dead_code, reason = "each target takes one")]

use std::{borrow::Cow, net::IpAddr};
use weir_core::{
    config,
    decision::Outcome,
    key::{Facts, KeyPart, fields::FieldValue, hash::Digest},
    limiter::{
        Ask, Limiter, State, concurrency::Concurrency, fixed_window::FixedWindow,
        leaky_bucket::LeakyBucket, sliding_log::SlidingLog, sliding_window::SlidingWindow,
        token_bucket::TokenBucket,
    },
    script::{self, Asked, Key, Release},
    store::{codec, slots::Set},
    units::{Cost, Instant, Micros, Rate},
};

/// Text that is no policy is refused with its faults; one that is has a canonical text, which is a
/// policy and its own canonical text.
pub(crate) fn config(bytes: &[u8]) {
    match config::parse(bytes) {
        Err(faults) => assert!(!faults.to_string().is_empty()),
        Ok(policy) => {
            let text = config::export(&policy);
            // The token of a store is in no export, and is put in again. No string of JSON has a
            // bare quote, so this is found nowhere else.
            let api = r#""api": "upstash","#;
            let full = text.replacen(api, &format!(r#"{api} "token": "12345678","#), 1);
            let again = config::parse(full.as_bytes()).expect("an exported policy");
            assert_eq!(config::export(&again), text);
        }
    }
}

/// The first bytes are a limit and a call, the rest a state: whatever it says, it is decided on,
/// and what is to be stored can be read again.
pub(crate) fn state(bytes: &[u8]) {
    if let Some(set) = Set::decode(bytes) {
        assert_eq!(Set::decode(&set.encode()), Some(set));
    }
    let Some((limiter, call, rest)) = parts(bytes) else { return };
    let Some(state) = codec::decode(rest) else { return };
    assert_eq!(codec::encode(&state), rest);
    decided(&limiter, &state, call);
    stored(rest, &state, call.now);
}

#[derive(Clone, Copy)]
struct Call {
    now: Instant,
    charged: Instant,
    ask: Ask,
}

fn parts(bytes: &[u8]) -> Option<(Limiter, Call, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let mut rest = rest;
    let mut number = || {
        let (number, after) = rest.split_first_chunk::<8>()?;
        rest = after;
        Some(u64::from_le_bytes(*number))
    };
    let limiter = limiter(*kind, number()?, number()?, number()?)?;
    let (now, charged) = (Instant::from_micros(number()?), Instant::from_micros(number()?));
    let ask = Ask { cost: Cost::new(number()?)?, floor: number()?, id: number()? };
    Some((limiter, Call { now, charged, ask }, rest))
}

fn limiter(kind: u8, count: u64, window: u64, third: u64) -> Option<Limiter> {
    let rate = Rate::new(count, Micros::new(window));
    match kind {
        0 => Some(Limiter::Closed),
        1 => TokenBucket::new(rate?, third).map(Limiter::TokenBucket).ok(),
        2 => FixedWindow::new(rate?).map(Limiter::FixedWindow).ok(),
        3 => SlidingWindow::new(rate?).map(Limiter::SlidingWindow).ok(),
        4 => SlidingLog::new(rate?).map(Limiter::SlidingLog).ok(),
        5 => LeakyBucket::new(rate?, Micros::new(third)).map(Limiter::LeakyBucket).ok(),
        6 => Concurrency::new(count, Micros::new(window)).map(Limiter::Concurrency).ok(),
        _ => None,
    }
}

fn decided(limiter: &Limiter, state: &State, Call { now, charged, ask }: Call) {
    let step = limiter.step(state, now, ask);
    assert!(step.decision.remaining <= step.decision.limit);
    let kept = step.state.as_ref().unwrap_or(state);
    readable(kept);
    if let Some(refunded) = limiter.refund(kept, charged, now, ask) {
        readable(&refunded);
    }
    if let Outcome::Refused { retry_after } = step.decision.outcome {
        let due = now.as_micros() + retry_after.get();
        if due <= Instant::MAX.as_micros() {
            let passes =
                |at| limiter.step(kept, Instant::from_micros(at), ask).decision.is_allowed();
            assert!(retry_after > Micros::ZERO && !passes(due - 1), "sooner than promised");
            assert!(passes(due), "not when promised");
        }
    }
    let idle_at = now.as_micros() + limiter.idle_after(kept, now).get();
    if idle_at < Instant::MAX.as_micros() {
        let idle_at = Instant::from_micros(idle_at);
        let fresh = limiter.step(&State::None, idle_at, ask).decision;
        assert_eq!(limiter.step(kept, idle_at, ask).decision, fresh);
    }
}

fn readable(state: &State) {
    assert_eq!(codec::decode(&codec::encode(state)).as_ref(), Some(state));
}

/// The same state in a set of the table.
fn stored(bytes: &[u8], state: &State, now: Instant) {
    let digest = Digest::from_bytes([bytes.len().to_le_bytes()[0]; 16]);
    let mut set = Set::decode(bytes).unwrap_or_default();
    if set.put(digest, state.clone(), Instant::MAX, now).is_ok() {
        assert_eq!(set.state(digest), state);
    }
    assert_eq!(Set::decode(&set.encode()), Some(set));
}

/// A request whose every field is the same bytes.
struct Everywhere<'a>(&'a [u8]);

impl Facts for Everywhere<'_> {
    fn header(&self, _: &str) -> FieldValue<'_> {
        FieldValue::of([self.0].into_iter())
    }

    fn method(&self) -> Option<&[u8]> {
        Some(self.0)
    }

    fn path(&self) -> Option<&[u8]> {
        Some(self.0)
    }

    fn host(&self) -> Option<&[u8]> {
        Some(self.0)
    }

    fn client_ip(&self) -> Option<IpAddr> {
        std::str::from_utf8(self.0).ok()?.parse().ok()
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Borrowed(self.0))
    }

    fn metadata(&self, _: &str, _: &str) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Borrowed(self.0))
    }
}

/// A line is the text of a key part, what follows it every field of a request: a part comes back
/// from its text, and its value is never empty.
pub(crate) fn keys(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (text, fields) = bytes.split_at(end);
    let Some(part) = std::str::from_utf8(text).ok().and_then(KeyPart::parse) else { return };
    assert_eq!(KeyPart::parse(&part.to_string()).as_ref(), Some(&part));
    if let Some(value) = part.value(&Everywhere(fields)) {
        assert!(!value.is_empty());
        Digest::of(&[7; 16], "fuzz", "key", [&*value]);
    }
}

/// The first bytes are a limit, the rest the integers of a reply: whatever they are, they are one
/// decision a limit or an error.
pub(crate) fn script_reply(bytes: &[u8]) {
    let Some((limiter, call, rest)) = parts(bytes) else { return };
    let (numbers, _) = rest.as_chunks::<8>();
    let reply: Vec<i64> = numbers.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    let digest = |n| Digest::from_bytes([n; 16]);
    let asked = |n| Asked {
        limiter: &limiter,
        key: Key::new(digest(0), digest(n)),
        ask: call.ask,
        enforced: true,
    };
    for limits in [&[asked(1)][..], &[asked(1), asked(2)]] {
        for call in [script::Call::new(limits), script::Call::refundable(limits)] {
            let Ok(call) = call else { continue };
            if let Ok(decisions) = call.decisions(&reply) {
                assert_eq!(decisions.len(), limits.len());
                assert!(call.taken_from(&decisions).count() <= limits.len());
            }
            if let Ok((decisions, _)) = call.charged(&reply) {
                assert_eq!(call.decisions(&reply), Ok(decisions));
            }
        }
        if let Ok(refund) = script::Refund::new(limits, call.charged) {
            let _ = refund.outcome(&reply);
        }
    }
    if let Some(release) = Release::new(&limiter, Key::new(digest(0), digest(1)), 7) {
        let _ = release.outcome(&reply);
    }
}
