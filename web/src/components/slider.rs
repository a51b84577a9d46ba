//! A native slider paired with a number field.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::state::{settings::Range, text::count};

/// What a slider needs to know.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// A stable name.
    pub name: &'static str,
    /// What it sets.
    pub label: &'static str,
    /// The unit as printed.
    pub unit: &'static str,
    /// The unit as spoken, singular and plural.
    pub spoken: (&'static str, &'static str),
    /// The range.
    pub range: Range,
    /// The value in force.
    pub value: u64,
    /// Called with every new value of the range.
    pub on_change: Callback<u64>,
}

/// A slider, its number field and its unit.
#[component]
pub fn Slider(props: &Props) -> Html {
    let Props { name, label, unit, spoken, range, value, on_change } = props.clone();
    let on_input = on_change.reform(move |value: u64| range.clamp(value));
    let from_slider = {
        let on_input = on_input.clone();
        move |event: InputEvent| emit(&event, range, &on_input)
    };
    let from_field = move |event: InputEvent| emit(&event, range, &on_input);
    // A field left empty or out of range shows the value in force again.
    let restore = move |event: Event| {
        if let Some(field) = event.target_dyn_into::<HtmlInputElement>() {
            let typed = field.value().parse().map_or(value, |typed| range.clamp(typed));
            field.set_value(&typed.to_string());
            on_change.emit(typed);
        }
    };
    let id = format!("{name}-slider");
    let (min, max) = (range.min.to_string(), range.max.to_string());
    let text = count(value, spoken.0, spoken.1);
    let field_label = format!("{label}, {}", spoken.1);
    html! {
        <div class="slider" data-setting={name}>
            <label for={id.clone()}>{ label }</label>
            <input
                type="range" {id} min={min.clone()} max={max.clone()} step="1"
                value={value.to_string()} aria-valuetext={text} oninput={from_slider}
            />
            <span class="field">
                <input
                    type="number" inputmode="numeric" {min} {max} step="1"
                    value={value.to_string()} aria-label={field_label}
                    oninput={from_field} onchange={restore}
                />
                <span class="unit" aria-hidden="true">{ unit }</span>
            </span>
        </div>
    }
}

/// Emits what was entered if it is a number of the range.
fn emit(event: &InputEvent, range: Range, on_input: &Callback<u64>) {
    let entered = event
        .target_dyn_into::<HtmlInputElement>()
        .and_then(|input| input.value().parse().ok())
        .filter(|value| range.clamp(*value) == *value);
    if let Some(value) = entered {
        on_input.emit(value);
    }
}
