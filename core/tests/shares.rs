//! One gateway's share of a limit, over all policies that the bounds table accepts: what all
//! gateways let pass together.

mod models;

use models::{
    Limit,
    random::{START, for_every_kind, limits, within},
    whole,
};
use num_rational::BigRational;
use proptest::prelude::*;
use std::{borrow::Cow, net::IpAddr};
use weir_core::{
    bounds, config,
    key::{Facts, fields::FieldValue},
    limiter::{Ask, Limiter, State},
    policy::quota::Quota,
    units::{Cost, Instant, Micros, Rate},
};

const CASES: u32 = 500;

fn gateways() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![2 => 1..50_u64, 1 => within(bounds::GATEWAYS)]
}

const fn quota(limit: &Limit) -> Quota {
    match *limit {
        Limit::TokenBucket { rate, burst } => Quota::TokenBucket { rate, burst },
        Limit::FixedWindow { rate } => Quota::FixedWindow(rate),
        Limit::SlidingWindow { rate } => Quota::SlidingWindow(rate),
        Limit::SlidingLog { rate } => Quota::SlidingLog(rate),
        Limit::LeakyBucket { rate, max_delay } => Quota::LeakyBucket { rate, max_delay },
        Limit::Concurrency { limit, lease } => Quota::Concurrency { limit, lease },
    }
}

/// What a share lets pass that takes all it can get at these times.
fn taken(share: &Limiter, times: &[u64]) -> u64 {
    let mut state = State::None;
    let mut passed = 0;
    for time in times {
        let now = Instant::from_micros(*time);
        // A queue can hold more than one request may cost.
        loop {
            let left = share.peek(&state, now).remaining.min(bounds::COST.max);
            if left == 0 {
                break;
            }
            let step = share.step(&state, now, Ask::of(Cost::new(left).expect("a cost")));
            assert!(step.decision.is_allowed());
            passed += left;
            state = step.state.unwrap_or(state);
        }
    }
    passed
}

/// Tokens a microsecond that a share lets pass for ever.
fn long_run(share: &Limiter) -> Option<BigRational> {
    let ratio = |count: u64, span: u64| Some(whole(count) / whole(span));
    match share {
        Limiter::FixedWindow(window) => ratio(window.limit(), window.window().get()),
        Limiter::SlidingLog(log) => ratio(log.limit(), log.window().get()),
        Limiter::SlidingWindow(window) => {
            ratio(window.limit(), window.length() * window.tick().length().get())
        }
        _ => None,
    }
}

#[test]
fn all_shares_together_exceed_the_limit_by_less_than_a_token_a_gateway() {
    for_every_kind(
        CASES,
        |kind| (limits(kind), gateways(), any::<u64>()),
        |(limit, gateways, noise)| {
            let Ok(share) = quota(&limit).share(gateways) else { return Ok(()) };
            prop_assert!(share.capacity() >= 1);
            if counts_by_a_coarser_tick(&limit) {
                return Ok(());
            }
            // Until the limit could have been used up twice, and no later.
            let (_, span) = limit.size();
            let later = match limit {
                Limit::TokenBucket { .. } | Limit::LeakyBucket { .. } => noise % (span / 2 + 1),
                _ => 0,
            };
            let passed = whole(taken(&share, &[START, START + later])) * whole(gateways);
            let refill = limit.per_micro() * whole(later);
            let rounded = !is_exact(&limit, gateways);
            // A rate that had to be rounded up brings less than a token more in each window.
            let windows = if rounded { whole(later) / whole(limit.window()) } else { whole(0) };
            let more = whole(gateways) * (whole(1) + windows);
            prop_assert!(passed < limit.capacity() + refill + more, "{share:?}");
            Ok(())
        },
    );
}

/// Whether a queue is too large to be counted by the microsecond. Its longest wait is then rounded
/// down to its tick, and that of a share, which is slower, need not be.
fn counts_by_a_coarser_tick(limit: &Limit) -> bool {
    let Limit::LeakyBucket { max_delay, .. } = limit else { return false };
    let rate = limit.per_micro();
    let units = rate.numer() * max_delay.get() + rate.denom();
    units >= (1_u64 << 53).into()
}

/// Whether the limit's tokens can be counted over a window that is longer by as many as gateways.
fn is_exact(limit: &Limit, gateways: u64) -> bool {
    let longer = |rate: Rate| {
        let window = rate.window().get().checked_mul(gateways)?;
        Rate::new(rate.count(), Micros::new(window))
    };
    let slower = match *limit {
        Limit::TokenBucket { rate, burst } => {
            longer(rate).map(|rate| Limit::TokenBucket { rate, burst: burst.div_ceil(gateways) })
        }
        Limit::LeakyBucket { rate, max_delay } => {
            longer(rate).map(|rate| Limit::LeakyBucket { rate, max_delay })
        }
        Limit::FixedWindow { rate }
        | Limit::SlidingWindow { rate }
        | Limit::SlidingLog { rate } => {
            return longer(rate).is_some();
        }
        Limit::Concurrency { .. } => return true,
    };
    slower.is_some_and(|limit| limit.limiter().is_ok())
}

#[test]
fn shares_of_windows_let_no_more_pass_in_the_long_run() {
    for_every_kind(
        CASES,
        |kind| (limits(kind), gateways()),
        |(limit, gateways)| {
            let Ok(share) = quota(&limit).share(gateways) else { return Ok(()) };
            let Some(rate) = long_run(&share) else { return Ok(()) };
            let all = rate * whole(gateways);
            if is_exact(&limit, gateways) {
                prop_assert!(all <= limit.per_micro(), "{share:?}");
            }
            let more = whole(gateways) / whole(limit.window());
            prop_assert!(all < limit.per_micro() + more, "{share:?}");
            Ok(())
        },
    );
}

#[test]
fn a_share_of_one_gateway_is_the_limit() {
    for_every_kind(200, limits, |limit| {
        prop_assert_eq!(quota(&limit).share(1), limit.limiter());
        Ok(())
    });
}

/// A request of which nothing is known but its method.
struct Request(&'static [u8]);

impl Facts for Request {
    fn header(&self, _: &str) -> FieldValue<'_> {
        FieldValue::Missing
    }

    fn method(&self) -> Option<&[u8]> {
        Some(self.0)
    }

    fn path(&self) -> Option<&[u8]> {
        None
    }

    fn host(&self) -> Option<&[u8]> {
        None
    }

    fn client_ip(&self) -> Option<IpAddr> {
        None
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn metadata(&self, _: &str, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

/// 20 % of a share of 25, where the reserve of the limit is of 100.
#[test]
fn what_is_reserved_of_a_share_is_reckoned_from_the_share() {
    let text = r#"{"gateways":4,"store":{"type":"redis"},"limits":[
        {"name":"a","rate":"10/second","burst":100,"on_store_failure":"local",
         "reserve":{"share":"20%","for":{"methods":["POST"]}}}]}"#;
    let policy = config::parse(text.as_bytes()).unwrap();
    let limit = &policy.limits[0];
    let tier = &limit.tiers.default;
    let share = tier.share(policy.gateways);
    let (get, post) = (Request(b"GET"), Request(b"POST"));
    assert_eq!((share.capacity(), limit.share_floor(&share, &get)), (25, 5));
    assert_eq!(limit.share_floor(&share, &post), 0);
    assert_eq!(limit.floor(tier, 0, &get), 20);
}
