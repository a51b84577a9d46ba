//! What a call of each script costs Redis, in microseconds and in bytes.
//!
//! Each contender in turn, round by round, has Redis for itself: every caller asks once, which makes
//! its keys, and then once more, which is what is measured. The time is Redis's own account of
//! `EVALSHA`, the memory its account of what it has in use; both are medians over the rounds. On a
//! machine that others use too, the times of the least disturbed tenth say more than the medians.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{
    contenders::{self, Contender, Kind},
    float, machine, median, peers,
    pipeline::{Pipeline, Request},
    progress, thousands,
};
use crate::redis::Redis;

/// Callers of one contender are this part of the keys asked for. It is a power of two: Redis's
/// tables double, so they are then as full as with all of them.
const SHARE: u64 = 16;
/// Calls that are timed together: few enough that some parts are not disturbed.
const PART: u64 = 5_000;
/// What the slow scripts' callers are divided by.
const FEWER: u64 = 4;
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
    let rounds = if options.quick { 2 } else { 5 };
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
        "redis {}; {}; {} callers each, all called once more in each of {rounds} rounds, in \
         turn; medians",
        pipeline.version()?,
        machine(),
        thousands(callers),
    );
    let mut results: Vec<Results> = contenders.into_iter().map(Results::new).collect();
    for round in 0..rounds {
        println!("  round {} of {rounds}", round + 1);
        for result in &mut results {
            result.round(&mut pipeline, callers, round)?;
        }
    }
    progress("");
    print(&results);
    Ok(())
}

/// A contender, and what came of each round.
struct Results {
    contender: Contender,
    /// Microseconds of one call, in each part of each round.
    micros: Vec<f64>,
    /// Bytes and keys of one caller.
    bytes: Vec<f64>,
    keys: f64,
}

impl Results {
    fn new(contender: Contender) -> Self {
        Self { contender, micros: Vec::new(), bytes: Vec::new(), keys: 0.0 }
    }

    fn round(&mut self, redis: &mut Pipeline, callers: u64, round: u64) -> Result<()> {
        // The slow ones have fewer, again by a power of two; what keeps nothing needs none before.
        let (callers, fill) = match self.contender.kind {
            Kind::Bucket | Kind::Window => (callers, callers),
            Kind::Log | Kind::Several => (callers.div_ceil(FEWER), callers.div_ceil(FEWER)),
            Kind::Floor => (callers, 0),
        };
        let sha1 = redis.load(&self.contender.text)?;
        for _ in 0..TRIES {
            redis.flush()?;
            let before = redis.memory()?;
            progress(&format!("  filling: {}", self.contender.name));
            let requests = (0..fill).map(|caller| Request { caller, first: true });
            redis.call(&self.contender, &sha1, requests)?;
            let keys = redis.keys()?;
            progress(&format!("  asking: {}", self.contender.name));
            let micros = self.ask(redis, &sha1, round, callers)?;
            if redis.keys()? != keys {
                continue;
            }
            let used = redis.memory()?.saturating_sub(before);
            self.micros.extend(micros);
            self.bytes.push(float(used) / float(callers));
            self.keys = float(keys) / float(callers);
            return Ok(());
        }
        anyhow::bail!("{}: keys expired in each of {TRIES} tries", self.contender.name)
    }

    /// Calls for every caller, and returns what a call took in each of the parts.
    fn ask(&self, redis: &mut Pipeline, sha1: &str, round: u64, callers: u64) -> Result<Vec<f64>> {
        let mut micros = Vec::new();
        let mut begin = 0;
        while begin < callers {
            let end = callers.min(begin + PART);
            let (calls_before, micros_before) = redis.spent()?;
            let requests = (begin..end)
                .map(|call| Request { caller: scattered(call, round, callers), first: false });
            redis.call(&self.contender, sha1, requests)?;
            let (calls_after, micros_after) = redis.spent()?;
            let calls = calls_after - calls_before;
            ensure!(calls == end - begin, "{calls} calls were counted, not {}", end - begin);
            micros.push(float(micros_after - micros_before) / float(calls));
            begin = end;
        }
        Ok(micros)
    }

    fn is_bucket(&self) -> bool {
        self.contender.kind == Kind::Bucket
    }
}

/// Every caller once, each far from the one before, in another order in each round.
fn scattered(call: u64, round: u64, callers: u64) -> u64 {
    /// A prime, so that it divides no number of callers that is tried.
    const STEP: u64 = 2_654_435_761;
    (call + round).wrapping_mul(STEP) % callers
}

const NAME: usize = 60;

fn print(results: &[Results]) {
    let article = results.iter().find(|result| result.is_bucket() && is_article(result));
    println!(
        "\n{:NAME$} {:>8} {:>6} {:>12} {:>6} {:>8} {:>6} {:>5}",
        "", "µs/call", "ratio", "undisturbed", "ratio", "B/caller", "ratio", "keys"
    );
    let mut kind = None;
    for result in results {
        if kind.replace(result.contender.kind) != Some(result.contender.kind) {
            println!("{}", title(result.contender.kind));
        }
        println!("{}", line(result, article.unwrap_or(result)));
    }
    println!("\nratios are to {}", article.map_or("nothing", |it| it.contender.name.as_str()));
    let numbers: [(&str, Number); 3] = [
        ("µs", Results::micros),
        ("undisturbed µs", Results::undisturbed),
        ("bytes", Results::bytes),
    ];
    for (what, number) in numbers {
        println!("{}", verdict(results, what, number));
    }
}

/// A number of a contender.
type Number = fn(&Results) -> f64;

impl Results {
    fn micros(&self) -> f64 {
        median(&self.micros)
    }

    /// What a tenth of the parts does not exceed: the time where nothing else disturbs.
    fn undisturbed(&self) -> f64 {
        let mut sorted = self.micros.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 10).copied().unwrap_or(f64::NAN)
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
        Kind::Log => "logs (a quarter of the callers, with two requests each)",
        Kind::Several => "several limits in one call (a quarter of the callers)",
        Kind::Floor => "for comparison",
    }
}

fn line(result: &Results, article: &Results) -> String {
    let clock = if result.contender.takes_time() { ", caller's clock" } else { "" };
    let name = format!("{}{clock}", result.contender.name);
    let ratio = |number: Number| number(result) / number(article);
    let mut line = format!(
        "  {name:width$} {:>8.2} {:>6.2} {:>12.2} {:>6.2}",
        result.micros(),
        ratio(Results::micros),
        result.undisturbed(),
        ratio(Results::undisturbed),
        width = NAME - 2,
    );
    if result.keys > 0.0 {
        let bytes = ratio(Results::bytes);
        line += &format!(" {:>8.0} {bytes:>6.2} {:>5.0}", result.bytes(), result.keys);
    }
    line
}

/// Which token bucket takes least, Weir's fastest or another.
fn verdict(results: &[Results], what: &str, number: Number) -> String {
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
        let article = result("b", Kind::Bucket, false, 8.0);
        let line = line(&result("a", Kind::Bucket, true, 4.0), &article);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["a", "4.00", "0.50", "4.00", "0.50", "100", "1.00", "1"]);
    }

    #[test]
    fn every_caller_is_called_once_more() {
        let mut seen: Vec<u64> = (0..125).map(|call| scattered(call, 3, 125)).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..125));
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
