//! The sentence above the figure: what the present settings do, and where the run stands.

use super::{
    record::BurstResult,
    scenario::Scenario,
    settings::{Settings, Spacing},
    text::{count, percent},
};

/// The caption of the present state.
#[must_use]
pub fn caption(scenario: &Scenario) -> String {
    let state = state_sentence(scenario);
    match scenario.burst() {
        Some(burst) => format!("{} {state}", burst_sentence(burst)),
        None => state,
    }
}

/// What became of a burst: `Burst of 12: 10 passed, 2 got 429.`
#[must_use]
pub fn burst_sentence(burst: BurstResult) -> String {
    let sent = burst.passed.saturating_add(burst.refused);
    format!("Burst of {sent}: {} passed, {} got 429.", burst.passed, burst.refused)
}

/// The share of requests that get 429 in the long run, in whole percent: (λ − r) / λ.
#[must_use]
pub fn refused_share(settings: &Settings) -> u64 {
    percent(settings.traffic.saturating_sub(settings.refill), settings.traffic).unwrap_or(0)
}

/// Seconds until the bucket runs dry at the present level, rounded up; `None` if it does not.
#[must_use]
pub fn seconds_to_empty(scenario: &Scenario) -> Option<u64> {
    let settings = scenario.settings();
    let drain = settings.traffic.checked_sub(settings.refill).filter(|drain| *drain > 0)?;
    Some(scenario.level().div_ceil(drain.saturating_mul(1_000)))
}

fn state_sentence(scenario: &Scenario) -> String {
    let settings = scenario.settings();
    if settings.traffic == 0 {
        return idle(scenario);
    }
    let even = settings.spacing == Spacing::Even;
    match settings.traffic.cmp(&settings.refill) {
        std::cmp::Ordering::Greater => above(scenario, even),
        std::cmp::Ordering::Equal if even => "As many requests arrive as tokens: the level holds. \
             What a burst takes out of the bucket never comes back."
            .to_owned(),
        std::cmp::Ordering::Equal => {
            "On average as many requests arrive as tokens, but at random: \
             the level wanders, and a crowded moment can still meet an empty bucket."
                .to_owned()
        }
        std::cmp::Ordering::Less => below(&settings, even),
    }
}

fn idle(scenario: &Scenario) -> String {
    let capacity = count(scenario.settings().capacity, "token", "tokens");
    if scenario.is_emptied() {
        format!("No traffic. The bucket fills up to {capacity} and stops there.")
    } else {
        format!("No traffic. A bucket never holds more than its capacity, {capacity}.")
    }
}

fn above(scenario: &Scenario, even: bool) -> String {
    let settings = scenario.settings();
    let rates = format!(
        "{} a second arrive, {} a second come back",
        count(settings.traffic, "request", "requests"),
        count(settings.refill, "token", "tokens"),
    );
    let share = refused_share(&settings);
    if scenario.is_emptied() {
        return format!(
            "{rates}: the savings are spent, and about {share}% of requests get 429. More capacity \
             would not change that share. Only the refill rate lasts."
        );
    }
    let left = match seconds_to_empty(scenario) {
        Some(0 | 1) | None => "about a second".to_owned(),
        Some(seconds) => format!("about {seconds} s"),
    };
    let random = if even { "" } else { " if arrivals come as they do on average" };
    format!(
        "{rates}: the bucket drains. Empty in {left}{random}; from then on about {share}% of \
         requests get 429."
    )
}

fn below(settings: &Settings, even: bool) -> String {
    let rates = format!(
        "{} a second arrive, {} a second come back",
        count(settings.traffic, "request", "requests"),
        count(settings.refill, "token", "tokens"),
    );
    if even {
        format!(
            "{rates}: the bucket fills to its capacity, and that is the largest burst it lets \
             through: {}.",
            settings.capacity
        )
    } else {
        format!(
            "{rates}: the bucket tends to be full. Random arrivals crowd together, so some may \
             still get 429, more of them the smaller the capacity (now {}).",
            settings.capacity
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::scenario::Action;

    const SECOND: u64 = 1_000_000;

    fn run(traffic: u64, spacing: Spacing, seconds: u64) -> Scenario {
        let settings = Settings { traffic, spacing, ..Settings::default() };
        let mut scenario = Scenario::new(settings).unwrap();
        scenario.apply(Action::Advance(seconds * SECOND));
        scenario
    }

    #[test]
    fn the_refused_share_is_what_the_refill_rate_cannot_carry() {
        let share = |traffic| refused_share(&Settings { traffic, ..Settings::default() });
        assert_eq!([5, 6, 8, 12, 20].map(share), [20, 33, 50, 67, 80]);
        assert_eq!([0, 3, 4].map(share), [0, 0, 0]);
    }

    #[test]
    fn a_draining_bucket_says_when_it_will_be_empty() {
        assert!(caption(&run(6, Spacing::Even, 0)).contains("Empty in about 5 s"));
        assert!(caption(&run(6, Spacing::Even, 3)).contains("Empty in about 2 s"));
        assert!(caption(&run(6, Spacing::Even, 4)).contains("Empty in about a second"));
    }

    #[test]
    fn a_drained_bucket_says_which_share_gets_429() {
        let text = caption(&run(6, Spacing::Even, 10));
        assert!(text.contains("about 33% of requests get 429"), "{text}");
        assert!(!text.contains("Empty in"), "{text}");
    }

    #[test]
    fn below_the_refill_rate_capacity_is_the_largest_burst() {
        assert!(caption(&run(3, Spacing::Even, 5)).ends_with("lets through: 10."));
    }

    #[test]
    fn random_traffic_is_never_promised_a_run_without_refusals() {
        for traffic in 1..=20 {
            let text = caption(&run(traffic, Spacing::Poisson, 0));
            let hedged = ["may still get 429", "can still meet an empty", "requests get 429"];
            assert!(hedged.iter().any(|hedge| text.contains(hedge)), "{text}");
        }
    }

    #[test]
    fn a_burst_is_told_first() {
        let mut scenario = run(3, Spacing::Even, 0);
        scenario.apply(Action::Burst);
        assert!(caption(&scenario).starts_with("Burst of 12: 10 passed, 2 got 429. 3 requests"));
        scenario.apply(Action::Traffic(4));
        assert!(caption(&scenario).starts_with("As many requests arrive"));
    }

    #[test]
    fn no_traffic_has_its_own_sentence() {
        assert!(caption(&run(0, Spacing::Even, 1)).starts_with("No traffic."));
    }
}
