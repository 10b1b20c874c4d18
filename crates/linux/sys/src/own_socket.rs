//! Another descriptor of a socket that a library of this process keeps for itself.
#![expect(unsafe_code, reason = "calls with a number of a descriptor that this code does not own")]

use crate::datagrams::{NAME, address};
use crate::sockopt::check;
use rustix::fd::{FromRawFd as _, OwnedFd, RawFd};
use rustix::net::{SocketType, sockopt};
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Returns another descriptor of the datagram socket of this process that is bound to `local`, for calls that the library of the
/// socket does not offer, such as connecting it.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] when there is none; another one when the descriptors of the process cannot be listed (`/proc`).
pub fn datagram_socket(local: SocketAddr) -> io::Result<UdpSocket> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A number may come to stand for another file at any time, so the copy is examined again.
        if name_of(number) == Some(local)
            && let Ok(copy) = duplicate(number)
            && sockopt::socket_type(&copy).is_ok_and(|kind| kind == SocketType::DGRAM)
            && let socket = UdpSocket::from(copy)
            && socket.local_addr().is_ok_and(|address| address == local)
        {
            return Ok(socket);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("no datagram socket of this process is at {local}")))
}

/// Returns the local address of an internet socket; `None` for everything else.
fn name_of(number: RawFd) -> Option<SocketAddr> {
    let mut name = [0; NAME];
    let mut length = NAME as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `name`, and takes any number.
    let code = unsafe { libc::getsockname(number, name.as_mut_ptr().cast(), &raw mut length) };
    check(code.into()).ok()?;
    address(&name)
}

fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the kernel takes any number, and touches no memory of this process.
    let copy = check(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) }.into())?;
    // SAFETY: the kernel has made this descriptor just now, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as RawFd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive_queue;

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn a_socket_is_found_and_connected_under_its_owner() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(owned) = UdpSocket::bind(host) else { continue };
            owned.set_nonblocking(true).unwrap();
            let [friend, stranger] = [(); 2].map(|()| UdpSocket::bind(host).unwrap());
            let at = owned.local_addr().unwrap();
            let found = datagram_socket(at).unwrap();
            found.connect(friend.local_addr().unwrap()).unwrap();
            stranger.send_to(b"stranger", at).unwrap();
            assert_eq!(receive_queue(&owned).unwrap(), 0);
            friend.send_to(b"friend", at).unwrap();
            assert_eq!(receive_queue(&owned).unwrap(), 6);
            let mut buffer = [0; 10];
            assert_eq!(owned.recv_from(&mut buffer).unwrap(), (6, friend.local_addr().unwrap()));
            assert_eq!(owned.recv(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            drop((owned, found));
            assert_eq!(datagram_socket(at).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a socket, which Miri has not")]
    fn a_listener_at_the_address_is_no_datagram_socket() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let error = datagram_socket(listener.local_addr().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
