//! The corpus of decisions through the filter's whole path, on the fake host.

mod support;

use support::{Request, configured, send, status};
use weir_core::{response::Answer, units::Instant};
use weir_filter::host::fake::FakeHost;
use weir_vectors::{Case, Outcome, Seen, Wait};

/// Algorithms that the filter refuses by name.
const NOT_HERE: [&str; 2] = ["leaky-bucket", "concurrency"];

fn differences(case: &Case) -> anyhow::Result<Vec<String>> {
    let host = FakeHost::default();
    let plugins: Vec<_> = case.policies().iter().map(|text| configured(&host, text)).collect();
    case.differences(|arrival| {
        host.set_now(Instant::from_micros(arrival.now));
        let priority: &[u8] = if arrival.critical { b"critical" } else { b"" };
        let facts: [(&str, &[u8]); 2] =
            [("x-api-key", arrival.key.as_bytes()), ("x-priority", priority)];
        Ok(seen(&send(&plugins[arrival.phase], &host, &Request(&facts))))
    })
}

fn seen(answer: &Answer) -> Seen {
    let retry_after = match answer {
        Answer::Pass { .. } => None,
        Answer::Reply(reply) => {
            let wait = reply.headers.iter().find(|(name, _)| *name == "retry-after");
            wait.map(|(_, seconds)| Wait::Seconds(seconds.parse().expect("seconds")))
        }
    };
    let outcome = match (status(answer), retry_after) {
        (200, _) => Outcome::Allowed,
        (_, Some(_)) => Outcome::Refused,
        (_, None) => Outcome::Never,
    };
    Seen { outcome, remaining: None, retry_after }
}

#[test]
fn the_filter_decides_as_the_corpus_says() {
    let mut cases = weir_vectors::corpus().unwrap();
    cases.retain(|case| !case.algorithms().iter().any(|name| NOT_HERE.contains(name)));
    assert!(cases.len() >= 190);
    let differences: Vec<_> = cases.iter().flat_map(|case| differences(case).unwrap()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
