//! `"1000/minute"`, `"5/90s"`: a rate as text.

use super::shape::quoted;
use crate::{
    bounds,
    units::{Micros, Rate},
};
use alloc::{format, string::String};

/// Units of a window, by name or behind a number, in microseconds.
const UNITS: [(&str, &str, u64); 5] = [
    ("millisecond", "ms", 1_000),
    ("second", "s", 1_000_000),
    ("minute", "m", 60_000_000),
    ("hour", "h", 3_600_000_000),
    ("day", "d", 86_400_000_000),
];

/// A rate of the form `N/unit` or `N/<number><unit>`.
pub(super) fn parse(text: &str) -> Result<Rate, String> {
    let form = || {
        format!(
            "must be like \"1000/minute\" or \"5/90s\" (units: ms, s, m, h, d); found {}",
            quoted(text)
        )
    };
    let (count, window) = text.split_once('/').ok_or_else(form)?;
    let count = number(count).ok_or_else(form)?;
    let window = window_micros(window).ok_or_else(form)?;
    Rate::new(count, Micros::new(window)).ok_or_else(|| {
        format!(
            "must have a count of {} and a window of {}; found {}",
            bounds::RATE_COUNT,
            bounds::WINDOW,
            quoted(text),
        )
    })
}

fn window_micros(text: &str) -> Option<u64> {
    if let Some((_, _, micros)) = UNITS.iter().find(|(name, _, _)| *name == text) {
        return Some(*micros);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let (_, _, micros) =
        UNITS.iter().find(|(_, suffix, _)| text.strip_prefix(digits) == Some(suffix))?;
    number(digits)?.checked_mul(*micros)
}

/// A number in plain digits: no sign, no blank, no fraction.
fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::rust_2024::*;

    fn parts(text: &str) -> Option<(u64, u64)> {
        parse(text).ok().map(|rate| (rate.count(), rate.window().get()))
    }

    #[test]
    fn a_rate_is_a_count_per_unit_or_per_length_of_time() {
        assert_eq!(parts("1000/minute"), Some((1000, 60_000_000)));
        assert_eq!(parts("5/90s"), Some((5, 90_000_000)));
        assert_eq!(parts("1/1ms"), Some((1, 1_000)));
        assert_eq!(parts("7/366d"), Some((7, 31_622_400_000_000)));
        assert_eq!(parts("0/second"), Some((0, 1_000_000)));
    }

    #[test]
    fn what_is_no_rate_is_refused_and_shown() {
        for text in [
            "",
            "/",
            "10",
            "10/",
            "/minute",
            "-1/minute",
            "1.5/minute",
            "10/fortnight",
            "10/0s",
            "10/367d",
            "1/s",
            "+1/minute",
            " 1/minute",
            "1/1",
            "1/1min",
            "99999999999999999999/second",
            "1000000001/second",
            "1/99999999999999999999d",
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(&quoted(text)), "{message}");
        }
    }
}
