//! The local address that a datagram has come to, and the one that a datagram leaves with.
//!
//! A socket that is bound to no address takes datagrams to all addresses of the host, but answers from the one that the route prefers. The
//! peer drops an answer from an address that it has not asked. So a server requests the address that each datagram has come to
//! (`IP_PKTINFO`, `IPV6_RECVPKTINFO`; ip(7), RFC 3542 section 6), and answers from there.

use crate::sendmsg::{
    IP_PKTINFO, IPV6_RECVPKTINFO, Name, push_control, send_message, sockaddr_v4, sockaddr_v6,
};
use crate::sockopt::SO_DOMAIN;
use rustix::fd::AsFd;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// An address of this host that a datagram has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalAddress {
    /// The address. Of a socket of IPv6 that takes IPv4, too, it is a mapped one for IPv4.
    pub ip: IpAddr,
    /// The number of the interface that a link-local address belongs to; 0 for others, where the route decides.
    zone: u32,
}

impl LocalAddress {
    /// Returns the address with a port, and with the zone where the address is of a link.
    pub fn with_port(self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, self.zone).into(),
            ip @ IpAddr::V4(_) => SocketAddr::new(ip, port),
        }
    }

    /// Reads the data of a control message; `None` if it is none of a local address, or of one that nothing can be sent from.
    pub(crate) fn read(level: i32, kind: i32, data: &[u8]) -> Option<Self> {
        let word = |at: usize| data.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied();
        match (level, kind) {
            // The interface, the local address, the destination in the header, which may be of a broadcast.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                Some(Self { ip: Ipv4Addr::from(word(4)?).into(), zone: 0 })
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let ip = Ipv6Addr::from(*data.first_chunk::<16>()?);
                let interface = u32::from_ne_bytes(word(16)?);
                let zone = if ip.is_unicast_link_local() { interface } else { 0 };
                (!ip.is_multicast()).then_some(Self { ip: ip.into(), zone })
            }
            _ => None,
        }
    }
}

/// Enables the local address of each received datagram.
///
/// # Errors
/// When the kernel refuses it.
pub fn ask(socket: impl AsFd) -> io::Result<()> {
    // A socket of IPv6 that takes IPv4, too, says both as addresses of IPv6.
    let is_v6 = SO_DOMAIN.get(&socket)? == libc::AF_INET6;
    if is_v6 { IPV6_RECVPKTINFO.set(socket, 1) } else { IP_PKTINFO.set(socket, 1) }
}

/// Sends a datagram from a local address; from the one that the route prefers if it is `None`.
///
/// # Errors
/// When it cannot leave, or the address is none of this host.
pub fn send_from(
    socket: impl AsFd,
    datagram: &[u8],
    to: SocketAddr,
    from: Option<LocalAddress>,
) -> io::Result<usize> {
    let mut control = Vec::with_capacity(64);
    match from.map(|local| (local.ip, local.zone)) {
        Some((IpAddr::V4(ip), _)) => {
            let info = [&[0; 4][..], &ip.octets(), &[0; 4]].concat();
            push_control(&mut control, (libc::IPPROTO_IP, libc::IP_PKTINFO), &info);
        }
        Some((IpAddr::V6(ip), zone)) => {
            let info = [&ip.octets()[..], &zone.to_ne_bytes()].concat();
            push_control(&mut control, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), &info);
        }
        None => {}
    }
    let name = match to {
        SocketAddr::V4(to) => Name::V4(sockaddr_v4(*to.ip(), to.port())),
        SocketAddr::V6(to) => Name::V6(sockaddr_v6(to)),
    };
    send_message(socket, &name, datagram, &mut control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::Inbox;
    use std::net::UdpSocket;

    #[test]
    fn an_address_that_nothing_can_be_sent_from_is_left_to_the_route() {
        let of = |address: &str, interface: u32| {
            let octets = address.parse::<Ipv6Addr>().unwrap().octets();
            let data = [&octets[..], &interface.to_ne_bytes()].concat();
            LocalAddress::read(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data).map(|it| (it.ip, it.zone))
        };
        assert_eq!(of("ff02::1", 3), None);
        assert_eq!(of("fe80::1", 3), Some(("fe80::1".parse().unwrap(), 3)));
        assert_eq!(of("2001:db8::1", 3), Some(("2001:db8::1".parse().unwrap(), 0)));
        assert_eq!(LocalAddress::read(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &[0; 17]), None);
        assert_eq!(LocalAddress::read(libc::IPPROTO_IP, libc::IP_PKTINFO, &[0; 7]), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn a_datagram_is_answered_from_its_destination_address() {
        for (any, asked) in [
            ("0.0.0.0:0", "127.0.0.1"),
            ("0.0.0.0:0", "127.0.0.2"),
            ("[::]:0", "::1"),
            ("[::]:0", "127.0.0.3"),
        ] {
            let server = UdpSocket::bind(any).unwrap();
            ask(&server).unwrap();
            let asked = SocketAddr::new(asked.parse().unwrap(), server.local_addr().unwrap().port());
            let client = UdpSocket::bind(if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }).unwrap();
            // What comes from another address is not received.
            client.connect(asked).unwrap();
            client.send(b"question").unwrap();
            let mut answered = false;
            let mut answer = |it: crate::datagrams::Datagram<'_>| {
                let local = it.to.unwrap();
                assert_eq!(local.with_port(asked.port()).ip().to_canonical(), asked.ip(), "{any}");
                assert_eq!(send_from(&server, b"answer", it.from, it.to).unwrap(), 6);
                answered = true;
            };
            Inbox::default().receive(&server, &mut answer).unwrap();
            assert!(answered);
            let mut buffer = [0; 9];
            assert_eq!(client.recv(&mut buffer).unwrap(), 6, "{any}");
        }
    }
}
