//! The configurations of `envoy/` as an operator loads them, and policies that Envoy must refuse.

mod support;

use anyhow::{Context, Result};
use serde_json::json;
use std::{fs, time::Duration};
use support::{
    Running, artefact, config, example, shipped, start, start_local,
    stores::{Behind, Stack, Way},
};
use weir_lab::{
    http::Client,
    redis::{Cluster, Options, Redis, Tls, cluster},
};

/// Checks that of 40 requests at once some are refused, and none is unchecked.
async fn limits(running: &Running, name: &str) -> Result<()> {
    let mut client = Client::connect(running.envoy.address("ingress")?).await?;
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(client.get("/api/hello", &[("x-api-key", b"alice")]).await?.status);
    }
    let count = |status| statuses.iter().filter(|found| **found == status).count();
    assert!(count(200) >= 4 && count(429) > 0, "{name}: {statuses:?}\n{}", running.envoy.log());
    assert_eq!(count(200) + count(429), 40, "{name}: {statuses:?}");
    assert_eq!(running.count("unchecked").await?, 0, "{name}: {}", running.envoy.log());
    Ok(())
}

/// The fields of a policy that 40 requests at once exceed.
fn exceeded() -> serde_json::Value {
    json!({ "limits": [{ "name": "per-key", "key": ["header:x-api-key"], "rate": "4/second" }] })
}

#[tokio::test]
async fn every_way_to_a_store_limits() -> Result<()> {
    for way in Way::ALL {
        let mut stack = Stack::of(way, &exceeded(), 2).await?;
        limits(&stack.running, way.file()).await?;
        if way != Way::Local {
            let mut redis = stack.behind.redis().client()?;
            assert_eq!(redis.count()?, 1, "{way:?}: the count is in Redis");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_demo_limits_the_api_and_leaves_the_page_alone() -> Result<()> {
    let running = start(config("demo.yaml", &shipped())?, 2).await?;
    limits(&running, "demo.yaml").await?;
    let mut client = Client::connect(running.envoy.address("ingress")?).await?;
    assert_ne!(client.get("/", &[("x-api-key", b"alice")]).await?.status, 429);
    Ok(())
}

#[tokio::test]
async fn a_redis_with_a_password_and_tls_limits() -> Result<()> {
    let options = Options { password: Some("a pass/word".into()), tls: true, ..Options::default() };
    let redis = Redis::start_with(&artefact("WEIR_REDIS"), options)?;
    let folder = tempfile::tempdir()?;
    let password = folder.path().join("password");
    fs::write(&password, redis.password().context("a password")?)?;
    let mut config = config("redis-tls.yaml", &shipped())?;
    let tls = redis.tls().context("TLS")?;
    config.set_password_file("redis", &password)?;
    config.set_trust("redis", tls.authority(), Tls::NAME)?;
    config.set_endpoint("redis", tls.address())?;
    let policy = Way::Proxied.policy(&mut config, &exceeded())?;
    config.set_policy("ingress", &policy)?;
    let running = start(config, 2).await?;
    limits(&running, "redis-tls.yaml").await?;
    let _behind = Behind { webdis: None, rest: None, redis: Some(redis) };
    Ok(())
}

#[tokio::test]
async fn a_redis_cluster_with_a_password_and_tls_limits() -> Result<()> {
    let password = Some("a pass/word".to_owned());
    let options = cluster::Options { password, tls: true, ..cluster::Options::default() };
    let cluster = Cluster::start(&artefact("WEIR_REDIS"), &options)?;
    let mut config = config("redis-cluster.yaml", &shipped())?;
    cluster.add_to(&mut config)?;
    config.set_op_timeout(Duration::from_secs(2))?;
    config.set_timeout("ingress", "1s")?;
    let mut policy: serde_json::Value = serde_json::from_str(&config.policy("ingress")?)?;
    // A bucket of these rates lives for longer than this test.
    policy["limits"][0]["rate"] = json!("4/minute");
    policy["limits"][0]["burst"] = json!(4);
    policy["limits"][1]["rate"] = json!("6000/hour");
    policy["limits"][1]["burst"] = json!(6000);
    config.set_policy("ingress", &policy.to_string())?;
    let running = start(config, 2).await?;
    cluster.found_by(&running.envoy).await?;
    limits(&running, "redis-cluster.yaml").await?;

    let keys = || -> Result<Vec<u64>> {
        cluster.masters()?.into_iter().map(|master| master.client()?.count()).collect()
    };
    let before = keys()?;
    let mut client = Client::connect(running.envoy.address("ingress")?).await?;
    for caller in 0..20 {
        let name = format!("caller-{caller}");
        let answer = client.get("/api/hello", &[("x-api-key", name.as_bytes())]).await?;
        assert_eq!(answer.status, 200, "{name}: {}", running.envoy.log());
    }
    assert_eq!(running.count("unchecked").await?, 0, "{}", running.envoy.log());
    let after = keys()?;
    let everywhere = before.iter().zip(&after).all(|(before, after)| before < after);
    assert!(everywhere, "the callers are not spread over the masters: {before:?}, {after:?}");

    // A slot moves by TLS too, and Envoy follows it to a port for TLS.
    let key = cluster.masters()?[0].client()?.keys()?.pop().context("a key")?;
    let slot = cluster.slot_of(&key)?;
    cluster.migrate(slot, 1)?.finish()?;
    assert!(cluster.client_of(slot)?.get(&key)?.is_some(), "the bucket has moved");
    for caller in 0..20 {
        let name = format!("caller-{caller}");
        client.get("/api/hello", &[("x-api-key", name.as_bytes())]).await?;
    }
    assert_eq!(running.count("unchecked").await?, 0, "{}", running.envoy.log());
    Ok(())
}

#[test]
fn every_example_is_in_a_test_above() -> Result<()> {
    let mut names: Vec<_> = fs::read_dir(example(""))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    let mut tested: Vec<_> = Way::ALL.map(Way::file).map(String::from).into();
    tested.extend(["demo.yaml", "redis-tls.yaml", "redis-cluster.yaml"].map(String::from));
    names.sort();
    tested.sort();
    assert_eq!(names, tested);
    Ok(())
}

#[tokio::test]
async fn a_wrong_policy_is_refused_at_start_with_every_fault_in_one_message() {
    let policy = r#"{"limits":[{"name":"","key":["hdr:x"],"rte":"1/second"}],"namespace":7}"#;
    let Err(error) = start_local(policy, 1).await else { panic!("Envoy started") };
    let log = format!("{error:#}");
    let message = log.split("weir: the policy is refused: ").nth(1).unwrap_or_default();
    for path in ["namespace", "limits[0].name", "limits[0].key[0]", "limits[0].rate", "\"rte\""] {
        assert!(message.contains(path), "{path} is not in {log}");
    }
    assert!(message.starts_with("5 faults in the policy:"), "{log}");
}
