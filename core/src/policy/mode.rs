//! Whether a limit is enforced, and what happens where it cannot be asked.

/// Whether a refusal counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It does.
    #[default]
    Enforce,
    /// It is counted and the request passes: to see what a limit would do.
    Shadow,
    /// It does for so many percent of requests.
    Percent(u64),
}

impl Mode {
    /// Whether a refusal counts for a request that drew this number, all numbers being equally
    /// likely.
    ///
    /// ```
    /// use weir_core::policy::mode::Mode;
    /// assert!(Mode::Percent(25).enforces(0) && !Mode::Percent(25).enforces(1 << 30));
    /// assert!(Mode::Percent(100).enforces(u32::MAX) && !Mode::Percent(0).enforces(0));
    /// ```
    #[must_use]
    pub const fn enforces(self, draw: u32) -> bool {
        match self {
            Self::Enforce => true,
            Self::Shadow => false,
            Self::Percent(percent) => one_of(100, draw) < percent,
        }
    }
}

/// One of the numbers below `choices`, chosen by a number that is drawn from all of 32 bits.
#[must_use]
pub const fn one_of(choices: u64, draw: u32) -> u64 {
    // At most 2^32 · 2^32.
    choices.saturating_mul(draw as u64) >> 32
}

/// What happens to a request that lacks a part of a limit's key, or has it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// All such requests share one bucket. The default: leaving the key out must not be a way
    /// round the limit.
    #[default]
    Share,
    /// The limit does not apply.
    Skip,
    /// Answer 401.
    Unauthorized,
    /// Answer 403.
    Deny,
}

/// What happens to a request when the store cannot say whether it passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// Let it pass, and count it as unchecked.
    #[default]
    Allow,
    /// Answer 503: for what must never run unchecked, such as logins and payments.
    Deny,
    /// Ask this proxy's share of the limit: the limit divided by the gateways.
    Local,
}
