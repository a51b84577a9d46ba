//! Where the counts are kept.

use super::{
    fault::Gathering,
    fields::{Fields, choose, number, text},
    quantity,
    shape::Node,
    validate::name,
};
use crate::{
    bounds,
    policy::{HttpApi, Store, Token},
    units::Micros,
};
use alloc::{
    format,
    string::{String, ToString},
};
use core::net::Ipv6Addr;

/// Time that a store has to answer if the policy names none.
pub(super) const DEFAULT_TIMEOUT: Micros = Micros::new(10_000);
/// The cluster of the bridge if the policy names none.
pub(super) const DEFAULT_BRIDGE: &str = "weir_bridge";

pub(super) const APIS: [(&str, HttpApi); 2] =
    [("webdis", HttpApi::Webdis), ("upstash", HttpApi::Upstash)];

#[derive(Clone, Copy)]
enum Kind {
    Local,
    Redis,
    Http,
}

const KINDS: [(&str, Kind); 3] =
    [("local", Kind::Local), ("redis", Kind::Redis), ("http", Kind::Http)];

pub(super) fn read(node: &Node, faults: &mut Gathering) -> Option<Store> {
    let mut fields = Fields::of("store", node, faults)?;
    let store = match fields.required("type", faults, |node| choose(node, &KINDS))? {
        Kind::Local => Some(Store::Local),
        Kind::Redis => read_redis(&mut fields, faults),
        Kind::Http => read_http(&mut fields, faults),
    };
    fields.finish(faults);
    store
}

fn read_redis(fields: &mut Fields<'_>, faults: &mut Gathering) -> Option<Store> {
    let cluster = fields.optional("cluster", DEFAULT_BRIDGE.to_string(), faults, name);
    let streams = fields.optional("streams", 1, faults, number(&bounds::STREAMS));
    let timeout = read_timeout(fields, faults);
    Some(Store::Redis { cluster: cluster?, streams: streams?, timeout: timeout? })
}

fn read_http(fields: &mut Fields<'_>, faults: &mut Gathering) -> Option<Store> {
    let cluster = fields.required("cluster", faults, name);
    let api = fields.required("api", faults, |node| choose(node, &APIS));
    let token = read_token(api, fields, faults);
    let host = fields.optional("host", None, faults, |node| host(node).map(Some));
    let timeout = read_timeout(fields, faults);
    Some(Store::Http {
        cluster: cluster?,
        api: api?,
        token: token?,
        host: host?,
        timeout: timeout?,
    })
}

/// `None` only where it is faulty.
fn read_token(
    api: Option<HttpApi>,
    fields: &mut Fields<'_>,
    faults: &mut Gathering,
) -> Option<Option<Token>> {
    if api == Some(HttpApi::Webdis) {
        fields.refuse(
            "token",
            "is for the api upstash; webdis asks for none, so remove it",
            faults,
        );
        return Some(None);
    }
    let token = fields.optional("token", None, faults, |node| token(node).map(Some))?;
    if token.is_none() && api == Some(HttpApi::Upstash) {
        faults.add(&fields.path("token"), "is missing; the api upstash asks for one");
        return None;
    }
    Some(token)
}

fn read_timeout(fields: &mut Fields<'_>, faults: &mut Gathering) -> Option<Micros> {
    fields.optional("timeout", DEFAULT_TIMEOUT, faults, |node| {
        quantity::duration(text(node)?, &bounds::TIMEOUT)
    })
}

fn token(node: &Node) -> Result<Token, String> {
    let token = text(node).ok().and_then(|token| Token::new(token.to_string()));
    // Whatever was found may be a token with a slip in it.
    token.ok_or_else(|| format!("must be {}; what was found is not shown", bounds::TOKEN))
}

fn host(node: &Node) -> Result<String, String> {
    match node {
        Node::Text(text) if bounds::HOST.contains_len(text.len()) && is_authority(text) => {
            Ok(text.clone())
        }
        _ => Err(format!(
            "must be a host like \"eu1.example.com\" or \"10.0.0.7:7379\" of {}; found {}",
            bounds::HOST,
            node.describe(),
        )),
    }
}

/// Whether a text can stand in a request's `:authority`: a name or an address, IPv6 in brackets,
/// and a port if any.
fn is_authority(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let (is_host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address.parse::<Ipv6Addr>().is_ok(), rest),
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (!name.is_empty() && name.bytes().all(plain), port)
        }
    };
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// A port in plain digits, from 1 to 65535.
fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}
