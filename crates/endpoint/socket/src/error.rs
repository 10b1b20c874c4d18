//! Errors of connections.

use cutline_params::ParameterError;
use cutline_quality::spec::Conflicts;
use cutline_signal::negotiation::OneSidedReason;
use cutline_signal::session::Cause;
use cutline_units::Duration;
use std::io;

/// Failed action without a thread for connections.
pub const NO_THREAD: &str = "cannot start a thread that serves connections: there is no memory, or a limit of threads is reached \
                             (ulimit -u, pids.max)";

/// Reason of a call's failure: no connection was made, or it is lost.
#[derive(Debug, thiserror::Error)]
pub enum QosError {
    /// An option is not allowed.
    #[error(transparent)]
    Option(#[from] ParameterError),
    /// The ends do not agree, and the parameters on which they do not may not be weakened.
    #[error("the peer does not agree: {}", named(send.as_ref(), receive.as_ref()))]
    Refused {
        /// Conflicts about the traffic that this end sends.
        send: Option<Conflicts>,
        /// Conflicts about the traffic that this end receives.
        receive: Option<Conflicts>,
    },
    /// The peer takes no part, although it was expected to.
    #[error("the peer is no QoS socket, or has another key: {}", because(*.0))]
    NoPeer(OneSidedReason),
    /// The connection was lost, and is being made again or was made again. A call fails so once in each direction after each loss: it was not
    /// carried out, and a message that was under way is not whole.
    #[error(
        "the connection was lost with data in transit; a new connection is made, and the next call uses it: {0}"
    )]
    Lost(Cause),
    /// The connection was lost, and was not made again within the time that the specification gives for it.
    #[error("the connection was lost and could not be replaced within {after}: {cause}")]
    NotRecovered {
        /// Duration of the attempts.
        after: Duration,
        /// Cause of the last attempt's failure.
        cause: Cause,
    },
    /// The peer of a datagram socket has been silent for this time, although it reports: a call that receives waits no longer.
    #[error("the peer has been silent for {0}: it is gone, or the path is broken")]
    Silent(Duration),
    /// The peer of a datagram socket has begun another connection from the same address and port, as a program does that is started again. A
    /// listener accepts that one in the place of this one.
    #[error("the peer has begun another connection from the same address")]
    Replaced,
    /// This process is a copy by fork(2) of the one that has made the socket, whose threads serve it. A child makes its own connections, and
    /// listens itself for datagrams.
    #[error(
        "the socket belongs to the process that made it, not to a child by fork: let the child connect or listen by itself"
    )]
    Inherited,
    /// The network has refused a reservation, which the options make an error.
    #[error("the reservation is refused: {0}")]
    Reservation(cutline_provision::Refusal),
    /// The resource manager of this host has refused a share, and the options make that an error.
    #[error("the resource manager of this host refuses: {0}")]
    Unallocated(String),
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The failed action.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

fn named(send: Option<&Conflicts>, receive: Option<&Conflicts>) -> String {
    let part =
        |what: &str, conflicts: Option<&Conflicts>| conflicts.map(|conflicts| format!("{what}: {conflicts}"));
    let parts: Vec<_> = [part("send", send), part("receive", receive)].into_iter().flatten().collect();
    parts.join("; ")
}

fn because(reason: OneSidedReason) -> String {
    match reason {
        OneSidedReason::NoAnswer => "it has not answered in time".to_owned(),
        OneSidedReason::OtherVersion(version) => format!("it speaks version {version} of the protocol"),
        OneSidedReason::Foreign => "it speaks another protocol".to_owned(),
        OneSidedReason::Contradiction => "its answer contradicts its own specification".to_owned(),
    }
}

impl QosError {
    /// Returns a function that converts a system's error; `doing` describes the failed action.
    pub(crate) fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { doing, source: error.into() }
    }
}

impl From<QosError> for io::Error {
    fn from(error: QosError) -> Self {
        let kind = match &error {
            QosError::System { source, .. } => source.kind(),
            QosError::Option(_) => io::ErrorKind::InvalidInput,
            QosError::Refused { .. }
            | QosError::NoPeer(_)
            | QosError::Reservation(_)
            | QosError::Unallocated(_) => io::ErrorKind::ConnectionRefused,
            QosError::Lost(_) => io::ErrorKind::ConnectionAborted,
            QosError::Replaced => io::ErrorKind::ConnectionReset,
            QosError::Inherited => io::ErrorKind::NotConnected,
            QosError::NotRecovered { .. } | QosError::Silent(_) => io::ErrorKind::TimedOut,
        };
        Self::new(kind, error)
    }
}
