//! The JSON Schema of a policy, for editors and for what writes policies.
//!
//! The ranges are those of [`crate::bounds`]. A schema cannot say all that [`super::parse`] checks:
//! which fields belong to which algorithm, and what must fit together.

use super::{
    limit::MISSING_KEY,
    store::APIS,
    validate::{STORE_FAILURE, STYLES},
};
use crate::bounds::{self, Bound};
use alloc::{string::String, vec::Vec};
use serde_json::{Value, json};

/// The schema as JSON text. It is checked in as `core/policy.schema.json`.
#[must_use]
pub fn schema() -> String {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weir policy",
        "type": "object",
        "required": ["limits"],
        "additionalProperties": false,
        "properties": {
            "namespace": name("Keeps two policies apart that share a store."),
            "gateways": number(&bounds::GATEWAYS, "Gateways that share a limit in an outage of the store."),
            "store": { "$ref": "#/$defs/store" },
            "key_secret": text(&bounds::SECRET, "Keys the digests that leave the proxy."),
            "headers": {
                "description": "Which headers tell a client of its limit.",
                "type": "array",
                "items": words(&STYLES),
            },
            "retry_after_jitter": duration("The most that is added to Retry-After by chance."),
            "on_store_failure": words(&STORE_FAILURE),
            "plans": { "type": "object", "additionalProperties": { "$ref": "#/$defs/amount" } },
            "limits": {
                "type": "array",
                "minItems": bounds::LIMITS.min,
                "maxItems": bounds::LIMITS.max,
                "items": { "$ref": "#/$defs/limit" },
            },
        },
        "$defs": { "store": store(), "amount": amount(), "match": conditions(), "limit": limit() },
    });
    // A tree of texts, numbers and lists always has a text.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

fn limit() -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": name("Part of the buckets' identity; clients see it."),
            "match": { "$ref": "#/$defs/match" },
            "key": {
                "description": "What makes two requests share a bucket; empty: all do.",
                "type": "array",
                "maxItems": bounds::KEY_PARTS.max,
                "items": {
                    "type": "string",
                    "pattern": "^((header|cookie|query|metadata):.+|client-ip(/[0-9]+){0,2}|path|method|route|host)$",
                },
            },
            "missing_key": words(&MISSING_KEY),
            "algorithm": {
                "enum": ["token-bucket", "fixed-window", "sliding-window", "sliding-log", "leaky-bucket", "concurrency"],
            },
            "rate": rate(),
            "burst": number(&bounds::BURST, "Tokens of a full bucket."),
            "limit": number(&bounds::ENTRIES, "Permits of a concurrency limit."),
            "max_delay": duration("Longest wait in the queue of a leaky bucket."),
            "lease": duration("How long a permit lasts if nobody gives it back."),
            "plan": {
                "type": "object",
                "required": ["from", "default"],
                "additionalProperties": false,
                "properties": { "from": { "type": "string" }, "default": { "type": "string" } },
            },
            "overrides": { "type": "object", "additionalProperties": { "$ref": "#/$defs/amount" } },
            "cost": {
                "oneOf": [
                    number(&bounds::REQUEST_COST, "Tokens that a request takes."),
                    { "type": "string", "pattern": "^header:.+$" },
                ],
            },
            "mode": { "type": "string", "pattern": "^(enforce|shadow|[0-9]{1,3}%)$" },
            "shards": number(&bounds::SHARDS, "Buckets that share the limit."),
            "reserve": {
                "type": "object",
                "required": ["share", "for"],
                "additionalProperties": false,
                "properties": {
                    "share": { "type": "string", "pattern": "^[0-9]{1,3}%$" },
                    "for": { "$ref": "#/$defs/match" },
                },
            },
            "on_store_failure": words(&STORE_FAILURE),
        },
    })
}

fn store() -> Value {
    json!({
        "type": "object",
        "required": ["type"],
        "additionalProperties": false,
        "properties": {
            "type": { "enum": ["local", "redis", "http"] },
            "cluster": name("The proxy's cluster that leads to the store."),
            "streams": number(&bounds::STREAMS, "Streams to Redis, one for each range of slots."),
            "api": words(&APIS),
            "token": token(),
            "host": host(),
            "timeout": duration("How long an answer may take."),
        },
    })
}

fn token() -> Value {
    let pattern = alloc::format!("^[!-~]{{{},{}}}$", bounds::TOKEN.min, bounds::TOKEN.max);
    json!({ "description": "Opens a store over HTTP.", "type": "string", "pattern": pattern })
}

fn host() -> Value {
    json!({
        "description": "The host that a store over HTTP is asked for; by default the cluster's name.",
        "type": "string",
        "maxLength": bounds::HOST.max,
        "pattern": "^([a-zA-Z0-9._-]+|\\[[0-9a-fA-F:.]+\\])(:[0-9]{1,5})?$",
    })
}

fn amount() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "rate": rate(),
            "burst": number(&bounds::BURST, "Tokens of a full bucket."),
            "limit": number(&bounds::ENTRIES, "Permits of a concurrency limit."),
        },
    })
}

fn conditions() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "path": { "description": "A path, or a prefix with * at its end.", "type": "string", "pattern": "^/[^*?#]*\\*?$" },
            "methods": { "type": "array", "items": { "type": "string", "pattern": "^[A-Z]+$" } },
            "host": text(&bounds::VALUE, "A host's name, without its port."),
            "header": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    })
}

fn number(bound: &Bound, description: &str) -> Value {
    json!({ "description": description, "type": "integer", "minimum": bound.min, "maximum": bound.max })
}

fn text(bound: &Bound, description: &str) -> Value {
    json!({ "description": description, "type": "string", "minLength": bound.min, "maxLength": bound.max })
}

fn name(description: &str) -> Value {
    let pattern = alloc::format!("^[a-zA-Z0-9._-]{{{},{}}}$", bounds::NAME.min, bounds::NAME.max);
    json!({ "description": description, "type": "string", "pattern": pattern })
}

fn rate() -> Value {
    json!({
        "description": "Tokens per window, like 1000/minute or 5/90s.",
        "type": "string",
        "pattern": "^[0-9]+/(millisecond|second|minute|hour|day|[0-9]+(ms|s|m|h|d))$",
    })
}

fn duration(description: &str) -> Value {
    json!({ "description": description, "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" })
}

fn words<T>(words: &[(&str, T)]) -> Value {
    json!({ "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>() })
}
