//! The names of buckets in Redis.

use crate::key::hash::Digest;

/// The name of a bucket in Redis: `weir{place}bucket`.
///
/// `place`, in braces, is the hash tag that chooses the slot of a cluster: 64 bits of a digest that
/// all limits with the same key parts share, so that one script may touch them all. `bucket` is 64
/// bits of the digest of the bucket itself. So two callers have 128 bits to differ in, and two
/// limits of one caller 64. Each part is unpadded base64 in the alphabet that is safe in URLs (RFC
/// 4648, section 5), 11 characters. The 28 of the whole are the most that Redis keeps in 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 28]);

impl Key {
    /// The key of a bucket. `place` is a digest of the same namespace and key parts without the
    /// limit: with an empty name in its stead, which no limit has.
    #[must_use]
    pub fn new(place: Digest, bucket: Digest) -> Self {
        Self::at(place.low_bits(), bucket)
    }

    /// The key of the bucket of one of `shards` shards. Its slot is in the `shard`th of as many
    /// equal ranges of all slots, so that nodes which have equal ranges themselves hold as many
    /// shards each, where there is a multiple of the nodes, and otherwise nearly. (Ten shards that
    /// are left to a hash put 3.4 on the busiest of six nodes, on average.)
    ///
    /// A tag is sought from the one that `place` gives, counting upwards, and it is sought in the
    /// middle half of the range: where a node begins is rounded, and may have been moved a little.
    ///
    /// ```
    /// use weir_core::{key::hash::Digest, script::Key};
    /// let place = Digest::of(&[7; 16], "shop", "", []);
    /// let slots = [0, 1, 2].map(|shard| Key::of_shard(place, place, shard, 3).slot() / 5_462);
    /// assert_eq!(slots, [0, 1, 2]);
    /// ```
    #[must_use]
    pub fn of_shard(place: Digest, bucket: Digest, shard: u64, shards: u64) -> Self {
        let first = place.low_bits();
        let quarter = |slot| u64::from(slot).saturating_mul(shards).saturating_mul(4) / ALL;
        let middle = shard.saturating_mul(4).saturating_add(1);
        let fits = |slot| quarter(slot).checked_sub(middle).is_some_and(|beyond| beyond < 2);
        let mut tags = (0..MOST_TRIES).map(|step| first.wrapping_add(step));
        let tag = tags.find(|tag| fits(slot_of(base64(*tag))));
        Self::at(tag.unwrap_or(first), bucket)
    }

    fn at(place: u64, bucket: Digest) -> Self {
        let text = b"weir{".iter().copied().chain(base64(place));
        let text = text.chain([b'}']).chain(base64(bucket.low_bits()));
        let mut key = [0; 28];
        for (to, from) in key.iter_mut().zip(text) {
            *to = from;
        }
        Self(key)
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The slot of a Redis Cluster that the key is in, from 0 to 16383: the CRC-16 of what is in
    /// braces, modulo 16384 (*Redis cluster specification*, "Key distribution model").
    #[must_use]
    pub fn slot(&self) -> u16 {
        slot_of(self.tag().unwrap_or_default().bytes())
    }

    /// What is in braces: keys with the same are in the same slot.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.as_str().get(5..16)
    }
}

/// Slots of a Redis Cluster.
pub const SLOTS: u16 = 1 << 14;

/// As many, to calculate with.
const ALL: u64 = SLOTS as u64;

/// Tags tried for one shard. Of 1,024 shards, the most there are, each has 8 slots to be found in,
/// so the chance that so many tags all miss is e^-32.
const MOST_TRIES: u64 = 1 << 16;

/// The slot of a hash tag.
fn slot_of(tag: impl Iterator<Item = u8>) -> u16 {
    crc16(tag) % SLOTS
}

/// CRC-16/XMODEM: polynomial 0x1021, starting from 0, the highest bit first. A byte is taken at
/// once: the polynomial has three terms below its highest, so the eight steps are three shifts.
fn crc16(bytes: impl Iterator<Item = u8>) -> u16 {
    bytes.fold(0, |crc, byte| {
        let mixed = crc >> 8 ^ u16::from(byte);
        let mixed = mixed ^ mixed >> 4;
        crc << 8 ^ mixed << 12 ^ mixed << 5 ^ mixed
    })
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Eleven characters of six bits each, the highest first, and two bits of filling.
fn base64(bits: u64) -> impl Iterator<Item = u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = u128::from(bits) << 2;
    (0..11_u32).rev().map(move |place| {
        let six = usize::try_from(bits >> place.saturating_mul(6) & 0x3f).unwrap_or(0);
        ALPHABET.get(six).copied().unwrap_or(b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::rust_2024::*;
    use std::vec;

    #[test]
    fn the_checksum_is_the_one_that_redis_takes() {
        // The check value of the catalogue of CRCs and of the Redis Cluster specification.
        assert_eq!(crc16(b"123456789".iter().copied()), 0x31c3);
        assert_eq!(crc16([].into_iter()), 0);
    }

    #[test]
    fn a_key_is_in_the_slot_of_its_tag() {
        // As CLUSTER KEYSLOT says of the tags and of the whole keys alike.
        for (place, tag, slot) in
            [(0, "AAAAAAAAAAA", 8595), (1, "AQEBAQEBAQE", 10806), (255, "__________8", 13281)]
        {
            let digest = |byte| Digest::from_bytes([byte; 16]);
            for bucket in [0, 9] {
                let key = Key::new(digest(place), digest(bucket));
                assert_eq!((key.tag(), key.slot()), (Some(tag), slot));
            }
        }
    }

    #[test]
    fn known_tags_are_in_known_slots() {
        for (tag, slot) in [("foo", 12_182), ("bar", 5_061), ("hello", 866), ("a", 15_495)] {
            assert_eq!(slot_of(tag.bytes()), slot, "{tag}");
        }
    }

    /// The slots of the shards of some limit.
    fn slots(limit: u8, shards: u64) -> Vec<u16> {
        let place = |shard: u64| Digest::of(&[limit; 16], "", "", [&shard.to_le_bytes()[..]]);
        let bucket = Digest::from_bytes([limit; 16]);
        (0..shards).map(|shard| Key::of_shard(place(shard), bucket, shard, shards).slot()).collect()
    }

    #[test]
    fn shards_are_spread_evenly_over_nodes_of_equal_ranges() {
        for (shards, nodes) in [(12, 3), (10, 6), (6, 6), (64, 7), (1_024, 64)] {
            for limit in 0..4 {
                let mut held = vec![0_u64; nodes];
                for slot in slots(limit, shards) {
                    // As redis-cli splits the slots: node k begins at the slot nearest k/N of all.
                    let node = (0..nodes).rfind(|node| {
                        usize::from(slot) >= (node * usize::from(SLOTS) + nodes / 2) / nodes
                    });
                    held[node.unwrap()] += 1;
                }
                let even = shards / u64::try_from(nodes).unwrap();
                let multiple = shards % u64::try_from(nodes).unwrap() == 0;
                let (least, most) = if multiple { (even, even) } else { (even - 1, even + 2) };
                assert!(
                    held.iter().all(|held| (least..=most).contains(held)),
                    "{shards} shards on {nodes} nodes: {held:?}"
                );
            }
        }
    }

    #[test]
    fn the_shards_of_different_limits_are_in_different_slots_of_a_range() {
        let first: Vec<u16> = (0..50).map(|limit| slots(limit, 12)[5]).collect();
        let mut distinct = first.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 40, "{first:?}");
    }

    #[test]
    fn a_shard_beyond_the_last_has_a_key_too() {
        let place = Digest::from_bytes([3; 16]);
        assert_eq!(Key::of_shard(place, place, 9, 3), Key::new(place, place));
        assert_eq!(Key::of_shard(place, place, 0, 0), Key::new(place, place));
    }
}
