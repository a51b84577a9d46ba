//! Media queries as state; above all, whether the reader wants less motion.

use yew::prelude::*;

use super::Listener;

/// Whether the reader asked for less motion.
#[hook]
pub fn use_reduced_motion() -> bool {
    use_media("(prefers-reduced-motion: reduce)")
}

/// Whether a media query matches, followed as it changes.
#[hook]
pub fn use_media(query: &'static str) -> bool {
    let matches = use_state_eq(|| list(query).is_some_and(|list| list.matches()));
    let setter = matches.setter();
    use_effect_with(query, move |query| {
        let query = *query;
        let listener = list(query).map(|list| {
            let current = list.clone();
            Listener::new(&list, "change", move |_| setter.set(current.matches()))
        });
        move || drop(listener)
    });
    *matches
}

fn list(query: &str) -> Option<web_sys::MediaQueryList> {
    web_sys::window()?.match_media(query).ok()?
}
