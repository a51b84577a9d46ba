//! What the core says of the calls of a test: decisions, states, and how long they are kept.

use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;
use weir_core::{
    decision::Decision,
    limiter::{
        Ask, Limiter, State, Step,
        concurrency::{Permit, PermitState},
        sliding_log::Charge,
    },
    script::{Asked, Key, Released},
    units::{Cost, Instant, Micros},
};
use weir_lab::redis::{Expiry, Observed};

/// The text that a script stores for a state.
fn text(state: &State) -> Option<String> {
    let cost = |cost: u64| if cost == 1 { String::new() } else { format!(":{cost}") };
    let mut before = 0;
    let mut since = |time: Instant| {
        let since = time.as_micros() - before;
        before = time.as_micros();
        since
    };
    Some(match state {
        State::None => return None,
        State::Debt(debt) => match debt.to_parts() {
            (drained_at, 0) => drained_at.to_string(),
            (drained_at, rest) => format!("{drained_at}:{rest}"),
        },
        State::Window(window) => {
            let (start, previous, current) = window.to_parts();
            format!("{start}:{previous}:{current}")
        }
        State::Log(log) => {
            let charge = |c: &Charge| format!("{}{},", since(c.at), cost(c.cost));
            format!("L{}", log.charges().iter().map(charge).collect::<String>())
        }
        State::Permits(held) => {
            let permit = |p: &Permit| format!("{:x}@{}{},", p.id, since(p.until), cost(p.cost));
            format!("P{}", held.permits().iter().map(permit).collect::<String>())
        }
    })
}

/// Whether a script stores this text for a state. Permits that end together are in the order in
/// which they were taken; the core has them by number, which changes no decision.
pub(crate) fn stores(stored: Option<&str>, state: &State) -> bool {
    let Some(permits) = stored.and_then(|stored| stored.strip_prefix('P')) else {
        return stored == text(state).as_deref();
    };
    let mut until = 0;
    let permits = permits.split_terminator(',').map(|permit| {
        let (id, rest) = permit.split_once('@')?;
        let (later, cost) = rest.split_once(':').unwrap_or((rest, "1"));
        until += later.parse::<u64>().ok()?;
        let id = u64::from_str_radix(id, 16).ok()?;
        Some(Permit { id, until: Instant::from_micros(until), cost: cost.parse().ok()? })
    });
    let held = permits.collect::<Option<_>>().and_then(PermitState::from_permits);
    held.is_some_and(|held| State::Permits(held) == *state)
}

/// What a call must leave of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// What was there, without an expiry, since the last look took it off.
    Unwritten,
    Nothing,
    /// A state that is idle after so long.
    Written(Micros),
}

/// What the core says of the calls, on states that are kept in a map.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) states: BTreeMap<Key, State>,
}

impl Model {
    fn state(&self, key: Key) -> State {
        self.states.get(&key).cloned().unwrap_or_default()
    }

    /// All limits of one request: one that an enforced limit refuses is charged to none.
    pub(crate) fn check(&mut self, asked: &[Asked<'_>], now: Instant) -> Vec<(Decision, Left)> {
        let step = |limit: &Asked<'_>| limit.limiter.step(&self.state(limit.key), now, limit.ask);
        let steps: Vec<_> = asked.iter().map(step).collect();
        let passes = |(limit, step): (&Asked<'_>, &Step<State>)| {
            step.decision.is_allowed() || !limit.enforced
        };
        let passes = asked.iter().zip(&steps).all(passes);
        let votes = asked.iter().zip(steps).map(|(limit, mut step)| {
            let outcome = step.decision.outcome;
            if !passes && step.decision.is_allowed() {
                let nothing = Ask { cost: Cost::ZERO, ..limit.ask };
                step = limit.limiter.step(&self.state(limit.key), now, nothing);
            }
            let left = self.keep(limit.limiter, limit.key, step.state, now);
            (Decision { outcome, ..step.decision }, left)
        });
        votes.collect()
    }

    pub(crate) fn release(
        &mut self,
        limiter: &Limiter,
        key: Key,
        id: u64,
        now: Instant,
    ) -> (Released, Left) {
        let ask = Ask { id, ..Ask::ONE };
        let released = limiter.refund(&self.state(key), now, now, ask);
        let held = released.is_some();
        let left = self.keep(limiter, key, released, now);
        let Decision { remaining, reset_after, .. } = limiter.peek(&self.state(key), now);
        (Released { held, remaining, reset_after }, left)
    }

    /// Undoes what was charged to each limit.
    pub(crate) fn refund(
        &mut self,
        asked: &[Asked<'_>],
        charged: Instant,
        now: Instant,
    ) -> Vec<(bool, Left)> {
        let refund = |limit: &Asked<'_>| {
            let state = self.state(limit.key);
            let refunded = limit.limiter.refund(&state, charged, now, limit.ask);
            (refunded.is_some(), self.keep(limit.limiter, limit.key, refunded, now))
        };
        asked.iter().map(refund).collect()
    }

    fn keep(&mut self, limiter: &Limiter, key: Key, state: Option<State>, now: Instant) -> Left {
        let Some(state) = state else {
            return if self.states.contains_key(&key) { Left::Unwritten } else { Left::Nothing };
        };
        let idle = limiter.idle_after(&state, now);
        if idle == Micros::ZERO {
            self.states.remove(&key);
            Left::Nothing
        } else {
            self.states.insert(key, state);
            Left::Written(idle)
        }
    }
}

/// A written key lives for as long as the core remembers the state, rounded up to a millisecond:
/// at least as long, and less than one millisecond longer.
pub(crate) fn check_expiry(seen: &Observed, place: usize, left: Left) -> Result<()> {
    let (before, after) = (seen.between.0 / 1_000, seen.between.1 / 1_000);
    match (seen.expiry[place], left) {
        (Expiry::NoKey, Left::Nothing) | (Expiry::Never, Left::Unwritten) => {}
        (Expiry::At(at), Left::Written(idle)) => {
            let millis = idle.get().div_ceil(1_000);
            let lives = at.saturating_sub(after)..=at.saturating_sub(before);
            ensure!(millis > 0 && lives.contains(&millis), "lives {lives:?} ms for {idle:?}");
        }
        (seen, left) => bail!("{seen:?} for {left:?}"),
    }
    Ok(())
}
