//! The limiter math of Weir: one core that decides in the proxy, in the browser and in the model
//! that checks both.
//!
//! Nothing here reads a clock, draws a random number or does I/O: the time is an argument. Nothing
//! here is a float: every quantity is an integer with a unit, and every operation is checked or
//! saturates on purpose. So a decision is a function of its inputs, and is the same everywhere.
//!
//! The modules stand in the order in which a request meets them, each importing only those above
//! it:
//!
//! - [`units`], [`bounds`], [`decision`]: quantities, their ranges, and what a limit says.
//! - [`limiter`]: pure steps from (state, now, cost) to (decision, new state).
//! - [`key`], [`store`]: who shares a bucket, and how its state is kept.
//! - [`script`]: the same steps as Redis scripts.
//! - [`policy`], [`combine`], [`response`]: what the operator wants, what several limits say
//!   together, and what the client is told.
//! - [`config`]: the text of a policy; all that is wrong with it at once.

#![no_std]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
// In tests a panic is the report, and numbers are known.
#![cfg_attr(test, allow(clippy::arithmetic_side_effects, clippy::indexing_slicing))]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod units;

pub mod bounds;

pub mod decision;

pub mod limiter;

pub mod key;

pub mod store;

pub mod script;

pub mod policy;

pub mod combine;

pub mod response;

pub mod config;
