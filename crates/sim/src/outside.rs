//! Flows whose ends are outside: real hosts, or anything else that makes packets of its own.
//!
//! With [`Network::put_ends_outside`](crate::Network::put_ends_outside) the flows have neither application nor sender
//! here. Whoever drives the simulation [injects](crate::Simulation::inject) each packet when it comes, and
//! [takes](crate::Simulation::take_left) it when it has crossed its links or was dropped. In between it is a packet like
//! any other: the same links, queues and measures. So a network of namespaces gets the very links that are
//! simulated, and its results are counted by the same code.
//!
//! Data that arrives is read as a receiver would: TCP's payload counts when it is in order, a datagram's as it comes.

use crate::calendar::Handle;
use cutline_units::{Ecn, Hint, Instant};

/// A packet that comes in from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// Its flow: an index into [`crate::Network::flows`].
    pub flow: u32,
    /// What it is.
    pub part: Part,
    /// On the wire, headers included, bytes.
    pub size: u32,
    /// Its delay hint.
    pub hint: Hint,
    /// What it says of ECN.
    pub ecn: Ecn,
    /// Whatever the caller knows it by; given back in [`Left::key`].
    pub key: u32,
}

/// What a packet from outside is to its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// TCP data.
    Segment {
        /// Its first byte, counted from the connection's first one.
        seq: u64,
        /// Payload, bytes.
        len: u32,
    },
    /// A datagram with data: UDP, or TFRC over it.
    Datagram {
        /// Payload, bytes.
        len: u32,
    },
    /// Goes the data's way but is none, such as a SYN.
    Control,
    /// Goes the other way: acknowledgements, feedback.
    Return,
}

/// A packet that has left the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// When.
    pub at: Instant,
    /// As it was injected.
    pub key: u32,
    /// How.
    pub fate: Fate,
}

/// How a packet has left the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has crossed its last link.
    Arrived {
        /// Whether it was marked on its way.
        marked: bool,
        /// Its hint at the end.
        hint: Hint,
    },
    /// A queue has dropped it.
    Dropped,
}

/// What is remembered of flows whose ends are outside.
#[derive(Default)]
pub(crate) struct Outside {
    /// Time does not run backwards: the latest moment that the simulation was advanced to.
    pub(crate) clock: Instant,
    /// Of each flow: where the ways of its control packets and of what goes back begin.
    pub(crate) routes: Vec<[u32; 2]>,
    /// The callers' keys, by handle. Only as long as the greatest handle of such a packet.
    keys: Vec<u32>,
    pub(crate) left: Vec<Left>,
}

impl Outside {
    pub(crate) fn put(&mut self, handle: Handle, key: u32) {
        if handle as usize >= self.keys.len() {
            self.keys.resize(handle as usize + 1, 0);
        }
        self.keys[handle as usize] = key;
    }

    pub(crate) fn leave(&mut self, at: Instant, handle: Handle, fate: Fate) {
        self.left.push(Left { at, key: self.keys[handle as usize], fate });
    }
}

/// The end of a route outside, as the index of a stop: which flow, and whether what ends there is its data.
#[derive(Clone, Copy)]
pub(crate) struct OutsideEnd {
    pub(crate) flow: usize,
    pub(crate) is_data: bool,
}

impl OutsideEnd {
    pub(crate) const fn index(self) -> usize {
        self.flow << 1 | self.is_data as usize
    }

    pub(crate) const fn of_index(index: usize) -> Self {
        Self { flow: index >> 1, is_data: index & 1 == 1 }
    }
}
