//! The one limit of a simple policy: as a sentence, and as the number of answers it allows.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use weir_core::{
    key::KeyPart,
    policy::{RequestCost, mode::MissingKey, quota::Quota},
    units::{Cost, Micros},
};

/// A token bucket per value of one request header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name.
    pub name: String,
    /// The request header that holds the key.
    pub header: String,
    /// Tokens per window.
    pub count: u64,
    /// The window.
    pub window: Micros,
    /// Capacity of the bucket.
    pub burst: u64,
    /// What happens to a request without the header.
    pub missing_key: MissingKey,
}

impl Limit {
    /// Reads a policy that consists of one such limit.
    ///
    /// # Errors
    /// When the policy is wrong, or another kind of policy.
    pub fn read(policy: &str) -> Result<Self> {
        let policy = weir_core::config::parse(policy.as_bytes())
            .map_err(|faults| anyhow!("the policy is wrong: {faults}"))?;
        let [limit] = policy.limits.as_slice() else {
            return Err(anyhow!("the policy has {} limits, not one", policy.limits.len()));
        };
        let [KeyPart::Header(header)] = limit.key.as_slice() else {
            return Err(anyhow!("the limit's key is not one request header"));
        };
        let Quota::TokenBucket { rate, burst } = *limit.tiers.default.quota() else {
            return Err(anyhow!("the limit is no token bucket"));
        };
        ensure!(rate.count() > 0, "the limit is closed");
        let plain = limit.tiers.by_plan.is_none() && limit.cost == RequestCost::Fixed(Cost::ONE);
        ensure!(plain, "the limit depends on the request");
        Ok(Self {
            name: limit.name.clone(),
            header: header.as_str().to_owned(),
            count: rate.count(),
            window: rate.window(),
            burst,
            missing_key: limit.missing_key,
        })
    }

    /// The limit in words.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { count, burst, header, .. } = self;
        let window = match self.window.get() {
            1_000_000 => "a second".to_owned(),
            60_000_000 => "a minute".to_owned(),
            3_600_000_000 => "an hour".to_owned(),
            86_400_000_000 => "a day".to_owned(),
            micros => format!("per {:?}", Duration::from_micros(micros)),
        };
        format!("{count} requests {window} for each {header}, and up to {burst} at once")
    }

    /// How many of `sent` requests on one fresh bucket pass, at least and at most, if the first was
    /// sent and the last was answered `within` this time.
    #[must_use]
    pub fn allowed(&self, sent: u64, within: Duration) -> (u64, u64) {
        let refilled =
            within.as_micros() * u128::from(self.count) / u128::from(self.window.get().max(1));
        let most = u64::try_from(refilled).unwrap_or(u64::MAX).saturating_add(self.burst);
        (sent.min(self.burst), sent.min(most))
    }

    /// The longest that an empty bucket makes a request wait, in whole seconds, rounded up.
    ///
    /// # Errors
    /// When nothing ever passes.
    pub fn longest_wait(&self) -> Result<u64> {
        let micros = self.window.get().checked_div(self.count).context("nothing passes")?;
        Ok(micros.div_ceil(1_000_000).max(1))
    }

    /// The status of the answer to a request without the header, if its bucket has tokens.
    #[must_use]
    pub const fn status_without_key(&self) -> u16 {
        match self.missing_key {
            MissingKey::Share | MissingKey::Skip => 200,
            MissingKey::Unauthorized => 401,
            MissingKey::Deny => 403,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMO: &str = r#"{ "limits": [
        { "name": "per-key", "key": ["header:x-api-key"], "rate": "4/second", "burst": 10 } ] }"#;

    fn demo() -> Limit {
        Limit::read(DEMO).unwrap()
    }

    #[test]
    fn it_reads_as_a_sentence() {
        let expected = "4 requests a second for each x-api-key, and up to 10 at once";
        assert_eq!(demo().sentence(), expected);
    }

    #[test]
    fn what_refills_during_a_burst_may_pass_too() {
        assert_eq!(demo().allowed(12, Duration::from_millis(249)), (10, 10));
        assert_eq!(demo().allowed(12, Duration::from_millis(250)), (10, 11));
        assert_eq!(demo().allowed(12, Duration::from_secs(9)), (10, 12));
        assert_eq!(demo().allowed(3, Duration::ZERO), (3, 3));
    }

    #[test]
    fn a_wait_is_rounded_up() {
        assert_eq!(demo().longest_wait().unwrap(), 1);
        assert_eq!(
            Limit { count: 7, window: Micros::new(60_000_000), ..demo() }.longest_wait().unwrap(),
            9
        );
    }

    #[test]
    fn another_kind_of_policy_is_refused() {
        assert!(Limit::read("{}").is_err());
        assert!(Limit::read(&DEMO.replace("4/second", "0/second")).is_err());
        assert!(Limit::read(&DEMO.replace("\"header:x-api-key\"", "")).is_err());
    }
}
