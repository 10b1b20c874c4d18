//! Status of `cutlined`, as a document: its interfaces, sessions, reservations and counters.

use crate::demand::Flow;
use cutline_flow::TrafficSpec;
use cutline_records::record;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

record! {
    schema is a feature;

    /// Status of `cutlined`.
    #[derive(Deserialize)]
    pub struct Status {
        elapsed_s: f64, counter("s"), "Time since the start of `cutlined`.";
        interfaces: Vec<InterfaceStatus>, part, "The interfaces of `cutlined`.";
        sessions: Vec<SessionStatus>, part, "The sessions: packets to one destination, with their senders and reservations.";
        local: Vec<LocalStatus>, part, "Reservations of applications at this host alone (`local`).";
        clients: u64, gauge("clients"), "Clients that are connected.";
        refused_clients: u64, counter("clients"), "Clients that were refused, because the largest number was connected.";
        dropped_output: u64, counter("messages"), "Messages that were dropped because standard error could not be written.";
        counters: ProtocolCounters, part, "Counters of the protocol since the start.";
    }

    /// An interface.
    #[derive(Deserialize)]
    pub struct InterfaceStatus {
        name: String, label, "Name of the interface.";
        #[serde(default)]
        index: Option<u32>, label, "Number of the interface in the kernel; null while it is absent.";
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        address: Option<IpAddr>, label, "Address of the interface in messages; null while the interface is absent, or has none.";
        control: String, label, "Installer of reservations there: `tc`, `router` or `none`.";
        problem: Option<String>, label, "Reason why the interface accepts no reservations, or its reservations are not in effect, at this time; null if there is none.";
        rate_bps: u64, gauge("bit/s"), "Rate of the interface's link.";
        reservable_bps: Option<u64>, gauge("bit/s"), "Rate that can be reserved; null if the traffic of the interface is not controlled, or the interface has never been present.";
        reserved_bps: Option<u64>, gauge("bit/s"), "Reserved rate.";
        reservations: Option<u64>, gauge("reservations"), "Number of reservations.";
        reserved_packets: u64, gauge("packets"), "Packets that have left as part of a present reservation.";
        reserved_bytes: u64, gauge("B"), "Bytes of these packets, as the installer counts them.";
        excess_packets: u64, gauge("packets"), "Packets of these reservations that exceeded them and became best effort. Traffic control counts them in `reserved_packets`, too.";
        dropped_packets: u64, gauge("packets"), "Packets of these reservations that were dropped.";
        is_authenticated: bool, label, "True if messages are authenticated.";
    }

    /// Counters of the protocol.
    #[derive(Eq, Deserialize)]
    pub struct ProtocolCounters {
        sent: Vec<MessageCount>, part, "Messages sent, by type.";
        sent_bytes: u64, counter("B"), "Bytes sent, without the headers of IP and UDP.";
        sent_again: u64, counter("messages"), "Messages sent again because no acknowledgement came.";
        unsent: u64, counter("messages"), "Messages that the kernel refused to send.";
        overflowed: u64, counter("messages"), "Messages that were lost because the receive buffer was full.";
        received: Vec<MessageCount>, part, "Messages received and understood, by type.";
        malformed: u64, counter("messages"), "Messages that were malformed.";
        without_integrity: u64, counter("messages"), "Messages without the required authentication.";
        unknown_key: u64, counter("messages"), "Messages with an unknown key.";
        forged: u64, counter("messages"), "Messages with a wrong digest.";
        replayed: u64, counter("messages"), "Messages that were repeated or too old.";
        unproven: u64, counter("messages"), "Messages of neighbours that have not yet proved that their messages are recent.";
        misplaced: u64, counter("messages"), "Messages at an interface or by a carrier that is not used, or about state of an interface where they did not arrive.";
        not_admitted: u64, counter("reservations"), "Reservations that were refused because there was no room.";
        not_installed: u64, counter("reservations"), "Reservations that could not be installed.";
        expired: u64, counter("states"), "States that expired because they were not refreshed.";
        evicted: u64, counter("paths"), "Paths that ended because there was no room for newer ones.";
        full: u64, counter("refusals"), "Number of refusals because of a limit.";
    }

    /// Number of messages of a type.
    #[derive(Eq, Deserialize)]
    pub struct MessageCount {
        message: String, label, "The type, such as `Path`.";
        count: u64, counter("messages"), "Number of messages.";
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionStatus {
    /// Number of the session in this process of `cutlined`.
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
