//! Flows with external endpoints: real hosts, or any other source of packets.
//!
//! With [`Network::use_external_endpoints`](crate::Network::use_external_endpoints) the simulation has neither applications
//! nor senders. The caller [injects](crate::Simulation::inject) each packet when it arrives, and
//! [takes](crate::Simulation::take_finished) it after it has crossed its links or was dropped. In between, an external
//! packet is treated like any other: it crosses the same links and queues, and the same code measures it. The laboratory
//! uses this to connect network namespaces with the simulator's own links.
//!
//! Arriving data counts as it does at a receiver: TCP's payload when it is in order, a datagram's payload as it arrives.

use crate::calendar::EventHandle;
use cutline_units::{Ecn, Hint, Instant};

/// A packet that enters the network from an external endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedPacket {
    /// Its flow: an index into [`crate::Network::flows`].
    pub flow: u32,
    /// Its role in the flow.
    pub role: PacketRole,
    /// Size on the wire, headers included, bytes; less than 16 MiB.
    pub size: u32,
    /// Its delay hint.
    pub hint: Hint,
    /// Its ECN field.
    pub ecn: Ecn,
    /// An identifier of the caller's choice; [`FinishedPacket::key`] returns it.
    pub key: u32,
}

/// The role of an injected packet in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRole {
    /// TCP data.
    Segment {
        /// Number of its first byte, counted from the first byte of the connection.
        seq: u64,
        /// Payload, bytes.
        len: u32,
    },
    /// A datagram with data: UDP, or TFRC over it.
    Datagram {
        /// Payload, bytes.
        len: u32,
    },
    /// A packet that takes the route of the data but carries none, such as a SYN.
    Control,
    /// A packet that takes the return route, such as an acknowledgement or feedback.
    Return,
}

/// An injected packet that has left the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedPacket {
    /// Time at which it arrived at its endpoint or was dropped.
    pub at: Instant,
    /// The key with which it was injected.
    pub key: u32,
    /// Outcome: arrival or drop.
    pub outcome: PacketOutcome,
}

/// Outcome of an injected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// Crossed its last link.
    Arrived {
        /// True if a queue marked it.
        marked: bool,
        /// Its hint when it arrived.
        hint: Hint,
    },
    /// A queue dropped it, or a link lost it.
    Dropped,
}

/// The state of flows with external endpoints.
#[derive(Default)]
pub(crate) struct External {
    /// The latest time to which the simulation was advanced. Time never runs backwards.
    pub(crate) clock: Instant,
    /// For each flow, the positions at which the routes of its control packets and of its return packets begin.
    pub(crate) routes: Vec<[u32; 2]>,
    /// The caller's keys, by handle. The vector ends at the greatest handle of an injected packet.
    keys: Vec<u32>,
    pub(crate) finished: Vec<FinishedPacket>,
}

impl External {
    pub(crate) fn put(&mut self, handle: EventHandle, key: u32) {
        if handle as usize >= self.keys.len() {
            self.keys.resize(handle as usize + 1, 0);
        }
        self.keys[handle as usize] = key;
    }

    pub(crate) fn finish(&mut self, at: Instant, handle: EventHandle, outcome: PacketOutcome) {
        self.finished.push(FinishedPacket { at, key: self.keys[handle as usize], outcome });
    }
}

/// An external endpoint of a route, as the index of a hop: the flow, and whether the flow's data ends there.
#[derive(Clone, Copy)]
pub(crate) struct ExternalEndpoint {
    pub(crate) flow: usize,
    pub(crate) is_data: bool,
}

impl ExternalEndpoint {
    pub(crate) const fn index(self) -> usize {
        self.flow << 1 | self.is_data as usize
    }

    pub(crate) const fn from_index(index: usize) -> Self {
        Self { flow: index >> 1, is_data: index & 1 == 1 }
    }
}
