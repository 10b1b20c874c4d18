//! Reservations of a host, in one order for all views: those for sessions of RSVP, and those at this host alone.

use crate::document::ReservationState;
use cutline_flow::TrafficSpec;
use cutline_provision::status::{LocalStatus, ReservationStatus, SessionStatus};
use std::net::{IpAddr, SocketAddr};

/// A reservation of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostReservation<'d> {
    /// The number of the protocol, such as 17 for UDP.
    pub protocol: u8,
    /// Destination of the packets; port 0 for a protocol without ports.
    pub destination: SocketAddr,
    /// Sources of the packets; empty for all.
    pub senders: &'d [SocketAddr],
    /// The interface at which it is installed; `None` for an application of this host, and for a local one that is not in effect.
    pub interface: Option<&'d str>,
    /// The neighbour that made it.
    pub next: Option<IpAddr>,
    /// `FF`, `SE` or `WF` of a session; `None` of a reservation at this host alone (`local`).
    pub style: Option<&'d str>,
    /// Reserved token bucket.
    pub bucket: TrafficSpec,
}

impl<'d> HostReservation<'d> {
    fn of_session(session: &'d SessionStatus, its: &'d ReservationStatus) -> Self {
        Self {
            protocol: session.protocol,
            destination: session.destination,
            senders: &its.senders,
            interface: its.interface.as_deref(),
            next: its.next,
            style: Some(&its.style),
            bucket: its.bucket,
        }
    }

    fn local(its: &'d LocalStatus) -> Self {
        Self {
            protocol: its.flow.transport.number(),
            destination: its.flow.destination,
            senders: std::slice::from_ref(&its.flow.source),
            interface: its.interface.as_deref(),
            next: None,
            style: None,
            bucket: its.bucket,
        }
    }
}

impl ReservationState {
    /// Returns the reservations of the host.
    pub fn reservations(&self) -> impl Iterator<Item = HostReservation<'_>> {
        let of_session = |session| move |its| HostReservation::of_session(session, its);
        let of_sessions = self
            .status
            .sessions
            .iter()
            .flat_map(move |session| session.reservations.iter().map(of_session(session)));
        of_sessions.chain(self.status.local.iter().map(HostReservation::local))
    }

    /// Returns the number of an interface in the kernel; `None` while it is absent.
    pub fn interface_number(&self, name: &str) -> Option<u32> {
        self.status.interfaces.iter().find(|interface| interface.name == name)?.index
    }
}
