//! One check of a token bucket: Weir beside governor, single-threaded, in one run.
//!
//! Both are asked at times that are given to them, so neither pays for reading a clock. Keyed, both
//! keep their states in the standard library's hash map under the same string keys. Half of the
//! checks are refused. All of a decision is computed, with what is left and the time to reset, which
//! governor is not asked for.

#![allow(missing_docs, clippy::disallowed_types)]

use divan::{Bencher, black_box};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, FakeRelativeClock},
    middleware::NoOpMiddleware,
    state::{InMemoryState, keyed::HashMapStateStore},
};
use std::{collections::HashMap, num::NonZeroU32, time::Duration};
use weir_core::{
    limiter::{Algorithm, Ask, debt::DebtState, token_bucket::TokenBucket},
    units::{Instant, Micros, Rate},
};

/// Checks of one round; times are divided by it.
const CHECKS: u32 = 1_000;
const KEYS: u32 = 1_000;
const RATE: u32 = 1_000;
const START: u64 = 1_700_000_000_000_000;
/// Twice as fast as the bucket refills.
const STEP: u64 = 500;

type Middleware = NoOpMiddleware<<FakeRelativeClock as Clock>::Instant>;

fn main() {
    divan::main();
}

fn bucket() -> TokenBucket {
    let rate = Rate::new(u64::from(RATE), Micros::SECOND).expect("a rate");
    TokenBucket::new(rate, u64::from(RATE)).expect("a bucket")
}

fn quota() -> Quota {
    Quota::per_second(NonZeroU32::new(RATE).expect("not zero"))
}

fn keys() -> Vec<String> {
    (0..KEYS).map(|n| format!("key-{n}")).collect()
}

#[divan::bench(items_count = CHECKS)]
fn direct_weir(bencher: Bencher<'_, '_>) {
    let bucket = bucket();
    let (mut state, mut now) = (DebtState::NONE, START);
    bencher.bench_local(|| {
        let mut passed = 0_u32;
        for _ in 0..CHECKS {
            now += STEP;
            let step = bucket.step(&state, Instant::from_micros(black_box(now)), Ask::ONE);
            passed += u32::from(black_box(step.decision).is_allowed());
            state = step.state.unwrap_or(state);
        }
        passed
    });
}

#[divan::bench(items_count = CHECKS)]
fn direct_governor(bencher: Bencher<'_, '_>) {
    let clock = FakeRelativeClock::default();
    let limiter: RateLimiter<_, InMemoryState, _, Middleware> =
        RateLimiter::direct_with_clock(quota(), clock.clone());
    bencher.bench_local(|| {
        let mut passed = 0_u32;
        for _ in 0..CHECKS {
            clock.advance(Duration::from_micros(black_box(STEP)));
            passed += u32::from(limiter.check().is_ok());
        }
        passed
    });
}

#[divan::bench(items_count = CHECKS)]
fn keyed_weir(bencher: Bencher<'_, '_>) {
    let (bucket, keys) = (bucket(), keys());
    let mut states: HashMap<String, DebtState> = HashMap::new();
    let mut now = START;
    bencher.bench_local(|| {
        let mut passed = 0_u32;
        now += STEP;
        for key in &keys {
            let state = match states.get_mut(black_box(key)) {
                Some(state) => state,
                None => states.entry(key.clone()).or_default(),
            };
            let step = bucket.step(state, Instant::from_micros(now), Ask::ONE);
            passed += u32::from(black_box(step.decision).is_allowed());
            *state = step.state.unwrap_or(*state);
        }
        passed
    });
}

#[divan::bench(items_count = CHECKS)]
fn keyed_governor(bencher: Bencher<'_, '_>) {
    let (clock, keys) = (FakeRelativeClock::default(), keys());
    let store = HashMapStateStore::<String>::default();
    let limiter: RateLimiter<_, _, _, Middleware> = RateLimiter::new(quota(), store, clock.clone());
    bencher.bench_local(|| {
        let mut passed = 0_u32;
        clock.advance(Duration::from_micros(STEP));
        for key in &keys {
            passed += u32::from(limiter.check_key(black_box(key)).is_ok());
        }
        passed
    });
}
