//! Several limits on one request: all that apply must allow it, and a refused request is charged to
//! none.

use crate::{
    decision::{Decision, Outcome},
    units::Micros,
};

/// What one limit said of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// Its decision.
    pub decision: Decision,
    /// Whether a refusal counts; it does not in shadow mode.
    pub enforced: bool,
}

/// What all limits together make of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    /// Whether the request passes. Where it is delayed, by the longest delay.
    pub outcome: Outcome,
    /// The vote that binds, by its place: of a refusal, the one that holds for longest; of a
    /// request that passes, the enforced one with least left. What a client is told comes from it.
    /// `None` only where no limit is enforced.
    pub binding: Option<usize>,
}

impl Combined {
    /// Combines votes. Without any, the request passes.
    ///
    /// A limit whose vote allows is charged exactly if the whole outcome allows; one that refuses
    /// in shadow mode is not charged either way.
    ///
    /// ```
    /// use weir_core::{combine::{Combined, Vote}, decision::{Decision, Outcome}, units::Micros};
    /// let vote = |outcome, remaining| Vote {
    ///     decision: Decision { outcome, limit: 10, remaining, reset_after: Micros::SECOND },
    ///     enforced: true,
    /// };
    /// let refused = Outcome::Refused { retry_after: Micros::SECOND };
    /// let combined = Combined::of(&[vote(Outcome::Allowed, 5), vote(refused, 0)]);
    /// assert_eq!((combined.outcome, combined.binding), (refused, Some(1)));
    /// ```
    #[must_use]
    pub fn of(votes: &[Vote]) -> Self {
        let enforced = || votes.iter().enumerate().filter(|(_, vote)| vote.enforced);
        let refusals = enforced().filter(|(_, vote)| !vote.decision.is_allowed());
        // Of equals the first: `max_by_key` takes the last.
        if let Some((place, vote)) = refusals.rev().max_by_key(|(_, vote)| holds(&vote.decision)) {
            return Self { outcome: vote.decision.outcome, binding: Some(place) };
        }
        let least = enforced().min_by_key(|(_, vote)| vote.decision.remaining);
        let delay = enforced().map(|(_, vote)| delay(&vote.decision)).max().unwrap_or_default();
        let outcome =
            if delay == Micros::ZERO { Outcome::Allowed } else { Outcome::Delayed { delay } };
        Self { outcome, binding: least.map(|(place, _)| place) }
    }
}

/// How long a refusal holds; for ever sorts last.
fn holds(decision: &Decision) -> (bool, Micros) {
    match decision.outcome {
        Outcome::Never(_) => (true, Micros::ZERO),
        Outcome::Refused { retry_after } => (false, retry_after),
        Outcome::Allowed | Outcome::Delayed { .. } => (false, Micros::ZERO),
    }
}

fn delay(decision: &Decision) -> Micros {
    match decision.outcome {
        Outcome::Delayed { delay } => delay,
        Outcome::Allowed | Outcome::Refused { .. } | Outcome::Never(_) => Micros::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Never;

    fn vote(outcome: Outcome, remaining: u64, enforced: bool) -> Vote {
        let decision = Decision { outcome, limit: 10, remaining, reset_after: Micros::ZERO };
        Vote { decision, enforced }
    }

    const fn wait(micros: u64) -> Outcome {
        Outcome::Refused { retry_after: Micros::new(micros) }
    }

    fn check(votes: &[Vote], outcome: Outcome, binding: Option<usize>) {
        assert_eq!(Combined::of(votes), Combined { outcome, binding });
    }

    #[test]
    fn a_request_without_limits_passes() {
        check(&[], Outcome::Allowed, None);
    }

    #[test]
    fn a_request_that_all_allow_passes_and_hears_of_the_one_with_least_left() {
        let votes = [vote(Outcome::Allowed, 5, true), vote(Outcome::Allowed, 3, true)];
        check(&votes, Outcome::Allowed, Some(1));
    }

    #[test]
    fn the_refusal_that_holds_for_longest_binds() {
        // agentgateway/agentgateway#3328: a 429 with the headers of a limit that passed.
        let allowed = vote(Outcome::Allowed, 0, true);
        check(&[allowed, vote(wait(1), 0, true), vote(wait(2), 0, true)], wait(2), Some(2));
        let never = Outcome::Never(Never::Closed);
        check(&[vote(wait(9), 0, true), vote(never, 0, true), allowed], never, Some(1));
        check(&[vote(wait(2), 0, true), vote(wait(2), 0, true)], wait(2), Some(0));
    }

    #[test]
    fn a_refusal_in_shadow_mode_changes_nothing() {
        let votes = [vote(wait(9), 0, false), vote(Outcome::Allowed, 4, true)];
        check(&votes, Outcome::Allowed, Some(1));
        check(&votes[..1], Outcome::Allowed, None);
    }

    #[test]
    fn the_longest_delay_is_waited() {
        let delayed = |micros| Outcome::Delayed { delay: Micros::new(micros) };
        let votes =
            [vote(delayed(5), 9, true), vote(delayed(7), 9, true), vote(delayed(99), 9, false)];
        check(&votes, delayed(7), Some(0));
    }
}
