//! The errors that a datagram socket has queued (`IP_RECVERR` of ip(7), `IPV6_RECVERR` of ipv6(7)).
//!
//! Without that option the kernel drops a datagram that the interface's queue has no room for, and reports it as sent. With it the
//! call fails with `ENOBUFS`. But then every ICMP message about the socket is an error, also those that a socket without it does not see,
//! and each stays in a queue, which makes the descriptor ready, until it is taken.
//!
//! ```
//! use cutline_sys::error_queue::{enable, take};
//!
//! let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
//! assert!(enable(&socket)?);
//! assert!(take(&socket)?.is_none());
//! assert!(!enable(&socket)?, "it was set before");
//! # Ok::<(), std::io::Error>(())
//! ```
#![expect(unsafe_code, reason = "recvmsg, which no safe crate offers with the control messages of errors")]

use crate::datagrams::{CONTROL, Control, each_control};
use crate::sockopt::{IP_RECVERR, IPV6_RECVERR, SO_DOMAIN, check};
use rustix::fd::{AsFd, AsRawFd};
use std::io;
use std::mem::zeroed;

/// An error that a socket has queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedError {
    /// Its number, as in `errno`.
    pub errno: i32,
    /// Origin of the error.
    pub origin: ErrorOrigin,
}

/// Origin of a queued error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// A message of ICMP.
    Icmp {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
    },
    /// A message of ICMP for IPv6.
    Icmp6 {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
    },
    /// This machine.
    Other,
}

/// Lets a socket of IPv4 or IPv6 queue errors. Returns false if it did before.
///
/// # Errors
/// When the kernel refuses it.
pub fn enable(socket: impl AsFd) -> io::Result<bool> {
    let is_v6 = SO_DOMAIN.get(&socket)? == libc::AF_INET6;
    if IP_RECVERR.get(&socket)? != 0 || is_v6 && IPV6_RECVERR.get(&socket)? != 0 {
        return Ok(false);
    }
    if is_v6 {
        IPV6_RECVERR.set(&socket, 1)?;
    }
    IP_RECVERR.set(&socket, 1)?;
    Ok(true)
}

/// Takes the oldest error from a socket's queue, without waiting; `None` if it is empty.
///
/// # Errors
/// When the file is no socket.
pub fn take(socket: impl AsFd) -> io::Result<Option<QueuedError>> {
    let mut control = Control([0; CONTROL]);
    // SAFETY: all-zero bits are a valid msghdr: null pointers with lengths of zero.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the message has no parts, and a control buffer of the length given, which lives until the call is over.
    let code = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) };
    match check(code as i64) {
        Ok(_) => {
            let length = (message.msg_controllen as usize).min(CONTROL);
            Ok(Some(read(&control.0[..length])))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a `struct sock_extended_err` (linux/errqueue.h). An entry without one, such as the time of a departure, is of this machine.
fn read(control: &[u8]) -> QueuedError {
    let mut found = QueuedError { errno: 0, origin: ErrorOrigin::Other };
    each_control(control, |level, name, data| {
        let is_error = matches!(
            (level, name),
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        );
        if let Some([a, b, c, d, origin, kind, code, _]) = data.first_chunk().filter(|_| is_error) {
            let (kind, code) = (*kind, *code);
            found.errno = i32::from_ne_bytes([*a, *b, *c, *d]);
            found.origin = match *origin {
                libc::SO_EE_ORIGIN_ICMP => ErrorOrigin::Icmp { kind, code },
                libc::SO_EE_ORIGIN_ICMP6 => ErrorOrigin::Icmp6 { kind, code },
                _ => ErrorOrigin::Other,
            };
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn an_error_says_which_message_it_comes_from() {
        let origins = [
            ("127.0.0.1:0", ErrorOrigin::Icmp { kind: 3, code: 3 }),
            ("[::1]:0", ErrorOrigin::Icmp6 { kind: 1, code: 4 }),
        ];
        for (address, origin) in origins {
            let nobody = UdpSocket::bind(address).unwrap().local_addr().unwrap();
            let socket = UdpSocket::bind(address).unwrap();
            socket.connect(nobody).unwrap();
            assert!(enable(&socket).unwrap());
            socket.send(b"anybody there?").unwrap();
            let errno = libc::ECONNREFUSED;
            assert_eq!(take(&socket).unwrap(), Some(QueuedError { errno, origin }));
            assert_eq!(take(&socket).unwrap(), None);
        }
    }

    #[test]
    fn malformed_control_messages_are_no_errors() {
        let nothing = QueuedError { errno: 0, origin: ErrorOrigin::Other };
        for control in [&[][..], &[0xff; 40], &[0; 40]] {
            assert_eq!(read(control), nothing);
        }
    }
}
