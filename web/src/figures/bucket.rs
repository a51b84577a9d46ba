//! The figure of one token bucket: where things stand, and the bucket itself.

use super::{
    flow,
    scene::{Align, Ink, Point, Scene, Size},
    timeline,
};
use crate::state::{scenario::Scenario, text::tokens};

/// Where the parts of the figure are, in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Size of the canvas.
    pub size: Point,
    /// Whether there is room for words beside the bucket.
    pub wide: bool,
    /// Left and right edge of what is drawn.
    pub edges: (f64, f64),
    /// The middle of bucket and gate.
    pub axis: f64,
    /// Half the width of the bucket.
    pub half: f64,
    /// Top and bottom of a full bucket.
    pub bucket: (f64, f64),
    /// The height at which requests arrive and pass.
    pub lane: f64,
    /// The height at which refused requests leave.
    pub exit: f64,
    /// Where the lanes end and their totals begin.
    pub lane_end: f64,
    /// Top and bottom of the level's history.
    pub history: (f64, f64),
    /// Radius of a request.
    pub dot: f64,
}

impl Layout {
    /// The layout for a canvas of this size.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        let wide = width >= 560.0;
        let margin = if wide { 24.0 } else { 8.0 };
        Self {
            size: (width, height),
            wide,
            edges: (margin, width - margin),
            axis: if wide { width * 0.37 } else { width * 0.4 },
            half: if wide { 80.0 } else { 44.0 },
            bucket: (72.0, if wide { 208.0 } else { 184.0 }),
            lane: if wide { 260.0 } else { 236.0 },
            exit: if wide { 312.0 } else { 284.0 },
            lane_end: width - margin - if wide { 152.0 } else { 64.0 },
            history: (height - if wide { 152.0 } else { 128.0 }, height - 56.0),
            dot: if wide { 5.0 } else { 4.0 },
        }
    }

    /// The height of a level in the bucket, of a full one and in thousandths of a token.
    #[must_use]
    pub fn level(&self, milli: u64, capacity: u64) -> f64 {
        let (top, bottom) = self.bucket;
        bottom - (bottom - top) * share(milli, capacity.saturating_mul(1_000))
    }
}

/// A part of a whole as a share from 0 to 1, for placing things.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

/// The picture of a scenario. With `moving` off, nothing in it depends on motion.
#[must_use]
pub fn scene(scenario: &Scenario, width: f64, height: f64, moving: bool) -> Scene {
    let layout = Layout::new(width, height);
    let mut scene = Scene { width, height, marks: Vec::new() };
    flow::lanes(&mut scene, &layout, scenario);
    refill(&mut scene, &layout, scenario, moving);
    water(&mut scene, &layout, scenario);
    walls(&mut scene, &layout, scenario);
    if moving {
        flow::arriving(&mut scene, &layout, scenario);
        flow::decided(&mut scene, &layout, scenario);
    }
    flow::gate(&mut scene, &layout);
    flow::latest(&mut scene, &layout, scenario);
    timeline::draw(&mut scene, &layout, scenario);
    scene
}

/// One block per token; the last one grows until it is whole.
fn water(scene: &mut Scene, layout: &Layout, scenario: &Scenario) {
    let capacity = scenario.settings().capacity;
    let level = scenario.level();
    let whole = level / 1_000;
    let gap = if capacity > 15 { 1.0 } else { 2.0 };
    let (left, right) = (layout.axis - layout.half + 4.0, layout.axis + layout.half - 4.0);
    for token in 0..whole {
        let from = layout.level(token.saturating_mul(1_000), capacity);
        let to = layout.level(token.saturating_add(1).saturating_mul(1_000), capacity);
        scene.block((left, to + gap), (right, from), Ink::Water);
    }
    let (from, to) =
        (layout.level(whole.saturating_mul(1_000), capacity), layout.level(level, capacity));
    if from - to > gap {
        scene.block((left, to + gap), (right, from), Ink::Shallow);
    }
}

/// The walls, the capacity line and the level.
fn walls(scene: &mut Scene, layout: &Layout, scenario: &Scenario) {
    let (top, bottom) = layout.bucket;
    let (left, right) = (layout.axis - layout.half, layout.axis + layout.half);
    let neck = 10.0;
    let mouth = bottom + 18.0;
    let wall = |side: f64, edge: f64| {
        vec![
            (edge, top - 10.0),
            (edge, bottom + 3.0),
            (layout.axis + side * neck, bottom + 3.0),
            (layout.axis + side * neck, mouth),
        ]
    };
    scene.line(&wall(-1.0, left), Ink::Ink, 2.0);
    scene.line(&wall(1.0, right), Ink::Ink, 2.0);
    scene.line(&[(left - 8.0, top), (right + 8.0, top)], Ink::Ink, 1.0);

    let capacity = scenario.settings().capacity;
    ticks(scene, layout, capacity);
    let level = scenario.level();
    let y = layout.level(level, capacity);
    let label = left - 14.0;
    if layout.wide {
        let text = format!("capacity {capacity} tok");
        scene.text((label, top + 4.0), text, Ink::Muted, Size::Small, Align::End);
    } else {
        scene.text((label, top + 4.0), capacity.to_string(), Ink::Muted, Size::Small, Align::End);
    }
    let y = (y + 5.0).clamp(top + 24.0, bottom + 3.0);
    scene.bold((label, y), format!("{} tok", tokens(level)), Ink::Ink, Size::Body, Align::End);
}

/// A scale on the right wall: one tick per token, or per five where they would crowd.
fn ticks(scene: &mut Scene, layout: &Layout, capacity: u64) {
    let right = layout.axis + layout.half;
    let every = if capacity > 15 { 5 } else { 1 };
    let mut token = every;
    while token < capacity {
        let y = layout.level(token.saturating_mul(1_000), capacity);
        scene.line(&[(right, y), (right + 6.0, y)], Ink::Muted, 1.0);
        token = token.saturating_add(every);
    }
}

/// Time a drop falls from the spout, in microseconds.
const FALL: u64 = 350_000;

/// The refill: one drop per token.
fn refill(scene: &mut Scene, layout: &Layout, scenario: &Scenario, moving: bool) {
    let rate = scenario.settings().refill;
    let (axis, spout) = (layout.axis, 32.0);
    scene.line(&[(axis - 7.0, 0.0), (axis - 7.0, spout)], Ink::Ink, 2.0);
    scene.line(&[(axis + 7.0, 0.0), (axis + 7.0, spout)], Ink::Ink, 2.0);
    let text = format!("refill {rate} tok/s");
    let at = (axis + 18.0, spout - 4.0);
    scene.text(at, text, Ink::Muted, Size::Small, Align::Start);
    let surface = layout.level(scenario.level(), scenario.settings().capacity);
    if !moving {
        scene.dashes(&[(axis, spout + 4.0), (axis, surface - 4.0)], Ink::Water, 2.0);
        return;
    }
    for age in drops(scenario.clock(), rate) {
        let fallen = share(age, FALL);
        let y = spout + (surface - spout - 8.0).max(0.0) * fallen * fallen;
        scene.line(&[(axis, y), (axis, y + 8.0)], Ink::Water, 3.0);
    }
}

/// The ages of the drops in the air: drop k leaves the spout at k / rate seconds.
fn drops(clock: u64, rate: u64) -> Vec<u64> {
    let period = 1_000_000_u64.checked_div(rate).unwrap_or(u64::MAX).max(1);
    let newest = clock % period;
    (0..)
        .map(|k: u64| newest.saturating_add(k.saturating_mul(period)))
        .take_while(|age| *age < FALL && *age <= clock)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        figures::scene::Mark,
        state::{scenario::Action, settings::Settings},
    };

    fn run(settings: Settings, micros: u64) -> Scenario {
        let mut scenario = Scenario::new(settings).unwrap();
        scenario.apply(Action::Advance(micros));
        scenario
    }

    fn blocks(scene: &Scene, wanted: Ink) -> usize {
        // As wide as the bucket, unlike a falling token or the history.
        let of = |mark: &&Mark| match mark {
            Mark::Area { points, ink } if *ink == wanted => {
                points.len() == 4 && points[1].0 - points[0].0 > 100.0
            }
            _ => false,
        };
        scene.marks.iter().filter(of).count()
    }

    #[test]
    fn a_full_bucket_shows_one_block_per_token() {
        for capacity in [1, 3, 10, 30] {
            let full = run(Settings { capacity, ..Settings::default() }, 0);
            assert_eq!(blocks(&scene(&full, 872.0, 528.0, true), Ink::Water) as u64, capacity);
        }
    }

    #[test]
    fn a_part_of_a_token_is_drawn_as_not_yet_whole() {
        let mut drained = run(Settings::default(), 4_666_666);
        drained.apply(Action::Step);
        let scene = scene(&drained, 872.0, 528.0, true);
        assert_eq!((blocks(&scene, Ink::Water), blocks(&scene, Ink::Shallow)), (0, 1));
    }

    #[test]
    fn requests_leave_by_different_exits_with_different_shapes() {
        let scene = scene(&run(Settings::default(), 8_000_000), 872.0, 528.0, true);
        let layout = Layout::new(872.0, 528.0);
        let beyond = |at: &Point| at.0 > layout.axis + 40.0 && at.0 < layout.lane_end;
        let mut seen = (false, false);
        for mark in &scene.marks {
            match mark {
                Mark::Disc { at, filled: true, .. } if beyond(at) && at.1 == layout.lane => {
                    seen.0 = true;
                }
                Mark::Cross { at, .. } if beyond(at) && at.1 == layout.exit => seen.1 = true,
                _ => {}
            }
        }
        assert_eq!(seen, (true, true));
    }

    #[test]
    fn without_motion_no_request_is_on_its_way() {
        let still = scene(&run(Settings::default(), 8_000_000), 872.0, 528.0, false);
        let layout = Layout::new(872.0, 528.0);
        let hollow = |mark: &Mark| matches!(mark, Mark::Disc { filled: false, at, .. } if at.0 > layout.edges.0 + 20.0);
        assert!(!still.marks.iter().any(hollow));
    }

    #[test]
    fn everything_stays_on_the_canvas_from_phone_to_desktop() {
        for (width, height) in [(286.0, 478.0), (560.0, 526.0), (872.0, 526.0), (1_200.0, 526.0)] {
            let scene = scene(&run(Settings::default(), 12_345_000), width, height, true);
            let inside =
                |at: &Point| (0.0..=width).contains(&at.0) && (0.0..=height).contains(&at.1);
            for mark in &scene.marks {
                let fine = match mark {
                    Mark::Line { points, .. } | Mark::Area { points, .. } => {
                        points.iter().all(inside)
                    }
                    Mark::Disc { at, .. } | Mark::Cross { at, .. } | Mark::Text { at, .. } => {
                        inside(at)
                    }
                };
                assert!(fine, "{mark:?} at width {width}");
            }
        }
    }

    #[test]
    fn drops_leave_the_spout_at_the_refill_rate() {
        assert_eq!(drops(1_100_000, 4), [100_000]);
        assert_eq!(drops(1_000_000, 20).len(), 7);
        assert_eq!(drops(0, 4), [0]);
    }
}
