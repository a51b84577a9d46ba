//! What came of a load over a fleet.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// One request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The answer's status.
    pub status: u16,
    /// Whether the answer has the header `ratelimit`, as one that a limit has decided does and one
    /// that went unchecked does not.
    pub told: bool,
    /// The place of its stream in the plan.
    pub stream: usize,
    /// The place of its gateway in the plan.
    pub gateway: usize,
    /// When it was to be sent.
    pub due: Instant,
    /// When it was sent.
    pub sent: Instant,
    /// When its answer was complete.
    pub answered: Instant,
}

/// Every answer.
#[derive(Clone, Debug)]
pub struct Report {
    gateways: usize,
    samples: Vec<Sample>,
    /// Requests that got none, because the connection broke.
    pub unanswered: usize,
}

/// Answers by what they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Let through by a limit.
    pub allowed: usize,
    /// Refused by a limit.
    pub refused: usize,
    /// Let through, and no limit has decided it.
    pub unchecked: usize,
    /// All else.
    pub other: usize,
}

impl Counts {
    fn of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Self {
        let mut counts = Self::default();
        for sample in samples {
            *match (sample.status, sample.told) {
                (200, true) => &mut counts.allowed,
                (429, true) => &mut counts.refused,
                (200, false) => &mut counts.unchecked,
                _ => &mut counts.other,
            } += 1;
        }
        counts
    }
}

impl Report {
    /// An empty one, of so many gateways.
    pub(super) const fn of(gateways: usize) -> Self {
        Self { gateways, samples: Vec::new(), unanswered: 0 }
    }

    pub(super) fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.samples.extend(other.samples);
        self.unanswered += other.unanswered;
    }

    /// The answers, in no order.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The answers to one stream.
    #[must_use]
    pub fn of_stream(&self, stream: usize) -> Self {
        let samples = self.samples.iter().filter(|sample| sample.stream == stream);
        Self { gateways: self.gateways, samples: samples.copied().collect(), unanswered: 0 }
    }

    /// What all the answers say.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of(self.samples.iter())
    }

    /// What the answers of each gateway say.
    #[must_use]
    pub fn by_gateway(&self) -> Vec<Counts> {
        let of = |gateway| {
            Counts::of(self.samples.iter().filter(move |sample| sample.gateway == gateway))
        };
        (0..self.gateways).map(of).collect()
    }

    /// The most that were allowed in any window of this length, by the time of their answers.
    ///
    /// A decision falls before its answer, so this says what an upstream has to bear, and of the
    /// limit only so much: those answers were decided within the window and the time of the
    /// [slowest](Self::slowest) before it.
    #[must_use]
    pub fn most_allowed_within(&self, window: Duration) -> usize {
        let allowed =
            self.samples.iter().filter(|sample| (sample.status, sample.told) == (200, true));
        let mut times: Vec<Instant> = allowed.map(|sample| sample.answered).collect();
        times.sort_unstable();
        let mut first = times.iter().peekable();
        let mut inside = 0;
        let mut most = 0;
        for time in &times {
            inside += 1;
            while first.next_if(|first| **first + window <= *time).is_some() {
                inside -= 1;
            }
            most = most.max(inside);
        }
        most
    }

    /// The longest time from a request to its answer.
    #[must_use]
    pub fn slowest(&self) -> Duration {
        let took = |sample: &Sample| sample.answered.saturating_duration_since(sample.sent);
        self.samples.iter().map(took).max().unwrap_or_default()
    }

    /// The longest that a request was sent after it was due.
    #[must_use]
    pub fn most_late(&self) -> Duration {
        let late = |sample: &Sample| sample.sent.saturating_duration_since(sample.due);
        self.samples.iter().map(late).max().unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WINDOW: Duration = Duration::from_secs(1);
        let heads = ["gateway", "allowed", "refused", "unchecked", "other"];
        writeln!(f, "{}", heads.map(|head| format!("{head:>9}")).join("  "))?;
        let gateways = self.by_gateway().into_iter().enumerate();
        let rows = gateways.map(|(gateway, counts)| ((gateway + 1).to_string(), counts));
        for (name, counts) in rows.chain([("all".to_owned(), self.counts())]) {
            let Counts { allowed, refused, unchecked, other } = counts;
            writeln!(f, "{name:>9}  {allowed:>9}  {refused:>9}  {unchecked:>9}  {other:>9}")?;
        }
        write!(
            f,
            "{} unanswered; most allowed within {WINDOW:?} {}; sent at most {:.1?} late, answered \
             within {:.1?}",
            self.unanswered,
            self.most_allowed_within(WINDOW),
            self.most_late(),
            self.slowest(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers at these milliseconds, one after the other to two gateways.
    fn report(answers: &[(u64, u16, bool)]) -> Report {
        let start = Instant::now();
        let mut report = Report::of(2);
        for (place, (at, status, told)) in answers.iter().enumerate() {
            report.add(Sample {
                status: *status,
                told: *told,
                stream: place % 3,
                gateway: place % 2,
                due: start,
                sent: start + Duration::from_millis(1),
                answered: start + Duration::from_millis(*at),
            });
        }
        report
    }

    #[test]
    fn answers_are_counted_by_what_they_say() {
        let report = report(&[
            (5, 200, true),
            (5, 429, true),
            (6, 200, false),
            (7, 503, false),
            (8, 429, false),
        ]);
        let counts = Counts { allowed: 1, refused: 1, unchecked: 1, other: 2 };
        assert_eq!(report.counts(), counts);
        let first = Counts { allowed: 1, refused: 0, unchecked: 1, other: 1 };
        let second = Counts { refused: 1, other: 1, ..Counts::default() };
        assert_eq!(report.by_gateway(), [first, second]);
        assert_eq!(
            report.of_stream(0).counts(),
            Counts { allowed: 1, other: 1, ..Counts::default() }
        );
        assert_eq!(report.slowest(), Duration::from_millis(7));
        assert_eq!(report.most_late(), Duration::from_millis(1));
    }

    #[test]
    fn the_fullest_window_is_found_wherever_it_begins() {
        let allowed = [0, 90, 100, 150, 189, 190, 400].map(|at| (at, 200, true));
        let report = report(&allowed);
        // A window holds its beginning and not its end.
        for (window, most) in [(100, 4), (101, 5), (1, 1), (1_000, 7), (0, 0)] {
            let found = report.most_allowed_within(Duration::from_millis(window));
            assert_eq!(found, most, "{window} ms");
        }
    }

    #[test]
    fn it_reads_as_a_table() {
        let text = report(&[(5, 200, true), (6, 429, true)]).to_string();
        let expected = [
            "  gateway    allowed    refused  unchecked      other",
            "        1          1          0          0          0",
            "        2          0          1          0          0",
            "      all          1          1          0          0",
            "0 unanswered; most allowed within 1s 1; sent at most 1.0ms late, answered within 5.0ms",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
