//! Bounded load over a fleet: several streams of requests at once, each request sent when it is due,
//! whatever became of those before it.
//!
//! A gateway has some connections. A request that finds all of them busy is sent late and never
//! left out, so that each run asks for exactly as much as its plan says. As in [`crate::load`], the
//! own machine alone is asked, and there are hard limits on how much and how long.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{
    MOST_GATEWAYS,
    report::{Report, Sample},
    spread::Spread,
};
use crate::{
    eventually::reached,
    http::{Answer, Client},
    load::{LONGEST, MOST_CONNECTIONS, MOST_REQUESTS},
};

/// What to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where to, on this machine: at most [`MOST_GATEWAYS`].
    pub gateways: Vec<SocketAddr>,
    /// Connections to each gateway; at most [`MOST_CONNECTIONS`] in all.
    pub connections: usize,
    /// What is sent at the same time; at most [`MOST_REQUESTS`] in all.
    pub streams: Vec<Stream>,
}

/// Requests that are alike.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What they ask for.
    pub path: String,
    /// Their headers.
    pub headers: Vec<(String, String)>,
    /// How they are spread.
    pub spread: Spread,
    /// How many a second.
    pub per_second: u32,
    /// How many in all; they are all due within [`LONGEST`].
    pub requests: usize,
}

/// Sends what the plan says and returns when all is answered.
///
/// # Errors
/// When the plan goes beyond the limits or to another machine, or no connection can be made.
pub async fn run(plan: &Plan) -> Result<Report> {
    let queues = plan.queues()?;
    let mut clients = Vec::new();
    for (gateway, target) in plan.gateways.iter().enumerate() {
        for _ in 0..plan.connections {
            clients.push((gateway, Client::connect(*target).await?));
        }
    }
    let shared = Arc::new(Shared { plan: plan.clone(), queues, start: Instant::now() });
    let start = |(gateway, client)| tokio::spawn(connection(Arc::clone(&shared), gateway, client));
    let connections: Vec<_> = clients.into_iter().map(start).collect();
    let mut report = Report::of(plan.gateways.len());
    for connection in connections {
        report.merge(connection.await??);
    }
    Ok(report)
}

impl Plan {
    /// What each gateway is sent, in the order in which it is due.
    fn queues(&self) -> Result<Vec<Queue>> {
        let gateways = self.gateways.len();
        ensure!(gateways <= MOST_GATEWAYS, "at most {MOST_GATEWAYS} gateways");
        for target in &self.gateways {
            ensure!(target.ip().is_loopback(), "{target} is not this machine");
        }
        let connections = self.connections.saturating_mul(gateways);
        ensure!(connections <= MOST_CONNECTIONS, "at most {MOST_CONNECTIONS} connections");
        ensure!(connections > 0, "no connection");
        let requests =
            self.streams.iter().fold(0, |sum: usize, stream| sum.saturating_add(stream.requests));
        ensure!(requests <= MOST_REQUESTS, "at most {MOST_REQUESTS} requests");
        let mut queues: Vec<Queue> = (0..gateways).map(|_| Queue::default()).collect();
        for (place, stream) in self.streams.iter().enumerate() {
            ensure!(stream.per_second > 0, "a stream of no rate");
            for due in stream.spread.requests(stream.requests, stream.per_second, gateways) {
                ensure!(due.after <= LONGEST, "at most {LONGEST:?}");
                if let Some(queue) = queues.get_mut(due.gateway) {
                    queue.requests.push((due.after, place));
                }
            }
        }
        for queue in &mut queues {
            queue.requests.sort_unstable();
        }
        Ok(queues)
    }
}

/// What the connections have in common.
struct Shared {
    plan: Plan,
    queues: Vec<Queue>,
    start: Instant,
}

/// The requests to one gateway: when each is due, and the place of its stream.
#[derive(Default)]
struct Queue {
    requests: Vec<(Duration, usize)>,
    /// The first that no connection has taken.
    next: AtomicUsize,
}

impl Queue {
    fn take(&self) -> Option<(Duration, usize)> {
        self.requests.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }
}

/// Takes one request after the other of those to its gateway. The requests that are due next are
/// taken by the connections that are free, so none waits for a busy one while another is free.
async fn connection(shared: Arc<Shared>, gateway: usize, mut client: Client) -> Result<Report> {
    let Shared { plan, queues, start } = &*shared;
    let mut report = Report::of(plan.gateways.len());
    let (Some(queue), Some(target)) = (queues.get(gateway), plan.gateways.get(gateway)) else {
        return Ok(report);
    };
    while let Some((after, place)) = queue.take() {
        let Some(stream) = plan.streams.get(place) else { break };
        let headers = stream.headers.iter();
        let headers: Vec<(&str, &[u8])> =
            headers.map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let due = *start + after;
        reached(due).await;
        let sent = Instant::now();
        let answer = client.get(&stream.path, &headers).await;
        let answered = Instant::now();
        if answer.as_ref().map_or(true, Answer::closes) {
            client = Client::connect(*target).await?;
        }
        match answer {
            Ok(Answer { status, headers, .. }) => {
                let told = headers.contains_key("ratelimit");
                let stream = place;
                report.add(Sample { status, told, stream, gateway, due, sent, answered });
            }
            Err(_) => report.unanswered += 1,
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::Server;

    fn stream(path: &str, spread: Spread) -> Stream {
        let headers = vec![("x-api-key".to_owned(), "a".to_owned())];
        Stream { path: path.to_owned(), headers, spread, per_second: 200, requests: 40 }
    }

    fn plan(gateways: &[SocketAddr]) -> Plan {
        let streams = vec![stream("/api/hello", Spread::Even), stream("/api/none", Spread::Bursts)];
        Plan { gateways: gateways.to_vec(), connections: 2, streams }
    }

    #[tokio::test]
    async fn every_request_of_every_stream_is_sent_when_it_is_due() {
        let (one, other) = (Server::start(None).await.unwrap(), Server::start(None).await.unwrap());
        let report = run(&plan(&[one.address(), other.address()])).await.unwrap();
        assert_eq!((report.samples().len(), report.unanswered), (80, 0));
        for (stream, status) in [(0, 200), (1, 404)] {
            let part = report.of_stream(stream);
            assert_eq!(part.samples().len(), 40);
            assert!(part.samples().iter().all(|sample| sample.status == status));
            for gateway in [0, 1] {
                let of = part.samples().iter().filter(|sample| sample.gateway == gateway);
                assert_eq!(of.count(), 20);
            }
        }
        assert!(report.samples().iter().all(|sample| sample.due <= sample.sent));
        let first = report.samples().iter().map(|sample| sample.sent).min().unwrap();
        let last = report.samples().iter().map(|sample| sample.sent).max().unwrap();
        assert!(last - first >= Duration::from_millis(190), "{:?}", last - first);
    }

    #[tokio::test]
    async fn what_finds_no_free_connection_is_sent_late() {
        let server = Server::start(None).await.unwrap();
        let streams = vec![stream("/api/hello", Spread::Bursts)];
        let plan = Plan { gateways: vec![server.address()], connections: 1, streams };
        let report = run(&plan).await.unwrap();
        assert_eq!(report.samples().len(), 40);
        let mut samples = report.samples().to_vec();
        samples.sort_by_key(|sample| sample.sent);
        assert!(samples.windows(2).all(|pair| pair[0].answered <= pair[1].sent));
        assert!(report.most_late() > Duration::ZERO);
    }

    #[tokio::test]
    async fn other_machines_and_unbounded_plans_are_refused() {
        let here: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let with = |stream: Stream| Plan { streams: vec![stream], ..plan(&[here]) };
        let even = || stream("/", Spread::Even);
        for refused in [
            plan(&["192.0.2.1:80".parse().unwrap()]),
            plan(&[here; MOST_GATEWAYS + 1]),
            plan(&[]),
            Plan { connections: MOST_CONNECTIONS + 1, ..plan(&[here]) },
            with(Stream { requests: MOST_REQUESTS + 1, per_second: 100_000, ..even() }),
            with(Stream { requests: 1_000, per_second: 1, ..even() }),
            with(Stream { per_second: 0, ..even() }),
        ] {
            assert!(run(&refused).await.is_err(), "{refused:?}");
        }
    }
}
