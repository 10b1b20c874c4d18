//! IP packets to a neighbour of the caller's choice, whatever the kernel's routes to their destinations are.

use crate::ip_socket::OutgoingPacket;
use crate::sockopt::check;
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::IpAddr;

/// The address of a neighbour on its link, as Ethernet has them.
pub type LinkAddress = [u8; 6];

/// The header of IPv4 with the Router Alert option (RFC 2113), in words of 32 bits.
const WORDS_V4: u8 = 6;
const ROUTER_ALERT_V4: [u8; 4] = [0x94, 4, 0, 0];
/// The hop-by-hop header of IPv6 with Router Alert for RSVP (RFC 2711), without its first byte.
const HOP_BY_HOP: [u8; 7] = [0, 5, 2, 0, 1, 1, 0];

/// A socket that sends packets and receives none.
#[derive(Debug)]
pub struct NeighbourSocket {
    fd: OwnedFd,
}

impl NeighbourSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// When the process may not: it needs `CAP_NET_RAW`.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol it receives nothing.
        Ok(Self { fd: socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)? })
    }

    /// Sends a message of this protocol over IP, with Router Alert, to a neighbour. It must fit the interface's MTU.
    ///
    /// # Errors
    /// When it cannot leave.
    pub fn send(&self, protocol: u8, message: &OutgoingPacket<'_>, to: LinkAddress) -> io::Result<()> {
        let packet = packet(protocol, message)?;
        let kind = if message.source.is_ipv4() { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
        // SAFETY: all-zero bits are a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (kind as u16).to_be();
        address.sll_ifindex = message.interface as i32;
        address.sll_halen = to.len() as u8;
        address.sll_addr[..to.len()].copy_from_slice(&to);
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads `packet` and `address`, which are as long as stated.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                libc::MSG_DONTWAIT,
                std::ptr::from_ref(&address).cast(),
                length,
            )
        };
        check(sent as i64).map(drop)
    }
}

/// Writes the packet with its headers.
fn packet(protocol: u8, message: &OutgoingPacket<'_>) -> io::Result<Vec<u8>> {
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
    let length = |more: usize| u16::try_from(message.payload.len() + more).map_err(|_| wrong("too long"));
    let mut packet = Vec::with_capacity(message.payload.len() + 48);
    match (message.source, message.destination.0) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = usize::from(WORDS_V4) * 4;
            packet.extend([0x40 | WORDS_V4, 0]);
            packet.extend(length(header)?.to_be_bytes());
            packet.extend([0, 0, 0, 0, message.ttl, protocol, 0, 0]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet.extend(ROUTER_ALERT_V4);
            let sum = checksum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet.extend([0x60, 0, 0, 0]);
            packet.extend(length(1 + HOP_BY_HOP.len())?.to_be_bytes());
            packet.extend([0, message.ttl]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet.push(protocol);
            packet.extend(HOP_BY_HOP);
        }
        _ => return Err(wrong("an address of another version of IP")),
    }
    packet.extend(message.payload);
    Ok(packet)
}

/// The checksum of a header of IPv4 (RFC 791).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'p>(source: &str, destination: &str, payload: &'p [u8]) -> OutgoingPacket<'p> {
        let (source, destination) = (source.parse().unwrap(), (destination.parse().unwrap(), 0));
        OutgoingPacket { interface: 1, source, destination, ttl: 64, router_alert: true, payload }
    }

    /// A header whose checksum is right has the sum zero.
    #[test]
    fn a_packet_has_its_headers_byte_by_byte() {
        let v4 = packet(46, &message("10.0.0.1", "10.9.9.9", &[1, 2, 3])).unwrap();
        assert_eq!(v4[..4], [0x46, 0, 0, 27]);
        assert_eq!((v4[8], v4[9], &v4[20..24], &v4[24..]), (64, 46, &[0x94, 4, 0, 0][..], &[1, 2, 3][..]));
        assert_eq!(checksum(&v4[..24]), 0);
        let v6 = packet(46, &message("fd00::1", "fd00::2", &[1, 2, 3])).unwrap();
        assert_eq!((&v6[4..8], v6[40], v6[41], v6.len()), (&[0, 11, 0, 64][..], 46, 0, 51));
        assert_eq!(v6[42..48], [5, 2, 0, 1, 1, 0]);
        assert!(packet(46, &message("10.0.0.1", "fd00::2", &[])).is_err());
        assert!(packet(46, &message("10.0.0.1", "10.0.0.2", &vec![0; 65_535])).is_err());
    }
}
