//! Redis by streams through the proxy: one for each range of slots, so that a node of a cluster
//! that does not answer holds up no key of another.

mod stream;

use super::{Failure, Pace, Settled, Ticket, command::Command};
use crate::host::{Log, Moment, StreamId, Streams};
use stream::Stream;
use weir_core::{script::SLOTS, units::Micros};

/// The streams of one plugin.
#[derive(Debug)]
pub struct Redis {
    streams: Vec<Stream>,
}

impl Redis {
    /// So many streams, to be opened at the first tick.
    #[must_use]
    pub fn new(cluster: &str, streams: u64, timeout: Micros) -> Self {
        let stream = |number| Stream::new(number, cluster, timeout);
        Self { streams: (0..streams.max(1)).map(stream).collect() }
    }

    /// Sends a check, or says at once why not. `probe` asks for the same buckets and charges
    /// nothing.
    ///
    /// # Errors
    /// [`Failure`] says why nothing was sent.
    pub fn check(
        &mut self,
        host: &(impl Streams + Log),
        now: Moment,
        ticket: Ticket,
        command: Command,
        probe: impl FnOnce() -> Option<Command>,
        settled: &mut Vec<Settled>,
    ) -> Result<(), Failure> {
        let stream = self.stream(&command).ok_or(Failure::Host)?;
        stream.check(host, now, ticket, command, probe, settled)
    }

    /// Sends a refund. Whether it could be sent.
    pub fn refund(&mut self, host: &(impl Streams + Log), now: Moment, command: Command) -> bool {
        let stream = self.stream(&command);
        stream.is_some_and(|stream| stream.refund(host, now, command))
    }

    /// Takes a message that came on a stream.
    pub fn on_message(
        &mut self,
        host: &(impl Streams + Log),
        now: Moment,
        id: StreamId,
        bytes: &[u8],
        settled: &mut Vec<Settled>,
    ) {
        // A message of a stream that was given up is for nobody.
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.is(id)) {
            stream.receive(host, now, bytes, settled);
        }
    }

    /// Takes the end of a stream.
    pub fn on_close(
        &mut self,
        host: &impl Log,
        now: Moment,
        id: StreamId,
        status: u32,
        settled: &mut Vec<Settled>,
    ) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.is(id)) {
            stream.on_close(host, now, status, settled);
        }
    }

    /// Does what is due.
    pub fn tick(&mut self, host: &(impl Streams + Log), now: Moment, settled: &mut Vec<Settled>) {
        for stream in &mut self.streams {
            stream.tick(host, now, settled);
        }
    }

    /// Answers the checks that have waited for their whole deadline.
    pub fn expire(&mut self, host: &impl Log, now: Moment, settled: &mut Vec<Settled>) {
        for stream in &mut self.streams {
            stream.expire(host, now, settled);
        }
    }

    /// How soon a tick is wanted.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.streams.iter().map(Stream::pace).max().unwrap_or(Pace::Never)
    }

    /// The stream of a command's slot: the slots are split into equal ranges, one for each stream.
    fn stream(&mut self, command: &Command) -> Option<&mut Stream> {
        let slot = usize::from(command.keys.first()?.slot());
        let place = slot.saturating_mul(self.streams.len()).checked_div(usize::from(SLOTS))?;
        self.streams.get_mut(place)
    }
}

/// Whether Envoy, which takes the target of a stream as an encoded `GrpcService` or, failing that,
/// as the name of a cluster, would read a name as a message: one of fields that it does not know.
/// The SDK then panics. Names are of ASCII, so every tag, length and number is one byte.
#[must_use]
pub fn reads_as_message(name: &str) -> bool {
    let mut bytes = name.as_bytes();
    let mut groups = Vec::new();
    while let Some((tag, rest)) = bytes.split_first() {
        let field = tag >> 3;
        let (length, rest) = match (tag & 7, rest.split_first()) {
            (0, Some((_, rest))) => (0, rest),
            (1, _) => (8, rest),
            (2, Some((length, rest))) => (usize::from(*length), rest),
            (3, _) => {
                groups.push(field);
                (0, rest)
            }
            (4, _) if groups.pop() == Some(field) => (0, rest),
            (5, _) => (4, rest),
            _ => return false,
        };
        let Some(rest) = rest.get(length..) else { return false };
        bytes = rest;
    }
    groups.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_reads_as_a_message_is_found() {
        for name in ["analytics", "xa", "eabcd", "cd", "cxad"] {
            assert!(reads_as_message(name), "{name}");
        }
        for name in ["weir_bridge", "redis", "bridge", "weir-redis", "a", "cx", "r0"] {
            assert!(!reads_as_message(name), "{name}");
        }
    }
}
