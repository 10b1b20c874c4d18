//! Closing a socket whose descriptor is still in use.
#![expect(unsafe_code, reason = "dup3 onto a borrowed descriptor, for which no safe crate has a call")]

use crate::sockopt::check;
use rustix::fd::{AsFd, AsRawFd};
use rustix::net::{SocketFlags, socket_with, sockopt};
use std::io;

/// Closes a socket at once, and leaves a new one of the same kind in the place of its descriptor: not bound and not connected, so that
/// it receives nothing, and its address is free for others. A thread that still uses the descriptor gets the errors of such a socket.
///
/// # Errors
/// When the system has no room for another descriptor. Then the socket is as before.
pub fn vacate(socket: impl AsFd) -> io::Result<()> {
    let old = socket.as_fd();
    let (family, kind) = (sockopt::socket_domain(old)?, sockopt::socket_type(old)?);
    let new = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    // SAFETY: both descriptors are open during the call, since one is borrowed and the other one owned. The number of the borrowed one
    // stays open and with its owner; the kernel exchanges the object behind it, which is still a socket of the same kind.
    check(i64::from(unsafe { libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC) })).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};

    /// Binds an address that is free. A child process that another test has started has copies of this process's descriptors until it
    /// executes its program.
    fn bound<T>(mut bind: impl FnMut() -> io::Result<T>) -> T {
        for _ in 0..6000 {
            match bind() {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    std::thread::park_timeout(std::time::Duration::from_millis(10));
                }
                outcome => return outcome.unwrap(),
            }
        }
        panic!("the address is in use");
    }

    #[test]
    fn the_address_of_a_socket_that_is_closed_under_its_descriptor_is_free() {
        for host in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let host: std::net::IpAddr = host;
            let socket = UdpSocket::bind((host, 0)).unwrap();
            let address = socket.local_addr().unwrap();
            assert!(UdpSocket::bind(address).is_err());
            vacate(&socket).unwrap();
            let successor = bound(|| UdpSocket::bind(address));
            successor.send_to(b"own", address).unwrap();
            assert_eq!(socket.recv(&mut [0; 10]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            assert_eq!(successor.recv(&mut [0; 10]).unwrap(), 3);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        vacate(&listener).unwrap();
        bound(|| TcpListener::bind(address));
    }
}
