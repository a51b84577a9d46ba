//! Errors of the store in the log: the first at once, and then one line in a while. One key alone
//! may be at fault, so they are no change of state, and clients must not be able to fill a log.

use crate::host::{Level, Log, Moment};
use weir_core::units::Micros;

/// Between two lines.
const PAUSE: Micros = Micros::new(10_000_000);
/// Of an error's text so much is shown.
const SHOWN: usize = 120;

/// What has been said and what not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Complaints {
    said: Option<Moment>,
    kept_back: u64,
}

impl Complaints {
    /// Logs an error, or counts it if one was logged a moment ago.
    pub fn tell(&mut self, host: &impl Log, now: Moment, error: &[u8]) {
        if self.said.is_some_and(|said| now.since(said) < PAUSE) {
            self.kept_back = self.kept_back.saturating_add(1);
            return;
        }
        let shown = error.iter().take(SHOWN).map(|byte| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '?',
        });
        let shown: String = shown.collect();
        let more = match self.kept_back {
            0 => String::new(),
            n => format!(" ({n} more since the last of these lines)"),
        };
        host.log(Level::Warn, &format!("weir: the store cannot check a limit: {shown}{more}"));
        *self = Self { said: Some(now), kept_back: 0 };
    }
}
