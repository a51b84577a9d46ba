//! The sentence above the figure and the one live region of the page.

use yew::prelude::*;

/// What the caption needs to know.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The sentence for everyone.
    pub text: AttrValue,
    /// The last sentence for a listener.
    pub announcement: AttrValue,
}

/// The caption, and a polite live region for changes of state.
#[component]
pub fn Caption(props: &Props) -> Html {
    html! {
        <>
            <p class="caption" data-caption="">{ &props.text }</p>
            <p class="visually-hidden" role="status" aria-live="polite">{ &props.announcement }</p>
        </>
    }
}
