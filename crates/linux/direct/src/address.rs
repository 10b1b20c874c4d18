//! Addresses of direct sockets.

use cutline_sys::interface;
use cutline_sys::packet::LinkAddress;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

/// Beginning of an address's text.
const SCHEME: &str = "direct:";

/// The address of a direct socket: an interface of this host, an address on its link, and a port.
///
/// Its text is `direct:eth0/02:00:00:00:00:01:7000`; `direct:` may be left out. The interface is always one of this host, also in the
/// address of a peer.
///
/// As a [`SocketAddr`] it is the link-local address of IPv6 that is derived from the link address (RFC 4291 appendix A, RFC 2464 section
/// 4), with the interface as its zone. Tables and documents that have room for addresses of IP thus have room for these, and the two forms
/// stand for each other:
///
/// ```
/// use cutline_direct::DirectAddress;
///
/// let address: DirectAddress = "direct:lo/02:00:00:00:00:01:7000".parse().unwrap();
/// assert_eq!(address.socket_addr().ip().to_string(), "fe80::ff:fe00:1");
/// assert_eq!(DirectAddress::of(address.socket_addr()), Some(address));
/// assert_eq!(address.to_string(), "direct:lo/02:00:00:00:00:01:7000");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectAddress {
    /// Number of the interface.
    pub interface: u32,
    /// Address on the interface's link.
    pub link: LinkAddress,
    /// Port.
    pub port: u16,
}

/// The reason why a text is no address of a direct socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressTextError {
    /// Another form.
    #[error("expected INTERFACE/LINK-ADDRESS:PORT, such as eth0/02:00:00:00:00:01:7000")]
    Malformed,
    /// The port is none.
    #[error("port \"{0}\": expected a number from 1 to 65535")]
    Port(String),
    /// No such interface.
    #[error("there is no interface `{name}`; there are: {}", known.join(", "))]
    Interface {
        /// The name.
        name: String,
        /// The interfaces.
        known: Vec<String>,
    },
}

impl DirectAddress {
    /// Returns the address as a link-local address of IPv6.
    pub const fn socket_addr(self) -> SocketAddr {
        let [a, b, c, d, e, f] = self.link;
        // The universal/local bit is inverted.
        let octets = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f];
        let ip = Ipv6Addr::from_bits(u128::from_be_bytes(octets));
        SocketAddr::V6(SocketAddrV6::new(ip, self.port, 0, self.interface))
    }

    /// Returns the direct address that a link-local address of IPv6 stands for; `None` if it is derived from no link address.
    pub fn of(address: SocketAddr) -> Option<Self> {
        let SocketAddr::V6(address) = address else { return None };
        let [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, 0xff, 0xfe, d, e, f] = address.ip().octets() else {
            return None;
        };
        let interface = Some(address.scope_id()).filter(|interface| *interface > 0)?;
        Some(Self { interface, link: [a ^ 2, b, c, d, e, f], port: address.port() })
    }
}

impl FromStr for DirectAddress {
    type Err = AddressTextError;

    fn from_str(text: &str) -> Result<Self, AddressTextError> {
        let text = text.strip_prefix(SCHEME).unwrap_or(text);
        let (name, rest) = text.split_once('/').ok_or(AddressTextError::Malformed)?;
        let (link, port) = rest.rsplit_once(':').ok_or(AddressTextError::Malformed)?;
        let link = link_address(link).ok_or(AddressTextError::Malformed)?;
        let number = port.parse().ok().filter(|port| *port > 0);
        let port = number.ok_or_else(|| AddressTextError::Port(port.to_owned()))?;
        let unknown = |_| AddressTextError::Interface { name: name.to_owned(), known: interface::names() };
        Ok(Self { interface: interface::index(name).map_err(unknown)?, link, port })
    }
}

/// Parses six octets in hexadecimal, with colons between them.
fn link_address(text: &str) -> Option<LinkAddress> {
    let mut octets = text.split(':').map(|octet| match octet.len() {
        1 | 2 if octet.bytes().all(|byte| byte.is_ascii_hexdigit()) => u8::from_str_radix(octet, 16).ok(),
        _ => None,
    });
    let mut link = [0; 6];
    for octet in &mut link {
        *octet = octets.next()??;
    }
    octets.next().is_none().then_some(link)
}

impl fmt::Display for DirectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        match interface::name(self.interface) {
            Some(name) => f.write_str(&name)?,
            None => write!(f, "{}", self.interface)?,
        }
        let [a, b, c, d, e, g] = self.link;
        write!(f, "/{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}:{}", self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_reason() {
        let says = |text: &str| text.parse::<DirectAddress>().unwrap_err().to_string();
        for text in
            ["", "lo", "lo/", "lo/02:00:00:00:00:01", "lo/02:00:00:00:00:01:02:7000", "lo/+2:0:0:0:0:1:7"]
        {
            assert!(says(text).starts_with("expected INTERFACE/LINK-ADDRESS:PORT"), "{text}");
        }
        assert_eq!(says("lo/2:0:0:0:0:1:0"), "port \"0\": expected a number from 1 to 65535");
        assert!(says("nosuch0/2:0:0:0:0:1:7").starts_with("there is no interface `nosuch0`; there are: "));
    }

    #[test]
    fn addresses_of_ip_that_are_derived_from_no_link_address_are_none() {
        for text in ["192.0.2.1:7", "[fe80::1%1]:7", "[2001:db8::ff:fe00:1]:7", "[fe80::ff:fe00:1]:7"] {
            let address = cutline_sys::address::parse_listen_address(&text.replace("%1", "%lo"));
            assert_eq!(address.ok().and_then(DirectAddress::of), None, "{text}");
        }
    }
}
