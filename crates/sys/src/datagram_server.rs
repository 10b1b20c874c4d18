//! A datagram socket that many peers send to, whose answers leave from the address that was asked.
//!
//! On a host with several addresses, a socket at a wildcard address receives what was sent to any of them. Where an answer does not say
//! otherwise, the kernel chooses its source by the route back, which may be another address than the peer asked; a peer with a connected
//! socket never sees it. So each datagram comes with its destination (`IP_PKTINFO`, `IPV6_RECVPKTINFO`), and the answer has that one
//! as its source (ip(7), RFC 3542 section 6.2).
#![expect(unsafe_code, reason = "sendmsg and recvmsg with control messages that no safe crate wraps")]

use crate::datagrams::{NAME, address, each_control};
use crate::ip_socket::push_control;
use crate::sockopt::{SocketOption, check};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::net::SocketAddrAny;
use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

const IP_PKTINFO: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IP, libc::IP_PKTINFO);
const IPV6_RECVPKTINFO: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO);

/// A datagram socket that is not connected. Its calls do not wait.
#[derive(Debug)]
pub struct DatagramServer(UdpSocket);

/// The two ends of an exchange of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ends {
    /// The peer.
    pub peer: SocketAddr,
    /// The address of this host that the peer has asked; `None` where the kernel does not say.
    pub local: Option<IpAddr>,
    /// The interface that a link-local address of this end belongs to; otherwise 0, and the route decides.
    interface: u32,
}

impl DatagramServer {
    /// Receives at an address.
    ///
    /// # Errors
    /// When the address is in use or is none of this host.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        match address {
            SocketAddr::V4(_) => IP_PKTINFO.set(&socket, 1)?,
            SocketAddr::V6(_) => IPV6_RECVPKTINFO.set(&socket, 1)?,
        }
        Ok(Self(socket))
    }

    /// Returns the address of this socket.
    ///
    /// # Errors
    /// As [`UdpSocket::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Receives a datagram. What does not fit in the buffer is lost. Returns its length in the buffer, and its two ends.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none; another one when the socket has an error.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Ends)> {
        let mut name = [0; NAME];
        let mut control = [0_u64; 16];
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: all-zero bits are a valid msghdr: null pointers with lengths of zero.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_name = name.as_mut_ptr().cast();
        header.msg_namelen = NAME as libc::socklen_t;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: name, buffer and control messages are where the header says, of the lengths given, and are not used otherwise during the
        // call.
        let length =
            check(unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) } as i64)?;
        let peer = address(&name).ok_or(io::ErrorKind::InvalidData)?;
        let control: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut found = None;
        each_control(&control[..(header.msg_controllen as usize).min(control.len())], |level, kind, data| {
            found = destination(level, kind, data).or(found);
        });
        let (local, interface) = found.unzip();
        Ok((length as usize, Ends { peer, local, interface: interface.unwrap_or(0) }))
    }

    /// Sends a datagram to a peer, from the address that the peer has asked.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the socket has no room; another one when the datagram cannot leave.
    pub fn answer(&self, ends: &Ends, bytes: &[u8]) -> io::Result<()> {
        let mut control = Vec::with_capacity(64);
        match ends.local {
            // A source of IPv4 belongs to the host; the route chooses the interface.
            Some(IpAddr::V4(local)) => {
                let info = [&[0; 4][..], &local.octets(), &[0; 4]].concat();
                push_control(&mut control, (libc::IPPROTO_IP, libc::IP_PKTINFO), &info);
            }
            Some(IpAddr::V6(local)) => {
                let info = [&local.octets()[..], &ends.interface.to_ne_bytes()].concat();
                push_control(&mut control, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), &info);
            }
            None => {}
        }
        let name = SocketAddrAny::from(ends.peer);
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: all-zero bits are a valid msghdr: null pointers with lengths of zero.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_name = name.as_ptr().cast_mut().cast();
        header.msg_namelen = name.addr_len();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = control.len() as _;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: name, payload and control messages are where the header says and live until the call returns; the kernel only reads them.
        check(unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const header, flags) } as i64).map(drop)
    }
}

impl AsFd for DatagramServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The local address that a control message says a datagram was sent to, and the interface that it belongs to if it is a link-local one.
fn destination(level: i32, kind: i32, data: &[u8]) -> Option<(IpAddr, u32)> {
    match (level, kind) {
        // The interface, a local address to answer from, the destination in the header, which may be a broadcast address.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let local = Ipv4Addr::from(*data.get(4..)?.first_chunk::<4>()?);
            Some((local.into(), 0))
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let local = Ipv6Addr::from(*data.first_chunk::<16>()?);
            let interface = u32::from_ne_bytes(*data.get(16..)?.first_chunk()?);
            // Nothing can be sent from a multicast address.
            let is_local = !local.is_multicast();
            is_local.then_some((local.into(), if local.is_unicast_link_local() { interface } else { 0 }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Whether a client with a connected socket gets an answer of a server at a wildcard address.
    fn is_answered(wildcard: &str, asked: &str) -> bool {
        let server = DatagramServer::bind(wildcard.parse().unwrap()).unwrap();
        let port = server.local_addr().unwrap().port();
        let asked: IpAddr = asked.parse().unwrap();
        let any = if asked.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let client = UdpSocket::bind(any).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.connect((asked, port)).unwrap();
        client.send(b"ask").unwrap();
        let mut buffer = [0; 10];
        let (length, ends) = loop {
            match server.receive(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                other => break other.unwrap(),
            }
        };
        assert_eq!(&buffer[..length], b"ask");
        assert_eq!(ends.local.map(|local| local.to_canonical()), Some(asked));
        server.answer(&ends, b"answer").unwrap();
        client.recv(&mut buffer).is_ok_and(|length| &buffer[..length] == b"answer")
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn the_address_that_was_asked_answers() {
        assert!(is_answered("0.0.0.0:0", "127.0.0.1"));
        assert!(is_answered("0.0.0.0:0", "127.0.0.77"));
        assert!(is_answered("127.0.0.78:0", "127.0.0.78"));
        if UdpSocket::bind("[::1]:0").is_ok() {
            assert!(is_answered("[::]:0", "::1"));
            // IPv4 over a socket of both.
            assert!(is_answered("[::]:0", "127.0.0.79"));
        }
    }

    #[test]
    fn a_destination_that_nothing_can_be_sent_from_is_left_to_the_route() {
        let of = |address: &str, interface: u32| {
            let octets = address.parse::<Ipv6Addr>().unwrap().octets();
            let data = [&octets[..], &interface.to_ne_bytes()].concat();
            destination(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data)
        };
        assert_eq!(of("ff02::1", 3), None);
        assert_eq!(of("fe80::1", 3), Some(("fe80::1".parse().unwrap(), 3)));
        assert_eq!(of("2001:db8::1", 3), Some(("2001:db8::1".parse().unwrap(), 0)));
        assert_eq!(destination(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &[0; 17]), None);
        assert_eq!(destination(libc::IPPROTO_IP, libc::IP_PKTINFO, &[0; 7]), None);
    }
}
