//! What stands behind Envoy in the demo: a small API, and the page's files.

use std::{
    convert::Infallible,
    net::SocketAddr,
    path::Path,
    pin::Pin,
    task::{self, Poll},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    body::Body,
    extract::Request,
    http::{
        HeaderName, HeaderValue,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tower_http::{services::ServeDir, set_header::SetResponseHeaderLayer};

/// A file whose name holds the digest of its content never changes.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
/// Hexadecimal digits in such a name, at least.
const DIGEST: usize = 8;

/// A server. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves the API under `/api/`, and a folder of files beside it if there is one, on a port of
    /// the system's choice.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(page: Option<&Path>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("no free port")?;
        let address = listener.local_addr()?;
        let app = app(page);
        let task = tokio::spawn(async move {
            // It ends only by being dropped.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { address, task })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn app(page: Option<&Path>) -> Router {
    let api = Router::new().route("/api/hello", get(hello)).route("/api/endless", get(endless));
    let api = api.layer(header(CACHE_CONTROL, NO_STORE));
    let Some(page) = page else { return api };
    let files = Router::new()
        .fallback_service(ServeDir::new(page))
        .layer(middleware::from_fn(cached_by_name))
        .layer(header(CONTENT_SECURITY_POLICY, HeaderValue::from_static("frame-ancestors 'none'")))
        .layer(header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")));
    api.merge(files)
}

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

fn header(name: HeaderName, value: HeaderValue) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::overriding(name, value)
}

async fn hello() -> Json<Value> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Json(json!({ "message": "Over the weir.", "time": now.as_secs() }))
}

/// Answers with headers at once and with a body that never comes: the request lasts until its
/// client leaves.
async fn endless() -> Body {
    Body::new(Endless)
}

struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut task::Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        // Nobody has to be woken: what ends the body drops it.
        Poll::Pending
    }
}

async fn cached_by_name(request: Request, next: Next) -> Response {
    let forever = has_digest(request.uri().path());
    let mut response = next.run(request).await;
    let value = if forever && response.status().is_success() { FOREVER } else { ASK_AGAIN };
    response.headers_mut().insert(CACHE_CONTROL, value);
    response
}

/// Whether a file's name holds a digest: `weir-0a1b2c3d4e.wasm`, `weir.0a1b2c3d4e.css`.
pub(crate) fn has_digest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let mut parts = name.split(['-', '.', '_']).skip(1);
    parts.any(|part| part.len() >= DIGEST && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::http::{self, Answer};

    async fn ask(path: &str) -> Answer {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("index.html"), "<!doctype html>").unwrap();
        fs::write(folder.path().join("weir-0123456789abcdef.wasm"), "\0asm").unwrap();
        fs::write(folder.path().join("weir-0123456789abcdef.js"), "1").unwrap();
        let server = Server::start(Some(folder.path())).await.unwrap();
        http::get(server.address(), path).await.unwrap()
    }

    #[tokio::test]
    async fn the_api_answers_with_json() {
        let answer = ask("/api/hello").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(body["message"].is_string() && body["time"].is_u64(), "{body}");
    }

    #[tokio::test]
    async fn the_page_may_not_be_framed_and_is_asked_for_again() {
        let answer = ask("/").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/html")));
        assert_eq!(answer.header("content-security-policy"), Some("frame-ancestors 'none'"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
    }

    #[tokio::test]
    async fn files_with_a_digest_are_kept_for_good_and_have_their_type() {
        let wasm = ask("/weir-0123456789abcdef.wasm").await;
        assert_eq!(wasm.header("content-type"), Some("application/wasm"));
        assert_eq!(wasm.header("cache-control"), Some("public, max-age=31536000, immutable"));
        let script = ask("/weir-0123456789abcdef.js").await;
        assert_eq!(script.header("content-type"), Some("text/javascript"));
    }

    #[tokio::test]
    async fn what_is_not_there_is_not_kept() {
        let answer = ask("/weir-fedcba9876543210.js").await;
        assert_eq!((answer.status, answer.header("cache-control")), (404, Some("no-cache")));
    }
}
