//! The window that the counters of fixed and sliding windows share.
//!
//! A window of a key never seen begins at a multiple of its length since the epoch, as a clock on
//! the wall suggests; the ones after it follow without a gap until two in a row have taken nothing.
//! When the clock steps back before the window's start, no time has passed: the window begins anew
//! at `now` and keeps its counts, so nobody gets more, and nobody waits for longer than a window
//! that has just begun makes them. A count above the limit, which a higher limit has left behind,
//! counts as the limit.

use super::tick::Tick;
use crate::{
    bounds,
    units::{Instant, Micros},
};
use core::num::NonZeroU64;

/// Counts of a window and of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WindowState {
    /// When the current window began: microseconds since the epoch, a whole number of ticks.
    pub(super) start: u64,
    /// Tokens taken in the window before.
    pub(super) previous: u64,
    /// Tokens taken in the current window.
    pub(super) current: u64,
}

impl WindowState {
    /// The state of a key never seen.
    pub const NONE: WindowState = WindowState { start: 0, previous: 0, current: 0 };

    /// A stored state, or `None` if a number is outside what a step can write (2^53 − 1 each).
    #[must_use]
    pub const fn from_parts(start: u64, previous: u64, current: u64) -> Option<Self> {
        if bounds::UNITS.contains(start)
            && bounds::UNITS.contains(previous)
            && bounds::UNITS.contains(current)
        {
            Some(Self { start, previous, current })
        } else {
            None
        }
    }

    /// When the window began in microseconds since the epoch, and the tokens taken in the window
    /// before and in this one.
    #[must_use]
    pub const fn to_parts(self) -> (u64, u64, u64) {
        (self.start, self.previous, self.current)
    }

    const fn is_empty(self) -> bool {
        self.previous == 0 && self.current == 0
    }
}

/// The length of a window in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) tick: Tick,
    pub(super) length: NonZeroU64,
}

/// A window as it is at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Current {
    /// The counts at this time.
    pub(super) state: WindowState,
    /// The tick in which the time lies.
    pub(super) now_tick: u64,
    /// Ticks since the window began; less than its length.
    pub(super) elapsed: u64,
    /// Whether the clock had stepped back before the window, or the limit been lowered below a
    /// count, so that the state is to be written.
    pub(super) repaired: bool,
}

impl Window {
    /// The window that follows at `now` from the one stored.
    pub(super) fn at(self, state: WindowState, now: Instant) -> Current {
        let now_tick = self.tick.containing(now);
        let start = self.tick.containing(Instant::from_micros(state.start));
        let fresh = || self.current(WindowState::NONE, now_tick, now_tick % self.length, false);
        if state.is_empty() {
            return fresh();
        }
        let Some(elapsed) = now_tick.checked_sub(start) else {
            return self.current(state, now_tick, 0, true);
        };
        let counts = match elapsed / self.length {
            0 => state,
            1 => WindowState { previous: state.current, current: 0, ..state },
            _ => WindowState::NONE,
        };
        // A window that a clock put off the multiples of its length goes on only while something
        // is known of it, as an entry that was dropped as idle cannot go on.
        if counts.is_empty() {
            return fresh();
        }
        self.current(counts, now_tick, elapsed % self.length, false)
    }

    fn current(self, counts: WindowState, now_tick: u64, elapsed: u64, repaired: bool) -> Current {
        let start = self.tick.micros(now_tick.saturating_sub(elapsed));
        Current { state: WindowState { start, ..counts }, now_tick, elapsed, repaired }
    }

    /// Whether the current window begins at a multiple of its length, as that of a key never seen.
    pub(super) fn is_aligned(self, current: &Current) -> bool {
        current.now_tick.saturating_sub(current.elapsed).is_multiple_of(self.length.get())
    }

    /// Time from `now` to a number of ticks after the current window began.
    pub(super) fn until(self, current: &Current, elapsed: u64, now: Instant) -> Micros {
        let start = current.now_tick.saturating_sub(current.elapsed);
        self.tick.until(start.saturating_add(elapsed), now)
    }
}

impl Current {
    /// These counts under a limit.
    pub(super) fn within(mut self, limit: u64) -> Self {
        let WindowState { previous, current, .. } = self.state;
        self.repaired |= previous > limit || current > limit;
        self.state.previous = previous.min(limit);
        self.state.current = current.min(limit);
        self
    }
}
