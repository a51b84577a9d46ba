//! The demo: an API behind Weir and the playground beside it, on one port.

use std::{net::TcpListener, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{
    check,
    config::Config,
    envoy::{Envoy, Options},
    eventually::whenever,
    limit::Limit,
    redis::{self, Redis},
    serve::Server,
    terminal::Terminal,
    webdis::Webdis,
};

/// What it is configured by, and what a user would copy.
const CONFIG: &str = include_str!("../../envoy/demo.yaml");
/// What the demo takes for a shared store, from the files that a user would copy.
const REDIS: &str = include_str!("../../envoy/redis.yaml");
const CLUSTER: &str = include_str!("../../envoy/redis-cluster.yaml");
const WEBDIS: &str = include_str!("../../envoy/webdis.yaml");
const LISTENER: &str = "ingress";
/// How long a store may take to answer where answers are checked: a busy machine is no outage.
const PATIENCE: &str = "1s";
/// What the nodes of a cluster ask for. They listen on this machine alone.
const CLUSTER_PASSWORD: &str = "weir-demo";
const USUAL_PORT: u16 = 10000;
const WORKERS: u32 = 2;

/// What to run.
pub struct Parts<'a> {
    /// The Envoy program.
    pub envoy: &'a Path,
    /// The module.
    pub filter: &'a Path,
    /// The folder of the page.
    pub page: &'a Path,
    /// Where the counts are kept.
    pub store: Store<'a>,
    /// Envoy's port.
    pub port: Port,
}

/// Where the counts are kept, and the programs for that.
#[derive(Clone, Copy, Debug)]
pub enum Store<'a> {
    /// In Envoy's own memory.
    Local,
    /// In Redis, through Envoy.
    Redis {
        /// The server.
        redis: &'a Path,
    },
    /// In a Redis Cluster with a password and TLS, through Envoy.
    Cluster {
        /// The server.
        redis: &'a Path,
    },
    /// In Redis, by callouts to webdis.
    Webdis {
        /// The server.
        redis: &'a Path,
        /// What stands before it.
        webdis: &'a Path,
    },
}

/// Where Envoy listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// On this one.
    Given(u16),
    /// On 10000, or on a free one if that is taken.
    Usual,
    /// On a free one.
    Free,
}

/// The running demo. Dropping it stops everything.
pub struct Demo {
    // Stopped in this order.
    envoy: Envoy,
    upstream: Server,
    webdis: Option<Webdis>,
    redis: Option<Redis>,
    cluster: Option<redis::Cluster>,
    limit: Limit,
}

impl Demo {
    /// Starts the upstream, then Envoy.
    ///
    /// # Errors
    /// When one does not start.
    pub async fn start(parts: &Parts<'_>) -> Result<Self> {
        let mut config = Config::parse(CONFIG)?;
        let limit = Limit::read(&config.policy(LISTENER)?)?;
        let upstream = Server::start(Some(parts.page)).await?;
        let (mut redis, mut cluster, mut webdis) = (None, None, None);
        match parts.store {
            Store::Local => {}
            Store::Redis { redis: program } => {
                let server = redis.insert(Redis::start(program)?);
                share(&mut config, REDIS)?;
                config.set_endpoint("redis", server.address())?;
            }
            Store::Cluster { redis: program } => {
                let password = Some(CLUSTER_PASSWORD.to_owned());
                let options = redis::cluster::Options { password, tls: true, ..Default::default() };
                let cluster = cluster.insert(redis::Cluster::start(program, &options)?);
                share(&mut config, CLUSTER)?;
                cluster.add_to(&mut config)?;
            }
            Store::Webdis { redis: program, webdis: front } => {
                let server = redis.insert(Redis::start(program)?);
                let front = webdis.insert(Webdis::start(front, server.address(), None).await?);
                share(&mut config, WEBDIS)?;
                config.set_endpoint("webdis", front.address())?;
            }
        }
        config.free_ports()?;
        config.set_port(LISTENER, parts.port.number()?)?;
        config.set_module(parts.filter)?;
        config.set_endpoint("upstream", upstream.address())?;
        let options = Options { program: parts.envoy, config: &config, workers: WORKERS };
        let envoy = Envoy::start(&options).await?;
        if let Some(cluster) = &cluster {
            cluster.found_by(&envoy).await?;
        }
        Ok(Self { envoy, upstream, webdis, redis, cluster, limit })
    }

    /// Sends requests and says whether the answers are what the policy says.
    ///
    /// # Errors
    /// When they are not.
    pub async fn check(&self) -> Result<()> {
        let kept = self.kept();
        println!("{}: {}; counts {kept}", self.limit.name, self.limit.sentence());
        check::run(self.envoy.address(LISTENER)?, &self.limit).await
    }

    /// Says what runs where, and what to try.
    ///
    /// # Errors
    /// When Envoy has lost its listener.
    pub fn describe(&mut self) -> Result<()> {
        let terminal = Terminal::stdout();
        let base = format!("http://{}", self.envoy.address(LISTENER)?);
        let admin = self.envoy.admin();
        let Limit { name, header, burst, .. } = &self.limit;
        let strong = |text: &str| terminal.strong(text);
        println!("{}\n", strong("Weir is running."));
        println!("  playground   {}", strong(&format!("{base}/")));
        println!("  limited API  {base}/api/hello");
        println!("  its limit    {name}: {}", self.limit.sentence());
        println!("  its counts   {}\n", self.kept());
        println!(
            "Over the limit (the last ones are answered with 429; wait a second, and it flows again):\n"
        );
        println!(
            "  for i in $(seq {}); do curl -s -o /dev/null -w '%{{http_code}} ' \\",
            burst + 2
        );
        println!("    -H '{header}: alice' {base}/api/hello; done; echo\n");
        let process = self.envoy.process();
        let log = process.log_path().display().to_string();
        println!(
            "  {}",
            terminal.faint(format!("envoy        pid {}, admin http://{admin}/", process.id()))
        );
        println!("  {}", terminal.faint(format!("             log {log}")));
        let here = std::process::id();
        let upstream = self.upstream.address();
        println!("  {}\n", terminal.faint(format!("API, page    pid {here}, http://{upstream}/")));
        if let Some(redis) = &self.redis {
            let port = redis.address().port();
            println!("What Redis holds, a key for each caller:\n");
            println!("  redis-cli -p {port} --scan --pattern 'weir*'\n");
        }
        if let Some(cluster) = &self.cluster {
            describe_nodes(cluster)?;
        }
        println!("Ctrl-C stops everything.");
        Ok(())
    }

    /// Where the counts are kept, in words.
    fn kept(&self) -> String {
        if let Some(cluster) = &self.cluster {
            let (masters, nodes) = (cluster.ranges(), cluster.nodes().len());
            return format!(
                "in a Redis Cluster of {nodes} nodes, {masters} of them masters, through Envoy, with \
                 a password and TLS"
            );
        }
        match (&self.redis, &self.webdis) {
            (None, _) => "in Envoy's shared data".to_owned(),
            (Some(redis), None) => format!("in Redis at {}, through Envoy", redis.address()),
            (Some(redis), Some(webdis)) => {
                format!("in Redis at {}, by webdis at {}", redis.address(), webdis.address())
            }
        }
    }

    /// Waits for as long as Envoy runs.
    ///
    /// # Errors
    /// When it has ended; the error holds its log.
    pub async fn watch(&mut self) -> Result<()> {
        let process = self.envoy.process();
        let status = whenever(async || process.exited()).await?;
        bail!("Envoy has ended ({status}):\n{}", process.log())
    }
}

/// Says where the nodes of a cluster are, and how to look into them.
fn describe_nodes(cluster: &redis::Cluster) -> Result<()> {
    println!(
        "The masters and their slots; kill one, and its replica takes over in some seconds:\n"
    );
    for (range, master) in (0..).zip(cluster.masters()?) {
        let (first, last) = cluster.slots(range);
        println!("  {first:>5} to {last:>5}  pid {}, {}", master.id(), master.address());
    }
    println!("\nWhat each of them holds, a key for each caller:\n");
    println!("  export REDISCLI_AUTH={CLUSTER_PASSWORD}");
    for master in cluster.masters()? {
        let port = master.address().port();
        println!("  redis-cli -p {port} --scan --pattern 'weir*'");
    }
    println!();
    Ok(())
}

/// Lets the demo keep its counts where another configuration does.
fn share(config: &mut Config, other: &str) -> Result<()> {
    config.take_store(LISTENER, Config::parse(other)?)?;
    config.set_timeout(LISTENER, PATIENCE)
}

impl Port {
    /// The port to configure; 0 lets the system choose.
    fn number(self) -> Result<u16> {
        match self {
            Self::Free => Ok(0),
            Self::Given(port) => {
                probe(port).with_context(|| format!("port {port} cannot be had"))?;
                Ok(port)
            }
            Self::Usual if probe(USUAL_PORT).is_ok() => Ok(USUAL_PORT),
            Self::Usual => {
                println!("Port {USUAL_PORT} is taken: using a free one (--port sets it).\n");
                Ok(0)
            }
        }
    }
}

/// Whether a port is free.
fn probe(port: u16) -> std::io::Result<()> {
    TcpListener::bind(("127.0.0.1", port)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_demo_can_be_read_and_checked() {
        let policy = Config::parse(CONFIG).unwrap().policy(LISTENER).unwrap();
        let limit = Limit::read(&policy).unwrap();
        assert!(limit.burst > 0 && limit.longest_wait().is_ok());
    }

    #[test]
    fn a_port_that_is_taken_is_an_error_if_it_was_asked_for() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = Port::Given(port).number().unwrap_err().to_string();
        assert_eq!(error, format!("port {port} cannot be had"));
        assert_eq!(Port::Free.number().unwrap(), 0);
    }
}
