//! State of a connection.

use crate::reservation::ConnectionReservation;
use cutline_manager::scheduling::SchedulingStats;
use cutline_signal::mib;
use cutline_sys::now;
use std::ops::Deref;

/// The state of a connection: the MIB of its session, whose fields can be read directly, the network's reservations, and the
/// counters among managed sockets.
#[derive(Clone, Debug, PartialEq)]
pub struct Mib {
    /// Management information of the session.
    pub session: mib::Mib,
    /// State of the reservation; `None` without a service
    /// ([`QosOptions::service`](crate::QosOptions::service)).
    pub reservation: Option<ConnectionReservation>,
    /// Counters of messages and missed deadlines among the managed datagram sockets of this process; `None` for a stream, and
    /// without a share ([`QosOptions::allocation`](crate::QosOptions::allocation)). The deadline of a message is the longest acceptable
    /// delay after the call that sends it.
    pub scheduling: Option<SchedulingStats>,
}

impl Mib {
    /// Returns the state of a connection of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self { session: mib::Mib::unknown(now()), reservation: None, scheduling: None }
    }
}

impl Deref for Mib {
    type Target = mib::Mib;

    fn deref(&self) -> &mib::Mib {
        &self.session
    }
}
