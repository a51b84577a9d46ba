//! The module's second role: on the bridge's listener it turns the messages of a stream into the
//! plain bytes that Redis reads, and what Redis answers into messages.

pub mod frames;

#[cfg(target_arch = "wasm32")]
pub(crate) mod http;

/// The `root_id` of a plugin in this role.
pub const ROOT_ID: &[u8] = b"weir_bridge";
