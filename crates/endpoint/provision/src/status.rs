//! Status of `cutlined`, as a document: its interfaces, sessions, reservations and counters.

use crate::demand::Flow;
use cutline_flow::TrafficSpec;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Status of `cutlined`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// Time since its start, s.
    pub elapsed_s: f64,
    /// Its interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// The sessions: packets to one destination, with their senders and reservations.
    pub sessions: Vec<SessionStatus>,
    /// Reservations of applications at this host alone (`local`).
    pub local: Vec<LocalStatus>,
    /// Clients that are connected.
    pub clients: u64,
    /// Clients that were refused, because the largest number was connected.
    pub refused_clients: u64,
    /// Messages that were dropped because standard error could not be written.
    pub dropped_output: u64,
    /// Counters of the protocol since the start.
    pub counters: ProtocolCounters,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// Its number in the kernel; null while it is absent.
    #[serde(default)]
    pub index: Option<u32>,
    /// Its address in messages; null while the interface is absent, or has none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub address: Option<IpAddr>,
    /// Installer of reservations there: `tc`, `router` or `none`.
    pub control: String,
    /// Reason why the interface accepts no reservations, or its reservations are not in effect, at this time; null if there is none.
    pub problem: Option<String>,
    /// The rate of its link, bit/s.
    pub rate_bps: u64,
    /// Rate that can be reserved, bit/s; null if the traffic of the interface is not controlled, or the interface has
    /// never been present.
    pub reservable_bps: Option<u64>,
    /// Reserved rate, bit/s.
    pub reserved_bps: Option<u64>,
    /// Number of reservations.
    pub reservations: Option<u64>,
    /// Packets that have left as part of a present reservation.
    pub reserved_packets: u64,
    /// Bytes of these packets, as the installer counts them.
    pub reserved_bytes: u64,
    /// Packets of these reservations that exceeded them and became best effort. Traffic control counts them in `reserved_packets`, too.
    pub excess_packets: u64,
    /// Packets of these reservations that were dropped.
    pub dropped_packets: u64,
    /// True if messages are authenticated.
    pub is_authenticated: bool,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionStatus {
    /// Its number in this process of `cutlined`.
    #[serde(default)]
    pub number: u64,
    /// The number of the protocol, such as 17 for UDP.
    pub protocol: u8,
    /// Destination of the packets; port 0 for a protocol without ports.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub destination: SocketAddr,
    /// Senders of the session.
    pub senders: Vec<SenderStatus>,
    /// Reservations for the senders.
    pub reservations: Vec<ReservationStatus>,
}

/// A sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SenderStatus {
    /// Source of its packets.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub source: SocketAddr,
    /// Token bucket of its packets.
    pub bucket: TrafficSpec,
    /// The interface at which its messages arrive; null if the sender is an application of this host.
    pub from_interface: Option<String>,
    /// The neighbour that sends them.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub from: Option<IpAddr>,
    /// The interfaces by which the packets leave.
    pub to_interfaces: Vec<String>,
}

/// Reservation of a next hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReservationStatus {
    /// The interface; null for a reservation by an application of this host.
    pub interface: Option<String>,
    /// The neighbour that made the reservation.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub next: Option<IpAddr>,
    /// `FF`, `SE` or `WF`.
    pub style: String,
    /// Senders of the packets; empty for all.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub senders: Vec<SocketAddr>,
    /// Reserved token bucket.
    pub bucket: TrafficSpec,
}

/// A reservation at this host alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LocalStatus {
    /// The packets.
    pub flow: Flow,
    /// Reserved token bucket.
    pub bucket: TrafficSpec,
    /// The interface; null without a route, and after a refusal.
    pub interface: Option<String>,
}

/// Counters of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProtocolCounters {
    /// Messages sent, by type.
    pub sent: Vec<MessageCount>,
    /// Bytes sent, without the headers of IP and UDP.
    pub sent_bytes: u64,
    /// Messages sent again because no acknowledgement came.
    pub sent_again: u64,
    /// Messages that the kernel refused to send.
    pub unsent: u64,
    /// Messages that were lost because the receive buffer was full.
    pub overflowed: u64,
    /// Messages received and understood, by type.
    pub received: Vec<MessageCount>,
    /// Messages that were malformed.
    pub malformed: u64,
    /// Messages without the required authentication.
    pub without_integrity: u64,
    /// Messages with an unknown key.
    pub unknown_key: u64,
    /// Messages with a wrong digest.
    pub forged: u64,
    /// Messages that were repeated or too old.
    pub replayed: u64,
    /// Messages of neighbours that have not yet proved that their messages are recent.
    pub unproven: u64,
    /// Messages at an interface or by a carrier that is not used, or about state of an interface where they did not arrive.
    pub misplaced: u64,
    /// Reservations that were refused because there was no room.
    pub not_admitted: u64,
    /// Reservations that could not be installed.
    pub not_installed: u64,
    /// States that expired because they were not refreshed.
    pub expired: u64,
    /// Paths that ended because there was no room for newer ones.
    pub evicted: u64,
    /// Number of refusals because of a limit.
    pub full: u64,
}

/// Number of messages of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageCount {
    /// The type, such as `Path`.
    pub message: String,
    /// Number of messages.
    pub count: u64,
}
