//! The store, and the way to it, fail under load and come back. Every request is answered, by what
//! the policy says of a store that fails; nobody waits once that is known; and what the counters
//! and Redis say is what the clients saw.
//!
//! The deadline is the shipped one of 10 ms. A busy machine misses it outside an outage too, so
//! nothing here says that all is checked then: what was not has to be accounted for, to the last
//! request.

mod support;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use support::{
    Running, shipped, start,
    stores::{Behind, Way},
};
use tokio::sync::Mutex;
use weir_lab::{
    eventually::eventually,
    link::{Cut, Link},
    load::{self, LONGEST, MOST_REQUESTS, Plan, Report, Sample},
};

/// The limits, each with its path and the name of what it does without the store.
const PATHS: [&str; 3] = ["/allow", "/deny", "/local"];

/// Connections to each path, and how soon each asks again: 500 requests a second to each.
const CONNECTIONS: usize = 4;
const PACE: Duration = Duration::from_millis(8);

/// The limit of `/local`, and what of it is this proxy's in an outage.
const RATE: f64 = 200.0;
const GATEWAYS: u32 = 2;

/// After so long each worker's breaker is open: a request to it has waited for its deadline.
const OPEN: Duration = Duration::from_millis(500);

/// What a request may take then.
const PROMPT: Duration = Duration::from_millis(250);

/// How soon a store that works again is asked again, on a busy machine too.
const RECOVERY: Duration = Duration::from_secs(10);

/// Requests that are checked again show that it is.
const CHECKED: u64 = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Redis crashes, and is started again later, empty.
    Killed,
    /// Redis is stopped by SIGSTOP.
    Stopped,
    /// Redis is started anew at once, empty.
    Restarted,
    /// Connections are reset and refused.
    Cut,
    /// Connections carry nothing, and new ones neither.
    Frozen,
    /// Connections carry nothing, but new ones do: another machine has taken the address.
    Replaced,
    /// Everything takes longer than the deadline.
    Delayed,
}

impl Fault {
    const ALL: [Self; 7] = [
        Self::Killed,
        Self::Stopped,
        Self::Restarted,
        Self::Cut,
        Self::Frozen,
        Self::Replaced,
        Self::Delayed,
    ];

    /// How long it lasts.
    const fn lasts(self) -> Duration {
        Duration::from_millis(match self {
            Self::Restarted => 0,
            Self::Stopped => 5_000,
            Self::Frozen => 2_000,
            Self::Killed | Self::Cut | Self::Replaced => 1_500,
            Self::Delayed => 1_000,
        })
    }

    /// Whether nothing can be checked until it is over.
    const fn is_outage(self) -> bool {
        !matches!(self, Self::Restarted | Self::Replaced)
    }

    /// Whether Redis forgets everything, its own counters too.
    const fn empties(self) -> bool {
        matches!(self, Self::Killed | Self::Restarted)
    }
}

/// When what happened.
struct Times {
    began: Instant,
    /// The end began.
    lifted: Instant,
    /// The end was complete.
    over: Instant,
}

/// Envoy, the link and what is behind it, in the order in which they are stopped.
struct Stage {
    way: Way,
    running: Running,
    link: Link,
    behind: Behind,
}

impl Stage {
    async fn start(way: Way) -> Result<Self> {
        let behind = Behind::start(way).await?;
        let link = Link::start(behind.address().context("a store")?).await?;
        let mut config = way.config(&shipped())?;
        let policy = way.policy_within(&mut config, &limits(), "10ms")?;
        config.set_policy("ingress", &policy)?;
        config.rewrite_paths("ingress", "/api/hello")?;
        config.set_endpoint(way.cluster().context("a cluster")?, link.address())?;
        Ok(Self { way, running: start(config, 2).await?, link, behind })
    }

    /// A fault while load goes on, from before it until all is checked again.
    async fn suffer(&mut self, fault: Fault) -> Result<Times> {
        self.checks().await?;
        let began = Instant::now();
        match fault {
            Fault::Killed => self.behind.redis().kill(),
            Fault::Stopped => self.behind.redis().freeze()?,
            Fault::Restarted => self.behind.redis().restart()?,
            Fault::Cut => self.link.cut(Cut::Reset).await?,
            Fault::Frozen => self.link.freeze(),
            Fault::Replaced => self.link.freeze_existing(),
            Fault::Delayed => self.link.delay(Duration::from_millis(50)),
        }
        let over = async || Ok((began.elapsed() >= fault.lasts()).then_some(()));
        eventually("the end of the fault", 2 * LONGEST, over).await?;
        let lifted = Instant::now();
        match fault {
            Fault::Killed => self.behind.redis().restart()?,
            Fault::Stopped => self.behind.redis().thaw(),
            Fault::Restarted => {}
            Fault::Cut | Fault::Frozen | Fault::Replaced => self.link.heal()?,
            Fault::Delayed => self.link.delay(Duration::ZERO),
        }
        let over = Instant::now();
        self.checks().await?;
        Ok(Times { began, lifted, over })
    }

    /// Waits until requests are checked, and every breaker that is open now has closed.
    async fn checks(&self) -> Result<()> {
        let before = Counts::of(&self.running).await?;
        let log = self.running.envoy.log();
        let open = breakers(&log).into_iter().filter(|(_, [opened, closed])| opened > closed);
        let open: Vec<_> = open.collect();
        eventually("requests to be checked", RECOVERY, async || {
            let gained = Counts::of(&self.running).await?.since(&before);
            let checked = gained.get("store_calls").saturating_sub(gained.failures());
            let log = self.running.envoy.log();
            let now = breakers(&log);
            let closed = open.iter().all(|(worker, [_, closed])| now[worker][1] > *closed);
            Ok((closed && checked >= CHECKED).then_some(()))
        })
        .await
    }

    /// Suffers a fault, and checks what came of it.
    async fn endure(&mut self, fault: Fault) -> Result<()> {
        let case = format!("{:?}, {fault:?}", self.way);
        let target = self.running.envoy.address("ingress")?;
        let plans = PATHS.map(|path| Plan {
            target,
            path: path.into(),
            headers: Vec::new(),
            connections: CONNECTIONS,
            duration: LONGEST,
            requests: MOST_REQUESTS,
        });
        let before = Counts::of(&self.running).await?;
        let asked = self.behind.redis().client()?.script_calls()?;
        let suffered = load::during(&plans, PACE, self.suffer(fault)).await;
        let (reports, times) =
            suffered.with_context(|| format!("{case}\n{}", self.running.envoy.log()))?;
        let counts = Counts::of(&self.running).await?.since(&before);
        let asked_before = if fault.empties() { 0 } else { asked };
        let asked = self.behind.redis().client()?.script_calls()? - asked_before;

        show(&case, &reports, &times, &counts);
        check_answers(&case, fault, &reports, &times);
        check_counts(&case, &reports, &counts);
        // Redis may have charged more: what had its answer too late. It cannot have charged less.
        let from = fault.empties().then_some(times.over);
        let decided = reports[..2].iter().flat_map(|report| &report.samples);
        let decided = decided.filter(|sample| sample.status == 200 && sample.told);
        let decided = decided.filter(|sample| from.is_none_or(|from| sample.sent >= from)).count();
        assert!(
            number(decided) <= asked,
            "{case}: {decided} decided, Redis was asked {asked} times"
        );
        self.running.assert_never_reloaded().await
    }
}

fn limits() -> Value {
    let limit = |name: &str, rate: &str| {
        json!({
            "name": name, "match": { "path": format!("/{name}") },
            "rate": rate, "on_store_failure": name,
        })
    };
    // The limits of the first two are never reached, so that what is refused there is by an outage.
    let rates = [("allow", "1000000/second"), ("deny", "1000000/second"), ("local", "200/second")];
    json!({ "gateways": GATEWAYS, "limits": rates.map(|(name, rate)| limit(name, rate)) })
}

/// The filter's counters.
struct Counts(BTreeMap<String, u64>);

impl Counts {
    async fn of(running: &Running) -> Result<Self> {
        let text = running.envoy.admin_get("/stats?filter=wasmcustom.weir").await?;
        let lines = text.lines().filter_map(|line| line.strip_prefix("wasmcustom.weir."));
        let pairs = lines.filter_map(|line| line.split_once(": "));
        pairs
            .map(|(name, value)| Ok((name.to_owned(), value.parse()?)))
            .collect::<Result<_>>()
            .map(Self)
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    fn since(&self, before: &Self) -> Self {
        Self(self.0.iter().map(|(name, now)| (name.clone(), now - before.get(name))).collect())
    }

    /// Limits that the store did not check.
    fn failures(&self) -> u64 {
        let names = ["store_timeout", "store_down", "store_error", "store_busy"];
        names.iter().map(|name| self.get(name)).sum()
    }
}

/// How often the breaker of each worker has opened and closed, by Envoy's log.
fn breakers(log: &str) -> BTreeMap<&str, [usize; 2]> {
    let mut breakers: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for line in log.lines() {
        for (place, text) in ["the store is out", "the store answers again"].iter().enumerate() {
            if line.contains(text) {
                breakers.entry(line.split("][").nth(1).unwrap_or_default()).or_default()[place] +=
                    1;
            }
        }
    }
    breakers
}

/// Checks that each path's answers are those that its limit allows, and come when they should.
fn check_answers(case: &str, fault: Fault, reports: &[Report], times: &Times) {
    let known = times.began + OPEN;
    for (path, report) in PATHS.iter().zip(reports) {
        assert_eq!(report.unanswered, 0, "{case}, {path}");
        for sample in &report.samples {
            let Sample { status, told, sent, answered, .. } = *sample;
            let checked = match *path {
                "/allow" | "/deny" => (status, told) == (200, true),
                _ => [200, 429].contains(&status) && told,
            };
            let unchecked = match *path {
                "/allow" => (status, told) == (200, false),
                "/deny" => status == 503,
                // By this proxy's share of the limit, which tells as the limit does.
                _ => checked,
            };
            let in_outage = fault.is_outage() && sent >= known && answered <= times.lifted;
            let expected = unchecked || (checked && !in_outage);
            let after = sent.saturating_duration_since(times.began);
            assert!(expected, "{case}, {path}: {after:?} after its begin {sample:?}");
            let took = answered - sent;
            assert!(sent < known || took <= PROMPT, "{case}, {path}: {took:?}, {after:?} after");
        }
    }
    if fault.is_outage() {
        let share = RATE / f64::from(GATEWAYS);
        let span = (times.lifted - known).as_secs_f64();
        let local = reports[2].samples.iter().filter(|sample| sample.status == 200);
        let local = local.filter(|sample| sample.sent >= known && sample.answered <= times.lifted);
        let (local, most) = (local.count(), share + share * span);
        assert!(local > 0 && local as f64 <= most, "{case}: the share let {local} of {most} pass");
    }
}

/// Checks that the counters say what the clients saw.
fn check_counts(case: &str, reports: &[Report], counts: &Counts) {
    let samples = || reports.iter().flat_map(|report| &report.samples);
    let seen = |status: u16, told| {
        number(samples().filter(|sample| (sample.status, sample.told) == (status, told)).count())
    };
    let (unchecked, denied) = (seen(200, false), seen(503, false));
    for (name, seen) in [
        ("allowed", seen(200, true)),
        ("refused", seen(429, true)),
        ("unchecked", unchecked),
        ("unavailable", denied),
    ] {
        assert_eq!(counts.get(name), seen, "{case}: {name}, {:?}", counts.0);
    }
    let instead = unchecked + denied + counts.get("by_share");
    assert_eq!(counts.failures(), instead, "{case}: {:?}", counts.0);
}

fn show(case: &str, reports: &[Report], times: &Times, counts: &Counts) {
    let samples = || reports.iter().flat_map(|report| &report.samples);
    let known = times.began + OPEN;
    let took = |chosen: &dyn Fn(&&Sample) -> bool| {
        let mut took: Vec<_> =
            samples().filter(chosen).map(|sample| sample.answered - sample.sent).collect();
        took.sort();
        let of = |percent| took.get(took.len().saturating_sub(1) * percent / 100).copied();
        [50, 99, 100].map(|percent| of(percent).unwrap_or_default())
    };
    let instead = |sample: &&Sample| sample.status == 503 || !sample.told;
    let recovered = samples().filter(instead).map(|sample| sample.answered).max();
    let recovered = recovered.map(|at| at.saturating_duration_since(times.lifted));
    println!(
        "{case}: {} requests; p50, p99 and most before it {:?}, in it {:?}, once it is known {:?}; \
         the last unchecked one {recovered:?} after its end; {:?}",
        samples().count(),
        took(&|sample| sample.answered < times.began),
        took(&|sample| sample.sent >= times.began && sample.sent < times.lifted),
        took(&|sample| sample.sent >= known && sample.sent < times.lifted),
        counts.0,
    );
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// One test at a time: each would be an outage to the others.
static ALONE: Mutex<()> = Mutex::const_new(());

async fn endure_all(way: Way) -> Result<()> {
    let _alone = ALONE.lock().await;
    let mut stage = Stage::start(way).await?;
    for fault in Fault::ALL {
        // A callout that takes too long ends its connection, so there is nothing to outlive.
        let by_callouts = matches!(way, Way::Webdis | Way::Rest);
        if fault == Fault::Replaced && by_callouts {
            continue;
        }
        stage.endure(fault).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_reached_directly_fails_and_comes_back() -> Result<()> {
    endure_all(Way::Direct).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_behind_envoys_own_client_fails_and_comes_back() -> Result<()> {
    endure_all(Way::Proxied).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_behind_webdis_fails_and_comes_back() -> Result<()> {
    endure_all(Way::Webdis).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_behind_a_rest_endpoint_fails_and_comes_back() -> Result<()> {
    endure_all(Way::Rest).await
}
