//! A configured plugin: the policy and what it needs to be enforced.

use crate::{
    host::{Counters, Entropy, HostError, SharedData},
    metrics::Metrics,
    store::local::LocalStore,
};
use weir_core::{
    config::{self, Faults},
    policy::Policy,
};

/// All state of one configuration.
#[derive(Clone, Debug)]
pub struct Plugin {
    pub(crate) policy: Policy,
    pub(crate) store: LocalStore,
    pub(crate) metrics: Metrics,
}

/// Why a plugin cannot be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigureError {
    /// The policy is faulty.
    Policy(Faults),
    /// The host refused what the plugin needs: shared data, entropy or counters.
    Host(HostError),
}

impl core::fmt::Display for ConfigureError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Policy(faults) => faults.fmt(f),
            Self::Host(error) => write!(
                f,
                "shared data, random bytes and metrics are needed, but {error}; check the \
                 capability_restriction_config of the VM",
            ),
        }
    }
}

impl core::error::Error for ConfigureError {}

impl From<HostError> for ConfigureError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl Plugin {
    /// A plugin from the text of its policy.
    ///
    /// # Errors
    /// [`ConfigureError`] says what is wrong with the policy or the host.
    pub fn configure(
        text: &[u8],
        host: &(impl SharedData + Entropy + Counters),
    ) -> Result<Self, ConfigureError> {
        let policy = config::parse(text).map_err(ConfigureError::Policy)?;
        let store = LocalStore::open(host)?;
        let metrics = Metrics::define(host)?;
        Ok(Self { policy, store, metrics })
    }
}
