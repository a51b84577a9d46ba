//! A configured plugin: the policy and what it needs to be enforced.

use crate::{
    host::{Counters, Entropy, HostError, SharedData},
    metrics::Metrics,
    store::{local::LocalStore, redis},
};
use weir_core::{
    config::{self, Fault, Faults},
    key::hash::{Digest, Secret},
    policy::{KeySecret, Policy, Store},
};

/// Keys the digests of a policy without a secret, so that all proxies make the same ones. Whoever
/// reads the store can then try which key a digest is of.
const PUBLIC: Secret = *b"weir: no secret!";

/// All state of one configuration but what waits.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) policy: Policy,
    /// Keys the digests of all buckets.
    pub(crate) secret: Secret,
    /// Tells this store from others whose buckets have the same names.
    pub(crate) store: Digest,
    /// Counts in this proxy: all of them, or its share of a limit in an outage.
    pub(crate) counts: LocalStore,
    pub(crate) metrics: Metrics,
}

/// Why a plugin cannot be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigureError {
    /// The policy is faulty.
    Policy(Faults),
    /// The host refused what the plugin needs: shared data, entropy or counters.
    Host(HostError),
    /// The bridge was given a policy.
    BridgePolicy,
}

impl core::fmt::Display for ConfigureError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Policy(faults) => faults.fmt(f),
            Self::BridgePolicy => f.write_str(
                "the plugin with root_id weir_bridge passes on what limiters send and takes no \
                 configuration; give the policy to a plugin with another root_id",
            ),
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

impl core::fmt::Debug for Plugin {
    /// Without the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Plugin").field("policy", &self.policy).finish_non_exhaustive()
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
        let counts = LocalStore::open(host)?;
        let metrics = Metrics::define(host)?;
        let secret = match (&policy.store, &policy.key_secret) {
            (Store::Local, _) => *counts.table().secret(),
            (_, Some(secret)) => derived(secret),
            (_, None) => PUBLIC,
        };
        let store = identity(&policy.store);
        Ok(Self { policy, secret, store, counts, metrics })
    }

    /// What an operator should know of a configuration that is accepted.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        (self.secret == PUBLIC).then_some(
            "the policy has no key_secret: whoever reads the store can find out which clients are \
             in it; set one, the same for all gateways",
        )
    }
}

/// What tells one store from another, as far as this proxy can: the way there.
fn identity(store: &Store) -> Digest {
    let (kind, parts) = match store {
        Store::Local => ("local", ["", ""]),
        Store::Redis { cluster, .. } => ("redis", [cluster.as_str(), ""]),
        Store::Http { cluster, host, .. } => {
            ("http", [cluster.as_str(), host.as_deref().unwrap_or_default()])
        }
    };
    Digest::of(&PUBLIC, "store", kind, parts.iter().map(|part| part.as_bytes()))
}

/// Sixteen bytes from a secret of any length.
fn derived(secret: &KeySecret) -> Secret {
    Digest::of(&PUBLIC, "key_secret", "", [secret.as_bytes()]).to_bytes()
}

/// What a valid policy asks for and this filter does not do. Nothing is accepted and then ignored.
fn unsupported(policy: &Policy) -> Vec<Fault> {
    let local = policy.store == Store::Local;
    let secret = policy.key_secret.as_ref().filter(|_| local).map(|_| Fault {
        path: "key_secret".into(),
        message: "is for a shared store; the local one draws its own secret; remove it".into(),
    });
    let gateways = (local && policy.gateways > 1).then(|| Fault {
        path: "gateways".into(),
        message: "is for a shared store; with the local one every gateway allows the whole limit; \
                  remove it"
            .into(),
    });
    let cluster = match &policy.store {
        Store::Redis { cluster, .. } if redis::reads_as_message(cluster) => Some(Fault {
            path: "store.cluster".into(),
            message: "is a name that Envoy takes for an encoded message where it opens a stream; \
                      rename the cluster, for instance to \"weir_bridge\""
                .into(),
        }),
        _ => None,
    };
    secret.into_iter().chain(gateways).chain(cluster).collect()
}
