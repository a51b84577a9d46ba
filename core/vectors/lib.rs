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
//! `expect` is a run of A (allowed), R (refused) and N (never), with counts and brackets:
//! `28A 110(R 2A) R A`. `remaining` (tokens) and `retry_after` (µs) speak of the last call of the
//! line. Times count from the case's start.

mod runs;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;

/// When every case starts: microseconds since the epoch.
pub const START: u64 = 1_700_000_000_000_000;

/// Key of a call that names none.
const DEFAULT_KEY: &str = "key";

/// The files of the corpus.
const FILES: [(&str, &str); 2] = [
    ("token_bucket.toml", include_str!("token_bucket.toml")),
    ("clock_and_change.toml", include_str!("clock_and_change.toml")),
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
    expect: String,
    #[serde(default)]
    remaining: Option<u64>,
    #[serde(default)]
    retry_after: Option<u64>,
}

const fn one() -> u64 {
    1
}

/// What a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passes.
    Allowed,
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
    /// What must come out.
    pub outcome: Outcome,
    /// Tokens left, where the case says so.
    pub remaining: Option<u64>,
    /// Microseconds to wait, where the case says so.
    pub retry_after: Option<u64>,
}

/// What an engine answered to an arrival.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Whether it passed.
    pub outcome: Outcome,
    /// Tokens left, if the engine says so.
    pub remaining: Option<u64>,
    /// The wait, in the engine's unit.
    pub retry_after: Option<Wait>,
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
    pub fn differences(
        &self,
        mut decide: impl FnMut(&Arrival) -> Result<Seen>,
    ) -> Result<Vec<String>> {
        let mut differences = Vec::new();
        for (number, arrival) in self.arrivals()?.iter().enumerate() {
            let seen = decide(arrival).with_context(|| format!("{}, call {number}", self.name))?;
            if !arrival.agrees_with(seen) {
                differences
                    .push(format!("{}, call {number}: {arrival:?}\n  saw {seen:?}", self.name));
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
        let [step, parts] = self.every.unwrap_or([0, 1]);
        let arrival = |(k, outcome): (u64, Outcome)| {
            let offset = k.checked_mul(step).and_then(|micros| micros.checked_div(parts));
            let now = offset.and_then(|offset| START.checked_add(self.at)?.checked_add(offset));
            let last = k == self.first + self.times - 1;
            Ok(Arrival {
                phase,
                now: now.context("a time is out of range")?,
                key: self.key.clone().unwrap_or_else(|| DEFAULT_KEY.into()),
                outcome,
                remaining: self.remaining.filter(|_| last),
                retry_after: self.retry_after.filter(|_| last),
            })
        };
        (self.first..).zip(outcomes).map(arrival).collect()
    }
}

impl Arrival {
    fn agrees_with(&self, seen: Seen) -> bool {
        let remaining = match (self.remaining, seen.remaining) {
            (Some(expected), Some(seen)) => expected == seen,
            _ => true,
        };
        let retry_after = match (self.retry_after, seen.retry_after) {
            (Some(expected), Some(Wait::Micros(micros))) => expected == micros,
            (Some(expected), Some(Wait::Seconds(seconds))) => {
                expected.div_ceil(1_000_000) == seconds
            }
            (Some(_), None) => false,
            (None, _) => true,
        };
        self.outcome == seen.outcome && remaining && retry_after
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
        assert!(corpus().unwrap().len() >= 20);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let error = case(r#"{ at = 0, expcet = "A", expect = "A" }"#).unwrap_err();
        assert!(format!("{error:#}").contains("expcet"), "{error:#}");
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
    fn a_difference_is_reported() {
        let cases = case(r#"{ at = 0, expect = "A", remaining = 3 }"#).unwrap();
        let seen = |outcome, remaining| Seen { outcome, remaining, retry_after: None };
        for (seen, count) in [
            (seen(Outcome::Allowed, Some(3)), 0),
            (seen(Outcome::Allowed, Some(2)), 1),
            (seen(Outcome::Refused, Some(3)), 1),
        ] {
            assert_eq!(cases[0].differences(|_| Ok(seen)).unwrap().len(), count);
        }
    }
}
