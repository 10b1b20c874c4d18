//! An attempt to connect a stream to one address.

use super::probe::Question;
use super::{Inner, QosTcpStream};
use crate::connecting::{Attempt, Connect, ConnectProgress, Readiness};
use crate::error::QosError;
use crate::options::{Peer, QosOptions};
use crate::recovery::Recovery;
use crate::session::{Role, begin};
use crate::settings::Settings;
use cutline_signal::negotiation::{Carrier, OneSidedReason};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_translate::Protocol;
use cutline_units::{Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Interval of checks for the network's answer.
const LOOK: Duration = Duration::from_millis(5);

/// An attempt to connect a stream to one address.
pub struct Dialing {
    peer: SocketAddr,
    step: Step,
}

enum Step {
    /// A probe detects whether the peer is a QoS socket.
    Asking(Question),
    /// The kernel connects the socket.
    Connecting(Dialled),
    /// The ends negotiate, and then the network is waited for.
    Negotiating(QosTcpStream),
}

/// A socket that the kernel connects.
struct Dialled {
    socket: OwnedFd,
    takes_part: bool,
    /// Socket that asks again when the connection is made again.
    asker: Option<UdpSocket>,
}

fn settings(options: &QosOptions) -> Result<Settings, QosError> {
    Settings::new(options, Protocol::Tcp, &begin(options, &Role::Alone, Carrier::Stream)?)
}

/// Returns the outcome of connecting; `None` while it is unknown.
pub fn is_connected(socket: impl AsFd) -> Option<Result<(), QosError>> {
    let failed = || QosError::system("cannot connect");
    let mut writable = [PollFd::new(&socket, PollFlags::OUT)];
    match wait(&mut writable, Duration::ZERO) {
        Ok(false) => None,
        Err(error) => Some(Err(failed()(error))),
        Ok(true) => Some(match sockopt::socket_error(&socket) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(errno)) | Err(errno) => Err(failed()(errno.into())),
        }),
    }
}

impl Connect for QosTcpStream {
    type Attempt = Dialing;
}

impl Attempt for Dialing {
    type Socket = QosTcpStream;

    fn head_start(options: &QosOptions) -> Option<Duration> {
        Some(if options.peer == Peer::Detect { options.detection_time() } else { Duration::ZERO })
    }

    fn begin(peer: SocketAddr, options: &QosOptions) -> Result<Self, QosError> {
        options.rate_control.check_carrier(Carrier::Stream)?;
        Recovery::<()>::of(options)?;
        let step = match options.peer {
            Peer::Plain => Step::dial(peer, options, (false, None))?,
            Peer::Speaks => Step::dial(peer, options, (true, None))?,
            Peer::Detect => match Question::socket(peer, &settings(options)?)? {
                Some(socket) => Step::Asking(Question::new(socket, options)?),
                None => Step::dial(peer, options, (false, None))?,
            },
        };
        Ok(Self { peer, step })
    }

    fn advance(&mut self, options: &QosOptions) -> Result<ConnectProgress<QosTcpStream>, QosError> {
        loop {
            self.step = match &mut self.step {
                Step::Asking(question) => {
                    let Some(takes_part) = question.advance() else {
                        return Ok(ConnectProgress::Pending(question.due()));
                    };
                    let asks_again = takes_part && options.reconnect;
                    let asker = if asks_again { Some(question.socket_again()?) } else { None };
                    Step::dial(self.peer, options, (takes_part, asker))?
                }
                Step::Connecting(dialled) => {
                    let Some(outcome) = is_connected(&dialled.socket) else {
                        return Ok(ConnectProgress::Pending(Instant::FAR_FUTURE));
                    };
                    outcome?;
                    let socket =
                        dialled.socket.try_clone().map_err(QosError::system("cannot open a socket"))?;
                    let role = if dialled.takes_part { Role::Initiator } else { Role::Alone };
                    let expects = (dialled.takes_part || options.requires_qos_peer(), true);
                    let again = (Recovery::of(options)?, dialled.asker.take());
                    let session = begin(options, &role, Carrier::Stream)?;
                    let stream =
                        QosTcpStream::new(socket.into(), self.peer, session, options, expects, again);
                    stream.set_nonblocking(true).map_err(QosError::system("cannot set the socket"))?;
                    Step::Negotiating(stream)
                }
                Step::Negotiating(stream) => {
                    if let Some(due) = stream.0.join_now()? {
                        return Ok(ConnectProgress::Pending(due));
                    }
                    stream.0.keep()?;
                    let Some(settled) = stream.0.connection.settled() else {
                        return Ok(ConnectProgress::Pending(now().saturating_add(LOOK)));
                    };
                    settled?;
                    stream.set_nonblocking(false).map_err(QosError::system("cannot set the socket"))?;
                    return Ok(ConnectProgress::Done(stream.clone()));
                }
            }
        }
    }

    fn awaits(&self) -> (BorrowedFd<'_>, Readiness) {
        match &self.step {
            Step::Asking(question) => (question.as_fd(), Readiness::Read),
            Step::Connecting(dialled) => (dialled.socket.as_fd(), Readiness::Write),
            Step::Negotiating(stream) => (stream.as_fd(), Readiness::Read),
        }
    }

    fn is_answered(&self) -> bool {
        matches!(self.step, Step::Negotiating(_))
    }

    fn is_silent(_: &QosTcpStream) -> bool {
        false
    }
}

impl Step {
    /// Starts to connect a socket.
    fn dial(
        peer: SocketAddr,
        options: &QosOptions,
        (takes_part, asker): (bool, Option<UdpSocket>),
    ) -> Result<Self, QosError> {
        if !takes_part && options.requires_qos_peer() {
            return Err(QosError::NoPeer(OneSidedReason::NoAnswer));
        }
        let settings = settings(options)?;
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)
            .map_err(QosError::system("cannot open a socket"))?;
        // Before the first packet, so that it has the mark, too.
        settings.apply(&socket, peer)?;
        settings.apply_tcp(&socket)?;
        match connect(&socket, &peer) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Self::Connecting(Dialled { socket, takes_part, asker })),
            Err(errno) => Err(QosError::system("cannot connect")(io::Error::from(errno))),
        }
    }
}

impl Inner {
    /// Continues the negotiation with received messages. Returns until when to wait for more; `None` when it is known whether the peer takes part.
    pub(super) fn join_now(&self) -> Result<Option<Instant>, QosError> {
        self.negotiate_until(
            &mut cutline_sys::lock(&self.receive_buffer),
            self.since.saturating_add(self.patience),
        )
    }
}
