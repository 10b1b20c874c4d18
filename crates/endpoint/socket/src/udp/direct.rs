//! Datagrams in frames below IP: the connections of this module over another kind of socket.

use super::carrier::DatagramCarrier;
use super::dial::Joining;
use super::listener::QosUdpListener;
use super::{Attempt, QosUdpSocket};
use crate::connecting::{Attempt as ConnectAttempt, Connect, ConnectProgress, Connecting, Readiness};
use crate::connection_handle::ConnectionHandle;
use crate::error::QosError;
use crate::options::{Pacing, QosOptions};
use cutline_direct::{DirectAddress, DirectSocket};
use cutline_params::ParameterError;
use cutline_sys::{SysError, interface};
use cutline_units::{Duration, Instant};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::time;

/// A socket with quality of service for messages in Ethernet frames, without IP (QUANTA's "direct").
///
/// Its calls and its protocol are those of [`QosUdpSocket`]. Messages of up to 66,536 B are cut into frames, and arrive whole or not at all.
/// Both ends must be on the same link, since no router forwards the frames, and both processes need `CAP_NET_RAW`.
///
/// ```no_run
/// use cutline_socket::{Preset, QosDirectSocket, QosOptions};
///
/// let options = QosOptions::sending(Preset::Video.specification());
/// let wall = QosDirectSocket::connect("direct:eth0/02:00:00:00:00:01:7000".parse()?, &options)?;
/// wall.send(&[0; 8192])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct QosDirectSocket(pub(super) QosUdpSocket);

/// A socket that connections of frames come to, on a port of one interface.
#[derive(Debug)]
pub struct QosDirectListener(QosUdpListener);

impl QosDirectSocket {
    /// Connects to an address on a link of this host, and negotiates with the QoS socket there.
    ///
    /// # Errors
    /// As for [`QosUdpSocket::connect`]; when the process lacks `CAP_NET_RAW`; when the options request a reservation, which the network
    /// cannot make for frames.
    pub fn connect(address: DirectAddress, options: &QosOptions) -> Result<Self, QosError> {
        Self::connecting(address, options)?.finish()
    }

    /// Begins to connect to an address, as [`connect`](Self::connect) does, and does not wait.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect) that are known at once: of the options, of the interface, and the lack of `CAP_NET_RAW`.
    pub fn connecting(address: DirectAddress, options: &QosOptions) -> Result<Connecting<Self>, QosError> {
        check(options)?;
        let joining = DirectJoining::to(address, options)?;
        Ok(Connecting::of(address.socket_addr(), joining, options))
    }

    /// Sends a message, as [`QosUdpSocket::send`] does.
    ///
    /// # Errors
    /// As [`QosUdpSocket::send`].
    pub fn send(&self, message: &[u8]) -> io::Result<usize> {
        self.0.send(message)
    }

    /// Sends a message if it may be sent now, and does not wait for that.
    ///
    /// # Errors
    /// As [`QosUdpSocket::try_send`].
    pub fn try_send(&self, message: &[u8]) -> io::Result<Attempt> {
        self.0.try_send(message)
    }

    /// Returns the treatment of messages beyond the agreed rate.
    pub fn pacing(&self) -> Pacing {
        self.0.pacing()
    }

    /// Receives a message. Bytes that do not fit in the buffer are lost. Returns its length in the buffer.
    ///
    /// # Errors
    /// As [`QosUdpSocket::recv`].
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    /// As [`recv`](Self::recv). Also returns when the kernel received the last frame of the message.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_stamped(&self, buffer: &mut [u8]) -> io::Result<(usize, Instant)> {
        self.0.recv_stamped(buffer)
    }

    /// Returns whether the peer is a QoS socket.
    pub fn has_qos_peer(&self) -> bool {
        self.0.has_qos_peer()
    }

    /// Returns whether a message was received already ([`QosUdpSocket::has_pending`]).
    pub fn has_pending(&self) -> bool {
        self.0.has_pending()
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> DirectAddress {
        direct(self.0.peer_addr())
    }

    /// The address of this end.
    ///
    /// # Errors
    /// As [`QosUdpSocket::local_addr`].
    pub fn local_addr(&self) -> io::Result<DirectAddress> {
        self.0.local_addr().map(direct)
    }

    /// Sets whether calls wait.
    ///
    /// # Errors
    /// As [`QosUdpSocket::set_nonblocking`].
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.set_nonblocking(nonblocking)
    }

    /// Sets the longest wait of [`recv`](Self::recv).
    ///
    /// # Errors
    /// As [`QosUdpSocket::set_read_timeout`].
    pub fn set_read_timeout(&self, time: Option<time::Duration>) -> io::Result<()> {
        self.0.set_read_timeout(time)
    }
}

/// An attempt to connect a socket for frames.
pub struct DirectJoining(Joining);

impl DirectJoining {
    fn to(peer: DirectAddress, options: &QosOptions) -> Result<Self, QosError> {
        let socket = DirectSocket::connect(peer).map_err(system);
        let socket = socket.map_err(QosError::system("cannot connect"))?;
        Joining::over(DatagramCarrier::Direct(socket), options).map(Self)
    }
}

impl Connect for QosDirectSocket {
    type Attempt = DirectJoining;
}

impl ConnectAttempt for DirectJoining {
    type Socket = QosDirectSocket;

    fn head_start(options: &QosOptions) -> Option<Duration> {
        Joining::head_start(options)
    }

    fn begin(address: SocketAddr, options: &QosOptions) -> Result<Self, QosError> {
        Self::to(direct(address), options)
    }

    fn advance(&mut self, options: &QosOptions) -> Result<ConnectProgress<QosDirectSocket>, QosError> {
        Ok(match self.0.advance(options)? {
            ConnectProgress::Pending(due) => ConnectProgress::Pending(due),
            ConnectProgress::Done(socket) => ConnectProgress::Done(QosDirectSocket(socket)),
        })
    }

    fn awaits(&self) -> (BorrowedFd<'_>, Readiness) {
        self.0.awaits()
    }

    fn is_answered(&self) -> bool {
        self.0.is_answered()
    }

    fn is_silent(socket: &QosDirectSocket) -> bool {
        Joining::is_silent(&socket.0)
    }
}

impl Deref for QosDirectSocket {
    type Target = ConnectionHandle;

    /// The calls that all QoS sockets share.
    fn deref(&self) -> &ConnectionHandle {
        &self.0
    }
}

impl AsFd for QosDirectSocket {
    /// The descriptor to wait for, as that of [`QosUdpSocket`]. It is also readable when part of a message has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl QosDirectListener {
    /// Listens on a port of an interface; port 0 is any that is free.
    ///
    /// # Errors
    /// When there is no such interface of Ethernet, the port is in use, the process lacks `CAP_NET_RAW`, or an option is not allowed.
    pub fn bind(interface: &str, port: u16, options: &QosOptions) -> Result<Self, QosError> {
        check(options)?;
        options.check_listener()?;
        let number = interface::index(interface);
        let socket = number.and_then(|number| DirectSocket::bind(number, port)).map_err(system);
        QosUdpListener::bind_direct(socket.map_err(QosError::system("cannot listen"))?, options).map(Self)
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// As [`QosUdpListener::accept`].
    pub fn accept(&self) -> io::Result<(QosDirectSocket, DirectAddress)> {
        let (socket, peer) = self.0.accept()?;
        Ok((QosDirectSocket(socket), direct(peer)))
    }

    /// Sets whether [`accept`](Self::accept) waits.
    ///
    /// # Errors
    /// As [`QosUdpListener::set_nonblocking`].
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.set_nonblocking(nonblocking)
    }

    /// The address of this socket.
    ///
    /// # Errors
    /// As [`QosUdpListener::local_addr`].
    pub fn local_addr(&self) -> io::Result<DirectAddress> {
        self.0.local_addr().map(direct)
    }
}

impl AsFd for QosDirectListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn direct(address: SocketAddr) -> DirectAddress {
    DirectAddress::of(address).expect("the addresses of a socket for frames are direct ones")
}

/// Returns an error of the system with the kind of its cause.
fn system(error: SysError) -> io::Error {
    let kind = match &error {
        SysError::NotPermitted { .. } => io::ErrorKind::PermissionDenied,
        SysError::NoInterface { .. } => io::ErrorKind::NotFound,
        SysError::System { source, .. } => source.kind(),
        SysError::Ip { .. } => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

fn check(options: &QosOptions) -> Result<(), QosError> {
    if options.has_reservation() {
        let allowed = "no service of the network: frames below IP cross no router";
        return Err(ParameterError::new("service", "a reservation", allowed).into());
    }
    Ok(())
}
