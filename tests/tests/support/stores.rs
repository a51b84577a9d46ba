//! Every way to a store, as an operator configures it: a file of `envoy/` with what stands behind
//! it, and a policy whose store is the file's.

use super::{Running, artefact, config, start};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::{net::SocketAddr, path::Path};
use weir_lab::{config::Config, redis::Redis, rest::Rest, webdis::Webdis};

/// The token of the REST server.
pub const TOKEN: &str = "a-token-for-tests";

/// A way to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In Envoy's shared data.
    Local,
    /// By the bridge, straight to Redis.
    Direct,
    /// By the bridge and Envoy's own Redis client.
    Proxied,
    /// By callouts to webdis.
    Webdis,
    /// By callouts to a REST endpoint.
    Rest,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 5] = [Self::Local, Self::Direct, Self::Proxied, Self::Webdis, Self::Rest];
    /// The ways to a shared store.
    pub const SHARED: [Self; 4] = [Self::Direct, Self::Proxied, Self::Webdis, Self::Rest];

    /// The file of `envoy/` that goes it.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Local => "local.yaml",
            Self::Direct => "redis-direct.yaml",
            Self::Proxied => "redis.yaml",
            Self::Webdis => "webdis.yaml",
            Self::Rest => "upstash.yaml",
        }
    }

    /// The cluster whose only endpoint is the store, or what stands before it.
    pub const fn cluster(self) -> Option<&'static str> {
        match self {
            Self::Local => None,
            Self::Direct | Self::Proxied => Some("redis"),
            Self::Webdis => Some("webdis"),
            Self::Rest => Some("upstash"),
        }
    }

    /// Whether it goes by the bridge, on a stream for each worker that stays open.
    pub const fn is_bridge(self) -> bool {
        matches!(self, Self::Direct | Self::Proxied)
    }

    /// The configuration, with free ports and a module of ours.
    pub fn config(self, module: &Path) -> Result<Config> {
        let mut config = config(self.file(), module)?;
        if self == Self::Rest {
            // The lab's server speaks HTTP.
            let clusters = &mut config.value_mut()["static_resources"]["clusters"];
            let clusters = clusters.as_array_mut().context("clusters")?;
            for cluster in clusters.iter_mut().filter(|cluster| cluster["name"] == "upstash") {
                cluster.as_object_mut().context("a cluster")?.remove("transport_socket");
            }
        }
        Ok(config)
    }

    /// Gives Envoy's own Redis client the patience of a test that has no deadline to test.
    pub fn be_patient(self, config: &mut Config) -> Result<()> {
        if self == Self::Proxied {
            let text = config.value().to_string();
            anyhow::ensure!(text.contains(r#""op_timeout":"0.05s""#), "no op_timeout");
            let text = text.replace(r#""op_timeout":"0.05s""#, r#""op_timeout":"1s""#);
            *config.value_mut() = serde_json::from_str(&text)?;
        }
        Ok(())
    }

    /// The policy of the file with other fields, such as `{"limits": […]}`. Its store is the
    /// file's, with the deadline of a test that has none to test: a busy machine is no outage.
    pub fn policy(self, config: &mut Config, fields: &Value) -> Result<String> {
        self.policy_within(config, fields, "1s")
    }

    /// The same with a deadline.
    pub fn policy_within(
        self,
        config: &mut Config,
        fields: &Value,
        timeout: &str,
    ) -> Result<String> {
        let mut policy: Value = serde_json::from_str(&config.policy("ingress")?)?;
        if self != Self::Local {
            policy["store"]["timeout"] = json!(timeout);
        }
        if self == Self::Rest {
            policy["store"]["token"] = json!(TOKEN);
        }
        for (name, value) in fields.as_object().context("fields of a policy")? {
            policy[name] = value.clone();
        }
        Ok(policy.to_string())
    }
}

/// What stands behind a way. The fields are in the order in which they are stopped.
pub struct Behind {
    pub webdis: Option<Webdis>,
    pub rest: Option<Rest>,
    pub redis: Option<Redis>,
}

impl Behind {
    /// Starts what a way needs.
    pub async fn start(way: Way) -> Result<Self> {
        if way == Way::Local {
            return Ok(Self { webdis: None, rest: None, redis: None });
        }
        Self::in_front_of(way, Redis::start(&artefact("WEIR_REDIS"))?).await
    }

    /// Starts what a way needs in front of a Redis.
    pub async fn in_front_of(way: Way, redis: Redis) -> Result<Self> {
        let (mut webdis, mut rest) = (None, None);
        match way {
            Way::Webdis => {
                let program = artefact("WEIR_WEBDIS");
                webdis = Some(Webdis::start(&program, redis.address(), redis.password()).await?);
            }
            Way::Rest => {
                rest = Some(Rest::start(redis.address(), redis.password(), TOKEN).await?);
            }
            Way::Local | Way::Direct | Way::Proxied => {}
        }
        Ok(Self { webdis, rest, redis: Some(redis) })
    }

    /// Where Envoy's cluster leads.
    pub fn address(&self) -> Option<SocketAddr> {
        let front = self.webdis.as_ref().map(Webdis::address);
        let front = front.or_else(|| self.rest.as_ref().map(Rest::address));
        front.or_else(|| self.redis.as_ref().map(Redis::address))
    }

    /// The Redis behind it.
    pub fn redis(&mut self) -> &mut Redis {
        self.redis.as_mut().expect("a way to a shared store")
    }
}

/// A running Envoy with its store.
pub struct Stack {
    pub running: Running,
    pub behind: Behind,
}

impl Stack {
    /// Starts all of it.
    pub async fn start(way: Way, mut config: Config, workers: u32) -> Result<Self> {
        let behind = Behind::start(way).await?;
        if let Some((cluster, address)) = way.cluster().zip(behind.address()) {
            config.set_endpoint(cluster, address)?;
        }
        Ok(Self { running: start(config, workers).await?, behind })
    }

    /// Starts it with the shipped module and some fields of a policy.
    pub async fn of(way: Way, fields: &Value, workers: u32) -> Result<Self> {
        let mut config = way.config(&super::shipped())?;
        way.be_patient(&mut config)?;
        let policy = way.policy(&mut config, fields)?;
        config.set_policy("ingress", &policy)?;
        Self::start(way, config, workers).await
    }
}
