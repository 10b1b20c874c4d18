//! The scoreboard of RFC 6675 section 4: the data that the receiver has selectively acknowledged, the data that is therefore lost, how much
//! is still in the pipe, and which segment is sent next.
//!
//! `IsLost(S)` is true if more than `(DupThresh - 1) * SMSS` bytes above S are `SACKed`, or `DupThresh` discontiguous
//! ranges are. Both numbers only grow as S falls, so one boundary is enough: everything below `lost_below` that is not
//! `SACKed` is lost. Every function then walks over the holes between the ranges.
//!
//! A departure: in RFC 6675 section 5, step 4.3 sets `RescueRxt` to the end of the first retransmission. Here it is
//! undefined when recovery begins, so rule 4 of `NextSeg` may apply before that retransmission is acknowledged.

use super::SackBlocks;

/// Number of duplicate acknowledgements that mean a loss (RFC 5681 section 3.2).
pub(crate) const DUP_THRESH: u8 = 3;

/// The `SACKed` ranges above the cumulative acknowledgement, sorted and disjoint, and the variables of recovery.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    ranges: Vec<(u64, u64)>,
    /// Everything that is not `SACKed` below this is lost.
    lost_below: u64,
    /// `HighRxt`: the sequence number after the highest that was retransmitted in this recovery.
    high_rxt: u64,
    /// `RescueRxt`: a rescue retransmission is allowed when the acknowledgement is beyond this.
    rescue_rxt: Option<u64>,
    /// `pipe`: the estimate of the bytes in the network.
    pipe: u64,
}

/// A range to retransmit: a result of `NextSeg` other than new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resend {
    pub(crate) seq: u64,
    pub(crate) len: u64,
}

impl Scoreboard {
    /// Returns whether nothing is selectively acknowledged.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds the blocks of the acknowledgement `ack`, and removes the ranges below `una`. `mss` is the SMSS of `IsLost`.
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

    /// Returns the start of the highest range below which everything missing is lost; 0 if nothing is lost.
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

    /// Returns whether a byte that is not `SACKed` is lost: `IsLost` (RFC 6675 section 4).
    pub(crate) fn is_lost(&self, seq: u64) -> bool {
        seq < self.lost_below
    }

    /// Returns the number of bytes below `limit` that are `SACKed`.
    pub(crate) fn sacked_below(&self, limit: u64) -> u64 {
        self.ranges.iter().map(|&(start, end)| end.min(limit).saturating_sub(start)).sum()
    }

    /// Returns the next hole at or after `seq`. Its start is at least `seq`; the last hole has no end (`u64::MAX`).
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

    /// Begins recovery at `una` (RFC 6675 section 5, step 4).
    pub(crate) fn begin_recovery(&mut self, una: u64) {
        self.high_rxt = una;
        self.rescue_rxt = None;
    }

    /// Counts data that is neither `SACKed` nor lost, and retransmitted data: `SetPipe` (RFC 6675 section 4).
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

    /// Notes a retransmission of `bytes` that ends at `end` (RFC 6675 section 5, steps 4.3, C.2 and C.4).
    pub(crate) fn retransmitted(&mut self, end: u64, bytes: u64) {
        self.high_rxt = self.high_rxt.max(end);
        self.pipe += bytes;
    }

    /// Returns the first hole beyond `HighRxt` that is lost: rule 1 of `NextSeg`.
    pub(crate) fn lost_segment(&self, una: u64, mss: u64) -> Option<Resend> {
        self.unsacked_segment(una, mss).filter(|segment| self.is_lost(segment.seq))
    }

    /// Returns the first hole beyond `HighRxt` that has something `SACKed` above it: rule 3 of `NextSeg`.
    pub(crate) fn unsacked_segment(&self, una: u64, mss: u64) -> Option<Resend> {
        let (start, end) = self.hole_from(self.high_rxt.max(una));
        let highest = self.ranges.last().map_or(0, |range| range.1);
        (start < highest).then(|| Resend { seq: start, len: mss.min(end - start) })
    }

    /// Returns the last bytes that are outstanding and not `SACKed`, once per recovery: rule 4 of `NextSeg`.
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

    /// Returns the highest run of outstanding bytes that are not `SACKed`.
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
