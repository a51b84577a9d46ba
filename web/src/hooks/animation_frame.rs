//! One `requestAnimationFrame` loop that runs only while it is wanted.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use wasm_bindgen::{JsCast, closure::Closure};
use yew::prelude::*;

/// Calls `on_frame` with the frame's time in milliseconds, once per frame while `active`.
///
/// The callback is taken when the loop starts, so it must not hold state of one render.
#[hook]
pub fn use_animation_frame(active: bool, on_frame: Callback<f64>) {
    use_effect_with(active, move |active| {
        let running = active.then(|| Loop::start(on_frame));
        move || drop(running)
    });
}

type Frame = Closure<dyn FnMut(f64)>;

#[derive(Default)]
struct Inner {
    request: Cell<Option<i32>>,
    closure: RefCell<Option<Frame>>,
}

impl Inner {
    fn request(&self) {
        let Some(window) = web_sys::window() else { return };
        let closure = self.closure.borrow();
        let Some(closure) = closure.as_ref() else { return };
        self.request.set(window.request_animation_frame(closure.as_ref().unchecked_ref()).ok());
    }
}

/// A running loop; dropping it cancels the next frame.
struct Loop(Rc<Inner>);

impl Loop {
    fn start(on_frame: Callback<f64>) -> Self {
        let inner = Rc::new(Inner::default());
        let weak = Rc::downgrade(&inner);
        let closure = Frame::new(move |time| {
            on_frame.emit(time);
            if let Some(inner) = weak.upgrade() {
                inner.request();
            }
        });
        inner.closure.replace(Some(closure));
        inner.request();
        Self(inner)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let (Some(window), Some(request)) = (web_sys::window(), self.0.request.take()) {
            let _ = window.cancel_animation_frame(request);
        }
    }
}
