//! Bounded load from one thread, which takes little of the machine that what is measured needs.
//!
//! Either each connection asks again as soon as it is answered, or requests are due at even
//! distances, whatever became of those before; their time then counts from when they were due, so
//! that one that had to wait for a connection does not look quick.
//!
//! It sends to the own machine only, and never longer than [`LONGEST`].

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest run.
const LONGEST: Duration = Duration::from_secs(60);
/// Most connections at once.
const MOST_CONNECTIONS: usize = 256;
/// How long what is under way at the end may take.
const REST: Duration = Duration::from_secs(5);

/// What to send.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    /// Where to, on this machine. Connections lead to these in turn.
    pub(super) targets: &'a [SocketAddr],
    /// Whole requests, as bytes, that are sent in turn.
    pub(super) requests: &'a [Vec<u8>],
    pub(super) connections: usize,
    pub(super) duration: Duration,
    pub(super) pace: Pace,
}

/// How fast to send.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// Each connection asks again as soon as it is answered.
    Closed,
    /// So many requests a second over all connections.
    PerSecond(u32),
}

/// One request that was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// When it was due, when it was sent, and when its answer was complete.
    pub(super) due: Instant,
    pub(super) sent: Instant,
    pub(super) answered: Instant,
    pub(super) status: u16,
    /// Whether the answer says what is left of a limit, so that a limit was checked.
    pub(super) checked: bool,
}

impl Answer {
    /// From when the request was due.
    pub(super) fn took(&self) -> Duration {
        self.answered.saturating_duration_since(self.due)
    }
}

/// What came of it.
#[derive(Default)]
pub(super) struct Report {
    /// Microseconds from each request to its answer, sorted.
    pub(super) micros: Vec<u64>,
    /// Answers of another status than 200.
    pub(super) other: u64,
    /// From the first request to the last answer.
    pub(super) took: Duration,
}

impl Report {
    /// The time within which so many in a thousand were answered.
    pub(super) fn within(&self, per_mille: usize) -> u64 {
        let place = (self.micros.len() * per_mille).div_ceil(1_000).saturating_sub(1);
        self.micros.get(place).copied().unwrap_or(0)
    }
}

/// Sends what the plan says and returns when all is answered.
pub(super) fn run(plan: &Plan<'_>) -> Result<Report> {
    let mut report = Report::default();
    report.took = each(plan, &mut |answer| {
        let micros = answer.took().as_micros();
        report.micros.push(u64::try_from(micros).unwrap_or(u64::MAX));
        report.other += u64::from(answer.status != 200);
    })?;
    report.micros.sort_unstable();
    Ok(report)
}

/// Sends what the plan says and hands over each answer as it comes. Returns when all is answered,
/// with the time from the first request to the last answer.
pub(super) fn each(plan: &Plan<'_>, take: &mut dyn FnMut(Answer)) -> Result<Duration> {
    ensure!(!plan.targets.is_empty(), "no target");
    for target in plan.targets {
        ensure!(target.ip().is_loopback(), "{target} is not this machine");
    }
    ensure!(plan.duration <= LONGEST, "at most {LONGEST:?}");
    ensure!(plan.connections <= MOST_CONNECTIONS, "at most {MOST_CONNECTIONS} connections");
    let targets = plan.targets.iter().cycle().take(plan.connections);
    let connections: Vec<_> =
        targets.map(|target| Connection::open(*target)).collect::<Result<_>>()?;
    let start = Instant::now();
    let run = Run {
        requests: plan.requests,
        next: 0,
        idle: (0..connections.len()).collect(),
        connections,
        due: start,
        take,
    };
    run.go(plan.pace, start, start + plan.duration)
}

struct Run<'a> {
    requests: &'a [Vec<u8>],
    /// The request that is sent next.
    next: usize,
    connections: Vec<Connection>,
    /// Those that wait for no answer.
    idle: Vec<usize>,
    /// When the next request is due.
    due: Instant,
    take: &'a mut dyn FnMut(Answer),
}

impl Run<'_> {
    fn go(mut self, pace: Pace, start: Instant, end: Instant) -> Result<Duration> {
        loop {
            let now = Instant::now();
            if now < end {
                self.send_due(pace, now)?;
            } else if self.idle.len() == self.connections.len() {
                break;
            } else {
                ensure!(now < end + REST, "some requests are not answered");
            }
            let until = match pace {
                _ if now >= end => end + REST,
                Pace::PerSecond(_) if !self.idle.is_empty() => self.due.min(end),
                _ => end,
            };
            for ready in self.wait(until.saturating_duration_since(now))? {
                self.receive(ready)?;
            }
        }
        Ok(start.elapsed())
    }

    fn send_due(&mut self, pace: Pace, now: Instant) -> Result<()> {
        while let Some(&place) = self.idle.last() {
            let sent = Instant::now();
            let due = match pace {
                Pace::Closed => sent,
                Pace::PerSecond(_) if self.due > now => break,
                Pace::PerSecond(number) => {
                    let due = self.due;
                    self.due += Duration::from_secs(1) / number.max(1);
                    due
                }
            };
            let asked = Asked { due, sent };
            let request = self.requests.get(self.next).context("nothing to send")?;
            self.next = (self.next + 1) % self.requests.len();
            self.connections.get_mut(place).context("a connection")?.send(request, asked)?;
            self.idle.pop();
        }
        Ok(())
    }

    /// The connections on which something has come within a time.
    fn wait(&self, time: Duration) -> Result<Vec<usize>> {
        let waiting = self.connections.iter().enumerate().filter(|(_, one)| one.asked.is_some());
        let (places, mut polled): (Vec<usize>, Vec<PollFd<'_>>) =
            waiting.map(|(place, one)| (place, PollFd::new(&one.stream, PollFlags::IN))).unzip();
        let timeout = Timespec::try_from(time).context("a time to wait")?;
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = places.into_iter().zip(&polled).filter(|(_, one)| !one.revents().is_empty());
        Ok(ready.map(|(place, _)| place).collect())
    }

    fn receive(&mut self, place: usize) -> Result<()> {
        let connection = self.connections.get_mut(place).context("a connection")?;
        let Some(Head { status, checked }) = connection.receive()? else { return Ok(()) };
        let Asked { due, sent } = connection.asked.take().context("an answer to nothing")?;
        let answered = Instant::now();
        (self.take)(Answer { due, sent, answered, status, checked });
        self.idle.push(place);
        Ok(())
    }
}

/// A request under way.
struct Asked {
    due: Instant,
    sent: Instant,
}

/// What the head of an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    checked: bool,
}

/// A connection, with at most one request under way.
struct Connection {
    stream: TcpStream,
    /// What has come of the answer.
    buffer: Vec<u8>,
    asked: Option<Asked>,
}

impl Connection {
    fn open(target: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(target).with_context(|| target.to_string())?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, buffer: Vec::new(), asked: None })
    }

    fn send(&mut self, request: &[u8], asked: Asked) -> Result<()> {
        // A few hundred bytes always find room in the socket's empty buffer.
        self.stream.write_all(request)?;
        self.asked = Some(asked);
        Ok(())
    }

    /// The head, once the answer is complete.
    fn receive(&mut self) -> Result<Option<Head>> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => bail!("a connection was closed"),
            Ok(count) => self.buffer.extend_from_slice(bytes.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let answer = complete(&self.buffer)?;
        if answer.is_some() {
            self.buffer.clear();
        }
        Ok(answer)
    }
}

/// The head of an answer of HTTP/1.1 that states its length, once all of it is there.
fn complete(bytes: &[u8]) -> Result<Option<Head>> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(end) = bytes.windows(END.len()).position(|window| window == END) else {
        return Ok(None);
    };
    let head = std::str::from_utf8(bytes.get(..end).unwrap_or_default())?;
    let status = head.get(9..12).context("no status")?.parse()?;
    let header = |wanted: &str| {
        head.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    };
    let length: usize =
        header("content-length").context("an answer without its length")?.parse()?;
    let checked = header("ratelimit").is_some();
    Ok((bytes.len() >= end + END.len() + length).then_some(Head { status, checked }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::Server;

    fn plan<'a>(targets: &'a [SocketAddr], requests: &'a [Vec<u8>]) -> Plan<'a> {
        let duration = Duration::from_millis(100);
        Plan { targets, requests, connections: 4, duration, pace: Pace::Closed }
    }

    fn request() -> Vec<Vec<u8>> {
        vec![b"GET /api/hello HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()]
    }

    /// The load is on a thread of its own, the server on the test's.
    async fn send(requests: Vec<Vec<u8>>, pace: Pace) -> Report {
        let server = Server::start(None).await.unwrap();
        let targets = [server.address()];
        let sent =
            tokio::task::spawn_blocking(move || run(&Plan { pace, ..plan(&targets, &requests) }));
        sent.await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn connections_ask_again_until_the_time_is_over() {
        let report = send(request(), Pace::Closed).await;
        assert!(report.micros.len() > 4, "{}", report.micros.len());
        assert!(report.took >= Duration::from_millis(100));
        assert_eq!(report.other, 0);
    }

    #[tokio::test]
    async fn a_pace_is_kept() {
        let report = send(request(), Pace::PerSecond(200)).await;
        assert_eq!(report.micros.len(), 20);
    }

    #[tokio::test]
    async fn other_answers_are_counted() {
        let request = vec![b"GET /api/none HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()];
        let report = send(request, Pace::Closed).await;
        assert_eq!(report.other, report.micros.len() as u64);
    }

    #[test]
    fn other_machines_and_unbounded_plans_are_refused() {
        let requests = request();
        let targets = ["127.0.0.1:1".parse().unwrap()];
        let here = plan(&targets, &requests);
        assert!(run(&Plan { targets: &["192.0.2.1:80".parse().unwrap()], ..here }).is_err());
        assert!(run(&Plan { targets: &[], ..here }).is_err());
        assert!(run(&Plan { duration: LONGEST * 2, ..here }).is_err());
        assert!(run(&Plan { connections: MOST_CONNECTIONS + 1, ..here }).is_err());
    }

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        let answer = b"HTTP/1.1 429 Too Many\r\nContent-Length: 2\r\n\r\nab";
        for end in 0..answer.len() {
            assert_eq!(complete(&answer[..end]).unwrap(), None);
        }
        assert_eq!(complete(answer).unwrap(), Some(Head { status: 429, checked: false }));
        let checked = b"HTTP/1.1 200 OK\r\nratelimit: \"a\";r=1;t=1\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(complete(checked).unwrap(), Some(Head { status: 200, checked: true }));
        assert!(complete(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn a_percentile_is_the_least_that_so_many_do_not_exceed() {
        let report = Report { micros: (1..=100).collect(), ..Report::default() };
        assert_eq!((report.within(500), report.within(990), report.within(1_000)), (50, 99, 100));
        assert_eq!(Report::default().within(500), 0);
    }
}
