//! Installers of reservations.
//!
//! An [`Installer`] gets the reservations that admission control has accepted, for one interface or several.
//!
//! ```text
//! traffic_control  a class of HTB for each reservation
//! router           the reserved class of a userspace router, by its local socket
//! ```
//!
//! Another one implements the trait and is given to [`Daemon::open_with`](crate::Daemon::open_with).

mod router;
mod traffic_control;

pub use router::RouterClass;
pub use traffic_control::TrafficControl;

use cutline_netlink::Error;
use cutline_router_service::RouterClientError;
use cutline_rsvp::admission::ReservationHandle;
use cutline_rsvp::engine::Control;
use cutline_units::Instant;
use std::collections::BTreeMap;
use std::fmt;

/// Installer of reservations. Everything that it has installed is removed when it is dropped.
pub trait Installer: fmt::Debug + Send {
    /// Carries out an order.
    ///
    /// # Errors
    /// When a reservation cannot be installed, or kept; then nothing of it is left.
    fn apply(&mut self, control: &Control) -> Result<(), InstallError>;

    /// Returns the counters of each reservation's packets.
    fn counters(&mut self) -> BTreeMap<ReservationHandle, ReservedCount>;

    /// Runs timers. The agent calls it after every wait, so every 50 ms at least. Returns the reservations that are
    /// lost, each with the reason; nothing of them is left.
    fn maintain(&mut self, _now: Instant) -> Vec<(ReservationHandle, InstallError)> {
        Vec::new()
    }

    /// Notes that another program has changed the traffic control of the interface; `is_sure` is not set if it may be another one.
    fn touched(&mut self, _is_sure: bool) {}

    /// Takes the pending notes for the operator, a sentence each.
    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the reason why reservations are not in effect; `None` if they are.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// Counters of a reservation's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservedCount {
    /// Packets that have left.
    pub packets: u64,
    /// Their bytes, as the installer counts them.
    pub bytes: u64,
    /// Packets that exceeded the reservation and became best effort.
    pub excess: u64,
    /// Packets that were dropped.
    pub dropped: u64,
}

impl std::ops::AddAssign for ReservedCount {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.excess += other.excess;
        self.dropped += other.dropped;
    }
}

/// Reason why a reservation is not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The kernel's traffic control refuses.
    #[error(transparent)]
    Netlink(#[from] Error),
    /// The userspace router refuses, or does not answer.
    #[error(transparent)]
    Router(#[from] RouterClientError),
    /// The reservation, or its interface, is not known.
    #[error("nothing is installed under this number")]
    Unknown,
    /// Another reason.
    #[error("{0}")]
    Other(String),
}
