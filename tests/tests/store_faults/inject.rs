//! How a store is broken, and mended.

use super::stage::{LONG, Stage, password};
use crate::support::stores::Way;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::time::Duration;
use weir_lab::{
    config::Config,
    eventually::eventually,
    faults::{self, Faulty},
    link::Cut,
    redis::Client,
};

/// What is wrong with a store.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// Envoy's configuration, from the start and for good.
    Configuration(fn(Way, &mut Config) -> Result<()>),
    /// Nobody listens.
    Refused,
    /// Everything takes so much longer, there and back.
    Slow(Duration),
    /// A server that does this listens in its place.
    Server(fn(Way) -> faults::Fault),
    /// Redis, from these commands on and until those.
    Redis(&'static [Command], &'static [Command]),
    /// Redis wants a password that nobody knows.
    Password,
}

/// The words of a command.
pub(crate) type Command = &'static [&'static str];

/// A fault that has been injected.
#[derive(Default)]
pub(crate) struct Injected {
    _server: Option<Faulty>,
    /// A connection that is older than the fault.
    redis: Option<Client>,
}

impl Fault {
    /// The change of Envoy's configuration; none for a fault that comes later.
    pub(crate) fn edit(self) -> fn(Way, &mut Config) -> Result<()> {
        match self {
            Self::Configuration(edit) => edit,
            Self::Password => knows_password,
            _ => |_, _| Ok(()),
        }
    }

    /// Breaks a store that works, and waits until Envoy has noticed the end of its connections: how
    /// a request fares on one that is just ending is not the question.
    pub(crate) async fn inject(self, stage: &mut Stage) -> Result<Injected> {
        let mut injected = Injected::default();
        match self {
            Self::Configuration(_) => {}
            Self::Refused => {
                stage.link.cut(Cut::Close).await?;
                gone(stage).await?;
            }
            Self::Slow(delay) => stage.link.delay(delay),
            Self::Server(fault) => {
                let server = Faulty::start(fault(stage.way)).await?;
                stage.link.lead_to(server.address());
                gone(stage).await?;
                injected._server = Some(server);
            }
            Self::Redis(commands, _) => {
                let mut redis = stage.behind.redis().client()?;
                commands.iter().try_for_each(|command| redis.run(command))?;
            }
            Self::Password => {
                let mut redis = stage.behind.redis().client()?;
                redis.config_set("requirepass", "another")?;
                // Who is in stays in.
                redis.run(&["CLIENT", "KILL", "TYPE", "normal"])?;
                injected.redis = Some(redis);
                if stage.way.is_bridge() {
                    gone(stage).await?;
                }
            }
        }
        Ok(injected)
    }

    /// Mends it. Whether it can be mended.
    pub(crate) fn mend(self, stage: &mut Stage, injected: Injected) -> Result<bool> {
        match self {
            Self::Configuration(_) => return Ok(false),
            Self::Refused => stage.link.heal()?,
            Self::Slow(_) => stage.link.delay(Duration::ZERO),
            Self::Server(_) => stage.link.lead_to(stage.behind.address().context("a store")?),
            Self::Redis(_, commands) => {
                let mut redis = stage.behind.redis().client()?;
                commands.iter().try_for_each(|command| redis.run(command))?;
            }
            Self::Password => {
                let mut redis = injected.redis.context("a connection")?;
                redis.config_set("requirepass", password(stage.way).unwrap_or_default())?;
                // Envoy's Redis client gives its password once for each connection, and uses one
                // where it was wrong all the same, until it ends.
                redis.run(&["CLIENT", "KILL", "TYPE", "normal"])?;
            }
        }
        Ok(true)
    }
}

/// Waits until Envoy has lost its connections. The bridge alone makes a new one at once.
pub(crate) async fn gone(stage: &Stage) -> Result<()> {
    let cluster = stage.way.cluster().context("a shared store")?;
    let name = format!("cluster.{cluster}.upstream_cx_destroy");
    eventually("Envoy to lose its connections", LONG, async || {
        let lost = stage.running.envoy.stat(&name).await?;
        Ok((lost >= Some(1)).then_some(()))
    })
    .await
}

/// Envoy's Redis client has the password.
fn knows_password(way: Way, config: &mut Config) -> Result<()> {
    const OPTIONS: &str = "envoy.filters.network.redis_proxy";
    let (Way::Proxied, Some(password)) = (way, password(way)) else { return Ok(()) };
    let options = json!({ OPTIONS: {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions",
        "auth_password": { "inline_string": password },
    } });
    edit(config, "redis", "typed_extension_protocol_options", options)
}

/// The policy's store is a cluster that Envoy does not have.
pub(crate) fn unknown_cluster(_: Way, config: &mut Config) -> Result<()> {
    let mut policy: Value = serde_json::from_str(&config.policy("ingress")?)?;
    policy["store"]["cluster"] = json!("nowhere");
    config.set_policy("ingress", &policy.to_string())
}

/// The store's cluster has no host.
pub(crate) fn no_host(way: Way, config: &mut Config) -> Result<()> {
    let cluster = way.cluster().context("a shared store")?;
    edit(config, cluster, "load_assignment", json!({ "cluster_name": cluster }))
}

/// Envoy may send nothing to the cluster that the policy names.
pub(crate) fn circuit_breaker(way: Way, config: &mut Config) -> Result<()> {
    let cluster = match way.cluster() {
        // A worker's stream is one request that never ends. Once it is open no circuit breaker
        // counts what it carries, so the only one that can hit is that for opening it.
        _ if way.is_bridge() => "weir_bridge",
        cluster => cluster.context("a shared store")?,
    };
    let nothing = json!({ "max_pending_requests": 0, "max_requests": 0 });
    edit(config, cluster, "circuit_breakers", json!({ "thresholds": [nothing] }))
}

/// Envoy may send little to it at a time.
pub(crate) fn narrow_circuit_breaker(way: Way, config: &mut Config) -> Result<()> {
    let little = json!({ "max_connections": 2, "max_pending_requests": 2, "max_requests": 2 });
    let cluster = way.cluster().context("a shared store")?;
    edit(config, cluster, "circuit_breakers", json!({ "thresholds": [little] }))
}

fn edit(config: &mut Config, cluster: &str, field: &str, value: Value) -> Result<()> {
    let clusters = &mut config.value_mut()["static_resources"]["clusters"];
    let clusters = clusters.as_array_mut().context("clusters")?;
    let cluster = clusters.iter_mut().find(|found| found["name"] == cluster);
    cluster.context("the cluster")?[field] = value;
    Ok(())
}
