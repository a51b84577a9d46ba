//! The last requests as a table: what the canvas shows, for reading.

use web_sys::Element;
use yew::prelude::*;

use crate::state::readouts::Row;

/// What the table needs to know.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The lines, the newest first; may be empty while the table is closed.
    pub rows: Vec<Row>,
    /// Called with whether the table is open.
    pub on_toggle: Callback<bool>,
}

/// A table that opens on demand.
#[component]
pub fn Table(props: &Props) -> Html {
    let on_toggle = props.on_toggle.clone();
    let toggle = move |event: Event| {
        if let Some(details) = event.target_dyn_into::<Element>() {
            on_toggle.emit(details.has_attribute("open"));
        }
    };
    html! {
        <details class="table" ontoggle={toggle}>
            <summary>{ "View as table" }</summary>
            <table>
                <caption>{ "The last 20 requests, the newest first" }</caption>
                <thead>
                    <tr>
                        <th scope="col">{ "No." }</th>
                        <th scope="col">{ "Time, s" }</th>
                        <th scope="col">{ "Answer" }</th>
                        <th scope="col">{ "Tokens left" }</th>
                        <th scope="col">{ "Retry-After, s" }</th>
                    </tr>
                </thead>
                <tbody>
                    for row in &props.rows {
                        <tr key={row.number.clone()}>{ cells(row) }</tr>
                    }
                </tbody>
            </table>
        </details>
    }
}

fn cells(row: &Row) -> Html {
    let (class, answer) = if row.allowed { ("allowed", "● 200") } else { ("refused", "✕ 429") };
    html! {
        <>
            <td>{ &row.number }</td>
            <td>{ &row.time }</td>
            <td {class}>{ answer }</td>
            <td>{ &row.left }</td>
            <td>{ &row.retry_after }</td>
        </>
    }
}
