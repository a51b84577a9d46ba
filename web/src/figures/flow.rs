//! Requests on their way: to the gate, through it, or away with a 429.

use super::{
    bucket::{Layout, share},
    scene::{Align, Ink, Mark, Point, Scene, Size},
};
use weir_core::decision::{Decision, Outcome};

use crate::state::{
    record::Record,
    scenario::Scenario,
    settings::Spacing,
    text::{count, seconds},
};

/// Half the width of the gate.
const GATE: f64 = 18.0;
/// The requests of a burst are drawn this far apart in time, in microseconds.
const SPREAD: u64 = 60_000;
/// Time a token falls from the bucket to the gate, in microseconds.
const TOKEN_FALL: u64 = 180_000;
/// The most requests drawn ahead of the gate.
const AHEAD: usize = 60;

/// Time a request takes from the left edge to the gate, in microseconds.
fn approach(layout: &Layout) -> u64 {
    if layout.wide { 1_600_000 } else { 900_000 }
}

/// Pixels per microsecond.
fn pace(layout: &Layout) -> f64 {
    (layout.axis - GATE - layout.edges.0) / approach(layout) as f64
}

/// The lanes and what stands at their ends.
pub fn lanes(scene: &mut Scene, layout: &Layout, scenario: &Scenario) {
    let (left, _) = layout.edges;
    let (axis, lane, exit, end) = (layout.axis, layout.lane, layout.exit, layout.lane_end);
    scene.line(&[(left, lane), (axis - GATE, lane)], Ink::Rule, 1.0);
    scene.line(&[(axis + GATE, lane), (end, lane)], Ink::Rule, 1.0);
    scene.line(&[(axis, lane + GATE), (axis, exit), (end, exit)], Ink::Rule, 1.0);
    let settings = scenario.settings();
    let random = if settings.spacing == Spacing::Poisson { ", at random" } else { "" };
    if layout.wide {
        let text = format!("traffic {} req/s{random}", settings.traffic);
        scene.text((left, lane - 20.0), text, Ink::Muted, Size::Small, Align::Start);
    } else {
        let text = format!("{} req/s", settings.traffic);
        scene.text((left, lane + 26.0), text, Ink::Muted, Size::Small, Align::Start);
    }
    total(scene, layout, lane, true, scenario.allowed());
    total(scene, layout, exit, false, scenario.refused());
}

/// The end of a lane: sign, status and how many left there.
fn total(scene: &mut Scene, layout: &Layout, y: f64, allowed: bool, number: u64) {
    let (status, word) = if allowed { ("200", "allowed") } else { ("429", "refused") };
    let x = layout.lane_end + 14.0;
    scene.verdict((x, y), 6.0, allowed);
    if layout.wide {
        scene.bold((x + 16.0, y + 5.0), status, Ink::Ink, Size::Body, Align::Start);
        let at = (x + 52.0, y + 5.0);
        scene.text(at, format!("{number} {word}"), Ink::Ink, Size::Body, Align::Start);
    } else {
        scene.bold((x + 14.0, y - 1.0), status, Ink::Ink, Size::Small, Align::Start);
        scene.text((x + 14.0, y + 13.0), number.to_string(), Ink::Ink, Size::Small, Align::Start);
    }
}

/// The gate, over the requests in it.
pub fn gate(scene: &mut Scene, layout: &Layout) {
    let (axis, lane) = (layout.axis, layout.lane);
    // Four corners: open to requests from the left, to tokens from above.
    for (side, end) in [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)] {
        let (x, y) = (axis + side * GATE, lane + end * GATE);
        scene.line(&[(x, y - end * 8.0), (x, y), (x - side * 8.0, y)], Ink::Ink, 2.0);
    }
    if layout.wide {
        let at = (axis - GATE - 10.0, lane + 26.0);
        scene.text(at, "gate: 1 token each", Ink::Muted, Size::Small, Align::End);
    }
}

/// The running traffic that has not reached the gate.
pub fn arriving(scene: &mut Scene, layout: &Layout, scenario: &Scenario) {
    let now = scenario.clock();
    let times = scenario.arrivals().upcoming(now.saturating_add(approach(layout)), AHEAD);
    for at in times {
        let ahead = at.saturating_sub(now) as f64 * pace(layout);
        hollow(scene, layout, (layout.axis - GATE - ahead, layout.lane));
    }
}

fn hollow(scene: &mut Scene, layout: &Layout, at: Point) {
    scene.marks.push(Mark::Disc { at, radius: layout.dot, ink: Ink::Ink, filled: false });
}

/// The requests that were decided and are still in sight, the oldest first.
pub fn decided(scene: &mut Scene, layout: &Layout, scenario: &Scenario) {
    for record in scenario.records() {
        let age = scenario.clock().saturating_sub(record.at);
        let waited = u64::from(record.place).saturating_mul(SPREAD);
        match age.checked_sub(waited) {
            Some(age) => leaving(scene, layout, record, age),
            None => {
                // The rest of a burst queues up before the gate, for the eye only.
                let back = waited.saturating_sub(age) as f64 * pace(layout);
                let x = (layout.axis - GATE - back).max(layout.edges.0);
                hollow(scene, layout, (x, layout.lane));
            }
        }
    }
}

/// A request at or after the gate, so long after it was decided.
fn leaving(scene: &mut Scene, layout: &Layout, record: &Record, age: u64) {
    let (axis, lane) = (layout.axis, layout.lane);
    if record.is_allowed() && age < TOKEN_FALL {
        let fallen = share(age, TOKEN_FALL);
        let y = layout.bucket.1 + 8.0 + (lane - layout.bucket.1 - 8.0) * fallen * fallen;
        scene.block((axis - 6.0, y - 3.0), (axis + 6.0, y + 3.0), Ink::Water);
        hollow(scene, layout, (axis - GATE + GATE * fallen, lane));
        return;
    }
    if record.is_allowed() {
        let way = age.saturating_sub(TOKEN_FALL) as f64 * pace(layout);
        if axis + way < layout.lane_end - 4.0 {
            scene.verdict((axis + way, lane), layout.dot, true);
        }
        return;
    }
    let way = age as f64 * pace(layout);
    let at = if way < GATE {
        (axis - GATE + way, lane)
    } else if way < GATE + layout.exit - lane {
        (axis, lane + way - GATE)
    } else {
        (axis + way - GATE - (layout.exit - lane), layout.exit)
    };
    if at.0 < layout.lane_end - 4.0 {
        scene.verdict(at, layout.dot, false);
    }
}

/// The latest response, and when the bucket would answer better.
pub fn latest(scene: &mut Scene, layout: &Layout, scenario: &Scenario) {
    let Some(record) = scenario.records().back() else { return };
    let x = layout.axis + layout.half + if layout.wide { 64.0 } else { 32.0 };
    let y = layout.bucket.0 + 24.0;
    let ink = if record.is_allowed() { Ink::Allowed } else { Ink::Refused };
    let foot = if layout.wide { 84.0 } else { 58.0 };
    scene.line(&[(x - 14.0, y - 14.0), (x - 14.0, y + foot)], ink, 2.0);
    let [title, status, note, more] = if layout.wide { long(record) } else { short(record) };
    scene.text((x, y), title, Ink::Muted, Size::Small, Align::Start);
    scene.bold((x, y + 27.0), status, Ink::Ink, Size::Large, Align::Start);
    scene.text((x, y + 53.0), note, Ink::Ink, Size::Body, Align::Start);
    scene.text((x, y + 78.0), more, Ink::Muted, Size::Small, Align::Start);
}

/// The response in words.
fn long(record: &Record) -> [String; 4] {
    let Decision { outcome, remaining, reset_after, .. } = record.decision;
    let title = format!("request {}, at {} s", record.number, seconds(record.at));
    match outcome {
        Outcome::Allowed | Outcome::Delayed { .. } => [
            title,
            "200 OK".to_owned(),
            count(remaining, "whole token left", "whole tokens left"),
            format!("full again in {} s if nothing else comes", seconds(reset_after.get())),
        ],
        Outcome::Refused { retry_after } => [
            title,
            "429 Too Many Requests".to_owned(),
            format!("Retry-After: {}", retry_after.whole_seconds_up()),
            format!("a whole token is there in {} s", seconds(retry_after.get())),
        ],
        Outcome::Never(_) => {
            [title, "429 Too Many Requests".to_owned(), "can never pass".to_owned(), String::new()]
        }
    }
}

/// The response where there is little room.
fn short(record: &Record) -> [String; 4] {
    let title = format!("no. {}", record.number);
    let note = record.retry_after().map_or_else(
        || format!("{} left", record.decision.remaining),
        |it| format!("retry {it} s"),
    );
    let status = if record.is_allowed() { "200" } else { "429" };
    [title, status.to_owned(), note, String::new()]
}
