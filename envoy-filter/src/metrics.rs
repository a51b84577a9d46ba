//! Counters, defined once per configuration. Names are fixed: metrics never expire in the proxy,
//! so a client's value in a name would grow its memory without bound.

use crate::host::{CounterId, Counters, HostError};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A request that its limits allowed.
    Allowed,
    /// A request that one of its limits refused.
    Refused,
    /// A limit that would have refused a request, were it enforced.
    ShadowRefused,
    /// A limit whose key a request lacked.
    MissingKey,
    /// A limit on which the store could not say, for one of the three reasons below.
    Unchecked,
    /// No place for another bucket in its set.
    TableFull,
    /// Other workers were first, every time.
    Contended,
    /// The host failed, or what it kept was not ours.
    StoreError,
}

/// The counters of one plugin.
#[derive(Clone, Debug)]
pub struct Metrics {
    ids: Vec<(Metric, CounterId)>,
}

impl Metric {
    const ALL: [(Metric, &str); 8] = [
        (Self::Allowed, "weir.allowed"),
        (Self::Refused, "weir.refused"),
        (Self::ShadowRefused, "weir.shadow_refused"),
        (Self::MissingKey, "weir.missing_key"),
        (Self::Unchecked, "weir.unchecked"),
        (Self::TableFull, "weir.table_full"),
        (Self::Contended, "weir.contended"),
        (Self::StoreError, "weir.store_error"),
    ];
}

impl Metrics {
    /// Makes all counters known to the host.
    ///
    /// # Errors
    /// [`HostError`] if the host refuses one.
    pub fn define(host: &impl Counters) -> Result<Self, HostError> {
        let define = |(metric, name)| host.define(name).map(|id| (metric, id));
        let ids = Metric::ALL.into_iter().map(define).collect::<Result<_, _>>()?;
        Ok(Self { ids })
    }

    /// Counts one.
    pub fn count(&self, host: &impl Counters, metric: Metric) {
        if let Some((_, id)) = self.ids.iter().find(|(known, _)| *known == metric) {
            host.increment(*id);
        }
    }
}
