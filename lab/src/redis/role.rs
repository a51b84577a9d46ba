//! What a node of a Redis Cluster says: of itself, and of the whole.

use anyhow::{Context as _, Result, bail};
use weir_core::script::SLOTS;

use super::Client;

/// What a node says of itself.
pub(super) struct Role {
    pub(super) is_master: bool,
    /// Of two that claim a slot, the one with the later epoch has it.
    pub(super) epoch: u64,
    /// First and last slot of each range that it serves.
    pub(super) slots: Vec<(u16, u16)>,
}

impl Role {
    pub(super) fn of(client: &mut Client) -> Result<Self> {
        let nodes: String = client.ask(&["CLUSTER", "NODES"])?;
        let line = nodes.lines().find(|line| line.contains("myself"));
        let line = line.with_context(|| format!("a node does not name itself: {nodes}"))?;
        Self::parse(line).with_context(|| line.to_owned())
    }

    /// Reads `id address flags master ping pong epoch link slot…`.
    fn parse(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, flags, _, _, _, epoch, _, slots @ ..] = words.as_slice() else {
            bail!("too short");
        };
        // What is in brackets is on its way: `[slot->-node]`.
        let slots = slots.iter().filter(|slots| !slots.starts_with('['));
        let slots = slots.map(|slots| {
            let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
            Ok((first.parse()?, last.parse()?))
        });
        Ok(Self {
            is_master: flags.split(',').any(|flag| flag == "master"),
            epoch: epoch.parse()?,
            slots: slots.collect::<Result<_>>()?,
        })
    }
}

/// Whether a node knows a master that works for every slot.
pub(super) fn serves_all(client: &mut Client) -> Result<bool> {
    let info: String = client.ask(&["CLUSTER", "INFO"])?;
    let all = SLOTS.to_string();
    Ok(field(&info, "cluster_state") == Some("ok")
        && field(&info, "cluster_slots_ok") == Some(&all))
}

/// Whether a node is a replica that has what its master has.
pub(super) fn is_copy(client: &mut Client) -> Result<bool> {
    Ok(client.info("replication", "role")? == "slave"
        && client.info("replication", "master_link_status")? == "up")
}

/// How many replicas a node knows.
pub(super) fn replicas_seen(client: &mut Client) -> Result<usize> {
    let nodes: String = client.ask(&["CLUSTER", "NODES"])?;
    Ok(nodes.lines().filter(|line| line.contains("slave")).count())
}

/// A line of `CLUSTER INFO`.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_whether_it_is_a_master_and_of_what() {
        let role = Role::parse("ab 127.0.0.1:1@2,h myself,master - 0 0 7 connected 0-5 9 [7->-cd]");
        let role = role.unwrap();
        assert!(role.is_master);
        assert_eq!((role.epoch, role.slots), (7, vec![(0, 5), (9, 9)]));
        let role = Role::parse("ab 127.0.0.1:1@2 myself,slave cd 0 0 7 connected").unwrap();
        assert!(!role.is_master && role.slots.is_empty());
        assert!(Role::parse("ab 127.0.0.1:1@2 myself,slave").is_err());
    }

    #[test]
    fn a_line_of_the_info_is_found_by_its_whole_name() {
        let info = "cluster_state:ok\r\ncluster_slots_ok:16384\r\n";
        assert_eq!(field(info, "cluster_state"), Some("ok"));
        assert_eq!(field(info, "cluster_slots"), None);
    }
}
