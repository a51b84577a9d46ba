//! One HTTP/1.1 connection, kept open, that sends headers of any bytes.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Method, Request,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    header::{CONNECTION, HOST, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};

/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// An answer, complete.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Answer {
    /// A header, if it is there once at least and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the other side closes the connection after this answer.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.header(CONNECTION.as_str()).is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A request whose answer has begun and not ended. Dropping it closes the connection.
pub struct Held {
    /// What has come: a status and headers, and no body.
    pub answer: Answer,
    _body: Incoming,
    client: Client,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Else it would wait for the rest of the body.
        self.client.connection.abort();
    }
}

/// A connection.
pub struct Client {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
    /// Ends with the sender.
    connection: JoinHandle<()>,
}

impl Client {
    /// Opens a connection.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let connecting = timeout(DEADLINE, TcpStream::connect(address));
        let stream = connecting.await?.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(async move {
            // A request that it breaks off tells so itself.
            let _ = connection.await;
        });
        Ok(Self { address, sender, connection })
    }

    /// Sends a GET and waits for the whole answer. A value may hold any byte that HTTP allows in a
    /// header, 0x80 to 0xff among them.
    ///
    /// # Errors
    /// When the connection breaks, or no answer comes in time.
    pub async fn get(&mut self, path: &str, headers: &[(&str, &[u8])]) -> Result<Answer> {
        self.send(Method::GET, path, headers, Bytes::new()).await
    }

    /// Sends a POST and waits for the whole answer.
    ///
    /// # Errors
    /// When the connection breaks, or no answer comes in time.
    pub async fn post(
        &mut self,
        path: &str,
        headers: &[(&str, &[u8])],
        body: impl Into<Bytes>,
    ) -> Result<Answer> {
        self.send(Method::POST, path, headers, body.into()).await
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &[u8])],
        body: Bytes,
    ) -> Result<Answer> {
        let answer = async {
            let (head, body) = self.begin(method, path, headers, body).await?;
            anyhow::Ok(Answer { body: body.collect().await?.to_bytes(), ..head })
        };
        let waited = timeout(DEADLINE, answer).await;
        waited.with_context(|| format!("{path}: no answer in {DEADLINE:?}"))?
    }

    /// Sends a GET and waits for the headers of the answer.
    ///
    /// # Errors
    /// When the connection breaks, or no answer comes in time.
    pub async fn hold(mut self, path: &str, headers: &[(&str, &[u8])]) -> Result<Held> {
        let begun = timeout(DEADLINE, self.begin(Method::GET, path, headers, Bytes::new())).await;
        let (answer, body) =
            begun.with_context(|| format!("{path}: no answer in {DEADLINE:?}"))??;
        Ok(Held { answer, _body: body, client: self })
    }

    async fn begin(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &[u8])],
        body: Bytes,
    ) -> Result<(Answer, Incoming)> {
        let mut request =
            Request::builder().method(method).uri(path).header(HOST, self.address.to_string());
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes())?;
            request = request.header(name, HeaderValue::from_bytes(value)?);
        }
        let request = request.body(Full::new(body))?;
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        let (status, headers) = (head.status.as_u16(), head.headers);
        Ok((Answer { status, headers, body: Bytes::new() }, body))
    }
}

/// Sends one GET over a connection of its own.
///
/// # Errors
/// As [`Client::connect`] and [`Client::get`].
pub async fn get(address: SocketAddr, path: &str) -> Result<Answer> {
    Client::connect(address).await?.get(path, &[]).await
}

/// Sends one POST over a connection of its own.
///
/// # Errors
/// As [`Client::connect`] and [`Client::post`].
pub async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &[u8])],
    body: impl Into<Bytes>,
) -> Result<Answer> {
    Client::connect(address).await?.post(path, headers, body).await
}

/// Sends bytes as they are, whatever they are, and returns all that comes back until the other
/// side closes or the time is over.
///
/// # Errors
/// When nobody listens there.
pub async fn raw(address: SocketAddr, bytes: &[u8], within: Duration) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let mut answer = Vec::new();
    let exchange = async {
        stream.write_all(bytes).await?;
        stream.read_to_end(&mut answer).await
    };
    // A reset or the end of the time is an answer too: what has come so far.
    let _ = timeout(within, exchange).await;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Answers each connection once with `answer`, and returns what the first one sent.
    async fn serve_once(answer: &'static str) -> (SocketAddr, JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let sent = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut sent = Vec::new();
            while !sent.ends_with(b"\r\n\r\n") {
                sent.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            sent
        });
        (address, sent)
    }

    #[tokio::test]
    async fn header_bytes_arrive_as_they_are() {
        let (address, sent) = serve_once("HTTP/1.1 204 No Content\r\nx-b: c\r\n\r\n").await;
        let mut client = Client::connect(address).await.unwrap();
        let answer = client.get("/path", &[("x-a", b"b\xff\x80")]).await.unwrap();
        assert_eq!((answer.status, answer.header("x-b")), (204, Some("c")));
        let sent = sent.await.unwrap();
        assert!(sent.starts_with(b"GET /path HTTP/1.1\r\n"));
        assert!(sent.windows(8).any(|window| window == b"x-a: b\xff\x80"), "{sent:?}");
    }

    #[tokio::test]
    async fn a_body_has_its_length() {
        let (address, sent) = serve_once("HTTP/1.1 204 No Content\r\n\r\n").await;
        post(address, "/path", &[], "b\r\n\r\n").await.unwrap();
        let sent = String::from_utf8(sent.await.unwrap()).unwrap();
        assert!(sent.starts_with("POST /path HTTP/1.1\r\n"));
        assert!(sent.contains("content-length: 5\r\n"), "{sent}");
    }

    #[tokio::test]
    async fn raw_bytes_are_sent_and_answered() {
        let (address, sent) = serve_once("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let answer = raw(address, b"\x00\xff\r\n\r\n", DEADLINE).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 400"));
        assert_eq!(sent.await.unwrap(), b"\x00\xff\r\n\r\n");
    }

    #[tokio::test]
    async fn a_broken_connection_is_an_error() {
        let (address, _) = serve_once("nonsense").await;
        assert!(get(address, "/").await.is_err());
    }
}
