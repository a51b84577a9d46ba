//! Limits as a client and an operator see them.

mod support;

use anyhow::Result;
use support::{Running, start_local};
use weir_lab::http::{Answer, Client};

/// A limit of one token an hour and a burst of 2, so that no refill blurs a count.
fn policy(fields: &str) -> String {
    format!(
        r#"{{"limits":[{{"name":"per-key","key":["header:x-api-key"],"rate":"1/hour","burst":2{fields}}}]}}"#,
    )
}

async fn client(running: &Running) -> Result<Client> {
    Client::connect(running.envoy.address("ingress")?).await
}

async fn ask(client: &mut Client, key: &str) -> Result<Answer> {
    client.get("/api/hello", &[("x-api-key", key.as_bytes())]).await
}

#[tokio::test]
async fn two_keys_do_not_disturb_one_another() -> Result<()> {
    let running = start_local(&policy(""), 2).await?;
    let mut client = client(&running).await?;
    let mut statuses = Vec::new();
    for key in ["alice", "bob", "alice", "bob", "alice", "bob"] {
        statuses.push(ask(&mut client, key).await?.status);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
    assert_eq!((running.count("allowed").await?, running.count("refused").await?), (4, 2));
    Ok(())
}

#[tokio::test]
async fn an_allowed_answer_comes_from_the_upstream_and_says_what_is_left() -> Result<()> {
    let running = start_local(&policy(""), 1).await?;
    let answer = ask(&mut client(&running).await?, "alice").await?;
    assert!(answer.text().contains("message"), "{}", answer.text());
    assert_eq!(answer.header("ratelimit-policy"), Some("\"per-key\";q=1;w=3600"));
    assert_eq!(answer.header("ratelimit"), Some("\"per-key\";r=1;t=3600"));
    assert_eq!(answer.header("retry-after"), None);
    Ok(())
}

#[tokio::test]
async fn a_refused_answer_says_why_and_when_to_come_back() -> Result<()> {
    let running = start_local(&policy(""), 1).await?;
    let mut client = client(&running).await?;
    for _ in 0..2 {
        ask(&mut client, "alice").await?;
    }
    let answer = ask(&mut client, "alice").await?;
    let retry_after: u64 = answer.header("retry-after").unwrap_or_default().parse()?;
    assert!((3590..=3600).contains(&retry_after), "{retry_after}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let problem: serde_json::Value = serde_json::from_slice(&answer.body)?;
    assert_eq!((answer.status, problem["violated-policies"][0].as_str()), (429, Some("per-key")));
    // The answer is the filter's own: its headers stand there once.
    assert_eq!(answer.headers.get_all("ratelimit").iter().count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_request_without_the_key_gets_what_the_limit_says() -> Result<()> {
    for (missing, statuses) in [
        ("share", [200, 200, 429]),
        ("skip", [200, 200, 200]),
        ("unauthorized", [401, 401, 401]),
        ("deny", [403, 403, 403]),
    ] {
        let running = start_local(&policy(&format!(r#","missing_key":"{missing}""#)), 1).await?;
        let mut client = client(&running).await?;
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(client.get("/api/hello", &[]).await?.status);
        }
        assert_eq!(seen, statuses, "{missing}");
        assert_eq!(running.count("missing_key").await?, 3, "{missing}");
        assert_eq!(ask(&mut client, "alice").await?.status, 200, "a request with a key");
    }
    Ok(())
}

#[tokio::test]
async fn a_closed_limit_refuses_everything_and_promises_nothing() -> Result<()> {
    let running = start_local(r#"{"limits":[{"name":"all","rate":"0/second"}]}"#, 1).await?;
    let answer = ask(&mut client(&running).await?, "alice").await?;
    assert_eq!((answer.status, answer.header("retry-after")), (429, None));
    Ok(())
}

#[tokio::test]
async fn the_shipped_module_takes_its_time_from_nobody() -> Result<()> {
    let running = start_local(&policy(""), 1).await?;
    let mut client = client(&running).await?;
    let next_year: &[(&str, &[u8])] =
        &[("x-api-key", b"alice"), ("x-weir-test-now", b"4000000000000000")];
    for expected in [200, 200, 429] {
        assert_eq!(client.get("/api/hello", next_year).await?.status, expected);
    }
    Ok(())
}
