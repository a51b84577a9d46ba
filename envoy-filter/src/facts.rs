//! A request's headers, read from the proxy's encoding.
//!
//! The encoding of a map, all numbers little-endian u32: the number of pairs, then for each pair
//! the lengths of name and value, then for each pair name, 0, value, 0. Names and values are any
//! bytes; a client chooses them.

use weir_core::{key::fields::FieldValue, response::Header};

/// The fields of a request. Bytes that are no such map read as a map without fields.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields in a map's bytes.
    #[must_use]
    pub const fn new(map: &'a [u8]) -> Self {
        Self(map)
    }

    /// All names and values, in the order in which they came.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let (count, rest) = take_u32(self.0).unwrap_or_default();
        // Two lengths of four bytes a pair; a count that claims more than there is reads nothing.
        let sizes = usize::try_from(count).ok().and_then(|count| count.checked_mul(8));
        let (sizes, mut data) =
            sizes.and_then(|sizes| rest.split_at_checked(sizes)).unwrap_or_default();
        let (sizes, _) = sizes.as_chunks::<8>();
        sizes.iter().map_while(move |sizes| {
            let (name, sizes) = take_u32(sizes)?;
            let (value, _) = take_u32(sizes)?;
            let (name, rest) = take_string(data, name)?;
            let (value, rest) = take_string(rest, value)?;
            data = rest;
            Some((name, value))
        })
    }
}

impl<'a> Fields<'a> {
    /// The value under a lower-case name.
    pub fn field(self, name: &str) -> FieldValue<'a> {
        let named = self.iter().filter(|(found, _)| *found == name.as_bytes());
        FieldValue::of(named.map(|(_, value)| value))
    }
}

/// Headers in the proxy's encoding. What is too long for a length is cut, and only a bug would
/// make it so long.
#[must_use]
pub fn encode(headers: &[Header]) -> Vec<u8> {
    let mut map = length(headers.len()).to_vec();
    for (name, value) in headers {
        map.extend(length(name.len()));
        map.extend(length(value.len()));
    }
    for (name, value) in headers {
        for text in [name, value.as_str()] {
            map.extend_from_slice(text.as_bytes());
            map.push(0);
        }
    }
    map
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// So many bytes and the 0 that ends them.
fn take_string(bytes: &[u8], length: u32) -> Option<(&[u8], &[u8])> {
    let (text, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    let (0, rest) = rest.split_first()? else { return None };
    Some((text, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(headers: &[(&'static str, &str)]) -> Vec<u8> {
        let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, (*v).to_owned())).collect();
        encode(&headers)
    }

    #[test]
    fn a_field_is_found_by_its_name() {
        let map = map(&[("a", "1"), ("x-api-key", "alice"), ("b", "")]);
        let fields = Fields::new(&map);
        assert_eq!(fields.field("x-api-key"), FieldValue::One(b"alice"));
        assert_eq!(fields.field("x-api"), FieldValue::Missing);
    }

    #[test]
    fn an_empty_field_is_missing_and_a_repeated_one_is_several() {
        let map = map(&[("a", ""), ("b", "1"), ("b", "2"), ("c", ""), ("c", "3")]);
        let fields = Fields::new(&map);
        assert_eq!(fields.field("a"), FieldValue::Missing);
        assert_eq!(fields.field("b"), FieldValue::Several);
        assert_eq!(fields.field("c"), FieldValue::Several);
    }

    #[test]
    fn a_value_may_be_any_bytes() {
        // proxy-wasm-rust-sdk#263: one such byte took the worker's VM down.
        let mut map = map(&[("x-api-key", "??")]);
        let at = map.len() - 3;
        map[at..at + 2].copy_from_slice(b"\xff\x00");
        assert_eq!(Fields::new(&map).field("x-api-key"), FieldValue::One(b"\xff\x00"));
    }

    #[test]
    fn bytes_that_are_no_map_have_no_fields() {
        let whole = map(&[("a", "1"), ("b", "2")]);
        for end in 0..whole.len() - 4 {
            assert!(Fields::new(&whole[..end]).iter().count() < 2, "{end}");
        }
        assert_eq!(Fields::new(&[0xff; 64]).iter().count(), 0);
    }

    proptest! {
        #[test]
        fn reading_any_bytes_ends(bytes: Vec<u8>) {
            let _ = Fields::new(&bytes).iter().count();
            let _ = Fields::new(&bytes).field("x");
        }
    }
}
