//! The numbers below the figure.

use yew::prelude::*;

use crate::state::readouts::Readout;

/// What the readouts need to know.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The numbers, in order.
    pub readouts: Vec<Readout>,
}

/// A list of numbers, each with its name and unit.
#[component]
pub fn Readouts(props: &Props) -> Html {
    html! {
        <dl class="readouts">
            for readout in &props.readouts {
                <div class={classes!("readout", readout.name)}>
                    <dt>{ readout.label }</dt>
                    <dd>
                        <output data-readout={readout.name} aria-live="off">{ &readout.value }</output>
                        { " " }
                        <span class="unit">{ readout.unit }</span>
                    </dd>
                </div>
            }
        </dl>
    }
}
