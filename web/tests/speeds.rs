//! Decisions are the same at all three speeds, whatever the frame rate.
#![cfg(not(target_arch = "wasm32"))]

use proptest::prelude::*;
use weir_web::state::{
    player::{Player, Speed},
    record::Record,
    scenario::{Action, Scenario},
    settings::{Settings, Spacing},
};

/// How long each run lasts, in microseconds of simulated time.
const SPAN: u64 = 10_000_000;

/// A run of frames of the given lengths, over and over.
fn run(settings: Settings, speed: Speed, frames: &[u64]) -> Vec<Record> {
    let mut scenario = Scenario::new(settings).unwrap();
    let mut player = Player::new(true);
    player.set_speed(speed);
    let mut real = 0;
    for length in frames.iter().cycle() {
        let left = SPAN - scenario.clock();
        if left == 0 {
            break;
        }
        scenario.apply(Action::Advance(player.frame(real).min(left)));
        real += length;
    }
    scenario.records().iter().copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn decisions_are_the_same_at_all_three_speeds(
        traffic in 0_u64..=20,
        refill in 1_u64..=20,
        capacity in 1_u64..=30,
        random in any::<bool>(),
        frames in prop::collection::vec(1_000_u64..40_000, 1..9),
    ) {
        let spacing = if random { Spacing::Poisson } else { Spacing::Even };
        let settings = Settings { traffic, refill, capacity, spacing };
        let one = run(settings, Speed::One, &[16_667]);
        for speed in Speed::ALL {
            prop_assert_eq!(&run(settings, speed, &frames), &one);
        }
    }
}
