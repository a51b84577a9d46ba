//! The identity of a bucket as a keyed 128-bit digest.
//!
//! A client chooses the bytes of its key, so the hash is keyed: without the secret nobody can aim
//! two keys at one bucket or many keys at one set of the table, and a digest gives no key away.
//! The function is SipHash-2-4 with 128-bit output (Aumasson and Bernstein, *SipHash: a fast
//! short-input PRF*, 2012), the same on every platform.

use core::hash::Hasher;
use siphasher::sip128::{Hasher128, SipHasher24};

/// Sixteen secret bytes that key the digest.
pub type Secret = [u8; 16];

/// The identity of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 16]);

impl Digest {
    /// Digest of namespace, limit name and key parts, in this order. Each is preceded by its
    /// length, so that no two lists of parts give the same bytes.
    ///
    /// ```
    /// use weir_core::key::hash::Digest;
    /// let secret = [7; 16];
    /// let ab_c = Digest::of(&secret, "shop", "per-key", [b"ab".as_slice(), b"c"]);
    /// let a_bc = Digest::of(&secret, "shop", "per-key", [b"a".as_slice(), b"bc"]);
    /// assert_ne!(ab_c, a_bc);
    /// ```
    pub fn of<'a>(
        secret: &Secret,
        namespace: &'a str,
        limit: &'a str,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Self {
        let mut hasher = SipHasher24::new_with_key(secret);
        for part in [namespace.as_bytes(), limit.as_bytes()].into_iter().chain(parts) {
            // `usize` differs between the proxy and the page; its value does not.
            hasher.write(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.write(part);
        }
        let hash = hasher.finish128();
        Self((u128::from(hash.h2) << 64 | u128::from(hash.h1)).to_le_bytes())
    }

    /// A digest as it was stored.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The sixteen bytes of the digest.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The digest's low 64 bits, to choose a place by.
    #[must_use]
    pub const fn low_bits(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = *b"0123456789abcdef";

    fn digest(namespace: &str, limit: &str, parts: &[&[u8]]) -> Digest {
        Digest::of(&SECRET, namespace, limit, parts.iter().copied())
    }

    #[test]
    fn a_digest_is_the_same_on_every_platform_and_in_every_release() {
        // Counts live under this digest: a change of it would start every bucket anew. The bytes
        // come from a second implementation of SipHash-2-4-128.
        assert_eq!(
            digest("shop", "per-key", &[b"alice"]).to_bytes(),
            [54, 94, 103, 225, 195, 111, 97, 140, 212, 111, 252, 116, 7, 34, 106, 134],
        );
    }

    #[test]
    fn any_bytes_make_a_key() {
        assert_ne!(digest("n", "l", &[b"\xff\x00"]), digest("n", "l", &[b"\xff"]));
    }

    #[test]
    fn namespace_limit_and_parts_do_not_run_into_one_another() {
        let digests = [
            digest("ab", "c", &[b"d"]),
            digest("a", "bc", &[b"d"]),
            digest("a", "b", &[b"cd"]),
            digest("a", "b", &[b"c", b"d"]),
            digest("a", "b", &[]),
            digest("a", "b", &[b""]),
        ];
        for (i, left) in digests.iter().enumerate() {
            for right in &digests[i + 1..] {
                assert_ne!(left, right);
            }
        }
    }
}
