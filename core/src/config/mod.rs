//! From the text of a policy to a validated [`Policy`]: the only place that knows JSON.
//!
//! ```
//! use weir_core::config;
//!
//! let text = r#"{ "limits": [ { "name": "per-key", "key": ["header:x-api-key"],
//!                               "rate": "1000/minute" } ] }"#;
//! let policy = config::parse(text.as_bytes()).unwrap();
//! assert_eq!(policy.limits[0].tiers.default.quota().capacity(), 17); // a second's worth
//!
//! let faults = config::parse(br#"{ "limits": [ { "name": "a", "rate": "10/fortnight" } ] }"#)
//!     .unwrap_err()
//!     .to_string();
//! assert!(faults.contains("limits[0].rate"), "{faults}");
//! ```

mod conditions;
mod export;
mod fault;
mod fields;
mod limit;
mod quantity;
mod schema;
mod shape;
mod store;
mod tiers;
mod validate;

pub use export::export;
pub use fault::{Fault, Faults};
pub use schema::schema;

use crate::{bounds, policy::Policy};
use alloc::format;
use shape::Node;

/// Reads and validates a policy.
///
/// # Errors
/// Every fault of the policy at once, each with its path, what was found and what is allowed. Text
/// that is no JSON is a single fault with line and column.
pub fn parse(text: &[u8]) -> Result<Policy, Faults> {
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if !bounds::POLICY_TEXT.contains(length) {
        let message = format!("has {length} bytes; allowed are {}", bounds::POLICY_TEXT);
        return Err(Faults::one("", message));
    }
    let node: Node = serde_json::from_slice(text)
        .map_err(|error| Faults::one("", format!("is not valid JSON: {error}")))?;
    validate::policy(&node)
}
