//! From JSON to a policy: every quantity in its bounds, every name known, all faults gathered.

use super::{
    fault::{Faults, Gathering},
    fields::Fields,
    rate,
    shape::{Node, quoted},
};
use crate::{
    bounds,
    key::{HeaderName, KeyPart},
    limiter::{Limiter, Unfit, token_bucket::TokenBucket},
    policy::{Limit, MissingKey, OnStoreFailure, Policy},
    units::{Cost, Rate},
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// Namespace of a policy that names none.
const DEFAULT_NAMESPACE: &str = "weir";

/// Kinds of key part that the policy format has; only headers can be read yet.
const KEY_KINDS: [&str; 9] =
    ["header", "cookie", "query", "client-ip", "path", "method", "route", "host", "metadata"];

const STORE_FAILURE: [(&str, OnStoreFailure); 2] =
    [("allow", OnStoreFailure::Allow), ("deny", OnStoreFailure::Deny)];

const MISSING_KEY: [(&str, MissingKey); 4] = [
    ("share", MissingKey::Share),
    ("skip", MissingKey::Skip),
    ("unauthorized", MissingKey::Unauthorized),
    ("deny", MissingKey::Deny),
];

/// A policy from its JSON.
pub(super) fn policy(root: &Node) -> Result<Policy, Faults> {
    let mut faults = Gathering::default();
    let policy = read_policy(root, &mut faults);
    faults.finish(policy)
}

fn read_policy(root: &Node, faults: &mut Gathering) -> Option<Policy> {
    let mut fields = Fields::of("", root, faults)?;
    let namespace = match fields.take("namespace") {
        Some(node) => faults.keep("namespace", name(node)),
        None => Some(DEFAULT_NAMESPACE.to_string()),
    };
    if let Some(node) = fields.take("store") {
        store(node, faults);
    }
    let failure = fields.choice("on_store_failure", &STORE_FAILURE, faults);
    let limits = fields.need("limits", faults);
    for field in ["plans", "gateways", "key_secret"] {
        fields.not_yet(field, faults);
    }
    fields.finish(faults);
    // A limit's own faults are told even where its default is not known.
    let limits = read_limits(limits?, failure.unwrap_or_default(), faults);
    Some(Policy { namespace: namespace?, limits: limits? })
}

fn store(node: &Node, faults: &mut Gathering) {
    let Some(mut fields) = Fields::of("store", node, faults) else {
        return;
    };
    if fields.need("type", faults).is_some() {
        fields.choice("type", &[("local", ())], faults);
    }
    fields.finish(faults);
}

fn read_limits(node: &Node, failure: OnStoreFailure, faults: &mut Gathering) -> Option<Vec<Limit>> {
    let Node::List(items) = node else {
        faults.add("limits", format!("must be a list; found {}", node.describe()));
        return None;
    };
    match items.len() {
        0 => faults.add("limits", "is empty, so nothing would be limited; add a limit"),
        1 => {}
        n => faults.add("limits", format!("has {n} limits; this version enforces one per filter")),
    }
    let read = items.iter().enumerate();
    let limits: Vec<_> = read.map(|(i, node)| read_limit(i, node, failure, faults)).collect();
    limits.into_iter().collect()
}

fn read_limit(
    index: usize,
    node: &Node,
    failure: OnStoreFailure,
    faults: &mut Gathering,
) -> Option<Limit> {
    let path = format!("limits[{index}]");
    let mut fields = Fields::of(&path, node, faults)?;
    let name = match fields.need("name", faults) {
        Some(node) => faults.keep(&fields.path("name"), name(node)),
        None => None,
    };
    let key = match fields.take("key") {
        Some(node) => key(&fields.path("key"), node, faults),
        None => Some(Vec::new()),
    };
    let missing_key = fields.choice("missing_key", &MISSING_KEY, faults);
    fields.choice("algorithm", &[("token-bucket", ())], faults);
    let bucket = bucket(&mut fields, faults);
    let cost = cost(&mut fields, bucket, faults);
    let on_store_failure = match fields.take("on_store_failure") {
        Some(_) => fields.choice("on_store_failure", &STORE_FAILURE, faults),
        None => Some(failure),
    };
    for field in ["match", "plan", "mode", "shards", "reserve", "limit", "max_delay"] {
        fields.not_yet(field, faults);
    }
    fields.finish(faults);
    let (rate, limiter) = bucket?;
    Some(Limit {
        name: name?,
        key: key?,
        missing_key: missing_key?,
        rate,
        limiter,
        cost: cost?,
        on_store_failure: on_store_failure?,
    })
}

/// Rate and burst of a limit; a burst that is not named is one second's worth, rounded up.
fn bucket(fields: &mut Fields<'_>, faults: &mut Gathering) -> Option<(Rate, Limiter)> {
    let rate = fields.need("rate", faults).and_then(|node| {
        let read = match node {
            Node::Text(text) => rate::parse(text),
            _ => Err(format!("must be a text like \"1000/minute\"; found {}", node.describe())),
        };
        faults.keep(&fields.path("rate"), read)
    });
    let named = fields.take("burst").is_some();
    let burst = fields.number("burst", &bounds::BURST, faults);
    if named && burst.is_none() {
        return None;
    }
    let rate = rate?;
    let burst =
        burst.unwrap_or_else(|| rate.per_second_up().clamp(bounds::BURST.min, bounds::BURST.max));
    let limiter =
        bucket_limiter(rate, burst).map_err(|unfit| format!("with burst {burst}: {unfit}"));
    Some((rate, faults.keep(&fields.path("rate"), limiter)?))
}

fn bucket_limiter(rate: Rate, burst: u64) -> Result<Limiter, Unfit> {
    match rate.count() {
        0 => Ok(Limiter::Closed),
        _ => TokenBucket::new(rate, burst).map(Limiter::TokenBucket),
    }
}

/// What a request takes; more than the bucket holds could never pass, which is no limit but a
/// mistake.
fn cost(
    fields: &mut Fields<'_>,
    bucket: Option<(Rate, Limiter)>,
    faults: &mut Gathering,
) -> Option<Cost> {
    let named = fields.take("cost").is_some();
    let Some(tokens) = fields.number("cost", &bounds::REQUEST_COST, faults) else {
        return if named { None } else { Some(Cost::ONE) };
    };
    if let Some((_, Limiter::TokenBucket(bucket))) = bucket
        && tokens > bucket.burst()
    {
        let message = format!(
            "of {tokens} is above the burst of {}, so no request could ever pass; raise the burst",
            bucket.burst(),
        );
        faults.add(&fields.path("cost"), message);
        return None;
    }
    Cost::new(tokens)
}

/// A name that may stand in a header, a metric and a bucket's identity.
fn name(node: &Node) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match node {
        Node::Text(text)
            if bounds::NAME.contains(u64::try_from(text.len()).unwrap_or(u64::MAX))
                && text.chars().all(plain) =>
        {
            Ok(text.clone())
        }
        _ => Err(format!(
            "must be {} of a-z, A-Z, 0-9, \"-\", \"_\" and \".\"; found {}",
            bounds::NAME,
            node.describe(),
        )),
    }
}

fn key(path: &str, node: &Node, faults: &mut Gathering) -> Option<Vec<KeyPart>> {
    let Node::List(parts) = node else {
        let found = node.describe();
        faults.add(path, format!("must be a list like [\"header:x-api-key\"]; found {found}"));
        return None;
    };
    let count = u64::try_from(parts.len()).unwrap_or(u64::MAX);
    if !bounds::KEY_PARTS.contains(count) {
        faults.add(path, format!("has {count} parts; allowed are {}", bounds::KEY_PARTS));
        return None;
    }
    let read = parts.iter().enumerate();
    let parts: Vec<_> =
        read.map(|(i, part)| faults.keep(&format!("{path}[{i}]"), key_part(part))).collect();
    parts.into_iter().collect()
}

fn key_part(node: &Node) -> Result<KeyPart, String> {
    let Node::Text(text) = node else {
        return Err(format!("must be a text like \"header:x-api-key\"; found {}", node.describe()));
    };
    if let Some(header) = text.strip_prefix("header:") {
        return HeaderName::new(header)
            .map(KeyPart::Header)
            .ok_or_else(|| format!("names no header: {}", quoted(text)));
    }
    let kind = text.split([':', '/']).next().unwrap_or_default();
    if KEY_KINDS.contains(&kind) {
        return Err(format!(
            "of kind \"{kind}\" is not supported by this version; use \"header:…\""
        ));
    }
    let hint = super::fault::hint(kind, &KEY_KINDS);
    Err(format!("must be like \"header:x-api-key\"; found {}{hint}", quoted(text)))
}
