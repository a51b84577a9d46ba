//! Steady load for minutes, while Redis is killed and started again empty in each of them: whether
//! Envoy's memory grows, and whether what Redis has counted is what was let pass.
//!
//! The load runs a minute at a time. When it rests, every answer is known, so that the count of
//! Redis since it was started is certain but for the requests that nobody can tell of: those under
//! way when it was killed, and those that the store did not answer in time, which it may have
//! charged all the same.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{
    float,
    generator::{self, Answer, Pace, Plan},
    machine,
    rows::{KEY, LISTENER},
    stores::{Behind, Servers, Way},
    thousands, usage,
};
use crate::{
    envoy::{self, Envoy},
    eventually::reached,
};

const PER_SECOND: u32 = 2_000;
const CONNECTIONS: usize = 32;
const CALLERS: u32 = 300;
const MINUTE: Duration = Duration::from_secs(60);
/// When in each minute Redis is killed.
const KILLED: Duration = Duration::from_secs(5);

/// What to run.
pub(super) struct Options<'a> {
    pub(super) envoy: &'a Path,
    pub(super) filter: &'a Path,
    pub(super) servers: Servers<'a>,
    pub(super) minutes: u32,
}

/// Every caller has a long window; those of odd numbers, who ask for another path, a bucket too,
/// which refuses a part of their requests. What it refuses is charged to neither.
fn limits() -> Value {
    let key = [format!("header:{KEY}")];
    json!([
        { "name": "day", "key": key, "algorithm": "fixed-window", "rate": "1000000/day" },
        { "name": "second", "key": key, "match": { "path": "/limited" }, "rate": "6/second" },
    ])
}

fn requests() -> Vec<Vec<u8>> {
    let request = |caller: u32| {
        let path = if caller.is_multiple_of(2) { "/free" } else { "/limited" };
        format!("GET {path} HTTP/1.1\r\nhost: bench\r\n{KEY}: key-{caller:04}\r\n\r\n").into_bytes()
    };
    (0..CALLERS).map(request).collect()
}

/// Runs for so many minutes and prints what came of it.
pub(super) async fn run(options: &Options<'_>) -> Result<()> {
    ensure!(options.minutes > 0, "at least a minute");
    let mut soak = Soak::start(options).await?;
    println!(
        "bridge to Redis, one worker; {}, shared with the load; {} requests/s of {CALLERS} callers \
         for {} minutes; Redis is killed and started again empty in each",
        machine(),
        thousands(PER_SECOND.into()),
        options.minutes,
    );
    for minute in 0..options.minutes {
        soak.minute(minute).await?;
    }
    soak.finish().await
}

struct Soak {
    envoy: Envoy,
    behind: Behind,
    started: Instant,
    /// Kilobytes of Envoy, at the end of each minute.
    memory: Vec<u64>,
    totals: Totals,
    /// Calls of scripts that Redis has counted in its lives, and those whose script it did not
    /// know.
    calls: (u64, u64),
    /// Minutes whose counts were compared, and those where they differ.
    compared: u32,
    wrong: Vec<String>,
}

#[derive(Default)]
struct Totals {
    allowed: u64,
    refused: u64,
    other: u64,
    unchecked: u64,
    slowest: Duration,
}

/// What the load has got so far, to look at while it runs.
#[derive(Default)]
struct Progress {
    answers: AtomicU64,
    unchecked: AtomicU64,
}

/// What Redis may have counted since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Expected {
    /// Let pass by the store, and sent after the old Redis was gone.
    certain: u64,
    /// Let pass, sent before that and answered after it.
    under_way: u64,
    /// Let pass unchecked, and sent after it.
    unchecked: u64,
}

impl Soak {
    async fn start(options: &Options<'_>) -> Result<Self> {
        let way = Way::Direct;
        let mut config = way.config(options.filter, &limits())?;
        let behind = Behind::start(way, options.servers).await?;
        way.lead_to(&mut config, behind.address()?)?;
        let options = envoy::Options { program: options.envoy, config: &config, workers: 1 };
        let envoy = Envoy::start(&options).await?;
        let (totals, started) = (Totals::default(), Instant::now());
        let (memory, wrong) = (Vec::new(), Vec::new());
        Ok(Self { envoy, behind, started, memory, totals, calls: (0, 0), compared: 0, wrong })
    }

    async fn minute(&mut self, minute: u32) -> Result<()> {
        let begin = Instant::now();
        let progress = Arc::new(Progress::default());
        let target = self.envoy.address(LISTENER)?;
        let shared = Arc::clone(&progress);
        let load = tokio::task::spawn_blocking(move || load(target, &shared));
        reached(begin + KILLED).await;
        self.end_life()?;
        let redis = self.behind.redis()?;
        redis.kill();
        let killed = Instant::now();
        redis.restart()?;
        let day = day()?;
        reached(begin + MINUTE / 2).await;
        self.print_progress(&progress)?;
        let answers = load.await??;
        for answer in &answers {
            self.totals.add(answer);
        }
        // At midnight the windows start anew.
        if day == self::day()? {
            self.compare(minute, &Expected::of(&answers, killed))?;
        }
        let envoy = self.envoy.process().id();
        self.memory.push(usage::memory(envoy)?);
        self.print_progress(&progress)
    }

    /// Takes the numbers of a Redis that is about to end.
    fn end_life(&mut self) -> Result<()> {
        let (calls, unknown) = self.behind.redis()?.client()?.last_script_calls()?;
        self.calls = (self.calls.0 + calls, self.calls.1 + unknown);
        Ok(())
    }

    fn compare(&mut self, minute: u32, expected: &Expected) -> Result<()> {
        let values = self.behind.redis()?.client()?.values()?;
        let counted = values.iter().filter_map(|value| taken(value)).sum::<u64>();
        let text = format!("minute {}: Redis counted {counted}, {expected}", minute + 1);
        println!("  {text}");
        self.compared += 1;
        if !expected.allows(counted) {
            self.wrong.push(text);
        }
        Ok(())
    }

    fn print_progress(&mut self, progress: &Progress) -> Result<()> {
        let memory = usage::memory(self.envoy.process().id())?;
        println!(
            "  {:>4} s: Envoy {} kB; this minute {} answers, {} unchecked",
            self.started.elapsed().as_secs(),
            thousands(memory),
            thousands(progress.answers.load(Ordering::Relaxed)),
            progress.unchecked.load(Ordering::Relaxed),
        );
        Ok(())
    }

    async fn finish(&mut self) -> Result<()> {
        self.end_life()?;
        let (first, last) = (self.memory.first(), self.memory.last());
        let (first, last) = first.zip(last).context("no minute")?;
        let minutes = u64::try_from(self.memory.len() - 1)?;
        let growth = (float(*last) - float(*first)) / float(minutes);
        let growth =
            if minutes > 0 { format!("{growth:.0} kB a minute") } else { "–".to_owned() };
        println!(
            "\nEnvoy's memory: {} kB after the first minute, {} kB at the end, growth {growth}",
            thousands(*first),
            thousands(*last),
        );
        let Totals { allowed, refused, other, unchecked, slowest } = &self.totals;
        let all = allowed + refused + other;
        println!(
            "answers: {} of 200, {} of 429, {other} others; {} checked, {unchecked} unchecked; the \
             slowest {slowest:.1?}",
            thousands(*allowed),
            thousands(*refused),
            thousands(all - unchecked),
        );
        let mut stats = Vec::new();
        for name in ["store_calls", "recalled", "unchecked", "store_timeout", "store_down"] {
            let value = self.envoy.stat(&format!("wasmcustom.weir.{name}")).await?.unwrap_or(0);
            stats.push(format!("{name} {}", thousands(value)));
        }
        println!("Envoy's counters: {}", stats.join(", "));
        let (calls, unknown) = self.calls;
        println!(
            "Redis in {} lives: {} calls of scripts, {unknown} of them again because it did not \
             know the script; probes are among them, and calls that a dead Redis missed are not",
            self.memory.len() + 1,
            thousands(calls),
        );
        println!(
            "counts since each start of Redis: {} of {} minutes compared, {} consistent",
            self.compared,
            self.memory.len(),
            usize::try_from(self.compared)? - self.wrong.len(),
        );
        ensure!(self.wrong.is_empty(), "inconsistent counts:\n{}", self.wrong.join("\n"));
        Ok(())
    }
}

/// A minute of load.
fn load(target: std::net::SocketAddr, progress: &Progress) -> Result<Vec<Answer>> {
    let requests = requests();
    let pace = Pace::PerSecond(PER_SECOND);
    let plan = Plan {
        targets: &[target],
        requests: &requests,
        connections: CONNECTIONS,
        duration: MINUTE,
        pace,
    };
    let mut answers = Vec::new();
    generator::each(&plan, &mut |answer| {
        progress.answers.fetch_add(1, Ordering::Relaxed);
        progress.unchecked.fetch_add(u64::from(!answer.checked), Ordering::Relaxed);
        answers.push(answer);
    })?;
    Ok(answers)
}

impl Totals {
    fn add(&mut self, answer: &Answer) {
        match answer.status {
            200 => self.allowed += 1,
            429 => self.refused += 1,
            _ => self.other += 1,
        }
        self.unchecked += u64::from(!answer.checked);
        self.slowest = self.slowest.max(answer.took());
    }
}

impl Expected {
    /// By the answers, and when the Redis before was gone for certain.
    fn of(answers: &[Answer], killed: Instant) -> Self {
        let mut expected = Self::default();
        for answer in answers.iter().filter(|it| it.status == 200 && it.answered >= killed) {
            match (answer.sent >= killed, answer.checked) {
                (false, _) => expected.under_way += 1,
                (true, true) => expected.certain += 1,
                (true, false) => expected.unchecked += 1,
            }
        }
        expected
    }

    const fn allows(&self, counted: u64) -> bool {
        let most = self.certain + self.under_way + self.unchecked;
        self.certain <= counted && counted <= most
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { certain, under_way, unchecked } = self;
        write!(f, "let pass {certain}, with up to {under_way} under way and {unchecked} unchecked")
    }
}

/// What was taken of a window, by the state of a fixed one: its start, 0, and that. A bucket's
/// state has fewer numbers.
fn taken(state: &str) -> Option<u64> {
    let mut numbers = state.split(':');
    let (_, zero, taken) = (numbers.next()?, numbers.next()?, numbers.next()?);
    (zero == "0" && numbers.next().is_none()).then(|| taken.parse().ok()).flatten()
}

/// Days since the epoch.
fn day() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(now.as_secs() / 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_a_policy() {
        let policy = json!({ "limits": limits() }).to_string();
        weir_core::config::parse(policy.as_bytes()).unwrap();
    }

    #[test]
    fn windows_are_told_from_buckets() {
        assert_eq!(taken("1700000000000000:0:42"), Some(42));
        assert_eq!(taken("1700000000000000"), None);
        assert_eq!(taken("1700000000000000:5"), None);
    }

    #[test]
    fn what_redis_may_have_counted_is_what_passed_since_it_was_gone() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let answer = |sent, answered, status, checked| Answer {
            due: at(sent),
            sent: at(sent),
            answered: at(answered),
            status,
            checked,
        };
        let answers = [
            answer(0, 5, 200, true),
            answer(6, 12, 200, false),
            answer(10, 12, 200, true),
            answer(11, 12, 200, false),
            answer(12, 13, 429, true),
        ];
        let expected = Expected::of(&answers, at(10));
        assert_eq!(expected, Expected { certain: 1, under_way: 1, unchecked: 1 });
        let allowed = [0, 1, 3, 4].map(|counted| expected.allows(counted));
        assert_eq!(allowed, [false, true, true, false]);
    }
}
