//! What a policy can say beyond one limit by header, as the real Envoy enforces it.

mod support;

use anyhow::Result;
use support::{Running, start_local};
use weir_lab::http::{Answer, Client};

async fn ask(running: &Running, path: &str, headers: &[(&str, &[u8])]) -> Result<Answer> {
    Client::connect(running.envoy.address("ingress")?).await?.get(path, headers).await
}

/// The statuses of requests with these paths.
async fn statuses<const N: usize>(running: &Running, paths: [&str; N]) -> Result<[u16; N]> {
    let mut statuses = [0; N];
    for (status, path) in statuses.iter_mut().zip(paths) {
        *status = ask(running, path, &[]).await?.status;
    }
    Ok(statuses)
}

#[tokio::test]
async fn all_limits_must_allow_and_a_refused_request_is_charged_to_none() -> Result<()> {
    let running = start_local(
        r#"{"limits":[
            {"name":"per-query","key":["query:user"],"rate":"1/hour","burst":2},
            {"name":"all","rate":"1/hour","burst":3}]}"#,
        2,
    )
    .await?;
    let (a, b) = ("/api/hello?user=a", "/api/hello?user=b");
    assert_eq!(statuses(&running, [a, a, a, a, a]).await?, [200, 200, 429, 429, 429]);
    assert_eq!(statuses(&running, [b, b]).await?, [200, 429]);
    let refused = ask(&running, b, &[]).await?;
    assert!(refused.text().contains("\"violated-policies\":[\"all\"]"), "{}", refused.text());
    Ok(())
}

#[tokio::test]
async fn keys_come_from_what_envoy_knows_of_a_request() -> Result<()> {
    for (key, same, other) in [
        ("client-ip", "/api/1", None),
        ("route", "/api/1", None),
        ("method", "/api/1", None),
        ("host", "/api/1", None),
        ("path", "/api/0?x=1", Some("/api/1")),
        ("query:user", "/api/0?user=%41&y=2", Some("/api/0?user=B")),
    ] {
        let policy = format!(
            r#"{{"limits":[{{"name":"a","key":["{key}"],"missing_key":"deny","rate":"1/hour","burst":1}}]}}"#,
        );
        let running = start_local(&policy, 1).await?;
        let first = if key == "query:user" { "/api/0?user=A" } else { "/api/0" };
        let seen = statuses(&running, [first, same]).await?;
        assert_eq!((seen[0] == 429, seen[1]), (false, 429), "{key}: {seen:?}");
        assert_ne!(seen[0], 403, "{key} is missing");
        if let Some(other) = other {
            assert_ne!(statuses(&running, [other]).await?, [429], "{key}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_forged_address_buys_no_fresh_bucket() -> Result<()> {
    // traefik/traefik#7067, #7129: x-forwarded-for as the client wrote it.
    let policy = r#"{"limits":[{"name":"a","key":["client-ip"],"rate":"1/hour","burst":1}]}"#;
    let running = start_local(policy, 1).await?;
    let mut statuses = Vec::new();
    for forged in ["198.51.100.1", "198.51.100.2", "198.51.100.3, 10.0.0.1"] {
        let headers: [(&str, &[u8]); 1] = [("x-forwarded-for", forged.as_bytes())];
        statuses.push(ask(&running, "/api/hello", &headers).await?.status);
    }
    assert_eq!(statuses, [200, 429, 429]);
    Ok(())
}

#[tokio::test]
async fn a_limit_applies_where_it_matches() -> Result<()> {
    let running = start_local(
        r#"{"limits":[{"name":"hello","match":{"path":"/api/hel*","methods":["GET"]},"rate":"0/second"}]}"#,
        1,
    )
    .await?;
    assert_eq!(statuses(&running, ["/api/hello"]).await?, [429]);
    assert_ne!(statuses(&running, ["/api/other"]).await?, [429]);
    // Other spellings of the same path, as the connection manager normalizes them.
    assert_eq!(statuses(&running, ["/api//hello", "/x/../api/hello"]).await?, [429, 429]);
    assert_eq!(statuses(&running, ["/api%2Fhello", "/x/..%2fapi/hello"]).await?, [400, 400]);
    Ok(())
}

#[tokio::test]
async fn shadow_mode_lets_pass_and_counts() -> Result<()> {
    let running =
        start_local(r#"{"limits":[{"name":"a","rate":"0/second","mode":"shadow"}]}"#, 1).await?;
    assert_eq!(statuses(&running, ["/api/hello"; 3]).await?, [200; 3]);
    assert_eq!((running.count("shadow_refused").await?, running.count("refused").await?), (3, 0));
    Ok(())
}

#[tokio::test]
async fn a_share_of_requests_is_enforced() -> Result<()> {
    let running =
        start_local(r#"{"limits":[{"name":"a","rate":"0/second","mode":"50%"}]}"#, 1).await?;
    let refused = statuses(&running, ["/api/hello"; 200]).await?;
    let refused = refused.iter().filter(|status| **status == 429).count();
    // Chance: of 200 at one half, fewer than 50 or more than 150 come once in 10^12 runs.
    assert!((50..=150).contains(&refused), "{refused} of 200");
    Ok(())
}

#[tokio::test]
async fn a_grpc_request_is_refused_as_one() -> Result<()> {
    let running = start_local(r#"{"limits":[{"name":"a","rate":"0/second"}]}"#, 1).await?;
    let answer = ask(&running, "/api/hello", &[("content-type", b"application/grpc")]).await?;
    // Envoy answers a gRPC request with 200 and the status in its trailers-only header.
    assert_eq!((answer.status, answer.header("grpc-status")), (200, Some("8")));
    Ok(())
}

#[tokio::test]
async fn old_and_new_styles_of_headers_are_sent_as_asked() -> Result<()> {
    let running = start_local(
        r#"{"headers":["draft-07","x-ratelimit"],"limits":[{"name":"a","rate":"10/minute"}]}"#,
        1,
    )
    .await?;
    let answer = ask(&running, "/api/hello", &[]).await?;
    assert_eq!(answer.header("ratelimit"), Some("limit=10, remaining=0, reset=6"));
    assert_eq!(answer.header("x-ratelimit-limit"), Some("10"));
    Ok(())
}
