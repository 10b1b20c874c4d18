//! Datagrams in frames below IP.

use crate::datagrams::{accept, send};
use crate::watched::{Descriptor, Watched, connected, connection_calls, system, watch};
use cutline_socket::{Attempt, DirectAddress, QosError, QosOptions};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A socket with quality of service for messages in Ethernet frames, without IP. Tasks can share it: each call takes `&self`.
///
/// Both ends must be on the same link, and both processes need `CAP_NET_RAW` ([`cutline_socket::QosDirectSocket`]).
pub struct QosDirectSocket(Watched<cutline_socket::QosDirectSocket>);

impl QosDirectSocket {
    /// Connects to an address on a link of this host, and negotiates with the QoS socket there.
    ///
    /// # Errors
    /// As [`cutline_socket::QosDirectSocket::connect`].
    pub async fn connect(address: DirectAddress, options: &QosOptions) -> Result<Self, QosError> {
        let socket = connected(cutline_socket::QosDirectSocket::connecting(address, options)?).await?;
        Self::from_blocking(socket).map_err(|error| system("cannot watch the socket", error))
    }

    /// A socket that was connected elsewhere. It must have no clones.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub fn from_blocking(socket: cutline_socket::QosDirectSocket) -> io::Result<Self> {
        Watched::new(socket).map(Self)
    }

    /// Sends a message, as [`QosUdpSocket::send`](crate::QosUdpSocket::send) does. Safe to cancel: then the message was not sent.
    ///
    /// # Errors
    /// As [`cutline_socket::QosDirectSocket::send`].
    pub async fn send(&self, message: &[u8]) -> io::Result<usize> {
        send(&self.0, self.0.socket().pacing(), |socket| socket.try_send(message)).await
    }

    /// Receives a message. Bytes that do not fit in the buffer are lost. Returns its length in the buffer. Safe to cancel: then no message
    /// was taken.
    ///
    /// # Errors
    /// As [`cutline_socket::QosDirectSocket::recv`].
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.call(Interest::READABLE, |socket| socket.recv(buffer)).await
    }

    /// Sends a message if it may be sent now, and does not wait for that.
    ///
    /// # Errors
    /// As [`cutline_socket::QosDirectSocket::try_send`].
    pub fn try_send(&self, message: &[u8]) -> io::Result<Attempt> {
        self.0.socket().try_send(message)
    }

    /// Receives a message that has come, and does not wait. Returns its length in the buffer.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; otherwise as [`recv`](Self::recv).
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.socket().recv(buffer)
    }

    /// Returns whether the peer is a QoS socket.
    pub fn has_qos_peer(&self) -> bool {
        self.0.socket().has_qos_peer()
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> DirectAddress {
        self.0.socket().peer_addr()
    }

    /// The address of this end.
    ///
    /// # Errors
    /// As [`cutline_socket::QosDirectSocket::local_addr`].
    pub fn local_addr(&self) -> io::Result<DirectAddress> {
        self.0.socket().local_addr()
    }
}

connection_calls!(QosDirectSocket, 0);

/// A socket that connections of frames come to, on a port of one interface.
pub struct QosDirectListener(AsyncFd<Descriptor<cutline_socket::QosDirectListener>>);

impl QosDirectListener {
    /// Listens on a port of an interface; port 0 is any that is free. It does not wait.
    ///
    /// # Errors
    /// As [`cutline_socket::QosDirectListener::bind`].
    pub fn bind(interface: &str, port: u16, options: &QosOptions) -> Result<Self, QosError> {
        let listener = cutline_socket::QosDirectListener::bind(interface, port, options)?;
        let watched = listener.set_nonblocking(true).and_then(|()| watch(listener));
        watched.map(Self).map_err(|error| system("cannot watch the socket", error))
    }

    /// Waits for the next connection. Safe to cancel: then no connection was taken.
    ///
    /// # Errors
    /// As [`cutline_socket::QosDirectListener::accept`].
    pub async fn accept(&self) -> io::Result<(QosDirectSocket, DirectAddress)> {
        let (socket, peer) = accept(&self.0, cutline_socket::QosDirectListener::accept).await?;
        Ok((QosDirectSocket::from_blocking(socket)?, peer))
    }

    /// The address of this socket.
    ///
    /// # Errors
    /// As [`cutline_socket::QosDirectListener::local_addr`].
    pub fn local_addr(&self) -> io::Result<DirectAddress> {
        self.0.get_ref().0.local_addr()
    }
}

impl fmt::Debug for QosDirectListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QosDirectListener").field(&self.0.get_ref().0).finish()
    }
}

impl AsFd for QosDirectListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().0.as_fd()
    }
}
