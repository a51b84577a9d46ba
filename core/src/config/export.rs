//! The canonical text of a policy: what two policies that mean the same have in common.

use super::{
    limit::MISSING_KEY,
    quantity::{duration_text, rate_text},
    store::{APIS, DEFAULT_BRIDGE, DEFAULT_TIMEOUT},
    tiers::{DEFAULT_LEASE, DEFAULT_MAX_DELAY},
    validate::{DEFAULT_NAMESPACE, STORE_FAILURE, STYLES},
};
use crate::{
    policy::{
        ByPlan, Limit, Override, Policy, RequestCost, Store, Tiers,
        matching::Match,
        mode::{MissingKey, Mode, OnStoreFailure},
        quota::{Amount, Quota},
        style::Style,
    },
    units::{Cost, Micros},
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use serde_json::{Map, Value, json};

/// The policy as JSON that [`super::parse`] reads back to the same policy, fields at their defaults
/// left out. No secret ever enters it: a policy with a `key_secret` comes back without it, and one
/// whose store needs a `token` is told that it is missing until it is put in again.
///
/// ```
/// use weir_core::config;
/// let text = r#"{"limits":[{"rate":"60/60s","name":"a","algorithm":"token-bucket"}]}"#;
/// let policy = config::parse(text.as_bytes()).unwrap();
/// assert!(config::export(&policy).contains(r#""rate": "60/minute""#));
/// assert_eq!(config::parse(config::export(&policy).as_bytes()), Ok(policy));
/// ```
#[must_use]
pub fn export(policy: &Policy) -> String {
    let mut fields = Object::default();
    fields.unless(policy.namespace == DEFAULT_NAMESPACE, "namespace", || json!(policy.namespace));
    fields.unless(policy.gateways == 1, "gateways", || json!(policy.gateways));
    fields.unless(policy.store == Store::Local, "store", || store(&policy.store));
    fields.unless(policy.headers == [Style::Draft10], "headers", || {
        policy.headers.iter().map(|style| word(&STYLES, *style)).collect()
    });
    let jitter = policy.retry_after_jitter;
    fields.unless(jitter == Micros::ZERO, "retry_after_jitter", || json!(duration_text(jitter)));
    fields.unless(policy.plans.is_empty(), "plans", || {
        let plan = |(name, amount): &(String, Amount)| (name.clone(), written(amount));
        Value::Object(policy.plans.iter().map(plan).collect())
    });
    fields.set("limits", policy.limits.iter().map(limit).collect());
    // A tree of texts, numbers and lists always has a text.
    serde_json::to_string_pretty(&fields.0).unwrap_or_default()
}

/// The fields of a JSON object, in the order of their names.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_string(), value);
    }

    /// A field that is left out where it has its default.
    fn unless(&mut self, is_default: bool, name: &str, value: impl FnOnce() -> Value) {
        if !is_default {
            self.set(name, value());
        }
    }
}

fn store(store: &Store) -> Value {
    let mut fields = Object::default();
    let kind = match store {
        Store::Local => "local",
        Store::Redis { cluster, streams, timeout } => {
            fields.unless(cluster == DEFAULT_BRIDGE, "cluster", || json!(cluster));
            fields.unless(*streams == 1, "streams", || json!(streams));
            fields
                .unless(*timeout == DEFAULT_TIMEOUT, "timeout", || json!(duration_text(*timeout)));
            "redis"
        }
        Store::Http { cluster, api, token: _, host, timeout } => {
            fields.set("cluster", json!(cluster));
            fields.set("api", word(&APIS, *api));
            if let Some(host) = host {
                fields.set("host", json!(host));
            }
            fields
                .unless(*timeout == DEFAULT_TIMEOUT, "timeout", || json!(duration_text(*timeout)));
            "http"
        }
    };
    fields.set("type", json!(kind));
    Value::Object(fields.0)
}

fn limit(limit: &Limit) -> Value {
    let mut fields = Object::default();
    fields.set("name", json!(limit.name));
    fields.unless(limit.applies.is_any(), "match", || conditions(&limit.applies));
    fields.unless(limit.key.is_empty(), "key", || {
        limit.key.iter().map(|part| json!(part.to_string())).collect()
    });
    fields.unless(limit.missing_key == MissingKey::Share, "missing_key", || {
        word(&MISSING_KEY, limit.missing_key)
    });
    amounts(&mut fields, &limit.tiers);
    fields.unless(limit.cost == RequestCost::Fixed(Cost::ONE), "cost", || match &limit.cost {
        RequestCost::Fixed(cost) => json!(cost.get()),
        RequestCost::Header(name) => json!(format!("header:{}", name.as_str())),
    });
    fields.unless(limit.mode == Mode::Enforce, "mode", || match limit.mode {
        Mode::Percent(percent) => json!(format!("{percent}%")),
        Mode::Enforce | Mode::Shadow => json!("shadow"),
    });
    if let Some(reserve) = &limit.reserve {
        let share = format!("{}%", reserve.share);
        fields.set("reserve", json!({ "share": share, "for": conditions(&reserve.critical) }));
    }
    fields.unless(limit.on_store_failure == OnStoreFailure::Allow, "on_store_failure", || {
        word(&STORE_FAILURE, limit.on_store_failure)
    });
    Value::Object(fields.0)
}

fn amounts(fields: &mut Object, limit: &Tiers) {
    let quota = limit.default.quota();
    let algorithm = quota.algorithm();
    fields.unless(algorithm == "token-bucket", "algorithm", || json!(algorithm));
    match quota {
        Quota::LeakyBucket { max_delay, .. } => {
            let is_default = *max_delay == DEFAULT_MAX_DELAY;
            fields.unless(is_default, "max_delay", || json!(duration_text(*max_delay)));
        }
        Quota::Concurrency { lease, .. } => {
            fields.unless(*lease == DEFAULT_LEASE, "lease", || json!(duration_text(*lease)));
        }
        _ => {}
    }
    fields.unless(limit.default.shards() == 1, "shards", || json!(limit.default.shards()));
    match &limit.by_plan {
        Some(ByPlan { from, default, .. }) => {
            fields.set("plan", json!({ "from": from.to_string(), "default": default }));
        }
        None => amount(fields, quota),
    }
    fields.unless(limit.overrides.is_empty(), "overrides", || {
        let own = |own: &Override| {
            let mut fields = Object::default();
            amount(&mut fields, own.tier.quota());
            (own.written.clone(), Value::Object(fields.0))
        };
        Value::Object(limit.overrides.iter().map(own).collect())
    });
}

/// What a limit or an override says of how much.
fn amount(fields: &mut Object, quota: &Quota) {
    let amount = match quota {
        Quota::TokenBucket { rate, burst } => {
            Amount { rate: Some(*rate), burst: Some(*burst), limit: None }
        }
        Quota::Concurrency { limit, .. } => Amount { limit: Some(*limit), ..Amount::default() },
        _ => Amount { rate: quota.rate(), ..Amount::default() },
    };
    if let Value::Object(amount) = written(&amount) {
        fields.0.extend(amount);
    }
}

fn written(amount: &Amount) -> Value {
    let mut fields = Object::default();
    if let Some(rate) = amount.rate {
        fields.set("rate", json!(rate_text(rate)));
    }
    if let Some(burst) = amount.burst {
        fields.set("burst", json!(burst));
    }
    if let Some(limit) = amount.limit {
        fields.set("limit", json!(limit));
    }
    Value::Object(fields.0)
}

fn conditions(conditions: &Match) -> Value {
    let mut fields = Object::default();
    if let Some(path) = &conditions.path {
        fields.set("path", json!(path.to_string()));
    }
    fields.unless(conditions.methods.is_empty(), "methods", || json!(conditions.methods));
    if let Some(host) = &conditions.host {
        fields.set("host", json!(host));
    }
    let headers: Map<_, _> = conditions
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_string(), json!(value)))
        .collect();
    fields.unless(headers.is_empty(), "header", || Value::Object(headers));
    Value::Object(fields.0)
}

/// The word that stands for a meaning.
fn word<T: PartialEq>(words: &[(&str, T)], meaning: T) -> Value {
    let found: Vec<_> = words.iter().filter(|(_, known)| *known == meaning).collect();
    found.first().map_or(Value::Null, |(word, _)| json!(word))
}
