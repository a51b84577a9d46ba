//! A TCP link to a server that can be cut, delayed and frozen while connections are open.

mod carry;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// How a connection ends when its link is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// By RST: both sides see an error.
    Reset,
    /// By FIN: both sides see an orderly end. A side whose bytes were not all read sees an error.
    Close,
}

/// A link: whoever connects to its address is connected to its target. It ends when the value is
/// dropped.
pub struct Link {
    address: SocketAddr,
    shared: Arc<Shared>,
    gate: Gate,
}

/// Whether connections are accepted.
enum Gate {
    Open(JoinHandle<()>),
    /// The port is kept, so that it can be opened again, but nobody listens there.
    Shut(TcpSocket),
    /// The port was lost.
    Lost,
}

struct Shared {
    controls: watch::Sender<Controls>,
    opened: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// What holds for all connections. Each has a number, counted from 0.
#[derive(Clone, Copy, Debug)]
struct Controls {
    /// Where connections lead that are made from now on.
    target: SocketAddr,
    /// What came from now on is carried this much later.
    delay: Duration,
    /// Connections with a smaller number are frozen.
    frozen_below: u64,
    /// Connections with a smaller number are over.
    ended_below: u64,
    cut: Option<Cut>,
}

impl Controls {
    const fn new(target: SocketAddr) -> Self {
        Self { target, delay: Duration::ZERO, frozen_below: 0, ended_below: 0, cut: None }
    }

    /// How a connection is to end now, if it is.
    fn ends(&self, number: u64) -> Option<Cut> {
        self.cut.or((number < self.ended_below).then_some(Cut::Reset))
    }
}

impl Link {
    /// A link to a server, which need not run yet.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            controls: watch::Sender::new(Controls::new(target)),
            opened: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        let gate = Gate::Open(tokio::spawn(accept(listener, Arc::clone(&shared))));
        Ok(Self { address, shared, gate })
    }

    /// Where to connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and refuses new ones until [`Link::heal`]. Both have been done when it
    /// returns.
    ///
    /// # Errors
    /// When the port cannot be kept.
    pub async fn cut(&mut self, how: Cut) -> Result<()> {
        self.shared.controls.send_modify(|controls| controls.cut = Some(how));
        if let Gate::Open(task) = std::mem::replace(&mut self.gate, Gate::Lost) {
            // It ends with the last of its connections.
            task.await.context("the link has failed")?;
        }
        let socket = socket(self.address).context("the port of the link is lost")?;
        self.gate = Gate::Shut(socket);
        Ok(())
    }

    /// Undoes [`Link::cut`], [`Link::freeze`] and [`Link::freeze_existing`]. What was held back is
    /// carried on. A delay stays.
    ///
    /// # Errors
    /// When the port was lost.
    pub fn heal(&mut self) -> Result<()> {
        self.shared.controls.send_modify(|controls| {
            controls.cut = None;
            controls.frozen_below = 0;
        });
        if matches!(self.gate, Gate::Open(_)) {
            return Ok(());
        }
        let kept = std::mem::replace(&mut self.gate, Gate::Lost);
        let socket = if let Gate::Shut(socket) = kept { socket } else { socket(self.address)? };
        let listener = socket.listen(BACKLOG)?;
        self.gate = Gate::Open(tokio::spawn(accept(listener, Arc::clone(&self.shared))));
        Ok(())
    }

    /// Leads to another server from now on. Connections that there are end by RST; new ones are
    /// accepted all the while.
    pub fn lead_to(&self, target: SocketAddr) {
        self.shared.controls.send_modify(|controls| {
            controls.target = target;
            controls.ended_below = self.connections();
        });
    }

    /// Delays what comes from now on, in each direction: one chunk does not wait for another, so
    /// the throughput stays. Zero ends it.
    pub fn delay(&self, delay: Duration) {
        self.shared.controls.send_modify(|controls| controls.delay = delay);
    }

    /// Lets nothing through, on old connections and new ones, which are still accepted: neither
    /// bytes nor the ends of connections.
    pub fn freeze(&self) {
        self.shared.controls.send_modify(|controls| controls.frozen_below = u64::MAX);
    }

    /// The same for the connections that have been accepted so far. Later ones work.
    pub fn freeze_existing(&self) {
        let opened = self.connections();
        self.shared.controls.send_modify(|controls| controls.frozen_below = opened);
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.opened.load(Ordering::SeqCst)
    }

    /// Bytes carried to the target so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::SeqCst)
    }

    /// Bytes carried from the target so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.shared.received.load(Ordering::SeqCst)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Gate::Open(task) = &self.gate {
            task.abort();
        }
    }
}

/// A socket that has the port but does not listen. Old connections may still be ending there.
fn socket(address: SocketAddr) -> Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Accepts connections until the link is cut, and ends when all of them have.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut controls = shared.controls.subscribe();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = controls.wait_for(|controls| controls.cut.is_some()) => break,
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                let number = shared.opened.fetch_add(1, Ordering::SeqCst);
                connections.spawn(carry::carry(client, number, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, time::Instant};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::timeout,
    };

    use super::*;
    use crate::eventually::reached;

    /// How long a test waits for what must not come.
    const SHORT: Duration = Duration::from_millis(50);

    /// How long something may take that does come.
    const LONG: Duration = Duration::from_secs(20);

    /// A link to a server that sends back what it gets. The server ends with the test's runtime.
    async fn echo() -> Link {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let link = Link::start(listener.local_addr().unwrap()).await.unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        link
    }

    async fn connect(link: &Link) -> TcpStream {
        TcpStream::connect(link.address()).await.unwrap()
    }

    /// Waits for one byte: `None` is the end of the connection.
    async fn byte(stream: &mut TcpStream) -> Result<Option<u8>, ErrorKind> {
        let mut byte = [0];
        match timeout(LONG, stream.read(&mut byte)).await.unwrap() {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(byte[0])),
            Err(error) => Err(error.kind()),
        }
    }

    async fn echoed(stream: &mut TcpStream, sent: u8) -> bool {
        stream.write_all(&[sent]).await.unwrap();
        byte(stream).await == Ok(Some(sent))
    }

    async fn is_silent(stream: &mut TcpStream) -> bool {
        timeout(SHORT, byte(stream)).await.is_err()
    }

    #[tokio::test]
    async fn it_carries_and_counts() {
        let link = echo().await;
        let (mut one, mut other) = (connect(&link).await, connect(&link).await);
        assert!(echoed(&mut one, 1).await && echoed(&mut other, 2).await);
        assert!(echoed(&mut one, 3).await);
        assert_eq!((link.connections(), link.sent(), link.received()), (2, 3, 3));
        one.shutdown().await.unwrap();
        assert_eq!(byte(&mut one).await, Ok(None));
    }

    #[tokio::test]
    async fn much_comes_through_whole() {
        let link = echo().await;
        let bytes: Vec<u8> = (0..5_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
        let (mut from, mut to) = connect(&link).await.into_split();
        let sent = bytes.clone();
        tokio::spawn(async move {
            to.write_all(&sent).await.unwrap();
            to.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        timeout(LONG, from.read_to_end(&mut received)).await.unwrap().unwrap();
        assert!(received == bytes);
    }

    #[tokio::test]
    async fn a_cut_ends_connections_and_refuses_new_ones() {
        for (how, seen) in [(Cut::Reset, Err(ErrorKind::ConnectionReset)), (Cut::Close, Ok(None))] {
            let mut link = echo().await;
            let mut stream = connect(&link).await;
            assert!(echoed(&mut stream, 1).await);
            link.cut(how).await.unwrap();
            link.cut(how).await.unwrap();
            assert_eq!(byte(&mut stream).await, seen);
            let refused = TcpStream::connect(link.address()).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            link.heal().unwrap();
            assert!(echoed(&mut connect(&link).await, 2).await);
        }
    }

    #[tokio::test]
    async fn it_leads_elsewhere_and_ends_what_led_to_the_old_server() {
        let (link, other) = (echo().await, echo().await);
        let mut old = connect(&link).await;
        assert!(echoed(&mut old, 1).await);
        link.lead_to(other.address());
        assert_eq!(byte(&mut old).await, Err(ErrorKind::ConnectionReset));
        assert!(echoed(&mut connect(&link).await, 2).await);
        assert_eq!((link.connections(), other.connections()), (2, 1));
    }

    #[tokio::test]
    async fn a_frozen_one_holds_back_all_until_it_is_healed() {
        let mut link = echo().await;
        let mut old = connect(&link).await;
        assert!(echoed(&mut old, 1).await);
        link.freeze();
        let mut fresh = connect(&link).await;
        old.write_all(&[2]).await.unwrap();
        fresh.write_all(&[3]).await.unwrap();
        fresh.shutdown().await.unwrap();
        assert!(is_silent(&mut old).await && is_silent(&mut fresh).await);
        assert_eq!((link.connections(), link.sent()), (2, 1));
        link.heal().unwrap();
        assert_eq!(byte(&mut old).await, Ok(Some(2)));
        assert_eq!(byte(&mut fresh).await, Ok(Some(3)));
        assert_eq!(byte(&mut fresh).await, Ok(None));
    }

    #[tokio::test]
    async fn old_connections_can_be_frozen_alone() {
        let link = echo().await;
        let mut old = connect(&link).await;
        assert!(echoed(&mut old, 1).await);
        link.freeze_existing();
        assert!(echoed(&mut connect(&link).await, 2).await);
        old.write_all(&[3]).await.unwrap();
        assert!(is_silent(&mut old).await);
    }

    #[tokio::test]
    async fn a_frozen_one_can_be_cut() {
        let mut link = echo().await;
        link.freeze();
        let mut stream = connect(&link).await;
        stream.write_all(&[1]).await.unwrap();
        assert!(is_silent(&mut stream).await);
        timeout(LONG, link.cut(Cut::Close)).await.unwrap().unwrap();
        assert!(!matches!(byte(&mut stream).await, Ok(Some(_))));
    }

    #[tokio::test]
    async fn no_chunk_waits_for_the_delay_of_another() {
        const DELAY: Duration = Duration::from_millis(500);
        const APART: Duration = Duration::from_millis(25);
        let link = echo().await;
        let mut stream = connect(&link).await;
        assert!(echoed(&mut stream, 0).await);
        link.delay(DELAY);
        let (mut from, mut to) = stream.into_split();
        let sending = tokio::spawn(async move {
            let mut times = Vec::new();
            for number in 0..8 {
                times.push(Instant::now());
                to.write_all(&[number]).await.unwrap();
                reached(Instant::now() + APART).await;
            }
            times
        });
        let mut times = Vec::new();
        for number in 0..8 {
            assert_eq!(timeout(LONG, from.read_u8()).await.unwrap().unwrap(), number);
            times.push(Instant::now());
        }
        // There and back: less than a half of a delay more than the two.
        for (sent, received) in sending.await.unwrap().into_iter().zip(times) {
            let took = received - sent;
            assert!(took >= 2 * DELAY && took < 2 * DELAY + DELAY / 2, "{took:?}");
        }
    }

    #[tokio::test]
    async fn a_delay_has_an_end() {
        let link = echo().await;
        let mut stream = connect(&link).await;
        link.delay(LONG);
        stream.write_all(&[1]).await.unwrap();
        assert!(is_silent(&mut stream).await);
        link.delay(Duration::ZERO);
        assert!(echoed(&mut connect(&link).await, 2).await);
    }

    #[tokio::test]
    async fn a_target_that_is_not_there_is_a_reset() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let link = Link::start(listener.local_addr().unwrap()).await.unwrap();
        drop(listener);
        let mut stream = connect(&link).await;
        assert_eq!(byte(&mut stream).await, Err(ErrorKind::ConnectionReset));
    }

    #[tokio::test]
    async fn it_ends_with_its_value() {
        let link = echo().await;
        let mut stream = connect(&link).await;
        assert!(echoed(&mut stream, 1).await);
        let address = link.address();
        drop(link);
        assert!(!matches!(byte(&mut stream).await, Ok(Some(_))));
        assert!(TcpStream::connect(address).await.is_err());
    }
}
