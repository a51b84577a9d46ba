//! A client's address as the network it counts as.
//!
//! A subscriber has one IPv4 address but 2^64 addresses of IPv6 and more, so IPv6 counts by /64
//! unless a policy says otherwise (traefik/traefik#9721).

use alloc::vec::Vec;
use core::{fmt, net::IpAddr};

/// How many leading bits of an address count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    v4: u32,
    v6: u32,
}

impl Default for Prefixes {
    fn default() -> Self {
        Self { v4: 32, v6: 64 }
    }
}

impl Prefixes {
    /// Prefixes from their text: nothing, `/56` for IPv6, or `/24/56` for both.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let default = Self::default();
        let Some(text) = text.strip_prefix('/') else {
            return text.is_empty().then_some(default);
        };
        let (v4, v6) = match text.split_once('/') {
            Some((v4, v6)) => (bits(v4, 32)?, bits(v6, 128)?),
            None => (default.v4, bits(text, 128)?),
        };
        Some(Self { v4, v6 })
    }

    /// The network of an address: its family and its leading bits, the rest cleared. An IPv4
    /// address mapped into IPv6 is that IPv4 address.
    ///
    /// ```
    /// use weir_core::key::address::Prefixes;
    /// let network = |text: &str| Prefixes::default().network(text.parse().unwrap());
    /// assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:2"));
    /// assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    /// assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    /// ```
    #[must_use]
    pub fn network(&self, address: IpAddr) -> Vec<u8> {
        let mut network = Vec::with_capacity(17);
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = address.to_bits() & leading(u32::MAX, self.v4, 32);
                network.push(4);
                network.extend_from_slice(&bits.to_be_bytes());
            }
            IpAddr::V6(address) => {
                let shift = 128_u32.saturating_sub(self.v6);
                let bits = address.to_bits() & u128::MAX.checked_shl(shift).unwrap_or(0);
                network.push(6);
                network.extend_from_slice(&bits.to_be_bytes());
            }
        }
        network
    }
}

fn leading(all: u32, bits: u32, of: u32) -> u32 {
    all.checked_shl(of.saturating_sub(bits)).unwrap_or(0)
}

/// A prefix length from 1 to `most`, in plain digits.
fn bits(text: &str, most: u32) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|bits| plain && (1..=most).contains(bits))
}

impl fmt::Display for Prefixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        if *self == default {
            Ok(())
        } else if self.v4 == default.v4 {
            write!(f, "/{}", self.v6)
        } else {
            write!(f, "/{}/{}", self.v4, self.v6)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(prefixes: &str, address: &str) -> Vec<u8> {
        Prefixes::parse(prefixes).unwrap().network(address.parse().unwrap())
    }

    #[test]
    fn an_address_is_cut_to_its_prefix() {
        assert_eq!(network("/24/56", "192.0.2.77"), [4, 192, 0, 2, 0]);
        assert_eq!(network("", "192.0.2.77"), [4, 192, 0, 2, 77]);
        let cut = network("/24/56", "2001:db8:1:2ff:3::4");
        assert_eq!(cut, [6, 0x20, 1, 0xd, 0xb8, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(network("/128", "::1")[16], 1);
    }

    #[test]
    fn the_families_never_meet() {
        assert_ne!(network("/1/1", "128.0.0.0")[0], network("/1/1", "8000::")[0]);
    }
}
