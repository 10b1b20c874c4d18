//! The receiving end: reassembly, acknowledgements now or delayed, the echo of timestamps and of congestion.
//!
//! Each segment out of order, and each that fills a hole, is acknowledged at once (RFC 5681 4.2). In order,
//! and with [`Params::delayed_ack`] set, every second segment is, or the first after the delay. A mark (CE)
//! sets ECE on all acknowledgements until a segment says CWR (RFC 3168 6.1.3). The timestamp echoed is that
//! of the last segment that began at or before the last acknowledgement (RFC 7323 4.3), so a delayed
//! acknowledgement makes the sample longer, never shorter.
//!
//! The buffer has no end: the sender's [`Params::max_window`] stands for the window it would advertise.

use std::sync::Arc;

use cutline_units::Instant;

use super::{Ack, Params, SackBlocks, Segment};

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Segments that arrived.
    pub segments: u64,
    /// Of them, those that brought nothing new.
    pub duplicates: u64,
    /// Of them, those that arrived beyond a hole.
    pub out_of_order: u64,
    /// Of them, those marked by a router.
    pub marked: u64,
}

/// The receiving end of one connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// All below has arrived.
    next: u64,
    last_ack_sent: u64,
    /// `TS.Recent` of RFC 7323.
    echo: Instant,
    /// When a delayed acknowledgement leaves.
    deadline: Instant,
    /// What has arrived beyond `next`, the most recent range first, disjoint and not touching.
    beyond: Vec<(u64, u64)>,
    ece: bool,
    fin_arrived: bool,
    /// The sender answers marks by their share.
    echoes_each_mark: bool,
    params: Arc<Params>,
    stats: ReceiverStats,
}

impl Receiver {
    /// A connection that expects its first byte. `params` are the sender's.
    pub fn new(params: &Arc<Params>) -> Self {
        Self {
            next: 0,
            last_ack_sent: 0,
            echo: Instant::ZERO,
            deadline: Instant::FAR_FUTURE,
            beyond: Vec::new(),
            ece: false,
            fin_arrived: false,
            echoes_each_mark: params.algorithm.is_scalable(),
            params: Arc::clone(params),
            stats: ReceiverStats::default(),
        }
    }

    /// A segment has arrived, marked by a router if `ce`. `None`: the acknowledgement is delayed.
    #[inline]
    pub fn on_segment(&mut self, now: Instant, segment: &Segment, ce: bool) -> Option<Ack> {
        self.stats.segments += 1;
        // What is held back is in order, so its acknowledgement has no SACK blocks.
        let held_back = Ack { ack: self.next, echo: self.echo, sack: SackBlocks::NONE, ece: self.ece };
        // Without a mark, now or before, there is nothing to echo.
        let release = (ce | self.ece) && self.note_congestion(segment.cwr, ce);
        match self.take(now, segment) {
            None if release => Some(held_back),
            ack => ack,
        }
    }

    #[inline]
    fn take(&mut self, now: Instant, segment: &Segment) -> Option<Ack> {
        if segment.seq <= self.last_ack_sent {
            // RFC 7323 4.3 (2)
            self.echo = self.echo.max(segment.sent_at);
        }
        let in_order = segment.seq == self.next && self.beyond.is_empty();
        if in_order {
            self.next = segment.end();
            self.fin_arrived |= segment.fin;
        } else {
            self.take_out_of_order(*segment);
        }
        if in_order && self.may_delay(now) {
            return None;
        }
        Some(self.acknowledge())
    }

    /// When a delayed acknowledgement is due.
    #[inline]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// It is `now`: the delayed acknowledgement, if it is due.
    pub fn on_deadline(&mut self, now: Instant) -> Option<Ack> {
        (now >= self.deadline).then(|| self.acknowledge())
    }

    /// What is set for the connection.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Bytes that have arrived in order (FIN not counted).
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.next - u64::from(self.is_finished())
    }

    /// Whether everything, with FIN, has arrived.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.fin_arrived && self.beyond.is_empty()
    }

    /// What was counted so far.
    pub const fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Sets the echo of marks to the state after this segment. Returns whether an acknowledgement that is held back must
    /// leave now, with the state before.
    ///
    /// A mark starts the echo and CWR ends it (RFC 3168 section 6.1.3). DCTCP echoes the mark of each segment: when the
    /// mark changes while an acknowledgement is held back, that acknowledgement leaves at once with the old state (RFC 8257
    /// section 3.2). When the segment is also out of order, only its own acknowledgement leaves, with the new state.
    #[cold]
    fn note_congestion(&mut self, cwr: bool, ce: bool) -> bool {
        self.stats.marked += u64::from(ce);
        let marked = ce && self.params.ecn.is_capable();
        if !self.echoes_each_mark {
            self.ece = marked || (self.ece && !cwr);
            return false;
        }
        let release = marked != self.ece && self.deadline != Instant::FAR_FUTURE;
        if release {
            self.deadline = Instant::FAR_FUTURE;
            self.last_ack_sent = self.next;
        }
        self.ece = marked;
        release
    }

    /// RFC 5681 4.2: at least every second segment, and within the delay.
    #[inline]
    fn may_delay(&mut self, now: Instant) -> bool {
        let Some(delay) = self.params.delayed_ack else {
            return false;
        };
        let first = self.deadline == Instant::FAR_FUTURE;
        if first {
            self.deadline = now.saturating_add(delay);
        }
        first
    }

    #[inline]
    fn acknowledge(&mut self) -> Ack {
        self.deadline = Instant::FAR_FUTURE;
        self.last_ack_sent = self.next;
        let sack = if self.beyond.is_empty() || !self.params.sack {
            SackBlocks::NONE
        } else {
            self.held_blocks().by_block()
        };
        Ack { ack: self.next, echo: self.echo, sack, ece: self.ece }
    }

    #[cold]
    fn held_blocks(&self) -> SackBlocks {
        SackBlocks::from_ranges(self.next, self.beyond.iter().copied())
    }

    /// Takes a segment that is old, lies beyond a hole, or fills one.
    // By value, so that only this path needs the segment in memory.
    #[cold]
    fn take_out_of_order(&mut self, segment: Segment) {
        let (start, end) = (segment.seq, segment.end());
        self.fin_arrived |= segment.fin;
        if end <= self.next || self.beyond.iter().any(|&(from, to)| from <= start && end <= to) {
            self.stats.duplicates += 1;
        } else if start > self.next {
            self.stats.out_of_order += 1;
            self.hold(start, end);
        } else {
            self.next = end;
            self.deliver_held();
        }
    }

    /// Keeps a range beyond a hole, joined with what it touches, as the most recent (RFC 2018 4).
    fn hold(&mut self, mut start: u64, mut end: u64) {
        self.beyond.retain(|&(from, to)| {
            let touches = from <= end && start <= to;
            if touches {
                (start, end) = (start.min(from), end.max(to));
            }
            !touches
        });
        self.beyond.insert(0, (start, end));
    }

    /// Moves `next` over what is held and no longer beyond a hole.
    fn deliver_held(&mut self) {
        while let Some(at) = self.beyond.iter().position(|&(from, _)| from <= self.next) {
            let (_, to) = self.beyond.remove(at);
            self.next = self.next.max(to);
        }
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
