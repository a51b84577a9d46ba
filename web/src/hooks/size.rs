//! The size of an element in CSS pixels, followed as it changes.

use js_sys::Array;
use wasm_bindgen::{JsCast, closure::Closure};
use web_sys::{Element, ResizeObserver};
use yew::prelude::*;

/// Width and height of the element's content box; zero before the first measurement.
#[hook]
pub fn use_size(node: &NodeRef) -> (f64, f64) {
    let size = use_state_eq(|| (0.0, 0.0));
    let setter = size.setter();
    use_effect_with(node.clone(), move |node| {
        let watch = node.cast::<Element>().and_then(|element| Watch::start(element, setter));
        move || drop(watch)
    });
    *size
}

/// A running observer; dropping it stops it.
struct Watch {
    observer: ResizeObserver,
    _closure: Closure<dyn FnMut(Array)>,
}

impl Watch {
    fn start(element: Element, setter: UseStateSetter<(f64, f64)>) -> Option<Self> {
        let target = element.clone();
        let closure = Closure::<dyn FnMut(Array)>::new(move |_| {
            let size = (f64::from(target.client_width()), f64::from(target.client_height()));
            setter.set(size);
        });
        let observer = ResizeObserver::new(closure.as_ref().unchecked_ref()).ok()?;
        observer.observe(&element);
        Some(Self { observer, _closure: closure })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.observer.disconnect();
    }
}
