//! A configured plugin: the policy and what it needs to be enforced.

use crate::{
    host::{Counters, Entropy, HostError, SharedData},
    metrics::Metrics,
    store::local::LocalStore,
};
use weir_core::{
    config::{self, Fault, Faults},
    policy::{Limit, Policy, Store, quota::Quota},
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
        if let Some(faults) = Faults::of(unsupported(&policy)) {
            return Err(ConfigureError::Policy(faults));
        }
        let store = LocalStore::open(host)?;
        let metrics = Metrics::define(host)?;
        Ok(Self { policy, store, metrics })
    }
}

/// What a valid policy asks for and this filter does not do. Nothing is accepted and then ignored.
fn unsupported(policy: &Policy) -> Vec<Fault> {
    let store = match policy.store {
        Store::Local => None,
        Store::Redis { .. } => Some("redis"),
        Store::Http { .. } => Some("http"),
    };
    let store = store.map(|kind| Fault {
        path: "store.type".into(),
        message: format!(
            "is \"{kind}\", which this version of the filter does not have; use \"local\""
        ),
    });
    let secret = policy.key_secret.as_ref().map(|_| Fault {
        path: "key_secret".into(),
        message: "is for a shared store; the local one draws its own secret; remove it".into(),
    });
    let gateways = (policy.gateways > 1).then(|| Fault {
        path: "gateways".into(),
        message: "is for a shared store; with the local one every gateway allows the whole limit; \
                  remove it"
            .into(),
    });
    let limits = policy.limits.iter().enumerate();
    store
        .into_iter()
        .chain(secret)
        .chain(gateways)
        .chain(limits.filter_map(|(i, limit)| unsupported_limit(i, limit)))
        .collect()
}

fn unsupported_limit(index: usize, limit: &Limit) -> Option<Fault> {
    let why = match limit.tiers.default.quota() {
        Quota::LeakyBucket { .. } => "holds requests back",
        Quota::Concurrency { .. } => "counts requests in flight",
        _ => return None,
    };
    let algorithm = limit.tiers.default.quota().algorithm();
    Some(Fault {
        path: format!("limits[{index}].algorithm"),
        message: format!("is \"{algorithm}\", which {why}; this version of the filter cannot"),
    })
}
