//! What a screen reader is told: one short sentence at a time, on changes only.

use super::{caption::burst_sentence, record::Event, text::seconds};

/// At most one sentence in this time, in real microseconds.
const PAUSE: u64 = 2_000_000;

/// Holds back sentences so that a listener can follow; the newest one wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcer {
    pending: Option<String>,
    last: Option<u64>,
}

impl Announcer {
    /// Offers a sentence for an event.
    pub fn offer(&mut self, event: Event) {
        self.pending = Some(match event {
            Event::Empty { at } => format!("First refusal at {} seconds.", seconds(at)),
            Event::Full { .. } => "The bucket is full.".to_owned(),
            Event::Burst(burst) => burst_sentence(burst),
        });
    }

    /// The sentence to say at this real time, if one waits and the last was long enough ago.
    pub fn take(&mut self, real: u64) -> Option<String> {
        if self.last.is_some_and(|last| real.saturating_sub(last) < PAUSE) {
            return None;
        }
        let sentence = self.pending.take()?;
        self.last = Some(real);
        Some(sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_two_seconds_apart_and_the_newest_is_said() {
        let mut announcer = Announcer::default();
        announcer.offer(Event::Empty { at: 4_666_666 });
        assert_eq!(announcer.take(0).as_deref(), Some("First refusal at 4.667 seconds."));
        announcer.offer(Event::Empty { at: 5_000_000 });
        announcer.offer(Event::Full { at: 6_000_000 });
        assert_eq!(announcer.take(1_999_999), None);
        assert_eq!(announcer.take(2_000_000).as_deref(), Some("The bucket is full."));
        assert_eq!(announcer.take(9_000_000), None);
    }
}
