//! Quantities as text: rates, lengths of time, shares.

use super::shape::quoted;
use crate::{
    bounds::{self, Bound},
    units::{Micros, Rate},
};
use alloc::{
    format,
    string::{String, ToString},
};

/// Units of time, by name or behind a number, in microseconds. The longest first.
const UNITS: [(&str, &str, u64); 5] = [
    ("day", "d", 86_400_000_000),
    ("hour", "h", 3_600_000_000),
    ("minute", "m", 60_000_000),
    ("second", "s", 1_000_000),
    ("millisecond", "ms", 1_000),
];

/// A rate of the form `N/unit` or `N/<number><unit>`.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let form = || {
        format!(
            "must be like \"1000/minute\" or \"5/90s\" (units: ms, s, m, h, d); found {}",
            quoted(text),
        )
    };
    let (count, window) = text.split_once('/').ok_or_else(form)?;
    let count = number(count).ok_or_else(form)?;
    let named = UNITS.iter().find(|(name, _, _)| *name == window);
    let window = named.map(|(_, _, micros)| *micros).or_else(|| micros(window));
    let window = window.ok_or_else(form)?;
    Rate::new(count, Micros::new(window)).ok_or_else(|| {
        format!(
            "must have a count of {} and a window of {}; found {}",
            bounds::RATE_COUNT,
            bounds::WINDOW,
            quoted(text),
        )
    })
}

/// A length of time like `10ms` or `90s`, in a bound of microseconds.
pub(super) fn duration(text: &str, bound: &Bound) -> Result<Micros, String> {
    let allowed = micros(text).filter(|micros| bound.contains(*micros)).map(Micros::new);
    allowed.ok_or_else(|| {
        format!("must be a time like \"10ms\" or \"90s\", {bound}; found {}", quoted(text))
    })
}

/// A share like `20%`.
pub(super) fn percent(text: &str) -> Result<u64, String> {
    let percent = text.strip_suffix('%').and_then(number);
    percent.filter(|percent| bounds::PERCENT.contains(*percent)).ok_or_else(|| {
        format!("must be a share like \"20%\", {}; found {}", bounds::PERCENT, quoted(text))
    })
}

/// The text of a rate: by a unit's name where the window is one.
pub(super) fn rate_text(rate: Rate) -> String {
    let window = rate.window();
    let named = UNITS.iter().find(|(_, _, micros)| *micros == window.get());
    let window = named.map_or_else(|| duration_text(window), |(name, _, _)| (*name).to_string());
    format!("{}/{window}", rate.count())
}

/// The text of a length of time in the longest unit that it is a whole number of. Every length that
/// can be written is a whole number of milliseconds.
pub(super) fn duration_text(length: Micros) -> String {
    let whole = |unit: &&(&str, &str, u64)| length.get().is_multiple_of(unit.2);
    let unit = UNITS.iter().find(whole).filter(|_| length > Micros::ZERO);
    let (suffix, micros) = unit.map_or(("ms", 1_000), |(_, suffix, micros)| (*suffix, *micros));
    format!("{}{suffix}", length.get().checked_div(micros).unwrap_or(0))
}

fn micros(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let suffix = text.strip_prefix(digits)?;
    let (_, _, micros) = UNITS.iter().find(|(_, known, _)| *known == suffix)?;
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
        rate(text).ok().map(|rate| (rate.count(), rate.window().get()))
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
            let message = rate(text).unwrap_err();
            assert!(message.contains(&quoted(text)), "{message}");
        }
    }

    #[test]
    fn a_length_of_time_has_a_unit_and_stays_in_its_bound() {
        assert_eq!(duration("10ms", &bounds::TIMEOUT), Ok(Micros::new(10_000)));
        for text in ["", "10", "ms", "10 ms", "0s", "11s", "1.5s", "-1s"] {
            assert!(duration(text, &bounds::TIMEOUT).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_whole_percent() {
        assert_eq!(percent("20%"), Ok(20));
        for text in ["20", "%", "101%", "2.5%", "-1%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts_come_back_in_the_longest_unit() {
        for text in ["1000/minute", "5/90s", "1/1500ms", "7/366d", "3/2h"] {
            assert_eq!(rate_text(rate(text).unwrap()), text);
        }
        assert_eq!(rate_text(rate("3/60s").unwrap()), "3/minute");
        assert_eq!(duration_text(Micros::ZERO), "0ms");
    }
}
