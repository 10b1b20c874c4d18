//! Datagrams in frames below IP.

use crate::datagrams::accept;
use crate::watched::{Descriptor, Watched, connected, connection_calls, message_calls, system, watch};
use cutline_socket::{DirectAddress, QosError, QosOptions};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
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
}

message_calls!(QosDirectSocket, DirectAddress);
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
