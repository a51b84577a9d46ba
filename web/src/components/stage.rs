//! The canvas with its words and its keys.

use yew::prelude::*;

use crate::state::{model::Command, scenario::Action};

/// What the stage needs to know.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The canvas, for whoever draws.
    pub canvas: NodeRef,
    /// The figure in words.
    pub summary: AttrValue,
    /// Called with what a key asks for.
    pub on_command: Callback<Command>,
}

/// The canvas in a frame that takes focus and obeys keys.
#[component]
pub fn Stage(props: &Props) -> Html {
    let on_command = props.on_command.clone();
    let onkeydown = move |event: KeyboardEvent| {
        let modified = event.ctrl_key() || event.alt_key() || event.meta_key();
        let command = if modified { None } else { command_of(&event.key(), event.repeat()) };
        if let Some(command) = command {
            event.prevent_default();
            on_command.emit(command);
        }
    };
    html! {
        <div
            class="stage" tabindex="0" role="group" aria-label="Token bucket figure"
            aria-describedby="keys" data-stage="" {onkeydown}
        >
            <canvas ref={props.canvas.clone()} role="img" aria-label={props.summary.clone()} />
        </div>
    }
}

/// What a key asks for. A key held down steps on, but does not play, reset or burst again.
fn command_of(key: &str, repeated: bool) -> Option<Command> {
    match key {
        "ArrowRight" => Some(Command::Step),
        _ if repeated => None,
        " " => Some(Command::Toggle),
        "Home" => Some(Command::Do(Action::Reset)),
        "b" | "B" => Some(Command::Do(Action::Burst)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_held_down_only_steps() {
        assert_eq!(command_of("ArrowRight", true), Some(Command::Step));
        assert_eq!(command_of(" ", true), None);
        assert_eq!(command_of(" ", false), Some(Command::Toggle));
        assert_eq!(command_of("b", true), None);
        assert_eq!(command_of("x", false), None);
    }
}
