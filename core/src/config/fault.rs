//! What is wrong with a policy, told so that it can be mended.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::fmt;

/// One thing that is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: a path from the policy's root such as `limits[0].rate`; empty for the whole.
    pub path: String,
    /// What was found there and what is allowed.
    pub message: String,
}

/// All that is wrong with a policy; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// The faults, in the order in which they stand in the policy.
    #[must_use]
    pub fn as_slice(&self) -> &[Fault] {
        &self.0
    }

    /// Faults that someone else found, or `None` if there are none.
    #[must_use]
    pub fn of(faults: Vec<Fault>) -> Option<Self> {
        if faults.is_empty() { None } else { Some(Self(faults)) }
    }

    pub(super) fn one(path: &str, message: String) -> Self {
        Self(vec![Fault { path: path.to_string(), message }])
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the policy" } else { &self.path };
        write!(f, "{path} {}", self.message)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} {} in the policy:", if count == 1 { "fault" } else { "faults" })?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl core::error::Error for Faults {}

/// Gathers faults while a policy is read.
#[derive(Default)]
pub(super) struct Gathering {
    faults: Vec<Fault>,
}

impl Gathering {
    pub(super) fn add(&mut self, path: &str, message: impl Into<String>) {
        self.faults.push(Fault { path: path.to_string(), message: message.into() });
    }

    /// Notes the fault of a failed reading, and goes on without the value.
    pub(super) fn keep<T>(&mut self, path: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|message| self.add(path, message)).ok()
    }

    /// The value that was read, if nothing was wrong and it is complete.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, Faults> {
        match value {
            Some(value) if self.faults.is_empty() => Ok(value),
            _ if self.faults.is_empty() => Err(Faults::one("", "is incomplete".into())),
            _ => Err(Faults(self.faults)),
        }
    }
}

/// `; did you mean "rate"?` where one of the known names is close to what was written, else
/// nothing.
pub(super) fn hint(written: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|name| (distance(written, name), name)).min();
    match nearest {
        Some((0..=2, name)) => format!("; did you mean \"{name}\"?"),
        _ => String::new(),
    }
}

/// How many letters must be added, dropped or changed to make one word of the other (Levenshtein).
/// Words longer than any known name count as far away, which bounds the work.
fn distance(written: &str, name: &str) -> usize {
    if written.len() > name.len().saturating_add(2) {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (i, a) in written.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i.saturating_add(1);
        for (cell, b) in row.iter_mut().skip(1).zip(name.bytes()) {
            let change = diagonal.saturating_add(usize::from(a != b));
            diagonal = *cell;
            left = change.min(left.saturating_add(1)).min(cell.saturating_add(1));
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i.saturating_add(1);
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_words_counts_their_edits() {
        for (a, b, edits) in [
            ("rate", "rate", 0),
            ("rte", "rate", 1),
            ("rtae", "rate", 2),
            ("", "key", 3),
            ("burts", "burst", 2),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }

    #[test]
    fn a_hint_is_given_for_what_is_close_and_for_nothing_else() {
        assert_eq!(hint("brust", &["rate", "burst"]), "; did you mean \"burst\"?");
        assert_eq!(hint("colour", &["rate", "burst"]), "");
    }
}
