//! `28A 110(R 2A) R A`: outcomes as runs.

use super::Outcome;
use anyhow::{Context, Result, bail, ensure};

/// More outcomes than any case needs; keeps a slip of the pen from filling the memory.
const MOST: usize = 1_000_000;

/// The outcomes that a text stands for.
pub(super) fn parse(text: &str) -> Result<Vec<Outcome>> {
    let mut rest = text;
    let outcomes = sequence(&mut rest)?;
    ensure!(rest.is_empty(), "{text:?}: unexpected {rest:?}");
    Ok(outcomes)
}

fn sequence(rest: &mut &str) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    loop {
        *rest = rest.trim_start();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (count, after) = rest.split_at(digits);
        let Some(symbol) = after.chars().next().filter(|c| *c != ')') else {
            ensure!(count.is_empty(), "{count} of what?");
            return Ok(outcomes);
        };
        *rest = &after[symbol.len_utf8()..];
        let item = item(symbol, rest)?;
        let count: usize = if count.is_empty() { 1 } else { count.parse()? };
        ensure!(item.len().saturating_mul(count) <= MOST, "more than {MOST} outcomes");
        outcomes.extend(item.repeat(count));
    }
}

fn item(symbol: char, rest: &mut &str) -> Result<Vec<Outcome>> {
    Ok(match symbol {
        'A' => vec![Outcome::Allowed],
        'D' => vec![Outcome::Delayed],
        'R' => vec![Outcome::Refused],
        'N' => vec![Outcome::Never],
        '(' => {
            let group = sequence(rest)?;
            *rest = rest.strip_prefix(')').context("a bracket is not closed")?;
            group
        }
        other => bail!("{other:?} is none of A, D, R, N and brackets"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Outcome::*, *};

    #[test]
    fn runs_and_brackets_multiply() {
        assert_eq!(
            parse("2A R 2(N A) D").unwrap(),
            [Allowed, Allowed, Refused, Never, Allowed, Never, Allowed, Delayed]
        );
        assert_eq!(parse("28A 110(R 2A) R A").unwrap().len(), 360);
    }

    #[test]
    fn what_is_no_run_is_refused() {
        for text in ["3", "A)", "(A", "X", "2000000A", "A 1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
