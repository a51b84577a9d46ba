//! A server that speaks Upstash's REST protocol before a real Redis, on a free port of 127.0.0.1.
//! What it does is what <https://upstash.com/docs/redis/features/restapi> says, and what Upstash's
//! own client needs. It lacks RESP replies, subscriptions, read-only tokens and commands that block.

mod reply;
mod request;

use std::{net::SocketAddr, sync::Arc};

use anyhow::Result;
use axum::{
    Json, Router,
    body::to_bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header::AUTHORIZATION},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use redis::{
    AsyncConnectionConfig,
    aio::{ConnectionLike as _, MultiplexedConnection},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Mutex, task::JoinHandle};

use self::{
    reply::Strings,
    request::{Command, Request as Asked},
};
use crate::redis::connection_info;

/// The longest body.
const LIMIT: usize = 1024 * 1024;

/// A server. Dropping it stops it.
pub struct Rest {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Rest {
    /// Starts a server before the Redis at an address, for those who know the token. Redis need not
    /// run yet.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(redis: SocketAddr, password: Option<&str>, token: &str) -> Result<Self> {
        let client = redis::Client::open(connection_info(redis, password)?)?;
        let shared = Shared { client, connection: Mutex::default(), token: token.to_owned() };
        let app = Router::new().fallback(respond).with_state(Arc::new(shared));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // It ends only by being dropped.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { address, task })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shared {
    client: redis::Client,
    /// One connection for all, opened anew after it has broken.
    connection: Mutex<Option<MultiplexedConnection>>,
    token: String,
}

/// A request that is turned away, and why.
struct Refusal {
    status: StatusCode,
    error: String,
}

/// The request is wrong, or Redis says so.
fn bad(error: impl Into<String>) -> Refusal {
    Refusal { status: StatusCode::BAD_REQUEST, error: error.into() }
}

async fn respond(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match shared.answer(request).await {
        Ok(body) => Json(body).into_response(),
        Err(Refusal { status, error }) => (status, Json(json!({ "error": error }))).into_response(),
    }
}

impl Shared {
    async fn answer(&self, request: Request) -> Result<Value, Refusal> {
        let (head, body) = request.into_parts();
        if ![Method::GET, Method::HEAD, Method::POST, Method::PUT].contains(&head.method) {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return Err(Refusal { status, error: "ERR method not allowed".to_owned() });
        }
        if !self.is_known(&head.headers, &head.uri) {
            let error = "WRONGPASS invalid or missing auth token".to_owned();
            return Err(Refusal { status: StatusCode::UNAUTHORIZED, error });
        }
        let strings = strings(&head.headers)?;
        let body = to_bytes(body, LIMIT)
            .await
            .map_err(|_| bad(format!("ERR max request size exceeded. Limit: {LIMIT} bytes")))?;
        self.run(&head.uri, &body, strings).await
    }

    fn is_known(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let token = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer ").map(str::to_owned));
        token.or_else(|| request::token(uri)).is_some_and(|token| token == self.token)
    }

    async fn run(&self, uri: &Uri, body: &Bytes, strings: Strings) -> Result<Value, Refusal> {
        match Asked::read(uri, body).map_err(bad)? {
            Asked::One(command) => {
                let reply = self.send(&[command]).await?.into_iter().next().unwrap_or_default();
                let result = strings.result(&reply);
                result.map(|result| json!({ "result": result })).map_err(bad)
            }
            Asked::Pipeline(commands) => Ok(strings.results(&self.send(&commands).await?)),
            Asked::Transaction(commands) => self.transact(commands, strings).await,
        }
    }

    async fn transact(&self, commands: Vec<Command>, strings: Strings) -> Result<Value, Refusal> {
        let word = |word: &str| vec![word.as_bytes().to_vec()];
        let commands = [vec![word("MULTI")], commands, vec![word("EXEC")]].concat();
        match self.send(&commands).await?.pop() {
            Some(redis::Value::Array(replies)) => Ok(strings.results(&replies)),
            Some(redis::Value::ServerError(error)) => Err(bad(reply::text(&error))),
            _ => Err(bad("ERR the transaction has no result")),
        }
    }

    /// The replies to commands that follow one another on the connection.
    async fn send(&self, commands: &[Command]) -> Result<Vec<redis::Value>, Refusal> {
        let mut pipeline = redis::pipe();
        for command in commands {
            let mut words = redis::Cmd::new();
            words.arg(command);
            pipeline.add_command(words);
        }
        let replies = async {
            let mut connection = self.connection().await?;
            connection.req_packed_commands(&pipeline, 0, commands.len()).await
        };
        match replies.await {
            Ok(replies) => Ok(replies),
            Err(error) => {
                *self.connection.lock().await = None;
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Err(Refusal { status, error: format!("ERR no Redis: {error}") })
            }
        }
    }

    async fn connection(&self) -> redis::RedisResult<MultiplexedConnection> {
        let mut connection = self.connection.lock().await;
        if let Some(connection) = &*connection {
            return Ok(connection.clone());
        }
        // While Redis hangs, so does this server: whoever asks has a deadline of his own.
        let config = AsyncConnectionConfig::new();
        let config = config.set_connection_timeout(None).set_response_timeout(None);
        let fresh = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        *connection = Some(fresh.clone());
        Ok(fresh)
    }
}

/// How the strings of the answer are to be written.
fn strings(headers: &HeaderMap) -> Result<Strings, Refusal> {
    let format = headers.get("upstash-response-format");
    if format.is_some_and(|format| format != "json") {
        return Err(bad("ERR this server answers in JSON only"));
    }
    let encoding = headers.get("upstash-encoding");
    let is_base64 = encoding.is_some_and(|encoding| encoding == "base64");
    Ok(if is_base64 { Strings::Base64 } else { Strings::Text })
}
