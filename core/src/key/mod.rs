//! From the parts of a request to the identity of a bucket.

pub mod address;
pub mod fields;
pub mod hash;

use crate::bounds;
use address::Prefixes;
use alloc::{borrow::Cow, string::String, vec::Vec};
use core::{fmt, net::IpAddr};
use fields::FieldValue;

/// What a key may be read from, independent of where the request lives. A host that cannot tell
/// something answers as if the request did not have it.
pub trait Facts {
    /// The value of a request header by its lower-case name.
    fn header(&self, name: &str) -> FieldValue<'_>;
    /// The method.
    fn method(&self) -> Option<&[u8]>;
    /// The path as it was sent, with its query.
    fn path(&self) -> Option<&[u8]>;
    /// The authority, with its port if it has one.
    fn host(&self) -> Option<&[u8]>;
    /// The client's address as the proxy determined it, trusted hops taken off.
    fn client_ip(&self) -> Option<IpAddr>;
    /// The name of the route that the proxy chose.
    fn route(&self) -> Option<Cow<'_, [u8]>>;
    /// A text that another filter left in the request's dynamic metadata: the result of an
    /// authorization, a claim of a verified token. A path of several steps is joined by `/`.
    fn metadata(&self, namespace: &str, path: &str) -> Option<Cow<'_, [u8]>>;
}

/// One part of a limit's key: where in the request it is read. Its text form is that of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// `header:x-api-key`: the value of a header.
    Header(HeaderName),
    /// `cookie:session`: the value of a cookie.
    Cookie(Name),
    /// `query:tenant`: the decoded value of a query parameter.
    Query(Name),
    /// `client-ip`, `client-ip/56`, `client-ip/24/56`: the client's network; IPv4 by the whole
    /// address and IPv6 by /64 unless given.
    ClientIp(Prefixes),
    /// `path`: the path without its query.
    Path,
    /// `method`: the method.
    Method,
    /// `route`: the name of the proxy's route.
    Route,
    /// `host`: the authority in lower case, without its port.
    Host,
    /// `metadata:namespace/path`: dynamic metadata of the proxy.
    Metadata {
        /// The filter that wrote it.
        namespace: Name,
        /// The steps to the value, joined by `/`.
        path: Name,
    },
}

/// A header's name: lower-case token characters, [`bounds::HEADER_NAME`] long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeaderName(String);

/// A name of visible ASCII characters, [`bounds::KEY_NAME`] long; case matters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl HeaderName {
    /// A name in any case, kept in lower case; `None` if it is no header name (RFC 9110, 5.1).
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = bounds::HEADER_NAME.contains_len(name.len()) && name.bytes().all(is_token);
        fits.then(|| Self(name.to_ascii_lowercase()))
    }

    /// The name in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Name {
    /// A name, or `None` if it has other characters or another length.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let visible = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b';' | b'=' | b'&');
        let fits = bounds::KEY_NAME.contains_len(name.len()) && name.bytes().all(visible);
        fits.then(|| Self(name.into()))
    }

    /// The name.
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

impl KeyPart {
    /// The bytes of this part, never empty, or `None` where the request has none that identify the
    /// caller.
    pub fn value<'a>(&self, facts: &'a impl Facts) -> Option<Cow<'a, [u8]>> {
        let value = match self {
            Self::Header(name) => facts.header(name.as_str()).one().map(Cow::Borrowed),
            Self::Cookie(name) => {
                fields::cookie(facts.header("cookie"), name.as_str()).one().map(Cow::Borrowed)
            }
            Self::Query(name) => fields::query(facts.path()?, name.as_str()),
            Self::ClientIp(prefixes) => Some(Cow::Owned(prefixes.network(facts.client_ip()?))),
            Self::Path => facts.path().map(fields::without_query).map(Cow::Borrowed),
            Self::Method => facts.method().map(Cow::Borrowed),
            Self::Route => facts.route(),
            Self::Host => facts.host().map(fields::hostname).map(Cow::Owned),
            Self::Metadata { namespace, path } => facts.metadata(namespace.as_str(), path.as_str()),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The bytes that a request has in this part if it has what is written, so that a policy can
    /// name one key; `None` if no request can have it.
    #[must_use]
    pub fn value_written(&self, text: &str) -> Option<Vec<u8>> {
        let value = match self {
            Self::ClientIp(prefixes) => prefixes.network(text.parse().ok()?),
            Self::Host => fields::hostname(text.as_bytes()),
            _ => text.as_bytes().to_vec(),
        };
        (!value.is_empty()).then_some(value)
    }

    /// The part that a text of a policy names, or `None` if it names none.
    ///
    /// ```
    /// use weir_core::key::KeyPart;
    /// assert_eq!(KeyPart::parse("client-ip").unwrap().to_string(), "client-ip");
    /// assert_eq!(KeyPart::parse("header:X-Api-Key").unwrap().to_string(), "header:x-api-key");
    /// assert_eq!(KeyPart::parse("header:"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(prefixes) = text.strip_prefix("client-ip") {
            return Prefixes::parse(prefixes).map(Self::ClientIp);
        }
        match text.split_once(':') {
            Some(("header", name)) => HeaderName::new(name).map(Self::Header),
            Some(("cookie", name)) => Name::new(name).map(Self::Cookie),
            Some(("query", name)) => Name::new(name).map(Self::Query),
            Some(("metadata", name)) => {
                let (namespace, path) = name.split_once('/')?;
                let (namespace, path) = (Name::new(namespace)?, Name::new(path)?);
                Some(Self::Metadata { namespace, path })
            }
            Some(_) => None,
            None => match text {
                "path" => Some(Self::Path),
                "method" => Some(Self::Method),
                "route" => Some(Self::Route),
                "host" => Some(Self::Host),
                _ => None,
            },
        }
    }
}

impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{}", name.as_str()),
            Self::Cookie(name) => write!(f, "cookie:{}", name.as_str()),
            Self::Query(name) => write!(f, "query:{}", name.as_str()),
            Self::ClientIp(prefixes) => write!(f, "client-ip{prefixes}"),
            Self::Path => f.write_str("path"),
            Self::Method => f.write_str("method"),
            Self::Route => f.write_str("route"),
            Self::Host => f.write_str("host"),
            Self::Metadata { namespace, path } => {
                write!(f, "metadata:{}/{}", namespace.as_str(), path.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

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

    #[test]
    fn every_part_comes_back_from_its_text() {
        for text in [
            "header:x-api-key",
            "cookie:sid",
            "query:tenant",
            "client-ip",
            "client-ip/128",
            "client-ip/24/56",
            "path",
            "method",
            "route",
            "host",
            "metadata:envoy.filters.http.jwt_authn/payload/sub",
        ] {
            assert_eq!(KeyPart::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for text in [
            "",
            "header",
            "header:",
            "header:a b",
            "cookie:",
            "cookie:a=b",
            "query:a&b",
            "client-ip/",
            "client-ip/129",
            "client-ip/33/64",
            "client-ip/0",
            "client-ip/1/2/3",
            "client-ipx",
            "path:",
            "metadata:",
            "metadata:a",
            "metadata:/a",
            "metadata:a/",
            "x:y",
        ] {
            assert_eq!(KeyPart::parse(text), None, "{text}");
        }
    }
}
