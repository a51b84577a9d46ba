//! An Envoy with three limits, one for each failure policy, before a store that can be broken.

use crate::support::{
    Running, artefact, shipped, start,
    stores::{Behind, Way},
};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::{
    fmt,
    time::{Duration, Instant},
};
use weir_lab::{
    config::Config,
    eventually::eventually,
    http::{Answer, Client},
    link::Link,
    redis::{Options, Redis},
};

/// How long an answer may take on a machine that does ten other things, well below a deadline that
/// nothing should reach.
const BOUND: Duration = Duration::from_secs(3);
/// How long something may take that does come.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// The limits, by their failure policies.
pub(crate) const LIMITS: [&str; 3] = ["allow", "deny", "local"];
/// Tokens of each limit; this gateway's share of them is half.
pub(crate) const BURST: usize = 4;
/// The counters that say why a limit could not be checked.
const REASONS: [&str; 4] = ["store_error", "store_timeout", "store_down", "store_busy"];

/// A limit for each failure policy, by the path that it is for. No refill blurs a count.
fn limits() -> Value {
    let limit = |policy: &str| {
        json!({
            "name": policy, "match": { "path": format!("/{policy}") }, "key": ["header:x-api-key"],
            "rate": "1/hour", "burst": BURST, "on_store_failure": policy,
        })
    };
    let limits = LIMITS.map(limit);
    json!({ "gateways": 2, "limits": limits })
}

/// What is to be started.
pub(crate) struct Setup {
    pub(crate) way: Way,
    /// How long a check may take.
    pub(crate) deadline: Duration,
    /// A change of Envoy's configuration.
    pub(crate) edit: fn(Way, &mut Config) -> Result<()>,
    /// Whether Redis wants a password, which those that can give one are told.
    pub(crate) guarded: bool,
}

/// All of it, running.
pub(crate) struct Stage {
    pub(crate) way: Way,
    pub(crate) running: Running,
    /// Between Envoy and the store, or what stands before the store.
    pub(crate) link: Link,
    pub(crate) behind: Behind,
}

/// What became of limits that the store could not check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) unchecked: u64,
    pub(crate) unavailable: u64,
    pub(crate) by_share: u64,
}

impl Stage {
    pub(crate) async fn start(setup: &Setup) -> Result<Self> {
        let Setup { way, deadline, edit, guarded } = setup;
        let password = guarded.then(|| password(*way)).flatten().map(str::to_owned);
        let options = Options { password, ..Options::default() };
        let redis = Redis::start_with(&artefact("WEIR_REDIS"), options)?;
        let behind = Behind::in_front_of(*way, redis).await?;
        let link = Link::start(behind.address().context("a shared store")?).await?;
        let mut config = way.config(&shipped())?;
        let timeout = format!("{}ms", deadline.as_millis());
        let policy = way.policy_within(&mut config, &limits(), &timeout)?;
        config.set_policy("ingress", &policy)?;
        config.set_endpoint(way.cluster().context("a shared store")?, link.address())?;
        to_one_path(&mut config)?;
        if *way == Way::Proxied {
            let proxy = filter(&mut config, "weir_redis_proxy")?;
            // As in the file: five times the deadline.
            let patience = format!("{}s", (*deadline * 5).as_secs_f64());
            proxy["typed_config"]["settings"]["op_timeout"] = json!(patience);
        }
        edit(*way, &mut config)?;
        Ok(Self { way: *way, running: start(config, 1).await?, link, behind })
    }

    /// Asks one limit, on a connection of its own, and checks that the answer does not take long.
    pub(crate) async fn ask(&self, limit: &str, key: &str) -> Result<Answer> {
        let mut client = Client::connect(self.running.envoy.address("ingress")?).await?;
        let sent = Instant::now();
        let answer = client.get(&format!("/{limit}"), &[("x-api-key", key.as_bytes())]).await?;
        let took = sent.elapsed();
        assert!(took < BOUND, "{self}: {limit} took {took:?}");
        Ok(answer)
    }

    /// Waits until the store is asked again, and checks that it then counts for all three limits.
    pub(crate) async fn assert_checks_again(&mut self) -> Result<()> {
        let mut attempts = 0;
        let again = eventually("checks", LONG, async || {
            attempts += 1;
            let answer = self.ask("deny", &format!("attempt {attempts}")).await?;
            Ok((answer.status == 200).then_some(()))
        });
        again.await.with_context(|| self.to_string())?;
        self.assert_checks("after").await
    }

    /// Checks that the store counts for all three limits, the first request of a key as well.
    pub(crate) async fn assert_checks(&mut self, key: &str) -> Result<()> {
        let mut redis = self.behind.redis().client()?;
        redis.run(&["FLUSHALL"])?;
        let before = self.counts().await?;
        for limit in LIMITS {
            let mut statuses = Vec::new();
            for _ in 0..=BURST {
                statuses.push(self.ask(limit, key).await?.status);
            }
            // Not this gateway's share, which is half.
            assert_eq!(statuses, [200, 200, 200, 200, 429], "{self}: {limit}");
        }
        assert_eq!(self.counts().await?, before, "{self}");
        // What was asked during the fault may come late, and be counted too.
        assert!(redis.count()? >= 3, "{self}");
        Ok(())
    }

    /// What became of limits that could not be checked so far.
    pub(crate) async fn counts(&self) -> Result<Counts> {
        let [unchecked, unavailable, by_share] =
            self.read(["unchecked", "unavailable", "by_share"]).await?;
        Ok(Counts { unchecked, unavailable, by_share })
    }

    /// Why limits could not be checked so far, and how often.
    pub(crate) async fn reasons(&self) -> Result<Vec<(&'static str, u64)>> {
        let counts = self.read(REASONS).await?;
        Ok(REASONS.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect())
    }

    /// Counters of the filter, all of one moment.
    async fn read<const N: usize>(&self, names: [&str; N]) -> Result<[u64; N]> {
        let text = self.running.envoy.admin_get("/stats?filter=^wasmcustom").await?;
        let count = |name| {
            let line = format!("wasmcustom.weir.{name}: ");
            let value = text.lines().find_map(|found| found.strip_prefix(&line));
            value.map_or(Ok(0), str::parse)
        };
        let mut counts = [0; N];
        for (count_of, name) in counts.iter_mut().zip(names) {
            *count_of = count(name).with_context(|| text.clone())?;
        }
        Ok(counts)
    }

    /// What the filter has said of the store so far.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = self.running.envoy.log();
        let said = log.lines().filter_map(|line| line.split_once(": weir: the store "));
        said.map(|(_, said)| said.to_owned()).collect()
    }
}

/// For messages.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, log: {:#?}", self.way, self.log())
    }
}

/// The password that a way's configuration has. The bridge gives none.
pub(crate) fn password(way: Way) -> Option<&'static str> {
    (way != Way::Direct).then_some("the right one")
}

/// Sends every path to the one that the upstream answers on. The filter sees the client's.
fn to_one_path(config: &mut Config) -> Result<()> {
    let rewrite = json!({ "pattern": { "regex": ".*" }, "substitution": "/api/hello" });
    let hosts = &mut filter(config, "ingress")?["typed_config"]["route_config"]["virtual_hosts"];
    hosts[0]["routes"][0]["route"]["regex_rewrite"] = rewrite;
    Ok(())
}

/// The network filter of a listener.
fn filter<'a>(config: &'a mut Config, listener: &str) -> Result<&'a mut Value> {
    let listeners = &mut config.value_mut()["static_resources"]["listeners"];
    let listeners = listeners.as_array_mut().context("listeners")?;
    let listener = listeners.iter_mut().find(|found| found["name"] == listener);
    Ok(&mut listener.context("the listener")?["filter_chains"][0]["filters"][0])
}
