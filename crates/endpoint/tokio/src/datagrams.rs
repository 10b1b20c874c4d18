//! Datagrams.

use crate::watched::{
    Connected, Descriptor, Watched, accept_watchable, addresses, connected, connection_calls, system, watch,
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

    /// A socket that was connected elsewhere. It must have no clones.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub fn from_blocking(socket: cutline_socket::QosUdpSocket) -> io::Result<Self> {
        Watched::new(socket).map(Self)
    }

    /// Sends a message. If the application sends faster than was agreed on, [`Pacing`] gives the behaviour; waiting is a timer of the
    /// runtime. Safe to cancel: then the message was not sent.
    ///
    /// # Errors
    /// As [`cutline_socket::QosUdpSocket::send`].
    pub async fn send(&self, message: &[u8]) -> io::Result<usize> {
        send(&self.0, self.0.socket().pacing(), |socket| socket.try_send(message)).await
    }

    /// Receives a message. Bytes that do not fit in the buffer are lost. Returns its length in the buffer. Safe to cancel: then no message
    /// was taken.
    ///
    /// # Errors
    /// As [`cutline_socket::QosUdpSocket::recv`].
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // The descriptor does not report data that was received already.
        self.0.call(Interest::READABLE, |socket| socket.recv(buffer)).await
    }

    /// Sends a message if it may be sent now, and does not wait for that.
    ///
    /// # Errors
    /// As [`cutline_socket::QosUdpSocket::try_send`].
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
    pub fn peer_addr(&self) -> SocketAddr {
        self.0.socket().peer_addr()
    }

    /// The address of this end.
    ///
    /// # Errors
    /// As [`tokio::net::UdpSocket::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket().local_addr()
    }
}

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

connection_calls!(QosUdpSocket, 0);

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
