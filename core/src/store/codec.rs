//! State as bytes: one tag for the algorithm and its format, then the numbers, little-endian.
//!
//! The bytes outlive the code that wrote them, since Envoy keeps shared data over an update of the
//! module. A format is therefore never changed, only added under a new tag.

use crate::limiter::token_bucket::BucketState;

/// Length of an encoded [`BucketState`]: tag, T, r.
pub const BUCKET_BYTES: usize = 17;

/// Tag of the token bucket: T in microseconds, r in units.
const BUCKET_TAG: u8 = 1;

/// A bucket's state as bytes.
#[must_use]
pub fn encode_bucket(state: BucketState) -> [u8; BUCKET_BYTES] {
    let (full_at, remainder) = state.to_parts();
    let mut bytes = [BUCKET_TAG; BUCKET_BYTES];
    let numbers = full_at.to_le_bytes().into_iter().chain(remainder.to_le_bytes());
    for (byte, number) in bytes.iter_mut().skip(1).zip(numbers) {
        *byte = number;
    }
    bytes
}

/// A bucket's state from bytes; `None` for any bytes that [`encode_bucket`] cannot have written.
#[must_use]
pub fn decode_bucket(bytes: &[u8]) -> Option<BucketState> {
    let (&BUCKET_TAG, numbers) = bytes.split_first()? else {
        return None;
    };
    let (full_at, rest) = take_u64(numbers)?;
    let (remainder, rest) = take_u64(rest)?;
    if rest.is_empty() { BucketState::from_parts(full_at, remainder) } else { None }
}

/// The little-endian number at the front of some bytes, and what follows it.
pub(super) fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::prelude::rust_2024::*;

    #[test]
    fn the_format_of_a_bucket_is_fixed() {
        let state = BucketState::from_parts(0x0102_0304_0506, 7).unwrap();
        let bytes = [1, 6, 5, 4, 3, 2, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(encode_bucket(state), bytes);
        assert_eq!(decode_bucket(&bytes), Some(state));
    }

    #[test]
    fn another_tag_length_or_range_is_no_bucket() {
        let mut bytes = encode_bucket(BucketState::from_parts(5, 5).unwrap()).to_vec();
        assert_eq!(decode_bucket(&bytes[..16]), None);
        bytes.push(0);
        assert_eq!(decode_bucket(&bytes), None);
        assert_eq!(decode_bucket(&[2; 17]), None);
        assert_eq!(decode_bucket(&[&[1][..], &[0xff; 16]].concat()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_to_nothing_or_to_what_encodes_back(bytes: Vec<u8>) {
            if let Some(state) = decode_bucket(&bytes) {
                prop_assert_eq!(encode_bucket(state).to_vec(), bytes);
            }
        }
    }
}
