//! From the time of frames to simulated time.
//!
//! A frame brings real microseconds. They are scaled by the speed, collected, and handed on in
//! whole steps, so a decision depends on simulated time alone, at any speed and frame rate.

/// How fast simulated time runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// 0.5×
    Half,
    /// 1×
    One,
    /// 2×
    Two,
}

impl Speed {
    /// All speeds, the slowest first.
    pub const ALL: [Speed; 3] = [Speed::Half, Speed::One, Speed::Two];

    /// Half microseconds of simulated time per microsecond.
    const fn halves(self) -> u64 {
        match self {
            Self::Half => 1,
            Self::One => 2,
            Self::Two => 4,
        }
    }

    /// As the page writes it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Half => "0.5×",
            Self::One => "1×",
            Self::Two => "2×",
        }
    }
}

/// Simulated time advances in steps of 1 ms.
const STEP: u64 = 1_000;
/// A frame counts for at most 50 ms: after a stall the figure goes on, it does not catch up.
const LONGEST_FRAME: u64 = 50_000;

/// Whether and how fast time runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player {
    playing: bool,
    speed: Speed,
    /// The last frame, in real microseconds.
    last: Option<u64>,
    /// Half microseconds of simulated time not yet handed on.
    rest: u64,
}

impl Player {
    /// A player at normal speed.
    #[must_use]
    pub const fn new(playing: bool) -> Self {
        Self { playing, speed: Speed::One, last: None, rest: 0 }
    }

    /// Whether time runs.
    #[must_use]
    pub const fn is_playing(&self) -> bool {
        self.playing
    }

    /// The speed.
    #[must_use]
    pub const fn speed(&self) -> Speed {
        self.speed
    }

    /// Starts or stops time.
    pub fn play(&mut self, playing: bool) {
        self.playing = playing;
        self.interrupt();
    }

    /// Changes the speed from the next frame on.
    pub fn set_speed(&mut self, speed: Speed) {
        self.speed = speed;
    }

    /// Forgets the last frame: the time until the next one does not count.
    pub fn interrupt(&mut self) {
        self.last = None;
    }

    /// The simulated microseconds that a frame at this real time brings.
    pub fn frame(&mut self, real: u64) -> u64 {
        if !self.playing {
            return 0;
        }
        let passed = real.saturating_sub(self.last.unwrap_or(real)).min(LONGEST_FRAME);
        self.last = Some(real);
        let collected = self.rest.saturating_add(passed.saturating_mul(self.speed.halves()));
        let step = STEP.saturating_mul(2);
        self.rest = collected % step;
        (collected / step).saturating_mul(STEP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn speed_scales_simulated_time_and_loses_nothing() {
        for (speed, expected) in
            [(Speed::Half, 500_000), (Speed::One, 1_000_000), (Speed::Two, 2_000_000)]
        {
            let mut player = Player::new(true);
            player.set_speed(speed);
            let total: u64 = (0..=60).map(|n| player.frame(n * SECOND / 60)).sum();
            assert!(expected - total < STEP, "{total} of {expected}");
        }
    }

    #[test]
    fn a_long_frame_counts_for_50_milliseconds() {
        let mut player = Player::new(true);
        assert_eq!(player.frame(0), 0);
        assert_eq!(player.frame(30 * SECOND), 50_000);
    }

    #[test]
    fn a_paused_player_does_not_catch_up() {
        let mut player = Player::new(true);
        player.frame(0);
        player.play(false);
        assert_eq!(player.frame(SECOND), 0);
        player.play(true);
        assert_eq!(player.frame(2 * SECOND), 0);
        assert_eq!(player.frame(2 * SECOND + 16_000), 16_000);
    }
}
