//! Bounded load: some connections, each asking again as soon as it is answered, for a time.
//!
//! It is for the parts that the lab itself starts: it sends to the own machine only, and there are
//! hard limits on how much and how long.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tokio::task::JoinHandle;

use crate::{
    eventually::reached,
    http::{Answer, Client},
};

/// Most connections at once.
pub const MOST_CONNECTIONS: usize = 256;
/// Most requests of one run.
pub const MOST_REQUESTS: usize = 2_000_000;
/// Longest run.
pub const LONGEST: Duration = Duration::from_secs(120);

/// What to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where to; on this machine.
    pub target: SocketAddr,
    /// What to ask for.
    pub path: String,
    /// Headers of a request. Requests take these sets in turn.
    pub headers: Vec<Vec<(String, String)>>,
    /// Connections, at most [`MOST_CONNECTIONS`].
    pub connections: usize,
    /// For how long, at most [`LONGEST`].
    pub duration: Duration,
    /// How many in all, at most [`MOST_REQUESTS`].
    pub requests: usize,
}

/// One request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The answer's status.
    pub status: u16,
    /// Whether the answer has the header `ratelimit`, as one that a limit has decided does and one
    /// that went unchecked does not.
    pub told: bool,
    /// Which set of headers was sent.
    pub headers: usize,
    /// When it was sent.
    pub sent: Instant,
    /// When its answer was complete.
    pub answered: Instant,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Every answer, in no order.
    pub samples: Vec<Sample>,
    /// Requests that got none, because the connection broke.
    pub unanswered: usize,
}

impl Report {
    /// How many answers had a status.
    #[must_use]
    pub fn count(&self, status: u16) -> usize {
        self.samples.iter().filter(|sample| sample.status == status).count()
    }

    /// From the first request to the last answer: no decision fell outside it.
    #[must_use]
    pub fn span(&self) -> Duration {
        let first = self.samples.iter().map(|sample| sample.sent).min();
        let last = self.samples.iter().map(|sample| sample.answered).max();
        first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first)
    }

    /// From the first answer to the last request: the first decision fell before it began, the last
    /// one after it ended, so the time between these two was no shorter.
    #[must_use]
    pub fn inner_span(&self) -> Duration {
        let first = self.samples.iter().map(|sample| sample.answered).min();
        let last = self.samples.iter().map(|sample| sample.sent).max();
        first
            .zip(last)
            .map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first))
    }
}

/// Sends what the plan says and returns every answer.
///
/// # Errors
/// When the plan goes beyond the limits or its target is another machine, or when no connection can
/// be made.
pub async fn run(plan: &Plan) -> Result<Report> {
    Load::start(plan, Duration::ZERO).await?.report().await
}

/// Sends what several plans say for as long as something else goes on, and returns every answer
/// to each plan. A connection asks no sooner than `pace` after its last request.
///
/// # Errors
/// As [`run`]; what the other thing fails with; and when a plan's time or number was over before
/// it: then there was no load any more.
pub async fn during<T>(
    plans: &[Plan],
    pace: Duration,
    doing: impl Future<Output = Result<T>>,
) -> Result<(Vec<Report>, T)> {
    let mut loads = Vec::new();
    for plan in plans {
        loads.push(Load::start(plan, pace).await?);
    }
    let done = doing.await?;
    let lasted = loads.iter().all(Load::is_running);
    let mut reports = Vec::new();
    for load in loads {
        load.shared.ended.store(true, Ordering::Relaxed);
        reports.push(load.report().await?);
    }
    ensure!(lasted, "the load was over too soon");
    Ok((reports, done))
}

/// Connections that send what a plan says.
struct Load {
    shared: Arc<Shared>,
    connections: Vec<JoinHandle<Result<Report>>>,
}

/// What the connections of a plan have in common.
struct Shared {
    plan: Plan,
    pace: Duration,
    deadline: Instant,
    /// Requests so far.
    tickets: AtomicUsize,
    /// Whether nothing more is to be sent.
    ended: AtomicBool,
}

impl Load {
    async fn start(plan: &Plan, pace: Duration) -> Result<Self> {
        ensure!(plan.target.ip().is_loopback(), "{} is not this machine", plan.target);
        ensure!(plan.connections <= MOST_CONNECTIONS, "at most {MOST_CONNECTIONS} connections");
        ensure!(plan.duration <= LONGEST, "at most {LONGEST:?}");
        ensure!(plan.requests <= MOST_REQUESTS, "at most {MOST_REQUESTS} requests");
        let mut clients = Vec::new();
        for _ in 0..plan.connections {
            clients.push(Client::connect(plan.target).await?);
        }
        let shared = Arc::new(Shared {
            plan: plan.clone(),
            pace,
            deadline: Instant::now() + plan.duration,
            tickets: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let start = |client| tokio::spawn(connection(Arc::clone(&shared), client));
        let connections = clients.into_iter().map(start).collect();
        Ok(Self { shared, connections })
    }

    fn is_running(&self) -> bool {
        !self.connections.iter().any(JoinHandle::is_finished)
    }

    async fn report(self) -> Result<Report> {
        let mut report = Report::default();
        for connection in self.connections {
            let part = connection.await??;
            report.samples.extend(part.samples);
            report.unanswered += part.unanswered;
        }
        Ok(report)
    }
}

async fn connection(shared: Arc<Shared>, mut client: Client) -> Result<Report> {
    let plan = &shared.plan;
    let mut report = Report::default();
    while Instant::now() < shared.deadline && !shared.ended.load(Ordering::Relaxed) {
        let ticket = shared.tickets.fetch_add(1, Ordering::Relaxed);
        if ticket >= plan.requests {
            break;
        }
        let set = ticket.checked_rem(plan.headers.len()).unwrap_or(0);
        let headers = plan.headers.get(set).map(Vec::as_slice).unwrap_or_default();
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let sent = Instant::now();
        let answer = client.get(&plan.path, &headers).await;
        let answered = Instant::now();
        if answer.as_ref().map_or(true, Answer::closes) {
            client = Client::connect(plan.target).await?;
        }
        match answer {
            Ok(Answer { status, headers, .. }) => {
                let told = headers.contains_key("ratelimit");
                report.samples.push(Sample { status, told, headers: set, sent, answered });
            }
            Err(_) => report.unanswered += 1,
        }
        if shared.pace > Duration::ZERO {
            reached(sent + shared.pace).await;
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::Server;

    fn plan(target: SocketAddr) -> Plan {
        Plan {
            target,
            path: "/api/hello".to_owned(),
            headers: vec![vec![("x-api-key".to_owned(), "a".to_owned())], vec![]],
            connections: 4,
            duration: Duration::from_secs(20),
            requests: 100,
        }
    }

    #[tokio::test]
    async fn as_many_are_sent_as_asked_for_each_with_its_headers() {
        let server = Server::start(None).await.unwrap();
        let report = run(&plan(server.address())).await.unwrap();
        assert_eq!((report.count(200), report.samples.len(), report.unanswered), (100, 100, 0));
        assert_eq!(report.samples.iter().filter(|sample| sample.headers == 1).count(), 50);
        assert!(report.span() >= report.inner_span());
    }

    #[tokio::test]
    async fn it_ends_with_its_time() {
        let server = Server::start(None).await.unwrap();
        let duration = Duration::from_millis(50);
        let plan = Plan { duration, requests: MOST_REQUESTS, ..plan(server.address()) };
        let report = run(&plan).await.unwrap();
        assert!(!report.samples.is_empty() && report.samples.len() < MOST_REQUESTS);
    }

    #[tokio::test]
    async fn it_lasts_as_long_as_what_it_is_for_at_its_pace() {
        let server = Server::start(None).await.unwrap();
        let pace = Duration::from_millis(10);
        let plan = Plan { requests: MOST_REQUESTS, ..plan(server.address()) };
        let began = Instant::now();
        let doing = async {
            reached(began + 10 * pace).await;
            Ok(())
        };
        let (reports, ()) = during(&[plan.clone(), plan], pace, doing).await.unwrap();
        assert_eq!(reports.len(), 2);
        for report in reports {
            assert!(!report.samples.is_empty());
            let most = 4 * (began.elapsed().as_millis() / pace.as_millis() + 1);
            assert!(report.samples.len() as u128 <= most, "{}", report.samples.len());
        }
    }

    #[tokio::test]
    async fn a_load_that_is_over_too_soon_is_an_error() {
        let server = Server::start(None).await.unwrap();
        let plan = Plan { requests: 0, ..plan(server.address()) };
        let later = Instant::now() + Duration::from_millis(200);
        let doing = async {
            reached(later).await;
            Ok(())
        };
        assert!(during(&[plan], Duration::ZERO, doing).await.is_err());
    }

    #[tokio::test]
    async fn other_machines_and_unbounded_plans_are_refused() {
        let here: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let elsewhere = plan("192.0.2.1:80".parse().unwrap());
        let wide = Plan { connections: MOST_CONNECTIONS + 1, ..plan(here) };
        let long = Plan { duration: LONGEST * 2, ..plan(here) };
        let many = Plan { requests: MOST_REQUESTS + 1, ..plan(here) };
        for refused in [elsewhere, wide, long, many] {
            assert!(run(&refused).await.is_err(), "{refused:?}");
        }
    }
}
