//! Which requests a limit is for.

use crate::key::{Facts, HeaderName, fields};
use alloc::{string::String, vec::Vec};

/// A set of conditions, all of which must hold; without any, it is for every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// The path, without its query.
    pub path: Option<PathPattern>,
    /// One of these methods; none named: any.
    pub methods: Vec<String>,
    /// The host's name, without its port.
    pub host: Option<String>,
    /// Headers with exactly these values.
    pub headers: Vec<(HeaderName, String)>,
}

/// A path, or all that begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// This path.
    Exact(String),
    /// Paths that begin with this: `/api/*` is the prefix `/api/`.
    Prefix(String),
}

impl Match {
    /// Whether a request meets all conditions.
    pub fn applies(&self, facts: &impl Facts) -> bool {
        self.path.as_ref().is_none_or(|pattern| {
            facts.path().is_some_and(|path| pattern.matches(fields::without_query(path)))
        }) && (self.methods.is_empty()
            || self.methods.iter().any(|method| facts.method() == Some(method.as_bytes())))
            && self.host.as_ref().is_none_or(|host| {
                facts.host().is_some_and(|found| fields::hostname(found) == host.as_bytes())
            })
            && self
                .headers
                .iter()
                .all(|(name, value)| facts.header(name.as_str()).one() == Some(value.as_bytes()))
    }

    /// Whether it is for every request.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

impl PathPattern {
    /// A pattern from its text; `None` unless it begins with `/` and has no `*` but at its end, no
    /// query and no fragment.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (path, pattern): (_, fn(String) -> Self) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, Self::Prefix),
            None => (text, Self::Exact),
        };
        let plain = path.starts_with('/') && !path.contains(['*', '?', '#']);
        plain.then(|| pattern(path.into()))
    }

    fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => path == exact.as_bytes(),
            Self::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
        }
    }
}

impl core::fmt::Display for PathPattern {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Prefix(path) => write!(f, "{path}*"),
        }
    }
}
