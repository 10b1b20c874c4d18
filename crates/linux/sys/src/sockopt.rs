//! Socket options: one type to get and set any of them, and those that `rustix` does not offer.
//!
//! ```
//! use cutline_sys::sockopt::TCP_NOTSENT_LOWAT;
//!
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! TCP_NOTSENT_LOWAT.set(&listener, 16_384)?;
//! assert_eq!(TCP_NOTSENT_LOWAT.get(&listener)?, 16_384);
//! # Ok::<(), std::io::Error>(())
//! ```
#![expect(unsafe_code, reason = "getsockopt and setsockopt, which no safe crate wraps for any option")]

use crate::plain::Plain;
use rustix::fd::{AsFd, AsRawFd};
use std::io;
use std::marker::PhantomData;
use std::mem::{size_of, zeroed};
use std::ptr::{from_mut, from_ref};

/// A socket option whose value is a `T`.
#[derive(Clone, Copy, Debug)]
pub struct SocketOption<T> {
    level: i32,
    name: i32,
    value: PhantomData<fn(T) -> T>,
}

/// The largest payload of a TCP segment, 88..32,767 B; set before connecting or listening (tcp(7)).
pub const TCP_MAXSEG: SocketOption<u32> = SocketOption::new(libc::IPPROTO_TCP, libc::TCP_MAXSEG);

/// A TCP socket accepts more data only while less than this waits in it unsent, bytes (tcp(7)).
pub const TCP_NOTSENT_LOWAT: SocketOption<u32> =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);

/// The rate that a TCP socket is paced to at most, bytes/s. UDP sockets accept it and ignore it.
pub const SO_MAX_PACING_RATE: SocketOption<u64> =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);

/// The traffic class octet of IPv4 packets (ip(7)).
pub const IP_TOS: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IP, libc::IP_TOS);

/// The traffic class octet of IPv6 packets (ipv6(7)).
pub const IPV6_TCLASS: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_TCLASS);

/// The priority of packets in the host's own queues (socket(7)). Setting [`IP_TOS`] changes it.
pub const SO_PRIORITY: SocketOption<i32> = SocketOption::new(libc::SOL_SOCKET, libc::SO_PRIORITY);

/// The address family of a socket; it can only be read (socket(7)).
pub const SO_DOMAIN: SocketOption<i32> = SocketOption::new(libc::SOL_SOCKET, libc::SO_DOMAIN);

/// Option that adds the kernel's time of receipt to each datagram; 1 or 0 (socket(7)).
pub const SO_TIMESTAMPNS: SocketOption<i32> = SocketOption::new(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);

/// Option that queues the errors of a socket, and makes a full queue of the interface an error; 1 or 0
/// (ip(7)). A socket of IPv6 has this option for IPv4 as mapped addresses.
pub const IP_RECVERR: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IP, libc::IP_RECVERR);

/// The same for IPv6 (ipv6(7)).
pub const IPV6_RECVERR: SocketOption<i32> = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVERR);

/// Option that adds a text to errors of netlink requests; 1 or 0 (netlink(7)).
pub const NETLINK_EXT_ACK: SocketOption<i32> = SocketOption::new(libc::SOL_NETLINK, libc::NETLINK_EXT_ACK);

/// Option that leaves the request's body out of answers to netlink requests; 1 or 0 (netlink(7)).
pub const NETLINK_CAP_ACK: SocketOption<i32> = SocketOption::new(libc::SOL_NETLINK, libc::NETLINK_CAP_ACK);

/// Option that adds the number of datagrams that the socket has dropped to each datagram; 1 or 0 (socket(7)).
pub const SO_RXQ_OVFL: SocketOption<i32> = SocketOption::new(libc::SOL_SOCKET, libc::SO_RXQ_OVFL);

/// Process, user and group of the other end of a local socket; it can only be read (unix(7)).
pub(crate) const SO_PEERCRED: SocketOption<libc::ucred> =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_PEERCRED);

/// The room of a socket's receive buffer, bytes, at most the system's limit. The kernel returns the double (socket(7)).
pub(crate) const SO_RCVBUF: SocketOption<i32> = SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVBUF);

/// The same beyond the system's limit, with `CAP_NET_ADMIN` (socket(7)).
pub(crate) const SO_RCVBUFFORCE: SocketOption<i32> =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);

impl<T: Plain> SocketOption<T> {
    /// `T` must be the type that the kernel's documentation gives for this option: of an option whose value has an address
    /// in it, [`SocketOption::set`] would not be safe.
    pub(crate) const fn new(level: i32, name: i32) -> Self {
        Self { level, name, value: PhantomData }
    }

    /// Sets the option.
    ///
    /// # Errors
    /// When the kernel refuses the value, or has no such option for this socket.
    pub fn set(self, socket: impl AsFd, value: T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: the kernel reads `length` bytes from `value`, which are there and initialised since `T` has no padding.
        let code =
            unsafe { libc::setsockopt(socket, self.level, self.name, from_ref(&value).cast(), length) };
        check(code.into()).map(drop)
    }

    /// Returns the option's value.
    ///
    /// # Errors
    /// When the kernel has no such option for this socket.
    pub fn get(self, socket: impl AsFd) -> io::Result<T> {
        // SAFETY: any bits are a valid `T`.
        let mut value: T = unsafe { zeroed() };
        // SAFETY: a `T` may be written as bytes, as many as its size.
        unsafe { self.get_raw(&socket, from_mut(&mut value).cast(), size_of::<T>()) }.map(|_| value)
    }

    /// Returns the first bytes of the option's value, as many as the kernel and `buffer` have.
    pub(crate) fn get_bytes(self, socket: impl AsFd, buffer: &mut [u8]) -> io::Result<&[u8]> {
        // SAFETY: the buffer may be written, as many bytes as it has.
        let length = unsafe { self.get_raw(&socket, buffer.as_mut_ptr(), buffer.len()) }?;
        Ok(&buffer[..length])
    }

    /// Lets the kernel write the value; returns how many bytes it has.
    ///
    /// # Safety
    /// `room` bytes at `to` must be valid for writing.
    unsafe fn get_raw(self, socket: &impl AsFd, to: *mut u8, room: usize) -> io::Result<usize> {
        let mut length = room as libc::socklen_t;
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: the kernel writes at most `length` bytes, which the caller says are there, and says how many.
        let code = unsafe { libc::getsockopt(socket, self.level, self.name, to.cast(), &raw mut length) };
        check(code.into())?;
        Ok(length as usize)
    }
}

/// Turns the result of a system call, negative for an error, into a [`Result`].
pub(crate) fn check(code: i64) -> io::Result<i64> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn an_option_has_the_value_that_was_set() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(SO_RXQ_OVFL.get(&socket).unwrap(), 0);
        SO_RXQ_OVFL.set(&socket, 1).unwrap();
        assert_eq!(SO_RXQ_OVFL.get(&socket).unwrap(), 1);
        SO_MAX_PACING_RATE.set(&socket, 123_456).unwrap();
        assert_eq!(SO_MAX_PACING_RATE.get(&socket).unwrap(), 123_456);
        let mut first = [0xff; 3];
        assert_eq!(SO_RXQ_OVFL.get_bytes(&socket, &mut first).unwrap(), &1_i32.to_ne_bytes()[..3]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn options_that_the_kernel_refuses_are_errors() {
        let (udp, tcp) = (UdpSocket::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        assert!(TCP_NOTSENT_LOWAT.set(&udp, 1).is_err() && TCP_NOTSENT_LOWAT.get(&udp).is_err());
        assert_eq!(TCP_MAXSEG.set(&tcp, 1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
