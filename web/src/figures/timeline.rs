//! The last ten seconds: the level, and below it every request. Time runs from left to right.

use super::{
    bucket::{Layout, share},
    scene::{Align, Ink, Mark, Point, Scene, Size},
};
use crate::state::scenario::{Scenario, WINDOW};

/// Draws the history at the foot of the figure.
pub fn draw(scene: &mut Scene, layout: &Layout, scenario: &Scenario) {
    let axis = Axis::new(layout, scenario.clock());
    frame(scene, layout, &axis, scenario);
    curve(scene, layout, &axis, scenario);
    marks(scene, layout, &axis, scenario);
    playhead(scene, layout, &axis, scenario);
}

/// Maps simulated time to pixels.
struct Axis {
    from: u64,
    left: f64,
    right: f64,
}

impl Axis {
    /// The first 10 s, then the last 10 s.
    fn new(layout: &Layout, clock: u64) -> Self {
        let (left, right) = layout.edges;
        Self { from: clock.saturating_sub(WINDOW), left: left + 30.0, right: right - 8.0 }
    }

    fn x(&self, at: u64) -> f64 {
        self.left + (self.right - self.left) * share(at.saturating_sub(self.from), WINDOW)
    }
}

fn height(layout: &Layout, milli: u64, capacity: u64) -> f64 {
    let (top, bottom) = layout.history;
    bottom - (bottom - top) * share(milli, capacity.saturating_mul(1_000))
}

fn frame(scene: &mut Scene, layout: &Layout, axis: &Axis, scenario: &Scenario) {
    let (top, bottom) = layout.history;
    let capacity = scenario.settings().capacity;
    let label = axis.left - 8.0;
    let title = "tokens over the last 10 s";
    scene.text((axis.left, top - 12.0), title, Ink::Muted, Size::Small, Align::Start);
    scene.text((label, top + 4.0), capacity.to_string(), Ink::Muted, Size::Small, Align::End);
    scene.text((label, bottom + 4.0), "0", Ink::Muted, Size::Small, Align::End);
    scene.line(&[(axis.left, top), (axis.right, top)], Ink::Ink, 1.0);
    scene.line(&[(axis.left, bottom), (axis.right, bottom)], Ink::Rule, 1.0);
    let every: u64 = if layout.wide { 1_000_000 } else { 2_000_000 };
    let mut at = axis.from.div_ceil(every).saturating_mul(every);
    while at <= axis.from.saturating_add(WINDOW) {
        let x = axis.x(at);
        scene.line(&[(x, bottom), (x, bottom + 4.0)], Ink::Rule, 1.0);
        let text = format!("{} s", at / 1_000_000);
        scene.text((x, bottom + 42.0), text, Ink::Muted, Size::Small, Align::Middle);
        at = at.saturating_add(every);
    }
}

fn curve(scene: &mut Scene, layout: &Layout, axis: &Axis, scenario: &Scenario) {
    let capacity = scenario.settings().capacity;
    let points: Vec<Point> = scenario
        .levels()
        .iter()
        .map(|level| (axis.x(level.at), height(layout, level.milli, capacity)))
        .collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let bottom = layout.history.1;
    let mut area = vec![(first.0, bottom)];
    area.extend_from_slice(&points);
    area.push((last.0, bottom));
    scene.marks.push(Mark::Area { points: area, ink: Ink::Shallow });
    scene.line(&points, Ink::Water, 1.5);
}

/// One sign per request: passed above, refused below, so that neither hides the other.
fn marks(scene: &mut Scene, layout: &Layout, axis: &Axis, scenario: &Scenario) {
    let bottom = layout.history.1;
    let radius = if layout.wide { 3.0 } else { 2.0 };
    for record in scenario.records().iter().filter(|record| record.at >= axis.from) {
        let y = bottom + if record.is_allowed() { 11.0 } else { 22.0 };
        scene.verdict((axis.x(record.at), y), radius, record.is_allowed());
    }
}

fn playhead(scene: &mut Scene, layout: &Layout, axis: &Axis, scenario: &Scenario) {
    let (top, bottom) = layout.history;
    let x = axis.x(scenario.clock());
    scene.line(&[(x, top - 6.0), (x, bottom + 27.0)], Ink::Ink, 1.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{scenario::Action, settings::Settings};

    #[test]
    fn the_axis_shows_the_first_ten_seconds_and_then_the_last_ten() {
        let layout = Layout::new(800.0, 460.0);
        let early = Axis::new(&layout, 4_000_000);
        assert_eq!((early.x(0), early.x(10_000_000)), (early.left, early.right));
        let late = Axis::new(&layout, 25_000_000);
        assert_eq!((late.x(15_000_000), late.x(25_000_000)), (late.left, late.right));
    }

    #[test]
    fn every_request_of_the_window_has_its_sign() {
        let mut scenario = Scenario::new(Settings::default()).unwrap();
        scenario.apply(Action::Advance(60_000_000));
        let layout = Layout::new(800.0, 460.0);
        let mut scene = Scene::default();
        marks(&mut scene, &layout, &Axis::new(&layout, scenario.clock()), &scenario);
        let crosses = scene.marks.iter().filter(|mark| matches!(mark, Mark::Cross { .. })).count();
        assert_eq!((scene.marks.len(), crosses), (60, 20));
    }
}
