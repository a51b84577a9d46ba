//! One limit of a policy.

use super::{
    conditions,
    fault::{Gathering, hint},
    fields::{Fields, choose, number, text},
    quantity,
    shape::{Node, quoted},
    tiers::{Plans, read_common, read_tiers},
    validate::{STORE_FAILURE, name},
};
use crate::{
    bounds,
    key::{HeaderName, KeyPart},
    limiter::Limiter,
    policy::{
        Limit, RequestCost, Reserve,
        mode::{MissingKey, Mode, OnStoreFailure},
    },
    units::Cost,
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
    let tiers =
        common.and_then(|common| read_tiers(&mut fields, common, key.as_deref(), plans, faults));
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

/// What could never pass is no limit but a mistake: a cost above what a limit, or one of its
/// shards, has for requests that may not draw its reserve.
fn check_cost(path: &str, limit: &Limit, faults: &mut Gathering) {
    let cost = limit.cost.least().get();
    let open = limit.tiers.iter().filter(|tier| tier.limiter(0) != Limiter::Closed);
    let usable = open.flat_map(|tier| {
        (0..tier.shards())
            .map(|shard| tier.capacity(shard).saturating_sub(limit.reserved(tier, shard)))
    });
    if let Some(least) = usable.min().filter(|least| cost > *least) {
        let message = format!(
            "of {cost} is above the {least} that the limit, or one of its shards, can hold less \
             its reserve, so no ordinary request could ever pass; raise the limit",
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

pub(super) fn key_part(node: &Node) -> Result<KeyPart, String> {
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
