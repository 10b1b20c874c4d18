//! Hosts and addresses as people write them: names, IPv6 addresses with zones, ports.
//!
//! A link-local IPv6 address exists on every link, so it needs a *zone*, the interface that leads to the link: `fe80::1%eth0`
//! (RFC 4007 section 11). The standard library's addresses have room for the zone's number and do not read its name. This module does,
//! for every command and socket that takes an address.
//!
//! ```
//! use cutline_sys::address::{ZonedIp, lookup};
//!
//! let local: ZonedIp = "fe80::1%lo".parse()?;
//! assert_eq!(local.with_port(80).to_string(), "[fe80::1%1]:80");
//! assert_eq!(local.to_string(), "fe80::1%lo");
//! assert_eq!(lookup("[fe80::1%lo]:80", None).unwrap(), [local.with_port(80)]);
//! assert_eq!(lookup("192.0.2.1", Some(80)).unwrap(), ["192.0.2.1:80".parse().unwrap()]);
//! # Ok::<(), cutline_sys::address::AddressError>(())
//! ```

use crate::interface;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs as _};
use std::str::FromStr;

/// Reason why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address.
    #[error("expected an address, such as 192.0.2.7, 2001:db8::7 or fe80::7%eth0")]
    Malformed,
    /// An address that needs no zone has one.
    #[error("only link-local IPv6 addresses have a zone: remove `%{0}`")]
    NeedlessZone(String),
    /// The zone is no interface.
    #[error("there is no interface `{zone}`; there are: {}", known.join(", "))]
    UnknownZone {
        /// The zone.
        zone: String,
        /// The interfaces.
        known: Vec<String>,
    },
    /// A link-local address has no zone.
    #[error("the link-local address {address} needs an interface: write {address}%INTERFACE, one of {}", known.join(", "))]
    MissingZone {
        /// The address.
        address: Ipv6Addr,
        /// The interfaces.
        known: Vec<String>,
    },
    /// The port is none.
    #[error("port \"{0}\": expected a number from 1 to 65535")]
    Port(String),
    /// No port.
    #[error("expected HOST:PORT, such as 192.0.2.7:6000 or [2001:db8::7]:6000")]
    MissingPort,
}

/// An IP address, a link-local one with its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZonedIp {
    ip: IpAddr,
    /// The interface's number; 0 if the address needs none.
    scope_id: u32,
}

impl ZonedIp {
    /// Returns the address without its zone.
    pub const fn ip(self) -> IpAddr {
        self.ip
    }

    /// Returns the address with a port.
    pub const fn with_port(self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V6(ip) => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, self.scope_id)),
            IpAddr::V4(ip) => SocketAddr::V4(std::net::SocketAddrV4::new(ip, port)),
        }
    }
}

impl From<IpAddr> for ZonedIp {
    fn from(ip: IpAddr) -> Self {
        Self { ip, scope_id: 0 }
    }
}

impl From<SocketAddr> for ZonedIp {
    fn from(address: SocketAddr) -> Self {
        let scope_id = match address {
            SocketAddr::V6(address) => address.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        Self { ip: address.ip(), scope_id }
    }
}

impl FromStr for ZonedIp {
    type Err = AddressError;

    /// Parses `192.0.2.7`, `2001:db8::7`, `fe80::7%eth0` or `fe80::7%2`.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let Some((address, zone)) = text.split_once('%') else {
            return match text.parse() {
                Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => {
                    Err(AddressError::MissingZone { address: ip, known: interface::names() })
                }
                Ok(ip) => Ok(Self { ip, scope_id: 0 }),
                Err(_) => Err(AddressError::Malformed),
            };
        };
        let ip: Ipv6Addr = address.parse().map_err(|_| match address.parse::<IpAddr>() {
            Ok(_) => AddressError::NeedlessZone(zone.to_owned()),
            Err(_) => AddressError::Malformed,
        })?;
        if !needs_zone(ip) {
            return Err(AddressError::NeedlessZone(zone.to_owned()));
        }
        let unknown = || AddressError::UnknownZone { zone: zone.to_owned(), known: interface::names() };
        let number = zone.parse::<u32>().ok().filter(|number| *number > 0);
        let named = || interface::index(zone).map_err(|_| unknown());
        Ok(Self { ip: ip.into(), scope_id: number.map_or_else(named, Ok)? })
    }
}

impl fmt::Display for ZonedIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope_id {
            0 => write!(f, "{}", self.ip),
            scope => match interface::name(scope) {
                Some(zone) => write!(f, "{}%{zone}", self.ip),
                None => write!(f, "{}%{scope}", self.ip),
            },
        }
    }
}

/// Returns whether an address means nothing without a zone.
fn needs_zone(ip: Ipv6Addr) -> bool {
    // Of multicast addresses those of the interface and of the link (RFC 4291 section 2.7).
    ip.is_unicast_link_local() || ip.is_multicast() && matches!(ip.octets()[1] & 0xf, 1 | 2)
}

/// Returns the address with another port. The zone stays.
#[must_use]
pub const fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Splits a host from its port: `host`, `host:80`, `192.0.2.7:80`, `2001:db8::7`, `[2001:db8::7]:80`, `[fe80::7%eth0]:80`.
///
/// # Errors
/// When the port is no number from 1 to 65535.
pub fn split(text: &str) -> Result<(&str, Option<u16>), AddressError> {
    let number = |port: &str| match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => Err(AddressError::Port(port.to_owned())),
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (host, behind) = rest.split_once(']').ok_or(AddressError::Malformed)?;
        return match behind.strip_prefix(':') {
            None if behind.is_empty() => Ok((host, None)),
            None => Err(AddressError::Malformed),
            Some(port) => Ok((host, number(port)?)),
        };
    }
    match text.split_once(':') {
        // Several colons are an address of IPv6.
        Some((host, port)) if !port.contains(':') => Ok((host, number(port)?)),
        _ => Ok((text, None)),
    }
}

/// Returns all addresses of a host with a port, in the order in which they should be tried. The host is a name or an address.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] with an [`AddressError`] when the text is no host with a port, or a zone is missing or unknown;
/// [`io::ErrorKind::NotFound`] when the name has no address; otherwise the resolver's error.
pub fn lookup(text: &str, default_port: Option<u16>) -> io::Result<Vec<SocketAddr>> {
    let invalid = |error: AddressError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let (host, port) = split(text).map_err(invalid)?;
    let port = port.or(default_port).ok_or_else(|| invalid(AddressError::MissingPort))?;
    lookup_host(host, port)
}

/// Returns all addresses of a host, a name or an address, with a port.
///
/// # Errors
/// As [`lookup`].
pub fn lookup_host(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let invalid = |error: AddressError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let found: Vec<SocketAddr> = match host.parse::<ZonedIp>() {
        Ok(address) => vec![address.with_port(port)],
        Err(AddressError::Malformed) => (host, port).to_socket_addrs()?.collect(),
        Err(error) => return Err(invalid(error)),
    };
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(found)
}

/// Returns all addresses of a host to listen at, with a port, which may be 0. The host is a name or an address.
///
/// # Errors
/// As [`lookup`].
pub fn lookup_listen_address(text: &str) -> io::Result<Vec<SocketAddr>> {
    let invalid = |error: AddressError| io::Error::new(io::ErrorKind::InvalidInput, error);
    match parse_listen_address(text) {
        Ok(address) => Ok(vec![address]),
        Err(AddressError::Malformed) => match text.strip_suffix(":0") {
            // An address of IPv6 without brackets has no port.
            Some(host) if !host.contains(':') => lookup_host(host, 0),
            _ => lookup(text, None),
        },
        Err(error) => Err(invalid(error)),
    }
}

/// Checks a host with a port, and looks no name up.
///
/// # Errors
/// As [`lookup`], without those of the resolver.
pub fn check(text: &str, default_port: Option<u16>) -> Result<(), AddressError> {
    let (host, port) = split(text)?;
    port.or(default_port).ok_or(AddressError::MissingPort)?;
    match host.parse::<ZonedIp>() {
        Err(AddressError::Malformed) if host.is_empty() || host.contains([':', '[', ']', '%']) => {
            Err(AddressError::Malformed)
        }
        Ok(_) | Err(AddressError::Malformed) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Parses an address to listen at, with a port, which may be 0: `192.0.2.7:80`, `[::]:0`, `[fe80::7%eth0]:80`.
///
/// # Errors
/// When it is none, or the zone is missing or unknown.
pub fn parse_listen_address(text: &str) -> Result<SocketAddr, AddressError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:").ok_or(AddressError::Malformed)?,
        None => text.split_once(':').ok_or(AddressError::Malformed)?,
    };
    let address: ZonedIp = host.parse()?;
    if address.ip.is_ipv6() != text.starts_with('[') {
        return Err(AddressError::Malformed);
    }
    Ok(address.with_port(port.parse().map_err(|_| AddressError::Port(port.to_owned()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v6(text: &str, port: u16, scope: u32) -> SocketAddr {
        SocketAddr::V6(SocketAddrV6::new(text.parse().unwrap(), port, 0, scope))
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs interfaces, which Miri has not")]
    fn a_zone_is_the_name_or_the_number_of_an_interface() {
        let lo = interface::index("lo").unwrap();
        let zoned = |text: &str| text.parse::<ZonedIp>();
        for text in ["fe80::1%lo", &format!("fe80::1%{lo}")] {
            assert_eq!(zoned(text).unwrap().with_port(7), v6("fe80::1", 7, lo), "{text}");
            assert_eq!(zoned(text).unwrap().to_string(), "fe80::1%lo");
        }
        assert_eq!(zoned("ff02::1%lo").unwrap().with_port(7), v6("ff02::1", 7, lo));
        assert_eq!(zoned("fe80::1%4000000000").unwrap().to_string(), "fe80::1%4000000000");
        assert_eq!(zoned("192.0.2.1").unwrap().to_string(), "192.0.2.1");
        assert_eq!(zoned("2001:db8::1%lo"), Err(AddressError::NeedlessZone("lo".to_owned())));
        assert_eq!(zoned("192.0.2.1%lo"), Err(AddressError::NeedlessZone("lo".to_owned())));
        for text in ["host%lo", "fe80::1]", "", "%lo", "[fe80::1%lo]"] {
            assert_eq!(zoned(text), Err(AddressError::Malformed), "{text}");
        }
        for zone in ["nosuch0", "", "0", "lo%lo"] {
            let error = zoned(&format!("fe80::1%{zone}")).unwrap_err().to_string();
            assert!(
                error.contains(&format!("no interface `{zone}`; there are: ")) && error.contains("lo"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_host_is_split_from_its_port() {
        for (text, expected) in [
            ("host", ("host", None)),
            ("host:80", ("host", Some(80))),
            ("192.0.2.7:80", ("192.0.2.7", Some(80))),
            ("2001:db8::7", ("2001:db8::7", None)),
            ("::1", ("::1", None)),
            ("fe80::7%eth0", ("fe80::7%eth0", None)),
            ("[fe80::7%eth0]:80", ("fe80::7%eth0", Some(80))),
            ("[2001:db8::7]", ("2001:db8::7", None)),
        ] {
            assert_eq!(split(text), Ok(expected), "{text}");
        }
        for text in ["host:", "host:0", "host:65536", "host:x", "[::1]:", "[::1]:-1"] {
            assert!(matches!(split(text), Err(AddressError::Port(_))), "{text}");
        }
        for text in ["[::1", "[::1]80"] {
            assert_eq!(split(text), Err(AddressError::Malformed), "{text}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs interfaces, which Miri has not")]
    fn a_host_has_its_addresses_and_a_link_local_one_needs_its_zone() {
        let lo = interface::index("lo").unwrap();
        assert_eq!(lookup("[fe80::1%lo]:80", None).unwrap(), [v6("fe80::1", 80, lo)]);
        assert_eq!(lookup("fe80::1%lo", Some(9)).unwrap(), [v6("fe80::1", 9, lo)]);
        assert_eq!(lookup("127.0.0.1:80", Some(9)).unwrap(), ["127.0.0.1:80".parse().unwrap()]);
        let says = |text: &str, port, expected: &str| {
            let error = lookup(text, port).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{text}");
            assert!(error.to_string().contains(expected), "{text}: {error}");
        };
        says("[fe80::1]:80", None, "needs an interface: write fe80::1%INTERFACE, one of ");
        says("[fe80::1%nosuch0]:80", None, "no interface `nosuch0`");
        says("host", None, "expected HOST:PORT");
        says("host:0", None, "port \"0\"");
        let checks = |text: &str| check(text, None).map_err(|error| error.to_string());
        assert_eq!((checks("host:80"), checks("[fe80::1%lo]:80")), (Ok(()), Ok(())));
        assert!(checks("host").unwrap_err().starts_with("expected HOST:PORT"));
        assert!(checks(":80").unwrap_err().starts_with("expected an address"));
        assert!(checks("[fe80::1%nosuch0]:80").unwrap_err().contains("no interface `nosuch0`"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs interfaces, which Miri has not")]
    fn an_address_to_listen_at_may_have_a_zone_and_port_0() {
        let lo = interface::index("lo").unwrap();
        assert_eq!(parse_listen_address("[fe80::1%lo]:0"), Ok(v6("fe80::1", 0, lo)));
        assert_eq!(parse_listen_address("[::]:80"), Ok(v6("::", 80, 0)));
        assert_eq!(parse_listen_address("0.0.0.0:80"), Ok("0.0.0.0:80".parse().unwrap()));
        assert!(matches!(parse_listen_address("[fe80::1]:80"), Err(AddressError::MissingZone { .. })));
        for text in ["::1:80", "[127.0.0.1]:80", "127.0.0.1", "host:80", "[::1]80"] {
            assert!(matches!(parse_listen_address(text), Err(AddressError::Malformed)), "{text}");
        }
        assert_eq!(parse_listen_address("127.0.0.1:70000"), Err(AddressError::Port("70000".to_owned())));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs interfaces and a resolver, which Miri has not")]
    fn a_listener_may_have_a_name_too() {
        let lo = interface::index("lo").unwrap();
        assert_eq!(lookup_listen_address("[fe80::1%lo]:0").unwrap(), [v6("fe80::1", 0, lo)]);
        assert_eq!(lookup_listen_address("127.0.0.1:80").unwrap(), ["127.0.0.1:80".parse().unwrap()]);
        for port in [0, 80] {
            let found = lookup_listen_address(&format!("localhost:{port}")).unwrap();
            assert!(
                found.iter().all(|address| address.ip().is_loopback() && address.port() == port),
                "{found:?}"
            );
        }
        for (text, expected) in [
            ("[fe80::1]:0", "needs an interface: write fe80::1%INTERFACE, one of "),
            ("[fe80::1%nosuch0]:0", "no interface `nosuch0`"),
            ("localhost", "expected HOST:PORT"),
            ("::1:0", "expected HOST:PORT"),
            ("localhost:x", "port \"x\""),
        ] {
            let error = lookup_listen_address(text).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{text}");
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
