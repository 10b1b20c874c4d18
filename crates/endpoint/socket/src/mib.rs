//! All that is known of a connection.

use crate::reservation::ReservationStatus;
use cutline_signal::mib;
use std::ops::Deref;

/// All that is known of a connection: what its session knows, whose fields can be read directly, and what the network has reserved.
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
