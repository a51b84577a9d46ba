//! Things to try, each set up by one press.

use yew::prelude::*;

use crate::state::settings::Experiment;

/// What the list needs to know.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// Called with the experiment to show.
    pub on_show: Callback<Experiment>,
}

/// What to try and what to look for.
const EXPERIMENTS: [(Experiment, &str, &str, &str); 4] = [
    (
        Experiment::Drain,
        "drain",
        "Ask for more than comes back",
        "6 requests a second on 4 tokens a second. How long do the 10 saved tokens hide it?",
    ),
    (
        Experiment::Burst,
        "burst",
        "Twelve at once on a full bucket",
        "Traffic stays below the refill rate. How many of the twelve get through?",
    ),
    (
        Experiment::SmallBurst,
        "small-burst",
        "The same twelve, capacity 3",
        "Same average, same refill rate. Only the savings are smaller.",
    ),
    (
        Experiment::Random,
        "random",
        "Calm on average, random in detail",
        "3 requests a second on 4 tokens a second, at random times. Who said nothing is refused?",
    ),
];

/// The experiments as a list of buttons.
#[component]
pub fn Experiments(props: &Props) -> Html {
    html! {
        <ul class="experiments">
            for (experiment, name, title, question) in EXPERIMENTS {
                <li>
                    <h3>{ title }</h3>
                    <p>{ question }</p>
                    <button
                        type="button" class="show" data-show={name}
                        aria-label={format!("Show me: {title}")}
                        onclick={props.on_show.reform(move |_| experiment)}
                    >
                        { "Show me" }
                    </button>
                </li>
            }
        </ul>
    }
}
