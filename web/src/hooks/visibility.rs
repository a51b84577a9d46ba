//! Whether an element can be seen: on screen, in a tab that is shown.

use js_sys::Array;
use wasm_bindgen::{JsCast, closure::Closure};
use web_sys::{Document, Element, IntersectionObserver, IntersectionObserverEntry};
use yew::prelude::*;

use super::Listener;

/// Whether the element is on screen and its tab is shown.
#[hook]
pub fn use_visibility(node: &NodeRef) -> bool {
    let on_screen = use_state_eq(|| true);
    let shown = use_state_eq(|| document().is_none_or(|document| !document.hidden()));
    let (set_on_screen, set_shown) = (on_screen.setter(), shown.setter());
    use_effect_with(node.clone(), move |node| {
        let watch = node.cast::<Element>().and_then(|it| Watch::start(&it, set_on_screen));
        move || drop(watch)
    });
    use_effect_with((), move |()| {
        let listener = document().map(|document| {
            let current = document.clone();
            Listener::new(&document, "visibilitychange", move |_| set_shown.set(!current.hidden()))
        });
        move || drop(listener)
    });
    *on_screen && *shown
}

fn document() -> Option<Document> {
    web_sys::window()?.document()
}

/// A running observer; dropping it stops it.
struct Watch {
    observer: IntersectionObserver,
    _closure: Closure<dyn FnMut(Array)>,
}

impl Watch {
    fn start(element: &Element, setter: UseStateSetter<bool>) -> Option<Self> {
        let closure = Closure::<dyn FnMut(Array)>::new(move |entries: Array| {
            // The last entry is the newest.
            let entry = entries.pop().dyn_into::<IntersectionObserverEntry>();
            if let Ok(entry) = entry {
                setter.set(entry.is_intersecting());
            }
        });
        let observer = IntersectionObserver::new(closure.as_ref().unchecked_ref()).ok()?;
        observer.observe(element);
        Some(Self { observer, _closure: closure })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.observer.disconnect();
    }
}
