//! Two Envoys before a Redis Cluster, callers on each of its masters, and their load.

use crate::support::{Running, artefact, config, shipped, start};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use weir_lab::{
    config::Config,
    eventually::eventually,
    http::Client,
    load::{self, LONGEST, MOST_REQUESTS, Plan, Report, Sample},
    redis::{Cluster, cluster},
};

/// How long a check may take, and Envoy's own client for a command: longer than this machine ever
/// needs for one, so that what is unchecked is so for want of a node.
const DEADLINE: &str = "1s";
const OP_TIMEOUT: Duration = Duration::from_secs(2);

/// A token comes in so many microseconds.
const TOKEN: u64 = 10_000;

/// What each bucket is charged first: a minute's worth, so that none is ever full in a test.
const FIRST_COST: &str = "6000";

/// Callers on each master.
const CALLERS: usize = 2;

/// Connections for each limit, master and Envoy, and how soon each asks again.
const CONNECTIONS: usize = 2;
const PACE: Duration = Duration::from_millis(50);

/// So long without a failure shows that everything is checked.
const CALM: Duration = Duration::from_secs(1);

/// How long something may take that does come.
const LONG: Duration = Duration::from_secs(15);

/// The limits, by what they do without the store, and the status that this is.
pub(crate) const LIMITS: [(&str, u16); 2] = [("allow", 200), ("deny", 503)];

/// One bucket.
pub(crate) struct Bucket {
    /// Its key in Redis.
    pub(crate) key: String,
    pub(crate) slot: u16,
    /// When it is full again, by its first charge: microseconds since the epoch.
    full_at: u64,
}

/// A caller has a bucket in each of the limits. Its keys share a hash tag, and so a slot.
pub(crate) struct Caller {
    name: String,
    pub(crate) range: u16,
    pub(crate) buckets: [Bucket; LIMITS.len()],
}

pub(crate) struct Stage {
    pub(crate) envoys: Vec<Running>,
    pub(crate) cluster: Cluster,
    pub(crate) callers: Vec<Caller>,
}

/// What came of the requests to one bucket.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) checked: Vec<Sample>,
    pub(crate) unchecked: Vec<Sample>,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self> {
        let cluster = Cluster::start(&artefact("WEIR_REDIS"), &cluster::Options::default())?;
        let config = with_limits(&cluster)?;
        let envoys = vec![start(config.clone(), 1).await?, start(config, 1).await?];
        for running in &envoys {
            cluster.found_by(&running.envoy).await?;
        }
        let mut stage = Self { envoys, cluster, callers: Vec::new() };
        stage.find_callers().await?;
        Ok(stage)
    }

    /// Charges the buckets of one caller after the other until each master has its callers.
    async fn find_callers(&mut self) -> Result<()> {
        let mut client = Client::connect(self.envoys[0].envoy.address("ingress")?).await?;
        let mut known = Vec::new();
        let callers_of = |callers: &[Caller], range| {
            callers.iter().filter(|caller| caller.range == range).count()
        };
        for number in 0.. {
            let name = format!("caller-{number}");
            let mut buckets = Vec::new();
            for (limit, _) in LIMITS {
                let headers: [(&str, &[u8]); 2] =
                    [("x-api-key", name.as_bytes()), ("x-cost", FIRST_COST.as_bytes())];
                let answer = client.get(&format!("/{limit}"), &headers).await?;
                let told = answer.header("ratelimit").is_some();
                assert!(answer.status == 200 && told, "{answer:?}");
                buckets.push(self.new_bucket(&mut known)?);
            }
            let range = self.cluster.range_of(buckets[0].slot);
            assert_eq!(buckets[0].slot, buckets[1].slot, "a caller's keys share a slot");
            if callers_of(&self.callers, range) < CALLERS {
                let buckets = buckets.try_into().ok().context("a bucket for each limit")?;
                self.callers.push(Caller { name, range, buckets });
            }
            let ranges = 0..self.cluster.ranges();
            if ranges.into_iter().all(|range| callers_of(&self.callers, range) == CALLERS) {
                break;
            }
        }
        Ok(())
    }

    /// The bucket that has come to the cluster since the last call.
    fn new_bucket(&self, known: &mut Vec<String>) -> Result<Bucket> {
        for master in self.cluster.masters()? {
            let mut client = master.client()?;
            if let Some(key) = client.keys()?.into_iter().find(|key| !known.contains(key)) {
                known.push(key.clone());
                let full_at = client.get(&key)?.context("a bucket")?.parse()?;
                return Ok(Bucket { slot: self.cluster.slot_of(&key)?, key, full_at });
            }
        }
        anyhow::bail!("the request has left no new key")
    }

    /// Load by every caller for as long as something goes on, and what came of it for each caller
    /// and limit.
    pub(crate) async fn under_load<T>(
        &mut self,
        doing: impl AsyncFnOnce(&mut Self) -> Result<T>,
    ) -> Result<(BTreeMap<(usize, usize), Tally>, T)> {
        let mut plans = Vec::new();
        let mut who = Vec::new();
        for running in &self.envoys {
            for (limit, (name, _)) in LIMITS.iter().enumerate() {
                for range in 0..self.cluster.ranges() {
                    let callers = self.callers.iter().enumerate();
                    let callers: Vec<_> =
                        callers.filter(|(_, caller)| caller.range == range).collect();
                    let headers = callers.iter().map(|(_, caller)| caller.headers());
                    plans.push(Plan {
                        target: running.envoy.address("ingress")?,
                        path: format!("/{name}"),
                        headers: headers.collect(),
                        connections: CONNECTIONS,
                        duration: LONGEST,
                        requests: MOST_REQUESTS,
                    });
                    who.push((limit, callers.iter().map(|(number, _)| *number).collect()));
                }
            }
        }
        let (reports, done) = load::during(&plans, PACE, doing(self)).await?;
        Ok((tallies(&reports, &who), done))
    }

    /// A counter of the filter, of both Envoys.
    pub(crate) async fn count(&self, name: &str) -> Result<u64> {
        let mut sum = 0;
        for running in &self.envoys {
            sum += running.count(name).await?;
        }
        Ok(sum)
    }

    /// Limits that could not be checked so far.
    pub(crate) async fn failures(&self) -> Result<u64> {
        Ok(self.count("unchecked").await? + self.count("unavailable").await?)
    }

    /// Waits until so many more requests have been checked.
    pub(crate) async fn checks(&self, more: u64) -> Result<()> {
        let before = self.count("allowed").await?;
        eventually("requests to be checked", LONG, async || {
            Ok((self.count("allowed").await? >= before + more).then_some(()))
        })
        .await
    }

    /// Waits until nothing has been unchecked for a while.
    pub(crate) async fn calm(&self) -> Result<()> {
        let mut last = (self.failures().await?, Instant::now());
        eventually("everything to be checked", LONG, async || {
            let failures = self.failures().await?;
            if failures != last.0 {
                last = (failures, Instant::now());
            }
            Ok((last.1.elapsed() >= CALM).then_some(()))
        })
        .await
    }

    /// Tokens that a bucket was charged since its first charge. The limit brings a token in a whole
    /// number of microseconds, and a bucket that is neither full nor empty meanwhile is one instant
    /// that every charge moves on by exactly that.
    pub(crate) fn charged(&self, bucket: &Bucket) -> Result<i64> {
        let full_at = self.cluster.client_of(bucket.slot)?.get(&bucket.key)?;
        let full_at: i64 = full_at.context("a bucket")?.parse()?;
        let moved = full_at - i64::try_from(bucket.full_at)?;
        let token = i64::try_from(TOKEN)?;
        assert_eq!(moved % token, 0, "a bucket was full or empty, or a charge was none of a token");
        Ok(moved / token)
    }

    /// Checks that every request of some ranges was checked, and charged once. Times in the message
    /// are counted from `since`.
    pub(crate) fn assert_exact(
        &self,
        since: Instant,
        tallies: &BTreeMap<(usize, usize), Tally>,
        in_range: impl Fn(u16) -> bool,
    ) -> Result<()> {
        for ((caller, limit), tally) in tallies {
            let caller = &self.callers[*caller];
            if in_range(caller.range) {
                let case =
                    format!("{} of range {}, {}", caller.name, caller.range, LIMITS[*limit].0);
                let unchecked = tally.unchecked.iter();
                let unchecked: Vec<_> = unchecked
                    .map(|sample| {
                        (
                            sample.sent.saturating_duration_since(since),
                            sample.answered.saturating_duration_since(since),
                        )
                    })
                    .collect();
                assert!(unchecked.is_empty(), "{case}: unchecked at {unchecked:?}");
                assert!(!tally.checked.is_empty(), "{case}: no load");
                let charged = self.charged(&caller.buckets[*limit])?;
                assert_eq!(charged, number(tally.checked.len()), "{case}");
            }
        }
        Ok(())
    }
}

/// The configuration of an Envoy before a cluster.
pub(crate) fn with_limits(cluster: &Cluster) -> Result<Config> {
    let mut config = config("redis-cluster.yaml", &shipped())?;
    cluster.add_to(&mut config)?;
    config.rewrite_paths("ingress", "/api/hello")?;
    config.set_op_timeout(OP_TIMEOUT)?;
    config.set_timeout("ingress", DEADLINE)?;
    let mut policy: Value = serde_json::from_str(&config.policy("ingress")?)?;
    policy["limits"] = json!(LIMITS.map(|(name, _)| json!({
        "name": name, "match": { "path": format!("/{name}") }, "key": ["header:x-api-key"],
        "rate": "100/second", "burst": 100_000, "cost": "header:x-cost",
        "on_store_failure": name,
    })));
    config.set_policy("ingress", &policy.to_string())?;
    Ok(config)
}

impl Caller {
    fn headers(&self) -> Vec<(String, String)> {
        [("x-api-key", self.name.as_str()), ("x-cost", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }
}

/// Sorts answers by caller and limit. Each must be one that its limit gives, with the store or
/// without it.
fn tallies(reports: &[Report], who: &[(usize, Vec<usize>)]) -> BTreeMap<(usize, usize), Tally> {
    let mut tallies: BTreeMap<_, Tally> = BTreeMap::new();
    for (report, (limit, callers)) in reports.iter().zip(who) {
        assert_eq!(report.unanswered, 0);
        for sample in &report.samples {
            let tally = tallies.entry((callers[sample.headers], *limit)).or_default();
            if (sample.status, sample.told) == (200, true) {
                tally.checked.push(*sample);
            } else {
                let (name, status) = LIMITS[*limit];
                assert_eq!((sample.status, sample.told), (status, false), "{name}: {sample:?}");
                tally.unchecked.push(*sample);
            }
        }
    }
    tallies
}

pub(crate) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
