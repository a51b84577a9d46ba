//! What the browser tells the page: frames, visibility, size, and the reader's preferences.

mod animation_frame;
mod fonts;
mod listener;
mod reduced_motion;
mod size;
mod visibility;

pub use animation_frame::use_animation_frame;
pub use fonts::use_fonts;
pub use listener::Listener;
pub use reduced_motion::{use_media, use_reduced_motion};
pub use size::use_size;
pub use visibility::use_visibility;
