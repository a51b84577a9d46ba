//! A fleet: several real Envoys of one configuration, started together, and load that is spread over
//! them in the ways that balancers and clients spread it.

pub mod load;
pub mod ops;
pub mod report;
pub mod spread;

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;

use crate::envoy::{Envoy, Options};

/// Most Envoys of a fleet.
pub const MOST_GATEWAYS: usize = 16;

/// Envoys of one configuration. Dropping it stops them.
pub struct Fleet {
    gateways: Vec<Envoy>,
}

impl Fleet {
    /// Starts so many Envoys and waits until all serve. What the options say holds for each.
    ///
    /// # Errors
    /// When there would be more than [`MOST_GATEWAYS`], or one does not start.
    pub async fn start(options: &Options<'_>, size: usize) -> Result<Self> {
        ensure!(size <= MOST_GATEWAYS, "at most {MOST_GATEWAYS} gateways");
        let starting = (0..size).map(|_| Envoy::start(options));
        Ok(Self { gateways: try_join_all(starting).await? })
    }

    /// The Envoys.
    #[must_use]
    pub fn gateways(&self) -> &[Envoy] {
        &self.gateways
    }

    /// The Envoys, for their processes.
    pub fn gateways_mut(&mut self) -> &mut [Envoy] {
        &mut self.gateways
    }

    /// Where a listener listens, in each Envoy.
    ///
    /// # Errors
    /// When there is no such listener.
    pub fn addresses(&self, listener: &str) -> Result<Vec<SocketAddr>> {
        self.gateways.iter().map(|gateway| gateway.address(listener)).collect()
    }

    /// A counter, summed over all Envoys; 0 in those that have none of that name (yet).
    ///
    /// # Errors
    /// When an admin interface does not answer.
    pub async fn sum(&self, counter: &str) -> Result<u64> {
        let mut sum = 0;
        for gateway in &self.gateways {
            sum += gateway.stat(counter).await?.unwrap_or(0);
        }
        Ok(sum)
    }

    /// What all have logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.gateways.iter().map(Envoy::log).collect::<Vec<_>>().join("\n")
    }
}
