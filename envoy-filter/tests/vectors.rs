//! The corpus of decisions through the filter's whole path, on the fake host.

mod support;

use std::collections::{BTreeMap, VecDeque};
use support::{Request, configured, status};
use weir_core::{response::Answer, units::Instant};
use weir_filter::{
    flow::{self, Permit},
    host::fake::FakeHost,
};
use weir_vectors::{Case, Outcome, Seen, Wait};

fn differences(case: &Case) -> anyhow::Result<Vec<String>> {
    let host = FakeHost::default();
    let plugins: Vec<_> = case.policies().iter().map(|text| configured(&host, text)).collect();
    let mut held = BTreeMap::<String, VecDeque<Vec<Permit>>>::new();
    let mut draw = 0;
    case.differences(|arrival| {
        host.set_now(Instant::from_micros(arrival.now));
        draw += 1;
        host.set_draw(draw);
        let plugin = &plugins[arrival.phase];
        let permits = held.entry(arrival.key.clone()).or_default();
        for _ in 0..arrival.release {
            flow::release(plugin, &permits.pop_front().expect("a permit"), &host, &host);
        }
        let priority: &[u8] = if arrival.critical { b"critical" } else { b"" };
        let facts: [(&str, &[u8]); 2] =
            [("x-api-key", arrival.key.as_bytes()), ("x-priority", priority)];
        let decided = flow::decide(plugin, &Request(&facts), &host, &host);
        if !decided.permits.is_empty() {
            permits.push_back(decided.permits);
        }
        Ok(seen(&decided.answer))
    })
}

fn seen(answer: &Answer) -> Seen {
    let wait = match answer {
        Answer::Pass { delay, .. } => (delay.get() > 0).then(|| Wait::Micros(delay.get())),
        Answer::Reply(reply) => {
            let wait = reply.headers.iter().find(|(name, _)| *name == "retry-after");
            wait.map(|(_, seconds)| Wait::Seconds(seconds.parse().expect("seconds")))
        }
    };
    let outcome = match (status(answer), wait) {
        (200, None) => Outcome::Allowed,
        (200, Some(_)) => Outcome::Delayed,
        (_, Some(_)) => Outcome::Refused,
        (_, None) => Outcome::Never,
    };
    Seen { outcome, remaining: None, retry_after: wait }
}

#[test]
fn the_filter_decides_as_the_corpus_says() {
    let cases = weir_vectors::corpus().unwrap();
    assert!(cases.len() >= 230);
    let differences: Vec<_> = cases.iter().flat_map(|case| differences(case).unwrap()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
