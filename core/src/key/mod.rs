//! From the parts of a request to the identity of a bucket.

pub mod hash;

use crate::bounds;
use alloc::string::String;

/// One part of a limit's key: where in the request it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// The value of a request header.
    Header(HeaderName),
}

/// A header's name: lower-case token characters, [`bounds::HEADER_NAME`] long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderName(String);

impl HeaderName {
    /// A name in any case, kept in lower case; `None` if it is no header name (RFC 9110, 5.1).
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let length = u64::try_from(name.len()).unwrap_or(u64::MAX);
        let fits = bounds::HEADER_NAME.contains(length) && name.bytes().all(is_token);
        fits.then(|| Self(name.to_ascii_lowercase()))
    }

    /// The name in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Token characters of RFC 9110, section 5.6.2.
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.')
        || matches!(byte, b'^' | b'_' | b'`' | b'|' | b'~')
}

/// What the fields of a request hold under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// No such field, or an empty one.
    Missing,
    /// Exactly one value; any bytes.
    One(&'a [u8]),
    /// The field came more than once. Which of the values the upstream will take is not known, so
    /// none of them identifies the caller: otherwise a second value would buy a fresh bucket.
    Several,
}

/// What a key may be read from, independent of where the request lives.
pub trait Facts {
    /// The value of a request header by its lower-case name.
    fn header(&self, name: &str) -> FieldValue<'_>;
}

impl KeyPart {
    /// The bytes of this part, or `None` where the request has none that identify the caller.
    pub fn value<'a>(&self, facts: &'a impl Facts) -> Option<&'a [u8]> {
        match self {
            Self::Header(name) => match facts.header(name.as_str()) {
                FieldValue::One(value) => Some(value),
                FieldValue::Missing | FieldValue::Several => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_name_is_kept_in_lower_case() {
        assert_eq!(HeaderName::new("X-Api-Key").unwrap().as_str(), "x-api-key");
    }

    #[test]
    fn what_is_no_header_name_is_refused() {
        for name in ["", "x api", "x:y", "x\u{fc}", "a\n", &"x".repeat(129)] {
            assert_eq!(HeaderName::new(name), None, "{name:?}");
        }
    }
}
