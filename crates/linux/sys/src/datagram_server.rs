//! A datagram socket that many peers send to, whose answers leave from the address of the question.
//!
//! Each datagram comes with its destination, and the answer has that one as its source ([`local_address`]).
#![expect(unsafe_code, reason = "recvmsg with control messages that no safe crate wraps")]

use crate::datagrams::{NAME, address, each_control};
use crate::local_address::{self, LocalAddress, send_from};
use crate::sockopt::{SO_RCVBUF, SO_RCVBUFFORCE, check};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, UdpSocket};

/// A datagram socket that is not connected. Its calls do not wait.
#[derive(Debug)]
pub struct DatagramServer(UdpSocket);

/// The two ends of an exchange of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ends {
    /// The peer.
    pub peer: SocketAddr,
    /// The address of this host that the peer has addressed; `None` where the kernel does not report it.
    pub local: Option<LocalAddress>,
}

impl DatagramServer {
    /// Receives at an address.
    ///
    /// # Errors
    /// When the address is in use or is none of this host.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        local_address::ask(&socket)?;
        Ok(Self(socket))
    }

    /// Returns the address of this socket.
    ///
    /// # Errors
    /// As [`UdpSocket::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Sets the room for datagrams that wait to be received, bytes. Without `CAP_NET_ADMIN` the system may give less.
    ///
    /// # Errors
    /// When the kernel refuses the value.
    pub fn set_receive_buffer(&self, bytes: i32) -> io::Result<()> {
        SO_RCVBUFFORCE.set(&self.0, bytes).or_else(|_| SO_RCVBUF.set(&self.0, bytes))
    }

    /// Receives a datagram. Bytes that do not fit in the buffer are lost. Returns its length in the buffer, and its two ends.
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
        // SAFETY: name, buffer and control messages are at the pointers of the header, of the lengths given, and are not used otherwise during the
        // call.
        let length =
            check(unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) } as i64)?;
        let peer = address(&name).ok_or(io::ErrorKind::InvalidData)?;
        let control: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut local = None;
        each_control(&control[..(header.msg_controllen as usize).min(control.len())], |level, kind, data| {
            local = LocalAddress::read(level, kind, data).or(local);
        });
        Ok((length as usize, Ends { peer, local }))
    }

    /// Sends a datagram to a peer, from the address that the peer has addressed.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the socket has no room; another one when the datagram cannot leave.
    pub fn answer(&self, ends: &Ends, bytes: &[u8]) -> io::Result<()> {
        send_from(&self.0, bytes, ends.peer, ends.local).map(drop)
    }
}

impl AsFd for DatagramServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::time::Duration;

    /// Returns whether a client with a connected socket gets an answer of a server at a wildcard address.
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
        assert_eq!(ends.local.map(|local| local.ip.to_canonical()), Some(asked));
        server.answer(&ends, b"answer").unwrap();
        client.recv(&mut buffer).is_ok_and(|length| &buffer[..length] == b"answer")
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn the_addressed_address_answers() {
        assert!(is_answered("0.0.0.0:0", "127.0.0.1"));
        assert!(is_answered("0.0.0.0:0", "127.0.0.77"));
        assert!(is_answered("127.0.0.78:0", "127.0.0.78"));
        if UdpSocket::bind("[::1]:0").is_ok() {
            assert!(is_answered("[::]:0", "::1"));
            // IPv4 over a socket of both.
            assert!(is_answered("[::]:0", "127.0.0.79"));
        }
    }
}
