//! The switch between light and dark: the system's choice, or one that is remembered.

use web_sys::Element;
use yew::prelude::*;

/// Where the choice is remembered.
const KEY: &str = "weir-theme";

/// What the switch needs to know.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// Whether the page is dark now.
    pub dark: bool,
    /// Called after the theme changed.
    pub on_change: Callback<()>,
}

/// A button that turns the page light or dark.
#[component]
pub fn ThemeSwitch(props: &Props) -> Html {
    let dark = props.dark;
    let on_change = props.on_change.clone();
    let onclick = move |_: MouseEvent| {
        choose(if dark { "light" } else { "dark" });
        on_change.emit(());
    };
    html! {
        <button type="button" class="theme" data-press="theme" {onclick}>
            { if dark { "Light theme" } else { "Dark theme" } }
        </button>
    }
}

/// The chosen theme; `None` while the system decides.
#[must_use]
pub fn chosen() -> Option<String> {
    root()?.get_attribute("data-theme")
}

/// Sets a theme and remembers it. Without storage it lasts as long as the page.
fn choose(theme: &str) {
    if let Some(root) = root() {
        let _ = root.set_attribute("data-theme", theme);
    }
    let storage = web_sys::window().and_then(|window| window.local_storage().ok().flatten());
    if let Some(storage) = storage {
        let _ = storage.set_item(KEY, theme);
    }
}

fn root() -> Option<Element> {
    web_sys::window()?.document()?.document_element()
}
