//! What the reader can set and press.

use yew::prelude::*;

use super::Slider;
use crate::state::{
    model::Command,
    player::Speed,
    scenario::Action,
    settings::{self, CAPACITY, REFILL, Spacing, TRAFFIC},
};

/// What the settings need to know.
#[derive(Clone, PartialEq, Properties)]
pub struct SettingsProps {
    /// The settings in force.
    pub settings: settings::Settings,
    /// The speed in force.
    pub speed: Speed,
    /// Called with what the reader asks for.
    pub on_command: Callback<Command>,
}

/// The three sliders, the spacing of requests and the speed.
#[component]
pub fn Settings(props: &SettingsProps) -> Html {
    let set = props.settings;
    let on_traffic = use_action(&props.on_command, Action::Traffic);
    let on_refill = use_action(&props.on_command, Action::Refill);
    let on_capacity = use_action(&props.on_command, Action::Capacity);
    html! {
        <div class="settings">
            <Slider
                name="traffic" label="Incoming traffic" unit="req/s" range={TRAFFIC}
                spoken={("request per second", "requests per second")}
                value={set.traffic} on_change={on_traffic}
            />
            <Slider
                name="refill" label="Refill rate" unit="tok/s" range={REFILL}
                spoken={("token per second", "tokens per second")}
                value={set.refill} on_change={on_refill}
            />
            <Slider
                name="capacity" label="Capacity (burst)" unit="tok" range={CAPACITY}
                spoken={("token", "tokens")}
                value={set.capacity} on_change={on_capacity}
            />
            <div class="choices">
                { spacing(set.spacing, &props.on_command) }
                { speed(props.speed, &props.on_command) }
            </div>
        </div>
    }
}

/// A stable callback that turns a slider's value into an action.
#[hook]
fn use_action(on_command: &Callback<Command>, action: fn(u64) -> Action) -> Callback<u64> {
    use_callback(on_command.clone(), move |value, on_command: &Callback<Command>| {
        on_command.emit(Command::Do(action(value)));
    })
}

fn spacing(current: Spacing, on_command: &Callback<Command>) -> Html {
    let choices = [(Spacing::Even, "even", "Even"), (Spacing::Poisson, "poisson", "Poisson")];
    html! {
        <fieldset class="choice">
            <legend>{ "Arrivals" }</legend>
            for (spacing, value, label) in choices {
                { radio("arrivals", value, label, spacing == current,
                    on_command.reform(move |_| Command::Do(Action::Spacing(spacing)))) }
            }
        </fieldset>
    }
}

fn speed(current: Speed, on_command: &Callback<Command>) -> Html {
    html! {
        <fieldset class="choice">
            <legend>{ "Speed" }</legend>
            for speed in Speed::ALL {
                { radio("speed", speed.label(), speed.label(), speed == current,
                    on_command.reform(move |_| Command::Speed(speed))) }
            }
        </fieldset>
    }
}

fn radio(
    name: &'static str,
    value: &'static str,
    label: &'static str,
    checked: bool,
    onchange: Callback<Event>,
) -> Html {
    html! {
        <label>
            <input type="radio" {name} {value} {checked} {onchange} />
            <span>{ label }</span>
        </label>
    }
}

/// What the buttons need to know.
#[derive(Clone, PartialEq, Properties)]
pub struct TransportProps {
    /// Whether time runs.
    pub playing: bool,
    /// Called with what the reader asks for.
    pub on_command: Callback<Command>,
}

/// Pause, step, skip, reset and burst.
#[component]
pub fn Transport(props: &TransportProps) -> Html {
    let playing = props.playing;
    let press = |command: Command| props.on_command.reform(move |_: MouseEvent| command);
    html! {
        <div class="transport" role="group" aria-label="Time and bursts">
            <button type="button" class="primary play" data-press="play" onclick={press(Command::Toggle)}>
                { if playing { "Pause" } else { "Play" } }
            </button>
            <button type="button" data-press="step" disabled={playing} onclick={press(Command::Step)}
                title="Go to the next request (while paused)">
                { "Step" }
            </button>
            <button type="button" data-press="skip" disabled={playing} onclick={press(Command::Skip)}
                title="Let ten seconds pass at once (while paused)">
                { "Skip 10 s" }
            </button>
            <button type="button" data-press="reset" onclick={press(Command::Do(Action::Reset))}
                title="Full bucket, clock and counters at zero; the sliders stay">
                { "Reset" }
            </button>
            <button type="button" class="burst" data-press="burst" onclick={press(Command::Do(Action::Burst))}
                title="Twelve requests at one instant, on top of the traffic">
                { format!("Burst ×{}", settings::BURST) }
            </button>
        </div>
    }
}
