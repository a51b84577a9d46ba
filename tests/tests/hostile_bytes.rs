//! Bytes that no honest client sends, in every header, while others are served.

mod support;

use anyhow::Result;
use std::{net::SocketAddr, time::Duration};
use support::start_local;
use weir_lab::{
    http,
    load::{self, MOST_REQUESTS, Plan},
};

const POLICY: &str = r#"{"limits":[{"name":"per-key","key":["header:x-api-key","header:user-agent"],"rate":"1000/second"}]}"#;

const HEADERS: [&str; 6] =
    ["x-api-key", "user-agent", "cookie", "x-forwarded-for", "x-weir-test-now", "te"];

/// Values that have broken filters: bytes that are no UTF-8, controls, nothing, and very much.
fn values() -> Vec<Vec<u8>> {
    let single = (1..=255_u8).filter(|byte| !b"\r\n".contains(byte)).map(|byte| vec![b'a', byte]);
    let more = [
        b"".to_vec(),
        b"\xff\xfe\xfd".to_vec(),
        b"\xed\xa0\x80".to_vec(),
        b"\xf4\x90\x80\x80".to_vec(),
        vec![0xff; 40_000],
        vec![b' '; 1_000],
    ];
    single.chain(more).collect()
}

fn request(header: &str, value: &[u8]) -> Vec<u8> {
    let mut request = b"GET /api/hello HTTP/1.1\r\nhost: a\r\nconnection: close\r\n".to_vec();
    request.extend(header.as_bytes());
    request.extend(b": ");
    request.extend(value);
    request.extend(b"\r\n\r\n");
    request
}

/// Sends a request and returns the status of its answer.
async fn status(address: SocketAddr, request: &[u8]) -> Result<String> {
    let answer = http::raw(address, request, Duration::from_secs(10)).await?;
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    Ok(line.split(' ').nth(1).unwrap_or("no answer").to_owned())
}

/// Sends requests, all at once, and returns the statuses in their order. Envoy holds a connection
/// that it has refused open for a second.
async fn statuses(address: SocketAddr, requests: Vec<Vec<u8>>) -> Result<Vec<String>> {
    let send = |request: Vec<u8>| tokio::spawn(async move { status(address, &request).await });
    let mut statuses = Vec::new();
    for sent in requests.into_iter().map(send).collect::<Vec<_>>() {
        statuses.push(sent.await??);
    }
    Ok(statuses)
}

async fn attack(address: SocketAddr) -> Result<usize> {
    let mut sent = 0;
    for header in HEADERS {
        let requests = values().iter().map(|value| request(header, value)).collect();
        for (status, value) in statuses(address, requests).await?.iter().zip(values()) {
            // 400 and 431 are Envoy's own.
            let known = ["200", "429", "400", "431"].contains(&status.as_str());
            assert!(known, "{status}: {header} {value:?}");
            sent += 1;
        }
    }
    Ok(sent)
}

async fn attack_syntax(address: SocketAddr) -> Result<()> {
    for start in
        [&b"GET /\xff\xfe HTTP/1.1\r\n"[..], b"GET / HTTP/1.1\r\n\xff: 1\r\n", b"\x00\x01\x02"]
    {
        let mut request = start.to_vec();
        request.extend(b"host: a\r\nconnection: close\r\n\r\n");
        assert_eq!(status(address, &request).await?, "400", "{start:?}");
    }
    let many: String = (0..80).map(|n| format!("x-api-key: {n}\r\n")).collect();
    let many = format!("GET /api/hello HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{many}\r\n");
    assert_eq!(status(address, many.as_bytes()).await?, "200");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_filter_survives_hostile_bytes_with_others_in_flight() -> Result<()> {
    let running = start_local(POLICY, 2).await?;
    let target = running.envoy.address("ingress")?;
    let others = tokio::spawn(async move {
        load::run(&Plan {
            target,
            path: "/api/hello".into(),
            headers: vec![vec![("x-api-key".into(), "honest".into())]],
            connections: 8,
            duration: Duration::from_secs(5),
            requests: MOST_REQUESTS,
        })
        .await
    });
    let attacks = attack(target).await?;
    attack_syntax(target).await?;
    let others = others.await??;
    println!("{attacks} hostile requests, {} others", others.samples.len());
    assert_eq!(others.unanswered, 0);
    assert_eq!(others.count(200) + others.count(429), others.samples.len());
    assert_eq!(running.count("unchecked").await?, 0);
    running.assert_never_reloaded().await
}
