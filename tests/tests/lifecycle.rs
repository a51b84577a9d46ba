//! The limiter starts, is updated, shares its VM and dies, and no request slips by meanwhile: what
//! Redis says that it was asked is what was sent.
//!
//! Deadlines are of a second, so that a busy machine is no outage and every request is checked.
//!
//! One thing is not here: a request that waits for the store in a VM that dies is never answered.
//! Envoy resumes no stream of a VM that has failed; only a timeout of its own ends it.

mod support;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use support::{
    Running, artefact, shipped, start,
    stores::{Behind, Way},
    with_test_clock,
};
use weir_lab::{
    config::Config,
    envoy::{Envoy, Options},
    eventually::eventually,
    http::{Answer, Client},
    listeners::Listeners,
    load::{self, LONGEST, MOST_REQUESTS, Plan, Report},
    redis::Redis,
    serve::Server,
};

/// The ways with a bridge, which an update or a trap could cut off for good.
const BRIDGED: [Way; 2] = [Way::Direct, Way::Proxied];

/// How soon each connection of the load asks again.
const PACE: Duration = Duration::from_millis(4);

/// How long what is replaced is kept. Envoy counts from when it has read the update, and compiles a
/// module before it is in force.
const DRAIN: Duration = Duration::from_secs(5);

/// How soon an update is in force.
const UPDATE: Duration = Duration::from_secs(20);

/// How soon after a trap the store is asked again.
const RELOAD: Duration = Duration::from_secs(3);

/// The rate of the first policy: none that follows is ever exceeded.
const RATE: u64 = 1_000_000;

/// A policy that tells its rate.
fn policy(way: Way, config: &mut Config, rate: u64, on_store_failure: &str) -> Result<String> {
    let limit = json!({ "name": "all", "rate": format!("{rate}/second") });
    let fields = json!({ "on_store_failure": on_store_failure, "limits": [limit] });
    way.policy(config, &fields)
}

/// A configuration with a policy, before a store.
fn config(way: Way, module: &Path, behind: &Behind) -> Result<Config> {
    let mut config = way.config(module)?;
    let first = policy(way, &mut config, RATE, "allow")?;
    config.set_policy("ingress", &first)?;
    let address = behind.address().context("a store")?;
    config.set_endpoint(way.cluster().context("a cluster")?, address)?;
    Ok(config)
}

/// The same with a second listener, whose plugin is in the same VM and turns away in an outage.
fn two_plugins(way: Way, module: &Path, behind: &Behind) -> Result<Config> {
    let mut config = config(way, module, behind)?;
    config.replicate("ingress", "second")?;
    let second = policy(way, &mut config, RATE + 1, "deny")?;
    config.set_policy("second", &second)?;
    Ok(config)
}

fn plan(running: &Running, listener: &str) -> Result<Plan> {
    Ok(Plan {
        target: running.envoy.address(listener)?,
        path: "/api/hello".into(),
        headers: Vec::new(),
        connections: 4,
        duration: LONGEST,
        requests: MOST_REQUESTS,
    })
}

/// Sends one request over a connection of its own.
async fn ask(running: &Running, listener: &str, headers: &[(&str, &[u8])]) -> Result<Answer> {
    let mut client = Client::connect(running.envoy.address(listener)?).await?;
    client.get("/api/hello", headers).await
}

/// Whether a limit of this rate allowed a request, by the answer.
fn is_checked_by(answer: &Answer, rate: u64) -> bool {
    let told =
        answer.header("ratelimit-policy").is_some_and(|told| told.contains(&format!("q={rate};")));
    answer.status == 200 && told
}

/// Scripts that Redis has run.
fn runs(redis: &Redis) -> Result<u64> {
    redis.client()?.script_runs()
}

/// Checks that each request of a load was answered by the upstream and checked, and returns how
/// many there were.
fn all_checked(reports: &[Report], running: &Running) -> usize {
    for report in reports {
        assert_eq!(report.unanswered, 0, "{}", running.envoy.log());
        for sample in &report.samples {
            assert!(sample.status == 200 && sample.told, "{sample:?}\n{}", running.envoy.log());
        }
    }
    reports.iter().map(|report| report.samples.len()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_requests_after_a_start_are_checked() -> Result<()> {
    for way in Way::SHARED {
        let mut behind = Behind::start(way).await?;
        for _ in 0..3 {
            let running = start(config(way, &shipped(), &behind)?, 2).await?;
            let before = runs(behind.redis())?;
            let plan = Plan { connections: 8, requests: 8, ..plan(&running, "ingress")? };
            let report = load::run(&plan).await?;
            assert_eq!(all_checked(&[report], &running), 8, "{way:?}");
            assert_eq!(runs(behind.redis())? - before, 8, "{way:?}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_plugins_in_one_vm_go_each_by_its_own_policy() -> Result<()> {
    for way in BRIDGED {
        let mut behind = Behind::start(way).await?;
        let running = start(two_plugins(way, &shipped(), &behind)?, 1).await?;
        let plans = [plan(&running, "ingress")?, plan(&running, "second")?];
        let plans = plans.map(|plan| Plan { requests: 500, ..plan });
        let (first, second) = tokio::try_join!(load::run(&plans[0]), load::run(&plans[1]))?;
        assert_eq!(all_checked(&[first, second], &running), 1_000, "{way:?}");
        assert_eq!(runs(behind.redis())?, 1_000, "{way:?}");
        for (listener, rate) in [("ingress", RATE), ("second", RATE + 1)] {
            assert!(
                is_checked_by(&ask(&running, listener, &[]).await?, rate),
                "{way:?}, {listener}"
            );
        }

        behind.redis().kill();
        for (listener, status) in [("ingress", 200), ("second", 503)] {
            let answer = ask(&running, listener, &[]).await?;
            let told = answer.header("ratelimit").is_some();
            assert_eq!((answer.status, told), (status, false), "{way:?}, {listener}");
        }
        behind.redis().restart()?;
        for (listener, rate) in [("ingress", RATE), ("second", RATE + 1)] {
            eventually("a request to be checked", RELOAD, async || {
                let answer = ask(&running, listener, &[]).await?;
                Ok(is_checked_by(&answer, rate).then_some(()))
            })
            .await?;
        }
        running.assert_never_reloaded().await?;
    }
    Ok(())
}

/// An Envoy whose listeners can be replaced.
struct Updatable {
    running: Running,
    listeners: Listeners,
    config: Config,
}

impl Updatable {
    async fn start(mut config: Config) -> Result<Self> {
        let upstream = Server::start(None).await?;
        config.set_endpoint("upstream", upstream.address())?;
        // Well before the end of the drain, when those that are left are closed on their requests.
        config.set_drain_timeout("ingress", DRAIN / 50)?;
        let (listeners, started) = Listeners::of(&config)?;
        let program = artefact("WEIR_ENVOY");
        let options = Options { program: &program, config: &started, workers: 2 };
        let drain = DRAIN.as_secs().to_string();
        let envoy = Envoy::start_with(&options, &["--drain-time-s", &drain]).await?;
        Ok(Self { running: Running { envoy, upstream }, listeners, config })
    }

    /// Replaces the listeners, and waits until the policy with that rate answers. Returns how many
    /// requests it took.
    async fn update(&self, rate: u64) -> Result<u64> {
        self.listeners.publish(&self.config)?;
        let mut asked = 0;
        eventually("the update to be in force", UPDATE, async || {
            let answer = ask(&self.running, "ingress", &[]).await?;
            asked += 1;
            let told = answer.header("ratelimit").is_some();
            ensure!((answer.status, told) == (200, true), "{answer:?}");
            Ok(is_checked_by(&answer, rate).then_some(()))
        })
        .await?;
        Ok(asked)
    }

    /// Waits until all that was replaced is gone.
    async fn drained(&self) -> Result<()> {
        eventually("old listeners to be gone", UPDATE, async || {
            for what in ["listeners", "filter_chains"] {
                let name = format!("listener_manager.total_{what}_draining");
                if self.running.envoy.stat(&name).await? != Some(0) {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_of_the_policy_under_load_leave_no_request_unchecked() -> Result<()> {
    for way in BRIDGED {
        let mut behind = Behind::start(way).await?;
        let mut stage = Updatable::start(config(way, &shipped(), &behind)?).await?;
        let plan = plan(&stage.running, "ingress")?;
        let updates = async {
            let mut asked = stage.update(RATE).await?;
            for rate in RATE + 1..=RATE + 4 {
                let changed = policy(way, &mut stage.config, rate, "allow")?;
                stage.config.set_policy("ingress", &changed)?;
                asked += stage.update(rate).await?;
            }
            stage.drained().await?;
            Ok(asked)
        };
        let (reports, asked) = load::during(&[plan], PACE, updates).await?;
        let sent = all_checked(&reports, &stage.running);
        println!("{way:?}: {sent} requests and {asked}, all checked");
        assert_eq!(runs(behind.redis())?, u64::try_from(sent)? + asked, "{way:?}");
        stage.running.assert_never_reloaded().await?;
    }
    Ok(())
}

/// A module that does the same, but is another to Envoy.
fn other_module(folder: &Path) -> Result<PathBuf> {
    let mut bytes = fs::read(shipped())?;
    // A custom section: its number, its size, the length of its name, its name, its content.
    bytes.extend([0, 2, 1, b'n']);
    let path = folder.join("other.wasm");
    fs::write(&path, bytes)?;
    Ok(path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_of_the_module_under_load_fails_no_request() -> Result<()> {
    for way in BRIDGED {
        let folder = tempfile::tempdir()?;
        let mut behind = Behind::start(way).await?;
        let mut stage = Updatable::start(config(way, &shipped(), &behind)?).await?;
        let plan = plan(&stage.running, "ingress")?;
        let created = "wasm.envoy.wasm.runtime.v8.created";
        let swap = async {
            let (mut asked, mut missed) = (stage.update(RATE).await?, 0);
            let before = stage.running.envoy.stat(created).await?;
            stage.config.set_module(&other_module(folder.path())?)?;
            let changed = policy(way, &mut stage.config, RATE + 1, "allow")?;
            stage.config.set_policy("ingress", &changed)?;
            asked += stage.update(RATE + 1).await?;
            assert!(stage.running.envoy.stat(created).await? > before, "the module is the same");
            // At the end of the drain the old bridge goes, and the streams through it with what
            // waits there.
            stage.drained().await?;
            eventually("the store to be asked again", RELOAD, async || {
                let answer = ask(&stage.running, "ingress", &[]).await?;
                ensure!(answer.status == 200, "{answer:?}");
                let checked = is_checked_by(&answer, RATE + 1);
                missed += u64::from(!checked);
                Ok(checked.then_some(()))
            })
            .await?;
            Ok((asked + 1, missed))
        };
        let (reports, (asked, missed)) = load::during(&[plan], PACE, swap).await?;
        let samples = || reports.iter().flat_map(|report| &report.samples);
        assert!(reports.iter().all(|report| report.unanswered == 0), "{way:?}");
        for sample in samples() {
            assert_eq!(sample.status, 200, "{way:?}: {sample:?}\n{}", stage.running.envoy.log());
        }
        let unchecked = samples().filter(|sample| !sample.told).count();
        let checked = u64::try_from(samples().count() - unchecked)? + asked;
        println!("{way:?}: {checked} checked, {unchecked} and {missed} not");
        let counted = stage.running.count("unchecked").await?;
        assert_eq!(counted, u64::try_from(unchecked)? + missed, "{way:?}");
        let runs = runs(behind.redis())?;
        assert!(runs >= checked, "{way:?}: {checked} checked, Redis was asked {runs} times");
        stage.running.assert_never_reloaded().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_trap_both_plugins_of_the_vm_ask_the_store_again() -> Result<()> {
    const NOW: (&str, &[u8]) = ("x-weir-test-now", b"1700000000000000");
    const TRAP: (&str, &[u8]) = ("x-weir-test-trap", b"1");
    for way in BRIDGED {
        let mut behind = Behind::start(way).await?;
        let running = start(two_plugins(way, &with_test_clock(), &behind)?, 1).await?;
        let mut expected = 0;
        for traps in 1..=2 {
            for (listener, rate) in [("ingress", RATE), ("second", RATE + 1)] {
                for _ in 0..20 {
                    let answer = ask(&running, listener, &[NOW]).await?;
                    let log = running.envoy.log();
                    assert!(is_checked_by(&answer, rate), "{way:?}, {listener}: {answer:?}\n{log}");
                    expected += 1;
                }
            }
            let trapped = Instant::now();
            let answer = ask(&running, "ingress", &[NOW, TRAP]).await?;
            assert_eq!(answer.status, 503, "{way:?}: the trapped request");
            for (listener, rate) in [("ingress", RATE), ("second", RATE + 1)] {
                let left = RELOAD.saturating_sub(trapped.elapsed());
                eventually("the store to be asked", left, async || {
                    let answer = ask(&running, listener, &[NOW]).await?;
                    let checked = is_checked_by(&answer, rate);
                    ensure!(checked || answer.status == 503, "{way:?}, {listener}: {answer:?}");
                    Ok(checked.then_some(()))
                })
                .await?;
                expected += 1;
            }
            println!("{way:?}: the store was asked again {:?} after the trap", trapped.elapsed());
            assert_eq!(running.envoy.stat("wasm.weir.vm_reload_success").await?, Some(2 * traps));
        }
        assert_eq!(runs(behind.redis())?, expected, "{way:?}");
        assert_eq!(running.count("unchecked").await?, 0, "{way:?}");
    }
    Ok(())
}
