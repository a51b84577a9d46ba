//! A slot on its way from one master of a Redis Cluster to another, held where a test wants it.

use anyhow::{Result, ensure};

use super::Cluster;

/// How long one transfer of keys may take, in milliseconds.
const TRANSFER: &str = "5000";

/// A slot that is being moved. Until [`Migration::finish`] the old master still has it, and sends
/// whoever asks for a key that it has not to the new one (`-ASK`).
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: String,
    from: usize,
    to: usize,
}

impl<'a> Migration<'a> {
    pub(super) fn begin(cluster: &'a Cluster, slot: u16, from: usize, to: usize) -> Result<Self> {
        ensure!(from != to, "slot {slot} is there already");
        let slot = slot.to_string();
        let set_slot = |node: usize, state: &str, other: usize| {
            let id = cluster.node_id(other)?;
            cluster.node_client(node)?.run(&["CLUSTER", "SETSLOT", &slot, state, id])
        };
        // In this order: before the new master takes it, nobody may be sent there.
        set_slot(to, "IMPORTING", from)?;
        set_slot(from, "MIGRATING", to)?;
        Ok(Self { cluster, slot, from, to })
    }

    /// The keys that the old master still has, so many at most.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn left(&self, most: usize) -> Result<Vec<String>> {
        let most = most.to_string();
        self.cluster.node_client(self.from)?.ask(&["CLUSTER", "GETKEYSINSLOT", &self.slot, &most])
    }

    /// Moves keys to the new master.
    ///
    /// # Errors
    /// When one of the two does not answer or refuses.
    pub fn carry(&self, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let target = self.cluster.server(self.to)?;
        let (address, password) = (target.announced(), target.password());
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let mut words = vec!["MIGRATE", &ip, &port, "", "0", TRANSFER];
        words.extend(password.iter().flat_map(|password| ["AUTH", password]));
        words.push("KEYS");
        words.extend(keys.iter().map(String::as_str));
        self.cluster.node_client(self.from)?.run(&words)
    }

    /// Moves what is left, and gives the slot to the new master.
    ///
    /// # Errors
    /// When one of them does not answer or refuses.
    pub fn finish(self) -> Result<()> {
        const BATCH: usize = 100;
        loop {
            let keys = self.left(BATCH)?;
            if keys.is_empty() {
                break;
            }
            self.carry(&keys)?;
        }
        let id = self.cluster.node_id(self.to)?;
        // The new master first: if that fails, the slot still has its old one.
        for node in [self.to, self.from] {
            let mut client = self.cluster.node_client(node)?;
            client.run(&["CLUSTER", "SETSLOT", &self.slot, "NODE", id])?;
        }
        Ok(())
    }
}
