//! What a request costs in Envoy with each way of limiting it: how many a second one worker
//! answers, how long they take, and its processor time. [`rows`] says what the ways are.
//!
//! All Envoys run at once, each with one worker, and are asked in turn; those that are not asked
//! have nothing to do.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tokio::task::block_in_place;

use super::{
    float,
    generator::{self, Pace, Plan},
    machine, median, progress,
    rows::{self, Modules, Row},
    stores::{Behind, Servers},
    thousands, usage,
};
use crate::envoy::{self, Envoy};

const CONNECTIONS: usize = 32;
/// Requests a second of the runs that compare latencies.
const PACE: u32 = 3_000;

/// What to run.
pub(super) struct Options<'a> {
    pub(super) envoy: &'a Path,
    pub(super) modules: Modules<'a>,
    pub(super) servers: Servers<'a>,
    /// Whether to look only if it works.
    pub(super) quick: bool,
}

/// How often and how long each row is asked.
struct Effort {
    rounds: usize,
    each: Duration,
}

/// Measures every row and prints two tables.
pub(super) async fn run(options: &Options<'_>) -> Result<()> {
    let effort = match options.quick {
        true => Effort { rounds: 1, each: Duration::from_millis(500) },
        false => Effort { rounds: 9, each: Duration::from_secs(2) },
    };
    let mut running = Vec::new();
    for row in rows::all(options.modules, options.servers).await? {
        running.push(Running::start(options.envoy, row).await?);
    }
    let version = version(&running.first().context("no row")?.envoy).await?;
    println!(
        "envoy {version}, one worker each; {}, shared with the load; {CONNECTIONS} connections, {} \
         keys; {} rounds of {:?} for each row, in turn; medians",
        machine(),
        thousands(rows::CALLERS.into()),
        effort.rounds,
        effort.each,
    );
    let requests = rows::requests();
    for row in &mut running {
        row.ask(&requests, Pace::Closed, effort.each / 4).context("warming up")?;
        row.unchecked = unchecked(&row.envoy).await?;
    }
    for (pace, what) in [(Pace::Closed, "as fast as it goes"), (Pace::PerSecond(PACE), "paced")] {
        for round in 0..effort.rounds {
            println!("  {what}, round {} of {}", round + 1, effort.rounds);
            // Each row comes first in some round.
            let first = round % running.len();
            for place in (first..running.len()).chain(0..first) {
                let row = running.get_mut(place).context("a row")?;
                let sample = row.ask(&requests, pace, effort.each);
                let sample = sample.with_context(|| row.state())?;
                row.samples(pace).push(sample);
            }
        }
    }
    progress("");
    print_closed(&running);
    print_paced(&running);
    print_unchecked(&running).await
}

/// A row that runs, and what came of each round.
struct Running {
    name: &'static str,
    envoy: Envoy,
    behind: Behind,
    /// Unchecked limits after the warming up.
    unchecked: u64,
    closed: Vec<Sample>,
    paced: Vec<Sample>,
}

/// What came of one round.
struct Sample {
    answers: u64,
    per_second: f64,
    /// Microseconds.
    p50: f64,
    p99: f64,
    /// Microseconds of processor time for a request: Envoy's, and those of what stands behind it,
    /// in the order of its processes.
    cpu: f64,
    others: Vec<f64>,
}

impl Running {
    async fn start(program: &Path, row: Row) -> Result<Self> {
        progress(&format!("  starting: {}", row.name));
        let options = envoy::Options { program, config: &row.config, workers: 1 };
        let envoy = Envoy::start(&options).await.context(row.name)?;
        let Row { name, behind, .. } = row;
        Ok(Self { name, envoy, behind, unchecked: 0, closed: Vec::new(), paced: Vec::new() })
    }

    /// What is known of a row that went wrong.
    fn state(&mut self) -> String {
        let ended = match self.envoy.process().exited() {
            Ok(Some(status)) => format!("its Envoy has ended, {status}"),
            _ => "its Envoy runs".to_owned(),
        };
        format!("{}: {ended}; its log:\n{}", self.name, self.envoy.log())
    }

    fn samples(&mut self, pace: Pace) -> &mut Vec<Sample> {
        match pace {
            Pace::Closed => &mut self.closed,
            Pace::PerSecond(_) => &mut self.paced,
        }
    }

    fn ask(&mut self, requests: &[Vec<u8>], pace: Pace, duration: Duration) -> Result<Sample> {
        progress(&format!("  asking: {}", self.name));
        let target = self.envoy.address(rows::LISTENER)?;
        let plan = Plan { targets: &[target], requests, connections: CONNECTIONS, duration, pace };
        let before = self.used()?;
        let report = block_in_place(|| generator::run(&plan))?;
        let after = self.used()?;
        let answers = u64::try_from(report.micros.len())?;
        ensure!(answers > 0, "no answer");
        ensure!(report.other == 0, "{} of {answers} answers are not 200", report.other);
        let each = |(before, after): (Duration, Duration)| {
            after.saturating_sub(before).as_secs_f64() * 1e6 / float(answers)
        };
        let mut spent = before.into_iter().zip(after).map(each);
        Ok(Sample {
            answers,
            per_second: float(answers) / report.took.as_secs_f64(),
            p50: float(report.within(500)),
            p99: float(report.within(990)),
            cpu: spent.next().context("no Envoy")?,
            others: spent.collect(),
        })
    }

    /// Processor time of Envoy and of the processes behind it, by their names.
    fn used(&mut self) -> Result<Vec<Duration>> {
        let envoy = vec![self.envoy.process().id()];
        let others = self.behind.processes().into_iter().map(|(_, processes)| processes);
        let all = std::iter::once(envoy).chain(others);
        all.map(|processes| processes.into_iter().map(usage::cpu).sum()).collect()
    }
}

/// Limits that could not be checked so far.
async fn unchecked(envoy: &Envoy) -> Result<u64> {
    Ok(envoy.stat("wasmcustom.weir.unchecked").await?.unwrap_or(0))
}

/// The version that an Envoy says it has.
pub(super) async fn version(envoy: &Envoy) -> Result<String> {
    let info: serde_json::Value = serde_json::from_str(&envoy.admin_get("/server_info").await?)?;
    let version = info["version"].as_str().context("no version")?;
    Ok(version.split('/').nth(1).unwrap_or(version).to_owned())
}

const NAME: usize = 48;

fn print_closed(rows: &[Running]) {
    println!(
        "\n{:NAME$} {:>10} {:>6} {:>8} {:>8} {:>8} {:>6}",
        "as fast as it goes", "requests/s", "ratio", "p50 µs", "p99 µs", "CPU µs", "ratio"
    );
    let plain = rows.first().map_or(&[][..], |row| row.closed.as_slice());
    for row in rows {
        let per_second = of(&row.closed, |sample| sample.per_second);
        let cpu = of(&row.closed, |sample| sample.cpu);
        println!(
            "{:NAME$} {per_second:>10.0} {:>6.2} {:>8.0} {:>8.0} {cpu:>8.1} {:>6.2}{}",
            row.name,
            against(&row.closed, plain, |sample| sample.per_second),
            of(&row.closed, |sample| sample.p50),
            of(&row.closed, |sample| sample.p99),
            against(&row.closed, plain, |sample| sample.cpu),
            others(row, &row.closed),
        );
    }
    println!(
        "ratios are to {} in the same round; CPU is Envoy's for one request, then others'",
        rows::PLAIN
    );
}

fn others(row: &Running, samples: &[Sample]) -> String {
    let behind = row.behind.processes().into_iter().enumerate();
    let each = behind.map(|(place, (name, _))| {
        let spent = of(samples, |sample| sample.others.get(place).copied().unwrap_or(f64::NAN));
        format!("  {name} {spent:.1}")
    });
    each.collect()
}

/// Says that the store has decided about every request, or how often it has not.
async fn print_unchecked(rows: &[Running]) -> Result<()> {
    let mut text = Vec::new();
    for row in rows.iter().filter(|row| !row.behind.processes().is_empty()) {
        let answers = [&row.closed, &row.paced].map(|samples| samples.iter());
        let answers: u64 = answers.into_iter().flatten().map(|sample| sample.answers).sum();
        let count = unchecked(&row.envoy).await? - row.unchecked;
        text.push(format!("{} of {} ({})", thousands(count), thousands(answers), row.name));
    }
    println!("not checked by the store: {}", text.join(", "));
    Ok(())
}

fn print_paced(rows: &[Running]) {
    println!(
        "\n{:NAME$} {:>8} {:>8} {:>10} {:>10} {:>8}",
        format!("at {} requests/s", thousands(PACE.into())),
        "p50 µs",
        "p99 µs",
        "added p50",
        "added p99",
        "CPU µs"
    );
    let plain = rows.first().map_or(&[][..], |row| row.paced.as_slice());
    for row in rows {
        println!(
            "{:NAME$} {:>8.0} {:>8.0} {:>10.0} {:>10.0} {:>8.1}{}",
            row.name,
            of(&row.paced, |sample| sample.p50),
            of(&row.paced, |sample| sample.p99),
            added(&row.paced, plain, |sample| sample.p50),
            added(&row.paced, plain, |sample| sample.p99),
            of(&row.paced, |sample| sample.cpu),
            others(row, &row.paced),
        );
    }
    println!(
        "times count from when a request was due; added is to {} in the same round",
        rows::PLAIN
    );
}

fn of(samples: &[Sample], number: impl Fn(&Sample) -> f64) -> f64 {
    median(&samples.iter().map(number).collect::<Vec<_>>())
}

/// The median difference of rounds that ran beside one another.
fn added(samples: &[Sample], plain: &[Sample], number: impl Fn(&Sample) -> f64) -> f64 {
    let pairs = samples.iter().zip(plain);
    median(&pairs.map(|(sample, plain)| number(sample) - number(plain)).collect::<Vec<_>>())
}

/// The median ratio of such rounds.
fn against(samples: &[Sample], plain: &[Sample], number: impl Fn(&Sample) -> f64) -> f64 {
    let pairs = samples.iter().zip(plain);
    median(&pairs.map(|(sample, plain)| number(sample) / number(plain)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(p50: f64) -> Sample {
        Sample { answers: 1, per_second: 1.0, p50, p99: 9.0, cpu: 5.0, others: Vec::new() }
    }

    #[test]
    fn what_is_added_is_compared_round_by_round() {
        let plain = [sample(100.0), sample(900.0), sample(100.0)];
        let row = [sample(110.0), sample(912.0), sample(111.0)];
        assert!((added(&row, &plain, |sample| sample.p50) - 11.0).abs() < 1e-9);
        assert!((against(&row, &plain, |sample| sample.p50) - 1.1).abs() < 1e-9);
        assert!((of(&row, |sample| sample.p50) - 111.0).abs() < 1e-9);
    }
}
