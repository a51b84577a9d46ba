//! A host in memory, with the quirks of Envoy's shared data: versions count over all keys, a swap
//! against the wrong version fails on a key that exists and *inserts* on one that does not, and
//! nothing is ever deleted.

use super::{
    Callout, CalloutId, Callouts, Clock, CounterId, Counters, Entropy, HostError, Level, Log,
    Moment, SharedData, Stopwatch, StreamId, Streams, Swap, Value, Version,
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};
use weir_core::units::Instant;

/// What Envoy answers when a call fails inside it.
pub const INTERNAL_FAILURE: HostError = HostError(10);

/// What Envoy answers about a stream that is no more.
pub const NOT_FOUND: HostError = HostError(1);

/// The version that stands for "never set"; see [`FakeHost::raw_set`].
const NO_VERSION: u32 = u32::MAX;

type Rival = Rc<dyn Fn(&FakeHost, &str)>;

/// A host for tests.
#[derive(Default)]
pub struct FakeHost {
    now: Cell<Instant>,
    values: RefCell<BTreeMap<String, (Vec<u8>, u32)>>,
    last_version: Cell<u32>,
    counters: RefCell<Vec<(String, u64)>>,
    seeds_drawn: Cell<u8>,
    next_draw: Cell<u32>,
    broken: Cell<bool>,
    reads: Cell<u32>,
    writes: Cell<u32>,
    rival: RefCell<Option<Rival>>,
    moment: Cell<u64>,
    wire: RefCell<Wire>,
    lines: RefCell<Vec<(Level, String)>>,
}

/// What has gone out, and whether more may.
#[derive(Debug, Default)]
struct Wire {
    next: u32,
    refuses: bool,
    open: Vec<StreamId>,
    messages: Vec<(StreamId, Vec<u8>)>,
    callouts: Vec<SentCallout>,
}

/// A callout that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentCallout {
    /// Its number.
    pub id: CalloutId,
    /// The cluster it was sent to.
    pub cluster: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl FakeHost {
    /// Sets the clock.
    pub fn set_now(&self, now: Instant) {
        self.now.set(now);
    }

    /// Sets the number that is drawn from now on.
    pub fn set_draw(&self, draw: u32) {
        self.next_draw.set(draw);
    }

    /// From now on shared data fails.
    pub fn break_shared_data(&self) {
        self.broken.set(true);
    }

    /// Another worker that acts between a read and the write that follows it.
    pub fn set_rival(&self, rival: impl Fn(&FakeHost, &str) + 'static) {
        *self.rival.borrow_mut() = Some(Rc::new(rival));
    }

    /// Writes as any module in the same VM id may.
    pub fn overwrite(&self, key: &str, bytes: &[u8]) {
        self.raw_set(key, bytes, 0);
    }

    /// How often a counter was incremented.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        let counters = self.counters.borrow();
        counters.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count)
    }

    /// Calls to read and to write shared data so far.
    #[must_use]
    pub fn calls(&self) -> (u32, u32) {
        (self.reads.get(), self.writes.get())
    }

    /// Keys in shared data.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.values.borrow().keys().cloned().collect()
    }

    /// Moves the monotonic clock on.
    pub fn pass_millis(&self, millis: u64) {
        self.moment.set(self.moment.get().saturating_add(millis.saturating_mul(1_000)));
    }

    /// From now on no stream is opened and no callout sent.
    pub fn refuse_calls(&self, refuses: bool) {
        self.wire.borrow_mut().refuses = refuses;
    }

    /// The streams that are open.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamId> {
        self.wire.borrow().open.clone()
    }

    /// Ends a stream, as the proxy does before it tells so.
    pub fn end_stream(&self, stream: StreamId) {
        self.wire.borrow_mut().open.retain(|open| *open != stream);
    }

    /// The messages that were sent since this was last asked.
    pub fn take_messages(&self) -> Vec<(StreamId, Vec<u8>)> {
        core::mem::take(&mut self.wire.borrow_mut().messages)
    }

    /// The callouts that were sent since this was last asked.
    pub fn take_callouts(&self) -> Vec<SentCallout> {
        core::mem::take(&mut self.wire.borrow_mut().callouts)
    }

    /// The lines that were logged.
    #[must_use]
    pub fn lines(&self) -> Vec<(Level, String)> {
        self.lines.borrow().clone()
    }

    /// What the proxy does: version 0 writes without a look, any other version must be current,
    /// unless the key does not exist. Returns whether it wrote.
    fn raw_set(&self, key: &str, bytes: &[u8], version: u32) -> bool {
        let mut values = self.values.borrow_mut();
        let current = values.get(key).map(|(_, version)| *version);
        if version != 0 && current.is_some_and(|current| current != version) {
            return false;
        }
        let next = self.last_version.get().saturating_add(1);
        self.last_version.set(next);
        values.insert(key.to_owned(), (bytes.to_vec(), next));
        true
    }
}

impl Clock for FakeHost {
    fn now(&self) -> Result<Instant, HostError> {
        Ok(self.now.get())
    }
}

impl Entropy for FakeHost {
    fn secret(&self) -> Result<[u8; 16], HostError> {
        self.seeds_drawn.set(self.seeds_drawn.get().wrapping_add(1));
        Ok([self.seeds_drawn.get(); 16])
    }

    fn draw(&self) -> Result<u32, HostError> {
        Ok(self.next_draw.get())
    }
}

impl SharedData for FakeHost {
    fn get(&self, key: &str) -> Result<Value, HostError> {
        if self.broken.get() {
            return Err(INTERNAL_FAILURE);
        }
        self.reads.set(self.reads.get().saturating_add(1));
        let value = self.values.borrow().get(key).cloned();
        let rival = self.rival.borrow().clone();
        if let Some(rival) = rival {
            rival(self, key);
        }
        let Some((bytes, version)) = value else { return Ok(Value::default()) };
        Ok(Value { bytes, version: Version::new(version) })
    }

    fn swap(&self, key: &str, bytes: &[u8], version: Option<Version>) -> Result<Swap, HostError> {
        if self.broken.get() {
            return Err(INTERNAL_FAILURE);
        }
        self.writes.set(self.writes.get().saturating_add(1));
        let version = version.map_or(NO_VERSION, Version::get);
        Ok(if self.raw_set(key, bytes, version) { Swap::Done } else { Swap::Lost })
    }
}

impl Counters for FakeHost {
    fn define(&self, name: &str) -> Result<CounterId, HostError> {
        let mut counters = self.counters.borrow_mut();
        counters.push((name.to_owned(), 0));
        let index = counters.len().saturating_sub(1);
        Ok(CounterId(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    fn increment(&self, CounterId(index): CounterId) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some((_, count)) = self.counters.borrow_mut().get_mut(index) {
            *count = count.saturating_add(1);
        }
    }
}

impl Stopwatch for FakeHost {
    fn moment(&self) -> Result<Moment, HostError> {
        Ok(Moment(self.moment.get()))
    }
}

impl Streams for FakeHost {
    fn open(&self, _: &str) -> Result<StreamId, HostError> {
        let mut wire = self.wire.borrow_mut();
        if wire.refuses {
            return Err(INTERNAL_FAILURE);
        }
        wire.next = wire.next.saturating_add(1);
        let id = StreamId(wire.next);
        wire.open.push(id);
        Ok(id)
    }

    fn send(&self, stream: StreamId, message: &[u8]) -> Result<(), HostError> {
        let mut wire = self.wire.borrow_mut();
        if !wire.open.contains(&stream) {
            return Err(NOT_FOUND);
        }
        wire.messages.push((stream, message.to_vec()));
        Ok(())
    }

    fn cancel(&self, stream: StreamId) {
        self.end_stream(stream);
    }
}

impl Callouts for FakeHost {
    fn dispatch(&self, callout: &Callout<'_>) -> Result<CalloutId, HostError> {
        let mut wire = self.wire.borrow_mut();
        if wire.refuses {
            return Err(INTERNAL_FAILURE);
        }
        wire.next = wire.next.saturating_add(1);
        let id = CalloutId(wire.next);
        let headers = callout.headers.iter();
        wire.callouts.push(SentCallout {
            id,
            cluster: callout.cluster.to_owned(),
            headers: headers.map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            body: callout.body.to_vec(),
        });
        Ok(id)
    }
}

impl Log for FakeHost {
    fn log(&self, level: Level, message: &str) {
        self.lines.borrow_mut().push((level, message.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_without_a_version_inserts_and_never_overwrites() {
        let host = FakeHost::default();
        assert_eq!(host.swap("k", b"first", None), Ok(Swap::Done));
        assert_eq!(host.swap("k", b"second", None), Ok(Swap::Lost));
        assert_eq!(host.get("k").unwrap().bytes, b"first");
    }

    #[test]
    fn a_swap_with_an_old_version_is_lost() {
        let host = FakeHost::default();
        host.overwrite("k", b"1");
        let old = host.get("k").unwrap().version;
        host.overwrite("k", b"2");
        assert_eq!(host.swap("k", b"3", old), Ok(Swap::Lost));
        assert_eq!(host.get("k").unwrap().bytes, b"2");
    }
}
