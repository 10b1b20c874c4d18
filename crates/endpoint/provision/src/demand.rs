//! A flow, and its traffic in both directions.
//!
//! A [`Flow`] is not a [`FlowSelector`](cutline_flow::FlowSelector), because a request names both sockets and the protocol; a
//! selector may match any value of most fields, and has no text form for requests.

use cutline_flow::TrafficSpec;
use cutline_translate::PlannedReservation;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// A protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Transport"))]
#[serde(rename_all = "kebab-case")]
pub enum TransportProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl TransportProtocol {
    /// The number in the header of IP.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// Returns the protocol with this number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            _ => None,
        }
    }
}

impl fmt::Display for TransportProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

/// The packets from one socket to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The protocol.
    pub transport: TransportProtocol,
    /// Source of the packets.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub source: SocketAddr,
    /// Destination of the packets.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub destination: SocketAddr,
}

impl Flow {
    /// Returns the packets in the other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { transport: self.transport, source: self.destination, destination: self.source }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.transport, self.source, self.destination)
    }
}

/// Request of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The packets that this end sends.
    pub flow: Flow,
    /// Largest traffic that the end sends; `None`: nothing is requested in this direction.
    pub send: Option<TrafficSpec>,
    /// Largest traffic that the end receives, acknowledgements included.
    pub receive: Option<TrafficSpec>,
}

impl Demand {
    /// Requests both directions of a connection.
    pub const fn new(flow: Flow, reservation: PlannedReservation) -> Self {
        Self { flow, send: reservation.send, receive: reservation.receive }
    }

    /// Requests the direction in which this end sends.
    pub const fn sending(flow: Flow, bucket: TrafficSpec) -> Self {
        Self { flow, send: Some(bucket), receive: None }
    }

    /// Requests the direction in which this end receives. `flow` selects the received packets.
    pub const fn receiving(flow: Flow, bucket: TrafficSpec) -> Self {
        Self { flow: flow.reversed(), send: None, receive: Some(bucket) }
    }
}
