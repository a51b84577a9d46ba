//! Values inside of a request's fields: cookies, query parameters, the host's name.
//!
//! A client chooses these bytes. What could be written in several ways to the same meaning is
//! brought to one, so that a second spelling buys no fresh bucket; what comes twice identifies
//! nobody.

use alloc::{borrow::Cow, vec::Vec};

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

impl<'a> FieldValue<'a> {
    /// The value, if there is exactly one.
    #[must_use]
    pub const fn one(self) -> Option<&'a [u8]> {
        match self {
            Self::One(value) => Some(value),
            Self::Missing | Self::Several => None,
        }
    }

    /// The only one of some values.
    pub fn of(mut values: impl Iterator<Item = &'a [u8]>) -> Self {
        match (values.next(), values.next()) {
            (_, Some(_)) => Self::Several,
            (Some(value), None) if !value.is_empty() => Self::One(value),
            _ => Self::Missing,
        }
    }
}

/// The value of a cookie in a `cookie` header (RFC 6265, section 4.2), without the quotes that may
/// stand around it.
pub(super) fn cookie<'a>(header: FieldValue<'a>, name: &str) -> FieldValue<'a> {
    let Some(header) = header.one() else { return header };
    FieldValue::of(header.split(|byte| *byte == b';').filter_map(|pair| {
        let (found, value) = split_once(pair.trim_ascii(), b'=')?;
        (found.trim_ascii() == name.as_bytes()).then(|| unquoted(value.trim_ascii()))
    }))
}

fn unquoted(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inner @ .., b'"'] => inner,
        _ => value,
    }
}

/// The value of a query parameter, percent-decoded, `+` for a blank
/// (application/x-www-form-urlencoded). `None` if it is absent or comes twice, and if the query has
/// a bare `;`, at which some upstreams part parameters and others do not.
pub(super) fn query<'a>(path: &'a [u8], name: &str) -> Option<Cow<'a, [u8]>> {
    let (_, query) = split_once(path, b'?')?;
    let query = split_once(query, b'#').map_or(query, |(query, _)| query);
    if query.contains(&b';') {
        return None;
    }
    let mut values = query.split(|byte| *byte == b'&').filter_map(|pair| {
        let (found, value) = split_once(pair, b'=').unwrap_or((pair, b""));
        (*decoded(found) == *name.as_bytes()).then_some(value)
    });
    match (values.next(), values.next()) {
        (Some(value), None) => Some(decoded(value)),
        _ => None,
    }
}

/// Bytes with `%41` and `+` decoded; a `%` that no two hexadecimal digits follow stays.
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| hexadecimal(after)).flatten();
        rest = escaped.map_or(after, |(_, after)| after);
        bytes.push(match (escaped, first) {
            (Some((byte, _)), _) => byte,
            (None, b'+') => b' ',
            (None, other) => *other,
        });
    }
    Cow::Owned(bytes)
}

/// The byte of two hexadecimal digits, and what follows them.
fn hexadecimal(text: &[u8]) -> Option<(u8, &[u8])> {
    let ([high, low], rest) = text.split_first_chunk()?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some((digit(*high)?.checked_mul(16)?.checked_add(digit(*low)?)?, rest))
}

/// A path without its query and fragment.
pub(crate) fn without_query(path: &[u8]) -> &[u8] {
    path.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default()
}

/// An authority's host in lower case: without its port and without a dot at its end.
pub(crate) fn hostname(authority: &[u8]) -> Vec<u8> {
    let is_port = |port: &[u8]| port.iter().all(u8::is_ascii_digit);
    let colon = authority.iter().rposition(|byte| *byte == b':');
    let host = match colon.and_then(|colon| authority.split_at_checked(colon)) {
        Some((host, [b':', port @ ..])) if is_port(port) => host,
        _ => authority,
    };
    host.strip_suffix(b".").unwrap_or(host).to_ascii_lowercase()
}

fn split_once(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = text.iter().position(|byte| *byte == at)?;
    let (before, after) = text.split_at_checked(position)?;
    Some((before, after.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::prelude::rust_2024::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let header = FieldValue::One(b"a=1; sid=\"x=y\";b=2");
        assert_eq!(cookie(header, "sid"), FieldValue::One(b"x=y"));
        assert_eq!(cookie(header, "id"), FieldValue::Missing);
        assert_eq!(cookie(FieldValue::One(b"sid=1; sid=2"), "sid"), FieldValue::Several);
        assert_eq!(cookie(FieldValue::Several, "sid"), FieldValue::Several);
    }

    #[test]
    fn blanks_and_quotes_make_no_other_cookie() {
        for header in [&b"sid=x"[..], b"sid= x", b"sid =\tx ", b" sid = \"x\" ;a=b"] {
            assert_eq!(cookie(FieldValue::One(header), "sid"), FieldValue::One(b"x"));
        }
    }

    #[test]
    fn a_second_spelling_of_a_parameter_is_the_same_value() {
        for path in [&b"/p?t=a%20b"[..], b"/p?t=a+b", b"/p?x=1&%74=a%20b#t=z"] {
            assert_eq!(query(path, "t").as_deref(), Some(&b"a b"[..]));
        }
    }

    #[test]
    fn a_parameter_that_comes_twice_or_not_at_all_identifies_nobody() {
        for path in [
            &b"/p?t=1;a=2"[..],
            b"/p?a=1;t=2",
            b"/p?t=1&t=2",
            b"/p?t=1&%74=2",
            b"/p?u=1",
            b"/p",
            b"/p#?t=1&t=1",
        ] {
            assert_eq!(query(path, "t"), None, "{path:?}");
        }
    }

    #[test]
    fn a_broken_escape_stays_as_it_is() {
        assert_eq!(&*decoded(b"%"), b"%");
        assert_eq!(&*decoded(b"%4"), b"%4");
        assert_eq!(&*decoded(b"%zz%41"), b"%zzA");
    }

    #[test]
    fn a_host_is_its_name() {
        for host in [&b"Example.com"[..], b"example.com:8080", b"EXAMPLE.com.", b"example.com:"] {
            assert_eq!(hostname(host), b"example.com");
        }
        assert_eq!(hostname(b"[::1]:443"), b"[::1]");
        assert_eq!(hostname(b"[::1]"), b"[::1]");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = cookie(FieldValue::One(&bytes), "a");
            let _ = query(&bytes, "a");
            let _ = hostname(&bytes);
            prop_assert!(decoded(&bytes).len() <= bytes.len());
        }
    }
}
