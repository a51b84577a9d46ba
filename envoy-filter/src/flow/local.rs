//! Limits on counts in the proxy's shared data.
//!
//! The limits are asked first, and charged only if all of them would allow. Where one then refuses
//! all the same, because another worker took its last token in between, the others get their
//! charge back.

use super::{Asked, Decided, Held, Permit, Request, Said, combine};
use crate::{
    host::{Clock, Counters, Entropy, SharedData},
    metrics::Metric,
    plugin::Plugin,
    store::local::{Checked, Question},
};
use weir_core::{
    key::Facts,
    policy::mode::OnStoreFailure,
    response::{Answer, Verdict},
};

/// Decides a request on the wall clock.
pub fn decide(
    plugin: &Plugin,
    facts: &impl Facts,
    clock: &impl Clock,
    host: &(impl SharedData + Counters + Entropy),
) -> Decided {
    let request = Request { plugin, host };
    let asked = match request.ask_all(facts) {
        Ok(asked) => asked,
        Err(answer) => return answer.into(),
    };
    match asked.as_slice() {
        [] => Answer::UNTOUCHED.into(),
        // One limit needs no asking first: it is charged exactly if it allows.
        [_] => request.charge(&asked, clock),
        _ => request
            .refusal(&asked, clock)
            .map_or_else(|| request.charge(&asked, clock), Decided::from),
    }
}

impl Asked {
    fn question(&self) -> Question {
        Question { digest: self.digest, limiter: self.limiter, ask: self.ask }
    }
}

impl<H: SharedData + Counters + Entropy> Request<'_, H> {
    /// The answer to a request that one of its limits refuses, charged to none; `None` if all would
    /// allow it. What the store cannot say is no refusal yet.
    fn refusal(&self, asked: &[Asked], clock: &impl Clock) -> Option<Answer> {
        let counts = &self.plugin.counts;
        let peek = |asked: &Asked| counts.peek(self.host, clock, &asked.question()).ok();
        let said = self.all_said(asked, &asked.iter().map(peek).collect::<Vec<_>>());
        let combined = combine(&said);
        (!combined.outcome.is_allowed()).then(|| self.tell(&combined, &said))
    }

    /// Charges every limit, and undoes it if one of them refuses or must not go unchecked.
    fn charge(&self, asked: &[Asked], clock: &impl Clock) -> Decided {
        let mut checked: Vec<Option<Checked>> = Vec::new();
        let mut unchecked = 0_usize;
        for one in asked {
            match self.plugin.counts.check(self.host, clock, &one.question()) {
                Ok(answer) => {
                    checked.push(Some(answer));
                    if one.enforced && !answer.decision.is_allowed() {
                        break;
                    }
                }
                Err(failure) => {
                    self.count_failure(failure);
                    if let Some(limit) = self.limit(one)
                        && one.enforced
                        && limit.on_store_failure != OnStoreFailure::Allow
                    {
                        self.refund(asked, &checked, clock);
                        self.count(Metric::Unavailable);
                        return self.answer(limit, Verdict::Unchecked).into();
                    }
                    unchecked = unchecked.saturating_add(1);
                    checked.push(None);
                }
            }
        }
        let said = self.all_said(asked, &checked);
        let combined = combine(&said);
        let mut permits = Vec::new();
        if combined.outcome.is_allowed() {
            self.count_unchecked(unchecked);
            let held = asked.iter().zip(&checked).filter(|(asked, checked)| {
                let allowed = checked.is_some_and(|checked| checked.decision.is_allowed());
                allowed && asked.is_held()
            });
            permits.extend(held.map(|(asked, _)| Permit(Held::Counts(asked.question()))));
        } else {
            self.refund(asked, &checked, clock);
        }
        Decided { answer: self.tell(&combined, &said), permits }
    }

    fn refund(&self, asked: &[Asked], checked: &[Option<Checked>], clock: &impl Clock) {
        for (one, checked) in asked.iter().zip(checked) {
            if let Some(Checked { decision, at }) = checked
                && decision.is_allowed()
            {
                self.plugin.counts.refund(self.host, clock, &one.question(), *at);
            }
        }
    }

    /// What the limits said that could.
    fn all_said<'a>(&'a self, asked: &'a [Asked], checked: &[Option<Checked>]) -> Vec<Said<'a>> {
        let said = asked.iter().zip(checked);
        said.filter_map(|(asked, checked)| self.said(asked, checked.as_ref()?.decision)).collect()
    }
}
