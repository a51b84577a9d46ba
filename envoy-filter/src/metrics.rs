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
    /// A limit that the store could not check, on a request that was let through.
    Unchecked,
    /// A request that was turned away because a limit could not be checked.
    Unavailable,
    /// A limit that this proxy's share of it decided, since the store could not.
    ByShare,
    /// A call of a shared store.
    StoreCall,
    /// A refusal without a call, by what the store had refused a moment ago.
    Recalled,
    /// A charge or a permit that could not be given back, or that may not have been.
    RefundLost,
    /// A limit that could not be checked: no place for another bucket in its set.
    TableFull,
    /// The same: other workers were first, every time.
    Contended,
    /// The same: the host failed, or the store answered with an error.
    StoreError,
    /// The same: no answer came in time.
    StoreTimeout,
    /// The same: the store cannot be reached, or is known to be out.
    StoreDown,
    /// The same: too many calls wait for an answer.
    StoreBusy,
}

/// The counters of one plugin.
#[derive(Clone, Debug)]
pub struct Metrics {
    ids: Vec<(Metric, CounterId)>,
}

impl Metric {
    const ALL: [(Metric, &str); 16] = [
        (Self::Allowed, "weir.allowed"),
        (Self::Refused, "weir.refused"),
        (Self::ShadowRefused, "weir.shadow_refused"),
        (Self::MissingKey, "weir.missing_key"),
        (Self::Unchecked, "weir.unchecked"),
        (Self::Unavailable, "weir.unavailable"),
        (Self::ByShare, "weir.by_share"),
        (Self::StoreCall, "weir.store_calls"),
        (Self::Recalled, "weir.recalled"),
        (Self::RefundLost, "weir.refund_lost"),
        (Self::TableFull, "weir.table_full"),
        (Self::Contended, "weir.contended"),
        (Self::StoreError, "weir.store_error"),
        (Self::StoreTimeout, "weir.store_timeout"),
        (Self::StoreDown, "weir.store_down"),
        (Self::StoreBusy, "weir.store_busy"),
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
