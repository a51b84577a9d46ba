//! How long requests take while a shared store fails, with the deadline that is shipped: paced load
//! before, during and after each fault. It is printed, and nothing is judged.

use std::{
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use tokio::task::spawn_blocking;

use super::{
    generator::{self, Answer, Pace, Plan},
    machine, progress,
    rows::{self, KEY, LISTENER},
    stores::{Behind, Servers, Way, generous},
    thousands,
};
use crate::{
    envoy::{self, Envoy},
    eventually::reached,
    link::{Cut, Link},
};

const PACE: u32 = 1_000;
const CONNECTIONS: usize = 64;
/// More than the load, so that nothing is refused.
const PER_SECOND: u64 = 100_000;
/// How long the fault is looked at by itself when it begins.
const ONSET: Duration = Duration::from_millis(100);
const DELAY: Duration = Duration::from_millis(50);

/// What to run.
pub(super) struct Options<'a> {
    pub(super) envoy: &'a Path,
    pub(super) filter: &'a Path,
    pub(super) servers: Servers<'a>,
    /// Whether to look only if it works.
    pub(super) quick: bool,
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Killed,
    Frozen,
    LinkCut,
    LinkFrozen,
    LinkDelayed,
}

impl Fault {
    const ALL: [Self; 5] =
        [Self::Killed, Self::Frozen, Self::LinkCut, Self::LinkFrozen, Self::LinkDelayed];

    const fn name(self) -> &'static str {
        match self {
            Self::Killed => "Redis killed, started again",
            Self::Frozen => "Redis stopped (SIGSTOP)",
            Self::LinkCut => "link cut",
            Self::LinkFrozen => "link frozen",
            Self::LinkDelayed => "link 50 ms slower each way",
        }
    }

    const fn is_of_link(self) -> bool {
        matches!(self, Self::LinkCut | Self::LinkFrozen | Self::LinkDelayed)
    }
}

/// How long each part takes.
#[derive(Clone, Copy)]
struct Times {
    before: Duration,
    fault: Duration,
    after: Duration,
}

/// Goes through every way and every fault and prints one table.
pub(super) async fn run(options: &Options<'_>) -> Result<()> {
    let seconds = Duration::from_secs;
    let times = match options.quick {
        true => Times { before: seconds(1), fault: seconds(1), after: seconds(1) },
        false => Times { before: seconds(3), fault: seconds(3), after: seconds(4) },
    };
    println!(
        "one worker each; {}, shared with the load; {} requests/s, {} keys; the shipped deadline of \
         10 ms; faults of {:?}, {:?} after the start\n",
        machine(),
        thousands(PACE.into()),
        thousands(rows::CALLERS.into()),
        times.fault,
        times.before,
    );
    print_head();
    for way in Way::TO_ONE {
        println!("{}", way.name());
        for fault in Fault::ALL {
            progress(&format!("  {}: {}", way.name(), fault.name()));
            let case = Case::start(options, way, fault).await?;
            let seen = case.run(times).await;
            let seen = seen.with_context(|| format!("{}, {}", way.name(), fault.name()))?;
            progress("");
            seen.print(fault.name());
        }
    }
    println!(
        "\nms from when a request was due; unchecked: of all requests of that time;\nagain: from the \
         end of the fault, where Redis's start counts as time, to the first request due later that \
         was checked;\nthe link takes time of its own, also before its fault"
    );
    Ok(())
}

/// One Envoy and its store.
struct Case {
    envoy: Envoy,
    fault: Fault,
    link: Option<Link>,
    behind: Behind,
}

/// What came of a case.
struct Seen {
    answers: Vec<Answer>,
    begun: Instant,
    onset: Instant,
    ended: Instant,
}

impl Case {
    async fn start(options: &Options<'_>, way: Way, fault: Fault) -> Result<Self> {
        let mut config = way.config(options.filter, &generous(KEY, PER_SECOND))?;
        let behind = Behind::start(way, options.servers).await?;
        let mut address = behind.address()?;
        let mut link = None;
        if fault.is_of_link() {
            address = link.insert(Link::start(address).await?).address();
        }
        way.lead_to(&mut config, address)?;
        let options = envoy::Options { program: options.envoy, config: &config, workers: 1 };
        Ok(Self { envoy: Envoy::start(&options).await?, fault, link, behind })
    }

    async fn run(mut self, times: Times) -> Result<Seen> {
        let target = self.envoy.address(LISTENER)?;
        // The first requests find no stream and no script.
        spawn_blocking(move || load(target, Duration::from_millis(500))).await??;
        let start = Instant::now();
        let whole = times.before + times.fault + times.after;
        let load = spawn_blocking(move || load(target, whole));
        reached(start + times.before).await;
        let begun = Instant::now();
        self.begin().await?;
        reached(begun + times.fault).await;
        let ended = Instant::now();
        self.end()?;
        Ok(Seen { answers: load.await??, begun, onset: begun + ONSET, ended })
    }

    async fn begin(&mut self) -> Result<()> {
        let Self { fault, link, behind, .. } = self;
        match (fault, link) {
            (Fault::LinkCut, Some(link)) => link.cut(Cut::Reset).await?,
            (Fault::LinkFrozen, Some(link)) => link.freeze(),
            (Fault::LinkDelayed, Some(link)) => link.delay(DELAY),
            (Fault::Killed, _) => behind.redis()?.kill(),
            (Fault::Frozen, _) => behind.redis()?.freeze()?,
            (_, None) => anyhow::bail!("no link"),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let Self { fault, link, behind, .. } = self;
        match (fault, link) {
            (Fault::LinkDelayed, Some(link)) => link.delay(Duration::ZERO),
            (_, Some(link)) => link.heal()?,
            (Fault::Killed, None) => behind.redis()?.restart()?,
            (_, None) => behind.redis()?.thaw(),
        }
        Ok(())
    }
}

fn load(target: SocketAddr, duration: Duration) -> Result<Vec<Answer>> {
    let requests = rows::requests();
    let pace = Pace::PerSecond(PACE);
    let plan =
        Plan { targets: &[target], requests: &requests, connections: CONNECTIONS, duration, pace };
    let mut answers = Vec::new();
    generator::each(&plan, &mut |answer| answers.push(answer))?;
    Ok(answers)
}

const NAME: usize = 29;
const CELL: usize = 31;

fn print_head() {
    let cells = ["before", "first 100 ms", "during", "after"];
    let cells: String = cells.iter().map(|name| format!("{name:>CELL$}")).collect();
    println!("{:NAME$}{cells}", "");
    let cell = columns("p50", "p99", "max", "unchecked");
    println!("{:NAME$}{}{:>10}", "", cell.repeat(4), "again");
}

fn columns(p50: &str, p99: &str, max: &str, unchecked: &str) -> String {
    let cell = format!("{p50:>5} {p99:>5} {max:>5} {unchecked:>11}");
    format!("{cell:>CELL$}")
}

impl Seen {
    fn print(&self, name: &str) {
        let Self { begun, onset, ended, .. } = self;
        let cells = [
            self.cell(|due| due < *begun),
            self.cell(|due| due >= *begun && due < *onset),
            self.cell(|due| due >= *onset && due < *ended),
            self.cell(|due| due >= *ended),
        ];
        let again =
            self.again().map_or_else(|| "not".to_owned(), |it| format!("{} ms", millis(it)));
        println!("  {name:width$}{}{again:>10}", cells.concat(), width = NAME - 2);
    }

    /// A part of the answers, by when they were due.
    fn cell(&self, within: impl Fn(Instant) -> bool) -> String {
        let part: Vec<&Answer> = self.answers.iter().filter(|answer| within(answer.due)).collect();
        let mut took: Vec<Duration> = part.iter().map(|answer| answer.took()).collect();
        took.sort_unstable();
        let place = |per_mille: usize| (took.len() * per_mille).div_ceil(1_000).saturating_sub(1);
        let at = |per_mille| took.get(place(per_mille)).copied().unwrap_or_default();
        let [p50, p99, max] = [500, 990, 1_000].map(|per_mille| millis(at(per_mille)));
        let unchecked = part.iter().filter(|answer| !answer.checked).count();
        let unchecked = format!("({unchecked}/{})", part.len());
        columns(&p50, &p99, &max, &unchecked)
    }

    /// How long after the end of the fault the first request was due that was checked.
    fn again(&self) -> Option<Duration> {
        let later = self.answers.iter().filter(|answer| answer.due >= self.ended && answer.checked);
        Some(later.map(|answer| answer.due).min()? - self.ended)
    }
}

/// In milliseconds, with as many digits as matter.
fn millis(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1_000.0;
    if millis < 10.0 { format!("{millis:.2}") } else { format!("{millis:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_belong_to_when_they_were_due() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let answer = |due, took, checked| Answer {
            due: at(due),
            sent: at(due),
            answered: at(due + took),
            status: 200,
            checked,
        };
        let answers = vec![answer(1, 20, false), answer(2, 4, false), answer(300, 1, true)];
        let seen = Seen { answers, begun, onset: at(100), ended: at(200) };
        let cell = seen.cell(|due| due < seen.onset);
        assert_eq!(cell.split_whitespace().collect::<Vec<_>>(), ["4.00", "20", "20", "(2/2)"]);
        assert_eq!(seen.again(), Some(Duration::from_millis(100)));
    }
}
