//! A validated policy. Whatever is in it has been checked, so nothing here can fail.

use crate::{
    key::KeyPart,
    limiter::Limiter,
    units::{Cost, Rate},
};
use alloc::{string::String, vec::Vec};

/// All limits of one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Part of every bucket's identity, so that two policies can share a store.
    pub namespace: String,
    /// The limits; all of them must allow a request.
    pub limits: Vec<Limit>,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Unique in the policy; part of the bucket's identity and of what a refused client is told.
    pub name: String,
    /// What makes two requests share a bucket; empty: all do.
    pub key: Vec<KeyPart>,
    /// What happens to a request that lacks a part of the key.
    pub missing_key: MissingKey,
    /// The rate as written.
    pub rate: Rate,
    /// What decides.
    pub limiter: Limiter,
    /// What one request takes.
    pub cost: Cost,
    /// What happens when the store cannot say.
    pub on_store_failure: OnStoreFailure,
}

/// What happens to a request that lacks a part of a limit's key, or has it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// All such requests share one bucket. The default: leaving the key out must not be a way
    /// round the limit.
    #[default]
    Share,
    /// The limit does not apply.
    Skip,
    /// Answer 401.
    Unauthorized,
    /// Answer 403.
    Deny,
}

/// What happens to a request when the store cannot say whether it passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// Let it pass, and count it as unchecked.
    #[default]
    Allow,
    /// Answer 503: for what must never run unchecked, such as logins and payments.
    Deny,
}
