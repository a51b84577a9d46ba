//! Numbers as the page writes them.

/// "1 token", "2 tokens".
#[must_use]
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Microseconds as seconds with three decimals, to the nearest: `4.667`.
#[must_use]
pub fn seconds(micros: u64) -> String {
    let millis = micros.saturating_add(500) / 1_000;
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

/// Thousandths of a token with one decimal, rounded down: 0.96 of a token must not read as one.
#[must_use]
pub fn tokens(milli: u64) -> String {
    format!("{}.{}", milli / 1_000, milli % 1_000 / 100)
}

/// A share in whole percent, to the nearest; `None` of nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> Option<u64> {
    part.saturating_mul(200).saturating_add(whole).checked_div(whole.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_to_the_nearest_millisecond() {
        assert_eq!(seconds(4_666_666), "4.667");
        assert_eq!(seconds(60_000_000), "60.000");
    }

    #[test]
    fn a_part_of_a_token_is_never_rounded_up_to_one() {
        assert_eq!(tokens(999), "0.9");
        assert_eq!(tokens(10_000), "10.0");
    }

    #[test]
    fn shares_round_to_the_nearest_percent() {
        assert_eq!(percent(1, 3), Some(33));
        assert_eq!(percent(2, 3), Some(67));
        assert_eq!(percent(0, 5), Some(0));
        assert_eq!(percent(0, 0), None);
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "token", "tokens"), "1 token");
        assert_eq!(count(0, "token", "tokens"), "0 tokens");
    }
}
