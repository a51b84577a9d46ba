//! The playground of Weir: one token bucket, decided by the code that runs in the proxy.
//!
//! State is plain data ([`state`]), a figure turns it into a scene ([`figures`]), one file draws
//! it, and the page around it is made of [`components`]. The page has no limiter of its own.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod app;
pub mod components;
pub mod figures;
pub mod hooks;
pub mod state;

use wasm_bindgen::prelude::*;

use state::{scenario::Scenario, settings::Settings};

/// Puts the app into an element of the page, and the theme switch into another.
///
/// # Errors
/// A readable reason if the first scenario cannot be built.
#[wasm_bindgen]
pub fn start(root: web_sys::Element, theme_slot: Option<web_sys::Element>) -> Result<(), JsValue> {
    let scenario = Scenario::new(Settings::default())
        .map_err(|reason| JsValue::from_str(&reason.to_string()))?;
    let props = app::Props { scenario, theme_slot };
    yew::Renderer::<app::App>::with_root_and_props(root, props).render();
    Ok(())
}
