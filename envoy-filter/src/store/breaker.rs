//! Keeps requests from waiting for a store that does not answer.
//!
//! While the breaker is closed every check is sent. It opens when a check has waited for its whole
//! deadline and nothing came in time since that check was sent, or when the store cannot be
//! reached. While it is open no request is sent and none waits; a probe, which charges nothing,
//! goes out at intervals, and the first answer that comes in time closes the breaker.

use crate::host::Moment;
use weir_core::units::Micros;

/// Between two probes of a store that is out.
const BETWEEN_PROBES: Micros = Micros::new(100_000);

/// One breaker.
#[derive(Clone, Debug)]
pub struct Breaker {
    /// How long an answer may take.
    timeout: Micros,
    /// When an answer last came in time.
    answered: Option<Moment>,
    /// While it is open: when the next probe is due.
    open: Option<Moment>,
}

/// What an event made of the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stays as it was.
    None,
    /// It has opened.
    Opened,
    /// It has closed.
    Closed,
}

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub const fn new(timeout: Micros) -> Self {
        Self { timeout, answered: None, open: None }
    }

    /// Whether no request is to be sent.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// An answer has come to what was sent at `sent`.
    pub fn on_answer(&mut self, sent: Moment, now: Moment) -> Change {
        if now.since(sent) > self.timeout {
            return Change::None;
        }
        self.answered = Some(now);
        if self.open.take().is_some() { Change::Closed } else { Change::None }
    }

    /// A check that was sent at `sent` has waited for its whole deadline.
    pub fn on_expiry(&mut self, sent: Moment, now: Moment) -> Change {
        if self.answered.is_some_and(|answered| answered > sent) {
            return Change::None;
        }
        self.on_loss(now)
    }

    /// The store cannot be reached.
    pub fn on_loss(&mut self, now: Moment) -> Change {
        if self.is_open() {
            return Change::None;
        }
        self.open = Some(now);
        Change::Opened
    }

    /// Whether a probe is to be sent now; if so, the next is due an interval later.
    pub fn takes_probe(&mut self, now: Moment) -> bool {
        match &mut self.open {
            Some(due) if *due <= now => {
                *due = now.after(BETWEEN_PROBES);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Micros = Micros::new(10_000);

    fn at(millis: u64) -> Moment {
        Moment(millis.saturating_mul(1_000))
    }

    fn open_at(millis: u64) -> Breaker {
        let mut breaker = Breaker::new(TIMEOUT);
        assert_eq!(breaker.on_loss(at(millis)), Change::Opened);
        breaker
    }

    #[test]
    fn it_opens_when_nothing_came_for_a_whole_deadline() {
        let mut breaker = Breaker::new(TIMEOUT);
        assert_eq!(breaker.on_answer(at(0), at(1)), Change::None);
        assert_eq!(breaker.on_expiry(at(2), at(12)), Change::Opened);
        assert_eq!(breaker.on_expiry(at(3), at(13)), Change::None, "it tells once");
    }

    #[test]
    fn one_slow_call_among_answers_opens_nothing() {
        let mut breaker = Breaker::new(TIMEOUT);
        breaker.on_answer(at(5), at(6));
        assert_eq!(breaker.on_expiry(at(2), at(12)), Change::None);
        assert!(!breaker.is_open());
    }

    #[test]
    fn an_answer_in_time_closes_it_and_a_late_one_does_not() {
        let mut breaker = open_at(0);
        assert_eq!(breaker.on_answer(at(0), at(11)), Change::None);
        assert!(breaker.is_open());
        assert_eq!(breaker.on_answer(at(100), at(110)), Change::Closed);
        assert!(!breaker.is_open());
    }

    #[test]
    fn a_probe_goes_out_at_once_and_then_at_intervals() {
        let mut breaker = open_at(5);
        let probes: Vec<_> = (0..=220).filter(|now| breaker.takes_probe(at(*now))).collect();
        assert_eq!(probes, [5, 105, 205]);
        assert!(!Breaker::new(TIMEOUT).takes_probe(at(0)));
    }
}
