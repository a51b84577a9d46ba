//! A fleet of eight gateways: with a shared store it keeps a limit as one, however its callers are
//! spread over it; without one each gateway keeps its own.
//!
//! The deadline for the store is long, since a busy machine is no outage here: all is checked.

mod support;

use anyhow::{Context, Result};
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::{
    artefact, config,
    fleet::{
        CALLER, CONNECTIONS, GATEWAYS, PATH, Stage,
        bucket::{self, Between, FIRST, RATE, exhaust, given, open},
        exact, number, sharded,
    },
    shipped,
    stores::{Behind, Way},
};
use tokio::sync::Mutex;
use weir_lab::{
    fleet::{
        load::{self, Plan, Stream},
        report::Counts,
        spread::Spread,
    },
    redis::{Cluster, Redis, cluster},
};

/// One test at a time: each is load to the others.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Gateways with one way to a store, and what stands behind it.
async fn start(way: Way, fields: &Value) -> Result<(Stage, Behind)> {
    let behind = Behind::start(way).await?;
    let mut config = way.config(&shipped())?;
    way.be_patient(&mut config)?;
    let policy = way.policy(&mut config, fields)?;
    config.set_policy("ingress", &policy)?;
    let mut nodes = Vec::new();
    if let Some((cluster, address)) = way.cluster().zip(behind.address()) {
        config.set_endpoint(cluster, address)?;
        nodes.push(behind.redis.as_ref().context("no Redis")?.client()?);
    }
    Ok((Stage::start(config, nodes, None).await?, behind))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_redis_eight_gateways_give_what_one_bucket_holds() -> Result<()> {
    let _alone = ALONE.lock().await;
    let (mut stage, _behind) = start(Way::Direct, &bucket::limits()).await?;
    exact::check(&mut stage, "one Redis").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_redis_a_sharded_limit_gives_every_token_once() -> Result<()> {
    let _alone = ALONE.lock().await;
    let name = "sharded";
    let (mut stage, _behind) = start(Way::Proxied, &sharded::limits(name)).await?;
    sharded::check(&mut stage, "one Redis behind Envoy's own client", name).await?;
    Ok(())
}

/// Gateways before a Cluster of three masters with a replica each.
async fn start_with_cluster(fields: &Value) -> Result<(Stage, Cluster)> {
    let cluster = Cluster::start(&artefact("WEIR_REDIS"), &cluster::Options::default())?;
    let mut config = config("redis-cluster.yaml", &shipped())?;
    cluster.add_to(&mut config)?;
    config.set_op_timeout(Duration::from_secs(2))?;
    let mut policy: Value = serde_json::from_str(&Way::Proxied.policy(&mut config, fields)?)?;
    // The keys that the test looks for are those without a secret.
    policy.as_object_mut().context("a policy")?.remove("key_secret");
    config.set_policy("ingress", &policy.to_string())?;
    let nodes = cluster.masters()?.into_iter().map(Redis::client).collect::<Result<_>>()?;
    Ok((Stage::start(config, nodes, Some(&cluster)).await?, cluster))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_cluster_eight_gateways_give_what_one_bucket_holds() -> Result<()> {
    let _alone = ALONE.lock().await;
    let (mut stage, _cluster) = start_with_cluster(&bucket::limits()).await?;
    exact::check(&mut stage, "a Cluster of three").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shards_of_a_limit_load_each_node_of_a_cluster_alike() -> Result<()> {
    let _alone = ALONE.lock().await;
    let name = "sharded";
    let (mut stage, _cluster) = start_with_cluster(&sharded::limits(name)).await?;
    let ops = sharded::check(&mut stage, "a Cluster of three", name).await?;
    assert!(ops.uneven_per_mille() <= 100, "{ops}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_shared_store_eight_gateways_give_eight_times_the_limit() -> Result<()> {
    const SECONDS: u32 = 10;
    /// Twice what all gateways allow.
    const PER_SECOND: u32 = 2 * 8 * RATE;
    let _alone = ALONE.lock().await;
    let (mut stage, _behind) = start(Way::Local, &bucket::limits()).await?;
    let caller = "alice";
    let mut firsts = Vec::new();
    for gateway in 0..GATEWAYS {
        firsts.push(open(&mut stage, gateway, caller, clock).await?);
    }
    let stream = Stream {
        path: PATH.to_owned(),
        headers: vec![(CALLER.to_owned(), caller.to_owned())],
        spread: Spread::Even,
        per_second: PER_SECOND,
        requests: (PER_SECOND * SECONDS) as usize,
    };
    let gateways = stage.fleet.addresses("ingress")?;
    let plan = Plan { gateways, connections: CONNECTIONS, streams: vec![stream] };
    let report = load::run(&plan).await?;
    println!("no shared store, {SECONDS} s\n{report}");
    let Counts { unchecked, other, .. } = report.counts();
    assert_eq!((unchecked, other, report.unanswered), (0, 0, 0), "{}", stage.fleet.log());

    let (mut all, mut least, mut most) = (0, 0, 0);
    for (gateway, (first, counts)) in firsts.iter().zip(report.by_gateway()).enumerate() {
        let (after, refused) = exhaust(&mut stage, &[gateway], caller, clock).await?;
        let (tokens, bounds) = (FIRST + number(counts.allowed) + after, given(*first, refused));
        println!("gateway {}: {tokens} tokens given, {bounds:?} by the clock", gateway + 1);
        assert!(bounds.contains(&tokens), "gateway {}", gateway + 1);
        (all, least, most) = (all + tokens, least + bounds.start(), most + bounds.end());
    }
    let one = one_bucket(&firsts, clock(&mut stage)?);
    println!("{all} tokens given, {least} to {most} by the clock; one bucket gives {one}");
    assert!(all > (number(GATEWAYS) - 1) * one);
    assert_eq!(stage.counters().await?[2], 0, "unchecked");
    stage.assert_never_reloaded().await
}

/// The most that one bucket gives until now.
fn one_bucket(firsts: &[Between], now: u64) -> u64 {
    let first = firsts.iter().copied().min_by_key(|first| first.before);
    let now = Between { before: now, after: now };
    first.map_or(0, |first| *given(first, now).end())
}

/// The time by which Envoy decides, in microseconds since the epoch.
fn clock(_: &mut Stage) -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?)
}

#[test]
fn what_a_bucket_can_have_given_is_known_to_the_token() {
    let at = |time| Between { before: time, after: time };
    // It held 100 tokens, and 200 came; refused in the very microsecond of the next, it gave them.
    assert_eq!(given(at(5), at(2_000_005)), 300..=300);
    // An uncertainty of 5 ms on either side is one of a token.
    let (first, refused) = (at(0), Between { before: 1_995_000, after: 2_005_000 });
    assert_eq!(given(first, refused), 299..=300);
}
