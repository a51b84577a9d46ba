//! The parts of the page around the canvas.

mod caption;
mod controls;
mod experiments;
mod readout;
mod slider;
mod stage;
mod table;
mod theme;

pub use caption::Caption;
pub use controls::{Settings, Transport};
pub use experiments::Experiments;
pub use readout::Readouts;
pub use slider::Slider;
pub use stage::Stage;
pub use table::Table;
pub use theme::{ThemeSwitch, chosen};
