//! The scoreboard of RFC 6675: what the receiver has selectively acknowledged, what that says is lost, how
//! much is still in the pipe, and which segment goes next.
//!
//! RFC 6675 defines `IsLost(S)` as: more than `(DupThresh - 1) * SMSS` bytes above S are `SACKed`, or
//! `DupThresh` discontiguous ranges are. Both only grow as S falls, so one number holds it all: everything
//! that is not `SACKed` below `lost_below` is lost. All questions are then a walk over the holes between ranges.

use super::SackBlocks;

/// RFC 5681's threshold: this many duplicates mean a loss.
pub(crate) const DUP_THRESH: u8 = 3;

/// `SACKed` ranges above the cumulative acknowledgement, sorted and disjoint, and recovery's own marks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    ranges: Vec<(u64, u64)>,
    /// Everything that is not `SACKed` below this is lost.
    lost_below: u64,
    /// `HighRxt`: the sequence number after the highest that was retransmitted in this recovery.
    high_rxt: u64,
    /// `RescueRxt`: a rescue retransmission is allowed once the acknowledgement is beyond it.
    rescue_rxt: Option<u64>,
    /// `pipe`: bytes thought to be in the network.
    pipe: u64,
}

/// What RFC 6675's `NextSeg` may answer besides new data: a range to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resend {
    pub(crate) seq: u64,
    pub(crate) len: u64,
}

impl Scoreboard {
    /// Whether nothing is selectively acknowledged.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Takes in the blocks of the acknowledgement `ack`, all below `una` being acknowledged already; `mss` is
    /// what `IsLost` counts in.
    #[inline(never)]
    pub(crate) fn update(&mut self, una: u64, ack: u64, sack: SackBlocks, mss: u64) {
        for (start, end) in sack.ranges(ack) {
            self.insert(start, end);
        }
        self.ranges.retain(|range| range.1 > una);
        self.lost_below = self.loss_boundary(mss);
    }

    fn insert(&mut self, mut start: u64, mut end: u64) {
        let first = self.ranges.partition_point(|range| range.1 < start);
        let mut past = first;
        while let Some(&(from, to)) = self.ranges.get(past).filter(|range| range.0 <= end) {
            start = start.min(from);
            end = end.max(to);
            past += 1;
        }
        self.ranges.splice(first..past, [(start, end)]);
    }

    /// The start of the highest range below which everything missing is lost; 0 when nothing is.
    fn loss_boundary(&self, mss: u64) -> u64 {
        let (mut bytes, mut count) = (0, 0);
        for &(start, end) in self.ranges.iter().rev() {
            bytes += end - start;
            count += 1;
            if count >= DUP_THRESH || bytes > u64::from(DUP_THRESH - 1) * mss {
                return start;
            }
        }
        0
    }

    /// `IsLost` (RFC 6675 section 4).
    pub(crate) fn is_lost(&self, seq: u64) -> bool {
        seq < self.lost_below
    }

    /// How many bytes below `limit` are `SACKed`.
    pub(crate) fn sacked_below(&self, limit: u64) -> u64 {
        self.ranges.iter().map(|&(start, end)| end.min(limit).saturating_sub(start)).sum()
    }

    /// The next hole at or after `seq`: its start, moved up to `seq`, and its end; the last hole is endless.
    pub(crate) fn hole_from(&self, seq: u64) -> (u64, u64) {
        let mut start = seq;
        for &(from, to) in &self.ranges {
            if start < from {
                return (start, from);
            }
            start = start.max(to);
        }
        (start, u64::MAX)
    }

    /// RFC 6675 section 5, step 4: recovery begins at `una`.
    pub(crate) fn begin_recovery(&mut self, una: u64) {
        self.high_rxt = una;
        self.rescue_rxt = None;
    }

    /// `SetPipe` (RFC 6675 section 4): what is neither `SACKed` nor lost, and what was sent again.
    pub(crate) fn set_pipe(&mut self, una: u64, high_data: u64) {
        let mut pipe = 0;
        let mut seq = una;
        while seq < high_data {
            let (start, end) = self.hole_from(seq);
            let (start, end) = (start.min(high_data), end.min(high_data));
            if !self.is_lost(start) {
                pipe += end - start;
            }
            pipe += end.min(self.high_rxt).saturating_sub(start);
            seq = end;
        }
        self.pipe = pipe;
    }

    pub(crate) fn pipe(&self) -> u64 {
        self.pipe
    }

    pub(crate) fn sent(&mut self, bytes: u64) {
        self.pipe += bytes;
    }

    /// RFC 6675 section 5, steps 4.3 and C.2: bytes below `end` were sent again.
    pub(crate) fn retransmitted(&mut self, end: u64, bytes: u64) {
        self.high_rxt = self.high_rxt.max(end);
        self.pipe += bytes;
    }

    /// `NextSeg` rule 1: the first hole beyond `HighRxt` that is lost.
    pub(crate) fn lost_segment(&self, una: u64, mss: u64) -> Option<Resend> {
        self.unsacked_segment(una, mss).filter(|segment| self.is_lost(segment.seq))
    }

    /// `NextSeg` rule 3: the first hole beyond `HighRxt` with something `SACKed` above it.
    pub(crate) fn unsacked_segment(&self, una: u64, mss: u64) -> Option<Resend> {
        let (start, end) = self.hole_from(self.high_rxt.max(una));
        let highest = self.ranges.last().map_or(0, |range| range.1);
        (start < highest).then(|| Resend { seq: start, len: mss.min(end - start) })
    }

    /// `NextSeg` rule 4: once a recovery, the last bytes that are outstanding and not `SACKed`.
    pub(crate) fn rescue_segment(
        &mut self,
        una: u64,
        high_data: u64,
        recover: u64,
        mss: u64,
    ) -> Option<Resend> {
        let (start, end) = self.last_hole(una, high_data)?;
        if self.rescue_rxt.is_some_and(|rescue| una <= rescue) {
            return None;
        }
        self.rescue_rxt = Some(recover);
        let len = mss.min(end - start);
        Some(Resend { seq: end - len, len })
    }

    /// The highest run of outstanding bytes that are not `SACKed`.
    fn last_hole(&self, una: u64, high_data: u64) -> Option<(u64, u64)> {
        let mut end = high_data;
        for &(from, to) in self.ranges.iter().rev() {
            if to < end {
                return Some((to, end));
            }
            end = from;
        }
        (una < end).then_some((una, end))
    }
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
