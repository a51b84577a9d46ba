//! The numbers beside the figure, each with its unit, and the same in one sentence.

use super::{
    caption::seconds_to_empty,
    record::Record,
    scenario::{KEPT, Scenario},
    text::{count, percent, seconds, tokens},
};

/// One number of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readout {
    /// A stable name.
    pub name: &'static str,
    /// What is measured.
    pub label: &'static str,
    /// The value; a dash where there is none.
    pub value: String,
    /// The unit, empty where the value is a dash.
    pub unit: &'static str,
}

/// The line of the table for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number since the reset.
    pub number: String,
    /// When it came, in seconds.
    pub time: String,
    /// Whether it passed.
    pub allowed: bool,
    /// Whole tokens left.
    pub left: String,
    /// The Retry-After header, in seconds; a dash without one.
    pub retry_after: String,
}

/// All readouts, in the order of the page.
#[must_use]
pub fn readouts(scenario: &Scenario) -> Vec<Readout> {
    let (allowed, refused) = (scenario.allowed(), scenario.refused());
    let (recent_allowed, recent_refused) = scenario.recent();
    let recent = percent(recent_refused, recent_allowed.saturating_add(recent_refused));
    let overall = percent(refused, allowed.saturating_add(refused));
    let retry_after = scenario.records().iter().rev().find_map(Record::retry_after);
    vec![
        readout("clock", "Simulated time", Some(seconds(scenario.clock())), "s"),
        readout("tokens", "Tokens now", Some(tokens(scenario.level())), "tok"),
        readout("allowed", "Allowed", Some(allowed.to_string()), "req"),
        readout("refused", "Refused", Some(refused.to_string()), "req"),
        readout("refused-recent", "Refused, last 10 s", recent.map(|it| it.to_string()), "%"),
        readout("refused-overall", "Refused, overall", overall.map(|it| it.to_string()), "%"),
        time_to_empty(scenario),
        readout("retry-after", "Latest Retry-After", retry_after.map(|it| it.to_string()), "s"),
    ]
}

/// The last requests, the newest first.
#[must_use]
pub fn rows(scenario: &Scenario) -> Vec<Row> {
    scenario.records().iter().rev().take(KEPT).map(row).collect()
}

/// The figure in words, for those who do not see it.
#[must_use]
pub fn summary(scenario: &Scenario) -> String {
    let settings = scenario.settings();
    format!(
        "Token bucket after {} s: {} of {} in the bucket; {} a second arrive, {} a second come \
         back; {} allowed, {} refused.",
        seconds(scenario.clock()),
        tokens(scenario.level()),
        count(settings.capacity, "token", "tokens"),
        count(settings.traffic, "request", "requests"),
        count(settings.refill, "token", "tokens"),
        scenario.allowed(),
        scenario.refused(),
    )
}

fn readout(
    name: &'static str,
    label: &'static str,
    value: Option<String>,
    unit: &'static str,
) -> Readout {
    match value {
        Some(value) => Readout { name, label, value, unit },
        None => Readout { name, label, value: "–".to_owned(), unit: "" },
    }
}

fn time_to_empty(scenario: &Scenario) -> Readout {
    let (name, label) = ("time-to-empty", "Time to empty");
    match seconds_to_empty(scenario) {
        Some(_) if scenario.is_emptied() => readout(name, label, Some("0".to_owned()), "s"),
        Some(seconds) => readout(name, label, Some(format!("≈ {seconds}")), "s"),
        None => readout(name, label, None, ""),
    }
}

fn row(record: &Record) -> Row {
    Row {
        number: record.number.to_string(),
        time: seconds(record.at),
        allowed: record.is_allowed(),
        left: record.decision.remaining.to_string(),
        retry_after: record.retry_after().map_or_else(|| "–".to_owned(), |it| it.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{scenario::Action, settings::Settings};

    fn minute() -> Scenario {
        let mut scenario = Scenario::new(Settings::default()).unwrap();
        scenario.apply(Action::Advance(60_000_000));
        scenario
    }

    fn value(scenario: &Scenario, name: &str) -> String {
        readouts(scenario).into_iter().find(|readout| readout.name == name).unwrap().value
    }

    #[test]
    fn a_minute_at_the_defaults_reads_as_calculated() {
        let minute = minute();
        assert_eq!(value(&minute, "clock"), "60.000");
        assert_eq!(value(&minute, "allowed"), "249");
        assert_eq!(value(&minute, "refused"), "111");
        assert_eq!(value(&minute, "refused-recent"), "33");
        assert_eq!(value(&minute, "refused-overall"), "31");
        assert_eq!(value(&minute, "retry-after"), "1");
        assert_eq!(value(&minute, "time-to-empty"), "0");
    }

    #[test]
    fn before_the_first_request_there_is_no_share_and_no_retry_after() {
        let start = Scenario::new(Settings::default()).unwrap();
        assert_eq!(value(&start, "tokens"), "10.0");
        assert_eq!(value(&start, "refused-recent"), "–");
        assert_eq!(value(&start, "retry-after"), "–");
        assert_eq!(value(&start, "time-to-empty"), "≈ 5");
    }

    #[test]
    fn the_table_lists_the_newest_request_first() {
        let mut scenario = Scenario::new(Settings::default()).unwrap();
        scenario.apply(Action::Burst);
        let rows = rows(&scenario);
        assert_eq!(rows.len(), 12);
        assert_eq!((rows[0].number.as_str(), rows[0].allowed), ("12", false));
        assert_eq!(rows[0].retry_after, "1");
        assert_eq!((rows[11].left.as_str(), rows[11].retry_after.as_str()), ("9", "–"));
    }

    #[test]
    fn the_summary_says_where_the_run_stands() {
        assert!(summary(&minute()).ends_with("249 allowed, 111 refused."));
    }
}
