//! A Redis Cluster: masters with equal ranges of slots and a replica each, which fail, are failed
//! over, and hand slots to each other.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use weir_core::script::SLOTS;

use super::{
    self as server, Client, Migration, Redis, Tls,
    role::{Role, field, is_copy, replicas_seen, serves_all},
    tls::Certificates,
};
use crate::{
    config::Config,
    envoy::Envoy,
    eventually::{blocking, eventually},
};

/// How long the nodes may take to find each other and to copy what their masters have.
const FORMING: Duration = Duration::from_secs(30);

/// How long Envoy may take to ask one of them for the others.
const FINDING: Duration = Duration::from_secs(20);

/// How a cluster is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Masters; each has one replica.
    pub masters: u16,
    /// The password that every connection must give, those between nodes too.
    pub password: Option<String>,
    /// Whether clients and nodes speak TLS.
    pub tls: bool,
    /// How long a node may be silent until the others take it for lost.
    pub node_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { masters: 3, password: None, tls: false, node_timeout: Duration::from_secs(2) }
    }
}

/// A running cluster. Dropping it stops every node.
///
/// Ranges and nodes are numbered from 0. The first nodes are the masters, in the order of their
/// ranges, and their replicas follow in the same order; a failover swaps the two of a range.
pub struct Cluster {
    // Before the folder with their certificates.
    nodes: Vec<Node>,
    masters: u16,
    folder: TempDir,
}

/// One server of a cluster.
struct Node {
    server: Redis,
    /// What the others call it.
    id: String,
    /// Whether it is frozen or killed, so that there is no use in asking it.
    is_out: bool,
}

impl Cluster {
    /// Starts the servers, joins them, and waits until every slot is served and every replica has
    /// what its master has.
    ///
    /// # Errors
    /// When a server does not start, or they do not find each other.
    pub fn start(program: &Path, options: &Options) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        if let Some(password) = &options.password {
            fs::write(folder.path().join(PASSWORD), password)?;
        }
        let files = if options.tls { Some(Certificates::create(folder.path())?) } else { None };
        let node = server_options(options);
        let mut nodes = Vec::new();
        for _ in 0..2 * options.masters {
            let server = Redis::start_as(program, &node, files.as_ref())?;
            let id = server.client()?.ask(&["CLUSTER", "MYID"])?;
            nodes.push(Node { server, id, is_out: false });
        }
        let cluster = Self { nodes, masters: options.masters, folder };
        cluster.form()?;
        Ok(cluster)
    }

    fn form(&self) -> Result<()> {
        for range in 0..self.masters {
            let (first, last) = self.slots(range);
            let mut master = self.node_client(usize::from(range))?;
            let (first, last) = (first.to_string(), last.to_string());
            master.run(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
        }
        // Each needs an epoch of its own, or two masters have to settle who is the later one.
        for (node, epoch) in self.nodes.iter().zip(1..) {
            node.client()?.run(&["CLUSTER", "SET-CONFIG-EPOCH", &format!("{epoch}")])?;
        }
        let mut first = self.nodes.first().context("a cluster has nodes")?.client()?;
        for node in self.nodes.iter().skip(1) {
            let bus = node.server.plan.bus.context("a node has a bus")?.port().to_string();
            let address = node.server.announced();
            let (ip, port) = (address.ip().to_string(), address.port().to_string());
            first.run(&["CLUSTER", "MEET", &ip, &port, &bus])?;
        }
        let count = self.nodes.len().to_string();
        self.formed("know each other", |client| {
            let info: String = client.ask(&["CLUSTER", "INFO"])?;
            Ok(field(&info, "cluster_known_nodes") == Some(&count))
        })?;
        let (masters, replicas) = self.nodes.split_at(usize::from(self.masters));
        for (master, replica) in masters.iter().zip(replicas) {
            replica.client()?.run(&["CLUSTER", "REPLICATE", &master.id])?;
        }
        self.formed("serve all slots, and every replica has its copy", |client| {
            let settled = Role::of(client)?.is_master || is_copy(client)?;
            Ok(settled && serves_all(client)? && replicas_seen(client)? == replicas.len())
        })
    }

    /// Waits until every node says so.
    fn formed(&self, what: &str, says: impl Fn(&mut Client) -> Result<bool>) -> Result<()> {
        let mut last: Result<bool> = Ok(false);
        let formed = blocking(FORMING, || {
            last =
                self.nodes.iter().try_fold(true, |all, node| Ok(all && says(&mut node.client()?)?));
            matches!(last, Ok(true))
        });
        last?;
        ensure!(formed, "the nodes of the cluster do not {what} within {FORMING:?}");
        Ok(())
    }

    /// Every node.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Redis> {
        self.nodes.iter().map(|node| &node.server)
    }

    /// The node that is the master of each range now.
    ///
    /// # Errors
    /// When a range has none.
    pub fn masters(&self) -> Result<Vec<&Redis>> {
        (0..self.masters).map(|range| Ok(self.node(self.master(range)?)?.server())).collect()
    }

    /// The ranges, one for each master.
    #[must_use]
    pub const fn ranges(&self) -> u16 {
        self.masters
    }

    /// The first and the last slot of a range: those that Weir asks for on one stream, if it has as
    /// many streams as there are masters.
    #[must_use]
    pub fn slots(&self, range: u16) -> (u16, u16) {
        let from = |range: u16| {
            let slots = u32::from(range) * u32::from(SLOTS);
            u16::try_from(slots.div_ceil(u32::from(self.masters))).unwrap_or(SLOTS)
        };
        (from(range), from(range + 1) - 1)
    }

    /// The range that a slot is in.
    #[must_use]
    pub fn range_of(&self, slot: u16) -> u16 {
        (0..self.masters).rfind(|range| self.slots(*range).0 <= slot).unwrap_or(0)
    }

    /// The number of the node that is the master of a range now.
    ///
    /// # Errors
    /// When there is none, as between a master's end and its replica's promotion.
    pub fn master(&self, range: u16) -> Result<usize> {
        self.master_of(self.slots(range).0)
    }

    /// The number of the node that is the master of a slot now, and serves it.
    ///
    /// # Errors
    /// When there is none.
    pub fn master_of(&self, slot: u16) -> Result<usize> {
        let mut found = None;
        for (number, node) in self.nodes.iter().enumerate().filter(|(_, node)| !node.is_out) {
            let role = Role::of(&mut node.client()?)?;
            let serves = role.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot));
            if role.is_master && serves && found.is_none_or(|(epoch, _)| epoch < role.epoch) {
                found = Some((role.epoch, number));
            }
        }
        found.map(|(_, number)| number).with_context(|| format!("slot {slot} has no master"))
    }

    /// A connection to the node that is the master of a slot now.
    ///
    /// # Errors
    /// When there is none.
    pub fn client_of(&self, slot: u16) -> Result<Client> {
        self.node(self.master_of(slot)?)?.client()
    }

    /// The slot that a key is in.
    ///
    /// # Errors
    /// When no node answers.
    pub fn slot_of(&self, key: &str) -> Result<u16> {
        let node = self.nodes.iter().find(|node| !node.is_out).context("no node runs")?;
        node.client()?.ask(&["CLUSTER", "KEYSLOT", key])
    }

    /// How often scripts were called, by the master of each range.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn script_calls(&self) -> Result<Vec<u64>> {
        self.masters()?.into_iter().map(|master| master.client()?.script_calls()).collect()
    }

    /// Stops the master of a range where it is, and returns its number.
    ///
    /// # Errors
    /// When there is none.
    pub fn freeze(&mut self, range: u16) -> Result<usize> {
        let number = self.master(range)?;
        let node = self.node_mut(number)?;
        node.server.freeze()?;
        node.is_out = true;
        Ok(number)
    }

    /// Lets a node go on.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn thaw(&mut self, number: usize) -> Result<()> {
        let node = self.node_mut(number)?;
        node.server.thaw();
        node.is_out = false;
        Ok(())
    }

    /// Kills the master of a range, and returns its number.
    ///
    /// # Errors
    /// When there is none.
    pub fn kill(&mut self, range: u16) -> Result<usize> {
        let number = self.master(range)?;
        let node = self.node_mut(number)?;
        node.server.kill();
        node.is_out = true;
        Ok(number)
    }

    /// Waits until the replica of a range has taken it over, and every node that runs has heard.
    ///
    /// # Errors
    /// When that does not happen in time.
    pub async fn failed_over(&self, range: u16, within: Duration) -> Result<usize> {
        eventually("a replica to take over", within, async || {
            let Ok(number) = self.master(range) else { return Ok(None) };
            for node in self.nodes.iter().filter(|node| !node.is_out) {
                if !serves_all(&mut node.client()?)? {
                    return Ok(None);
                }
            }
            Ok(Some(number))
        })
        .await
    }

    /// Whether a node is a replica that has what its master has.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn is_copy(&self, number: usize) -> Result<bool> {
        is_copy(&mut self.node_client(number)?)
    }

    /// Begins to move a slot from its master to that of a range.
    ///
    /// # Errors
    /// When one of the two is out, or both are one.
    pub fn migrate(&self, slot: u16, to: u16) -> Result<Migration<'_>> {
        Migration::begin(self, slot, self.master_of(slot)?, self.master(to)?)
    }

    /// Where a client asks for the others: an address of a node, that for TLS if it is spoken.
    #[must_use]
    pub fn seeds(&self) -> Vec<SocketAddr> {
        self.nodes().map(Redis::announced).collect()
    }

    /// Points the cluster `redis` of a configuration such as `redis-cluster.yaml` here: with the
    /// password and the certificates if there are any, else without AUTH and TLS.
    ///
    /// # Errors
    /// When the configuration has none.
    pub fn add_to(&self, config: &mut Config) -> Result<()> {
        const NAME: &str = "redis";
        let first = self.node(0)?.server();
        match first.password() {
            Some(_) => config.set_password_file(NAME, &self.password_file())?,
            None => config.remove_password(NAME)?,
        }
        match first.tls() {
            Some(tls) => config.set_trust(NAME, tls.authority(), Tls::NAME)?,
            None => config.remove_tls(NAME)?,
        }
        config.set_endpoints(NAME, &self.seeds())
    }

    /// Waits until an Envoy with the cluster `redis` has found every master. It is told of a replica
    /// only once that has been sent a change.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn found_by(&self, envoy: &Envoy) -> Result<()> {
        let all = u64::from(self.masters);
        eventually("Envoy to find the masters", FINDING, async || {
            let found = envoy.stat("cluster.redis.membership_total").await?;
            Ok(found.is_some_and(|found| found >= all).then_some(()))
        })
        .await
    }

    /// The file that holds the password, if there is one.
    fn password_file(&self) -> PathBuf {
        self.folder.path().join(PASSWORD)
    }

    pub(super) fn node_client(&self, number: usize) -> Result<Client> {
        self.node(number)?.client()
    }

    pub(super) fn node_id(&self, number: usize) -> Result<&str> {
        Ok(&self.node(number)?.id)
    }

    pub(super) fn server(&self, number: usize) -> Result<&Redis> {
        Ok(self.node(number)?.server())
    }

    fn node(&self, number: usize) -> Result<&Node> {
        self.nodes.get(number).with_context(|| format!("there is no node {number}"))
    }

    fn node_mut(&mut self, number: usize) -> Result<&mut Node> {
        self.nodes.get_mut(number).with_context(|| format!("there is no node {number}"))
    }
}

const PASSWORD: &str = "password";

impl Node {
    const fn server(&self) -> &Redis {
        &self.server
    }

    fn client(&self) -> Result<Client> {
        self.server.client()
    }
}

fn server_options(options: &Options) -> server::Options {
    let mut args = Vec::new();
    let mut set = |name: &str, value: &str| args.extend([format!("--{name}"), value.to_owned()]);
    set("cluster-node-timeout", &options.node_timeout.as_millis().to_string());
    // Keys of other nodes are served while one is lost; `yes` would end them all.
    set("cluster-require-full-coverage", "no");
    // A replica has its copy at once and not when others could have asked for one too.
    set("repl-diskless-sync-delay", "0");
    if let Some(password) = &options.password {
        set("masterauth", password);
    }
    if options.tls {
        set("tls-cluster", "yes");
        set("tls-replication", "yes");
    }
    server::Options { password: options.password.clone(), tls: options.tls, node: true, args }
}
