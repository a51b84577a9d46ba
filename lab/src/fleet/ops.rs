//! How much each node of a store was asked.

use std::fmt;

use anyhow::Result;

use crate::redis::Client;

/// Calls of scripts, by node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ops(pub Vec<u64>);

impl Ops {
    /// What each node was asked so far.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn of(nodes: &mut [Client]) -> Result<Self> {
        nodes.iter_mut().map(Client::script_calls).collect::<Result<_>>().map(Self)
    }

    /// What was asked since then.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let each = self.0.iter().zip(&before.0);
        Self(each.map(|(now, before)| now.saturating_sub(*before)).collect())
    }

    /// How far the node that is furthest from an even share is from it, in thousandths of the
    /// share, rounded up.
    #[must_use]
    pub fn uneven_per_mille(&self) -> u64 {
        (0..self.0.len()).map(|node| self.distance(node).1).max().unwrap_or(0)
    }

    /// Whether a node was asked less than an even share, and how far it is from it, in thousandths.
    fn distance(&self, node: usize) -> (bool, u64) {
        let total: u64 = self.0.iter().sum();
        let nodes = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
        let times = self.0.get(node).copied().unwrap_or(0).saturating_mul(nodes);
        let far = times.abs_diff(total).saturating_mul(1_000).div_ceil(total.max(1));
        (times < total, far)
    }
}

impl fmt::Display for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (node, ops) in self.0.iter().enumerate() {
            let (less, far) = self.distance(node);
            let (comma, sign) = (if node > 0 { ", " } else { "" }, if less { '−' } else { '+' });
            write!(f, "{comma}{ops} ({sign}{}.{} %)", far / 10, far % 10)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_to_an_even_share_is_told() {
        let ops = Ops(vec![110, 225, 325]).since(&Ops(vec![10, 120, 230]));
        assert_eq!(ops, Ops(vec![100, 105, 95]));
        assert_eq!(ops.uneven_per_mille(), 50);
        assert_eq!(ops.to_string(), "100 (+0.0 %), 105 (+5.0 %), 95 (−5.0 %)");
    }

    #[test]
    fn one_node_and_nothing_asked_are_even() {
        assert_eq!(Ops(vec![7]).uneven_per_mille(), 0);
        assert_eq!(Ops(vec![0, 0]).uneven_per_mille(), 0);
        assert_eq!(Ops(Vec::new()).uneven_per_mille(), 0);
    }
}
