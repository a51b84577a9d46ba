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
        let text = b"weir{".iter().copied().chain(base64(place.low_bits()));
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
        crc16(self.tag().unwrap_or_default().as_bytes()) % SLOTS
    }

    /// What is in braces: keys with the same are in the same slot.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.as_str().get(5..16)
    }
}

/// Slots of a Redis Cluster.
pub const SLOTS: u16 = 1 << 14;

/// CRC-16/XMODEM: polynomial 0x1021, starting from 0, the highest bit first.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            let shifted = crc << 1;
            if crc & 1 << 15 == 0 { shifted } else { shifted ^ 0x1021 }
        })
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

    #[test]
    fn the_checksum_is_the_one_that_redis_takes() {
        // The check value of the catalogue of CRCs and of the Redis Cluster specification.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
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
            assert_eq!(crc16(tag.as_bytes()) % SLOTS, slot, "{tag}");
        }
    }
}
