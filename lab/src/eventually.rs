//! Waiting for a condition, with a deadline. Nothing else in Weir waits for time to pass.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Probes until there is a value.
///
/// # Errors
/// What the probe fails with, at once; or that `what` did not happen within the time.
pub async fn eventually<T>(
    what: &str,
    within: Duration,
    mut probe: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + within;
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(value) = probe().await? {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            bail!("{what}: not within {within:?}");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Probes for as long as it takes.
///
/// # Errors
/// What the probe fails with.
pub async fn whenever<T>(mut probe: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    loop {
        if let Some(value) = probe().await? {
            return Ok(value);
        }
        tokio::time::sleep(LONGEST_PAUSE).await;
    }
}

/// Waits for a point in time: for a link that delays what it carries, and for measurements whose
/// faults come at times that were chosen before.
pub(crate) async fn reached(time: Instant) {
    tokio::time::sleep_until(time.into()).await;
}

/// Probes on this thread until the condition holds, and returns whether it did within the time.
/// For destructors, which cannot be asynchronous.
pub fn blocking(within: Duration, mut probe: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + within;
    let mut pause = FIRST_PAUSE;
    loop {
        if probe() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        #[allow(clippy::disallowed_methods, reason = "the one place that waits")]
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn it_ends_when_there_is_a_value() {
        let mut probes = 0;
        let value = eventually("three probes", Duration::from_secs(10), async || {
            probes += 1;
            Ok((probes == 3).then_some(probes))
        });
        assert_eq!(value.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn it_ends_at_the_deadline_and_says_what_was_awaited() {
        let error = eventually::<()>("a pig to fly", SHORT, async || Ok(None)).await.unwrap_err();
        assert!(error.to_string().starts_with("a pig to fly"), "{error}");
    }

    #[tokio::test]
    async fn it_ends_at_once_when_the_probe_fails() {
        let start = Instant::now();
        let probe = async || bail!("broken");
        assert!(eventually::<()>("x", Duration::from_secs(60), probe).await.is_err());
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_thread_waits_no_longer_than_the_deadline() {
        assert!(blocking(SHORT, || true));
        assert!(!blocking(SHORT, || false));
    }
}
