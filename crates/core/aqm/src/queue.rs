//! The interface between a link and a queue: arrivals, departures, and the [`Queue`] trait.

use crate::{DropReason, QueueStats, Readings, Verdict};
use cutline_units::{Duration, Hint, Instant, Probability, RandomStream, Rate};

/// A queue's view of a packet. It never sees the packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes on the wire.
    pub size: u32,
    /// The delay hint; a level above the queue's largest counts as the largest.
    pub hint: Hint,
    /// The packet's flow, for queues that separate flows: a number that all packets of the flow share, and few packets of
    /// other flows.
    pub flow: u32,
    /// The hosts that the packet comes from and goes to, for queues that separate hosts: numbers that all packets of a host
    /// share.
    pub hosts: [u32; 2],
    /// Time that the packet has spent in earlier queues, if known.
    pub waited: Duration,
    /// True if the packet may be marked (ECT, RFC 3168 section 5).
    pub ecn_capable: bool,
    /// True if the sender responds to marks in proportion to their share (ECT(1), RFC 9331 section 4). Such a
    /// packet may be marked.
    pub scalable: bool,
}

/// Backlog of a queue. The packet in service has left it and is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets waiting.
    pub packets: u32,
    /// Bytes waiting.
    pub bytes: u64,
}

/// A packet that leaves a queue for the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// The handle given to [`Queue::enqueue`].
    pub packet: P,
    /// Bytes on the wire.
    pub size: u32,
    /// Time at which the packet was enqueued. The sojourn time is counted from then on.
    pub arrived: Instant,
    /// True if the queue marks the packet now. If so, the caller sets CE in the packet (RFC 3168 section 5).
    pub marked: bool,
}

/// A packet that a queue had stored and has dropped since. Its handle is the caller's again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shed<P> {
    /// The handle given to [`Queue::enqueue`].
    pub packet: P,
    /// Bytes on the wire.
    pub size: u32,
    /// Reason for the drop.
    pub reason: DropReason,
}

/// A packet in the ring of a FIFO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) packet: P,
    pub(crate) size: u32,
    pub(crate) arrived: Instant,
}

/// Limit of a queue's backlog. The packet in service does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(u64),
}

/// A queue in front of a link.
///
/// `P` is a small handle of the caller's: an index, a pointer. Time never runs backwards between calls.
pub trait Queue<P> {
    /// Offers a packet. On [`Verdict::Drop`] the handle was not stored and stays the caller's; on
    /// [`Verdict::Mark`] it was stored, and the caller sets CE.
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict;

    /// Takes the next packet. The caller calls this when the link is free, and the packet goes out at the link's rate.
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>>;

    /// A packet that was stored and has been dropped since: at the head, or to make room for another. The caller must call
    /// this after every [`Queue::enqueue`] and [`Queue::dequeue`] until it answers `None`. Most queues never drop packets that they
    /// have stored.
    #[inline]
    fn shed(&mut self) -> Option<Shed<P>> {
        None
    }

    /// Returns the backlog.
    fn backlog(&self) -> Backlog;

    /// The AQM's drop probability as of the last arrival, departure or [`Queue::advance`]; `None` where the
    /// queue has no such law.
    fn probability(&self) -> Option<Probability> {
        None
    }

    /// Returns further values for recording.
    fn readings(&self) -> Readings {
        Readings::default()
    }

    /// Takes the steps of the control law that are due at `now`, so that recorded values are current. Changes no later
    /// verdict.
    fn advance(&mut self, _now: Instant) {}

    /// The link's rate from now on, for queues that depend on it. A packet in service ends as planned.
    fn set_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// Empties the queue, hands every packet to `discard`, and resets all learnt state. The counters go
    /// on, and count the packets as flushed. A packet in service is forgotten as well.
    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P));

    /// Returns the counters since the queue was made.
    fn stats(&self) -> &QueueStats;
}

impl Arrival {
    /// A packet of flow 0 that cannot be marked; change the fields for anything else.
    pub const fn new(size: u32, hint: Hint) -> Self {
        Self {
            size,
            hint,
            flow: 0,
            hosts: [0; 2],
            waited: Duration::ZERO,
            ecn_capable: false,
            scalable: false,
        }
    }
}

impl<P> Waiting<P> {
    /// The packet as it goes to the link, not marked.
    #[inline]
    pub(crate) fn leave(self) -> Departure<P> {
        Departure { packet: self.packet, size: self.size, arrived: self.arrived, marked: false }
    }
}

impl Backlog {
    /// One packet more.
    #[inline]
    pub fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    /// One packet less.
    #[inline]
    pub fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}

impl Limit {
    /// Returns whether `backlog` is within the limit.
    #[inline]
    pub const fn holds(self, backlog: Backlog) -> bool {
        match self {
            Self::Packets(most) => backlog.packets <= most,
            Self::Bytes(most) => backlog.bytes <= most,
        }
    }

    /// Returns whether a packet of `size` bytes may join `backlog`.
    #[inline]
    pub const fn admits(self, backlog: Backlog, size: u32) -> bool {
        match self {
            Self::Packets(most) => backlog.packets < most,
            Self::Bytes(most) => backlog.bytes + size as u64 <= most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_count_waiting_packets() {
        let backlog = Backlog { packets: 3, bytes: 3000 };
        assert!(Limit::Packets(4).admits(backlog, 1500) && !Limit::Packets(3).admits(backlog, 1));
        assert!(Limit::Bytes(4000).admits(backlog, 1000) && !Limit::Bytes(4000).admits(backlog, 1001));
    }
}
