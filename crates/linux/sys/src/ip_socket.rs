//! Sockets for messages whose IP headers matter: raw ones for a protocol over IP, and UDP ones. Each message that arrives comes with its
//! interface, its addresses and its TTL; each that is sent has those that the caller gives, also a source address of another host,
//! and the Router Alert option if requested (RFC 2113, RFC 2711).
//!
//! Raw sockets, and sources of other hosts, need `CAP_NET_RAW`.
#![expect(unsafe_code, reason = "recvmsg with control messages that no safe crate wraps")]

use crate::datagrams::each_control;
use crate::sendmsg::{
    IP_PKTINFO, IPV6_RECVPKTINFO, Name, push_control, send_message, sockaddr_v4, sockaddr_v6,
};
use crate::sockopt::{SO_RCVBUF, SO_RCVBUFFORCE, SO_RXQ_OVFL, SocketOption, check};
use cutline_units::IpVersion;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, bind, socket_with};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::num::NonZeroU32;

const IP_ROUTER_ALERT: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IP, 5);
const IP_TRANSPARENT: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IP, libc::IP_TRANSPARENT);
const IP_MTU_DISCOVER: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
const IPV6_ROUTER_ALERT: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IPV6, 22);
/// Option since Linux 5.1. Without it, messages of all network namespaces come to every such socket.
const IPV6_ROUTER_ALERT_ISOLATE: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IPV6, 30);
const IPV6_RECVHOPLIMIT: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT);
const IPV6_TRANSPARENT: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT);
const IPV6_V6ONLY: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);

/// The control message with IP options to send (linux/in.h).
const IP_RETOPTS: i32 = 7;
/// The control message with hop-by-hop options (RFC 3542 section 8).
const IPV6_HOPOPTS: i32 = 54;
/// The option of IPv4: every router shall look at the packet (RFC 2113).
const ROUTER_ALERT_V4: [u8; 4] = [0x94, 4, 0, 0];
/// The hop-by-hop options of IPv6: RSVP is in the packet (RFC 2711), and two bytes of padding. The next header is the kernel's to set.
const ROUTER_ALERT_V6: [u8; 8] = [0, 0, 5, 2, 0, 1, 1, 0];
/// The room for unread messages, bytes. A small message takes some 400 B of it, so this is for 80,000: those of ten thousand
/// reservations that are set up at once, with repetitions.
const RECEIVE_BUFFER: i32 = 32 << 20;
/// The instruction of classic BPF that ends a socket filter; with 0, nothing of the packet is kept (linux/filter.h).
const RETURN_CONSTANT: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
/// The longest packet.
const LONGEST: usize = 65_536;
const HEADER_V6: usize = 40;

const fn family(version: IpVersion) -> AddressFamily {
    match version {
        IpVersion::V4 => AddressFamily::INET,
        IpVersion::V6 => AddressFamily::INET6,
    }
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpMessage<'b> {
    /// The number of the interface.
    pub interface: u32,
    /// Its source address.
    pub source: IpAddr,
    /// Its destination address.
    pub destination: IpAddr,
    /// Its TTL; `None` if it is not known.
    pub ttl: Option<u8>,
    /// Payload, without headers.
    pub payload: &'b [u8],
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingPacket<'b> {
    /// The number of the interface by which it leaves.
    pub interface: u32,
    /// Its source address.
    pub source: IpAddr,
    /// Its destination address, and the port with UDP.
    pub destination: (IpAddr, u16),
    /// Its TTL.
    pub ttl: u8,
    /// True if the packet has the Router Alert option.
    pub router_alert: bool,
    /// Payload, without headers.
    pub payload: &'b [u8],
}

/// Headers in front of the payload that the kernel returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Headers {
    None,
    V4,
    V6,
}

/// A socket that does not wait.
#[derive(Debug)]
pub struct IpSocket {
    fd: OwnedFd,
    version: IpVersion,
    headers: Headers,
    /// The protocol whose packets are taken, where packets of others come as well.
    protocol: u8,
    buffer: Vec<u8>,
    /// The kernel's last count of messages for which there was no room.
    dropped: u32,
}

impl IpSocket {
    /// Opens a raw socket for a protocol over IP. If it `intercepts`, packets of this protocol that have the Router Alert option
    /// and are for other hosts come here and are not forwarded; with IPv6 that needs [`IpSocket::interceptor_v6`].
    ///
    /// # Errors
    /// When the process may not.
    pub fn raw(version: IpVersion, protocol: u8, intercepts: bool) -> io::Result<Self> {
        let number = NonZeroU32::new(protocol.into()).map(Protocol::from_raw);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family(version), SocketType::RAW, flags, number)?;
        let headers = if version == IpVersion::V4 { Headers::V4 } else { Headers::None };
        let this = Self { fd, version, headers, protocol, buffer: vec![0; LONGEST], dropped: 0 };
        this.prepare()?;
        if intercepts && version == IpVersion::V4 {
            IP_ROUTER_ALERT.set(&this.fd, 1)?;
        }
        Ok(this)
    }

    /// Opens a socket that only receives: packets of IPv6 of this protocol that have the Router Alert option with RSVP's value and are for other
    /// hosts. They are not forwarded.
    ///
    /// # Errors
    /// When the process may not.
    pub fn interceptor_v6(protocol: u8) -> io::Result<Self> {
        let number = NonZeroU32::new(libc::IPPROTO_RAW as u32).map(Protocol::from_raw);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::INET6, SocketType::RAW, flags, number)?;
        let (version, headers) = (IpVersion::V6, Headers::V6);
        let this = Self { fd, version, headers, protocol, buffer: vec![0; LONGEST], dropped: 0 };
        this.prepare()?;
        // Before the socket is in the list of those that intercept.
        IPV6_ROUTER_ALERT_ISOLATE.set(&this.fd, 1)?;
        IPV6_ROUTER_ALERT.set(&this.fd, 1)?;
        Ok(this)
    }

    /// Opens a raw socket for a protocol over IP that only sends.
    ///
    /// # Errors
    /// When the process may not.
    pub fn raw_sender(version: IpVersion, protocol: u8) -> io::Result<Self> {
        Self::raw(version, protocol, false)?.only_sending()
    }

    /// Opens a UDP socket that only sends, from a port that the kernel chooses.
    ///
    /// # Errors
    /// When the process may not.
    pub fn udp_sender(version: IpVersion) -> io::Result<Self> {
        Self::udp(version, 0)?.only_sending()
    }

    /// Lets the kernel drop everything that arrives.
    fn only_sending(mut self) -> io::Result<Self> {
        let mut instruction = libc::sock_filter { code: RETURN_CONSTANT, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut instruction };
        let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
        let (level, name) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
        let fd = self.fd.as_raw_fd();
        // SAFETY: the kernel reads `program`, and the one instruction that it points to; both live until the call returns.
        let code = unsafe { libc::setsockopt(fd, level, name, std::ptr::from_ref(&program).cast(), length) };
        check(code.into())?;
        self.buffer = Vec::new();
        Ok(self)
    }

    /// Opens a UDP socket at a port of all addresses.
    ///
    /// # Errors
    /// When the port is in use, or the process may not.
    pub fn udp(version: IpVersion, port: u16) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family(version), SocketType::DGRAM, flags, None)?;
        let this = Self {
            fd,
            version,
            headers: Headers::None,
            protocol: libc::IPPROTO_UDP as u8,
            buffer: vec![0; LONGEST],
            dropped: 0,
        };
        this.prepare()?;
        set_socket_reuseaddr(&this.fd, false)?;
        let any: SocketAddr = match version {
            IpVersion::V4 => (Ipv4Addr::UNSPECIFIED, port).into(),
            IpVersion::V6 => {
                IPV6_V6ONLY.set(&this.fd, 1)?;
                (Ipv6Addr::UNSPECIFIED, port).into()
            }
        };
        bind(&this.fd, &any)?;
        Ok(this)
    }

    fn prepare(&self) -> io::Result<()> {
        // Without CAP_NET_ADMIN the buffer is as large as the system lets it be.
        if SO_RCVBUFFORCE.set(&self.fd, RECEIVE_BUFFER).is_err() {
            SO_RCVBUF.set(&self.fd, RECEIVE_BUFFER)?;
        }
        SO_RXQ_OVFL.set(&self.fd, 1)?;
        match self.version {
            IpVersion::V4 => {
                IP_PKTINFO.set(&self.fd, 1)?;
                IP_TRANSPARENT.set(&self.fd, 1)?;
                IP_MTU_DISCOVER.set(&self.fd, libc::IP_PMTUDISC_DONT)
            }
            IpVersion::V6 => {
                IPV6_RECVPKTINFO.set(&self.fd, 1)?;
                IPV6_RECVHOPLIMIT.set(&self.fd, 1)?;
                IPV6_TRANSPARENT.set(&self.fd, 1)
            }
        }
    }

    /// Returns the room for messages that wait to be read, and the requested room; bytes, as the kernel counts them. Without
    /// `CAP_NET_ADMIN` the system may give less.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn receive_buffer(&self) -> io::Result<(usize, usize)> {
        // The kernel doubles the requested value, and returns the double.
        let given = SO_RCVBUF.get(&self.fd)?;
        Ok((usize::try_from(given).unwrap_or_default() / 2, RECEIVE_BUFFER as usize))
    }

    /// Returns the number of messages that found no room, as known with the last message that was received. The number begins at 0 again after 32 bits.
    pub const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the queue is full; another one when it cannot leave.
    pub fn send(&self, message: &OutgoingPacket<'_>) -> io::Result<()> {
        let (destination, port) = message.destination;
        let mut control = Vec::with_capacity(128);
        let ttl = i32::from(message.ttl).to_ne_bytes();
        let index = message.interface.to_ne_bytes();
        let name = match (self.version, message.source, destination) {
            (IpVersion::V4, IpAddr::V4(source), IpAddr::V4(to)) => {
                let info = [&index[..], &source.octets(), &[0; 4]].concat();
                push_control(&mut control, (libc::IPPROTO_IP, libc::IP_PKTINFO), &info);
                push_control(&mut control, (libc::IPPROTO_IP, libc::IP_TTL), &ttl);
                if message.router_alert {
                    push_control(&mut control, (libc::IPPROTO_IP, IP_RETOPTS), &ROUTER_ALERT_V4);
                }
                Name::V4(sockaddr_v4(to, port))
            }
            (IpVersion::V6, IpAddr::V6(source), IpAddr::V6(to)) => {
                let info = [&source.octets()[..], &index].concat();
                push_control(&mut control, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), &info);
                push_control(&mut control, (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT), &ttl);
                if message.router_alert {
                    push_control(&mut control, (libc::IPPROTO_IPV6, IPV6_HOPOPTS), &ROUTER_ALERT_V6);
                }
                let scope =
                    if to.is_unicast_link_local() || to.is_multicast() { message.interface } else { 0 };
                Name::V6(sockaddr_v6(SocketAddrV6::new(to, port, 0, scope)))
            }
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "an address of another version of IP",
                ));
            }
        };
        send_message(&self.fd, &name, message.payload, &mut control)?;
        Ok(())
    }

    /// Receives a message, without waiting; `None` when there is none. Anything but a whole packet of the protocol is skipped.
    ///
    /// # Errors
    /// When the socket has an error, such as one that a message of ours has caused.
    pub fn receive(&mut self) -> io::Result<Option<IpMessage<'_>>> {
        loop {
            // SAFETY: all-zero bits are a valid sockaddr_storage.
            let mut name: libc::sockaddr_storage = unsafe { zeroed() };
            let mut control = [0_u64; 32];
            let mut part =
                libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
            // SAFETY: all-zero bits are a valid msghdr: null pointers with lengths of zero.
            let mut header: libc::msghdr = unsafe { zeroed() };
            header.msg_name = (&raw mut name).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control) as _;
            // SAFETY: name, buffer and control messages are at the pointers of the header, of the lengths given, and are not used otherwise during
            // the call.
            let length =
                check(
                    unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) } as i64
                );
            let length = match length {
                Ok(length) => length as usize,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let control: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let mut found = Found::default();
            each_control(
                &control[..(header.msg_controllen as usize).min(control.len())],
                |level, kind, data| {
                    found.note(level, kind, data);
                },
            );
            self.dropped = found.dropped.unwrap_or(self.dropped);
            if let Some((payload, packet)) = self.packet(length, &name, &found) {
                let payload = &self.buffer[payload];
                return Ok(Some(IpMessage { payload, ..packet }));
            }
        }
    }

    /// Returns the place of the payload, and the rest.
    fn packet(
        &self,
        length: usize,
        name: &libc::sockaddr_storage,
        found: &Found,
    ) -> Option<(std::ops::Range<usize>, IpMessage<'static>)> {
        let bytes = &self.buffer[..length];
        let (start, source, destination, ttl) = match self.headers {
            Headers::V4 => {
                let header: &[u8; 20] = bytes.first_chunk()?;
                let start = usize::from(header[0] & 0xf) * 4;
                let address = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<4>()?));
                (start, address(12)?, address(16)?, Some(header[8]))
            }
            Headers::V6 => {
                let header: &[u8; HEADER_V6] = bytes.first_chunk()?;
                let address = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<16>()?));
                let (next, start) = skip_options(bytes, header[6])?;
                (next == self.protocol).then_some(())?;
                (start, address(8)?, address(24)?, Some(header[7]))
            }
            Headers::None => (0, address_of(name)?, found.destination?, found.ttl),
        };
        (start <= length).then_some(())?;
        let interface = found.interface?;
        Some((start..length, IpMessage { interface, source, destination, ttl, payload: &[] }))
    }
}

impl AsFd for IpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Passes over the hop-by-hop and destination options of IPv6. Returns the next header, and its offset.
fn skip_options(bytes: &[u8], mut next: u8) -> Option<(u8, usize)> {
    let mut at = HEADER_V6;
    while [0, 60].contains(&next) {
        let [following, units] = *bytes.get(at..)?.first_chunk()?;
        next = following;
        at += 8 + usize::from(units) * 8;
    }
    Some((next, at))
}

/// The address of a sender.
fn address_of(name: &libc::sockaddr_storage) -> Option<IpAddr> {
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: by the kernel's family it is an address of IPv4, and the storage has room and alignment for one.
            let name = unsafe { &*std::ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: by the kernel's family it is an address of IPv6, and the storage has room and alignment for one.
            let name = unsafe { &*std::ptr::from_ref(name).cast::<libc::sockaddr_in6>() };
            Some(Ipv6Addr::from(name.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Control messages of a packet.
#[derive(Default)]
struct Found {
    interface: Option<u32>,
    destination: Option<IpAddr>,
    ttl: Option<u8>,
    dropped: Option<u32>,
}

impl Found {
    fn note(&mut self, level: i32, kind: i32, data: &[u8]) {
        let word = |at: usize| data.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied();
        match (level, kind) {
            // The interface, a local address, the destination in the header.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                self.interface = word(0).map(u32::from_ne_bytes);
                self.destination = word(8).map(IpAddr::from);
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.destination = data.first_chunk::<16>().copied().map(IpAddr::from);
                self.interface = word(16).map(u32::from_ne_bytes);
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => self.dropped = word(0).map(u32::from_ne_bytes),
            (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                self.ttl = word(0).map(|bytes| i32::from_ne_bytes(bytes) as u8);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_are_read_as_they_were_written() {
        let mut control = Vec::new();
        let info = [&7_u32.to_ne_bytes()[..], &[10, 0, 0, 1], &[10, 0, 0, 2]].concat();
        push_control(&mut control, (libc::IPPROTO_IP, libc::IP_PKTINFO), &info);
        push_control(&mut control, (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT), &64_i32.to_ne_bytes());
        let mut found = Found::default();
        each_control(&control, |level, kind, data| found.note(level, kind, data));
        assert_eq!((found.interface, found.ttl), (Some(7), Some(64)));
        assert_eq!(found.destination, Some([10, 0, 0, 2].into()));
    }

    #[test]
    fn options_of_ipv6_are_passed_over() {
        let mut packet = vec![0; HEADER_V6];
        packet.extend([46, 0, 5, 2, 0, 1, 1, 0, 0x10]);
        assert_eq!(skip_options(&packet, 0), Some((46, 48)));
        assert_eq!(skip_options(&packet, 46), Some((46, 40)));
        assert_eq!(skip_options(&packet[..41], 0), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn a_datagram_has_its_interface_and_both_addresses() {
        let Ok(mut socket) = IpSocket::udp(IpVersion::V4, 0) else { return };
        let port = match rustix::net::getsockname(&socket).unwrap().try_into().unwrap() {
            SocketAddr::V4(address) => address.port(),
            SocketAddr::V6(_) => unreachable!("the socket has IPv4"),
        };
        let (from, to) = (IpAddr::from([127, 0, 0, 9]), IpAddr::from([127, 0, 0, 1]));
        let message = OutgoingPacket {
            interface: 1,
            source: from,
            destination: (to, port),
            ttl: 9,
            router_alert: false,
            payload: b"resv",
        };
        socket.send(&message).unwrap();
        let received = socket.receive().unwrap().unwrap();
        let (source, destination) = (received.source, received.destination);
        assert_eq!((source, destination, received.payload), (from, to, &b"resv"[..]));
        assert_eq!(received.interface, 1);
        assert_eq!(socket.receive().unwrap(), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn a_sender_receives_nothing() {
        let Ok(sender) = IpSocket::udp_sender(IpVersion::V4) else { return };
        let SocketAddr::V4(own) = rustix::net::getsockname(&sender).unwrap().try_into().unwrap() else {
            unreachable!("the socket has IPv4")
        };
        let to = IpAddr::from([127, 0, 0, 1]);
        let message = OutgoingPacket {
            interface: 1,
            source: to,
            destination: (to, own.port()),
            ttl: 9,
            router_alert: false,
            payload: b"path",
        };
        sender.send(&message).unwrap();
        let waits = rustix::io::ioctl_fionread(&sender).unwrap();
        assert_eq!(waits, 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn messages_without_room_are_counted() {
        let Ok(mut socket) = IpSocket::udp(IpVersion::V4, 0) else { return };
        SO_RCVBUF.set(&socket, 0).unwrap();
        let (given, wanted) = socket.receive_buffer().unwrap();
        assert!(given < wanted, "{given} of {wanted}");
        let port = match rustix::net::getsockname(&socket).unwrap().try_into().unwrap() {
            SocketAddr::V4(address) => address.port(),
            SocketAddr::V6(_) => unreachable!("the socket has IPv4"),
        };
        let to = IpAddr::from([127, 0, 0, 1]);
        let message = |payload| OutgoingPacket {
            interface: 1,
            source: to,
            destination: (to, port),
            ttl: 9,
            router_alert: false,
            payload,
        };
        (0..100).for_each(|_| socket.send(&message(b"path")).unwrap());
        let mut received = 0;
        while socket.receive().unwrap().is_some() {
            received += 1;
        }
        assert!((1..100).contains(&received), "{received}");
        socket.send(&message(b"resv")).unwrap();
        socket.receive().unwrap().unwrap();
        assert_eq!(socket.dropped(), 100 - received);
    }
}
