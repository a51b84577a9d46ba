//! The numbers the figure must show.

use super::*;

const SECOND: u64 = 1_000_000;

fn scenario(traffic: u64, capacity: u64) -> Scenario {
    Scenario::new(Settings { traffic, capacity, ..Settings::default() }).unwrap()
}

fn after(mut scenario: Scenario, span: u64) -> Scenario {
    scenario.apply(Action::Advance(span));
    scenario
}

#[test]
fn a_minute_at_the_defaults_allows_249_and_refuses_111() {
    let minute = after(scenario(6, 10), 60 * SECOND);
    assert_eq!((minute.allowed(), minute.refused()), (249, 111));
}

#[test]
fn the_last_fifty_seconds_of_the_minute_refuse_100_of_300() {
    let start = after(scenario(6, 10), 10 * SECOND);
    let end = after(start.clone(), 50 * SECOND);
    assert_eq!(end.refused() - start.refused(), 100);
    assert_eq!(end.allowed() - start.allowed(), 200);
    assert_eq!(end.recent(), (40, 20));
}

#[test]
fn the_first_429_comes_when_the_bucket_has_run_dry() {
    let first = |traffic: u64| {
        let mut run = scenario(traffic, 10);
        while run.refused() == 0 {
            run.apply(Action::Step);
        }
        let record = *run.records().back().unwrap();
        (record.number, record.at)
    };
    assert_eq!(first(6), (29, 4_666_666));
    assert_eq!(first(5).1, 9_200_000);
    assert_eq!(first(8).1, 2_375_000);
    assert_eq!(first(12).1, 1_166_666);
    assert_eq!(first(20).1, 600_000);
}

#[test]
fn a_burst_of_12_on_a_full_bucket_passes_as_many_as_it_holds() {
    for (capacity, passed, refused) in [(10, 10, 2), (3, 3, 9), (12, 12, 0), (30, 12, 0)] {
        let mut run = scenario(3, capacity);
        run.apply(Action::Burst);
        assert_eq!(run.burst(), Some(BurstResult { passed, refused }));
        assert_eq!(run.clock(), 0);
    }
}

#[test]
fn a_refused_request_is_told_a_whole_second_and_never_zero() {
    let run = after(scenario(20, 1), 10 * SECOND);
    let refused: Vec<_> = run.records().iter().filter(|record| !record.is_allowed()).collect();
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|record| record.retry_after() == Some(1)));
}

#[test]
fn advancing_in_parts_decides_as_advancing_at_once() {
    let whole = after(scenario(7, 5), 8 * SECOND);
    let mut parts = scenario(7, 5);
    for part in [1, 999_999, 3_333_333, 3_666_667] {
        parts.apply(Action::Advance(part));
    }
    assert_eq!(parts.records(), whole.records());
    assert_eq!(parts.level(), whole.level());
}

#[test]
fn a_slider_keeps_the_bucket_and_the_counters() {
    let mut run = after(scenario(6, 10), 3 * SECOND);
    let (level, allowed) = (run.level(), run.allowed());
    run.apply(Action::Traffic(2));
    assert_eq!((run.level(), run.allowed()), (level, allowed));
    assert_eq!(run.arrivals().next_at(), Some(3 * SECOND + SECOND / 2));
    run.apply(Action::Capacity(20));
    assert_eq!(run.level(), level + 10_000, "the debt stays, the room grows");
}

#[test]
fn a_value_outside_its_slider_moves_to_the_nearer_end() {
    let mut run = scenario(6, 10);
    run.apply(Action::Refill(0));
    run.apply(Action::Capacity(99));
    assert_eq!((run.settings().refill, run.settings().capacity), (1, 30));
}

#[test]
fn a_reset_fills_the_bucket_and_keeps_the_sliders() {
    let mut run = after(scenario(9, 4), 5 * SECOND);
    run.apply(Action::Reset);
    assert_eq!(run, scenario(9, 4));
}

#[test]
fn the_bucket_tells_once_that_it_is_empty_and_once_that_it_is_full() {
    let mut run = after(scenario(6, 10), 10 * SECOND);
    assert_eq!(run.take_events(), [Event::Empty { at: 4_666_666 }]);
    run.apply(Action::Traffic(0));
    run.apply(Action::Advance(10 * SECOND));
    assert!(matches!(run.take_events().as_slice(), [Event::Full { .. }]));
    assert!(!run.is_emptied());
}

#[test]
fn without_traffic_a_step_does_nothing() {
    let mut run = scenario(0, 10);
    run.apply(Action::Step);
    assert_eq!(run, scenario(0, 10));
}

#[test]
fn memory_stays_bounded_in_a_long_run_with_many_bursts() {
    let mut run = scenario(20, 10);
    for _ in 0..1_000 {
        run.apply(Action::Burst);
        run.apply(Action::Advance(10_000));
    }
    assert!(run.records().len() <= MOST);
    run.apply(Action::Advance(600 * SECOND));
    assert_eq!(run.records().len(), 200);
    assert!(run.levels().len() < 1_000);
}

#[test]
fn random_traffic_below_the_refill_rate_is_still_refused_now_and_then() {
    let settings = Experiment::Random.settings();
    let run = after(Scenario::new(settings).unwrap(), 600 * SECOND);
    let share = run.refused() * 1_000 / (run.allowed() + run.refused());
    assert!((40..=140).contains(&share), "{share} per mille; about 87 in the long run");
}

#[test]
fn the_burst_of_an_experiment_stands_alone_at_its_instant() {
    let mut run = scenario(6, 10);
    run.apply(Action::Show(Experiment::SmallBurst));
    run.apply(Action::Advance(1));
    assert_eq!((run.allowed(), run.refused()), (3, 9));
    assert_eq!(run.arrivals().next_at(), Some(333_333));
}
