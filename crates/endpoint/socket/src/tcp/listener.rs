//! Accepting streams.

use super::QosTcpStream;
use super::probe::{Callers, Responder};
use crate::connecting::first_listener;
use crate::error::{NO_THREAD, QosError};
use crate::options::{Peer, QosOptions};
use crate::session::{Role, begin};
use crate::settings::Settings;
use crate::signals;
use cutline_signal::negotiation::Carrier;
use cutline_sys::process::generation;
use cutline_sys::reactor::{PollFd, PollFlags};
use cutline_translate::Protocol;
use cutline_units::Duration;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, acceptfrom_with, bind, listen, socket_with, sockopt,
};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Failed action of a server that cannot have the port of UDP.
const ASKED: &str = "cannot listen for datagrams on the same port, where others ask whether this is a QoS socket; \
                     another port, or peer = speaks (all clients are QoS sockets) or plain (none is), needs none";
/// The most connections that wait to be accepted, as in the standard library.
const BACKLOG: i32 = 128;

/// A socket that streams come to.
///
/// With [`Peer::Detect`] it answers on the same port number of UDP, too, so that others find out that it is a QoS socket. Plain
/// clients are served as by a plain socket.
pub struct QosTcpListener {
    socket: TcpListener,
    options: QosOptions,
    callers: Arc<Callers>,
    /// Answers questions whether this is a QoS socket, with [`Peer::Detect`].
    _responder: Option<Responder>,
    /// Fork generation of the creating process.
    generation: u32,
}

impl QosTcpListener {
    /// Listens at an address; of a name, at the first one that can be used.
    ///
    /// # Errors
    /// When the address is in use, for TCP or for UDP, or is none of this machine.
    pub fn bind(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        first_listener(address, options, Self::bind_to)
    }

    fn bind_to(address: SocketAddr, options: &QosOptions) -> Result<Self, QosError> {
        let doing = "cannot listen";
        let session = begin(options, &Role::Alone, Carrier::Stream)?;
        let settings = Settings::new(options, Protocol::Tcp, &session)?;
        let callers = Arc::new(Callers::default());
        // With port 0 the system chooses one for TCP, which may be in use for UDP.
        let mut tries = if address.port() == 0 { 16 } else { 1 };
        let (socket, responder) = loop {
            tries -= 1;
            let socket = open(address, &settings)?;
            if options.peer != Peer::Detect {
                break (socket, None);
            }
            let place = socket.local_addr().map_err(QosError::system(doing))?;
            match UdpSocket::bind(place) {
                Ok(datagrams) => {
                    settings.mark_listener(&datagrams, place)?;
                    let responder = Responder::start(datagrams, Arc::clone(&callers), options.key)
                        .map_err(QosError::system(NO_THREAD))?;
                    break (socket, Some(responder));
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                Err(error) => {
                    return Err(QosError::system(ASKED)(error));
                }
            }
        };
        listen(&socket, BACKLOG).map_err(QosError::system(doing))?;
        Ok(Self {
            socket,
            options: options.clone(),
            callers,
            _responder: responder,
            generation: generation(),
        })
    }

    /// Waits for the next stream. The first call that reads or writes finds out if its peer is a QoS socket.
    ///
    /// # Errors
    /// As [`TcpListener::accept`]; [`io::ErrorKind::OutOfMemory`] when the thread that serves connections cannot be started. The stream waits for
    /// the next call then.
    pub fn accept(&self) -> io::Result<(QosTcpStream, SocketAddr)> {
        self.options.start_threads()?;
        let (socket, peer) = loop {
            // A call that looks for signals does not wait in the system call.
            if signals::looks() && !fcntl_getfl(&self.socket)?.contains(OFlags::NONBLOCK) {
                signals::wait(&mut [PollFd::new(&self.socket, PollFlags::IN)], Duration::MAX)?;
            }
            match acceptfrom_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok((socket, Some(peer))) => break (TcpStream::from(socket), peer.try_into()?),
                // The peer is gone already.
                Ok((_, None)) => {}
                Err(Errno::INTR) => signals::on_signal()?,
                Err(errno) => return Err(errno.into()),
            }
        };
        let role = if self.options.peer == Peer::Plain { Role::Alone } else { Role::Responder };
        let session = begin(&self.options, &role, Carrier::Stream)?;
        Settings::new(&self.options, Protocol::Tcp, &session)?.mark(&socket, peer)?;
        let demands = self.options.requires_qos_peer();
        // In a copy by fork askers are not recorded: the parent's thread answers.
        let expects = demands || self.generation != generation() || self.callers.expects(peer.ip());
        let stream =
            QosTcpStream::new(socket, peer, session, &self.options, (demands, expects), (None, None));
        stream.0.keep()?;
        Ok((stream, peer))
    }

    /// Sets whether [`QosTcpListener::accept`] waits. Copies of the process by fork(2) share the mode, as that of a plain listener.
    ///
    /// # Errors
    /// As [`TcpListener::set_nonblocking`].
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }

    /// The address of this socket.
    ///
    /// # Errors
    /// As [`TcpListener::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// A socket that is bound and set, and does not listen yet: the first packet of a connection that comes has its mark.
fn open(address: SocketAddr, settings: &Settings) -> Result<TcpListener, QosError> {
    let failed = || QosError::system("cannot listen");
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(failed())?;
    // As the standard library does: connections that were closed recently do not keep a server from starting again.
    sockopt::set_socket_reuseaddr(&socket, true).map_err(failed())?;
    settings.mark_listener(&socket, address)?;
    settings.buffers(&socket)?;
    settings.apply_tcp(&socket)?;
    bind(&socket, &address).map_err(failed())?;
    Ok(socket.into())
}

impl fmt::Debug for QosTcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QosTcpListener")
            .field("local", &self.socket.local_addr().ok())
            .field("fd", &self.socket.as_fd())
            .finish_non_exhaustive()
    }
}

impl AsFd for QosTcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
