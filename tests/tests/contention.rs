//! One key, all workers at once: the count of the embedded store is exact.

mod support;

use anyhow::Result;
use std::time::Duration;
use support::start_local;
use weir_lab::load::{self, MOST_REQUESTS, Plan};

const RATE: u32 = 200;
/// Two seconds' worth, so that a stalled processor loses no refill.
const BURST: u32 = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn four_workers_on_one_key_allow_what_the_bucket_holds() -> Result<()> {
    let policy = format!(
        r#"{{"limits":[{{"name":"per-key","key":["header:x-api-key"],"rate":"{RATE}/second","burst":{BURST}}}]}}"#,
    );
    let running = start_local(&policy, 4).await?;
    let plan = Plan {
        target: running.envoy.address("ingress")?,
        path: "/api/hello".into(),
        headers: vec![vec![("x-api-key".into(), "alice".into())]],
        connections: 64,
        duration: Duration::from_secs(10),
        requests: MOST_REQUESTS,
    };
    let report = load::run(&plan).await?;

    let allowed = report.count(200);
    assert_eq!(allowed + report.count(429), report.samples.len(), "other statuses");
    assert_eq!(report.unanswered, 0);
    assert_eq!(running.count("unchecked").await?, 0);
    let tokens = |span: Duration| f64::from(BURST) + f64::from(RATE) * span.as_secs_f64();
    let (least, most) = (tokens(report.inner_span()) - 1.0, tokens(report.span()));
    println!("{} sent, {allowed} allowed; {least:.1} to {most:.1} expected", report.samples.len());
    assert!(report.samples.len() >= 10 * allowed, "the limit was not exceeded ten times over");
    assert!(least <= allowed as f64 && allowed as f64 <= most);
    Ok(())
}
