//! The traffic class octet of a socket's packets: the code point and the ECN bits.

use rustix::fd::AsFd;
use rustix::net::sockopt::{ip_tos, ipv6_tclass, set_ip_tos, set_ipv6_tclass};
use std::io;
use std::net::SocketAddr;

/// Sets the traffic class of a socket's packets to this peer. On a TCP socket the kernel controls the ECN bits.
///
/// IPv4 and IPv6 have an option each. A socket of IPv6 that carries IPv4 to a mapped address needs both.
///
/// # Errors
/// When the kernel refuses it.
pub fn set_traffic_class(socket: impl AsFd, peer: SocketAddr, octet: u8) -> io::Result<()> {
    match peer {
        SocketAddr::V4(_) => set_ip_tos(socket, octet)?,
        SocketAddr::V6(v6) => {
            if v6.ip().to_ipv4_mapped().is_some() {
                set_ip_tos(&socket, octet)?;
            }
            set_ipv6_tclass(socket, u32::from(octet))?;
        }
    }
    Ok(())
}

/// Returns the traffic class of a socket's packets to this peer, as [`set_traffic_class`] sets it.
///
/// # Errors
/// When the kernel refuses it.
pub fn traffic_class(socket: impl AsFd, peer: SocketAddr) -> io::Result<u8> {
    Ok(match peer {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_none() => ipv6_tclass(socket)? as u8,
        _ => ip_tos(socket)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn each_family_has_its_option_and_a_mapped_address_both() {
        let v4 = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_traffic_class(&v4, "127.0.0.1:9".parse().unwrap(), 0x5c).unwrap();
        assert_eq!(ip_tos(&v4).unwrap(), 0x5c);
        let v6 = UdpSocket::bind("[::]:0").unwrap();
        set_traffic_class(&v6, "[::1]:9".parse().unwrap(), 0x5c).unwrap();
        assert_eq!((ip_tos(&v6).unwrap(), ipv6_tclass(&v6).unwrap()), (0, 0x5c));
        set_traffic_class(&v6, "[::ffff:127.0.0.1]:9".parse().unwrap(), 0x4c).unwrap();
        assert_eq!((ip_tos(&v6).unwrap(), ipv6_tclass(&v6).unwrap()), (0x4c, 0x4c));
        let of = |socket: &UdpSocket, peer: &str| traffic_class(socket, peer.parse().unwrap()).unwrap();
        assert_eq!((of(&v4, "127.0.0.1:9"), of(&v6, "[::ffff:127.0.0.1]:9")), (0x5c, 0x4c));
        set_traffic_class(&v6, "[::1]:9".parse().unwrap(), 0x2c).unwrap();
        assert_eq!((of(&v6, "[::1]:9"), of(&v6, "[::ffff:127.0.0.1]:9")), (0x2c, 0x4c));
    }
}
