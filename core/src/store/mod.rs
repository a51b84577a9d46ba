//! How counts are kept: state as bytes, and a table of fixed size.

pub mod codec;
pub mod slots;
