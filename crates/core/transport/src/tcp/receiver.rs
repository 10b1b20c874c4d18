//! The receiving end of TCP: reassembly, immediate and delayed acknowledgements, the echo of timestamps and of congestion.
//!
//! The receiver acknowledges at once each segment that is out of order or fills a hole (RFC 5681 section 4.2). It
//! acknowledges every segment in order, too, unless [`Params::delayed_ack`] is set: then every second segment, or the
//! first after the delay. A mark (CE) sets ECE on all acknowledgements until a segment with CWR arrives
//! (RFC 3168 section 6.1.3). The echoed timestamp is that of the last segment that began at or before the last
//! acknowledgement (RFC 7323 section 4.3), so a delayed acknowledgement makes the sample longer, never shorter.
//!
//! The buffer is unlimited. The sender's [`Params::max_window`] is the window that a receiver would advertise.

use std::sync::Arc;

use cutline_units::Instant;

use super::{Ack, Params, SackBlocks, Segment};

/// The counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Segments that a router marked.
    pub marked: u64,
}

/// The receiving end of one connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Everything below has arrived.
    next: u64,
    /// The timestamp to echo: `TS.Recent` of RFC 7323 section 4.3.
    echo: Instant,
    /// Time at which a delayed acknowledgement leaves.
    deadline: Instant,
    /// The ranges that have arrived beyond `next`; `None` without a hole, as most of the time.
    beyond: Option<Box<Beyond>>,
    /// The bytes in order whose acknowledgement is delayed, those of one segment: the last acknowledgement was that of `next` less these.
    unacknowledged: u32,
    ece: bool,
    fin_arrived: bool,
    /// The sender answers marks by their share.
    echoes_each_mark: bool,
    params: Arc<Params>,
    stats: ReceiverStats,
}

/// Ranges that have arrived beyond a hole. They neither overlap nor touch.
#[derive(Clone, Debug)]
enum Beyond {
    /// The only range, as behind most holes.
    One((u64, u64)),
    /// At least one, the most recent first.
    Several(Vec<(u64, u64)>),
}

impl Receiver {
    /// Creates a connection that expects its first byte. `params` are the sender's.
    pub fn new(params: &Arc<Params>) -> Self {
        Self {
            next: 0,
            echo: Instant::ZERO,
            deadline: Instant::FAR_FUTURE,
            beyond: None,
            unacknowledged: 0,
            ece: false,
            fin_arrived: false,
            echoes_each_mark: params.algorithm.is_scalable(),
            params: Arc::clone(params),
            stats: ReceiverStats::default(),
        }
    }

    /// Handles a segment, which a router marked if `ce`. Returns the acknowledgement; `None` if it is delayed.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined, the acknowledgement of a segment in order stays in registers"
    )]
    pub fn on_segment(&mut self, now: Instant, segment: &Segment, ce: bool) -> Option<Ack> {
        if self.is_next(segment.seq, ce) {
            self.take_in_order(now, segment)
        } else {
            self.take_any(now, *segment, ce)
        }
    }

    /// Returns whether a segment that begins at `seq` continues the data without a hole, and nothing is echoed: there is no mark, now or before.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as on_segment")]
    pub(crate) fn is_next(&self, seq: u64, ce: bool) -> bool {
        seq == self.next && self.beyond.is_none() && !(ce | self.ece)
    }

    /// Takes a segment that continues the data without a hole. Returns the acknowledgement; `None` if it is delayed.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as on_segment")]
    fn take_in_order(&mut self, now: Instant, segment: &Segment) -> Option<Ack> {
        self.note_departure(segment);
        self.next = segment.end();
        self.fin_arrived |= segment.fin;
        if self.may_delay(now) {
            // A segment has less than 2^32 bytes, FIN included.
            self.unacknowledged = (segment.end() - segment.seq) as u32;
            return None;
        }
        self.deadline = Instant::FAR_FUTURE;
        self.unacknowledged = 0;
        Some(self.ack_with(SackBlocks::NONE))
    }

    /// Notes the departure time of a segment that does not begin beyond the last acknowledgement, for the echo.
    #[inline]
    fn note_departure(&mut self, segment: &Segment) {
        if segment.seq <= self.next - u64::from(self.unacknowledged) {
            // RFC 7323 section 4.3, rule 2
            self.echo = self.echo.max(segment.sent_at);
        }
    }

    /// Handles any segment.
    // By value, so that only this path needs the segment in memory.
    #[cold]
    #[inline(never)]
    fn take_any(&mut self, now: Instant, segment: Segment, ce: bool) -> Option<Ack> {
        // A delayed acknowledgement covers segments in order, so it has no SACK blocks.
        let delayed = self.ack_with(SackBlocks::NONE);
        let release = (ce | self.ece) && self.note_congestion(segment.cwr, ce);
        let ack = if segment.seq == self.next && self.beyond.is_none() {
            self.take_in_order(now, &segment)
        } else {
            self.take_out_of_order(&segment);
            Some(self.acknowledge())
        };
        if release { ack.or(Some(delayed)) } else { ack }
    }

    /// Returns the time at which a delayed acknowledgement is due.
    #[inline]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the delayed acknowledgement if it is due.
    pub fn on_deadline(&mut self, now: Instant) -> Option<Ack> {
        (now >= self.deadline).then(|| self.acknowledge())
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the number of bytes that have arrived in order, without FIN.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.next - u64::from(self.is_finished())
    }

    /// Returns whether everything has arrived, including FIN.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.fin_arrived && self.beyond.is_none()
    }

    /// Returns a number from all over the state; see [`crate::endpoint::Sender::read_ahead`].
    #[inline]
    pub(crate) fn read_ahead(&self) -> u64 {
        self.next ^ self.deadline.as_nanos() ^ self.stats.marked
    }

    /// Returns a number from the ranges beyond a hole, if there is one; see [`crate::endpoint::Sender::read_ahead`].
    #[inline]
    pub(crate) fn read_ahead_of_ranges(&self) -> u64 {
        self.held().first().map_or(0, |range| range.0)
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Updates the echo of marks. Returns whether a delayed acknowledgement must leave now, with the previous echo.
    ///
    /// A mark begins the echo and CWR ends it (RFC 3168 section 6.1.3). With DCTCP the echo is the mark of each segment. If
    /// it changes while an acknowledgement is delayed, that acknowledgement leaves at once with the previous echo
    /// (RFC 8257 section 3.2). If the segment is also out of order, only its own acknowledgement leaves, with the new echo.
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
            self.unacknowledged = 0;
        }
        self.ece = marked;
        release
    }

    /// Returns whether the acknowledgement may be delayed: it leaves with the second segment or after the delay
    /// (RFC 5681 section 4.2).
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
        self.unacknowledged = 0;
        let sack = if self.beyond.is_none() || !self.params.sack {
            SackBlocks::NONE
        } else {
            self.held_blocks().by_block()
        };
        self.ack_with(sack)
    }

    /// Returns an acknowledgement with these blocks.
    #[inline]
    fn ack_with(&self, sack: SackBlocks) -> Ack {
        let marked = self.stats.marked as u32;
        Ack { ack: self.next, echo: self.echo, sack, ece: self.ece, marked }
    }

    #[cold]
    fn held_blocks(&self) -> SackBlocks {
        SackBlocks::from_ranges(self.next, self.held().iter().copied())
    }

    /// Returns the ranges beyond a hole.
    fn held(&self) -> &[(u64, u64)] {
        match self.beyond.as_deref() {
            None => &[],
            Some(Beyond::One(range)) => std::slice::from_ref(range),
            Some(Beyond::Several(ranges)) => ranges,
        }
    }

    /// Takes a segment that is old, beyond a hole, or fills one.
    fn take_out_of_order(&mut self, segment: &Segment) {
        self.note_departure(segment);
        let (start, end) = (segment.seq, segment.end());
        self.fin_arrived |= segment.fin;
        let is_old = end <= self.next || self.held().iter().any(|&(from, to)| from <= start && end <= to);
        if is_old {
            return;
        }
        if start <= self.next {
            self.next = end;
            self.deliver_held();
        } else if let Some(beyond) = &mut self.beyond {
            beyond.hold(start, end);
        } else {
            self.beyond = Some(Box::new(Beyond::One((start, end))));
        }
    }

    /// Moves `next` over the ranges that are no longer beyond a hole.
    fn deliver_held(&mut self) {
        let Some(beyond) = &mut self.beyond else { return };
        let is_empty = match &mut **beyond {
            Beyond::One((from, to)) => {
                let is_reached = *from <= self.next;
                self.next = if is_reached { self.next.max(*to) } else { self.next };
                is_reached
            }
            Beyond::Several(ranges) => {
                while let Some(at) = ranges.iter().position(|&(from, _)| from <= self.next) {
                    let (_, to) = ranges.remove(at);
                    self.next = self.next.max(to);
                }
                ranges.is_empty()
            }
        };
        if is_empty {
            // Gives the memory back: most connections of a large network have no hole.
            self.beyond = None;
        }
    }
}

impl Beyond {
    /// Keeps a range, joined with the ranges that it touches, as the most recent (RFC 2018 section 4).
    fn hold(&mut self, start: u64, end: u64) {
        match self {
            Self::One((from, to)) if *from <= end && start <= *to => {
                (*from, *to) = (start.min(*from), end.max(*to));
            }
            Self::One(range) => *self = Self::Several(vec![(start, end), *range]),
            Self::Several(ranges) => hold_among(ranges, start, end),
        }
    }
}

/// Puts a range before others, joined with those that it touches.
fn hold_among(ranges: &mut Vec<(u64, u64)>, mut start: u64, mut end: u64) {
    ranges.retain(|&(from, to)| {
        let touches = from <= end && start <= to;
        if touches {
            (start, end) = (start.min(from), end.max(to));
        }
        !touches
    });
    if ranges.len() == ranges.capacity() {
        // There are few in most cases, where a vector takes room for twice as many.
        ranges.reserve_exact(ranges.len() / 8 + 1);
    }
    ranges.insert(0, (start, end));
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
