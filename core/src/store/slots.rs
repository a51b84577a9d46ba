//! A table of fixed size for hosts that never delete: a key hashes to one of [`SETS`] sets, and a
//! set holds up to [`WAYS`] buckets.
//!
//! Only a bucket that is full again gives up its place, which changes no decision, since a full
//! bucket and no bucket are the same. A set without such a bucket takes no newcomer
//! ([`SetFull`]): letting it start full would admit too much, and letting it inherit another's
//! debt would refuse the innocent.

use super::codec::{self, BUCKET_BYTES};
use crate::{key::hash::Digest, limiter::token_bucket::BucketState, units::Instant};
use alloc::vec::Vec;

/// Sets of a table; a power of two.
pub const SETS: u64 = 1 << 15;

/// Buckets of a set.
pub const WAYS: usize = 8;

/// First byte of a set: the version of its format.
const VERSION: u8 = 1;

/// Bytes of one bucket in a set: digest, idle-at, state.
const ENTRY_BYTES: usize = 16 + 8 + BUCKET_BYTES;

/// The set in which a digest has its place.
#[must_use]
pub const fn set_of(digest: Digest) -> u64 {
    digest.low_bits() % SETS
}

/// The buckets of one set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    digest: Digest,
    /// From here on the bucket is full, so the entry says nothing.
    idle_at: Instant,
    state: BucketState,
}

/// No bucket of the set is full again, so there is no place for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFull;

impl Set {
    /// A set from its bytes; no bytes are an empty set, and `None` stands for bytes that
    /// [`Set::encode`] cannot have written.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let Some((&version, entries)) = bytes.split_first() else {
            return Some(Self::default());
        };
        let (entries, []) = entries.as_chunks::<ENTRY_BYTES>() else {
            return None;
        };
        if version != VERSION || entries.len() > WAYS {
            return None;
        }
        let entries = entries.iter().map(Entry::decode).collect::<Option<_>>()?;
        Some(Self { entries })
    }

    /// The set as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.entries.len().saturating_mul(ENTRY_BYTES));
        bytes.push(VERSION);
        for entry in &self.entries {
            bytes.extend_from_slice(&entry.digest.to_bytes());
            bytes.extend_from_slice(&entry.idle_at.as_micros().to_le_bytes());
            bytes.extend_from_slice(&codec::encode_bucket(entry.state));
        }
        bytes
    }

    /// The state of a bucket; one that is not in the set is full.
    #[must_use]
    pub fn state(&self, digest: Digest) -> BucketState {
        let entry = self.entries.iter().find(|entry| entry.digest == digest);
        entry.map_or(BucketState::FULL, |entry| entry.state)
    }

    /// Keeps the state of a bucket that will be full at `idle_at`, and drops the others that are
    /// full at `now`.
    ///
    /// # Errors
    /// [`SetFull`] if every place is taken; the set is then unchanged but for what was dropped.
    pub fn put(
        &mut self,
        digest: Digest,
        state: BucketState,
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
    fn decode(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let (digest, rest) = bytes.split_first_chunk()?;
        let (idle_at, state) = codec::take_u64(rest)?;
        let state = codec::decode_bucket(state)?;
        Some(Self {
            digest: Digest::from_bytes(*digest),
            idle_at: Instant::from_micros(idle_at),
            state,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digest(n: u8) -> Digest {
        Digest::from_bytes([n; 16])
    }

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn bucket(full_at: u64) -> BucketState {
        BucketState::from_parts(full_at, 0).unwrap()
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
        assert_eq!(set.state(digest(1)), bucket(50));
        assert_eq!(set.state(digest(2)), BucketState::FULL);
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
        assert_eq!(set.state(digest(0)), BucketState::FULL);
        assert_eq!(set.state(digest(1)), bucket(101));
    }

    #[test]
    fn a_bucket_in_a_crowded_set_can_still_be_charged() {
        let mut set = crowded();
        assert_eq!(put(&mut set, 3, 900, 99), Ok(()));
        assert_eq!(set.state(digest(3)), bucket(900));
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
        fn any_bytes_decode_to_nothing_or_to_what_encodes_back(bytes: Vec<u8>) {
            let _ = Set::decode(&bytes);
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
