//! Eight gateways, each with one worker, and what is asked of them and of the store that they share:
//! one Redis or the nodes of a cluster.

pub mod bucket;
pub mod exact;
pub mod sharded;

use super::artefact;
use anyhow::{Context, Result, ensure};
use std::iter::once;
use weir_core::{
    key::hash::{Digest, Secret},
    script::Key,
};
use weir_lab::{
    config::Config,
    envoy::Options,
    fleet::Fleet,
    http::{self, Answer},
    redis,
    serve::Server,
};

pub const GATEWAYS: usize = 8;
/// Connections that the load has to each.
pub const CONNECTIONS: usize = 8;
pub const PATH: &str = "/api/hello";
pub const CALLER: &str = "x-api-key";

/// The gateways and connections to them and to each node of their store, if they share one. The
/// nodes are on this machine and so have one clock.
pub struct Stage {
    pub fleet: Fleet,
    pub nodes: Vec<redis::Client>,
    /// One to each gateway.
    clients: Vec<http::Client>,
    _upstream: Server,
}

impl Stage {
    /// Starts the gateways with a configuration that leads to the store, if there is one.
    pub async fn start(
        mut config: Config,
        nodes: Vec<redis::Client>,
        cluster: Option<&redis::Cluster>,
    ) -> Result<Self> {
        let upstream = Server::start(None).await?;
        config.set_endpoint("upstream", upstream.address())?;
        let program = artefact("WEIR_ENVOY");
        let options = Options { program: &program, config: &config, workers: 1 };
        let fleet = Fleet::start(&options, GATEWAYS).await?;
        for gateway in fleet.gateways() {
            if let Some(cluster) = cluster {
                cluster.found_by(gateway).await?;
            }
        }
        let mut clients = Vec::new();
        for address in fleet.addresses("ingress")? {
            clients.push(http::Client::connect(address).await?);
        }
        let mut stage = Self { fleet, nodes, clients, _upstream: upstream };
        stage.warm_up().await?;
        Ok(stage)
    }

    /// Lets each gateway open its connections to every node: what comes first takes longer.
    async fn warm_up(&mut self) -> Result<()> {
        for gateway in 0..GATEWAYS {
            for caller in 0..16 {
                self.ask(gateway, &[(CALLER, &format!("warm-up-{caller}"))]).await?;
            }
        }
        Ok(())
    }

    /// Asks one gateway once.
    pub async fn ask(&mut self, gateway: usize, headers: &[(&str, &str)]) -> Result<Answer> {
        let client = self.clients.get_mut(gateway).context("no such gateway")?;
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let answer = client.get(PATH, &headers).await?;
        ensure!(answer.headers.contains_key("ratelimit"), "unchecked: {}", self.fleet.log());
        Ok(answer)
    }

    /// What a bucket is in the store, on the node that has it.
    pub fn state(&mut self, key: Key) -> Result<String> {
        // A node of a cluster that has not the key's slot says so by an error.
        let states = self.nodes.iter_mut().filter_map(|node| node.get(key.as_str()).ok().flatten());
        let states: Vec<_> = states.collect();
        let [state] = states.as_slice() else {
            anyhow::bail!("{} is on {} nodes", key.as_str(), states.len());
        };
        Ok(state.clone())
    }

    /// Requests that were allowed, refused and went unchecked so far, by the gateways' counters.
    pub async fn counters(&self) -> Result<[u64; 3]> {
        let mut counters = [0; 3];
        for (counter, name) in counters.iter_mut().zip(["allowed", "refused", "unchecked"]) {
            *counter = self.fleet.sum(&format!("wasmcustom.weir.{name}")).await?;
        }
        Ok(counters)
    }

    /// Checks that no worker's VM has died.
    pub async fn assert_never_reloaded(&self) -> Result<()> {
        assert_eq!(self.fleet.sum("wasm.weir.vm_reload").await?, 0, "{}", self.fleet.log());
        Ok(())
    }
}

/// The key in Redis of a token bucket of a policy without a namespace and a secret: all proxies of
/// all versions must make the same.
pub fn key(limit: &str, parts: &[&[u8]]) -> Key {
    let (place, bucket) = digests(limit, parts);
    Key::new(place, bucket)
}

/// The key of one of the shards of such a bucket, if its limit has no key parts.
pub fn shard_key(limit: &str, shard: u64, shards: u64) -> Key {
    let (place, bucket) = digests(limit, &[&shard.to_le_bytes()]);
    Key::of_shard(place, bucket, shard, shards)
}

fn digests(limit: &str, parts: &[&[u8]]) -> (Digest, Digest) {
    const PUBLIC: Secret = *b"weir: no secret!";
    let digest = |limit, parts: &[&[u8]]| Digest::of(&PUBLIC, "weir", limit, parts.to_vec());
    let bucket: Vec<&[u8]> = once(b"debt".as_slice()).chain(parts.iter().copied()).collect();
    (digest("", parts), digest(limit, &bucket))
}

pub fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
