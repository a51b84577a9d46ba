//! The facts of a request in the proxy: its fields, and what the proxy knows besides them.

use crate::{facts::Fields, host::wasm};
use core::net::{IpAddr, SocketAddr};
use std::borrow::Cow;
use weir_core::key::{Facts, fields::FieldValue};

/// A request that the proxy is handling.
#[derive(Clone, Copy)]
pub(crate) struct ProxyFacts<'a>(pub(crate) Fields<'a>);

impl Facts for ProxyFacts<'_> {
    fn header(&self, name: &str) -> FieldValue<'_> {
        self.0.field(name)
    }

    fn method(&self) -> Option<&[u8]> {
        self.0.field(":method").one()
    }

    fn path(&self) -> Option<&[u8]> {
        self.0.field(":path").one()
    }

    fn host(&self) -> Option<&[u8]> {
        self.0.field(":authority").one()
    }

    fn client_ip(&self) -> Option<IpAddr> {
        let address = property(&["source", "address"])?;
        let address = core::str::from_utf8(&address).ok()?;
        // The proxy adds the port, and brackets an IPv6 address then.
        address.parse().map(|address: SocketAddr| address.ip()).or_else(|_| address.parse()).ok()
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        property(&["xds", "route_name"]).map(Cow::Owned)
    }

    fn metadata(&self, namespace: &str, path: &str) -> Option<Cow<'_, [u8]>> {
        let steps = ["metadata", "filter_metadata", namespace].into_iter().chain(path.split('/'));
        property(&steps.collect::<Vec<_>>()).map(Cow::Owned)
    }
}

/// A property; what the proxy refuses to tell counts as absent.
fn property(path: &[&str]) -> Option<Vec<u8>> {
    wasm::property(path).ok().flatten()
}
