//! From JSON to a policy: every quantity in its bounds, every name known, all faults gathered.

use super::{
    fault::{Faults, Gathering},
    fields::{Fields, choose, number, text},
    limit, quantity,
    shape::Node,
    store,
    tiers::Plans,
};
use crate::{
    bounds,
    limiter::Limiter,
    policy::{KeySecret, Limit, Policy, Store, mode::OnStoreFailure, quota::Tier, style::Style},
    units::Micros,
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// Namespace of a policy that names none.
pub(super) const DEFAULT_NAMESPACE: &str = "weir";

pub(super) const STORE_FAILURE: [(&str, OnStoreFailure); 3] = [
    ("allow", OnStoreFailure::Allow),
    ("deny", OnStoreFailure::Deny),
    ("local", OnStoreFailure::Local),
];

pub(super) const STYLES: [(&str, Style); 4] = [
    ("draft-10", Style::Draft10),
    ("draft-07", Style::Draft07),
    ("draft-03", Style::Draft03),
    ("x-ratelimit", Style::XRateLimit),
];

/// A policy from its JSON.
pub(super) fn policy(root: &Node) -> Result<Policy, Faults> {
    let mut faults = Gathering::default();
    let policy = read_policy(root, &mut faults);
    faults.finish(policy)
}

fn read_policy(root: &Node, faults: &mut Gathering) -> Option<Policy> {
    let mut fields = Fields::of("", root, faults)?;
    let namespace = fields.optional("namespace", DEFAULT_NAMESPACE.to_string(), faults, name);
    let gateways = fields.optional("gateways", 1, faults, number(&bounds::GATEWAYS));
    let store = match fields.take("store") {
        Some(node) => store::read(node, faults),
        None => Some(Store::Local),
    };
    let key_secret = fields.optional("key_secret", None, faults, |node| secret(node).map(Some));
    let headers = fields.optional("headers", [Style::Draft10].into(), faults, styles);
    let retry_after_jitter = fields.optional("retry_after_jitter", Micros::ZERO, faults, |node| {
        quantity::duration(text(node)?, &bounds::JITTER)
    });
    let failure = fields.choice("on_store_failure", &STORE_FAILURE, faults);
    let plans = match fields.take("plans") {
        Some(node) => Plans::read(node, faults),
        None => Plans::default(),
    };
    let limits = fields.need("limits", faults);
    fields.finish(faults);
    // A limit's own faults are told even where its default is not known.
    let limits = read_limits(limits?, failure.unwrap_or_default(), &plans, faults);
    let policy = Policy {
        namespace: namespace?,
        gateways: gateways?,
        store: store?,
        key_secret: key_secret?,
        headers: headers?,
        retry_after_jitter: retry_after_jitter?,
        plans: plans.sorted(),
        limits: limits?,
    };
    check_store_failure(&policy, faults);
    Some(policy)
}

/// A share of a local count is no remedy for a local store that fails, nor is one that cannot be
/// counted or in which no request could ever pass.
fn check_store_failure(policy: &Policy, faults: &mut Gathering) {
    let limits = policy.limits.iter().enumerate();
    for (i, limit) in limits.filter(|(_, limit)| limit.on_store_failure == OnStoreFailure::Local) {
        let path = format!("limits[{i}].on_store_failure");
        if policy.store == Store::Local {
            faults.add(&path, "is \"local\", which needs a shared store; use allow or deny");
            continue;
        }
        let mut told: Vec<String> = limit
            .tiers
            .iter()
            .filter_map(|tier| share_fault(limit, tier, policy.gateways))
            .collect();
        told.sort_unstable();
        told.dedup();
        told.into_iter().for_each(|message| faults.add(&path, message));
    }
}

/// What is wrong with a gateway's share of a tier.
fn share_fault(limit: &Limit, tier: &Tier, gateways: u64) -> Option<String> {
    let share = match tier.quota().share(gateways) {
        Ok(Limiter::Closed) => return None,
        Ok(share) => share.capacity(),
        Err(unfit) => {
            return Some(format!(
                "is \"local\", but the share of one of {gateways} gateways is not possible: \
                 {unfit}; or change gateways, or use allow or deny",
            ));
        }
    };
    let (cost, reserved) = (limit.cost.least().get(), limit.reserved_of(share));
    (cost > share.saturating_sub(reserved)).then(|| {
        format!(
            "is \"local\", but the share of one of {gateways} gateways holds {share} and reserves \
             {reserved}, so no ordinary request, of {cost}, could ever pass; raise the limit, or \
             use allow or deny",
        )
    })
}

fn read_limits(
    node: &Node,
    failure: OnStoreFailure,
    plans: &Plans<'_>,
    faults: &mut Gathering,
) -> Option<Vec<Limit>> {
    let Node::List(items) = node else {
        faults.add("limits", format!("must be a list; found {}", node.describe()));
        return None;
    };
    match items.len() {
        0 => faults.add("limits", "is empty, so nothing would be limited; add a limit"),
        n if !bounds::LIMITS.contains_len(n) => {
            faults.add("limits", format!("has {n} limits; allowed are {}", bounds::LIMITS));
            return None;
        }
        _ => {}
    }
    let mut limits: Vec<Option<Limit>> = Vec::new();
    for (i, node) in items.iter().enumerate() {
        let limit = limit::read(i, node, failure, plans, faults);
        let twice = limit.as_ref().and_then(|limit| {
            limits.iter().position(|earlier| {
                earlier.as_ref().is_some_and(|earlier| earlier.name == limit.name)
            })
        });
        if let Some(earlier) = twice {
            let message = format!("is the name of limits[{earlier}] too; names are unique");
            faults.add(&format!("limits[{i}].name"), message);
        }
        limits.push(limit);
    }
    limits.into_iter().collect()
}

fn secret(node: &Node) -> Result<KeySecret, String> {
    match node {
        Node::Text(text) if bounds::SECRET.contains_len(text.len()) => {
            Ok(KeySecret::new(text.clone()))
        }
        // Whatever was found may be a secret with a slip in it.
        _ => Err(format!("must be a text of {}; what was found is not shown", bounds::SECRET)),
    }
}

fn styles(node: &Node) -> Result<Vec<Style>, String> {
    let Node::List(items) = node else {
        return Err(format!("must be a list like [\"draft-10\"]; found {}", node.describe()));
    };
    let mut styles: Vec<Style> =
        items.iter().map(|item| choose(item, &STYLES)).collect::<Result<_, _>>()?;
    styles.sort_unstable();
    styles.dedup();
    Ok(styles)
}

/// A name that may stand in a header, a metric and a bucket's identity.
pub(super) fn name(node: &Node) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match node {
        Node::Text(text) if bounds::NAME.contains_len(text.len()) && text.chars().all(plain) => {
            Ok(text.clone())
        }
        _ => Err(format!(
            "must be {} of a-z, A-Z, 0-9, \"-\", \"_\" and \".\"; found {}",
            bounds::NAME,
            node.describe(),
        )),
    }
}
