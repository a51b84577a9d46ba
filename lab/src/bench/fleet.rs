//! How many requests a second fleets of one to eight Envoys answer that share one Redis, beside the
//! same Envoys without the filter, who takes how much of the processor for that, and what by these
//! figures limits them on this machine.
//!
//! Two fleets run all the time and have nothing to do while they are not asked; a smaller one is a
//! part of the larger. The load is from one thread of this process, and its time is told too.

use std::{net::SocketAddr, path::Path, thread::available_parallelism, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tokio::task::block_in_place;

use super::{
    envoys::version,
    float,
    generator::{self, Pace, Plan},
    machine, median, progress,
    rows::{self, KEY, LISTENER, PER_SECOND},
    stores::{Behind, Servers, Way, generous},
    thousands, usage,
};
use crate::{config::Config, envoy, fleet::Fleet};

const SIZES: [usize; 4] = [1, 2, 4, 8];
const LARGEST: usize = 8;
/// Over all Envoys of a fleet.
const CONNECTIONS: usize = 32;

/// What to run.
pub(super) struct Options<'a> {
    pub(super) envoy: &'a Path,
    pub(super) filter: &'a Path,
    pub(super) servers: Servers<'a>,
    /// Whether to look only if it works.
    pub(super) quick: bool,
}

/// Measures fleets of every size, with and without the filter, and prints one table.
pub(super) async fn run(options: &Options<'_>) -> Result<()> {
    let (rounds, each) = match options.quick {
        true => (1, Duration::from_millis(500)),
        false => (5, Duration::from_secs(2)),
    };
    let behind = Behind::start(Way::Direct, options.servers).await?;
    let mut weir = Way::Direct.config(options.filter, &generous(KEY, PER_SECOND))?;
    Way::Direct.be_patient(&mut weir)?;
    Way::Direct.lead_to(&mut weir, behind.address()?)?;
    progress("  starting");
    let plain = start(options.envoy, &rows::plain()?.config).await?;
    let weir = start(options.envoy, &weir).await?;
    let mut sides = [Side::new(plain, None), Side::new(weir, Some(behind))];

    println!(
        "envoy {}, one worker each; {}, shared with the load; {CONNECTIONS} connections, {} keys, \
         as fast as it goes; {rounds} rounds of {each:?} for each row, in turn; medians",
        version(sides[0].fleet.gateways().first().context("no Envoy")?).await?,
        machine(),
        thousands(rows::CALLERS.into()),
    );
    let requests = rows::requests();
    for side in &mut sides {
        side.ask(LARGEST, &requests, each / 2).context("warming up")?;
    }
    let [_, weir] = &sides;
    let before = unchecked(&weir.fleet).await?;
    for round in 0..rounds {
        println!("  round {} of {rounds}", round + 1);
        for (place, size) in SIZES.into_iter().enumerate() {
            for side in &mut sides {
                progress(&format!("  asking: {}", name(size, side.redis.is_some())));
                let sample = side.ask(size, &requests, each)?;
                side.samples.get_mut(place).context("a size")?.push(sample);
            }
        }
    }
    progress("");
    let [plain, weir] = sides.each_ref().map(Side::figures);
    print(&plain, &weir);
    let [_, side] = &sides;
    let unchecked = unchecked(&side.fleet).await?.saturating_sub(before);
    println!("not checked by the store: {} of {}", thousands(unchecked), thousands(side.answers));
    print_limit(&plain, &weir);
    Ok(())
}

async fn start(program: &Path, config: &Config) -> Result<Fleet> {
    Fleet::start(&envoy::Options { program, config, workers: 1 }, LARGEST).await
}

/// Limits that could not be checked so far.
async fn unchecked(fleet: &Fleet) -> Result<u64> {
    fleet.sum("wasmcustom.weir.unchecked").await
}

/// The Envoys with the filter, or without.
struct Side {
    fleet: Fleet,
    redis: Option<Behind>,
    /// Of each size, what came of each round.
    samples: [Vec<Sample>; SIZES.len()],
    /// In all rounds.
    answers: u64,
}

/// What came of a round.
#[derive(Clone, Copy)]
struct Sample {
    per_second: f64,
    used: Used,
    /// Cores that nobody used.
    idle: f64,
}

/// Microseconds of processor time for a request.
#[derive(Clone, Copy)]
struct Used {
    envoys: f64,
    redis: f64,
    load: f64,
}

impl Side {
    fn new(fleet: Fleet, redis: Option<Behind>) -> Self {
        Self { fleet, redis, samples: [const { Vec::new() }; SIZES.len()], answers: 0 }
    }

    /// Asks so many of the Envoys.
    fn ask(&mut self, size: usize, requests: &[Vec<u8>], duration: Duration) -> Result<Sample> {
        let targets = self.fleet.addresses(LISTENER)?;
        let targets: Vec<SocketAddr> = targets.into_iter().take(size).collect();
        let pace = Pace::Closed;
        let plan = Plan { targets: &targets, requests, connections: CONNECTIONS, duration, pace };
        let (idle, before) = (usage::idle()?, self.used(size)?);
        let report = block_in_place(|| generator::run(&plan))?;
        let (after, idle) = (self.used(size)?, usage::idle()?.saturating_sub(idle));
        let answers = u64::try_from(report.micros.len())?;
        ensure!(answers > 0, "no answer");
        ensure!(report.other == 0, "{} of {answers} answers are not 200", report.other);
        self.answers += answers;
        let each = |part: usize| {
            after[part].saturating_sub(before[part]).as_secs_f64() * 1e6 / float(answers)
        };
        Ok(Sample {
            per_second: float(answers) / report.took.as_secs_f64(),
            used: Used { envoys: each(0), redis: each(1), load: each(2) },
            idle: idle.as_secs_f64() / report.took.as_secs_f64(),
        })
    }

    /// Processor time so far of the Envoys that are asked, of Redis and of this process.
    fn used(&mut self, size: usize) -> Result<[Duration; 3]> {
        let mut envoys = Duration::ZERO;
        for gateway in self.fleet.gateways_mut().iter_mut().take(size) {
            envoys += usage::cpu(gateway.process().id())?;
        }
        let behind = self.redis.iter().flat_map(Behind::processes);
        let redis =
            behind.flat_map(|(_, processes)| processes).map(usage::cpu).sum::<Result<_>>()?;
        Ok([envoys, redis, usage::cpu(std::process::id())?])
    }

    fn figures(&self) -> [Figures; SIZES.len()] {
        let mut place = 0;
        SIZES.map(|size| {
            let samples = self.samples.get(place).map(Vec::as_slice).unwrap_or_default();
            place += 1;
            Figures::of(size, self.redis.is_some(), samples)
        })
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
struct Figures {
    size: usize,
    filtered: bool,
    per_second: f64,
    used: Used,
    idle: f64,
}

impl Figures {
    fn of(size: usize, filtered: bool, samples: &[Sample]) -> Self {
        let of =
            |number: fn(&Sample) -> f64| median(&samples.iter().map(number).collect::<Vec<_>>());
        Self {
            size,
            filtered,
            per_second: of(|sample| sample.per_second),
            used: Used {
                envoys: of(|sample| sample.used.envoys),
                redis: of(|sample| sample.used.redis),
                load: of(|sample| sample.used.load),
            },
            idle: of(|sample| sample.idle),
        }
    }

    /// Cores that the Envoys, Redis and the load have kept busy.
    fn cores(&self) -> [f64; 3] {
        let Used { envoys, redis, load } = self.used;
        [envoys, redis, load].map(|micros| micros * self.per_second / 1e6)
    }

    /// Cores that other processes of the machine have kept busy.
    fn others(&self, machine: usize) -> f64 {
        let ours: f64 = self.cores().iter().sum();
        (number(machine) - self.idle - ours).max(0.0)
    }

    /// The parts that take part.
    fn parts(&self) -> String {
        let cores = self.cores();
        let all: f64 = cores.iter().sum();
        let parts = ["Envoys", "Redis", "the load"].into_iter().zip(cores);
        let parts = parts.filter(|(name, _)| self.filtered || *name != "Redis");
        let parts = parts.map(|(name, cores)| format!("{name} {:.0} %", 100.0 * cores / all));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// What is at its end: the machine, or a part that has no more threads.
    /// Whoever else runs on the machine takes of it too, so that what is idle tells whether any is
    /// left.
    fn limit(&self, machine: usize) -> &'static str {
        const BUSY: f64 = 0.9;
        let is_busy = |busy: f64, cores: usize| busy >= BUSY * number(cores);
        let [envoys, redis, load] = self.cores();
        if is_busy(number(machine) - self.idle, machine) {
            "the processor"
        } else if is_busy(redis, 1) {
            "Redis, which has one thread"
        } else if is_busy(load, 1) {
            "the load, which has one thread"
        } else if is_busy(envoys, self.size) {
            "the Envoys' workers"
        } else {
            "no part by itself: they wait for one another"
        }
    }
}

fn name(size: usize, filtered: bool) -> String {
    let envoys = if size == 1 { "Envoy" } else { "Envoys" };
    format!("{size} {envoys}, {}", if filtered { Way::Direct.name() } else { rows::PLAIN })
}

fn number(count: usize) -> f64 {
    u64::try_from(count).map_or(f64::NAN, float)
}

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

const NAME: usize = 28;

fn print(plain: &[Figures], weir: &[Figures]) {
    println!(
        "\n{:NAME$} {:>10} {:>6} {:>9} {:>8} {:>8} {:>8} {:>6} {:>6}",
        "", "requests/s", "ratio", "Envoys µs", "Redis µs", "load µs", "all µs", "cores", "idle"
    );
    for (plain, weir) in plain.iter().zip(weir) {
        for row in [plain, weir] {
            let Used { envoys, redis, load } = row.used;
            println!(
                "{:NAME$} {:>10.0} {:>6.2} {envoys:>9.1} {redis:>8.1} {load:>8.1} {:>8.1} {:>6.2} \
                 {:>6.2}",
                name(row.size, row.filtered),
                row.per_second,
                row.per_second / plain.per_second,
                envoys + redis + load,
                row.cores().iter().sum::<f64>(),
                row.idle,
            );
        }
    }
    println!(
        "µs are processor time for one request; cores: how many of {} these together kept busy; \
         idle: how many nobody did; ratio: to {} in as many Envoys",
        cores(),
        rows::PLAIN,
    );
}

/// Says what limits the largest fleet, by the figures.
fn print_limit(plain: &[Figures], weir: &[Figures]) {
    let (Some(plain), Some(weir)) = (plain.last(), weir.last()) else { return };
    println!("\nwhat limits them here");
    for row in [plain, weir] {
        println!(
            "  {}: {}; {:.2} of {} cores: {}; others {:.2}, nobody {:.2}",
            name(row.size, row.filtered),
            row.limit(cores()),
            row.cores().iter().sum::<f64>(),
            cores(),
            row.parts(),
            row.others(cores()),
            row.idle,
        );
    }
    println!(
        "  one Redis, at {:.1} µs a request: at its end at {} requests/s",
        weir.used.redis,
        at_its_end(weir.used.redis),
    );
}

/// Requests a second that so many microseconds of one thread are enough for.
fn at_its_end(micros: f64) -> String {
    let text = format!("{:.0}", 1e6 / micros);
    text.parse().map_or(text, thousands)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a machine with 16 cores.
    fn figures(size: usize, cores: [f64; 3]) -> Figures {
        // At a million requests a second a microsecond for each is a core.
        let [envoys, redis, load] = cores;
        let idle = 16.0 - envoys - redis - load;
        Figures { size, filtered: true, per_second: 1e6, used: Used { envoys, redis, load }, idle }
    }

    #[test]
    fn what_is_at_its_end_limits() {
        for (size, cores, limit) in [
            (16, [14.2, 0.9, 0.9], "the processor"),
            (8, [3.0, 0.95, 0.5], "Redis"),
            (8, [3.0, 0.5, 0.99], "the load"),
            (1, [0.95, 0.2, 0.3], "the Envoys"),
            (8, [3.0, 0.5, 0.5], "no part"),
        ] {
            let found = figures(size, cores).limit(16);
            assert!(found.starts_with(limit), "{found}, not {limit}");
        }
        let beside_others = Figures { idle: 0.5, ..figures(8, [3.0, 0.5, 0.5]) };
        assert_eq!(beside_others.limit(16), "the processor");
        assert!((beside_others.others(16) - 11.5).abs() < 1e-9);
    }

    #[test]
    fn the_parts_are_told_that_take_part() {
        let figures = figures(8, [1.0, 0.5, 0.5]);
        assert_eq!(figures.parts(), "Envoys 50 %, Redis 25 %, the load 25 %");
        let plain = Figures { filtered: false, ..figures };
        assert!(!plain.parts().contains("Redis"));
        assert_eq!(
            (name(1, false), at_its_end(12.5)),
            ("1 Envoy, no filter".into(), "80,000".into())
        );
    }
}
