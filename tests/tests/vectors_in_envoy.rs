//! The corpus of decisions through a real Envoy, with the clock of the test.

mod support;

use anyhow::{Context, Result};
use std::collections::{BTreeMap, btree_map::Entry};
use support::{Running, config, start, with_test_clock};
use weir_lab::http::{Answer, Client};
use weir_vectors::{Arrival, Case, Outcome, Seen, Wait};

/// Algorithms that the filter refuses by name.
const NOT_HERE: [&str; 2] = ["leaky-bucket", "concurrency"];

/// The listener that enforces the policy of a case's phase.
fn listener(case: &Case, phase: usize) -> String {
    format!("{}/{phase}", case.name)
}

/// One Envoy with a listener for every phase of every case. All share one VM and one table, so a
/// later phase finds the buckets of an earlier one, as after a change of the configuration.
async fn start_all(cases: &[Case]) -> Result<Running> {
    let mut config = config("local.yaml", &with_test_clock())?;
    for case in cases {
        for (phase, policy) in case.policies().iter().enumerate() {
            config.replicate("ingress", &listener(case, phase))?;
            config.set_policy(&listener(case, phase), policy)?;
        }
    }
    start(config, 2).await
}

#[tokio::test]
async fn the_proxy_decides_as_the_corpus_says() -> Result<()> {
    let mut cases = weir_vectors::corpus()?;
    cases.retain(|case| !case.algorithms().iter().any(|name| NOT_HERE.contains(name)));
    let running = start_all(&cases).await?;
    let mut differences = Vec::new();
    let mut decisions = 0;
    for case in &cases {
        let mut answers = answers(&running, case).await?.into_iter();
        decisions += answers.len();
        differences.extend(case.differences(|_| answers.next().context("no answer"))?);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(running.count("unchecked").await?, 0);
    println!("{} cases, {decisions} decisions agree", cases.len());
    Ok(())
}

/// What Envoy answers to every arrival of a case, in order.
async fn answers(running: &Running, case: &Case) -> Result<Vec<Seen>> {
    let mut clients = BTreeMap::new();
    let mut answers = Vec::new();
    for arrival in case.arrivals()? {
        let client = match clients.entry(arrival.phase) {
            Entry::Occupied(client) => client.into_mut(),
            Entry::Vacant(place) => {
                let address = running.envoy.address(&listener(case, arrival.phase))?;
                place.insert(Client::connect(address).await?)
            }
        };
        answers.push(seen(&ask(client, &arrival).await?)?);
    }
    Ok(answers)
}

async fn ask(client: &mut Client, arrival: &Arrival) -> Result<Answer> {
    let now = arrival.now.to_string();
    let priority: &[u8] = if arrival.critical { b"critical" } else { b"" };
    let headers: [(&str, &[u8]); 3] = [
        ("x-api-key", arrival.key.as_bytes()),
        ("x-priority", priority),
        ("x-weir-test-now", now.as_bytes()),
    ];
    client.get("/api/hello", &headers).await
}

fn seen(answer: &Answer) -> Result<Seen> {
    let retry_after = answer.header("retry-after").map(str::parse).transpose()?.map(Wait::Seconds);
    let outcome = match (answer.status, retry_after) {
        (200, _) => Outcome::Allowed,
        (429, Some(_)) => Outcome::Refused,
        (429, None) => Outcome::Never,
        (status, _) => anyhow::bail!("{status}: {}", answer.text()),
    };
    let left = answer.header("ratelimit").and_then(|value| value.split(";r=").nth(1));
    let left = left.and_then(|value| value.split(';').next()).context("no remaining")?;
    Ok(Seen { outcome, remaining: Some(left.parse()?), retry_after })
}
