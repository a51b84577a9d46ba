//! Conditions on a request: of a limit's `match`, and of a reserve's `for`.

use super::{
    fault::Gathering,
    fields::{Fields, text},
    shape::{Node, quoted},
};
use crate::{
    bounds,
    key::HeaderName,
    policy::matching::{Match, PathPattern},
};
use alloc::{format, string::String, vec::Vec};

/// The conditions in a field; an absent field has none.
pub(super) fn read(
    fields: &mut Fields<'_>,
    name: &'static str,
    faults: &mut Gathering,
) -> Option<Match> {
    let Some(node) = fields.take(name) else { return Some(Match::default()) };
    let path = fields.path(name);
    let mut fields = Fields::of(&path, node, faults)?;
    let pattern = fields.optional("path", None, faults, |node| path_pattern(node).map(Some));
    let methods = fields.optional("methods", Vec::new(), faults, methods);
    let host = fields.optional("host", None, faults, |node| host(node).map(Some));
    let headers = match fields.take("header") {
        Some(node) => headers(&fields.path("header"), node, faults),
        None => Some(Vec::new()),
    };
    fields.finish(faults);
    Some(Match { path: pattern?, methods: methods?, host: host?, headers: headers? })
}

fn path_pattern(node: &Node) -> Result<PathPattern, String> {
    let written = text(node)?;
    let pattern = PathPattern::parse(written).filter(|_| bounds::VALUE.contains_len(written.len()));
    pattern.ok_or_else(|| {
        format!(
            "must be a path like \"/login\" or \"/api/*\", without a query; found {}",
            quoted(written),
        )
    })
}

fn methods(node: &Node) -> Result<Vec<String>, String> {
    let form = || format!("must be a list like [\"GET\", \"POST\"]; found {}", node.describe());
    let Node::List(items) = node else { return Err(form()) };
    if !bounds::MATCHES.contains_len(items.len()) {
        return Err(form());
    }
    let method = |item: &Node| {
        let method = text(item)?;
        let upper = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if upper { Ok(method.into()) } else { Err(form()) }
    };
    let mut methods: Vec<String> = items.iter().map(method).collect::<Result<_, _>>()?;
    methods.sort_unstable();
    methods.dedup();
    Ok(methods)
}

fn host(node: &Node) -> Result<String, String> {
    let written = text(node)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let fits = bounds::VALUE.contains_len(written.len()) && written.bytes().all(plain);
    if fits {
        return Ok(written.trim_end_matches('.').to_ascii_lowercase());
    }
    Err(format!("must be a host's name like \"api.example.com\"; found {}", quoted(written)))
}

fn headers(path: &str, node: &Node, faults: &mut Gathering) -> Option<Vec<(HeaderName, String)>> {
    let Node::Object(entries) = node else {
        let found = node.describe();
        faults.add(
            path,
            format!("must be an object like {{\"x-priority\": \"critical\"}}; found {found}"),
        );
        return None;
    };
    if !bounds::MATCHES.contains_len(entries.len()) {
        faults.add(path, format!("has {} headers; allowed are {}", entries.len(), bounds::MATCHES));
        return None;
    }
    let mut headers = Vec::new();
    for (name, value) in entries {
        let path = format!("{path}.{}", quoted(name));
        let read = HeaderName::new(name).ok_or_else(|| "names no header".into());
        let name = faults.keep(&path, read);
        let value = faults.keep(&path, text(value).map(String::from));
        let value = value.filter(|value| {
            bounds::VALUE.contains_len(value.len()) || {
                faults.add(&path, format!("must be a text of {}", bounds::VALUE));
                false
            }
        });
        headers.push(name.zip(value));
    }
    let mut headers: Vec<_> = headers.into_iter().collect::<Option<_>>()?;
    headers.sort_unstable();
    for pair in headers.windows(2) {
        if let [(name, _), (next, _)] = pair
            && name == next
        {
            faults.add(
                path,
                format!("names {} twice, and no request could meet both", name.as_str()),
            );
        }
    }
    Some(headers)
}
