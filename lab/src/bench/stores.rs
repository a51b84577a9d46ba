//! The ways to a shared store that are measured: a file of `envoy/` each, with a real Redis behind
//! it and an answer of Envoy's own, so that what is measured is the proxy and no upstream.

use std::{iter::once, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::rows::{LISTENER, base};
use crate::{
    config::Config,
    redis::{Cluster, Redis, cluster},
    webdis::Webdis,
};

/// How long the store may take to answer where an outage is not what is measured.
const PATIENCE: &str = "1s";

/// A way to Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the bridge, straight to Redis.
    Direct,
    /// By the bridge and Envoy's own Redis client.
    Proxied,
    /// By callouts to webdis.
    Webdis,
    /// By the bridge and Envoy's own Redis client, to a Cluster of three masters.
    Cluster,
    /// The same with TLS and a password.
    SecureCluster,
}

/// The servers.
#[derive(Clone, Copy)]
pub(super) struct Servers<'a> {
    pub(super) redis: &'a Path,
    pub(super) webdis: &'a Path,
}

/// What runs for one Envoy alone, in the order in which it is stopped.
#[derive(Default)]
pub(super) struct Behind {
    pub(super) webdis: Option<Webdis>,
    pub(super) redis: Option<Redis>,
    cluster: Option<Cluster>,
}

impl Way {
    /// The ways to one Redis.
    pub(super) const TO_ONE: [Self; 3] = [Self::Direct, Self::Proxied, Self::Webdis];

    /// The way in words.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "bridge to Redis",
            Self::Proxied => "bridge over redis_proxy",
            Self::Webdis => "callouts to webdis",
            Self::Cluster => "bridge over redis_proxy to a Cluster",
            Self::SecureCluster => "bridge over redis_proxy to a Cluster by TLS",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Direct => "redis-direct.yaml",
            Self::Proxied => "redis.yaml",
            Self::Webdis => "webdis.yaml",
            Self::Cluster | Self::SecureCluster => "redis-cluster.yaml",
        }
    }

    /// The cluster whose endpoint is Redis, or what stands before it.
    const fn cluster(self) -> &'static str {
        match self {
            Self::Direct | Self::Proxied | Self::Cluster | Self::SecureCluster => "redis",
            Self::Webdis => "webdis",
        }
    }

    /// The shipped configuration with these limits. It leads to no server yet.
    pub(super) fn config(self, module: &Path, limits: &Value) -> Result<Config> {
        let mut config = base(self.file())?;
        config.set_module(module)?;
        let mut policy: Value = serde_json::from_str(&config.policy(LISTENER)?)?;
        policy["limits"] = limits.clone();
        config.set_policy(LISTENER, &policy.to_string())?;
        Ok(config)
    }

    /// Lets Redis take so long that a busy machine is no outage.
    pub(super) fn be_patient(self, config: &mut Config) -> Result<()> {
        config.set_timeout(LISTENER, PATIENCE)?;
        if matches!(self, Self::Proxied | Self::Cluster | Self::SecureCluster) {
            config.set_op_timeout(5 * Duration::from_secs(1))?;
        }
        Ok(())
    }

    /// Says where the store is, if it is one server.
    pub(super) fn lead_to(self, config: &mut Config, address: SocketAddr) -> Result<()> {
        config.set_endpoint(self.cluster(), address)
    }
}

impl Behind {
    /// Starts what a way needs.
    pub(super) async fn start(way: Way, servers: Servers<'_>) -> Result<Self> {
        let (mut webdis, mut redis, mut cluster) = (None, None, None);
        match way {
            Way::Direct | Way::Proxied => redis = Some(Redis::start(servers.redis)?),
            Way::Webdis => {
                let server = redis.insert(Redis::start(servers.redis)?);
                webdis = Some(Webdis::start(servers.webdis, server.address(), None).await?);
            }
            Way::Cluster => {
                cluster = Some(Cluster::start(servers.redis, &cluster::Options::default())?);
            }
            Way::SecureCluster => {
                let options = cluster::Options {
                    password: Some("a password".to_owned()),
                    tls: true,
                    ..cluster::Options::default()
                };
                cluster = Some(Cluster::start(servers.redis, &options)?);
            }
        }
        Ok(Self { webdis, redis, cluster })
    }

    /// Points a way's configuration here.
    pub(super) fn add_to(&self, way: Way, config: &mut Config) -> Result<()> {
        match &self.cluster {
            Some(cluster) => cluster.add_to(config),
            None => way.lead_to(config, self.address()?),
        }
    }

    /// Where Envoy's cluster leads.
    pub(super) fn address(&self) -> Result<SocketAddr> {
        let front = self.webdis.as_ref().map(Webdis::address);
        front.or_else(|| self.redis.as_ref().map(Redis::address)).context("no store")
    }

    /// The Redis behind it.
    pub(super) fn redis(&mut self) -> Result<&mut Redis> {
        self.redis.as_mut().context("no store")
    }

    /// The processes, by name.
    pub(super) fn processes(&self) -> Vec<(&'static str, Vec<u32>)> {
        let redis = self.redis.as_ref().map(|redis| ("Redis", vec![redis.id()]));
        let webdis = self.webdis.as_ref().map(|webdis| ("webdis", vec![webdis.id()]));
        let nodes = self.cluster.as_ref().map(|cluster| {
            ("masters and replicas", cluster.nodes().map(Redis::id).collect::<Vec<_>>())
        });
        once(redis).chain([webdis, nodes]).flatten().collect()
    }
}

/// The limit that refuses nobody: so many requests a second for each key.
pub(super) fn generous(key: &str, per_second: u64) -> Value {
    let key = [format!("header:{key}")];
    json!([{ "name": "per-key", "key": key, "rate": format!("{per_second}/second") }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_a_configuration_that_can_be_led_to_a_store() {
        for way in Way::TO_ONE {
            let limits = generous("x-api-key", 5);
            let mut config = way.config(Path::new("/weir.wasm"), &limits).unwrap();
            way.be_patient(&mut config).unwrap();
            way.lead_to(&mut config, "127.0.0.1:4321".parse().unwrap()).unwrap();
            let text = config.value().to_string();
            assert!(text.contains("4321") && text.contains("direct_response"), "{text}");
            weir_core::config::parse(config.policy(LISTENER).unwrap().as_bytes()).unwrap();
        }
    }
}
