//! Where counts are kept.

pub mod local;

/// Why a store could not say whether a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Every place of the bucket's set is taken by one that is not full again.
    TableFull,
    /// Other workers were first, every time.
    Contended,
    /// The host refused a call, or kept bytes that are no set.
    Host,
}
