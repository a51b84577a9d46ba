//! A limit that is split into shards, of which each request takes one that is drawn: it never
//! allows more than its tokens, and fewer at first, since some shards are empty before others. How
//! many fewer is known beforehand.

use super::{CONNECTIONS, PATH, Stage, number, shard_key};
use anyhow::Result;
use serde_json::{Value, json};
use weir_core::script::Key;
use weir_lab::fleet::{
    load::{self, Plan, Stream},
    ops::Ops,
    report::{Counts, Report},
    spread::Spread,
};

pub const SHARDS: u64 = 12;
/// A day's tokens: a shard gets its next one after minutes, when the check is over.
const TOKENS: u32 = 6_000;
const PER_SECOND: u32 = 1_000;

pub fn limits(name: &str) -> Value {
    json!({ "limits": [{
        "name": name, "rate": format!("{TOKENS}/day"), "burst": TOKENS, "shards": SHARDS,
    }] })
}

/// The key of each shard in Redis, which chooses its slot of a cluster.
pub fn keys(name: &str) -> Vec<Key> {
    (0..SHARDS).map(|shard| shard_key(name, shard, SHARDS)).collect()
}

/// Sends exactly as many requests as there are tokens, evenly, and then more until all are given.
/// Returns how often each node was asked by the first of these, for a fleet that has just started
/// with the limit of this name.
pub async fn check(stage: &mut Stage, case: &str, name: &str) -> Result<Ops> {
    // The requests that have warmed up the gateways.
    let [warmed_up, _, _] = stage.counters().await?;
    let tokens = u64::from(TOKENS);
    let before = Ops::of(&mut stage.nodes)?;
    let report = send(stage, tokens - warmed_up).await?;
    let ops = Ops::of(&mut stage.nodes)?.since(&before);
    let allowed = warmed_up + number(report.counts().allowed);
    let lacking = tokens - allowed;
    println!("{case}, {SHARDS} shards\n{report}");
    println!(
        "{tokens} tokens, {tokens} requests: {lacking} of them ({}) refused; {} predicted",
        percent(lacking),
        percent(predicted()),
    );
    println!("calls by node: {ops}");
    // Four times of the mean are far more than chance makes of twelve shards.
    assert!(lacking <= 4 * predicted(), "{lacking} refused, {} predicted", predicted());

    // With a third more, each shard is asked for more than it has.
    let rest = send(stage, tokens / 3).await?;
    let allowed = allowed + number(rest.counts().allowed);
    assert_eq!(allowed, tokens, "every token is given once");
    for key in keys(name) {
        stage.state(key)?;
    }
    stage.assert_never_reloaded().await?;
    Ok(ops)
}

async fn send(stage: &Stage, requests: u64) -> Result<Report> {
    let stream = Stream {
        path: PATH.to_owned(),
        headers: Vec::new(),
        spread: Spread::Even,
        per_second: PER_SECOND,
        requests: usize::try_from(requests)?,
    };
    let gateways = stage.fleet.addresses("ingress")?;
    let plan = Plan { gateways, connections: CONNECTIONS, streams: vec![stream] };
    let report = load::run(&plan).await?;
    let Counts { unchecked, other, .. } = report.counts();
    assert_eq!((unchecked, other, report.unanswered), (0, 0, 0), "{}", stage.fleet.log());
    Ok(report)
}

/// How many of as many requests as tokens the shards refuse in the mean: each is asked about as
/// often as it has tokens, with a deviation of √(tokens ÷ shards), and what it is asked more is
/// refused. That is √(shards · tokens ÷ 2π) in all; with ten shards 1.26 ÷ √tokens of the tokens.
fn predicted() -> u64 {
    // π is 355 ÷ 113 here.
    (SHARDS * u64::from(TOKENS) * 113 / (2 * 355)).isqrt()
}

/// A part of the tokens.
fn percent(part: u64) -> String {
    let hundredths = part * 10_000 / u64::from(TOKENS);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}
