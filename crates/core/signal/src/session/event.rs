//! Events of a session.

use crate::negotiation::{Agreed, OneSidedReason};
use crate::violation::Violation;
use cutline_flow::Direction;
use cutline_quality::spec::Conflicts;
use cutline_units::{Duration, Hint, Rate};
use std::fmt;

/// Event of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEvent {
    /// Both ends agree. The first time, messages have headers from now on.
    Agreed(Box<Agreed>),
    /// The ends do not agree. The previous agreement holds.
    Refused {
        /// Conflicts about the traffic that this end sends.
        send: Option<Conflicts>,
        /// Conflicts about the traffic that this end receives.
        receive: Option<Conflicts>,
    },
    /// The peer takes no part in the negotiation. After one in which both ends have agreed, it has not answered, perhaps because its
    /// application leaves messages unread: the agreement still holds.
    OneSided(OneSidedReason),
    /// This end requests another specification by itself ([`Policies::renegotiate`](super::Policies::renegotiate)): its place among the alternatives, from 1, or 0 for
    /// the application's own. [`SessionEvent::Agreed`], [`SessionEvent::Refused`] or [`SessionEvent::OneSided`] gives the result.
    Requested(usize),
    /// A measure is outside its limit.
    Violated(Direction, Violation),
    /// A measure is within its limit again.
    Restored {
        /// Of which direction.
        direction: Direction,
        /// The violation that is over, with the worst value.
        violation: Violation,
        /// The value of the last interval, in the measure's unit.
        measured: f64,
        /// Duration of the violation.
        after: Duration,
    },
    /// Packets are to have this hint from now on.
    Hint(Hint),
    /// The application should send at this rate from now on, messages/s.
    Rate(f64),
    /// The connection is broken, or the peer has been silent for longer than its reports allow. The fate of the
    /// messages that it has not reported is unknown.
    Lost {
        /// Cause of the loss.
        cause: Cause,
        /// Number of whole messages sent over this connection.
        sent: u64,
        /// Number of these messages that the peer has reported as received. It may have received more.
        /// An end that takes no part reports none.
        reported: u64,
    },
    /// The connection works again.
    Recovered {
        /// Duration of the interruption.
        after: Duration,
        /// True if it was made again: then all numbers start again. Otherwise the peer has ended its silence.
        is_new: bool,
    },
    /// The connection was not made again within the time that the specification gives; or a datagram
    /// connection without reconnection has been silent for so long that receiving fails.
    GaveUp {
        /// Duration of the attempts.
        after: Duration,
        /// Cause of the last attempt's failure.
        cause: Cause,
    },
    /// The resource manager of the host lets this end send at most so much from now on. A faster application is held back.
    Allocated {
        /// The rate before, of messages without headers; `None` if there was no limit.
        before: Option<Rate>,
        /// The rate from now on.
        rate: Rate,
    },
    /// The resource manager has refused this end, or taken its share back, for this reason. There is no limit from now on.
    Unallocated(String),
}

/// Reason why a connection is lost, or cannot be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The peer has been silent for this time.
    Silence(Duration),
    /// A failure, described in words.
    Failed(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence(time) => write!(f, "the peer has been silent for {time}"),
            Self::Failed(what) => f.write_str(what),
        }
    }
}
