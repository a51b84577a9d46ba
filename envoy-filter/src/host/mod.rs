//! What the filter asks of its host, by role. [`fake`] answers in memory, `wasm` in the proxy.

use core::num::NonZeroU32;
use weir_core::units::Instant;

#[cfg(not(target_arch = "wasm32"))]
pub mod fake;
#[cfg(target_arch = "wasm32")]
mod ffi;
#[cfg(target_arch = "wasm32")]
pub mod wasm;

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
