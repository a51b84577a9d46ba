//! What the filter asks of its host, by role. [`fake`] answers in memory, `wasm` in the proxy.

use core::num::NonZeroU32;
use weir_core::units::{Instant, Micros};

#[cfg(not(target_arch = "wasm32"))]
pub mod fake;
#[cfg(target_arch = "wasm32")]
mod ffi;
#[cfg(target_arch = "wasm32")]
pub mod wasm;
#[cfg(target_arch = "wasm32")]
pub mod wire;

/// The host did not do what it was asked; the number is its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostError(pub u32);

impl core::fmt::Display for HostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the proxy answered with status {}", self.0)
    }
}

/// The wall clock.
pub trait Clock {
    /// The time now.
    ///
    /// # Errors
    /// [`HostError`] if the host has no time to tell.
    fn now(&self) -> Result<Instant, HostError>;
}

/// Unpredictable numbers.
pub trait Entropy {
    /// Sixteen bytes that nobody can guess.
    ///
    /// # Errors
    /// [`HostError`] if the host has none.
    fn secret(&self) -> Result<[u8; 16], HostError>;

    /// A number of which all are equally likely.
    ///
    /// # Errors
    /// [`HostError`] if the host has none.
    fn draw(&self) -> Result<u32, HostError>;
}

/// The version of a value in shared data. No value has version 0.
pub type Version = NonZeroU32;

/// A value in shared data. A key that was never set, and one whose value was taken away, have no
/// bytes; only the second has a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// The bytes; empty if there are none.
    pub bytes: Vec<u8>,
    /// The version to name in [`SharedData::swap`].
    pub version: Option<Version>,
}

/// What became of a swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The value is in place.
    Done,
    /// Another worker was first; nothing was written.
    Lost,
}

/// Values that all workers of the proxy share. There is no delete: keys stay for good, so only
/// a fixed number of them may ever be written.
pub trait SharedData {
    /// The value of a key.
    ///
    /// # Errors
    /// [`HostError`] if the host refuses.
    fn get(&self, key: &str) -> Result<Value, HostError>;

    /// Writes a value if the key still has the version, or, without one, if the key was never set.
    ///
    /// # Errors
    /// [`HostError`] if the host refuses.
    fn swap(&self, key: &str, bytes: &[u8], version: Option<Version>) -> Result<Swap, HostError>;
}

/// A counter that the host knows by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterId(pub u32);

/// Counters. They never expire, so their names are fixed.
pub trait Counters {
    /// Makes a counter known.
    ///
    /// # Errors
    /// [`HostError`] if the host refuses.
    fn define(&self, name: &str) -> Result<CounterId, HostError>;

    /// Adds one.
    fn increment(&self, counter: CounterId);
}

/// A time on the monotonic clock, which never goes back: microseconds since a start that differs
/// from machine to machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// After everything.
    pub const END: Moment = Moment(u64::MAX);

    /// So long after this.
    #[must_use]
    pub const fn after(self, span: Micros) -> Self {
        Self(self.0.saturating_add(span.get()))
    }

    /// The span since an earlier moment; zero if `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Moment) -> Micros {
        Micros::new(self.0.saturating_sub(earlier.0))
    }
}

/// The monotonic clock, for deadlines.
pub trait Stopwatch {
    /// The time now.
    ///
    /// # Errors
    /// [`HostError`] if the host has no such clock.
    fn moment(&self) -> Result<Moment, HostError>;
}

/// A stream that the host knows by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(pub u32);

/// Streams of messages to a cluster.
pub trait Streams {
    /// Opens one. That it cannot be connected is told later, as its end.
    ///
    /// # Errors
    /// [`HostError`] if the host has no such cluster or refuses.
    fn open(&self, cluster: &str) -> Result<StreamId, HostError>;

    /// Sends a message.
    ///
    /// # Errors
    /// [`HostError`] if there is no such stream any more.
    fn send(&self, stream: StreamId, message: &[u8]) -> Result<(), HostError>;

    /// Ends one at once. Nothing more is told of it.
    fn cancel(&self, stream: StreamId);
}

/// A callout that the host knows by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalloutId(pub u32);

/// An HTTP request to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callout<'a> {
    /// The cluster.
    pub cluster: &'a str,
    /// Its headers, `:method`, `:path` and `:authority` among them.
    pub headers: &'a [(&'a str, &'a str)],
    /// Its body.
    pub body: &'a [u8],
    /// When the host is to give up; it counts in whole milliseconds, rounded up.
    pub timeout: Micros,
}

/// HTTP requests to a cluster.
pub trait Callouts {
    /// Sends one.
    ///
    /// # Errors
    /// [`HostError`] if it cannot be sent; nothing more is told of it then.
    fn dispatch(&self, callout: &Callout<'_>) -> Result<CalloutId, HostError>;
}

/// How grave a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// Something an operator should know.
    Warn = 3,
    /// Something that does not work.
    Error = 4,
    /// The module is about to die.
    Critical = 5,
}

/// The host's log.
pub trait Log {
    /// Writes a line. A log that cannot be written has nowhere to be reported.
    fn log(&self, level: Level, message: &str);
}

/// All that a limiter with a shared store asks of its host.
pub trait Host:
    SharedData + Entropy + Counters + Clock + Stopwatch + Streams + Callouts + Log
{
}

impl<T: SharedData + Entropy + Counters + Clock + Stopwatch + Streams + Callouts + Log> Host for T {}
