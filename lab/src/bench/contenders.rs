//! What is measured on Redis: Weir's scripts as the core composes them, and what they are measured
//! beside.

use anyhow::{Context as _, Result};
use weir_core::{
    key::hash::Digest,
    limiter::{
        Ask, Limiter, fixed_window::FixedWindow, sliding_log::SlidingLog,
        sliding_window::SlidingWindow, token_bucket::TokenBucket,
    },
    script::{Asked, Call, GENERAL, Key},
    units::{Cost, Micros, Rate},
};

/// The limit that all have where they can: so many requests a minute.
pub(super) const PER_MINUTE: u64 = 1_000;
/// What a caller's first request costs where it may cost more than the others: it leaves so much of
/// the bucket empty that the key outlives the measurement.
pub(super) const FIRST_COST: u64 = 500;

const MINUTE: Micros = Micros::new(60_000_000);

/// What a script does, which is what it may be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A token bucket, or GCRA.
    Bucket,
    /// A fixed or a sliding window.
    Window,
    /// A log of every request.
    Log,
    /// Weir's script for several limits.
    Several,
    /// No limiter: what a call costs at the least.
    Floor,
}

/// A script, and how it is called.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether it is Weir's.
    pub(super) ours: bool,
    pub(super) text: String,
    pub(super) keys: Keys,
    /// ARGV of a caller's first request, and of all others.
    pub(super) first: Vec<String>,
    pub(super) again: Vec<String>,
}

impl Contender {
    /// Whether it trusts the caller for the time, and so has not to ask Redis for it.
    pub(super) fn takes_time(&self) -> bool {
        let keys = match &self.keys {
            Keys::Weir(_) => &[],
            Keys::Template(keys) => keys.as_slice(),
        };
        keys.iter()
            .chain(&self.again)
            .any(|word| word.contains("<now>") || word.contains("<minute>"))
    }
}

/// KEYS of a caller.
#[derive(Clone, Debug)]
pub(super) enum Keys {
    /// Weir's, of these limits.
    Weir(Vec<&'static str>),
    /// Texts with words that stand for what changes: `lab/bench/peers.mjs` explains them.
    Template(Vec<String>),
}

/// Weir's scripts.
pub(super) fn weir() -> Result<Vec<Contender>> {
    let minute = |count| Rate::new(count, MINUTE).context("a rate");
    let second = |count| Rate::new(count, Micros::SECOND).context("a rate");
    let bucket = |rate, burst| anyhow::Ok(Limiter::TokenBucket(TokenBucket::new(rate, burst)?));
    let fast = bucket(minute(PER_MINUTE)?, PER_MINUTE)?;
    let slower = bucket(Rate::new(10_000, Micros::new(3_600_000_000)).context("a rate")?, 10_000)?;
    let fixed = Limiter::FixedWindow(FixedWindow::new(minute(PER_MINUTE)?)?);
    let sliding = Limiter::SlidingWindow(SlidingWindow::new(minute(PER_MINUTE)?)?);
    let log = Limiter::SlidingLog(SlidingLog::new(minute(10)?)?);
    Ok(vec![
        one("token bucket, 1000/minute", Kind::Bucket, &fast, FIRST_COST)?,
        one("token bucket, 10/second", Kind::Bucket, &bucket(second(10)?, 100)?, 90)?,
        one("token bucket, any rate: 7/second", Kind::Bucket, &bucket(second(7)?, 1_000)?, 500)?,
        one("fixed window", Kind::Window, &fixed, FIRST_COST)?,
        one("sliding window", Kind::Window, &sliding, FIRST_COST)?,
        one("sliding log, 10/minute", Kind::Log, &log, 1)?,
        several("general, 1 limit", &[("per-key", &fast)])?,
        several("general, 2 limits", &[("per-key", &fast), ("per-hour", &slower)])?,
    ])
}

/// What one would write after reading an article, and the least that a script costs.
pub(super) fn others() -> Vec<Contender> {
    const HASH_BUCKET: &str = include_str!("../../bench/hash_bucket.lua");
    const CLOCK_ONLY: &str = "redis.call('TIME') return 1";
    let plain = |name: &str, kind, text: &str, args: Vec<String>| Contender {
        name: name.to_owned(),
        kind,
        ours: false,
        text: text.to_owned(),
        // As long as Weir's own keys, but for one byte.
        keys: Keys::Template(vec!["bucket:<id>".to_owned()]),
        first: args.clone(),
        again: args,
    };
    let per_second = f64::from(u32::try_from(PER_MINUTE).unwrap_or(u32::MAX)) / 60.0;
    let args = vec![PER_MINUTE.to_string(), per_second.to_string()];
    vec![
        plain("the articles' shape: hash of two fields", Kind::Bucket, HASH_BUCKET, args),
        plain("a script that does nothing", Kind::Floor, "return 1", Vec::new()),
        plain("a script that asks for the time", Kind::Floor, CLOCK_ONLY, Vec::new()),
    ]
}

/// The script that the filter would call for one limit.
fn one(name: &str, kind: Kind, limiter: &Limiter, first_cost: u64) -> Result<Contender> {
    let call = |cost| {
        let asked = [asked("per-key", limiter, cost)?];
        let call = Call::new(&asked)?;
        anyhow::Ok((call.script.text, call.args))
    };
    let ((text, first), (_, again)) = (call(first_cost)?, call(1)?);
    Ok(ours(name, kind, text, vec!["per-key"], first, again))
}

/// The script for several limits, also where there is one.
fn several(name: &str, limits: &[(&'static str, &Limiter)]) -> Result<Contender> {
    let args = |cost| {
        let args = limits.iter().map(|(name, limiter)| {
            // The script is chosen by the number of limits, so this one stands beside itself.
            let twin = [asked(name, limiter, cost)?, asked("twin", limiter, cost)?];
            let mut args = Call::new(&twin)?.args;
            args.truncate(args.len() / 2);
            anyhow::Ok(args)
        });
        anyhow::Ok(args.collect::<Result<Vec<_>>>()?.concat())
    };
    let names = limits.iter().map(|(name, _)| *name).collect();
    Ok(ours(name, Kind::Several, GENERAL.text, names, args(FIRST_COST)?, args(1)?))
}

fn ours(
    name: &str,
    kind: Kind,
    text: &str,
    limits: Vec<&'static str>,
    first: Vec<String>,
    again: Vec<String>,
) -> Contender {
    let (name, text) = (format!("weir: {name}"), text.to_owned());
    Contender { name, kind, ours: true, text, keys: Keys::Weir(limits), first, again }
}

fn asked<'a>(name: &str, limiter: &'a Limiter, cost: u64) -> Result<Asked<'a>> {
    let ask = Ask::of(Cost::new(cost).context("a cost")?);
    Ok(Asked { limiter, key: weir_key(name, 0), ask, enforced: true })
}

/// The name of a caller's bucket under a limit.
pub(super) fn weir_key(limit: &str, caller: u64) -> Key {
    let digest = |limit| Digest::of(&[7; 16], "bench", limit, [caller.to_le_bytes().as_slice()]);
    Key::new(digest(""), digest(limit))
}

#[cfg(test)]
mod tests {
    use weir_core::script::{TOKEN_BUCKET_FAST, TOKEN_BUCKET_MICRO};

    use super::*;

    #[test]
    fn each_limit_is_measured_by_the_script_that_it_names() {
        let weir = weir().unwrap();
        let text = |name: &str| {
            weir.iter().find(|contender| contender.name.contains(name)).unwrap().text.as_str()
        };
        assert_eq!(text("1000/minute"), TOKEN_BUCKET_FAST.text);
        assert_eq!(text("10/second"), TOKEN_BUCKET_FAST.text);
        assert_eq!(text("any rate"), TOKEN_BUCKET_MICRO.text);
        assert_eq!(text("1 limit"), GENERAL.text);
    }

    #[test]
    fn the_general_script_has_arguments_for_each_limit() {
        let weir = weir().unwrap();
        let args = |name: &str| {
            weir.iter().find(|contender| contender.name.contains(name)).unwrap().again.clone()
        };
        assert_eq!(args("1 limit"), ["b", "1", "1", "60000", "60000000", "60000", "60000000"]);
        assert_eq!(args("2 limits").len(), 14);
    }
}
