//! Every limiter against a textbook in rational numbers, decision by decision, over all policies
//! that the bounds table accepts.

mod models;

use models::{
    Limit, Model,
    random::{Call, Clock, Kind, calls, for_every_kind, forward_calls, limits, parameters},
    realigned, whole,
};
use num_traits::Signed;
use proptest::{prelude::*, test_runner::TestRunner};
use std::cell::Cell;
use weir_core::{
    decision::Outcome,
    limiter::{Ask, Limiter, State, Unfit, token_bucket::TokenBucket},
    store::codec,
    units::{Cost, Instant, Micros, Rate},
};

/// Cases an algorithm.
const CASES: u32 = 150;

/// Random phases of one algorithm: a limit, and the calls while it is in force.
fn phases(kind: Kind) -> impl Strategy<Value = Vec<(Limit, Vec<Call>)>> {
    prop::collection::vec((limits(kind), calls()), 1..4)
}

/// A limiter and its textbooks on the same calls.
struct Compared {
    limiter: Limiter,
    state: State,
    models: Vec<Box<dyn Model>>,
    /// Numbers of the calls that were let through.
    held: Vec<u64>,
    /// The longest tick so far.
    tick: u64,
}

impl Compared {
    fn new(limit: &Limit) -> Self {
        let limiter = limit.limiter().expect("a limit that fits");
        let models = limit.models();
        Self { limiter, state: State::None, models, held: Vec::new(), tick: limit.tick() }
    }

    /// The limit is changed. A debt stays due when it was, but for what is no whole number of ticks
    /// or units under both limits.
    fn change(&mut self, to: &Limit, now: u64) {
        self.tick = self.tick.max(to.tick());
        let debt_until = realigned(&self.state, to);
        for model in &mut self.models {
            if let (Some(was), Some(is)) = (model.debt_until(), &debt_until) {
                let drained = was <= whole(now) && *is <= whole(now);
                assert!(drained || (was - is).abs() <= whole(2 * self.tick));
            }
            model.change(now, to, debt_until.as_ref());
        }
        self.limiter = to.limiter().expect("a limit that fits");
    }

    /// Whether a call is let through.
    fn call(&mut self, ask: Ask, clock: &mut Clock) -> bool {
        let step = self.limiter.step(&self.state, clock.instant(), ask);
        for model in &mut self.models {
            let (expected, repaired) = model.ask(clock.now, ask);
            assert_eq!(
                step.decision, expected,
                "{:?} in {:?} at {} asked {ask:?}",
                self.limiter, self.state, clock.now
            );
            if !step.decision.is_allowed() || ask.cost.get() == 0 {
                assert_eq!(step.state.is_some(), repaired, "a refusal writes only a repair");
            }
        }
        if let Some(state) = step.state {
            assert_eq!(codec::decode(&codec::encode(&state)).as_ref(), Some(&state));
            self.state = state;
        }
        match step.decision.outcome {
            Outcome::Allowed | Outcome::Delayed { .. } => self.held.push(ask.id),
            Outcome::Refused { retry_after } => clock.due = clock.now + retry_after.get(),
            Outcome::Never(_) => {}
        }
        step.decision.is_allowed()
    }

    fn refund(&mut self, charged: Instant, ask: Ask, clock: &Clock) {
        let refunded = self.limiter.refund(&self.state, charged, clock.instant(), ask);
        self.state = refunded.unwrap_or_else(|| self.state.clone());
        for model in &mut self.models {
            model.refund(charged.as_micros(), clock.now, ask);
        }
    }

    /// Gives a permit back where there are permits.
    fn release(&mut self, call: &Call) {
        let (State::Permits(held), Some(last)) = (&self.state, call.back) else { return };
        let index = if last { self.held.len().checked_sub(1) } else { Some(0) };
        let Some(index) = index.filter(|index| *index < self.held.len()) else { return };
        let id = self.held.remove(index);
        if let Some(held) = held.release(id) {
            self.state = State::Permits(held);
        }
        let ask = Ask { id, ..Ask::ONE };
        self.models.iter_mut().for_each(|model| model.refund(0, 0, ask));
    }
}

#[test]
fn every_decision_equals_the_textbook() {
    for kind in Kind::ALL {
        let decisions = Cell::new(0_u64);
        TestRunner::new(ProptestConfig::with_cases(CASES))
            .run(&phases(kind), |phases| {
                let mut clock = Clock::new(true);
                let mut compared = Compared::new(&phases[0].0);
                for (phase, (limit, calls)) in phases.iter().enumerate() {
                    if phase > 0 {
                        compared.change(limit, clock.now);
                    }
                    for call in calls {
                        clock.step(call.step, limit);
                        compared.release(call);
                        compared.call(call.ask(limit, decisions.get()), &mut clock);
                        decisions.set(decisions.get() + 1);
                    }
                }
                Ok(())
            })
            .unwrap();
        println!("{kind:?}: {} decisions equal", decisions.get());
    }
}

/// While the clock goes forward: permits and the charges of windows and logs are taken back as if
/// they had never been made, those of a debt less what has drained since.
#[test]
fn every_refund_equals_the_textbook() {
    for_every_kind(
        CASES,
        |kind| (limits(kind), forward_calls()),
        |(limit, calls)| {
            let mut clock = Clock::new(false);
            let mut compared = Compared::new(&limit);
            let mut charges = Vec::new();
            for (id, call) in (0..).zip(&calls) {
                clock.step(call.step, &limit);
                let last = charges.len().checked_sub(1);
                if let (Some(last), Some(at_last)) = (last, call.back) {
                    let (charged, ask) = charges.remove(if at_last { last } else { 0 });
                    compared.refund(charged, ask, &clock);
                }
                let ask = call.ask(&limit, id);
                if compared.call(ask, &mut clock) && ask.cost > Cost::ZERO {
                    charges.push((clock.instant(), ask));
                }
            }
            Ok(())
        },
    );
}

#[test]
fn most_policies_of_the_bounds_table_are_accepted() {
    for kind in Kind::ALL {
        let (accepted, refused) = (Cell::new(0_u32), Cell::new(0_u32));
        TestRunner::new(ProptestConfig::with_cases(5_000))
            .run(&parameters(kind), |limit| {
                match limit.limiter() {
                    Ok(_) => accepted.set(accepted.get() + 1),
                    Err(unfit) => {
                        prop_assert_eq!(unfit, Unfit::TooLarge);
                        refused.set(refused.get() + 1);
                    }
                }
                Ok(())
            })
            .unwrap();
        let all = accepted.get() + refused.get();
        println!("{kind:?}: {} of {all} random policies accepted", accepted.get());
        assert!(accepted.get() > refused.get());
    }
}

#[test]
fn the_finest_tick_that_fits_is_taken() {
    let tick = |count, window, burst| {
        let rate = Rate::new(count, Micros::new(window)).expect("a rate");
        TokenBucket::new(rate, burst).map(|bucket| bucket.tick().length().get())
    };
    assert_eq!(tick(1000, 60_000_000, 1000), Ok(1));
    assert_eq!(tick(1_000_000, 1_000_000, 1_000_000_000), Ok(1));
    // w = 31,622,400,000,000 at 1 µs: 2^53 leaves room for 284 tokens, and 142 years for 142.
    assert_eq!(tick(1, 31_622_400_000_000, 142), Ok(1));
    assert_eq!(tick(1, 31_622_400_000_000, 143), Err(Unfit::TooLarge));
    assert_eq!(tick(7, 31_622_400_000_000, 284), Ok(1));
    assert_eq!(tick(7, 31_622_400_000_000, 285), Ok(10));
    assert_eq!(tick(1000, 31_622_400_000_000, 0), Err(Unfit::Burst));
}
