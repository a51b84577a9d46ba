//! The reducer: settings, a bucket, its traffic, and what came of it, in simulated time.
//!
//! Every decision is one call of [`TokenBucket::step`], the function the proxy runs. Time is a
//! whole number of microseconds that only [`Scenario::apply`] moves on.

use std::collections::VecDeque;

use weir_core::{
    limiter::{Algorithm, Ask, Unfit, debt::DebtState, token_bucket::TokenBucket},
    units::{Instant, Micros, Rate},
};

use super::{
    arrivals::Arrivals,
    record::{BurstResult, Event, Record, Source},
    settings::{BURST, CAPACITY, Experiment, REFILL, Settings, Spacing, TRAFFIC},
};

/// How much of the past is kept and drawn: 10 s.
pub const WINDOW: u64 = 10_000_000;
/// Requests kept whatever their age, for the table.
pub const KEPT: usize = 20;

/// One sample of the level is taken at least this often.
const SAMPLE: u64 = 50_000;
/// The most requests kept: more than 10 s of the fastest traffic and many bursts.
const MOST: usize = 4_000;

/// What can happen to the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets the incoming traffic, in requests per second.
    Traffic(u64),
    /// Sets the refill rate, in tokens per second.
    Refill(u64),
    /// Sets the capacity, in tokens.
    Capacity(u64),
    /// Sets how requests are spaced.
    Spacing(Spacing),
    /// Lets so many microseconds pass: `Advance(a)` then `Advance(b)` equals `Advance(a + b)`.
    Advance(u64),
    /// Goes to the next request and decides it.
    Step,
    /// Sends [`BURST`] requests now.
    Burst,
    /// Fills the bucket and sets clock and counters to zero; the settings stay.
    Reset,
    /// Resets with the settings of an experiment.
    Show(Experiment),
}

/// The level of the bucket at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// When, in microseconds of simulated time.
    pub at: u64,
    /// Thousandths of a token.
    pub milli: u64,
}

/// The whole state of the figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    settings: Settings,
    bucket: TokenBucket,
    state: DebtState,
    clock: u64,
    arrivals: Arrivals,
    allowed: u64,
    refused: u64,
    records: VecDeque<Record>,
    levels: VecDeque<Level>,
    emptied: bool,
    burst: Option<BurstResult>,
    events: Vec<Event>,
}

impl Scenario {
    /// A full bucket at time 0.
    ///
    /// # Errors
    /// [`Unfit`] if the settings make no bucket.
    pub fn new(settings: Settings) -> Result<Self, Unfit> {
        let mut scenario = Self {
            settings,
            bucket: bucket_of(&settings)?,
            state: DebtState::NONE,
            clock: 0,
            arrivals: Arrivals::new(&settings),
            allowed: 0,
            refused: 0,
            records: VecDeque::new(),
            levels: VecDeque::new(),
            emptied: false,
            burst: None,
            events: Vec::new(),
        };
        scenario.sample();
        Ok(scenario)
    }

    /// Applies one action. Values outside their slider are moved to its nearer end.
    pub fn apply(&mut self, action: Action) {
        let old = self.settings;
        match action {
            Action::Traffic(value) => {
                self.set(Settings { traffic: TRAFFIC.clamp(value), ..old });
            }
            Action::Refill(value) => self.set(Settings { refill: REFILL.clamp(value), ..old }),
            Action::Capacity(value) => {
                self.set(Settings { capacity: CAPACITY.clamp(value), ..old });
            }
            Action::Spacing(spacing) => self.set(Settings { spacing, ..old }),
            Action::Advance(span) => self.advance(span),
            Action::Step => self.step(),
            Action::Burst => self.send_burst(),
            Action::Reset => self.restart(old),
            Action::Show(experiment) => {
                self.restart(experiment.settings());
                if experiment.bursts() {
                    // The traffic sets in after the burst, so that it cannot be taken for part of it.
                    self.arrivals.restart(&self.settings, self.clock);
                    self.send_burst();
                }
            }
        }
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Simulated time in microseconds.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The traffic still to come.
    #[must_use]
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// Requests that passed since the reset.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Requests that got 429 since the reset.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Recent requests, the oldest first: all of the last [`WINDOW`], and the last [`KEPT`].
    #[must_use]
    pub fn records(&self) -> &VecDeque<Record> {
        &self.records
    }

    /// The level over the last [`WINDOW`], the oldest sample first.
    #[must_use]
    pub fn levels(&self) -> &VecDeque<Level> {
        &self.levels
    }

    /// The level now, in thousandths of a token.
    #[must_use]
    pub fn level(&self) -> u64 {
        let units = self.bucket.level(self.state, self.now());
        units.saturating_mul(1_000).checked_div(self.bucket.units_per_token()).unwrap_or(0)
    }

    /// Whether a request was refused since the bucket was last full.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.emptied
    }

    /// The last burst, until a setting changes.
    #[must_use]
    pub fn burst(&self) -> Option<BurstResult> {
        self.burst
    }

    /// Passed and refused requests of the last [`WINDOW`].
    #[must_use]
    pub fn recent(&self) -> (u64, u64) {
        let since = self.clock.saturating_sub(WINDOW);
        self.records.iter().filter(|record| record.at >= since).fold((0, 0), |(yes, no), record| {
            if record.is_allowed() {
                (yes.saturating_add(1), no)
            } else {
                (yes, no.saturating_add(1))
            }
        })
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.clock)
    }

    fn set(&mut self, settings: Settings) {
        // The sliders allow no unfit bucket; if one did, the figure would keep what it has.
        let Ok(bucket) = bucket_of(&settings) else {
            return;
        };
        let retimed =
            (settings.traffic, settings.spacing) != (self.settings.traffic, self.settings.spacing);
        self.settings = settings;
        self.bucket = bucket;
        if self.clock == 0 {
            self.arrivals = Arrivals::new(&settings);
        } else if retimed {
            self.arrivals.restart(&settings, self.clock);
        }
        self.burst = None;
        // Room for a burst again: no longer a run that lives from hand to mouth.
        self.emptied = self.emptied && self.level() < 2_000;
        self.sample();
    }

    fn restart(&mut self, settings: Settings) {
        if let Ok(fresh) = Self::new(settings) {
            *self = fresh;
        }
    }

    fn advance(&mut self, span: u64) {
        let end = self.clock.saturating_add(span);
        while let Some(at) = self.arrivals.next_at().filter(|at| *at < end) {
            self.move_to(at);
            self.arrivals.pass();
            self.request(Source::Traffic, 0);
        }
        self.move_to(end);
        self.forget();
    }

    fn step(&mut self) {
        if let Some(at) = self.arrivals.next_at() {
            self.move_to(at);
            self.arrivals.pass();
            self.request(Source::Traffic, 0);
            self.forget();
        }
    }

    fn send_burst(&mut self) {
        let mut result = BurstResult { passed: 0, refused: 0 };
        for place in 0..BURST {
            if self.request(Source::Burst, place) {
                result.passed = result.passed.saturating_add(1);
            } else {
                result.refused = result.refused.saturating_add(1);
            }
        }
        self.burst = Some(result);
        self.events.push(Event::Burst(result));
        self.forget();
    }

    /// Decides one request at the present time.
    fn request(&mut self, source: Source, place: u32) -> bool {
        let step = self.bucket.step(&self.state, self.now(), Ask::ONE);
        self.state = step.state.unwrap_or(self.state);
        let decision = step.decision;
        let number = self.allowed.saturating_add(self.refused).saturating_add(1);
        self.records.push_back(Record { number, at: self.clock, place, source, decision });
        if decision.is_allowed() {
            self.allowed = self.allowed.saturating_add(1);
        } else {
            self.refused = self.refused.saturating_add(1);
            if !self.emptied {
                self.emptied = true;
                self.events.push(Event::Empty { at: self.clock });
            }
        }
        self.sample();
        decision.is_allowed()
    }

    /// Moves the clock to a time at which nothing arrives, sampling the level on the way.
    fn move_to(&mut self, at: u64) {
        let mut next = (self.clock / SAMPLE).saturating_add(1).saturating_mul(SAMPLE);
        while next < at {
            self.clock = next;
            self.sample();
            next = next.saturating_add(SAMPLE);
        }
        self.clock = self.clock.max(at);
        self.sample();
        if self.emptied && self.bucket.idle_after(&self.state, self.now()) == Micros::ZERO {
            self.emptied = false;
            self.events.push(Event::Full { at: self.clock });
        }
    }

    fn sample(&mut self) {
        let level = Level { at: self.clock, milli: self.level() };
        if self.levels.back() != Some(&level) {
            self.levels.push_back(level);
        }
    }

    /// Drops what no part of the page shows any more.
    fn forget(&mut self) {
        let since = self.clock.saturating_sub(WINDOW);
        let stale = |record: &Record| record.at < since;
        while self.records.len() > MOST
            || (self.records.len() > KEPT && self.records.front().is_some_and(stale))
        {
            self.records.pop_front();
        }
        // The sample before the window's edge stays: the curve enters from there.
        while self.levels.get(1).is_some_and(|level| level.at <= since) {
            self.levels.pop_front();
        }
    }
}

fn bucket_of(settings: &Settings) -> Result<TokenBucket, Unfit> {
    let rate = Rate::new(settings.refill, Micros::SECOND).ok_or(Unfit::TooLarge)?;
    TokenBucket::new(rate, settings.capacity)
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
