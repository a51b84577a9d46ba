//! Measurements of running parts, each beside what it is compared with, in one run and in turn, so
//! that a machine that gets slower meanwhile slows all alike.
//!
//! What is printed says how it was come by. No time is ever judged: a run fails only if something
//! did not work, or was counted wrongly.

pub mod command;
mod contenders;
mod envoys;
mod fleet;
mod generator;
mod outage;
mod peers;
mod pipeline;
mod rows;
mod scripts;
mod soak;
mod stores;
mod usage;

use std::{
    io::{IsTerminal as _, Write as _},
    thread::available_parallelism,
};

/// The middle one of some numbers; the mean of the two middle ones of an even number of them.
fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => f64::NAN,
    }
}

/// What is measured on, and how busy others keep it: its load before the measurement.
fn machine() -> String {
    let cores = available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    match load.split_whitespace().next() {
        Some(load) => format!("{cores} cores, load {load} before"),
        None => format!("{cores} cores"),
    }
}

/// What is being done, on a line that the next replaces; nothing where nobody looks at a terminal.
fn progress(text: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        // Progress is worth no failure.
        let _ = write!(err, "\r\x1b[K{text}");
        let _ = err.flush();
    }
}

/// A whole number with its thousands apart.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The nearest float, for numbers that are only counted and averaged.
#[allow(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!([median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])], [2.0, 2.5]);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn thousands_are_apart() {
        let texts = [0, 999, 1_000, 1_234_567].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }
}
