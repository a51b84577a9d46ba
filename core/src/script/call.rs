//! What a script is called with, and what it decided.

use super::{
    CONCURRENCY, FIXED_WINDOW, GENERAL, Key, LEAKY_BUCKET, SLIDING_LOG, SLIDING_WINDOW, Script,
    TOKEN_BUCKET, TOKEN_BUCKET_FAST, TOKEN_BUCKET_MICRO,
    reply::{self, BadReply, NUMBERS_PER_LIMIT},
};
use crate::{
    limiter::{Ask, Limiter, concurrency::Concurrency, debt::Drain},
    units::Micros,
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// What is asked of one limit.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The limit.
    pub limiter: &'a Limiter,
    /// The bucket.
    pub key: Key,
    /// What the request takes.
    pub ask: Ask,
    /// Whether a refusal counts; it does not in shadow mode.
    pub enforced: bool,
}

/// A script with what it is called with.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// What is called.
    pub script: &'static Script,
    /// ARGV, all of it printable ASCII; KEYS is [`Call::keys`].
    pub args: Vec<String>,
    pub(super) limits: &'a [Asked<'a>],
}

/// Why there is no script call for some limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsendable {
    /// There is no limit.
    Nothing,
    /// A limit is [`Limiter::Closed`]: the answer is known without the store, and the request is
    /// charged to none of the others.
    Closed,
    /// Two limits have the same bucket.
    SameKey,
    /// Two limits have different hash tags: one script may not touch both.
    OtherSlot,
}

impl core::fmt::Display for Unsendable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "no limit applies",
            Self::Closed => "a limit of 0 is answered without the store",
            Self::SameKey => "two limits of one call have the same bucket",
            Self::OtherSlot => "two limits of one call have different hash tags",
        })
    }
}

impl core::error::Error for Unsendable {}

impl<'a> Call<'a> {
    /// The call that decides a request: the script of the limit if there is one, the general one
    /// if there are several.
    ///
    /// # Errors
    /// [`Unsendable`] says why these limits cannot be decided in one call.
    pub fn new(limits: &'a [Asked<'a>]) -> Result<Self, Unsendable> {
        let [asked] = limits else { return Self::refundable(limits) };
        let step = Step::of(asked).ok_or(Unsendable::Closed)?;
        let Step { script, args, .. } = step.fastest();
        Ok(Self { script, args, limits })
    }

    /// The call that decides a request and tells when it charged, so that it can be given back; see
    /// [`Call::charged`]. A single limit takes the general script too, which is a little slower.
    ///
    /// # Errors
    /// [`Unsendable`] says why these limits cannot be decided in one call.
    pub fn refundable(limits: &'a [Asked<'a>]) -> Result<Self, Unsendable> {
        let args = steps(limits)?.into_iter().zip(limits);
        let args = args.flat_map(|(step, limit)| step.labelled(limit.enforced)).collect();
        Ok(Self { script: &GENERAL, args, limits })
    }

    /// KEYS in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.limits.iter().map(|limit| limit.key.as_str())
    }
}

/// The steps of limits that one script may touch together, one at least.
pub(super) fn steps(limits: &[Asked<'_>]) -> Result<Vec<Step>, Unsendable> {
    for (place, limit) in limits.iter().enumerate() {
        let before = limits.get(..place).unwrap_or_default();
        if before.iter().any(|other| other.key == limit.key) {
            return Err(Unsendable::SameKey);
        }
        if before.iter().any(|other| other.key.tag() != limit.key.tag()) {
            return Err(Unsendable::OtherSlot);
        }
    }
    let steps: Option<Vec<_>> = limits.iter().map(Step::of).collect();
    steps
        .ok_or(Unsendable::Closed)
        .and_then(|steps| if steps.is_empty() { Err(Unsendable::Nothing) } else { Ok(steps) })
}

/// The script of one limit and its ARGV.
pub(super) struct Step {
    script: &'static Script,
    /// What the general script knows it by.
    letter: char,
    args: Vec<String>,
}

impl Step {
    /// `None` for a limit that is decided without a store.
    fn of(asked: &Asked<'_>) -> Option<Self> {
        let Asked { limiter, ask, .. } = *asked;
        let numbers =
            |span: u64, limit: u64| [span, limit, ask.cost.get(), limit.saturating_sub(ask.floor)];
        Some(match limiter {
            Limiter::Closed => return None,
            Limiter::TokenBucket(bucket) => Self::debt(&TOKEN_BUCKET, 'b', bucket.drain(), ask),
            Limiter::LeakyBucket(queue) => Self::debt(&LEAKY_BUCKET, 'q', queue.drain(), ask),
            Limiter::FixedWindow(window) => {
                Self::new(&FIXED_WINDOW, 'f', &numbers(window.window().get(), window.limit()))
            }
            Limiter::SlidingWindow(window) => {
                let tick = window.tick().length().get();
                let [length, limit, cost, usable] = numbers(window.length(), window.limit());
                Self::new(&SLIDING_WINDOW, 's', &[tick, length, limit, cost, usable])
            }
            Limiter::SlidingLog(log) => {
                Self::new(&SLIDING_LOG, 'l', &numbers(log.window().get(), log.limit()))
            }
            Limiter::Concurrency(permits) => {
                let numbers = numbers(permits.lease().get(), permits.limit());
                let mut step = Self::new(&CONCURRENCY, 'c', &numbers);
                step.args.push(format!("{:x}", ask.id));
                step
            }
        })
    }

    fn debt(script: &'static Script, letter: char, drain: &Drain, ask: Ask) -> Self {
        // More than the capacity never passes, however much more; so every number is below 2^53.
        let price = drain.units(ask.cost.get()).min(drain.capacity.saturating_add(1));
        let usable = drain.capacity.saturating_sub(drain.units(ask.floor));
        let (tick, refill) = (drain.tick.length().get(), drain.refill.get());
        let numbers = [tick, refill, drain.token.get(), drain.capacity, price, usable];
        Self::new(script, letter, &numbers)
    }

    fn new(script: &'static Script, letter: char, numbers: &[u64]) -> Self {
        Self { script, letter, args: numbers.iter().map(ToString::to_string).collect() }
    }

    /// The same step by a faster script, if there is one.
    fn fastest(mut self) -> Self {
        let is_one = |place| self.args.get(place).is_some_and(|number| number == "1");
        let (each_micro, each_unit) = (is_one(0), is_one(1));
        if self.script != &TOKEN_BUCKET || !each_micro {
            return self;
        }
        if !each_unit {
            // All but the tick and the token, which say only how the reply is told.
            self.script = &TOKEN_BUCKET_MICRO;
            let places = [1, 3, 4, 5].into_iter();
            self.args = places.filter_map(|place| self.args.get(place).cloned()).collect();
            return self;
        }
        self.script = &TOKEN_BUCKET_FAST;
        self.args.drain(..2);
        // A price of one token and no reserve go without saying.
        if self.args.get(3) == self.args.get(1) {
            self.args.pop();
            if self.args.get(2) == self.args.first() {
                self.args.pop();
            }
        }
        self
    }

    /// ARGV for the general script.
    pub(super) fn labelled(self, enforced: bool) -> impl Iterator<Item = String> {
        let letter = if enforced { self.letter } else { self.letter.to_ascii_uppercase() };
        core::iter::once(letter.into()).chain(self.args)
    }
}

/// A call that gives the permits of a request back.
#[derive(Clone, Debug)]
pub struct Release<'a> {
    limit: &'a Concurrency,
    /// KEYS, the only one.
    pub key: Key,
    /// ARGV, all of it printable ASCII.
    pub args: Vec<String>,
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Whether the request still held permits; false if its lease had ended.
    pub held: bool,
    /// Permits that are free now.
    pub remaining: u64,
    /// Time until all leases have ended.
    pub reset_after: Micros,
}

impl<'a> Release<'a> {
    /// The call of [`RELEASE`](super::RELEASE) for the request of a number; `None` for a limit without permits.
    #[must_use]
    pub fn new(limiter: &'a Limiter, key: Key, id: u64) -> Option<Self> {
        let Limiter::Concurrency(limit) = limiter else { return None };
        let (lease, permits) = (limit.lease().get(), limit.limit());
        let args = [lease.to_string(), permits.to_string(), format!("{id:x}")].into();
        Some(Self { limit, key, args })
    }

    /// What the script did.
    ///
    /// # Errors
    /// [`BadReply`] for any integers that the script cannot have replied.
    pub fn outcome(&self, reply: &[i64]) -> Result<Released, BadReply> {
        let bad = BadReply::Length { found: reply.len(), expected: NUMBERS_PER_LIMIT };
        let found = <[i64; NUMBERS_PER_LIMIT]>::try_from(reply).map_err(|_| bad)?;
        let limit = self.limit.limit();
        let released = match found {
            [held @ 0..=1, remaining, 0, reset] => {
                let remaining = u64::try_from(remaining).ok().filter(|left| *left <= limit);
                remaining.zip(reply::micros(reset)).map(|(remaining, reset_after)| Released {
                    held: held == 1,
                    remaining,
                    reset_after,
                })
            }
            _ => None,
        };
        released.ok_or(BadReply::Numbers { limit: 0, found })
    }
}
