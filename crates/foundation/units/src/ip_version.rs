//! The version of the Internet Protocol.

use std::net::IpAddr;

/// A version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

impl IpVersion {
    /// Returns the version of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the length of a header without options and extension headers, bytes (RFC 791 section 3.1; RFC
    /// 8200 section 3).
    pub const fn header_bytes(self) -> u8 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_version_and_each_version_its_header() {
        let mapped = "::ffff:192.0.2.1".parse().expect("an address");
        assert_eq!(IpVersion::of(IpAddr::from([192, 0, 2, 1])), IpVersion::V4);
        assert_eq!(IpVersion::of(mapped), IpVersion::V6, "the packet has a header of IPv6");
        // RFC 791 section 3.1, RFC 8200 section 3.
        assert_eq!([IpVersion::V4, IpVersion::V6].map(IpVersion::header_bytes), [20, 40]);
    }
}
