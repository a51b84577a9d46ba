//! The running parts of Weir: a real Envoy, what stands behind it, the stores that it asks and the
//! ways they fail, the page, and bounded load. The demo and the end-to-end tests start and stop them
//! here.
//!
//! Every part is a value: it runs while the value lives and is stopped when the value is dropped.
//! Everything listens on 127.0.0.1 only.

pub mod assets;
pub mod bench;
pub mod browser;
pub mod check;
pub mod config;
pub mod demo;
pub mod envoy;
pub mod eventually;
pub mod faults;
pub mod fleet;
pub mod http;
pub mod limit;
pub mod link;
pub mod listeners;
pub mod load;
pub mod processes;
pub mod redis;
pub mod rest;
pub mod serve;
pub mod terminal;
pub mod webdis;
