//! The corpus of decisions through a real Envoy with the filter, by every way to a store, on a
//! clock that the test sets.

mod support;

use anyhow::{Context, Error, Result};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    time::Duration,
};
use support::{
    stores::{Stack, Way},
    with_test_clock,
};
use weir_lab::{
    eventually::eventually,
    http::{Answer, Client, Held},
    redis::Redis,
};
use weir_vectors::{Arrival, Case, Outcome, Seen, Wait};

/// How long Envoy may take to notice that a client has left.
const LEAVE: Duration = Duration::from_secs(10);

/// Requests that end at a time.
const AT_ONCE: usize = 100;

/// The listener that enforces the policy of a case's phase.
fn listener(case: &Case, phase: usize) -> String {
    format!("{}/{phase}", case.name)
}

/// One Envoy with a listener for every phase of every case. All share one VM and one store, so a
/// later phase finds the buckets of an earlier one, as after a change of the configuration.
async fn start_all(way: Way, cases: &[Case]) -> Result<Stack> {
    let mut config = way.config(&with_test_clock())?;
    way.be_patient(&mut config)?;
    for (number, case) in cases.iter().enumerate() {
        for (phase, text) in case.policies().iter().enumerate() {
            let mut fields: Value = serde_json::from_str(text)?;
            // Buckets of one case are strangers to those of another.
            fields["namespace"] = json!(format!("case-{number}"));
            let policy = way.policy(&mut config, &fields)?;
            config.replicate("ingress", &listener(case, phase))?;
            config.set_policy(&listener(case, phase), &policy)?;
        }
    }
    // The time of a release is that of the worker's last request.
    Stack::start(way, config, 1).await
}

async fn check(way: Way) -> Result<()> {
    let cases = weir_vectors::corpus()?;
    let stack = start_all(way, &cases).await?;
    let (in_flight, others): (Vec<_>, Vec<_>) = cases.iter().partition(|case| holds(case));
    let (stack, others) = (&stack, &others);
    let (mut found, b, c, d) = tokio::try_join!(
        differences(stack, others.iter().step_by(4)),
        differences(stack, others.iter().skip(1).step_by(4)),
        differences(stack, others.iter().skip(2).step_by(4)),
        differences(stack, others.iter().skip(3).step_by(4)),
    )?;
    found.extend([b, c, d].concat());
    // A permit is given back at the time of the worker's last request, so these go alone.
    found.extend(differences(stack, in_flight.iter()).await?);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(stack.running.count("unchecked").await?, 0);
    println!("{way:?}: {} cases agree", cases.len());
    Ok(())
}

async fn differences<'a>(
    stack: &Stack,
    cases: impl Iterator<Item = &'a &'a Case>,
) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    for case in cases {
        let answers = answers(stack, case).await;
        let answers =
            answers.with_context(|| format!("{}\n{}", case.name, stack.running.envoy.log()));
        let mut answers = answers?.into_iter();
        differences.extend(case.differences(|_| answers.next().context("no answer"))?);
    }
    Ok(differences)
}

/// Whether a permit is held as long as its request lasts.
fn holds(case: &Case) -> bool {
    case.algorithms().contains(&"concurrency")
}

#[tokio::test]
async fn envoys_own_store_decides_as_the_corpus_says() -> Result<()> {
    check(Way::Local).await
}

#[tokio::test]
async fn redis_by_the_bridge_decides_as_the_corpus_says() -> Result<()> {
    check(Way::Direct).await
}

#[tokio::test]
async fn redis_by_envoys_own_client_decides_as_the_corpus_says() -> Result<()> {
    check(Way::Proxied).await
}

#[tokio::test]
async fn redis_by_webdis_decides_as_the_corpus_says() -> Result<()> {
    check(Way::Webdis).await
}

#[tokio::test]
async fn redis_by_a_rest_endpoint_decides_as_the_corpus_says() -> Result<()> {
    check(Way::Rest).await
}

/// What Envoy answers to every arrival of a case, in order.
async fn answers(stack: &Stack, case: &Case) -> Result<Vec<Seen>> {
    if holds(case) {
        return answers_in_flight(stack, case).await;
    }
    let mut clients = BTreeMap::new();
    let mut answers = Vec::new();
    for arrival in case.arrivals()? {
        let client = match clients.entry(arrival.phase) {
            Entry::Occupied(client) => client.into_mut(),
            Entry::Vacant(place) => place.insert(connect(stack, case, &arrival).await?),
        };
        let answer = client.get("/api/hello", &Fields::of(&arrival).headers()).await?;
        answers.push(seen(&answer)?);
    }
    Ok(answers)
}

/// The same with requests that last until their permits are given back.
async fn answers_in_flight(stack: &Stack, case: &Case) -> Result<Vec<Seen>> {
    let mut held = BTreeMap::<String, VecDeque<Held>>::new();
    let mut answers = Vec::new();
    for arrival in case.arrivals()? {
        if arrival.release > 0 {
            let requests = held.get_mut(&arrival.key).context("no request is held")?;
            let mut first: Vec<_> = requests.drain(..usize::try_from(arrival.release)?).collect();
            while !first.is_empty() {
                release(stack, first.split_off(first.len().saturating_sub(AT_ONCE))).await?;
            }
        }
        let client = connect(stack, case, &arrival).await?;
        let request = client.hold("/api/endless", &Fields::of(&arrival).headers()).await?;
        let answer = seen(&request.answer)?;
        if answer.outcome == Outcome::Allowed {
            held.entry(arrival.key.clone()).or_default().push_back(request);
        }
        answers.push(answer);
    }
    Ok(answers)
}

/// Ends requests, and waits until their permits have been given back.
async fn release(stack: &Stack, requests: Vec<Held>) -> Result<()> {
    const ACTIVE: &str = "cluster.upstream.upstream_rq_active";
    let active = async || stack.running.envoy.stat(ACTIVE).await?.context(ACTIVE);
    let store = stack.behind.redis.as_ref().map(Redis::client).transpose()?;
    let store =
        store.map(|mut store| Ok::<_, Error>((store.script_calls()?, store))).transpose()?;
    let (before, ended) = (active().await?, u64::try_from(requests.len())?);
    drop(requests);
    eventually("the requests to end", LEAVE, async || {
        Ok((active().await? + ended <= before).then_some(()))
    })
    .await?;
    let Some((calls, mut store)) = store else { return Ok(()) };
    eventually("the permits to be given back", LEAVE, async || {
        Ok((store.script_calls()? >= calls + ended).then_some(()))
    })
    .await
}

async fn connect(stack: &Stack, case: &Case, arrival: &Arrival) -> Result<Client> {
    Client::connect(stack.running.envoy.address(&listener(case, arrival.phase))?).await
}

/// The fields of an arrival's request.
struct Fields<'a> {
    arrival: &'a Arrival,
    now: String,
}

impl<'a> Fields<'a> {
    fn of(arrival: &'a Arrival) -> Self {
        Self { arrival, now: arrival.now.to_string() }
    }

    fn headers(&self) -> [(&str, &[u8]); 3] {
        let priority: &[u8] = if self.arrival.critical { b"critical" } else { b"" };
        [
            ("x-api-key", self.arrival.key.as_bytes()),
            ("x-priority", priority),
            ("x-weir-test-now", self.now.as_bytes()),
        ]
    }
}

fn seen(answer: &Answer) -> Result<Seen> {
    let number = |name| answer.header(name).map(str::parse::<u64>).transpose();
    let delay = number("x-weir-test-delay")?.filter(|delay| *delay > 0).map(Wait::Micros);
    let wait = number("retry-after")?.map(Wait::Seconds).or(delay);
    let outcome = match (answer.status, wait) {
        (200, None) => Outcome::Allowed,
        (200, Some(_)) => Outcome::Delayed,
        (429, Some(_)) => Outcome::Refused,
        (429, None) => Outcome::Never,
        (status, _) => anyhow::bail!("{status}: {}", answer.text()),
    };
    let left = answer.header("ratelimit").and_then(|value| value.split(";r=").nth(1));
    let left = left.and_then(|value| value.split(';').next());
    let left = left.with_context(|| format!("{} says nothing of what is left", answer.status))?;
    Ok(Seen { outcome, remaining: Some(left.parse()?), retry_after: wait })
}
