//! One limit of a policy.

use super::{
    conditions,
    fault::{Gathering, hint},
    fields::{Fields, choose, number, text},
    quantity,
    shape::{Node, quoted},
    validate::{STORE_FAILURE, name},
};
use crate::{
    bounds,
    key::{HeaderName, KeyPart},
    policy::{
        ByPlan, Limit, RequestCost, Reserve, Tiers,
        mode::{MissingKey, Mode, OnStoreFailure},
        quota::{Amount, Quota, Tier},
    },
    units::{Cost, Micros},
};
use alloc::{format, string::String, vec::Vec};

/// Kinds of key part that a policy can name.
const KEY_KINDS: [&str; 9] =
    ["header", "cookie", "query", "client-ip", "path", "method", "route", "host", "metadata"];

pub(super) const MISSING_KEY: [(&str, MissingKey); 4] = [
    ("share", MissingKey::Share),
    ("skip", MissingKey::Skip),
    ("unauthorized", MissingKey::Unauthorized),
    ("deny", MissingKey::Deny),
];

/// A permit's lease if the policy names none: longer than nearly every request.
pub(super) const DEFAULT_LEASE: Micros = Micros::new(60_000_000);
/// The longest wait in a queue if the policy names none.
pub(super) const DEFAULT_MAX_DELAY: Micros = Micros::SECOND;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Algorithm {
    #[default]
    TokenBucket,
    FixedWindow,
    SlidingWindow,
    SlidingLog,
    LeakyBucket,
    Concurrency,
}

const ALGORITHMS: [(&str, Algorithm); 6] = [
    ("token-bucket", Algorithm::TokenBucket),
    ("fixed-window", Algorithm::FixedWindow),
    ("sliding-window", Algorithm::SlidingWindow),
    ("sliding-log", Algorithm::SlidingLog),
    ("leaky-bucket", Algorithm::LeakyBucket),
    ("concurrency", Algorithm::Concurrency),
];

/// The plans of a policy, by name.
#[derive(Default)]
pub(super) struct Plans<'a>(Vec<(&'a str, Option<Amount>)>);

impl<'a> Plans<'a> {
    pub(super) fn read(node: &'a Node, faults: &mut Gathering) -> Self {
        Self(amounts("plans", node, faults))
    }

    /// The plans in the order of their names, as far as they are not faulty.
    pub(super) fn sorted(&self) -> Vec<(String, Amount)> {
        let plan =
            |(name, amount): &(&str, Option<Amount>)| Some((String::from(*name), (*amount)?));
        let mut plans: Vec<_> = self.0.iter().filter_map(plan).collect();
        plans.sort_by(|(a, _), (b, _)| a.cmp(b));
        plans
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }
}

/// What does not differ between the tiers of a limit.
#[derive(Clone, Copy)]
struct Common {
    algorithm: Algorithm,
    max_delay: Micros,
    lease: Micros,
    shards: u64,
}

pub(super) fn read(
    index: usize,
    node: &Node,
    failure: OnStoreFailure,
    plans: &Plans<'_>,
    faults: &mut Gathering,
) -> Option<Limit> {
    let path = format!("limits[{index}]");
    let mut fields = Fields::of(&path, node, faults)?;
    let name = fields.required("name", faults, name);
    let applies = conditions::read(&mut fields, "match", faults);
    let key = match fields.take("key") {
        Some(node) => read_key(&fields.path("key"), node, faults),
        None => Some(Vec::new()),
    };
    let missing_key = fields.choice("missing_key", &MISSING_KEY, faults);
    let common = read_common(&mut fields, faults);
    let tiers = common.and_then(|common| {
        read_tiers(&mut fields, common, key.as_deref().unwrap_or_default(), plans, faults)
    });
    let cost = fields.optional("cost", RequestCost::Fixed(Cost::ONE), faults, read_cost);
    let mode = fields.optional("mode", Mode::Enforce, faults, read_mode);
    let reserve = read_reserve(&mut fields, faults);
    let on_store_failure =
        fields.optional("on_store_failure", failure, faults, |node| choose(node, &STORE_FAILURE));
    // Where the algorithm is not known, what belongs to it is not known either.
    if common.is_some() {
        fields.finish(faults);
    }
    let limit = Limit {
        name: name?,
        applies: applies?,
        key: key?,
        missing_key: missing_key?,
        tiers: tiers?,
        cost: cost?,
        mode: mode?,
        reserve: reserve?,
        on_store_failure: on_store_failure?,
    };
    check_cost(&path, &limit, faults);
    Some(limit)
}

fn read_common(fields: &mut Fields<'_>, faults: &mut Gathering) -> Option<Common> {
    let algorithm = fields.choice("algorithm", &ALGORITHMS, faults)?;
    let mut duration = |name, default, bound| {
        fields.optional(name, default, faults, |node| quantity::duration(text(node)?, bound))
    };
    let (mut max_delay, mut lease) = (Some(DEFAULT_MAX_DELAY), Some(DEFAULT_LEASE));
    match algorithm {
        Algorithm::LeakyBucket => {
            max_delay = duration("max_delay", DEFAULT_MAX_DELAY, &bounds::MAX_DELAY);
        }
        Algorithm::Concurrency => lease = duration("lease", DEFAULT_LEASE, &bounds::LEASE),
        _ => {}
    }
    if algorithm != Algorithm::LeakyBucket {
        fields.refuse("max_delay", "belongs to the algorithm leaky-bucket; remove it", faults);
    }
    if algorithm != Algorithm::Concurrency {
        fields.refuse("lease", "belongs to the algorithm concurrency; remove it", faults);
    }
    let shards = fields.optional("shards", 1, faults, number(&bounds::SHARDS));
    Some(Common { algorithm, max_delay: max_delay?, lease: lease?, shards: shards? })
}

fn read_tiers(
    fields: &mut Fields<'_>,
    common: Common,
    key: &[KeyPart],
    plans: &Plans<'_>,
    faults: &mut Gathering,
) -> Option<Tiers> {
    let place =
        fields.path(if common.algorithm == Algorithm::Concurrency { "limit" } else { "rate" });
    let own = read_amount(fields, faults);
    let by_plan = match fields.take("plan") {
        Some(node) => Some(read_by_plan(&fields.path("plan"), node, common, plans, faults)?),
        None => None,
    };
    let overrides = match fields.take("overrides") {
        Some(node) => read_overrides(&fields.path("overrides"), node, common, key, faults)?,
        None => Vec::new(),
    };
    let own = own?;
    let Some(by_plan) = by_plan else {
        let default = tier(&place, own, common, faults)?;
        return Some(Tiers { default, by_plan: None, overrides });
    };
    if own.rate.is_some() || own.burst.is_some() || own.limit.is_some() {
        faults
            .add(&place, "is given beside \"plan\"; the plans say how much, so remove one of both");
    }
    let (_, default) = by_plan.plans.iter().find(|(name, _)| *name == by_plan.default)?;
    Some(Tiers { default: default.clone(), by_plan: Some(by_plan), overrides })
}

fn read_by_plan(
    path: &str,
    node: &Node,
    common: Common,
    plans: &Plans<'_>,
    faults: &mut Gathering,
) -> Option<ByPlan> {
    let mut fields = Fields::of(path, node, faults)?;
    let from = fields.required("from", faults, key_part);
    let default = fields.required("default", faults, |node| {
        let names = plans.names();
        let plan = text(node)?;
        names.iter().find(|name| **name == plan).map(|name| String::from(*name)).ok_or_else(|| {
            format!(
                "must be one of the plans ({}); found {}{}",
                names.join(", "),
                quoted(plan),
                hint(plan, &names)
            )
        })
    });
    fields.finish(faults);
    let mut tiers = Vec::new();
    for (name, amount) in &plans.0 {
        tiers.push((
            String::from(*name),
            tier(&format!("plans.{name}"), (*amount)?, common, faults)?,
        ));
    }
    tiers.sort_by(|(a, _), (b, _)| a.cmp(b));
    Some(ByPlan { from: from?, default: default?, plans: tiers })
}

fn read_overrides(
    path: &str,
    node: &Node,
    common: Common,
    key: &[KeyPart],
    faults: &mut Gathering,
) -> Option<Vec<(String, Tier)>> {
    if key.len() != 1 {
        faults.add(path, format!("needs a key of one part; this limit has {}", key.len()));
        return None;
    }
    let mut tiers = Vec::new();
    for (value, amount) in amounts(path, node, faults) {
        tiers.push((
            String::from(value),
            tier(&format!("{path}.{value}"), amount?, common, faults)?,
        ));
    }
    tiers.sort_by(|(a, _), (b, _)| a.cmp(b));
    Some(tiers)
}

/// An object from names to amounts.
fn amounts<'a>(
    path: &str,
    node: &'a Node,
    faults: &mut Gathering,
) -> Vec<(&'a str, Option<Amount>)> {
    let Node::Object(entries) = node else {
        faults
            .add(path, format!("must be an object from names to rates; found {}", node.describe()));
        return Vec::new();
    };
    if !bounds::TIERS.contains_len(entries.len()) {
        faults.add(path, format!("has {} entries; allowed are {}", entries.len(), bounds::TIERS));
        return Vec::new();
    }
    let mut seen: Vec<(&str, Option<Amount>)> = Vec::new();
    for (name, node) in entries {
        let path = format!("{path}.{}", shown(name));
        if !bounds::VALUE.contains_len(name.len()) {
            faults.add(
                &path,
                format!("has a name of {} bytes; allowed are {}", name.len(), bounds::VALUE),
            );
        } else if seen.iter().any(|(earlier, _)| earlier == name) {
            faults.add(&path, "is given twice");
        }
        let amount = Fields::of(&path, node, faults).and_then(|mut fields| {
            let amount = read_amount(&mut fields, faults);
            fields.finish(faults);
            amount
        });
        seen.push((name, amount));
    }
    seen
}

/// A name in a path: as it is where it is plain, quoted otherwise.
fn shown(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !name.is_empty() && name.len() <= 64 && name.bytes().all(plain) {
        name.into()
    } else {
        quoted(name)
    }
}

fn read_amount(fields: &mut Fields<'_>, faults: &mut Gathering) -> Option<Amount> {
    let rate = fields.optional("rate", None, faults, |node| match node {
        Node::Text(text) => quantity::rate(text).map(Some),
        _ => Err(format!("must be a text like \"1000/minute\"; found {}", node.describe())),
    });
    let burst =
        fields.optional("burst", None, faults, |node| number(&bounds::BURST)(node).map(Some));
    let limit =
        fields.optional("limit", None, faults, |node| number(&bounds::ENTRIES)(node).map(Some));
    Some(Amount { rate: rate?, burst: burst?, limit: limit? })
}

/// An amount under an algorithm, compiled. `place` is where a fault is told.
fn tier(place: &str, amount: Amount, common: Common, faults: &mut Gathering) -> Option<Tier> {
    let quota = faults.keep(place, quota(amount, common))?;
    let compiled = Tier::new(quota, common.shards).map_err(|error| match quota {
        Quota::TokenBucket { burst, .. } => format!("with burst {burst}: {error}"),
        _ => format!("is not possible: {error}"),
    });
    faults.keep(place, compiled)
}

fn quota(amount: Amount, common: Common) -> Result<Quota, String> {
    let Amount { rate, burst, limit } = amount;
    if common.algorithm == Algorithm::Concurrency {
        if rate.is_some() || burst.is_some() {
            return Err(
                "stands beside \"rate\" or \"burst\", which a concurrency limit has not".into()
            );
        }
        let limit = limit.ok_or("is missing")?;
        return Ok(Quota::Concurrency { limit, lease: common.lease });
    }
    if limit.is_some() {
        return Err("stands beside \"limit\", which only a concurrency limit has".into());
    }
    if burst.is_some() && common.algorithm != Algorithm::TokenBucket {
        return Err("stands beside \"burst\", which only a token bucket has".into());
    }
    let rate = rate.ok_or("is missing")?;
    Ok(match common.algorithm {
        Algorithm::FixedWindow => Quota::FixedWindow(rate),
        Algorithm::SlidingWindow => Quota::SlidingWindow(rate),
        Algorithm::SlidingLog => Quota::SlidingLog(rate),
        Algorithm::LeakyBucket => Quota::LeakyBucket { rate, max_delay: common.max_delay },
        Algorithm::TokenBucket | Algorithm::Concurrency => {
            let second = rate.per_second_up().clamp(bounds::BURST.min, bounds::BURST.max);
            // Every shard of a bucket without a burst of its own holds a token at least.
            Quota::TokenBucket { rate, burst: burst.unwrap_or(second.max(common.shards)) }
        }
    })
}

/// What could never pass is no limit but a mistake.
fn check_cost(path: &str, limit: &Limit, faults: &mut Gathering) {
    let RequestCost::Fixed(cost) = limit.cost else { return };
    let least = limit.tiers.iter().filter(|tier| tier.quota().capacity() > 0);
    let least = least.flat_map(|tier| (0..tier.shards()).map(|shard| tier.capacity(shard))).min();
    if let Some(least) = least.filter(|least| cost.get() > *least) {
        let message = format!(
            "of {} is above the {least} that the limit, or one of its shards, can hold, so no \
             request could ever pass; raise the limit",
            cost.get(),
        );
        faults.add(&format!("{path}.cost"), message);
    }
}

fn read_cost(node: &Node) -> Result<RequestCost, String> {
    if let Node::Text(text) = node {
        let header = text.strip_prefix("header:").and_then(HeaderName::new);
        return header.map(RequestCost::Header).ok_or_else(|| {
            format!("must be a number or like \"header:x-cost\"; found {}", quoted(text))
        });
    }
    let tokens = number(&bounds::REQUEST_COST)(node)?;
    Ok(RequestCost::Fixed(Cost::of_request(tokens)))
}

fn read_mode(node: &Node) -> Result<Mode, String> {
    let word = choose(node, &[("enforce", Mode::Enforce), ("shadow", Mode::Shadow)]);
    match node {
        Node::Text(text) if text.ends_with('%') => quantity::percent(text).map(Mode::Percent),
        _ => word.map_err(|message| {
            message.replace("enforce, shadow", "enforce, shadow, a share like \"20%\"")
        }),
    }
}

fn read_reserve(fields: &mut Fields<'_>, faults: &mut Gathering) -> Option<Option<Reserve>> {
    let Some(node) = fields.take("reserve") else { return Some(None) };
    let path = fields.path("reserve");
    let mut fields = Fields::of(&path, node, faults)?;
    let share = fields.required("share", faults, |node| quantity::percent(text(node)?));
    let critical = conditions::read(&mut fields, "for", faults);
    if critical.as_ref().is_some_and(crate::policy::matching::Match::is_any) {
        faults.add(&fields.path("for"), "names no condition, so every request would be critical");
    }
    fields.finish(faults);
    Some(Some(Reserve { share: share?, critical: critical? }))
}

fn read_key(path: &str, node: &Node, faults: &mut Gathering) -> Option<Vec<KeyPart>> {
    let Node::List(parts) = node else {
        let found = node.describe();
        faults.add(path, format!("must be a list like [\"header:x-api-key\"]; found {found}"));
        return None;
    };
    if !bounds::KEY_PARTS.contains_len(parts.len()) {
        let count = parts.len();
        faults.add(path, format!("has {count} parts; allowed are {}", bounds::KEY_PARTS));
        return None;
    }
    let read = parts.iter().enumerate();
    let parts: Vec<_> =
        read.map(|(i, part)| faults.keep(&format!("{path}[{i}]"), key_part(part))).collect();
    parts.into_iter().collect()
}

fn key_part(node: &Node) -> Result<KeyPart, String> {
    let text = match node {
        Node::Text(text) => text.as_str(),
        _ => "",
    };
    KeyPart::parse(text).ok_or_else(|| {
        let kind = text.split([':', '/']).next().unwrap_or_default();
        let hint = if KEY_KINDS.contains(&kind) { String::new() } else { hint(kind, &KEY_KINDS) };
        format!(
            "must be like \"header:x-api-key\" or \"client-ip\"; found {}{hint}",
            node.describe()
        )
    })
}
