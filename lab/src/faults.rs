//! A TCP server that misbehaves, for a broken Redis or a broken HTTP server.

use std::{
    future, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Result;
use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// The largest chunk that is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// What the server does on each connection. What it sends, it sends once something has come: a
/// client may take bytes that it has not asked for as a fault of another kind.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It reads, and never answers.
    Silence,
    /// It ends the connection as soon as it is there.
    Close,
    /// It sends this after the first chunk, and then no more.
    Hang(Bytes),
    /// It sends this after the first chunk, and ends the connection in order, by FIN.
    Finish(Bytes),
    /// It sends this after the first chunk, and breaks the connection by RST.
    Reset(Bytes),
    /// It sends this after every chunk.
    Repeat(Bytes),
}

/// A server. It ends, and its connections with it, when the value is dropped.
pub struct Faulty {
    address: SocketAddr,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    chunks: AtomicU64,
}

impl Faulty {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(fault: Fault) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let task = tokio::spawn(accept(listener, fault, Arc::clone(&counts)));
        Ok(Self { address, counts, task })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Chunks that have come so far: at least one for each request that was waited for.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.counts.chunks.load(Ordering::SeqCst)
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, fault: Fault, counts: Arc<Counts>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                counts.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(misbehave(stream, fault.clone(), Arc::clone(&counts)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// An error is the client's end, which ends the connection here too.
async fn misbehave(mut stream: TcpStream, fault: Fault, counts: Arc<Counts>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match fault {
        Fault::Silence => loop {
            chunk(&mut stream, &counts).await?;
        },
        Fault::Close => Ok(()),
        Fault::Hang(bytes) => {
            chunk(&mut stream, &counts).await?;
            stream.write_all(&bytes).await?;
            // What still comes is not read, as by a server that has lost its way.
            future::pending().await
        }
        Fault::Finish(bytes) => {
            chunk(&mut stream, &counts).await?;
            stream.write_all(&bytes).await
        }
        Fault::Reset(bytes) => {
            chunk(&mut stream, &counts).await?;
            stream.write_all(&bytes).await?;
            stream.set_zero_linger()
        }
        Fault::Repeat(bytes) => loop {
            chunk(&mut stream, &counts).await?;
            stream.write_all(&bytes).await?;
        },
    }
}

async fn chunk(stream: &mut TcpStream, counts: &Counts) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    if stream.read(&mut buffer).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    counts.chunks.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, time::Duration};

    use tokio::time::timeout;

    use super::*;

    /// How long a test waits for what must not come.
    const SHORT: Duration = Duration::from_millis(50);

    /// How long something may take that does come.
    const LONG: Duration = Duration::from_secs(20);

    async fn start(fault: Fault) -> (Faulty, TcpStream) {
        let server = Faulty::start(fault).await.unwrap();
        let stream = TcpStream::connect(server.address()).await.unwrap();
        (server, stream)
    }

    async fn ask(stream: &mut TcpStream) {
        stream.write_all(b"ask").await.unwrap();
    }

    async fn expect(stream: &mut TcpStream, bytes: &[u8]) {
        let mut buffer = vec![0; bytes.len()];
        timeout(LONG, stream.read_exact(&mut buffer)).await.unwrap().unwrap();
        assert_eq!(buffer, bytes);
    }

    /// Waits for the end of the connection: how it comes.
    async fn end(stream: &mut TcpStream) -> Result<usize, ErrorKind> {
        let mut buffer = [0];
        timeout(LONG, stream.read(&mut buffer)).await.unwrap().map_err(|error| error.kind())
    }

    async fn is_silent(stream: &mut TcpStream) -> bool {
        timeout(SHORT, end(stream)).await.is_err()
    }

    #[tokio::test]
    async fn silence_goes_on() {
        let (server, mut stream) = start(Fault::Silence).await;
        ask(&mut stream).await;
        assert!(is_silent(&mut stream).await);
        assert_eq!((server.connections(), server.chunks()), (1, 1));
    }

    #[tokio::test]
    async fn a_connection_is_closed_at_once() {
        let (_server, mut stream) = start(Fault::Close).await;
        assert_eq!(end(&mut stream).await, Ok(0));
    }

    #[tokio::test]
    async fn it_sends_and_hangs() {
        let (_server, mut stream) = start(Fault::Hang("half".into())).await;
        assert!(is_silent(&mut stream).await);
        ask(&mut stream).await;
        expect(&mut stream, b"half").await;
        ask(&mut stream).await;
        assert!(is_silent(&mut stream).await);
    }

    #[tokio::test]
    async fn it_sends_and_ends_in_order() {
        let (_server, mut stream) = start(Fault::Finish("half".into())).await;
        ask(&mut stream).await;
        expect(&mut stream, b"half").await;
        assert_eq!(end(&mut stream).await, Ok(0));
    }

    #[tokio::test]
    async fn it_sends_and_resets() {
        let (_server, mut stream) = start(Fault::Reset("half".into())).await;
        ask(&mut stream).await;
        expect(&mut stream, b"half").await;
        assert_eq!(end(&mut stream).await, Err(ErrorKind::ConnectionReset));
    }

    #[tokio::test]
    async fn it_repeats_itself() {
        let (server, mut stream) = start(Fault::Repeat("-ERR\r\n".into())).await;
        for _ in 0..3 {
            ask(&mut stream).await;
            expect(&mut stream, b"-ERR\r\n").await;
        }
        assert!(is_silent(&mut stream).await);
        assert_eq!(server.chunks(), 3);
    }

    #[tokio::test]
    async fn it_ends_with_its_value() {
        let (server, mut stream) = start(Fault::Silence).await;
        ask(&mut stream).await;
        assert!(is_silent(&mut stream).await);
        let address = server.address();
        drop(server);
        assert!(!is_silent(&mut stream).await);
        assert!(TcpStream::connect(address).await.is_err());
    }
}
