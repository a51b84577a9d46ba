//! What a bucket of 100 tokens and 100 a second has given, to the token, by the times of its first
//! request and of one that it refused.

use super::{CALLER, GATEWAYS, Stage};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

pub const LIMIT: &str = "per-key";
pub const RATE: u32 = 100;
pub const BURST: u64 = 100;
/// Microseconds in which a token comes. A bucket's state is when it will be full, so each token that
/// it gives puts that off by so much.
pub const TOKEN: u64 = 10_000;
/// Tokens that the first request of a caller takes, so that its bucket is not full again before
/// the load begins: from then on nothing that comes is lost.
pub const FIRST: u64 = 90;

pub fn limits() -> Value {
    json!({ "limits": [{
        "name": LIMIT, "key": [format!("header:{CALLER}")], "cost": "header:x-cost",
        "rate": format!("{RATE}/second"), "burst": BURST,
    }] })
}

/// The times between which a request was decided, in microseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    pub before: u64,
    pub after: u64,
}

/// Tokens that a bucket can have given from its first request, when it was full, to one that it
/// refused, if it was never full meanwhile: then it held less than one token, and so it has given
/// all but that of what it held and what has come.
pub fn given(first: Between, refused: Between) -> RangeInclusive<u64> {
    let shortest = refused.before.saturating_sub(first.after);
    let longest = refused.after - first.before;
    let least = ((BURST - 1) * TOKEN + shortest) / TOKEN + 1;
    let most = (BURST * TOKEN + longest) / TOKEN;
    least..=most
}

/// Asks for the first time as a caller.
pub async fn open(
    stage: &mut Stage,
    gateway: usize,
    caller: &str,
    now: impl Fn(&mut Stage) -> Result<u64>,
) -> Result<Between> {
    let before = now(stage)?;
    let answer = stage.ask(gateway, &[(CALLER, caller), ("x-cost", &FIRST.to_string())]).await?;
    ensure!(answer.status == 200, "{caller} has asked before");
    Ok(Between { before, after: now(stage)? })
}

/// Asks gateways in turn until one refuses, and tells how many have not.
pub async fn exhaust(
    stage: &mut Stage,
    gateways: &[usize],
    caller: &str,
    now: impl Fn(&mut Stage) -> Result<u64>,
) -> Result<(u64, Between)> {
    const MOST: usize = 100 * GATEWAYS;
    for (allowed, gateway) in (0..).zip(gateways.iter().cycle().take(MOST)) {
        let before = now(stage)?;
        if stage.ask(*gateway, &[(CALLER, caller)]).await?.status == 429 {
            return Ok((allowed, Between { before, after: now(stage)? }));
        }
    }
    anyhow::bail!("{caller}: {MOST} requests one after another were allowed")
}
