//! What a link and a queue say to each other: arrivals, verdicts, departures, and the [`Queue`] trait.

use crate::{QueueStats, Readings};
use cutline_units::{Hint, Instant, Probability, RandomStream, Rate};

/// What a queue needs to know of a packet; never its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes on the wire.
    pub size: u32,
    /// The delay hint; a level above the queue's largest counts as the largest.
    pub hint: Hint,
    /// Which flow it is of, for queues that keep flows apart: any number that all its packets share, and few
    /// packets of other flows.
    pub flow: u32,
    /// Whether the packet may be marked (ECT, RFC 3168 section 5).
    pub ecn_capable: bool,
    /// Whether its sender answers marks in proportion to their share (ECT(1), RFC 9331 section 4); such a packet
    /// may be marked.
    pub scalable: bool,
}

/// What waits in a queue. The packet in service has left it and is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets waiting.
    pub packets: u32,
    /// Bytes waiting.
    pub bytes: u64,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The AQM's probability, or what TSQ made of it, came up.
    Early,
    /// The queue was at its limit.
    Overflow,
}

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Stored.
    Pass,
    /// Stored; the caller sets CE in the packet (RFC 3168 section 5).
    Mark,
    /// Not stored; the packet is still the caller's.
    Drop(DropReason),
}

/// A packet that leaves a queue for the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// The handle given to [`Queue::enqueue`].
    pub packet: P,
    /// Bytes on the wire.
    pub size: u32,
    /// When it was enqueued; the sojourn time is counted from here.
    pub arrived: Instant,
    /// Whether the queue marks it now; the caller sets CE in the packet (RFC 3168 section 5).
    pub marked: bool,
}

/// A packet that a queue had stored and has thrown away since. Its handle is the caller's again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shed<P> {
    /// The handle given to [`Queue::enqueue`].
    pub packet: P,
    /// Bytes on the wire.
    pub size: u32,
    /// Why.
    pub reason: DropReason,
}

/// What a packet leaves in a ring while it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) packet: P,
    pub(crate) size: u32,
    pub(crate) arrived: Instant,
}

/// How much may wait in a queue. The packet in service does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most so many packets.
    Packets(u32),
    /// At most so many bytes.
    Bytes(u64),
}

/// A queue in front of a link.
///
/// `P` is a small handle of the caller's: an index, a pointer. Time never runs backwards between calls.
pub trait Queue<P> {
    /// Offers a packet. On [`Verdict::Drop`] the handle was not stored and stays the caller's; on
    /// [`Verdict::Mark`] it was stored, and the caller sets CE.
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict;

    /// The next packet. Called exactly when the link is free; the packet then goes out at the link's rate.
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>>;

    /// A packet that was stored and has been thrown away since: at the head, or to make room for another. To be
    /// asked after every [`Queue::enqueue`] and [`Queue::dequeue`] until it answers `None`; most queues never
    /// throw away what they have stored.
    #[inline]
    fn shed(&mut self) -> Option<Shed<P>> {
        None
    }

    /// What is waiting.
    fn backlog(&self) -> Backlog;

    /// The AQM's drop probability as of the last arrival, departure or [`Queue::advance`]; `None` where the
    /// queue has no such law.
    fn probability(&self) -> Option<Probability> {
        None
    }

    /// What else the law knows, for recording.
    fn readings(&self) -> Readings {
        Readings::default()
    }

    /// Brings the control law, if there is one, up to `now`, so that what is recorded is true now. Changes no
    /// later verdict.
    fn advance(&mut self, _now: Instant) {}

    /// The link's rate from now on, for queues to whom it matters. A packet in service ends as planned.
    fn set_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// Empties the queue, handing every packet to `discard`, and forgets what it has learnt, as if new.
    /// The counters go on, and count the packets as flushed. A packet in service is forgotten as well.
    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P));

    /// What has been counted since the queue was made.
    fn stats(&self) -> &QueueStats;
}

impl DropReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 2] = [Self::Early, Self::Overflow];

    /// The reason's name, as counters and results spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Overflow => "overflow",
        }
    }
}

impl Verdict {
    /// What an AQM's or TSQ's hit means: a mark where ECN is on and the packet can carry it, else a drop.
    #[inline]
    pub(crate) const fn from_hit(hit: bool, may_mark: bool) -> Self {
        match (hit, may_mark) {
            (false, _) => Self::Pass,
            (true, true) => Self::Mark,
            (true, false) => Self::Drop(DropReason::Early),
        }
    }
}

impl Arrival {
    /// A packet of flow 0 that cannot be marked; change the fields for anything else.
    pub const fn new(size: u32, hint: Hint) -> Self {
        Self { size, hint, flow: 0, ecn_capable: false, scalable: false }
    }
}

impl<P> Waiting<P> {
    /// The packet on its way out, not marked.
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
    /// Whether `backlog` is within it.
    #[inline]
    pub const fn holds(self, backlog: Backlog) -> bool {
        match self {
            Self::Packets(most) => backlog.packets <= most,
            Self::Bytes(most) => backlog.bytes <= most,
        }
    }

    /// Whether a packet of `size` bytes may join `backlog`.
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
    fn limits_count_what_waits() {
        let backlog = Backlog { packets: 3, bytes: 3000 };
        assert!(Limit::Packets(4).admits(backlog, 1500) && !Limit::Packets(3).admits(backlog, 1));
        assert!(Limit::Bytes(4000).admits(backlog, 1000) && !Limit::Bytes(4000).admits(backlog, 1001));
    }

    #[test]
    fn only_a_hit_on_a_markable_packet_marks() {
        assert_eq!(Verdict::from_hit(false, true), Verdict::Pass);
        assert_eq!(Verdict::from_hit(true, true), Verdict::Mark);
        assert_eq!(Verdict::from_hit(true, false), Verdict::Drop(DropReason::Early));
    }
}
