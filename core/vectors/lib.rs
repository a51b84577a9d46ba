//! The corpus of decisions, and its loader.
//!
//! A case is data: a policy, arrivals with their times, and the decision that each must get. It
//! knows no engine. The core runs it natively, the page's module in a browser, and the filter in a
//! real Envoy; each brings a function from an [`Arrival`] to what it [`Seen`], and
//! [`Case::differences`] compares.
//!
//! The format of a file:
//!
//! ```toml
//! [[case]]
//! name = "burst-of-twelve-on-ten"             # unique over all files
//! shows = "A5: 10 of 12 pass"                 # why the case is there
//! [[case.phase]]                              # a limit, in force until the next phase
//! limit = { rate = "4/second", burst = 10 }   # fields of a policy's limit but name and key
//! calls = [
//!   # `times` calls, number k (counted from `first`) at `at` + floor(k · every[0] / every[1]) µs
//!   { at = 0, times = 12, expect = "10A 2R", remaining = 0, retry_after = 250_000 },
//!   { at = 0, first = 1, times = 6, every = [1_000_000, 6], key = "bob", expect = "6A" },
//! ]
//! ```
//!
//! `expect` is a run of A (allowed), D (delayed), R (refused) and N (never), with counts and
//! brackets: `28A 110(R 2A) R A`. `remaining` (tokens), `retry_after` (µs, of a refused call),
//! `delay` (µs, of a delayed one) and `reset_after` (µs until the limit is as if unused) speak of
//! the last call of the line. With `critical = true` the calls may draw what the limit reserves, and
//! `release = 2` gives two of the caller's permits back before the first of them, the oldest first.
//! Times count from the case's start.

mod runs;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;

/// When every case starts: microseconds since the epoch.
pub const START: u64 = 1_700_000_000_000_000;

/// Key of a call that names none.
const DEFAULT_KEY: &str = "key";

/// The files of the corpus.
const FILES: [(&str, &str); 8] = [
    ("token_bucket.toml", include_str!("token_bucket.toml")),
    ("clock_and_change.toml", include_str!("clock_and_change.toml")),
    ("fixed_window.toml", include_str!("fixed_window.toml")),
    ("sliding_window.toml", include_str!("sliding_window.toml")),
    ("sliding_log.toml", include_str!("sliding_log.toml")),
    ("leaky_bucket.toml", include_str!("leaky_bucket.toml")),
    ("concurrency.toml", include_str!("concurrency.toml")),
    ("reserve.toml", include_str!("reserve.toml")),
];

/// One case of the corpus.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique name.
    pub name: String,
    /// What a reader learns from the case.
    pub shows: String,
    phase: Vec<Phase>,
}

/// A limit and the calls made while it is in force.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Phase {
    limit: serde_json::Map<String, serde_json::Value>,
    calls: Vec<Call>,
}

/// One line of calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    at: u64,
    #[serde(default)]
    first: u64,
    #[serde(default = "one")]
    times: u64,
    #[serde(default)]
    every: Option<[u64; 2]>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    critical: bool,
    #[serde(default)]
    release: u64,
    expect: String,
    #[serde(default)]
    remaining: Option<u64>,
    #[serde(default)]
    retry_after: Option<u64>,
    #[serde(default)]
    delay: Option<u64>,
    #[serde(default)]
    reset_after: Option<u64>,
}

const fn one() -> u64 {
    1
}

/// What a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passes.
    Allowed,
    /// It passes after a wait in a queue.
    Delayed,
    /// It does not pass yet.
    Refused,
    /// It can never pass.
    Never,
}

/// One request of a case, and what must be answered.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Index of the phase, and so of the policy in force.
    pub phase: usize,
    /// Microseconds since the epoch.
    pub now: u64,
    /// The caller.
    pub key: String,
    /// Whether it may draw what the limit reserves.
    pub critical: bool,
    /// How many of the caller's permits, the oldest first, are given back before it.
    pub release: u64,
    /// What must come out.
    pub outcome: Outcome,
    /// Tokens left, where the case says so.
    pub remaining: Option<u64>,
    /// Microseconds until it would pass, where the case says so.
    pub retry_after: Option<u64>,
    /// Microseconds for which it is held, where the case says so.
    pub delay: Option<u64>,
    /// Microseconds until the limit is as if unused, where the case says so.
    pub reset_after: Option<u64>,
}

/// What an engine answered to an arrival.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Whether it passed.
    pub outcome: Outcome,
    /// Tokens left, if the engine says so.
    pub remaining: Option<u64>,
    /// The wait, in the engine's unit: until a refused request would pass, or for which a delayed
    /// one is held.
    pub retry_after: Option<Wait>,
}

/// What an engine answered that may also tell when the limit is as if unused.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The answer.
    pub seen: Seen,
    /// Time until the limit is as if unused, if the engine says so.
    pub reset_after: Option<Wait>,
}

impl From<Seen> for Told {
    fn from(seen: Seen) -> Self {
        Self { seen, reset_after: None }
    }
}

/// A wait in the unit in which an engine tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Microseconds.
    Micros(u64),
    /// Whole seconds, rounded up.
    Seconds(u64),
}

/// All cases.
///
/// # Errors
/// A file that does not parse, a name used twice, or a line whose `expect` does not fit `times`.
pub fn corpus() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (file, text) in FILES {
        cases.extend(parse(text).with_context(|| file.to_owned())?);
    }
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    ensure!(names.len() == cases.len(), "a name is used twice");
    Ok(cases)
}

fn parse(text: &str) -> Result<Vec<Case>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        case: Vec<Case>,
    }
    let File { case: cases } = toml::from_str(text)?;
    for case in &cases {
        case.arrivals().with_context(|| case.name.clone())?;
    }
    Ok(cases)
}

impl Case {
    /// The policies of the case, one a phase, as JSON. All have the case's name as namespace and
    /// one limit, `limit`, keyed by the header `x-api-key`, so a later phase changes the limit of
    /// the buckets that an earlier one filled.
    #[must_use]
    pub fn policies(&self) -> Vec<String> {
        let policy = |phase: &Phase| {
            let mut limit = phase.limit.clone();
            limit.insert("name".into(), "limit".into());
            limit.insert("key".into(), serde_json::json!(["header:x-api-key"]));
            serde_json::json!({ "namespace": self.name, "limits": [limit] }).to_string()
        };
        self.phase.iter().map(policy).collect()
    }

    /// The algorithms of the case's phases, by their names in a policy: an engine that lacks one
    /// leaves the case out.
    #[must_use]
    pub fn algorithms(&self) -> Vec<&str> {
        let named = self.phase.iter().map(|phase| phase.limit.get("algorithm"));
        named.map(|name| name.and_then(|name| name.as_str()).unwrap_or("token-bucket")).collect()
    }

    /// Every request of the case in order.
    ///
    /// # Errors
    /// A line whose `expect` does not parse or does not fit its `times`.
    pub fn arrivals(&self) -> Result<Vec<Arrival>> {
        let mut arrivals = Vec::new();
        for (phase, Phase { calls, .. }) in self.phase.iter().enumerate() {
            for call in calls {
                arrivals.extend(call.arrivals(phase)?);
            }
        }
        Ok(arrivals)
    }

    /// Runs the case on an engine and lists what differs, empty if nothing does.
    ///
    /// # Errors
    /// Whatever the engine fails with.
    pub fn differences<T: Into<Told>>(
        &self,
        mut decide: impl FnMut(&Arrival) -> Result<T>,
    ) -> Result<Vec<String>> {
        let mut differences = Vec::new();
        for (number, arrival) in self.arrivals()?.iter().enumerate() {
            let told = decide(arrival).with_context(|| format!("{}, call {number}", self.name))?;
            let told = told.into();
            if !arrival.agrees_with(told) {
                differences
                    .push(format!("{}, call {number}: {arrival:?}\n  saw {told:?}", self.name));
            }
        }
        Ok(differences)
    }
}

impl Call {
    fn arrivals(&self, phase: usize) -> Result<Vec<Arrival>> {
        let outcomes = runs::parse(&self.expect)?;
        let times = usize::try_from(self.times)?;
        if outcomes.len() != times {
            bail!("{} expects {} outcomes for {times} calls", self.expect, outcomes.len());
        }
        let last = outcomes.last().context("a line without calls")?;
        for (field, value, of) in [
            ("retry_after", self.retry_after, Outcome::Refused),
            ("delay", self.delay, Outcome::Delayed),
        ] {
            ensure!(value.is_none() || *last == of, "{field} where the last call is {last:?}");
        }
        let [step, parts] = self.every.unwrap_or([0, 1]);
        let arrival = |(k, outcome): (u64, Outcome)| {
            let offset = k.checked_mul(step).and_then(|micros| micros.checked_div(parts));
            let now = offset.and_then(|offset| START.checked_add(self.at)?.checked_add(offset));
            let last = k == self.first + self.times - 1;
            Ok(Arrival {
                phase,
                now: now.context("a time is out of range")?,
                key: self.key.clone().unwrap_or_else(|| DEFAULT_KEY.into()),
                critical: self.critical,
                release: if k == self.first { self.release } else { 0 },
                outcome,
                remaining: self.remaining.filter(|_| last),
                retry_after: self.retry_after.filter(|_| last),
                delay: self.delay.filter(|_| last),
                reset_after: self.reset_after.filter(|_| last),
            })
        };
        (self.first..).zip(outcomes).map(arrival).collect()
    }
}

impl Arrival {
    fn agrees_with(&self, Told { seen, reset_after }: Told) -> bool {
        let remaining = match (self.remaining, seen.remaining) {
            (Some(expected), Some(seen)) => expected == seen,
            _ => true,
        };
        let wait = match (self.retry_after.or(self.delay), seen.retry_after) {
            (Some(expected), Some(wait)) => wait.is(expected),
            (Some(_), None) => false,
            (None, _) => true,
        };
        let reset = match (self.reset_after, reset_after) {
            (Some(expected), Some(reset)) => reset.is(expected),
            _ => true,
        };
        self.outcome == seen.outcome && remaining && wait && reset
    }
}

impl Wait {
    fn is(self, expected: u64) -> bool {
        match self {
            Self::Micros(micros) => micros == expected,
            Self::Seconds(seconds) => seconds == expected.div_ceil(1_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(calls: &str) -> Result<Vec<Case>> {
        parse(&format!(
            "[[case]]\nname = \"n\"\nshows = \"s\"\n[[case.phase]]\nlimit = {{ rate = \"1/second\" }}\n\
             calls = [ {calls} ]",
        ))
    }

    #[test]
    fn the_corpus_loads() {
        assert!(corpus().unwrap().len() >= 200);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let error = case(r#"{ at = 0, expcet = "A", expect = "A" }"#).unwrap_err();
        assert!(format!("{error:#}").contains("expcet"), "{error:#}");
    }

    #[test]
    fn a_wait_of_another_outcome_is_refused() {
        let error = case(r#"{ at = 0, expect = "R", delay = 3 }"#).unwrap_err();
        assert!(format!("{error:#}").contains("delay where the last call is Refused"), "{error:#}");
        assert!(case(r#"{ at = 0, expect = "A", retry_after = 3 }"#).is_err());
        assert!(case(r#"{ at = 0, times = 0, expect = "" }"#).is_err());
    }

    #[test]
    fn a_line_that_expects_too_few_outcomes_is_refused() {
        let error = case(r#"{ at = 0, times = 3, expect = "2A" }"#).unwrap_err();
        assert!(format!("{error:#}").contains("2 outcomes for 3 calls"), "{error:#}");
    }

    #[test]
    fn arrival_k_comes_at_k_steps() {
        let cases =
            case(r#"{ at = 5, first = 1, times = 2, every = [1_000_000, 6], expect = "2A" }"#);
        let arrivals = cases.unwrap()[0].arrivals().unwrap();
        let times: Vec<_> = arrivals.iter().map(|arrival| arrival.now - START).collect();
        assert_eq!(times, [5 + 166_666, 5 + 333_333]);
    }

    #[test]
    fn permits_are_given_back_before_the_first_call_of_a_line() {
        let cases = case(r#"{ at = 0, times = 2, release = 1, critical = true, expect = "2A" }"#);
        let arrivals = cases.unwrap()[0].arrivals().unwrap();
        let told: Vec<_> = arrivals.iter().map(|a| (a.release, a.critical)).collect();
        assert_eq!(told, [(1, true), (0, true)]);
    }

    #[test]
    fn a_difference_is_reported() {
        let cases = case(r#"{ at = 0, expect = "D", remaining = 3, delay = 5, reset_after = 9 }"#);
        let case = &cases.unwrap()[0];
        let seen = |outcome, remaining, wait| {
            let seen = Seen { outcome, remaining, retry_after: Some(Wait::Micros(wait)) };
            Told { seen, reset_after: Some(Wait::Seconds(1)) }
        };
        let right = seen(Outcome::Delayed, Some(3), 5);
        let late = Told { reset_after: Some(Wait::Micros(10)), ..right };
        for (told, count) in [
            (right, 0),
            (right.seen.into(), 0),
            (late, 1),
            (seen(Outcome::Delayed, None, 5), 0),
            (seen(Outcome::Delayed, Some(2), 5), 1),
            (seen(Outcome::Delayed, Some(3), 6), 1),
            (seen(Outcome::Allowed, Some(3), 5), 1),
        ] {
            assert_eq!(case.differences(|_| Ok(told)).unwrap().len(), count, "{told:?}");
        }
    }
}
