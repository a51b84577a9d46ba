//! How much a limit allows: its algorithm and numbers, by plan and by override.

use super::{
    fault::{Gathering, hint},
    fields::{Fields, number, text},
    limit::key_part,
    quantity,
    shape::{Node, quoted},
};
use crate::{
    bounds,
    key::KeyPart,
    policy::{
        ByPlan, Override, Tiers,
        quota::{Amount, Quota, Tier},
    },
    units::Micros,
};
use alloc::{format, string::String, vec::Vec};

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
pub(super) struct Common {
    algorithm: Algorithm,
    max_delay: Micros,
    lease: Micros,
    shards: u64,
}

pub(super) fn read_common(fields: &mut Fields<'_>, faults: &mut Gathering) -> Option<Common> {
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

pub(super) fn read_tiers(
    fields: &mut Fields<'_>,
    common: Common,
    key: Option<&[KeyPart]>,
    plans: &Plans<'_>,
    faults: &mut Gathering,
) -> Option<Tiers> {
    let place =
        fields.path(if common.algorithm == Algorithm::Concurrency { "limit" } else { "rate" });
    // Everything is read before anything is given up, so that every fault is told.
    let own = read_amount(fields, faults);
    let by_plan = fields
        .take("plan")
        .map(|node| read_by_plan(&fields.path("plan"), node, common, plans, faults));
    let overrides = fields
        .take("overrides")
        .map(|node| read_overrides(&fields.path("overrides"), node, common, key, faults));
    let (own, overrides) = (own?, overrides.unwrap_or_else(|| Some(Vec::new())));
    let Some(by_plan) = by_plan else {
        let default = tier(&place, own, common, faults)?;
        return Some(Tiers { default, by_plan: None, overrides: overrides? });
    };
    if own.rate.is_some() || own.burst.is_some() || own.limit.is_some() {
        faults
            .add(&place, "is given beside \"plan\"; the plans say how much, so remove one of both");
    }
    let by_plan = by_plan?;
    let (_, default) = by_plan.plans.iter().find(|(name, _)| *name == by_plan.default)?;
    Some(Tiers { default: default.clone(), by_plan: Some(by_plan), overrides: overrides? })
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
    let tiers = compiled("plans", plans.0.iter().copied(), common, faults);
    Some(ByPlan { from: from?, default: default?, plans: tiers? })
}

fn read_overrides(
    path: &str,
    node: &Node,
    common: Common,
    key: Option<&[KeyPart]>,
    faults: &mut Gathering,
) -> Option<Vec<Override>> {
    let tiers = compiled(path, amounts(path, node, faults).into_iter(), common, faults);
    // A key with a fault has been told already.
    let [part] = key? else {
        let parts = key.unwrap_or_default().len();
        faults.add(path, format!("needs a key of one part; this limit has {parts}"));
        return None;
    };
    let mut overrides: Vec<Override> = Vec::new();
    for (written, tier) in tiers? {
        let place = format!("{path}.{}", shown(&written));
        let Some(value) = part.value_written(&written) else {
            faults.add(&place, format!("is nothing that a request can have as {part}"));
            continue;
        };
        if let Some(twin) = overrides.iter().find(|twin| twin.value == value) {
            faults.add(&place, format!("is the same {part} as {}", shown(&twin.written)));
        }
        overrides.push(Override { written, value, tier });
    }
    overrides.sort_by(|a, b| a.value.cmp(&b.value));
    Some(overrides)
}

/// The tiers of named amounts, sorted by name.
fn compiled<'a>(
    path: &str,
    amounts: impl Iterator<Item = (&'a str, Option<Amount>)>,
    common: Common,
    faults: &mut Gathering,
) -> Option<Vec<(String, Tier)>> {
    let tiers: Vec<_> = amounts
        .map(|(name, amount)| {
            let tier = tier(&format!("{path}.{}", shown(name)), amount?, common, faults)?;
            Some((String::from(name), tier))
        })
        .collect();
    let mut tiers: Vec<_> = tiers.into_iter().collect::<Option<_>>()?;
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
