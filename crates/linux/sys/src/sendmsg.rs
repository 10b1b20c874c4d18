//! Sending a datagram with control messages, such as its source address.
#![expect(unsafe_code, reason = "sendmsg with control messages, which rustix does not offer")]

use crate::sockopt::{SocketOption, check};
use rustix::fd::{AsFd, AsRawFd as _};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV6};

pub(crate) const IP_PKTINFO: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IP, libc::IP_PKTINFO);
pub(crate) const IPV6_RECVPKTINFO: SocketOption<i32> =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO);

/// Address of a destination, as the kernel reads it.
pub(crate) enum Name {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl Name {
    /// Returns the address and the length.
    pub(crate) const fn place(&self) -> (*const libc::c_void, usize) {
        match self {
            Self::V4(name) => (std::ptr::from_ref(name).cast(), size_of::<libc::sockaddr_in>()),
            Self::V6(name) => (std::ptr::from_ref(name).cast(), size_of::<libc::sockaddr_in6>()),
        }
    }
}

pub(crate) fn sockaddr_v4(address: Ipv4Addr, port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    }
}

pub(crate) fn sockaddr_v6(address: SocketAddrV6) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: address.port().to_be(),
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
        sin6_scope_id: address.scope_id(),
    }
}

/// Adds a control message (cmsg(3)).
pub(crate) fn push_control(control: &mut Vec<u8>, (level, kind): (i32, i32), data: &[u8]) {
    let length = size_of::<libc::cmsghdr>() + data.len();
    control.extend(length.to_ne_bytes());
    control.extend(level.to_ne_bytes());
    control.extend(kind.to_ne_bytes());
    control.extend(data);
    control.resize(control.len().next_multiple_of(size_of::<usize>()), 0);
}

/// Sends a datagram with these control messages. Returns the number of bytes sent.
pub(crate) fn send_message(
    socket: impl AsFd,
    to: &Name,
    datagram: &[u8],
    control: &mut [u8],
) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
    // SAFETY: all-zero bits are a valid msghdr: null pointers with lengths of zero.
    let mut header: libc::msghdr = unsafe { zeroed() };
    let (at, length) = to.place();
    header.msg_name = at.cast_mut();
    header.msg_namelen = length as libc::socklen_t;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = control.len() as _;
    // SAFETY: name, datagram and control messages are where the header says and live until the call returns; the kernel only reads them.
    let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    Ok(check(sent as i64)? as usize)
}
