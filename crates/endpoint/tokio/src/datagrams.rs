//! Datagrams.

use crate::watched::{
    Connected, Descriptor, Watched, accept_watchable, addresses, connected, connection_calls, message_calls,
    system, watch,
};
use cutline_socket::{Attempt, Pacing, QosError, QosOptions};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::ToSocketAddrs;
use tokio::time::{sleep, timeout};

/// A datagram socket with quality of service, connected to one peer. Tasks can share it: each call takes `&self`.
pub struct QosUdpSocket(Watched<cutline_socket::QosUdpSocket>);

impl QosUdpSocket {
    /// Connects to an address, and negotiates with the QoS socket there.
    ///
    /// # Errors
    /// As [`cutline_socket::QosUdpSocket::connect`].
    pub async fn connect(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        let addresses = addresses(address, "cannot connect").await?;
        let socket = connected(cutline_socket::QosUdpSocket::connecting(&addresses[..], options)?).await?;
        Self::from_blocking(socket).map_err(|error| system("cannot watch the socket", error))
    }
}

message_calls!(QosUdpSocket, SocketAddr);
connection_calls!(QosUdpSocket, 0);

/// Sends a message by attempts, and waits between them by timers of the runtime.
pub async fn send<S: Connected>(
    socket: &Watched<S>,
    pacing: Pacing,
    mut attempt: impl FnMut(&S) -> io::Result<Attempt>,
) -> io::Result<usize> {
    loop {
        match socket.call(Interest::WRITABLE, &mut attempt).await? {
            Attempt::Sent(sent) => return Ok(sent),
            Attempt::Early(wait) if pacing == Pacing::Block => sleep(wait).await,
            Attempt::Early(_) => return Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// A socket that datagram connections come to.
pub struct QosUdpListener(AsyncFd<Descriptor<cutline_socket::QosUdpListener>>);

/// Interval of checks of a listener for retransmissions.
const LOOK: Duration = Duration::from_millis(50);

impl QosUdpListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// As [`cutline_socket::QosUdpListener::bind`].
    pub async fn bind(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        let addresses = addresses(address, "cannot listen").await?;
        let listener = cutline_socket::QosUdpListener::bind(&addresses[..], options)?;
        let watched = listener.set_nonblocking(true).and_then(|()| watch(listener));
        watched.map(Self).map_err(|error| system("cannot watch the socket", error))
    }

    /// Waits for the next connection. Safe to cancel: then no connection was taken.
    ///
    /// # Errors
    /// As [`cutline_socket::QosUdpListener::accept`].
    pub async fn accept(&self) -> io::Result<(QosUdpSocket, SocketAddr)> {
        let (socket, peer) = accept(&self.0, cutline_socket::QosUdpListener::accept).await?;
        Ok((QosUdpSocket::from_blocking(socket)?, peer))
    }

    /// The address of this socket.
    ///
    /// # Errors
    /// As [`tokio::net::UdpSocket::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get_ref().0.local_addr()
    }
}

/// Accepts a connection by a call that does not wait, which also repeats lost messages of the negotiation.
pub async fn accept<L: AsFd, T>(
    listener: &AsyncFd<Descriptor<L>>,
    accept: impl Fn(&L) -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match accept_watchable(&listener.get_ref().0, &accept) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
        if let Ok(guard) = timeout(LOOK, listener.readable()).await
            && let Ok(accepted) = guard?.try_io(|io| accept_watchable(&io.get_ref().0, &accept))
        {
            return accepted;
        }
    }
}

impl fmt::Debug for QosUdpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QosUdpListener").field(&self.0.get_ref().0).finish()
    }
}

impl AsFd for QosUdpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().0.as_fd()
    }
}
