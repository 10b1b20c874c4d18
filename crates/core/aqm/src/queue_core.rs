//! The state that every discipline has in addition to its order: limit, backlog, counters, and the packets it has shed.

use crate::{Backlog, Count, Departure, DropReason, Held, Limit, QueueStats, Shed, Verdict};

/// The limit, the backlog and the counters of a discipline, and the packets that it has shed and not yet reported.
///
/// A discipline calls one of the `count_...` methods for each packet that arrives, departs, is shed or flushed. Each keeps
/// the backlog and the counters together.
#[derive(Clone, Debug)]
pub struct QueueCore<P> {
    /// Limit of the backlog.
    pub limit: Limit,
    /// True if packets that can be marked are marked instead of dropped early.
    pub ecn: bool,
    /// The backlog.
    pub backlog: Backlog,
    /// The counters.
    pub stats: QueueStats,
    /// Packets that have been shed, until [`QueueCore::next_shed`] reports them.
    pending: Vec<Shed<P>>,
}

/// Implements the methods of [`Queue`](crate::Queue) that a discipline with a field `core: QueueCore<P>` answers from it: `shed`,
/// `backlog` and `stats`.
macro_rules! forward_to_core {
    ($packet:ident) => {
        #[inline]
        fn shed(&mut self) -> Option<$crate::Shed<$packet>> {
            self.core.next_shed()
        }

        #[inline]
        fn backlog(&self) -> $crate::Backlog {
            self.core.backlog
        }

        fn stats(&self) -> &$crate::QueueStats {
            &self.core.stats
        }
    };
}

pub(crate) use forward_to_core;

impl<P: Copy> QueueCore<P> {
    /// The core of an empty queue.
    pub fn new(limit: Limit, ecn: bool) -> Self {
        let (backlog, stats) = (Backlog::default(), QueueStats::default());
        Self { limit, ecn, backlog, stats, pending: Vec::new() }
    }

    /// Returns whether a packet of `size` bytes fits.
    #[inline]
    pub const fn admits(&self, size: u32) -> bool {
        self.limit.admits(self.backlog, size)
    }

    /// Counts an arrival, which is stored unless its verdict is a drop. Returns the verdict.
    #[inline]
    pub fn count_arrival(&mut self, verdict: Verdict, size: u32) -> Verdict {
        self.stats.count_arrival(verdict, size);
        if !matches!(verdict, Verdict::Drop(_)) {
            self.backlog.add(size);
        }
        verdict
    }

    /// Counts a packet that goes to the link, and returns it.
    #[inline]
    pub fn count_departure(&mut self, departure: Departure<P>) -> Departure<P> {
        self.backlog.remove(departure.size);
        self.stats.count_departure(departure.size, departure.marked);
        departure
    }

    /// Counts a stored packet that is dropped, and keeps it for [`QueueCore::next_shed`].
    pub fn count_shed(&mut self, held: Held<P>, reason: DropReason) {
        self.backlog.remove(held.size);
        self.stats.count_shed(reason, held.size);
        self.pending.push(Shed { packet: held.packet, size: held.size, reason });
    }

    /// A packet that was shed and has not been reported yet, the last one first: the answer of [`Queue::shed`].
    ///
    /// [`Queue::shed`]: crate::Queue::shed
    #[inline]
    pub fn next_shed(&mut self) -> Option<Shed<P>> {
        self.pending.pop()
    }

    /// Counts a stored packet that leaves because the queue is reset, and hands it to `discard`.
    pub fn count_flushed(&mut self, held: Held<P>, discard: &mut dyn FnMut(P)) {
        self.backlog.remove(held.size);
        self.stats.flushed.add(held.size);
        discard(held.packet);
    }

    /// Counts all that is waiting as flushed.
    pub fn count_all_flushed(&mut self) {
        let Backlog { packets, bytes } = std::mem::take(&mut self.backlog);
        self.stats.flushed += Count { packets: packets.into(), bytes };
    }
}
