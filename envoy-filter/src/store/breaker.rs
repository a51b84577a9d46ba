//! Keeps requests from waiting for a store that does not answer.
//!
//! While the breaker is closed every check is sent. It opens when a check has waited for its whole
//! deadline and nothing came in time since that check was sent, or when the store cannot be
//! reached. While it is open no request is sent and none waits; a probe, which charges nothing,
//! goes out at intervals, and the first answer that comes in time closes the breaker. Either change
//! is a line in the log.

use super::command::Command;
use crate::host::{Level, Log, Moment};
use weir_core::units::Micros;

/// Between two probes of a store that is out.
const BETWEEN_PROBES: Micros = Micros::new(100_000);

/// Why it opens where a deadline is over.
pub(super) const NO_ANSWER: &str = "no answer came for a whole deadline";

/// One breaker.
#[derive(Clone, Debug)]
pub struct Breaker {
    /// The way to the store, as the log tells it.
    way: String,
    /// How long an answer may take.
    timeout: Micros,
    /// When an answer last came in time.
    answered: Option<Moment>,
    /// While it is open: when the next probe is due.
    open: Option<Moment>,
    /// Asks the store without charging anything.
    probe: Option<Command>,
}

impl Breaker {
    /// A closed breaker on a way such as `callouts to webdis`.
    #[must_use]
    pub const fn new(way: String, timeout: Micros) -> Self {
        Self { way, timeout, answered: None, open: None, probe: None }
    }

    /// Whether no request is to be sent.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Keeps what to probe with, from the first check on: an outage then ends without a request to
    /// probe with.
    pub fn keep_probe(&mut self, probe: impl FnOnce() -> Option<Command>) {
        if self.probe.is_none() {
            self.probe = probe();
        }
    }

    /// An answer has come to what was sent at `sent`.
    pub fn on_answer(&mut self, host: &impl Log, sent: Moment, now: Moment) {
        if now.since(sent) > self.timeout {
            return;
        }
        self.answered = Some(now);
        if self.open.take().is_some() {
            let way = &self.way;
            host.log(Level::Warn, &format!("weir: the store answers again, {way}"));
        }
    }

    /// What was sent at `sent` has come to nothing, for example since its deadline is over.
    pub fn on_failure(&mut self, host: &impl Log, sent: Moment, now: Moment, why: &str) {
        if self.answered.is_none_or(|answered| answered <= sent) {
            self.on_loss(host, now, why);
        }
    }

    /// The store cannot be reached.
    pub fn on_loss(&mut self, host: &impl Log, now: Moment, why: &str) {
        if self.is_open() {
            return;
        }
        self.open = Some(now);
        let way = &self.way;
        host.log(
            Level::Warn,
            &format!("weir: the store is out, {way}: {why}; limits go by on_store_failure"),
        );
    }

    /// A probe that is to be sent now; the next is due an interval later.
    pub fn probe(&mut self, now: Moment) -> Option<Command> {
        let due = self.open.as_mut().filter(|due| **due <= now)?;
        let probe = self.probe.clone()?;
        *due = now.after(BETWEEN_PROBES);
        Some(probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;
    use weir_core::script::TOKEN_BUCKET;

    const TIMEOUT: Micros = Micros::new(10_000);
    const WHY: &str = "it is";

    fn at(millis: u64) -> Moment {
        Moment(millis.saturating_mul(1_000))
    }

    fn closed() -> (Breaker, FakeHost) {
        let (mut breaker, host) =
            (Breaker::new("callouts to webdis".into(), TIMEOUT), FakeHost::default());
        breaker.keep_probe(|| Command::new(&TOKEN_BUCKET, Vec::new(), Vec::new(), &host).ok());
        (breaker, host)
    }

    fn open_at(millis: u64) -> (Breaker, FakeHost) {
        let (mut breaker, host) = closed();
        breaker.on_loss(&host, at(millis), WHY);
        assert!(breaker.is_open());
        (breaker, host)
    }

    fn lines(host: &FakeHost) -> Vec<String> {
        host.lines().into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn it_opens_when_nothing_came_for_a_whole_deadline() {
        let (mut breaker, host) = closed();
        breaker.on_answer(&host, at(0), at(1));
        assert!(!breaker.is_open());
        breaker.on_failure(&host, at(2), at(12), WHY);
        assert!(breaker.is_open());
        breaker.on_failure(&host, at(3), at(13), WHY);
        let told =
            "weir: the store is out, callouts to webdis: it is; limits go by on_store_failure";
        assert_eq!(lines(&host), [told], "it tells once");
    }

    #[test]
    fn one_slow_call_among_answers_opens_nothing() {
        let (mut breaker, host) = closed();
        breaker.on_answer(&host, at(5), at(6));
        breaker.on_failure(&host, at(2), at(12), WHY);
        assert!(!breaker.is_open());
        assert_eq!(lines(&host), [""; 0]);
    }

    #[test]
    fn an_answer_in_time_closes_it_and_a_late_one_does_not() {
        let (mut breaker, host) = open_at(0);
        breaker.on_answer(&host, at(0), at(11));
        assert!(breaker.is_open());
        breaker.on_answer(&host, at(100), at(110));
        assert!(!breaker.is_open());
        assert_eq!(lines(&host)[1..], ["weir: the store answers again, callouts to webdis"]);
    }

    #[test]
    fn a_probe_goes_out_at_once_and_then_at_intervals() {
        let (mut breaker, _) = open_at(5);
        let probes: Vec<_> = (0..=220).filter(|now| breaker.probe(at(*now)).is_some()).collect();
        assert_eq!(probes, [5, 105, 205]);
        assert!(closed().0.probe(at(0)).is_none());
    }
}
