//! From all results of a request to its answer, and what is undone for it.

use super::{Charged, Sent, Shared, Waiting, calls};
use crate::{
    flow::{self, Asked, Decided, Held, Permit, Request, Said, combine},
    host::{Clock, Counters, Entropy, Host, Moment, SharedData},
    metrics::Metric,
    plugin::Plugin,
    store::{
        Failure,
        local::{Checked, Question},
    },
};
use weir_core::{
    policy::{Limit, mode::OnStoreFailure},
    response::Verdict,
    units::Instant,
};

impl Shared {
    /// Decides a request whose calls have all come to something.
    pub(super) fn finish(
        &mut self,
        request: &Request<'_, impl Host>,
        waiting: Waiting,
        now: Moment,
    ) -> Decided {
        let mut said: Vec<Said<'_>> = Vec::new();
        let mut shares = Vec::new();
        let mut permits = Vec::new();
        let mut denied = None;
        let mut unchecked = 0_usize;
        let Waiting { known, calls, at } = &waiting;
        said.extend(known.iter().filter_map(|(asked, decision)| request.said(asked, *decision)));
        for Sent { asked, result } in calls {
            match result {
                Some(Ok(charged)) => {
                    for (asked, decision) in asked.iter().zip(&charged.decisions) {
                        if asked.is_held() && decision.is_allowed() {
                            permits.push(Permit(Held::Store(*asked)));
                        }
                        said.extend(request.said(asked, *decision));
                    }
                }
                Some(Err(failure)) => {
                    for asked in asked {
                        // Without an answer, it may have been granted all the same.
                        let unknown = [Failure::Timeout, Failure::Lost, Failure::Error];
                        if asked.is_held() && unknown.contains(failure) {
                            permits.push(Permit(Held::Store(*asked)));
                        }
                        match request.fall_back(asked, *failure) {
                            Fallback::Pass => unchecked = unchecked.saturating_add(1),
                            Fallback::Deny(limit) => denied = denied.or(Some(limit)),
                            Fallback::Share(question, checked) => {
                                if asked.is_held() && checked.decision.is_allowed() {
                                    permits.push(Permit(Held::Counts(question)));
                                }
                                said.extend(request.said(asked, checked.decision));
                                shares.push((question, checked));
                            }
                        }
                    }
                }
                None => {}
            }
        }
        let combined = combine(&said);
        let passes = combined.outcome.is_allowed() && denied.is_none();
        self.remember(request.host, (*at, now), calls, passes);
        if !passes {
            self.refund(request, now, calls, &shares);
            let held = core::mem::take(&mut permits);
            self.release(request.plugin, request.host, request.host, &held);
        }
        let answer = match denied {
            Some(limit) if combined.outcome.is_allowed() => {
                request.count(Metric::Unavailable);
                request.answer(limit, Verdict::Unchecked)
            }
            _ => {
                request.count_unchecked(if passes { unchecked } else { 0 });
                request.tell(&combined, &said)
            }
        };
        Decided { answer, permits }
    }

    /// Keeps what the store has decided for the requests that follow; but not a charge that is about
    /// to be given back.
    fn remember(
        &self,
        host: &impl SharedData,
        times: (Moment, Moment),
        calls: &[Sent],
        passes: bool,
    ) {
        for Sent { asked, result } in calls {
            let Some(Ok(Charged { decisions, .. })) = result else { continue };
            for (asked, decision) in asked.iter().zip(decisions) {
                if passes || !decision.is_allowed() {
                    let Asked { digest, limiter, ask, .. } = asked;
                    self.recent.keep(host, times, *digest, (limiter, *ask), decision);
                }
            }
        }
    }

    /// Gives back what a refused request was charged.
    fn refund(
        &mut self,
        request: &Request<'_, impl Host>,
        now: Moment,
        calls: &[Sent],
        shares: &[(Question, Checked)],
    ) {
        for (question, Checked { decision, at }) in shares {
            if decision.is_allowed() {
                request.plugin.counts.refund(request.host, request.host, question, *at);
            }
        }
        for Sent { asked, result } in calls {
            let Some(Ok(Charged { decisions, at: Some(at) })) = result else { continue };
            let voted = || asked.iter().zip(decisions);
            if voted().any(|(asked, decision)| asked.enforced && !decision.is_allowed()) {
                continue;
            }
            // Permits are released by their names.
            let taken =
                voted().filter(|(asked, decision)| decision.is_allowed() && !asked.is_held());
            let taken: Vec<Asked> = taken.map(|(asked, _)| *asked).collect();
            self.give_back(request, request.host, now, &taken, *at);
        }
    }

    /// Gives back what a request has held.
    pub fn release(
        &mut self,
        plugin: &Plugin,
        host: &impl Host,
        clock: &impl Clock,
        permits: &[Permit],
    ) {
        flow::release(plugin, permits, clock, host);
        let Ok(now) = host.moment() else { return };
        for permit in permits {
            if let Permit(Held::Store(asked)) = permit {
                // When it was taken does not matter: a permit has a name.
                let request = Request { plugin, host };
                self.give_back(&request, clock, now, &[*asked], Instant::EPOCH);
            }
        }
    }

    /// Undoes what one call charged at `at`, by the store's clock.
    fn give_back(
        &mut self,
        request: &Request<'_, impl Host>,
        clock: &impl Clock,
        now: Moment,
        taken: &[Asked],
        at: Instant,
    ) {
        let Some(command) = calls::refund(taken, at, clock) else { return };
        if !self.store.refund(request.host, now, command) {
            request.count(Metric::RefundLost);
        }
    }
}

/// What becomes of a limit that the store could not check.
enum Fallback<'a> {
    /// It does not count.
    Pass,
    /// The request is turned away.
    Deny(&'a Limit),
    /// This proxy's share of the limit has decided.
    Share(Question, Checked),
}

impl<H: SharedData + Counters + Entropy + Clock> Request<'_, H> {
    fn fall_back(&self, asked: &Asked, failure: Failure) -> Fallback<'_> {
        self.count_failure(failure);
        let Some(limit) = self.limit(asked).filter(|_| asked.enforced) else {
            return Fallback::Pass;
        };
        match (limit.on_store_failure, asked.share) {
            (OnStoreFailure::Allow, _) => Fallback::Pass,
            (OnStoreFailure::Local, Some((limiter, ask))) => {
                let counts = &self.plugin.counts;
                let digest = counts.table().place_of("share", self.plugin.store, asked.digest);
                let question = Question { digest, limiter, ask };
                match counts.check(self.host, self.host, &question) {
                    Ok(checked) => {
                        self.count(Metric::ByShare);
                        Fallback::Share(question, checked)
                    }
                    Err(failure) => {
                        self.count_failure(failure);
                        Fallback::Deny(limit)
                    }
                }
            }
            (OnStoreFailure::Deny | OnStoreFailure::Local, _) => Fallback::Deny(limit),
        }
    }
}
