//! The figure without a page: what is set, what happened, what is said about it.
//!
//! Nothing here knows the DOM, a clock or a canvas, so all of it runs in a plain test.

pub mod announcer;
pub mod arrivals;
pub mod caption;
pub mod model;
pub mod player;
pub mod readouts;
pub mod record;
pub mod scenario;
pub mod settings;
pub mod text;
