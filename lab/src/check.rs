//! `demo --check`: real requests through Envoy, and whether each answer is what the policy says.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::{
    assets,
    http::{Answer, Client},
    limit::Limit,
    terminal::Terminal,
};

/// The two keys whose bursts alternate, so that one would be seen to disturb the other.
const KEYS: [&str; 2] = ["alice", "bob"];
/// Requests beyond the burst.
const OVER: u64 = 2;
const API: &str = "/api/hello";

/// Sends two alternating bursts, one request without a key, and fetches the page; prints what was
/// sent and answered.
///
/// # Errors
/// When an answer is not what the policy says; the error names each difference.
pub async fn run(ingress: SocketAddr, limit: &Limit) -> Result<()> {
    let terminal = Terminal::stdout();
    let mut client = Client::connect(ingress).await?;
    let mut faults = Vec::new();
    for burst in bursts(&mut client, limit).await? {
        println!("  {burst}");
        faults.extend(burst.faults(limit));
    }
    let keyless = client.get(API, &[]).await?;
    let expected = limit.status_without_key();
    println!("  {:<8} {:>2} sent   {:>2}×{}", "no key", 1, 1, keyless.status);
    if keyless.status != expected {
        faults.push(format!("without a key: {}, not {expected}", keyless.status));
    }
    match assets::fetch(&mut client).await {
        Ok(sizes) => println!("  {}", page(&sizes)),
        Err(error) => faults.push(format!("the page: {error:#}")),
    }
    if faults.is_empty() {
        println!("{}\n", terminal.good("✓ every answer is what the policy says"));
        return Ok(());
    }
    for fault in &faults {
        println!("  {}", terminal.bad(format!("✗ {fault}")));
    }
    bail!("{} of the answers are not what the policy says", faults.len())
}

/// What was answered to one key.
struct Burst {
    key: &'static str,
    answers: Vec<Answer>,
    /// When its first request was sent.
    first_sent: Option<Instant>,
    /// From then to its last answer.
    took: Duration,
}

async fn bursts(client: &mut Client, limit: &Limit) -> Result<Vec<Burst>> {
    let fresh = |key| Burst { key, answers: Vec::new(), first_sent: None, took: Duration::ZERO };
    let mut bursts: Vec<Burst> = KEYS.into_iter().map(fresh).collect();
    for _ in 0..limit.burst + OVER {
        for burst in &mut bursts {
            let first_sent = *burst.first_sent.get_or_insert_with(Instant::now);
            let header = (limit.header.as_str(), burst.key.as_bytes());
            burst.answers.push(client.get(API, &[header]).await?);
            burst.took = first_sent.elapsed();
        }
    }
    Ok(bursts)
}

impl Burst {
    fn count(&self, status: u16) -> u64 {
        self.answers.iter().map(|answer| u64::from(answer.status == status)).sum()
    }

    fn faults(&self, limit: &Limit) -> Vec<String> {
        let mut faults = Vec::new();
        let sent = self.count(200) + self.count(429);
        let all = limit.burst + OVER;
        if sent != all {
            faults.push(format!("{} of {all} answers are neither 200 nor 429", all - sent));
        }
        let (least, most) = limit.allowed(all, self.took);
        let allowed = self.count(200);
        if allowed < least || allowed > most {
            let Limit { burst, .. } = limit;
            faults.push(format!(
                "{allowed} allowed in {:?}, not {least} to {most} (burst {burst})",
                self.took
            ));
        }
        faults.extend(self.answers.iter().filter_map(|answer| header_fault(answer, limit)));
        faults.into_iter().map(|fault| format!("{}: {fault}", self.key)).collect()
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (allowed, refused) = (self.count(200), self.count(429));
        write!(
            f,
            "{:<8} {:>2} sent   {allowed:>2}×200  {refused:>2}×429",
            self.key,
            self.answers.len()
        )?;
        let waits: Vec<&str> =
            self.answers.iter().filter_map(|answer| answer.header("retry-after")).collect();
        match (waits.iter().min(), waits.iter().max()) {
            (Some(least), Some(most)) if least == most => write!(f, "  retry-after {least}")?,
            (Some(least), Some(most)) => write!(f, "  retry-after {least} to {most}")?,
            _ => {}
        }
        write!(f, "  in {} ms", self.took.as_millis())
    }
}

/// What is wrong with the headers of an answer.
fn header_fault(answer: &Answer, limit: &Limit) -> Option<String> {
    match answer.status {
        200 => {
            let text = answer.header("ratelimit").unwrap_or("none");
            let says = text.split(';').any(|part| part.trim().starts_with("r="));
            (!says).then(|| format!("allowed, but RateLimit is {text}"))
        }
        429 => {
            let text = answer.header("retry-after").unwrap_or("none");
            let most = limit.longest_wait().unwrap_or(u64::MAX);
            let right = text.parse().is_ok_and(|wait: u64| (1..=most).contains(&wait));
            (!right).then(|| format!("refused, but Retry-After is {text}, not 1 to {most}"))
        }
        _ => None,
    }
}

fn page(sizes: &BTreeMap<String, usize>) -> String {
    let files = sizes.len();
    let bytes: usize = sizes.values().sum();
    format!("{:<8} {files:>2} files  {:>2}×200  {} kB", "page", files, bytes / 1000)
}

#[cfg(test)]
mod tests {
    use weir_core::{policy::mode::MissingKey, units::Micros};

    use super::*;

    fn limit() -> Limit {
        Limit {
            name: "per-key".to_owned(),
            header: "x-api-key".to_owned(),
            count: 4,
            window: Micros::SECOND,
            burst: 2,
            missing_key: MissingKey::Share,
        }
    }

    fn answer(status: u16, name: &'static str, value: &'static str) -> Answer {
        let mut headers = hyper::HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        Answer { status, headers, body: bytes::Bytes::new() }
    }

    fn burst(allowed: usize, refused: usize) -> Burst {
        let mut answers = vec![answer(200, "ratelimit", "\"per-key\";r=1;t=1"); allowed];
        answers.extend(vec![answer(429, "retry-after", "1"); refused]);
        Burst { key: "alice", answers, first_sent: None, took: Duration::from_millis(10) }
    }

    #[test]
    fn answers_as_the_policy_says_are_no_fault() {
        assert_eq!(burst(2, 2).faults(&limit()), [""; 0]);
        assert_eq!(
            burst(2, 2).to_string(),
            "alice     4 sent    2×200   2×429  retry-after 1  in 10 ms"
        );
    }

    #[test]
    fn too_many_and_too_few_allowed_are_named() {
        assert_eq!(
            burst(3, 1).faults(&limit()),
            ["alice: 3 allowed in 10ms, not 2 to 2 (burst 2)"]
        );
        assert_eq!(
            burst(1, 3).faults(&limit()),
            ["alice: 1 allowed in 10ms, not 2 to 2 (burst 2)"]
        );
    }

    #[test]
    fn other_answers_and_missing_headers_are_named() {
        let mut burst = burst(2, 1);
        burst.answers.push(answer(503, "a", "b"));
        assert_eq!(burst.faults(&limit()), ["alice: 1 of 4 answers are neither 200 nor 429"]);
        burst.answers.pop();
        burst.answers.push(answer(429, "retry-after", "0"));
        assert_eq!(burst.faults(&limit()), ["alice: refused, but Retry-After is 0, not 1 to 1"]);
        let allowed = answer(200, "a", "b");
        assert_eq!(header_fault(&allowed, &limit()).unwrap(), "allowed, but RateLimit is none");
    }
}
