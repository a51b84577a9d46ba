//! An event listener that ends with its owner.

use wasm_bindgen::{JsCast, closure::Closure};
use web_sys::{Event, EventTarget};

/// A listener on a target; dropping it removes it.
pub struct Listener {
    target: EventTarget,
    event: &'static str,
    closure: Closure<dyn FnMut(Event)>,
}

impl Listener {
    /// Calls `call` on every `event` of `target`.
    pub fn new(
        target: &EventTarget,
        event: &'static str,
        call: impl FnMut(Event) + 'static,
    ) -> Self {
        let closure = Closure::<dyn FnMut(Event)>::new(call);
        // Adding a listener fails only for a callback that is no function.
        let _ = target.add_event_listener_with_callback(event, closure.as_ref().unchecked_ref());
        Self { target: target.clone(), event, closure }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let callback = self.closure.as_ref().unchecked_ref();
        let _ = self.target.remove_event_listener_with_callback(self.event, callback);
    }
}
