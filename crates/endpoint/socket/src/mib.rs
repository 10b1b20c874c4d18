//! State of a connection.

use crate::reservation::ReservationStatus;
use cutline_signal::mib;
use std::ops::Deref;

/// The state of a connection: the MIB of its session, whose fields can be read directly, and the network's reservations.
#[derive(Clone, Debug, PartialEq)]
pub struct Mib {
    /// Management information of the session.
    pub session: mib::Mib,
    /// State of the reservation; `None` without a service
    /// ([`QosOptions::service`](crate::QosOptions::service)).
    pub reservation: Option<ReservationStatus>,
}

impl Deref for Mib {
    type Target = mib::Mib;

    fn deref(&self) -> &mib::Mib {
        &self.session
    }
}
