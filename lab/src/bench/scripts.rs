//! What a call of each script costs Redis, in microseconds and in bytes.
//!
//! Each contender in turn, round by round, has Redis for itself: it is filled with callers, each of
//! whom asks twice, and then asked for callers at random. The time is Redis's own account of
//! `EVALSHA`, the memory its account of what it has in use; both are medians over the rounds.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{
    contenders::{self, Contender, Kind},
    cores, float, median, peers,
    pipeline::{Pipeline, Request},
    progress, thousands,
};
use crate::redis::Redis;

/// Callers of one contender are this part of the keys asked for. It is a power of two: Redis's
/// tables double, so they are then as full as with all of them.
const SHARE: u64 = 16;
/// Keys of a quick run, at most.
const QUICK_KEYS: u64 = 100_000;
/// Times that a round is tried in which keys have expired: a minute had its end in it.
const TRIES: u32 = 3;

/// What to run.
pub(super) struct Options<'a> {
    /// The `redis-server` to start.
    pub(super) redis: &'a Path,
    /// Node, for the libraries.
    pub(super) node: &'a Path,
    /// The folder with their `node_modules`.
    pub(super) packages: &'a Path,
    /// The number of callers to measure the memory for; a sixteenth of it for each contender.
    pub(super) keys: u64,
    /// Whether to look only if it works.
    pub(super) quick: bool,
}

/// Measures every contender and prints a table.
///
/// # Errors
/// When something does not work. A slow script is no error.
pub(super) fn run(options: &Options<'_>) -> Result<()> {
    let (rounds, calls) = if options.quick { (2, 5_000) } else { (5, 40_000) };
    let keys = if options.quick { options.keys.min(QUICK_KEYS) } else { options.keys };
    let callers = keys / SHARE;
    ensure!(callers > 0, "at least {SHARE} keys");
    let server = Redis::start(options.redis)?;
    let mut contenders = contenders::weir()?;
    contenders.extend(contenders::others());
    contenders.extend(peers::capture(options.node, options.packages, server.address())?);
    contenders.sort_by_key(|contender| (contender.kind, !contender.ours));
    let mut pipeline = Pipeline::connect(server.address())?;
    println!(
        "redis {}, {} cores; {} callers each, {rounds} rounds of {} calls each, in turn; medians",
        pipeline.version()?,
        cores(),
        thousands(callers),
        thousands(calls),
    );
    let mut results: Vec<Results> = contenders.into_iter().map(Results::new).collect();
    for round in 0..rounds {
        println!("  round {} of {rounds}", round + 1);
        for result in &mut results {
            result.round(&mut pipeline, callers, calls, round)?;
        }
    }
    progress("");
    print(&results);
    Ok(())
}

/// A contender, and what came of each round.
struct Results {
    contender: Contender,
    /// Microseconds of one call.
    micros: Vec<f64>,
    /// Bytes and keys of one caller.
    bytes: Vec<f64>,
    keys: f64,
}

impl Results {
    fn new(contender: Contender) -> Self {
        Self { contender, micros: Vec::new(), bytes: Vec::new(), keys: 0.0 }
    }

    fn round(&mut self, redis: &mut Pipeline, callers: u64, calls: u64, round: u64) -> Result<()> {
        let sha1 = redis.load(&self.contender.text)?;
        for _ in 0..TRIES {
            redis.flush()?;
            let before = redis.memory()?;
            progress(&format!("  filling: {}", self.contender.name));
            for first in [true, false] {
                let requests = (0..callers).map(|caller| Request { caller, first });
                redis.call(&self.contender, &sha1, requests)?;
            }
            let (keys, used) = (redis.keys()?, redis.memory()?.saturating_sub(before));
            progress(&format!("  asking: {}", self.contender.name));
            let (calls_before, micros_before) = redis.spent()?;
            let callers_at_random = (0..calls).map(|call| Request {
                caller: mixed(round * calls + call) % callers,
                first: false,
            });
            redis.call(&self.contender, &sha1, callers_at_random)?;
            let (calls_after, micros_after) = redis.spent()?;
            if redis.keys()? != keys {
                continue;
            }
            let made = calls_after - calls_before;
            ensure!(made == calls, "{made} calls were counted, not {calls}");
            self.micros.push(float(micros_after - micros_before) / float(calls));
            self.bytes.push(float(used) / float(callers));
            self.keys = float(keys) / float(callers);
            return Ok(());
        }
        anyhow::bail!("{}: keys expired in each of {TRIES} tries", self.contender.name)
    }

    fn is_bucket(&self) -> bool {
        self.contender.kind == Kind::Bucket
    }
}

/// A number that looks random (the finaliser of splitmix64).
fn mixed(number: u64) -> u64 {
    let a = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    c ^ (c >> 31)
}

const NAME: usize = 56;

fn print(results: &[Results]) {
    let article = results.iter().find(|result| result.is_bucket() && is_article(result));
    let (micros, bytes) = article
        .map_or((f64::NAN, f64::NAN), |article| (median(&article.micros), median(&article.bytes)));
    println!(
        "\n{:NAME$} {:>8} {:>11} {:>6} {:>8} {:>6} {:>5}",
        "", "µs/call", "least–most", "ratio", "B/caller", "ratio", "keys"
    );
    let mut kind = None;
    for result in results {
        if kind.replace(result.contender.kind) != Some(result.contender.kind) {
            println!("{}", title(result.contender.kind));
        }
        println!("{}", line(result, micros, bytes));
    }
    println!("\nratios are to {}", article.map_or("nothing", |it| it.contender.name.as_str()));
    for (what, numbers) in
        [("µs", Results::micros as fn(&Results) -> f64), ("bytes", Results::bytes)]
    {
        println!("{}", verdict(results, what, numbers));
    }
}

impl Results {
    fn micros(&self) -> f64 {
        median(&self.micros)
    }

    fn bytes(&self) -> f64 {
        median(&self.bytes)
    }
}

fn is_article(result: &Results) -> bool {
    result.contender.name.starts_with("the articles'")
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Bucket => "token buckets",
        Kind::Window => "windows (those with two keys get the second in their second window)",
        Kind::Log => "logs (three to four requests of each caller)",
        Kind::Several => "several limits in one call",
        Kind::Floor => "for comparison",
    }
}

fn line(result: &Results, micros: f64, bytes: f64) -> String {
    let least = result.micros.iter().copied().fold(f64::INFINITY, f64::min);
    let most = result.micros.iter().copied().fold(0.0, f64::max);
    let spread = format!("{least:.2}–{most:.2}");
    let time = result.micros();
    let clock = if result.contender.takes_time() { ", caller's clock" } else { "" };
    let name = format!("{}{clock}", result.contender.name);
    let mut line = format!(
        "  {:width$} {time:>8.2} {spread:>11} {:>6.2}",
        name,
        time / micros,
        width = NAME - 2,
    );
    if result.keys > 0.0 {
        let memory = result.bytes();
        line += &format!(" {memory:>8.0} {:>6.2} {:>5.0}", memory / bytes, result.keys);
    }
    line
}

/// Which token bucket takes least, Weir's fastest or another.
fn verdict(results: &[Results], what: &str, number: impl Fn(&Results) -> f64) -> String {
    let least = |ours: bool| {
        let of_side = results.iter().filter(|it| it.is_bucket() && it.contender.ours == ours);
        of_side.min_by(|a, b| number(a).total_cmp(&number(b)))
    };
    let (Some(ours), Some(theirs)) = (least(true), least(false)) else { return String::new() };
    format!(
        "{what}: Weir's cheapest token bucket {:.2}, the cheapest other {:.2} ({}), ratio {:.2}",
        number(ours),
        number(theirs),
        theirs.contender.name,
        number(ours) / number(theirs),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, kind: Kind, ours: bool, micros: f64) -> Results {
        let mut contender = contenders::others().remove(0);
        (contender.name, contender.kind, contender.ours) = (name.to_owned(), kind, ours);
        Results { contender, micros: vec![micros; 3], bytes: vec![100.0; 3], keys: 1.0 }
    }

    #[test]
    fn a_line_has_the_medians_and_their_ratios() {
        let line = line(&result("a", Kind::Bucket, true, 4.0), 8.0, 200.0);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["a", "4.00", "4.00–4.00", "0.50", "100", "0.50", "1"]);
    }

    #[test]
    fn the_verdict_compares_token_buckets_alone() {
        let results = [
            result("weir", Kind::Bucket, true, 4.0),
            result("slow", Kind::Bucket, false, 8.0),
            result("fast", Kind::Bucket, false, 5.0),
            result("window", Kind::Window, false, 1.0),
        ];
        assert_eq!(
            verdict(&results, "µs", Results::micros),
            "µs: Weir's cheapest token bucket 4.00, the cheapest other 5.00 (fast), ratio 0.80"
        );
    }
}
