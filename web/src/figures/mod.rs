//! From state to picture: scenes are plain data, and one file draws them.

pub mod bucket;
pub mod canvas;
pub mod flow;
pub mod palette;
pub mod scene;
pub mod svg;
pub mod timeline;
