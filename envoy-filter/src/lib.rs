//! The limiter of Weir as a proxy-wasm filter.
//!
//! A request flows one way: its headers become [`facts`], [`flow`] asks each limit of the
//! [`plugin`], the [`store`] keeps the counts, and the answer goes on or is sent. Only the files
//! that are built for wasm alone know the proxy: `root` and `http` carry out what `flow` decided,
//! and `host::wasm` makes the calls. Everything else runs natively on [`host::fake`].
//!
//! There are no statics: several plugins, and the old and the new configuration during an update,
//! live in one VM. All state hangs off the root context.

#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unsafe_code
)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod host;

pub mod bridge;

pub mod facts;

pub mod plugin;

pub mod flow;

pub mod store;

pub mod metrics;

#[cfg(target_arch = "wasm32")]
mod http;
#[cfg(target_arch = "wasm32")]
mod limiter;
#[cfg(target_arch = "wasm32")]
mod request;
#[cfg(target_arch = "wasm32")]
mod root;

#[cfg(target_arch = "wasm32")]
mod entry {
    use crate::{
        host::{Level, Log, wasm::Proxy},
        root::Root,
    };

    // The macro exports what a proxy calls first, by an attribute that counts as unsafe code.
    #[allow(unsafe_code)]
    mod exports {
        proxy_wasm::main! {{
            super::start();
        }}
    }

    fn start() {
        // Nothing here panics; if the SDK ever does, its words reach the proxy's log.
        std::panic::set_hook(Box::new(|panic| {
            Proxy.log(Level::Critical, &panic.to_string());
        }));
        proxy_wasm::set_root_context(|_| Box::new(Root::default()));
    }
}
