//! A canvas does not redraw by itself when a font arrives.

use yew::prelude::*;

use super::Listener;

/// A number that grows whenever fonts have been loaded.
#[hook]
pub fn use_fonts() -> u32 {
    let loads = use_state_eq(|| 0_u32);
    let setter = loads.setter();
    use_effect_with((), move |()| {
        let fonts = web_sys::window().and_then(|window| window.document()).map(|it| it.fonts());
        let mut count = 0_u32;
        let listener = fonts.map(|fonts| {
            Listener::new(&fonts, "loadingdone", move |_| {
                count = count.wrapping_add(1);
                setter.set(count);
            })
        });
        move || drop(listener)
    });
    *loads
}
