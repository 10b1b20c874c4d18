//! An attempt to connect a datagram socket to one address.

use super::carrier::DatagramCarrier;
use super::{Inner, QosUdpSocket};
use crate::connecting::{Attempt, Connect, ConnectProgress, Readiness};
use crate::error::QosError;
use crate::options::{Peer, QosOptions};
use crate::recovery::Recovery;
use crate::session::{Role, begin};
use cutline_signal::negotiation::Carrier;
use cutline_sys::datagrams::Wait;
use cutline_sys::lock;
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

/// Interval of checks for the network's answer.
const LOOK: Duration = Duration::from_millis(5);

/// An attempt to connect a datagram socket to one address.
pub struct Joining {
    socket: QosUdpSocket,
    /// Time at which an end that has not answered counts as a plain socket.
    until: Instant,
    is_joined: bool,
}

impl Joining {
    /// Begins to negotiate over a connected socket.
    pub fn over(socket: DatagramCarrier, options: &QosOptions) -> Result<Self, QosError> {
        let recovery = Recovery::of(options)?;
        let role = if options.peer == Peer::Plain { Role::Alone } else { Role::Initiator };
        let asks = options.clone().negotiation(options.first_round());
        let session = begin(&asks, &role, Carrier::Datagrams)?;
        let directions = session.directions(now());
        let socket = QosUdpSocket::new(socket, session, directions, options, (recovery, None))?;
        let detects = options.peer == Peer::Detect && !options.requires_qos_peer();
        let until =
            if detects { now().saturating_add(options.detection_time()) } else { Instant::FAR_FUTURE };
        Ok(Self { socket, until, is_joined: false })
    }
}

impl Connect for QosUdpSocket {
    type Attempt = Joining;
}

impl Attempt for Joining {
    type Socket = QosUdpSocket;

    fn head_start(_: &QosOptions) -> Option<Duration> {
        None
    }

    fn begin(peer: SocketAddr, options: &QosOptions) -> Result<Self, QosError> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).map_err(QosError::system("cannot open a socket"))?;
        socket.connect(peer).map_err(QosError::system("cannot connect"))?;
        Self::over(socket.into(), options)
    }

    fn advance(&mut self, options: &QosOptions) -> Result<ConnectProgress<QosUdpSocket>, QosError> {
        let inner = &self.socket.0;
        if !self.is_joined {
            if let Some(due) = inner.join_now(options, self.until)? {
                return Ok(ConnectProgress::Pending(due));
            }
            inner.keep()?;
            self.is_joined = true;
        }
        let Some(settled) = inner.connection.settled() else {
            return Ok(ConnectProgress::Pending(now().saturating_add(LOOK)));
        };
        settled?;
        Ok(ConnectProgress::Done(self.socket.clone()))
    }

    fn awaits(&self) -> (BorrowedFd<'_>, Readiness) {
        // Not the public descriptor: it is not yet watched for messages of the application.
        (self.socket.0.socket.as_fd(), Readiness::Read)
    }

    fn is_answered(&self) -> bool {
        self.is_joined
    }

    fn is_silent(socket: &QosUdpSocket) -> bool {
        socket.0.connection.was_silent()
    }
}

impl Inner {
    /// Continues the negotiation with received messages. Returns until when to wait for more; `None` when it is known whether the peer takes part.
    fn join_now(&self, options: &QosOptions, until: Instant) -> Result<Option<Instant>, QosError> {
        loop {
            let due = self.act(|session, out, inbound| {
                session.advance(now(), out, inbound);
                if now() >= until {
                    session.on_silence(now(), out, inbound);
                }
            });
            if let Some(outcome) = self.connection.outcome(options.requires_qos_peer()) {
                return outcome.map(|()| None);
            }
            match self.fill(&mut lock(&self.reader), Wait::No) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(due.min(until))),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(QosError::system("cannot reach the peer")(error)),
            }
        }
    }
}
