//! A table of fixed size for hosts that never delete: a key hashes to one of [`SETS`] sets, and a
//! set holds the states of up to [`WAYS`] keys.
//!
//! Only a state that is idle again gives up its place, which changes no decision, since an idle key
//! and one never seen are the same. A set without such a state takes no newcomer ([`SetFull`]):
//! letting it start afresh would admit too much, and letting it inherit another's debt would refuse
//! the innocent.

use super::codec;
use crate::{key::hash::Digest, limiter::State, units::Instant};
use alloc::vec::Vec;

/// Sets of a table; a power of two.
pub const SETS: u64 = 1 << 15;

/// Keys of a set.
pub const WAYS: usize = 8;

/// First byte of a set: the version of its format.
const VERSION: u8 = 1;

/// The set in which a digest has its place.
#[must_use]
pub const fn set_of(digest: Digest) -> u64 {
    digest.low_bits() % SETS
}

/// The states of one set. As bytes: the version, then for each key its digest, the time at which it
/// is idle, the length of its state in four bytes, and the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    digest: Digest,
    /// From here on the state says no more than that of a key never seen.
    idle_at: Instant,
    state: State,
}

/// No key of the set is idle, so there is no place for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFull;

impl Set {
    /// A set from its bytes; no bytes are an empty set, and `None` stands for bytes that
    /// [`Set::encode`] cannot have written.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let Some((&version, mut rest)) = bytes.split_first() else { return Some(Self::default()) };
        let mut entries = Vec::new();
        while !rest.is_empty() {
            let (entry, after) = Entry::take(rest)?;
            entries.push(entry);
            rest = after;
        }
        (version == VERSION && entries.len() <= WAYS).then_some(Self { entries })
    }

    /// The set as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = alloc::vec![VERSION];
        for entry in &self.entries {
            let state = codec::encode(&entry.state);
            // A state is bounded by `bounds::ENTRIES`, far below 2^32.
            let length = u32::try_from(state.len()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&entry.digest.to_bytes());
            bytes.extend_from_slice(&entry.idle_at.as_micros().to_le_bytes());
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&state);
        }
        bytes
    }

    /// The state of a key; [`State::None`] if it is not in the set.
    #[must_use]
    pub fn state(&self, digest: Digest) -> &State {
        let entry = self.entries.iter().find(|entry| entry.digest == digest);
        entry.map_or(&State::None, |entry| &entry.state)
    }

    /// The state of a key that is in the set and not idle at `now`.
    #[must_use]
    pub fn busy(&self, digest: Digest, now: Instant) -> Option<&State> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| entry.digest == digest && entry.idle_at > now);
        entry.map(|entry| &entry.state)
    }

    /// Keeps the state of a key that will be idle at `idle_at`, and drops the others that are idle at
    /// `now`.
    ///
    /// # Errors
    /// [`SetFull`] if every place is taken; the set is then unchanged but for what was dropped.
    pub fn put(
        &mut self,
        digest: Digest,
        state: State,
        idle_at: Instant,
        now: Instant,
    ) -> Result<(), SetFull> {
        self.entries.retain(|entry| entry.digest != digest && entry.idle_at > now);
        if self.entries.len() >= WAYS {
            return Err(SetFull);
        }
        self.entries.push(Entry { digest, idle_at, state });
        Ok(())
    }
}

impl Entry {
    /// The entry at the front of some bytes, and what follows it.
    fn take(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (digest, rest) = bytes.split_first_chunk()?;
        let (idle_at, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (state, rest) = rest.split_at_checked(length)?;
        let entry = Self {
            digest: Digest::from_bytes(*digest),
            idle_at: Instant::from_micros(u64::from_le_bytes(*idle_at)),
            state: codec::decode(state)?,
        };
        Some((entry, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::debt::DebtState;
    use proptest::prelude::*;

    fn digest(n: u8) -> Digest {
        Digest::from_bytes([n; 16])
    }

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn bucket(full_at: u64) -> State {
        State::Debt(DebtState::from_parts(full_at, 0).unwrap())
    }

    fn put(set: &mut Set, n: u8, full_at: u64, now: u64) -> Result<(), SetFull> {
        set.put(digest(n), bucket(full_at), at(full_at), at(now))
    }

    fn crowded() -> Set {
        let mut set = Set::default();
        for n in 0..8 {
            put(&mut set, n, 100 + u64::from(n), 0).unwrap();
        }
        set
    }

    #[test]
    fn a_bucket_is_found_again_and_a_stranger_is_full() {
        let mut set = Set::default();
        put(&mut set, 1, 50, 0).unwrap();
        assert_eq!(set.state(digest(1)), &bucket(50));
        assert_eq!(set.state(digest(2)), &State::None);
    }

    #[test]
    fn a_set_of_owing_buckets_takes_no_newcomer_and_keeps_all() {
        let mut set = crowded();
        assert_eq!(put(&mut set, 9, 500, 99), Err(SetFull));
        assert_eq!(set, crowded());
    }

    #[test]
    fn a_bucket_that_is_full_again_gives_up_its_place() {
        let mut set = crowded();
        assert_eq!(put(&mut set, 9, 500, 100), Ok(()));
        assert_eq!(set.state(digest(0)), &State::None);
        assert_eq!(set.state(digest(1)), &bucket(101));
    }

    #[test]
    fn a_bucket_in_a_crowded_set_can_still_be_charged() {
        let mut set = crowded();
        assert_eq!(put(&mut set, 3, 900, 99), Ok(()));
        assert_eq!(set.state(digest(3)), &bucket(900));
    }

    #[test]
    fn bytes_of_another_version_or_length_are_no_set() {
        let mut bytes = crowded().encode();
        assert_eq!(Set::decode(&bytes), Some(crowded()));
        bytes.pop();
        assert_eq!(Set::decode(&bytes), None);
        assert_eq!(Set::decode(&[2]), None);
        assert_eq!(Set::decode(&[]), Some(Set::default()));
    }

    proptest! {
        #[test]
        fn decoding_any_bytes_ends(bytes: Vec<u8>) {
            let _ = Set::decode(&[&[VERSION], bytes.as_slice()].concat());
        }

        #[test]
        fn a_set_comes_back_from_its_bytes(puts in proptest::collection::vec((0..12_u8, 1..99_u64), 0..40)) {
            let mut set = Set::default();
            for (n, full_at) in puts {
                let _ = put(&mut set, n, full_at, 50);
            }
            prop_assert_eq!(Set::decode(&set.encode()), Some(set));
        }
    }
}
