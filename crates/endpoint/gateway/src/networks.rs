//! Owners of connections: limits count by address, or by network where one host has many addresses.

use std::net::{IpAddr, Ipv6Addr};

/// Returns the key of the address's host: itself, or the /64 network of an IPv6 address (RFC 6177 section 2).
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one() {
        let of = |text: &str| network_of(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
    }
}
