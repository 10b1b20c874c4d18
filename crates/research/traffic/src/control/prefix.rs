//! Address prefixes: the hosts that may connect, and addresses that count as one.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses that begin with the same bits, such as `192.0.2.0/24` or `2001:db8::/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Returns the addresses that are counted as one: an IPv4 address, or the 2^64 IPv6 addresses of one network.
    pub(super) fn of_one_peer(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address: masked(address, 64), length: if address.is_ipv4() { 32 } else { 64 } }
    }

    /// Returns whether the address begins with the prefix. An IPv4 address that is mapped into IPv6 is an IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.length) == self.address
    }
}

/// Returns an address whose bits after the first `length` are zero; an IPv4 address has 32 bits at most.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    let shift = |bits: u32| bits.saturating_sub(u32::from(length));
    match address {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(shift(32)).unwrap_or(0)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(shift(128)).unwrap_or(0)).into()),
    }
}

/// Parses an address, or an address, a slash and the number of bits. The bits after these must be zero.
impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write an address or a prefix: 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32".to_owned();
        let (address, length) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(most), |length| length.parse().map_err(|_| wrong()))?;
        if length > most {
            return Err(format!("/{length} is too long: at most /{most}"));
        }
        let of = masked(address, length);
        if of == address {
            Ok(Self { address, length })
        } else {
            Err(format!("bits after the prefix are set: write {of}/{length}"))
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_contains_the_addresses_that_begin_with_it() {
        let cases = [
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.0/24", "::ffff:192.0.2.9", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("0.0.0.0/0", "255.0.0.1", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/33", "2001:db8:7fff::", true),
            ("2001:db8::/33", "2001:db8:8000::", false),
            ("::1", "::1", true),
        ];
        for (of, address, contained) in cases {
            assert_eq!(prefix(of).contains(address.parse().unwrap()), contained, "{of} {address}");
        }
    }

    #[test]
    fn invalid_prefixes_are_refused() {
        for text in ["", "x", "1.2.3", "192.0.2.0/", "192.0.2.0/-1", "192.0.2.0/33", "::/129", "192.0.2.1/24"]
        {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
        assert!("192.0.2.1/24".parse::<Prefix>().unwrap_err().contains("192.0.2.0/24"));
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_count_as_one() {
        let of = |text: &str| Prefix::of_one_peer(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
