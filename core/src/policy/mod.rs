//! A validated policy. Whatever is in it has been checked, so nothing here can fail.

pub mod matching;
pub mod mode;
pub mod quota;
mod share;
pub mod style;

use crate::{
    bounds,
    key::{Facts, HeaderName, KeyPart, fields::FieldValue},
    limiter::Limiter,
    units::{Cost, Micros},
};
use alloc::{string::String, vec::Vec};
use core::fmt;
use matching::Match;
use mode::{MissingKey, Mode, OnStoreFailure};
use quota::{Amount, Tier};
use style::Style;

/// All limits of one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Part of every bucket's identity, so that two policies can share a store.
    pub namespace: String,
    /// Gateways that share a limit in an outage of the store.
    pub gateways: u64,
    /// Where counts are kept.
    pub store: Store,
    /// Keys the digests that leave the proxy.
    pub key_secret: Option<KeySecret>,
    /// Which headers tell a client of its limit.
    pub headers: Vec<Style>,
    /// The most that is added to `Retry-After` by chance, so that refused clients do not all come
    /// back in the same second.
    pub retry_after_jitter: Micros,
    /// The plans, as written. Sorted by name.
    pub plans: Vec<(String, Amount)>,
    /// The limits; all that apply must allow a request.
    pub limits: Vec<Limit>,
}

/// Where counts are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Store {
    /// In the proxy's shared data.
    #[default]
    Local,
    /// In Redis, by a stream through the proxy.
    Redis {
        /// The proxy's cluster that leads there.
        cluster: String,
        /// Streams, one for each range of slots.
        streams: u64,
        /// How long an answer may take.
        timeout: Micros,
    },
    /// In Redis, by HTTP callouts.
    Http {
        /// The proxy's cluster that leads there.
        cluster: String,
        /// What is spoken there.
        api: HttpApi,
        /// What opens it; none where the API asks for none.
        token: Option<Token>,
        /// The host that it is asked for, with its port if that needs saying; without one, the
        /// name of the cluster.
        host: Option<String>,
        /// How long an answer may take.
        timeout: Micros,
    },
}

/// How Redis is asked over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpApi {
    /// [webdis](https://webd.is): the parts of a command between slashes, and no token.
    Webdis,
    /// The REST API of Upstash: a command as a JSON list, and a token.
    Upstash,
}

/// The token of a store. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token of visible ASCII characters ([`bounds::TOKEN`]), so that it can stand in a header.
    pub(crate) fn new(token: String) -> Option<Self> {
        let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
        (visible && bounds::TOKEN.contains_len(token.len())).then_some(Self(token))
    }

    /// The token as text.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The secret of a policy. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

impl KeySecret {
    pub(crate) const fn new(secret: String) -> Self {
        Self(secret)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Unique in the policy; part of the bucket's identity and of what a refused client is told.
    pub name: String,
    /// Which requests it is for.
    pub applies: Match,
    /// What makes two requests share a bucket; empty: all do.
    pub key: Vec<KeyPart>,
    /// What happens to a request that lacks a part of the key.
    pub missing_key: MissingKey,
    /// How much is allowed, and to whom.
    pub tiers: Tiers,
    /// What a request takes.
    pub cost: RequestCost,
    /// Whether a refusal counts.
    pub mode: Mode,
    /// What only some requests may draw.
    pub reserve: Option<Reserve>,
    /// What happens when the store cannot say.
    pub on_store_failure: OnStoreFailure,
}

/// How much a limit allows: to a key with a limit of its own, to a plan, or to everyone else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// For a key and plan that none of the others is for.
    pub default: Tier,
    /// By plan.
    pub by_plan: Option<ByPlan>,
    /// For keys with a limit of their own, where the key has one part. Sorted by value.
    pub overrides: Vec<Override>,
}

/// The tier of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The key as the policy writes it, such as an address.
    pub written: String,
    /// Its bytes in a request; see [`KeyPart::value_written`].
    pub value: Vec<u8>,
    /// How much it is allowed.
    pub tier: Tier,
}

/// Tiers by the plan that a request is under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByPlan {
    /// Where the plan's name is read.
    pub from: KeyPart,
    /// The plan of a request without one, or with one that is not known.
    pub default: String,
    /// Plans with their tiers. Sorted by name.
    pub plans: Vec<(String, Tier)>,
}

/// What a request takes from a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestCost {
    /// Always as much.
    Fixed(Cost),
    /// What a header says: 1 where it says nothing that is a number, never less, and the most
    /// there is where it comes twice. The header must be one that clients cannot set.
    Header(HeaderName),
}

/// A part of a limit that is kept for some requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Percent of the limit, rounded up to whole tokens.
    pub share: u64,
    /// Requests that may draw it.
    pub critical: Match,
}

impl Tiers {
    /// One tier for everyone.
    #[must_use]
    pub const fn all(default: Tier) -> Self {
        Self { default, by_plan: None, overrides: Vec::new() }
    }

    /// The tier of a request whose key has these values.
    pub fn select(&self, key: &[&[u8]], facts: &impl Facts) -> &Tier {
        if let [value] = key
            && let Ok(place) =
                self.overrides.binary_search_by(|own| own.value.as_slice().cmp(value))
            && let Some(own) = self.overrides.get(place)
        {
            return &own.tier;
        }
        let Some(by_plan) = &self.by_plan else { return &self.default };
        let plan = by_plan.from.value(facts);
        plan.and_then(|plan| find(&by_plan.plans, &plan)).unwrap_or(&self.default)
    }

    /// All tiers.
    pub fn iter(&self) -> impl Iterator<Item = &Tier> {
        let plans = self.by_plan.iter().flat_map(|by_plan| &by_plan.plans);
        let plans = plans.map(|(_, tier)| tier);
        let own = self.overrides.iter().map(|own| &own.tier);
        core::iter::once(&self.default).chain(plans).chain(own)
    }
}

fn find<'a>(tiers: &'a [(String, Tier)], name: &[u8]) -> Option<&'a Tier> {
    let index = tiers.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
    tiers.get(index).map(|(_, tier)| tier)
}

impl RequestCost {
    /// The least that a request can take.
    #[must_use]
    pub const fn least(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header(_) => Cost::ONE,
        }
    }

    /// The cost of a request.
    pub fn of(&self, facts: &impl Facts) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header(name) => Cost::of_request(match facts.header(name.as_str()) {
                FieldValue::Missing => 1,
                FieldValue::One(text) => number(text.trim_ascii()).unwrap_or(1),
                // One of them is not from whom it should be, and which is not known.
                FieldValue::Several => u64::MAX,
            }),
        }
    }
}

/// A number in plain digits, however large.
fn number(text: &[u8]) -> Option<u64> {
    let plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = core::str::from_utf8(text).ok().filter(|_| plain)?;
    Some(text.parse().unwrap_or(u64::MAX))
}

impl Limit {
    /// Tokens of one shard of a tier that are reserved.
    #[must_use]
    pub fn reserved(&self, tier: &Tier, shard: usize) -> u64 {
        self.reserved_of(tier.capacity(shard))
    }

    /// Tokens of so many that are reserved.
    pub(crate) fn reserved_of(&self, capacity: u64) -> u64 {
        let share = self.reserve.as_ref().map_or(0, |reserve| reserve.share);
        capacity.saturating_mul(share).div_ceil(100)
    }

    /// Tokens that a request must leave in one shard of a tier.
    pub fn floor(&self, tier: &Tier, shard: usize, facts: &impl Facts) -> u64 {
        self.floor_of(tier.capacity(shard), facts)
    }

    /// Tokens that a request must leave in a gateway's share; see [`Tier::share`].
    pub fn share_floor(&self, share: &Limiter, facts: &impl Facts) -> u64 {
        self.floor_of(share.capacity(), facts)
    }

    fn floor_of(&self, capacity: u64, facts: &impl Facts) -> u64 {
        match &self.reserve {
            Some(reserve) if !reserve.critical.applies(facts) => self.reserved_of(capacity),
            _ => 0,
        }
    }
}
