//! The figure as the page sees it: commands go in, a view comes out.

use super::{
    announcer::Announcer,
    caption::caption,
    player::{Player, Speed},
    readouts::{Readout, Row, readouts, rows, summary},
    scenario::{Action, Scenario, WINDOW},
    settings::{Experiment, Settings},
};

/// What the skip button lets pass: 10 s of simulated time.
pub const SKIP: u64 = WINDOW;

/// The summary of the canvas changes at most this often, in real microseconds.
const SUMMARY_PAUSE: u64 = 2_000_000;

/// What a reader can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Changes the scenario.
    Do(Action),
    /// Plays if paused, pauses if playing.
    Toggle,
    /// Goes to the next request, if paused.
    Step,
    /// Lets [`SKIP`] pass, if paused.
    Skip,
    /// Changes the speed.
    Speed(Speed),
    /// Sets up an experiment and plays it, unless motion is reduced.
    Show(Experiment),
    /// Opens or closes the table.
    Table(bool),
}

/// Everything the page writes outside the canvas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The settings in force.
    pub settings: Settings,
    /// Whether time runs.
    pub playing: bool,
    /// How fast.
    pub speed: Speed,
    /// The sentence above the figure.
    pub caption: String,
    /// The numbers beside it.
    pub readouts: Vec<Readout>,
    /// The lines of the table; none while it is closed.
    pub rows: Vec<Row>,
    /// The figure in words.
    pub summary: String,
    /// The last sentence for the live region.
    pub announcement: String,
}

/// A scenario, its player, and what was said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    scenario: Scenario,
    player: Player,
    still: bool,
    table: bool,
    announcer: Announcer,
    announcement: String,
    summary: String,
    summary_at: Option<u64>,
}

impl Model {
    /// A model that plays from the start, or, where motion is reduced, one that stands still
    /// after its first 10 s.
    #[must_use]
    pub fn new(scenario: Scenario, still: bool) -> Self {
        let mut model = Self {
            summary: summary(&scenario),
            scenario,
            player: Player::new(!still),
            still,
            table: false,
            announcer: Announcer::default(),
            announcement: String::new(),
            summary_at: None,
        };
        if still {
            model.finish();
        }
        model
    }

    /// The scenario, for drawing.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Whether moving dots are left out.
    #[must_use]
    pub fn is_still(&self) -> bool {
        self.still
    }

    /// Follows the reader's wish for less motion: stops when it comes up.
    pub fn set_still(&mut self, still: bool) {
        if still && !self.still {
            self.player.play(false);
        }
        self.still = still;
    }

    /// Obeys one command.
    pub fn apply(&mut self, command: Command) {
        let paused = !self.player.is_playing();
        match command {
            Command::Do(action) => self.act(action),
            Command::Toggle => self.player.play(paused),
            Command::Step if paused => self.act(Action::Step),
            Command::Skip if paused => self.act(Action::Advance(SKIP)),
            Command::Step | Command::Skip => {}
            Command::Speed(speed) => self.player.set_speed(speed),
            Command::Show(experiment) => self.show(experiment),
            Command::Table(open) => self.table = open,
        }
    }

    /// Lets the time of one frame pass.
    pub fn frame(&mut self, real: u64) {
        let span = self.player.frame(real);
        if span > 0 {
            self.act(Action::Advance(span));
        }
    }

    /// Frames stop coming: the time until the next one does not count.
    pub fn interrupt(&mut self) {
        self.player.interrupt();
    }

    /// What the page shows at this real time.
    pub fn view(&mut self, real: u64) -> View {
        if let Some(sentence) = self.announcer.take(real) {
            self.announcement = sentence;
        }
        if self.summary_at.is_none_or(|at| real.saturating_sub(at) >= SUMMARY_PAUSE) {
            self.summary = summary(&self.scenario);
            self.summary_at = Some(real);
        }
        View {
            settings: self.scenario.settings(),
            playing: self.player.is_playing(),
            speed: self.player.speed(),
            caption: caption(&self.scenario),
            readouts: readouts(&self.scenario),
            rows: if self.table { rows(&self.scenario) } else { Vec::new() },
            summary: self.summary.clone(),
            announcement: self.announcement.clone(),
        }
    }

    fn act(&mut self, action: Action) {
        self.scenario.apply(action);
        for event in self.scenario.take_events() {
            self.announcer.offer(event);
        }
    }

    fn show(&mut self, experiment: Experiment) {
        self.act(Action::Show(experiment));
        self.player.play(!self.still);
        if self.still {
            self.finish();
        }
    }

    /// The finished timeline that stands in for motion.
    fn finish(&mut self) {
        self.scenario.apply(Action::Advance(WINDOW));
        self.scenario.take_events();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(still: bool) -> Model {
        Model::new(Scenario::new(Settings::default()).unwrap(), still)
    }

    #[test]
    fn with_reduced_motion_the_figure_stands_still_after_ten_seconds() {
        let mut still = model(true);
        let view = still.view(0);
        assert!(!view.playing);
        assert_eq!(still.scenario().clock(), 10_000_000);
        assert!(still.scenario().refused() > 0);
    }

    #[test]
    fn step_and_skip_work_while_paused_only() {
        let mut playing = model(false);
        playing.apply(Command::Step);
        playing.apply(Command::Skip);
        assert_eq!(playing.scenario().clock(), 0);
        playing.apply(Command::Toggle);
        for _ in 0..6 {
            playing.apply(Command::Skip);
        }
        assert_eq!((playing.scenario().allowed(), playing.scenario().refused()), (249, 111));
    }

    #[test]
    fn an_experiment_sets_the_sliders_and_plays() {
        let mut model = model(false);
        model.apply(Command::Toggle);
        model.apply(Command::Show(Experiment::SmallBurst));
        let view = model.view(0);
        assert!(view.playing);
        assert_eq!((view.settings.traffic, view.settings.capacity), (3, 3));
        assert!(view.caption.starts_with("Burst of 12: 3 passed, 9 got 429."));
        assert_eq!(view.announcement, "Burst of 12: 3 passed, 9 got 429.");
    }

    #[test]
    fn the_table_has_lines_only_while_it_is_open() {
        let mut model = model(false);
        model.apply(Command::Do(Action::Burst));
        assert!(model.view(0).rows.is_empty());
        model.apply(Command::Table(true));
        assert_eq!(model.view(0).rows.len(), 12);
    }

    #[test]
    fn the_summary_follows_every_two_seconds() {
        let mut model = model(false);
        let first = model.view(0).summary;
        model.apply(Command::Do(Action::Advance(5_000_000)));
        assert_eq!(model.view(1_000_000).summary, first);
        assert_ne!(model.view(2_000_000).summary, first);
    }
}
