//! `cargo xtask bench`: measurements, both sides in one run, and their ratios.

mod lab;

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::{flags::Subject, run, workspace::Workspace};

/// Checks in one iteration of `core/benches/decide.rs`.
const CHECKS: u64 = 1_000;

/// Measures a subject and prints what came out.
pub(crate) fn command(workspace: &Workspace, subject: Subject) -> Result<ExitCode> {
    match subject {
        Subject::Core => core(workspace)?,
        Subject::Scripts { keys, quick } => lab::scripts(workspace, keys, quick)?,
        Subject::Redis { quick } => lab::redis(workspace, quick)?,
        Subject::Fleet { quick } => lab::fleet(workspace, quick)?,
        Subject::Outage { quick } => lab::outage(workspace, quick)?,
        Subject::Soak { minutes } => lab::soak(workspace, minutes)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn core(workspace: &Workspace) -> Result<()> {
    println!(
        "one check of a token bucket, single thread, median of 100 rounds of {CHECKS} checks\n"
    );
    let table = run::quiet(&mut workspace.cargo(["bench", "--quiet", "-p", "weir-benches"]))?;
    println!("{:<8} {:>8} {:>10} {:>8}", "", "weir", "governor", "ratio");
    for kind in ["direct", "keyed"] {
        let median = |side: &str| {
            let name = format!("{kind}_{side}");
            median(&table, &name).with_context(|| format!("{name} is not in:\n{table}"))
        };
        let (weir, governor) = (median("weir")?, median("governor")?);
        let ratio = percent(weir, governor);
        println!("{kind:<8} {:>8} {:>10} {ratio:>8}", nanos(weir), nanos(governor));
    }
    Ok(())
}

/// Picoseconds of one check by the median of a benchmark's line:
/// `├─ name  fastest │ slowest │ median │ mean │ samples │ iters`.
fn median(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find(|line| line.split_whitespace().any(|word| word == name))?;
    let mut words = line.split('│').nth(2)?.split_whitespace();
    let (number, unit) = (words.next()?, words.next()?);
    let picos = match unit {
        "ns" => 1_000,
        "µs" => 1_000_000,
        "ms" => 1_000_000_000,
        _ => return None,
    };
    Some(decimal(number)?.checked_mul(picos)? / 1_000 / CHECKS)
}

/// A decimal number in thousandths.
fn decimal(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let thousandths = format!("{fraction:0<3}");
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(thousandths.get(..3)?.parse().ok()?)
}

fn nanos(picos: u64) -> String {
    format!("{}.{} ns", picos / 1_000, picos % 1_000 / 100)
}

fn percent(part: u64, whole: u64) -> String {
    (part * 100).checked_div(whole).map_or_else(|| "–".to_owned(), |ratio| format!("{ratio} %"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
├─ direct_governor  18.22 µs      │ 26.43 µs      │ 18.26 µs      │ 18.48 µs      │ 100     │ 100
│                   54.86 Mitem/s │ 37.82 Mitem/s │ 54.74 Mitem/s │ 54.09 Mitem/s │         │
╰─ direct_weir      5.685 µs      │ 7.916 µs      │ 960.5 ns      │ 6.544 µs      │ 100     │ 100";

    #[test]
    fn the_median_of_a_line_is_read() {
        assert_eq!(median(TABLE, "direct_governor"), Some(18_260));
        assert_eq!(median(TABLE, "direct_weir"), Some(960));
        assert_eq!(median(TABLE, "keyed_weir"), None);
    }

    #[test]
    fn times_and_ratios_read_well() {
        assert_eq!((nanos(18_260), percent(6_000, 18_000)), ("18.2 ns".into(), "33 %".into()));
    }
}
