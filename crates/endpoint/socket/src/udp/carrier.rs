//! Sockets that carry datagrams: those of UDP, and those of frames below IP.
//!
//! A connection of datagrams needs of its socket that it sends and receives whole messages to and from one peer. All that differs between
//! the two kinds is here and in [`inbox`](super::inbox).

use crate::error::QosError;
use crate::hint_mark::{hint_of, mark};
use cutline_direct::{DirectAddress, DirectInbox, DirectSocket};
use cutline_signal::frame::DATAGRAM_HEADER;
use cutline_sys::SysError;
use cutline_sys::datagrams::Inbox;
use cutline_sys::local_address::{LocalAddress, send_from};
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_sys::traffic_class::set_traffic_class;
use cutline_sys::vacant::vacate;
use cutline_units::{Dscp, DscpPool2, Duration, Hint, HintCodec as _};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType, bind, connect,
    connect_unspec, send, sendmsg, shutdown, socket_with, sockopt,
};
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time;

/// A call waits for room by itself, so that the time is known in which it does.
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
/// Messages up to this length are copied behind their header: for those the kernel takes longer to read a list of parts.
const COPIED: usize = 1 << 14;

/// A socket that carries datagrams.
#[derive(Debug)]
pub enum DatagramCarrier {
    Udp(UdpSocket),
    Direct(DirectSocket),
}

impl DatagramCarrier {
    /// Returns the name of the kind in rows and documents.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Udp(_) => "udp",
            Self::Direct(_) => "direct",
        }
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp(socket) => socket.local_addr(),
            Self::Direct(socket) => Ok(socket.local().socket_addr()),
        }
    }

    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp(socket) => socket.peer_addr(),
            Self::Direct(socket) => Ok(socket.peer().ok_or(Errno::NOTCONN)?.socket_addr()),
        }
    }

    /// Enables the times of arrival, and the count of lost datagrams. Returns the present value of this count.
    pub fn prepare(&self) -> Result<u32, QosError> {
        let counted = match self {
            Self::Udp(socket) => {
                Inbox::stamp(socket).map_err(QosError::system("cannot enable time stamps"))?;
                Inbox::enable_overflow_count(socket)
            }
            Self::Direct(socket) => DirectInbox::prepare(socket),
        };
        counted.map_err(QosError::system("cannot enable the counter of lost datagrams"))
    }

    /// Closes the socket although a thread may still use its descriptor, so that its port is free ([`vacate`]).
    pub fn vacate(&self) -> io::Result<()> {
        match self {
            Self::Udp(socket) => vacate(socket),
            Self::Direct(socket) => socket.vacate(),
        }
    }

    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.set_nonblocking(nonblocking),
            Self::Direct(socket) => Ok(rustix::io::ioctl_fionbio(socket, nonblocking)?),
        }
    }

    pub fn set_read_timeout(&self, time: Option<time::Duration>) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.set_read_timeout(time),
            Self::Direct(_) if time.is_some_and(|time| time.is_zero()) => {
                // As the standard library's sockets.
                Err(io::Error::new(io::ErrorKind::InvalidInput, "a timeout of 0"))
            }
            Self::Direct(socket) => Ok(sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, time)?),
        }
    }

    /// Sends a datagram, and waits for room if the socket waits.
    pub fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.send(datagram),
            Self::Direct(socket) => socket.send(&[datagram]),
        }
    }

    /// Sends a datagram, and waits for nothing.
    pub fn send_now(&self, datagram: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => Ok(send(socket, datagram, SEND_FLAGS)?),
            Self::Direct(socket) => socket.send(&[datagram]),
        }
    }

    /// Sends a datagram of a header and a message, and waits for nothing.
    pub fn send_parts(&self, header: &[u8; DATAGRAM_HEADER], message: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => send_parts(socket, header, message),
            Self::Direct(socket) => socket.send(&[header, message]),
        }
    }

    /// Sends a datagram of a listening socket, from an address of this host.
    pub fn send_from(
        &self,
        datagram: &[u8],
        to: SocketAddr,
        from: Option<LocalAddress>,
    ) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => send_from(socket, datagram, to, from),
            Self::Direct(socket) => socket.send_to(&[datagram], direct(to)?),
        }
    }

    /// Marks packets to a peer with a hint.
    pub fn mark(&self, peer: SocketAddr, hint: Hint) -> io::Result<()> {
        match self {
            Self::Udp(socket) => mark(socket, peer, hint),
            Self::Direct(socket) => socket.set_hint(Some(hint)),
        }
    }

    /// Marks packets to a peer with a code point. Frames have none; they have the hint that it means.
    pub fn mark_dscp(&self, peer: SocketAddr, dscp: Dscp) -> io::Result<()> {
        match self {
            Self::Udp(socket) => set_traffic_class(socket, peer, dscp.in_traffic_class(0)),
            Self::Direct(socket) => {
                let text = || format!("code point {dscp}: frames carry hints, and it means none");
                let hint = DscpPool2.decode(dscp);
                let hint = hint.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, text()))?;
                socket.set_hint(Some(hint))
            }
        }
    }

    /// Returns the hint of packets to a peer; `None` if they have none.
    pub fn hint(&self, peer: SocketAddr) -> Option<Hint> {
        match self {
            Self::Udp(socket) => hint_of(socket, peer),
            Self::Direct(socket) => socket.hint(),
        }
    }

    /// Opens the socket of a connection that a listening socket accepts, on the port of that one. `address` is the address of this host
    /// that the peer has addressed.
    pub fn accept(&self, address: SocketAddr, peer: SocketAddr) -> io::Result<Self> {
        match self {
            Self::Udp(listener) => open_beside(listener, address, peer).map(Self::Udp),
            Self::Direct(listener) => {
                let peer = direct(peer)?;
                // Looking up its interface needs another descriptor. A failure of that does not have the kernel's error.
                let spare = (listener.as_fd().try_clone_to_owned()?, listener.as_fd().try_clone_to_owned()?);
                drop(spare);
                let accepted = listener.accept(peer).map(Self::Direct);
                accepted.map_err(|error| {
                    listener.release(peer);
                    match error {
                        SysError::System { source, .. } if lacks_room(&source) => source,
                        error => io::Error::other(error),
                    }
                })
            }
        }
    }

    /// Receives datagrams of a peer again, whose own socket is closed. With UDP the kernel does that.
    pub fn release(&self, peer: SocketAddr) {
        if let (Self::Direct(socket), Ok(peer)) = (self, direct(peer)) {
            socket.release(peer);
        }
    }

    /// Receives nothing more, until it is connected again.
    pub fn disconnect(&self) -> io::Result<()> {
        match self {
            Self::Udp(socket) => Ok(connect_unspec(socket)?),
            Self::Direct(socket) => socket.close(),
        }
    }

    /// Connects to the peer again, from another port.
    pub fn connect_again(&self, peer: SocketAddr) -> io::Result<()> {
        match self {
            Self::Udp(socket) => {
                let _none = connect_unspec(socket);
                Ok(connect(socket, &peer)?)
            }
            Self::Direct(socket) => socket.change_port(),
        }
    }

    /// Receives nothing more from the peer, and keeps the port: an unconnected socket would take datagrams away from the
    /// listener. Datagrams in its queue stay there.
    pub fn let_go(&self) -> io::Result<()> {
        match self {
            Self::Udp(socket) => Ok(socket.connect(socket.local_addr()?)?),
            Self::Direct(socket) => socket.close(),
        }
    }

    /// Ends calls that wait for datagrams, where the kernel can.
    pub fn end_waits(&self) -> io::Result<()> {
        match self {
            Self::Udp(socket) => Ok(shutdown(socket, Shutdown::Both)?),
            // A packet socket cannot be shut down. The calls look now and then.
            Self::Direct(_) => Ok(()),
        }
    }

    /// Returns whether this end receives no more.
    pub fn is_shut_down(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(self, PollFlags::RDHUP)];
        Ok(wait(&mut fds, Duration::ZERO)? && fds[0].revents().contains(PollFlags::RDHUP))
    }
}

impl AsFd for DatagramCarrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(socket) => socket.as_fd(),
            Self::Direct(socket) => socket.as_fd(),
        }
    }
}

impl From<UdpSocket> for DatagramCarrier {
    fn from(socket: UdpSocket) -> Self {
        Self::Udp(socket)
    }
}

/// Returns whether the system has no room for a socket to any peer.
pub fn lacks_room(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

fn direct(address: SocketAddr) -> io::Result<DirectAddress> {
    let text = || format!("{address} is no address of frames");
    DirectAddress::of(address).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, text()))
}

/// Sends a datagram of a header and a message.
fn send_parts(socket: &UdpSocket, header: &[u8; DATAGRAM_HEADER], message: &[u8]) -> io::Result<usize> {
    thread_local! {
        static BUFFER: RefCell<[u8; DATAGRAM_HEADER + COPIED]> = const { RefCell::new([0; DATAGRAM_HEADER + COPIED]) };
    }
    let length = DATAGRAM_HEADER + message.len();
    if message.len() <= COPIED {
        return BUFFER.with_borrow_mut(|buffer| {
            buffer[..DATAGRAM_HEADER].copy_from_slice(header);
            buffer[DATAGRAM_HEADER..length].copy_from_slice(message);
            Ok(send(socket, &buffer[..length], SEND_FLAGS)?)
        });
    }
    let parts = [IoSlice::new(header), IoSlice::new(message)];
    let none = &mut SendAncillaryBuffer::default();
    Ok(sendmsg(socket, &parts, none, SEND_FLAGS)?)
}

/// Opens the socket of a connection, on the port of its listener.
fn open_beside(listener: &UdpSocket, address: SocketAddr, peer: SocketAddr) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // The listener shares its port only while a connection joins.
    sockopt::set_socket_reuseaddr(listener, true)?;
    let bound = bind(&socket, &address);
    sockopt::set_socket_reuseaddr(listener, false)?;
    bound?;
    connect(&socket, &peer)?;
    Ok(socket.into())
}
