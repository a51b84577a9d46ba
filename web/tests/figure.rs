//! The app mounted in a real browser: controls, keys, canvas, words.
#![cfg(target_arch = "wasm32")]

use std::cell::Cell;

use js_sys::Promise;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};
use web_sys::{
    Document, Element, HtmlCanvasElement, HtmlElement, HtmlInputElement, InputEvent,
    InputEventInit, KeyboardEvent, KeyboardEventInit, Window,
};
use weir_web::{
    app::{App, Props},
    state::{scenario::Scenario, settings::Settings},
};

wasm_bindgen_test_configure!(run_in_browser);

/// The most frames a test waits for the page to say something.
const PATIENCE: u32 = 600;

fn window() -> Window {
    web_sys::window().unwrap()
}

fn document() -> Document {
    window().document().unwrap()
}

/// Waits for the next frame.
async fn frame() {
    let promise = Promise::new(&mut |resolve, _| {
        window().request_animation_frame(&resolve).unwrap();
    });
    JsFuture::from(promise).await.unwrap();
}

/// A mounted app, removed when dropped.
struct Page {
    root: Element,
    handle: Cell<Option<yew::AppHandle<App>>>,
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.destroy();
        }
        self.root.remove();
    }
}

impl Page {
    /// Mounts the app, waits until it has drawn, pauses and resets it.
    async fn paused() -> Self {
        let root = document().create_element("div").unwrap();
        root.set_attribute("id", "app").unwrap();
        document().body().unwrap().append_child(&root).unwrap();
        let scenario = Scenario::new(Settings::default()).unwrap();
        let props = Props { scenario, theme_slot: None };
        let handle = yew::Renderer::<App>::with_root_and_props(root.clone(), props).render();
        let page = Self { root, handle: Cell::new(Some(handle)) };
        page.until("the app to mount", |page| page.find("[data-press=play]").is_some()).await;
        if page.text("[data-press=play]") == "Pause" {
            page.press("play").await;
        }
        page.press("reset").await;
        page.until("the clock to be reset", |page| page.readout("clock") == "0.000").await;
        page
    }

    fn find(&self, selector: &str) -> Option<HtmlElement> {
        self.root.query_selector(selector).unwrap().map(|found| found.dyn_into().unwrap())
    }

    fn get(&self, selector: &str) -> HtmlElement {
        self.find(selector).unwrap_or_else(|| panic!("no {selector}"))
    }

    fn text(&self, selector: &str) -> String {
        self.get(selector).text_content().unwrap_or_default().trim().to_owned()
    }

    fn readout(&self, name: &str) -> String {
        self.text(&format!("[data-readout={name}]"))
    }

    fn input(&self, setting: &str, kind: &str) -> HtmlInputElement {
        self.get(&format!("[data-setting={setting}] input[type={kind}]")).dyn_into().unwrap()
    }

    async fn press(&self, name: &str) {
        self.get(&format!("[data-press={name}]")).click();
        frame().await;
    }

    async fn enter(&self, setting: &str, kind: &str, value: &str) {
        let input = self.input(setting, kind);
        input.set_value(value);
        let init = InputEventInit::new();
        init.set_bubbles(true);
        let event = InputEvent::new_with_event_init_dict("input", &init).unwrap();
        input.dispatch_event(&event).unwrap();
        frame().await;
    }

    async fn key(&self, key: &str) {
        let init = KeyboardEventInit::new();
        init.set_key(key);
        init.set_bubbles(true);
        init.set_cancelable(true);
        let event = KeyboardEvent::new_with_keyboard_event_init_dict("keydown", &init).unwrap();
        let unhandled = self.get("[data-stage]").dispatch_event(&event).unwrap();
        assert!(!unhandled, "the figure keeps the key {key:?} from scrolling the page");
        frame().await;
    }

    /// Waits, frame by frame, until a condition holds.
    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..PATIENCE {
            if holds(self) {
                return;
            }
            frame().await;
        }
        panic!("waited in vain for {what}; the page says: {}", self.root.text_content().unwrap());
    }
}

#[wasm_bindgen_test]
async fn a_minute_by_skipping_shows_the_numbers_of_the_core() {
    let page = Page::paused().await;
    for _ in 0..6 {
        page.press("skip").await;
    }
    page.until("a minute", |page| page.readout("clock") == "60.000").await;
    assert_eq!((page.readout("allowed"), page.readout("refused")), ("249".into(), "111".into()));
    assert_eq!(page.readout("refused-recent"), "33");
    assert!(page.text("[data-caption]").contains("about 33% of requests get 429"));
}

#[wasm_bindgen_test]
async fn the_keys_step_burst_reset_and_play() {
    let page = Page::paused().await;
    page.key("ArrowRight").await;
    page.key("ArrowRight").await;
    page.until("two steps", |page| page.readout("allowed") == "2").await;
    page.key("Home").await;
    page.until("a reset", |page| page.readout("allowed") == "0").await;
    page.key("b").await;
    page.until("a burst", |page| page.readout("refused") == "2").await;
    assert!(page.text("[data-caption]").starts_with("Burst of 12: 10 passed, 2 got 429."));
    page.key(" ").await;
    page.until("time to run", |page| page.readout("clock").as_str() > "0.200").await;
    assert_eq!(page.text("[data-press=play]"), "Pause");
    page.key(" ").await;
    page.until("a pause", |page| page.text("[data-press=play]") == "Play").await;
}

#[wasm_bindgen_test]
async fn slider_and_number_field_show_one_value() {
    let page = Page::paused().await;
    page.enter("capacity", "range", "3").await;
    page.until("the field to follow", |page| page.input("capacity", "number").value() == "3").await;
    page.enter("traffic", "number", "1").await;
    page.until("the slider to follow", |page| page.input("traffic", "range").value() == "1").await;
    let spoken = page.input("traffic", "range").get_attribute("aria-valuetext");
    assert_eq!(spoken.as_deref(), Some("1 request per second"));
    page.press("burst").await;
    page.until("the small burst", |page| page.readout("refused") == "9").await;
}

#[wasm_bindgen_test]
async fn a_number_outside_the_range_changes_nothing() {
    let page = Page::paused().await;
    page.enter("refill", "number", "99").await;
    page.enter("refill", "number", "").await;
    frame().await;
    assert_eq!(page.input("refill", "range").value(), "4");
}

#[wasm_bindgen_test]
async fn the_canvas_is_as_sharp_as_the_screen_and_has_words() {
    let page = Page::paused().await;
    let canvas: HtmlCanvasElement = page.get("canvas").dyn_into().unwrap();
    let ratio = window().device_pixel_ratio();
    let sharp = |canvas: &HtmlCanvasElement| {
        f64::from(canvas.width()) == (f64::from(canvas.client_width()) * ratio).round()
    };
    page.until("the first drawing", |_| sharp(&canvas)).await;
    assert_eq!(canvas.get_attribute("role").as_deref(), Some("img"));
    assert!(canvas.get_attribute("aria-label").unwrap().starts_with("Token bucket after"));
}

#[wasm_bindgen_test]
async fn the_table_lists_the_burst() {
    let page = Page::paused().await;
    page.press("burst").await;
    page.get("details summary").click();
    page.until("twelve lines", |page| {
        page.root.query_selector_all("tbody tr").unwrap().length() == 12
    })
    .await;
    assert_eq!(page.text("tbody tr:first-child td.refused"), "✕ 429");
}
