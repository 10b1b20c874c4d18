//! Prefixes of addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Prefix of addresses, such as `10.2.0.0/16`. An address alone is the prefix of all its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPrefix {
    address: IpAddr,
    bits: u8,
}

impl AddressPrefix {
    /// Returns whether an address has this prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(prefix), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                prefix.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(prefix), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                prefix.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }

    /// Number of bits that addresses have in common.
    pub const fn bits(&self) -> u8 {
        self.bits
    }
}

impl FromStr for AddressPrefix {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or(())?,
            None => most,
        };
        Ok(Self { address, bits })
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_contains_the_addresses_that_begin_with_it() {
        let contains = |prefix: &str, address: &str| {
            prefix.parse::<AddressPrefix>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.2.0.0/16", "10.2.255.1") && !contains("10.2.0.0/16", "10.3.0.1"));
        assert!(contains("0.0.0.0/0", "192.0.2.1") && !contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("2001:db8::/32", "2001:db8:1::9") && contains("::/0", "::1"));
        assert!(contains("10.0.0.1", "::ffff:10.0.0.1") && !contains("10.0.0.1", "10.0.0.2"));
        for wrong in ["10.0.0.0/33", "x", "10.0.0.0/", "::/129"] {
            assert_eq!(wrong.parse::<AddressPrefix>(), Err(()), "{wrong}");
        }
    }
}
