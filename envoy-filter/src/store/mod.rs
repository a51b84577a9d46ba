//! Where counts are kept: [`local`], in the proxy's shared data, or a shared store that [`redis`]
//! and [`http`] reach.

pub mod breaker;
pub mod command;
pub mod complaints;
pub mod http;
pub mod local;
pub mod recent;
pub mod redis;
pub mod remote;
pub mod resp;
pub mod table;

/// Why a store could not say whether a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Every place of the bucket's set is taken by one that is not full again.
    TableFull,
    /// Other workers were first, every time.
    Contended,
    /// The host refused a call, or kept bytes that are no set.
    Host,
    /// No answer came in time.
    Timeout,
    /// The store is known to be out; nothing was sent.
    Down,
    /// The store was lost before it answered. It may have decided all the same.
    Lost,
    /// The host would not send the call: no such cluster, no host in it, or its circuit breaker.
    Unsent,
    /// As many calls wait for an answer as may.
    Busy,
    /// The store answered with an error, or with what is no answer.
    Error,
}

/// Whom an answer of a shared store is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The request, by its context.
    pub context: u32,
    /// Which of its calls.
    pub call: usize,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Of a check.
    Check {
        /// Whom it is for.
        ticket: Ticket,
        /// The reply, which may be an error of the store's.
        result: Result<resp::Reply, Failure>,
    },
    /// A refund that failed, or whose reply did not come.
    RefundLost,
}

/// How soon a tick is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// Nothing waits.
    Never,
    /// Something is to be tried again.
    Later,
    /// Something has a deadline.
    Soon,
}
