//! A Redis Cluster loses a master, or moves a slot, under load. What is on the other masters never
//! notices; what was on the lost one goes by its limit until a replica has taken over; and what the
//! buckets hold is what the clients were told.

mod cluster {
    pub(crate) mod stage;
}
mod support;

use anyhow::{Context, Result};
use cluster::stage::{LIMITS, Stage, Tally, number, with_limits};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use support::{artefact, config, shipped, start};
use tokio::sync::Mutex;
use weir_lab::{
    eventually::eventually,
    http::Client,
    link::{Cut, Link},
    load::Sample,
    redis::{Cluster, cluster::Options},
};

/// The range whose master is lost.
const LOST: u16 = 1;

/// How soon a replica takes over, on a busy machine too. A node is taken for lost after two seconds.
const FAILOVER: Duration = Duration::from_secs(12);

/// Until then nobody takes a node for lost, so nobody has taken over.
const ALONE_AT_LEAST: Duration = Duration::from_millis(1_900);

/// A request that is on its way when a node is lost may have been checked.
const ON_ITS_WAY: Duration = Duration::from_millis(50);

/// What a replica may be behind its master by: it is sent each change as it is made.
const BEHIND: Duration = Duration::from_secs(1);

/// Requests that show that there is load.
const SOME: u64 = 200;

/// One test at a time: each would be an outage to the others.
static ALONE: Mutex<()> = Mutex::const_new(());

/// When what happened.
struct Times {
    lost: Instant,
    /// The node was gone for certain.
    gone: Instant,
    taken_over: Instant,
    /// Everything has been checked for a while, or the lost node was let go on.
    calm: Instant,
}

/// How a master is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Frozen,
    Killed,
}

impl Loss {
    /// Loses a master, and waits until its replica serves and Envoy asks it. One that was frozen
    /// goes on then, and must become a replica that nobody notices.
    async fn befall(self, stage: &mut Stage) -> Result<Times> {
        stage.checks(SOME).await?;
        let lost = Instant::now();
        let node = match self {
            Self::Frozen => stage.cluster.freeze(LOST)?,
            Self::Killed => stage.cluster.kill(LOST)?,
        };
        let gone = Instant::now();
        let heir = stage.cluster.failed_over(LOST, FAILOVER).await?;
        assert_ne!(heir, node);
        let taken_over = Instant::now();
        stage.calm().await?;
        let calm = Instant::now();
        if self == Self::Frozen {
            stage.cluster.thaw(node)?;
            eventually("the old master to be a replica", FAILOVER, async || {
                Ok(stage.cluster.is_copy(node)?.then_some(()))
            })
            .await?;
            stage.checks(SOME).await?;
            stage.calm().await?;
        }
        stage.checks(SOME).await?;
        Ok(Times { lost, gone, taken_over, calm })
    }
}

async fn lose_a_master(loss: Loss) -> Result<()> {
    let _alone = ALONE.lock().await;
    let mut stage = Stage::start().await?;
    let lost = stage.under_load(async |stage| loss.befall(stage).await).await;
    let log = stage.envoys[0].envoy.log();
    let (tallies, times) = lost.with_context(|| format!("{loss:?}\n{log}"))?;

    stage.assert_exact(times.lost, &tallies, |range| range != LOST)?;
    let of_lost: Vec<_> =
        tallies.iter().filter(|((caller, _), _)| stage.callers[*caller].range == LOST).collect();
    let mut tokens = 0;
    for ((caller, limit), tally) in &of_lost {
        let case = format!("{loss:?}, {}", LIMITS[*limit].0);
        assert_goes_by_its_limit(&case, tally, &times);
        let bucket = &stage.callers[*caller].buckets[*limit];
        tokens += assert_lost_little(&case, tally, stage.charged(bucket)?, &times);
    }
    let unchecked = |limit: usize| -> usize {
        of_lost
            .iter()
            .filter(|((_, of), _)| *of == limit)
            .map(|(_, tally)| tally.unchecked.len())
            .sum()
    };
    assert_eq!(number(unchecked(0)), i64::try_from(stage.count("unchecked").await?)?);
    assert_eq!(number(unchecked(1)), i64::try_from(stage.count("unavailable").await?)?);
    show(loss, &tallies, &times, tokens);
    for running in &stage.envoys {
        running.assert_never_reloaded().await?;
    }
    Ok(())
}

/// Checks that a limit of the lost node was unchecked while nobody could have checked it, and is
/// checked ever after.
fn assert_goes_by_its_limit(case: &str, tally: &Tally, times: &Times) {
    let alone = (times.gone + ON_ITS_WAY)..(times.lost + ALONE_AT_LEAST);
    let while_alone =
        |sample: &&Sample| alone.contains(&sample.sent) && alone.contains(&sample.answered);
    let checked = tally.checked.iter().find(while_alone);
    assert!(checked.is_none(), "{case}: checked by a node that is gone: {checked:?}");
    assert!(tally.unchecked.iter().any(|sample| while_alone(&sample)), "{case}: no load");
    let early = tally.unchecked.iter().find(|sample| sample.answered < times.lost);
    assert!(early.is_none(), "{case}: unchecked before anything was lost: {early:?}");
    let late = tally.unchecked.iter().find(|sample| sample.sent >= times.calm);
    assert!(late.is_none(), "{case}: unchecked after it all: {late:?}");
    assert!(tally.checked.iter().any(|sample| sample.sent >= times.calm), "{case}: no load");
}

/// Checks how many tokens were lost with the node, and returns how many.
///
/// Every answer that was checked was charged once, and one that was not may have been charged too:
/// its reply came too late, or not at all. So what is missing is at least minus the number of
/// those. A node sends each charge to its replica as it sends its reply, and waits for nobody: what
/// is missing was charged shortly before the end.
fn assert_lost_little(case: &str, tally: &Tally, charged: i64, times: &Times) -> i64 {
    let missing = number(tally.checked.len()) - charged;
    let unchecked = number(tally.unchecked.len());
    assert!(missing >= -unchecked, "{case}: {charged} were charged, beyond {unchecked} unchecked");
    let last = tally.checked.iter();
    let last =
        last.filter(|sample| sample.sent <= times.gone && sample.answered + BEHIND >= times.lost);
    let last = number(last.count());
    assert!(missing <= last, "{case}: {missing} are missing, {last} were the last");
    missing
}

fn show(loss: Loss, tallies: &BTreeMap<(usize, usize), Tally>, times: &Times, tokens: i64) {
    let sum = |of: fn(&Tally) -> usize| tallies.values().map(of).sum::<usize>();
    let unchecked = tallies.values().flat_map(|tally| &tally.unchecked);
    let last = unchecked.map(|sample| sample.answered).max().unwrap_or(times.lost);
    println!(
        "{loss:?}: a replica took over after {:?}, the last unchecked answer came after {:?}; \
         {} checked, {} unchecked; {tokens} tokens lost",
        times.taken_over - times.lost,
        last - times.lost,
        sum(|tally| tally.checked.len()),
        sum(|tally| tally.unchecked.len()),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_master_is_noticed_by_its_own_keys_alone_until_its_replica_takes_over()
-> Result<()> {
    lose_a_master(Loss::Frozen).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_master_takes_no_more_with_it_than_its_last_charges() -> Result<()> {
    lose_a_master(Loss::Killed).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_under_load_loses_no_request_and_no_charge() -> Result<()> {
    let _alone = ALONE.lock().await;
    let mut stage = Stage::start().await?;
    let caller = stage.callers.iter().find(|caller| caller.range == 0).context("a caller")?;
    let (slot, key) = (caller.buckets[0].slot, caller.buckets[0].key.clone());
    let from = stage.cluster.master_of(slot)?;
    let began = Instant::now();
    let moved = stage.under_load(async |stage| {
        stage.checks(SOME).await?;
        let migration = stage.cluster.migrate(slot, 1)?;
        stage.checks(SOME).await?;
        assert_eq!(migration.left(10)?.len(), LIMITS.len(), "nothing has moved yet");
        // Half-way: of two keys in the slot, one is here and one is there.
        migration.carry(&[key])?;
        stage.checks(3 * SOME).await?;
        assert_eq!(migration.left(10)?.len(), LIMITS.len() - 1);
        migration.finish()?;
        stage.checks(3 * SOME).await
    });
    let (tallies, ()) = moved.await?;
    assert_ne!(stage.cluster.master_of(slot)?, from, "the slot has a new master");
    stage.assert_exact(began, &tallies, |_| true)?;
    let mut old = stage.cluster.nodes().nth(from).context("the old master")?.client()?;
    let [asked, moved] = ["ASK", "MOVED"].map(|kind| old.errors(kind));
    let (asked, moved) = (asked?, moved?);
    println!("{asked} were sent on while the slot was half-way, {moved} once it had moved");
    assert!(asked > 0 && moved > 0);
    assert_eq!(stage.failures().await?, 0);
    Ok(())
}

/// Two limits go in one script, which neither node of a half-moved slot can run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_limits_of_a_request_are_checked_while_their_slot_is_half_moved() -> Result<()> {
    const TOKEN: u64 = 10_000;
    const ASKED: u64 = 200;
    let _alone = ALONE.lock().await;
    let cluster = Cluster::start(&artefact("WEIR_REDIS"), &Options::default())?;
    let mut config = config("redis-cluster.yaml", &shipped())?;
    cluster.add_to(&mut config)?;
    config.set_op_timeout(Duration::from_secs(2))?;
    config.set_timeout("ingress", "1s")?;
    let mut policy: Value = serde_json::from_str(&config.policy("ingress")?)?;
    policy["limits"] = json!(["first", "second"].map(|name| json!({
        "name": name, "key": ["header:x-api-key"], "rate": "100/second", "burst": 100_000,
        "cost": "header:x-cost",
    })));
    config.set_policy("ingress", &policy.to_string())?;
    let running = start(config, 1).await?;
    cluster.found_by(&running.envoy).await?;
    let mut client = Client::connect(running.envoy.address("ingress")?).await?;
    let mut ask = async |cost: &[u8]| {
        let headers: [(&str, &[u8]); 2] = [("x-api-key", b"alice"), ("x-cost", cost)];
        client.get("/api/hello", &headers).await
    };
    // A minute's worth, so that neither bucket is ever full.
    assert_eq!(ask(b"6000").await?.status, 200);
    let mut keys = Vec::new();
    for master in cluster.masters()? {
        keys.extend(master.client()?.keys()?);
    }
    let [one, other] = keys.as_slice() else { anyhow::bail!("the buckets are {keys:?}") };
    let slot = cluster.slot_of(one)?;
    assert_eq!(cluster.slot_of(other)?, slot, "they share a slot");
    let full_at = |key: &str| -> Result<u64> {
        Ok(cluster.client_of(slot)?.get(key)?.context("a bucket")?.parse()?)
    };
    let before = [full_at(one)?, full_at(other)?];

    let migration = cluster.migrate(slot, (cluster.range_of(slot) + 1) % cluster.ranges())?;
    migration.carry(std::slice::from_ref(one))?;
    for _ in 0..ASKED {
        let answer = ask(b"1").await?;
        assert!(answer.status == 200 && answer.header("ratelimit").is_some(), "{answer:?}");
    }
    let calls = running.count("store_calls").await?;
    assert_eq!(calls, 1 + 3 * ASKED, "each was asked in one call, then in two");
    migration.finish()?;
    for _ in 0..ASKED {
        assert_eq!(ask(b"1").await?.status, 200);
    }
    assert_eq!(running.count("store_calls").await?, calls + ASKED, "in one call again");
    assert_eq!(running.count("unchecked").await?, 0, "{}", running.envoy.log());
    let charged = 2 * ASKED * TOKEN;
    assert_eq!([full_at(one)?, full_at(other)?], before.map(|at| at + charged));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoy_starts_without_its_cluster_and_finds_it_later() -> Result<()> {
    let _alone = ALONE.lock().await;
    let cluster = Cluster::start(&artefact("WEIR_REDIS"), &Options::default())?;
    let mut link = Link::start(*cluster.seeds().first().context("a node")?).await?;
    link.cut(Cut::Reset).await?;
    let mut config = with_limits(&cluster)?;
    config.set_endpoints("redis", &[link.address()])?;
    let running = start(config, 1).await?;
    let mut client = Client::connect(running.envoy.address("ingress")?).await?;
    for (limit, status) in LIMITS {
        assert_eq!(client.get(&format!("/{limit}"), &[]).await?.status, status, "{limit}");
    }
    assert_eq!(running.count("unchecked").await?, 1);
    assert_eq!(running.count("unavailable").await?, 1);

    link.heal()?;
    cluster.found_by(&running.envoy).await?;
    eventually("a check", FAILOVER, async || {
        let answer = client.get("/deny", &[]).await?;
        Ok((answer.status == 200 && answer.header("ratelimit").is_some()).then_some(()))
    })
    .await
}
