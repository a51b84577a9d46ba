//! What the scripts are called with, and how their replies read.

use proptest::prelude::*;
use weir_core::{
    decision::{Decision, Never, Outcome},
    key::hash::Digest,
    limiter::{
        Ask, Limiter, State, concurrency::Concurrency, fixed_window::FixedWindow,
        leaky_bucket::LeakyBucket, sliding_log::SlidingLog, sliding_window::SlidingWindow,
        token_bucket::TokenBucket,
    },
    script::*,
    units::{Cost, Instant, Micros, Rate},
};

fn key(place: u8, bucket: u8) -> Key {
    Key::new(Digest::from_bytes([place; 16]), Digest::from_bytes([bucket; 16]))
}

fn per_second(count: u64) -> Rate {
    Rate::new(count, Micros::SECOND).unwrap()
}

fn bucket(count: u64, burst: u64) -> Limiter {
    Limiter::TokenBucket(TokenBucket::new(per_second(count), burst).unwrap())
}

fn one_of_each() -> [Limiter; 6] {
    let rate = per_second(7);
    [
        bucket(7, 9),
        Limiter::FixedWindow(FixedWindow::new(rate).unwrap()),
        Limiter::SlidingWindow(SlidingWindow::new(rate).unwrap()),
        Limiter::SlidingLog(SlidingLog::new(rate).unwrap()),
        Limiter::LeakyBucket(LeakyBucket::new(rate, Micros::SECOND).unwrap()),
        Limiter::Concurrency(Concurrency::new(7, Micros::SECOND).unwrap()),
    ]
}

fn asked(limiter: &Limiter, key: Key, ask: Ask) -> Asked<'_> {
    Asked { limiter, key, ask, enforced: true }
}

/// Script and ARGV of a limit that stands alone.
fn args(limiter: &Limiter, ask: Ask) -> (&'static str, String) {
    let asked = [asked(limiter, key(1, 2), ask)];
    let call = Call::new(&asked).unwrap();
    (call.script.name, call.args.join(" "))
}

#[test]
fn a_script_is_named_by_its_sha_1() {
    use ::sha1::{Digest as _, Sha1};
    for script in ALL {
        let digest = Sha1::digest(script.text);
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(script.sha1(), digits, "{}", script.name);
    }
}

#[test]
fn a_test_clock_changes_one_line_and_ships_in_no_script() {
    for script in ALL {
        let test = script.on_test_clock();
        let differ = |(shipped, test): &(&str, &str)| shipped != test;
        assert_eq!(script.text.lines().zip(test.lines()).filter(differ).count(), 1);
        assert_eq!(script.text.lines().count(), test.lines().count());
        assert!(!script.text.contains("table.remove") && script.text.contains("'TIME'"));
        assert!(!test.contains("'TIME'"));
    }
}

#[test]
fn no_script_uses_functions_of_floats_or_of_chance() {
    for script in ALL {
        let code = script.text.lines().map(|line| line.split("--").next().unwrap_or_default());
        let code = code.collect::<Vec<_>>().join("\n");
        for banned in ["math.floor", "math.ceil", "tostring", "random", "0.5", "//"] {
            assert!(!code.contains(banned), "{}: {banned}", script.name);
        }
    }
}

#[test]
fn a_key_is_64_bits_of_its_place_in_braces_and_64_of_its_bucket() {
    assert_eq!(key(0, 0).as_str(), "weir{AAAAAAAAAAA}AAAAAAAAAAA");
    assert_eq!(key(255, 255).as_str(), "weir{__________8}__________8");
    // Eight bytes 1 and eight bytes 2, by another encoder.
    assert_eq!(key(1, 2).as_str(), "weir{AQEBAQEBAQE}AgICAgICAgI");
}

#[test]
fn the_args_of_every_script_are_its_limits_numbers() {
    let ask = Ask { cost: Cost::new(2).unwrap(), floor: 3, id: 0xbeef };
    let all = one_of_each();
    let seen: Vec<_> = all.iter().map(|limiter| args(limiter, ask)).collect();
    let expected = [
        ("token_bucket_micro", "7 9000000 2000000 6000000"),
        ("fixed_window", "1000000 7 2 4"),
        ("sliding_window", "1 1000000 7 2 4"),
        ("sliding_log", "1000000 7 2 4"),
        ("leaky_bucket", "1 7 1000000 8000000 2000000 5000000"),
        ("concurrency", "1000000 7 2 4 beef"),
    ];
    assert_eq!(seen, expected.map(|(name, args)| (name, args.to_owned())));
}

#[test]
fn a_bucket_of_one_unit_a_microsecond_has_a_fast_script() {
    let (name, args) = args(&bucket(5, 10), Ask::ONE);
    assert_eq!((name, args.as_str()), ("token_bucket_fast", "200000 2000000"));
    for (cost, floor, rest) in [(2, 0, " 400000"), (1, 3, " 200000 1400000"), (0, 0, " 0")] {
        let ask = Ask { cost: Cost::new(cost).unwrap(), floor, id: 0 };
        assert_eq!(self::args(&bucket(5, 10), ask).1, format!("200000 2000000{rest}"));
    }
}

#[test]
fn a_cost_or_reserve_above_the_capacity_stays_below_2_to_53() {
    let most = Ask { cost: Cost::new(1_000_000_000).unwrap(), floor: u64::MAX, id: 0 };
    let year = Rate::new(1, Micros::new(31_622_400_000_000)).unwrap();
    let slow = Limiter::TokenBucket(TokenBucket::new(year, 1).unwrap());
    assert_eq!(args(&slow, most).1, "31622400000000 31622400000000 31622400000001 0");
}

#[test]
fn several_limits_go_in_one_call() {
    let (fast, log) = (bucket(5, 10), one_of_each()[3]);
    let shadow = Asked { enforced: false, ..asked(&log, key(1, 2), Ask::ONE) };
    let both = [asked(&fast, key(1, 1), Ask::ONE), shadow];
    let call = Call::new(&both).unwrap();
    assert_eq!(call.script.name, "general");
    assert_eq!(call.args.join(" "), "b 1 1 200000 2000000 200000 2000000 L 1000000 7 1 7");
    assert_eq!(call.keys().collect::<Vec<_>>(), [key(1, 1).as_str(), key(1, 2).as_str()]);
}

#[test]
fn a_call_that_can_be_undone_goes_by_the_general_script_and_tells_the_time() {
    let fast = bucket(5, 10);
    let one = [asked(&fast, key(1, 1), Ask::ONE)];
    let call = Call::refundable(&one).unwrap();
    assert_eq!(call.script.name, "general");
    assert_eq!(call.args.join(" "), "b 1 1 200000 2000000 200000 2000000");
    let reply = [1, 9, 0, 200_000, 1_700_000_000_000_000];
    let (decisions, charged) = call.charged(&reply).unwrap();
    assert_eq!(call.decisions(&reply), Ok(decisions.clone()));
    assert_eq!(decisions[0].remaining, 9);
    assert_eq!(charged, Instant::from_micros(1_700_000_000_000_000));
    for (reply, bad) in [
        (&reply[..4], BadReply::Length { found: 4, expected: 5 }),
        (&[], BadReply::Length { found: 0, expected: 5 }),
        (&[1, 9, 0, 200_000, -1], BadReply::Number { place: 4, found: -1 }),
        (&[1, 9, 0, 200_000, 1 << 52], BadReply::Number { place: 4, found: 1 << 52 }),
    ] {
        assert_eq!(call.charged(reply), Err(bad));
        assert_eq!(call.decisions(reply), Err(bad));
    }
    let alone = Call::new(&one).unwrap();
    assert!(alone.decisions(&[200_000]).is_ok());
    assert_eq!(alone.charged(&reply), Err(BadReply::Length { found: 5, expected: 5 }));
}

#[test]
fn a_charge_is_undone_by_the_numbers_it_was_made_by() {
    let (fast, log) = (bucket(5, 10), one_of_each()[3]);
    let shadow = Asked { enforced: false, ..asked(&log, key(1, 2), Ask::ONE) };
    let both = [asked(&fast, key(1, 1), Ask::ONE), shadow];
    let refund = Refund::new(&both, Instant::from_micros(7)).unwrap();
    assert_eq!(refund.script.name, "refund");
    assert_eq!(refund.args.join(" "), "7 b 1 1 200000 2000000 200000 2000000 l 1000000 7 1 7");
    assert_eq!(refund.keys().collect::<Vec<_>>(), [key(1, 1).as_str(), key(1, 2).as_str()]);
    assert_eq!(refund.outcome(&[1, 0]), Ok(vec![true, false]));
    assert_eq!(refund.outcome(&[1, 2]), Err(BadReply::Number { place: 1, found: 2 }));
    assert_eq!(refund.outcome(&[1]), Err(BadReply::Length { found: 1, expected: 2 }));
    let other = asked(&fast, key(2, 2), Ask::ONE);
    let fault = |limits: &[Asked<'_>]| Refund::new(limits, Instant::EPOCH).unwrap_err();
    assert_eq!(fault(&[]), Unsendable::Nothing);
    assert_eq!(fault(&[both[0], other]), Unsendable::OtherSlot);
}

#[test]
fn only_limits_that_were_charged_are_to_be_paid_back() {
    let fast = bucket(5, 10);
    let shadow = Asked { enforced: false, ..asked(&fast, key(1, 2), Ask::ONE) };
    let peek = asked(&fast, key(1, 3), Ask::of(Cost::ZERO));
    let all = [asked(&fast, key(1, 1), Ask::ONE), shadow, peek];
    let call = Call::new(&all).unwrap();
    let said = |allowed: [bool; 3]| {
        allowed.map(|allowed| Decision {
            outcome: if allowed { Outcome::Allowed } else { NEVER },
            ..fast.peek(&State::None, Instant::EPOCH)
        })
    };
    for (allowed, taken) in [
        ([true, true, true], &[key(1, 1), key(1, 2)][..]),
        ([true, false, true], &[key(1, 1)]),
        ([false, true, true], &[]),
        ([true, true, false], &[]),
    ] {
        let decisions = said(allowed);
        let keys: Vec<_> = call.taken_from(&decisions).map(|asked| asked.key).collect();
        assert_eq!(keys, taken, "{allowed:?}");
    }
}

const NEVER: Outcome = Outcome::Never(Never::CostAboveCapacity);

#[test]
fn what_cannot_go_in_one_call_is_named() {
    let open = bucket(5, 10);
    let fault = |limits: &[Asked<'_>]| Call::new(limits).unwrap_err();
    let first = asked(&open, key(1, 1), Ask::ONE);
    assert_eq!(fault(&[]), Unsendable::Nothing);
    assert_eq!(fault(&[asked(&Limiter::Closed, key(1, 1), Ask::ONE)]), Unsendable::Closed);
    let closed = asked(&Limiter::Closed, key(1, 2), Ask::ONE);
    assert_eq!(fault(&[first, closed]), Unsendable::Closed);
    assert_eq!(fault(&[first, first]), Unsendable::SameKey);
    assert_eq!(fault(&[first, asked(&open, key(2, 2), Ask::ONE)]), Unsendable::OtherSlot);
}

#[test]
fn a_reply_becomes_a_decision() {
    let queue = one_of_each()[4];
    let second = Micros::SECOND;
    for (numbers, outcome) in [
        ([0, 1, 1_000_000, 5], Outcome::Refused { retry_after: second }),
        ([1, 1, 0, 5], Outcome::Allowed),
        ([2, 1, 0, 5], Outcome::Never(Never::CostAboveCapacity)),
        ([3, 1, 1_000_000, 5], Outcome::Delayed { delay: second }),
    ] {
        let decision = Decision { outcome, limit: 8, remaining: 1, reset_after: Micros::new(5) };
        let asked = [asked(&queue, key(1, 1), Ask::ONE)];
        assert_eq!(Call::new(&asked).unwrap().decisions(&numbers), Ok(vec![decision]));
    }
}

#[test]
fn one_number_tells_all_of_the_fast_bucket() {
    let fast = bucket(5, 10);
    let read = |ask: Ask, owed: i64| {
        let asked = [asked(&fast, key(1, 1), ask)];
        Call::new(&asked).unwrap().decisions(&[owed])
    };
    let says = |outcome, remaining, reset_after| {
        let reset_after = Micros::new(reset_after);
        Ok(vec![Decision { outcome, limit: 10, remaining, reset_after }])
    };
    let refused = |wait| Outcome::Refused { retry_after: Micros::new(wait) };
    // A token is 200,000 units, which are microseconds.
    assert_eq!(read(Ask::ONE, 200_000), says(Outcome::Allowed, 9, 200_000));
    assert_eq!(read(Ask::ONE, 1_900_001), says(Outcome::Allowed, 0, 1_900_001));
    assert_eq!(read(Ask::ONE, -1_800_002), says(refused(1), 0, 1_800_001));
    assert_eq!(read(Ask::ONE, -2_000_001), says(refused(200_000), 0, 2_000_000));
    assert_eq!(read(Ask { floor: 4, ..Ask::ONE }, -1_000_002), says(refused(1), 4, 1_000_001));
    assert_eq!(read(Ask::of(Cost::new(11).unwrap()), -1), says(NEVER, 10, 0));
    assert_eq!(read(Ask::of(Cost::ZERO), 2_000_000), says(Outcome::Allowed, 0, 2_000_000));
    let floor = Ask { floor: 4, ..Ask::ONE };
    for (ask, owed) in [
        // Nothing is charged, or too much is owed after it.
        (Ask::ONE, 199_999),
        (Ask::ONE, 2_000_001),
        (floor, 1_200_001),
        // It would have passed, or too much is owed before it.
        (Ask::ONE, -1_800_001),
        (Ask::ONE, -2_000_002),
        (Ask::ONE, i64::MIN),
        (Ask::of(Cost::new(11).unwrap()), 2_000_000),
        (Ask::of(Cost::ZERO), -1),
        (Ask::of(Cost::ZERO), 2_000_001),
    ] {
        let bad = BadReply::Number { place: 0, found: owed };
        assert_eq!(read(ask, owed), Err(bad), "{ask:?}");
    }
    let asked = [asked(&fast, key(1, 1), Ask::ONE)];
    let bad = BadReply::Length { found: 4, expected: 1 };
    assert_eq!(Call::new(&asked).unwrap().decisions(&[1, 9, 0, 200_000]), Err(bad));
}

#[test]
fn a_reply_that_no_script_gives_is_an_error() {
    let queue = one_of_each()[1];
    let asked = [asked(&queue, key(1, 1), Ask::ONE)];
    let call = Call::new(&asked).unwrap();
    for numbers in [
        [4, 0, 0, 0],
        [-1, 0, 0, 0],
        [3, 0, 1, 0],
        [1, 0, 1, 0],
        [0, 0, 0, 0],
        [2, 0, 1, 0],
        [1, 11, 0, 0],
        [1, -1, 0, 0],
        [1, 0, 0, -1],
        [1, 0, 0, 1 << 53],
        [0, 0, i64::MIN, 0],
    ] {
        assert_eq!(call.decisions(&numbers), Err(BadReply::Numbers { limit: 0, found: numbers }));
    }
    for numbers in [&[][..], &[1, 0, 0], &[1, 0, 0, 0, 1], &[1; 8]] {
        let found = numbers.len();
        assert_eq!(call.decisions(numbers), Err(BadReply::Length { found, expected: 4 }));
    }
}

#[test]
fn only_permits_are_given_back() {
    let [bucket, .., permits] = one_of_each();
    assert!(Release::new(&bucket, key(1, 1), 1).is_none());
    let release = Release::new(&permits, key(1, 1), u64::MAX).unwrap();
    assert_eq!(release.args, ["1000000", "7", "ffffffffffffffff"]);
    let released = Released { held: true, remaining: 6, reset_after: Micros::new(9) };
    assert_eq!(release.outcome(&[1, 6, 0, 9]), Ok(released));
    for numbers in [[2, 6, 0, 9], [1, 8, 0, 9], [1, 6, 1, 9], [1, 6, 0, -9]] {
        let bad = BadReply::Numbers { limit: 0, found: numbers };
        assert_eq!(release.outcome(&numbers), Err(bad));
    }
    assert_eq!(release.outcome(&[1]), Err(BadReply::Length { found: 1, expected: 4 }));
}

proptest! {
    #[test]
    fn any_integers_are_decisions_or_an_error(
        reply: Vec<i64>,
        small in prop::collection::vec(-1..9_i64, 4),
    ) {
        for limiter in &one_of_each() {
            let asked = [asked(limiter, key(1, 1), Ask::ONE)];
            let call = Call::new(&asked).unwrap();
            for numbers in [&reply, &small] {
                if let Ok(decisions) = call.decisions(numbers) {
                    prop_assert_eq!(decisions.len(), 1);
                }
            }
        }
    }

    #[test]
    fn whatever_the_core_decides_can_be_read_back(cost in 0..20_u64, now in 0..10_000_000_u64) {
        for limiter in &one_of_each() {
            let ask = Ask::of(Cost::new(cost).unwrap());
            let decision = limiter.step(&State::None, Instant::from_micros(now), ask).decision;
            let micros = |span: Micros| i64::try_from(span.get()).unwrap();
            let (outcome, wait) = match decision.outcome {
                Outcome::Allowed => (1, 0),
                Outcome::Delayed { delay } => (3, micros(delay)),
                Outcome::Refused { retry_after } => (0, micros(retry_after)),
                Outcome::Never(_) => (2, 0),
            };
            let remaining = i64::try_from(decision.remaining).unwrap();
            let mut reply = vec![outcome, remaining, wait, micros(decision.reset_after)];
            if let Limiter::TokenBucket(bucket) = limiter {
                // Of a full bucket a request that passes owes its price, and any other nothing.
                let price = i64::try_from(cost * bucket.units_per_token()).unwrap();
                reply = vec![if outcome == 1 { price } else { -1 }];
            }
            let asked = [asked(limiter, key(1, 1), ask)];
            let read = Call::new(&asked).unwrap().decisions(&reply);
            prop_assert_eq!(read, Ok(vec![decision]));
        }
    }
}
