//! The system's numbers of errors that have lost them.

use rustix::io::Errno;
use std::io;

/// Returns the system's number of an error; `None` if nothing is known about it.
pub fn errno_of(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let number = match error.kind() {
            io::ErrorKind::WouldBlock => Errno::AGAIN,
            io::ErrorKind::InvalidInput => Errno::INVAL,
            io::ErrorKind::ConnectionRefused => Errno::CONNREFUSED,
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Errno::CONNRESET,
            io::ErrorKind::ConnectionAborted => Errno::CONNABORTED,
            io::ErrorKind::NotConnected => Errno::NOTCONN,
            io::ErrorKind::AddrInUse => Errno::ADDRINUSE,
            io::ErrorKind::AddrNotAvailable => Errno::ADDRNOTAVAIL,
            io::ErrorKind::HostUnreachable => Errno::HOSTUNREACH,
            io::ErrorKind::NetworkUnreachable => Errno::NETUNREACH,
            io::ErrorKind::BrokenPipe => Errno::PIPE,
            io::ErrorKind::TimedOut => Errno::TIMEDOUT,
            io::ErrorKind::Interrupted => Errno::INTR,
            // A capability is missing, or there is no such interface, as packet(7) has it.
            io::ErrorKind::PermissionDenied => Errno::PERM,
            io::ErrorKind::NotFound => Errno::NODEV,
            io::ErrorKind::InvalidData => Errno::PROTO,
            io::ErrorKind::OutOfMemory => Errno::NOMEM,
            _ => return None,
        };
        Some(number.raw_os_error())
    })
}
