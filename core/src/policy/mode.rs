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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_enforced_for_that_share_of_the_numbers() {
        // 2^32 / 100, rounded up: the first number of each hundredth.
        const HUNDREDTH: u32 = 42_949_673;
        let enforced = |percent: u64| {
            let mode = Mode::Percent(percent);
            (0..100_u32).filter(|n| mode.enforces(n * HUNDREDTH)).count()
        };
        assert_eq!([0, 1, 25, 99, 100].map(enforced), [0, 1, 25, 99, 100]);
    }

    #[test]
    fn shadow_is_never_and_enforce_always() {
        for draw in [0, u32::MAX] {
            assert!(Mode::Enforce.enforces(draw) && !Mode::Shadow.enforces(draw));
        }
    }

    #[test]
    fn one_of_some_is_below_them_and_reaches_all() {
        assert_eq!([0, 1 << 30, 1 << 31, u32::MAX].map(|draw| one_of(4, draw)), [0, 1, 2, 3]);
    }
}
