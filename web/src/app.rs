//! The figure and everything around it.

use std::{cell::RefCell, rc::Rc};

use wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlCanvasElement, HtmlElement};
use yew::prelude::*;

use crate::{
    components::{
        Caption, Experiments, Readouts, Settings, Stage, Table, ThemeSwitch, Transport, chosen,
    },
    figures::{bucket, canvas, palette::Palette},
    hooks::{
        use_animation_frame, use_fonts, use_media, use_reduced_motion, use_size, use_visibility,
    },
    state::{
        model::{Command, Model, View},
        scenario::Scenario,
        settings::Experiment,
    },
};

/// The numbers outside the canvas change at most this often, in real microseconds.
const REFRESH: u64 = 100_000;
/// With reduced motion the canvas follows once a second.
const STILL_REFRESH: u64 = 1_000_000;

/// What the app begins with.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The first scenario.
    pub scenario: Scenario,
    /// Where the theme switch goes; without a place there is none.
    #[prop_or_default]
    pub theme_slot: Option<Element>,
}

/// The whole app: figure, controls, readouts, experiments, table.
#[component]
pub fn App(props: &Props) -> Html {
    let still = use_reduced_motion();
    let player = use_player(&props.scenario, still);
    let (dark, switch_theme) = use_theme();
    let size = use_size(&player.canvas);
    use_drawing(&player, size, still, dark);
    let view = &*player.view;
    let on_command = &player.on_command;
    html! {
        <>
            if let Some(slot) = props.theme_slot.clone() {
                { create_portal(html! { <ThemeSwitch {dark} on_change={switch_theme} /> }, slot) }
            }
            <figure class="figure" aria-labelledby="figure-title">
                <Caption text={view.caption.clone()} announcement={view.announcement.clone()} />
                <div class="board">
                    <Stage
                        canvas={player.canvas.clone()} summary={view.summary.clone()}
                        on_command={on_command.clone()}
                    />
                    <div class="panel">
                        <Transport playing={view.playing} on_command={on_command.clone()} />
                        <Settings
                            settings={view.settings} speed={view.speed}
                            on_command={on_command.clone()}
                        />
                        { keys() }
                    </div>
                </div>
                <Readouts readouts={view.readouts.clone()} />
                <Table rows={view.rows.clone()} on_toggle={on_command.reform(Command::Table)} />
            </figure>
            <section aria-labelledby="try">
                <h2 id="try">{ "Try this" }</h2>
                <Experiments on_show={show(&player)} />
            </section>
        </>
    }
}

/// Runs an experiment and brings the figure into view and focus, where the keys work.
fn show(player: &Player) -> Callback<Experiment> {
    let canvas = player.canvas.clone();
    let on_command = player.on_command.clone();
    Callback::from(move |experiment| {
        on_command.emit(Command::Show(experiment));
        let stage = canvas.cast::<Element>().and_then(|canvas| canvas.parent_element());
        let Some(stage) = stage.and_then(|stage| stage.dyn_into::<HtmlElement>().ok()) else {
            return;
        };
        if let Ok(Some(figure)) = stage.closest(".figure") {
            figure.scroll_into_view();
        }
        // The page works the same if the browser does not hand over the focus.
        let _ = stage.focus();
    })
}

fn keys() -> Html {
    html! {
        <p class="keys" id="keys">
            { "With the figure in focus: " }
            <kbd>{ "Space" }</kbd>{ " play or pause, " }
            <kbd>{ "→" }</kbd>{ " step, " }
            <kbd>{ "Home" }</kbd>{ " reset, " }
            <kbd>{ "B" }</kbd>{ " burst" }
        </p>
    }
}

/// The running figure as hooks hand it around.
struct Player {
    model: Rc<RefCell<Model>>,
    canvas: NodeRef,
    palette: Rc<RefCell<Palette>>,
    view: UseStateHandle<View>,
    on_command: Callback<Command>,
}

/// Runs the model: commands and frames change it, and its view is refreshed at most ten times a
/// second. Frames draw without rendering.
#[hook]
fn use_player(scenario: &Scenario, still: bool) -> Player {
    let model = {
        let scenario = scenario.clone();
        use_memo((), move |()| RefCell::new(Model::new(scenario, still)))
    };
    let canvas = use_node_ref();
    let palette = use_memo((), |()| RefCell::new(Palette::default()));
    let view = use_state_eq(|| model.borrow_mut().view(now()));
    let visible = use_visibility(&canvas);
    let on_command = {
        let (canvas, setter) = (canvas.clone(), view.setter());
        let (model, palette) = (model.clone(), palette.clone());
        use_callback((), move |command, ()| {
            model.borrow_mut().apply(command);
            draw(&canvas, &model.borrow(), &palette.borrow());
            setter.set(model.borrow_mut().view(now()));
        })
    };
    use_animation_frame(view.playing && visible, {
        let (canvas, setter) = (canvas.clone(), view.setter());
        let (model, palette) = (model.clone(), palette.clone());
        let refreshed = RefCell::new((0, 0));
        model.borrow_mut().interrupt();
        Callback::from(move |time: f64| {
            let real = micros(time);
            let (last_view, last_draw) = *refreshed.borrow();
            model.borrow_mut().frame(real);
            if !model.borrow().is_still() || real.saturating_sub(last_draw) >= STILL_REFRESH {
                draw(&canvas, &model.borrow(), &palette.borrow());
                refreshed.borrow_mut().1 = real;
            }
            if real.saturating_sub(last_view) >= REFRESH {
                setter.set(model.borrow_mut().view(real));
                refreshed.borrow_mut().0 = real;
            }
        })
    });
    Player { model, canvas, palette, view, on_command }
}

/// Draws once whenever the canvas, the theme, the fonts or the wish for motion change.
#[hook]
fn use_drawing(player: &Player, size: (f64, f64), still: bool, dark: bool) {
    let (canvas, setter) = (player.canvas.clone(), player.view.setter());
    let (model, palette) = (player.model.clone(), player.palette.clone());
    let (forced, fonts) = (use_media("(forced-colors: active)"), use_fonts());
    use_effect_with((size, still, dark, forced, fonts), move |(_, still, ..)| {
        model.borrow_mut().set_still(*still);
        if let Some(read) = canvas.cast::<Element>().and_then(|element| Palette::read(&element)) {
            palette.replace(read);
        }
        draw(&canvas, &model.borrow(), &palette.borrow());
        setter.set(model.borrow_mut().view(now()));
    });
}

/// Whether the page is dark, and what to call after the switch was pressed.
#[hook]
fn use_theme() -> (bool, Callback<()>) {
    let system = use_media("(prefers-color-scheme: dark)");
    let choice = use_state_eq(chosen);
    let setter = choice.setter();
    let switch = use_callback((), move |(), ()| setter.set(chosen()));
    let dark = choice.as_deref().map_or(system, |theme| theme == "dark");
    (dark, switch)
}

fn draw(canvas: &NodeRef, model: &Model, palette: &Palette) {
    let Some(canvas) = canvas.cast::<HtmlCanvasElement>() else { return };
    let (width, height) = (f64::from(canvas.client_width()), f64::from(canvas.client_height()));
    if width <= 0.0 || height <= 0.0 {
        return;
    }
    let ratio = web_sys::window().map_or(1.0, |window| window.device_pixel_ratio());
    let scene = bucket::scene(model.scenario(), width, height, !model.is_still());
    // A browser without a 2D context still has the numbers, the table and the summary.
    let _ = canvas::paint(&canvas, &scene, palette, ratio);
}

/// Real time in microseconds, on the clock of frames.
fn now() -> u64 {
    let performance = web_sys::window().and_then(|window| window.performance());
    micros(performance.map_or(0.0, |performance| performance.now()))
}

/// Milliseconds as the browser counts them, in whole microseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, and the page's clock is far from both ends"
)]
fn micros(millis: f64) -> u64 {
    (millis * 1_000.0) as u64
}
