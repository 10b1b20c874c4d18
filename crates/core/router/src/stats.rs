//! The counters of one direction of the router, in frames and in bytes as the port shows them.
//!
//! At any time received = sent + dropped + queued. Here dropped is the sum over [`Loss::ALL`], and queued are the frames that
//! wait for the link and those that wait for the port because their transmission has started.

use cutline_aqm::{Count, DropReason};
use cutline_units::{Duration, Hint, Histogram};

/// Number of hints with separate counters. A larger hint counts as the largest.
pub const HINTS: usize = 16;

/// Largest departure error for which a frame allocates nothing: a host that stands still for longer has no schedule to keep.
const MOST_LATE: Duration = Duration::from_secs(10);

/// Reason why a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The AQM dropped it, by its drop probability or by TSQ's.
    Early,
    /// The queue was full.
    Overflow,
    /// Longer than the outgoing port can take.
    Oversize,
    /// Too short to have an Ethernet header.
    Runt,
    /// The outgoing port lost it.
    Unsent,
    /// No memory for it.
    Memory,
}

/// The counters of one direction. They only grow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShaperStats {
    /// Frames that arrived.
    pub received: Count,
    /// Frames that the outgoing port accepted.
    pub sent: Count,
    /// Frames that arrived and were not IP, or incomplete. They pass as unmarked frames.
    pub not_ip: Count,
    /// Frames that this queue marked with CE.
    pub marked: Count,
    /// Frames whose code point was changed.
    pub remarked: Count,
    /// Frames of reserved flows.
    pub reserved: ReservedStats,
    lost: [Count; Loss::ALL.len()],
    by_hint: [HintCounters; HINTS],
    waits: WaitCounts,
    /// Total time by which the schedule has slipped because the router was woken too late.
    pub slipped: Duration,
    departure_error: Histogram,
}

/// The counters of reserved flows. At any time conforming = departed + dropped + those that wait in the reserved class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservedStats {
    /// Frames that conformed to their bucket.
    pub conforming: Count,
    /// Frames that exceeded their token bucket, or found no room in the reserved class, and went into the queue.
    pub excess: Count,
    /// Conforming frames that were lost, because there was no memory for them.
    pub dropped: Count,
    /// Conforming frames whose transmission started.
    pub departed: Count,
    /// Sum of the sojourn times of the frames that departed.
    pub waited: Duration,
    /// The longest of these sojourn times.
    pub longest_wait: Duration,
}

/// Counters of frames in the queue: of those with one hint that were not reserved, or of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintCounters {
    /// Frames whose transmission started.
    pub departed: Count,
    /// Frames that the queue dropped.
    pub dropped: Count,
    /// Sum of the sojourn times of the frames that departed.
    pub waited: Duration,
    /// The longest of these sojourn times.
    pub longest_wait: Duration,
}

/// Waiting times of frames in the queue, by buckets whose bounds are powers of two. It is a counter: the counts of an interval are the
/// difference of two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    counts: [u64; Self::BUCKETS],
    sum: Duration,
}

impl WaitCounts {
    /// Number of buckets: those up to 2^23 us (8.4 s), and one for longer waits.
    pub const BUCKETS: usize = 25;

    /// Returns the upper bounds of all buckets but the last one: 1, 2, 4, ... us.
    pub fn bounds() -> impl Iterator<Item = Duration> {
        (0..Self::BUCKETS as u32 - 1).map(|bucket| Duration::from_micros(1 << bucket))
    }

    /// Returns the number of frames in each bucket: a bucket has the waits below its bound that are no shorter than the bound before it.
    pub const fn counts(&self) -> &[u64; Self::BUCKETS] {
        &self.counts
    }

    /// Returns the sum of all waiting times.
    pub const fn sum(&self) -> Duration {
        self.sum
    }

    #[inline]
    fn add(&mut self, waited: Duration) {
        self.counts[Self::bucket_of(waited)] += 1;
        self.sum += waited;
    }

    /// Returns the bucket of a waiting time.
    #[inline]
    pub(crate) fn bucket_of(waited: Duration) -> usize {
        let us = waited.as_nanos() / 1000;
        let bucket = (u64::BITS - us.leading_zeros()) as usize;
        bucket.min(Self::BUCKETS - 1)
    }
}

/// The number of recorded departure errors at which the histogram's counts are halved. A bucket holds twice as many.
const ERRORS: u64 = 1 << 31;

impl Loss {
    /// All reasons, in the order of the counters.
    pub const ALL: [Self; 6] =
        [Self::Early, Self::Overflow, Self::Oversize, Self::Runt, Self::Unsent, Self::Memory];

    /// Returns the reason's name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Overflow => "overflow",
            Self::Oversize => "oversize",
            Self::Runt => "runt",
            Self::Unsent => "unsent",
            Self::Memory => "memory",
        }
    }

    /// Returns the meaning of the reason, for the documentation of statistics.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Early => "Dropped by the AQM, by its drop probability or by TSQ's.",
            Self::Overflow => "The queue was full.",
            Self::Oversize => "Longer than the outgoing interface can take: its MTU and a tag.",
            Self::Runt => "Too short to have an Ethernet header.",
            Self::Unsent => "Not taken by the outgoing interface: it is down, or its own queue is full.",
            Self::Memory => "No memory for it.",
        }
    }
}

impl From<DropReason> for Loss {
    fn from(reason: DropReason) -> Self {
        match reason {
            DropReason::Early => Self::Early,
            DropReason::Overflow => Self::Overflow,
        }
    }
}

impl ReservedStats {
    /// Returns the mean sojourn time; zero before the first departure.
    pub fn mean_wait(&self) -> Duration {
        self.waited / self.departed.packets.max(1)
    }

    #[inline]
    pub(crate) fn depart(&mut self, length: usize, waited: Duration) {
        self.departed.add(length as u32);
        self.waited += waited;
        self.longest_wait = self.longest_wait.max(waited);
    }
}

impl HintCounters {
    /// Returns the mean sojourn time; zero before the first departure.
    pub fn mean_wait(&self) -> Duration {
        self.waited / self.departed.packets.max(1)
    }

    #[inline]
    pub(crate) fn depart(&mut self, length: usize, waited: Duration) {
        self.departed.add(length as u32);
        self.waited += waited;
        self.longest_wait = self.longest_wait.max(waited);
    }
}

impl ShaperStats {
    /// Returns counters at zero, which allocate nothing for the frames that they count.
    pub(crate) fn new() -> Self {
        Self { departure_error: Histogram::with_room(MOST_LATE), ..Self::default() }
    }

    /// Returns the frames lost for a reason.
    pub const fn lost(&self, loss: Loss) -> Count {
        self.lost[loss as usize]
    }

    /// Returns the frames lost for any reason.
    pub fn dropped(&self) -> Count {
        self.lost.iter().fold(Count::default(), |mut sum, &count| {
            sum += count;
            sum
        })
    }

    /// Returns the counters of the frames with a hint.
    pub fn hint(&self, hint: Hint) -> &HintCounters {
        &self.by_hint[lane(hint)]
    }

    /// Returns the waiting times of the frames that left the queue, whatever their hint.
    pub const fn waits(&self) -> &WaitCounts {
        &self.waits
    }

    /// Returns the departure errors: for each frame, the time at which the port had accepted it minus the time at which its
    /// transmission was scheduled to start. Slips of the schedule are not included. After 2^31 frames, newer ones weigh
    /// more.
    pub const fn departure_error(&self) -> &Histogram {
        &self.departure_error
    }

    #[inline]
    pub(crate) fn hand_over(&mut self, length: usize, late: Duration) {
        self.sent.add(length as u32);
        self.departure_error.record(late);
        if self.departure_error.count() >= ERRORS {
            self.departure_error.halve();
        }
    }

    #[inline]
    pub(crate) fn lose(&mut self, loss: Loss, length: usize) {
        self.lost[loss as usize].add(length as u32);
    }

    #[inline]
    pub(crate) fn drop_queued(&mut self, loss: Loss, hint: Hint, length: usize) {
        self.lose(loss, length);
        self.by_hint[lane(hint)].dropped.add(length as u32);
    }

    #[inline]
    pub(crate) fn depart(&mut self, hint: Hint, length: usize, waited: Duration) {
        self.by_hint[lane(hint)].depart(length, waited);
        self.waits.add(waited);
    }
}

#[inline]
fn lane(hint: Hint) -> usize {
    hint.lane().min(HINTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_in_the_bucket_below_whose_bound_it_is() {
        let mut waits = WaitCounts::default();
        for (us, bucket) in [(0, 0), (1, 1), (3, 2), (4, 3), (1023, 10), (1 << 23, 24), (1 << 40, 24)] {
            let before = waits.counts[bucket];
            waits.add(Duration::from_micros(us));
            assert_eq!(waits.counts[bucket], before + 1, "{us} us");
            let bounds: Vec<_> = WaitCounts::bounds().collect();
            assert!(bounds.get(bucket).is_none_or(|bound| Duration::from_micros(us) < *bound), "{us} us");
        }
        assert_eq!(waits.sum, Duration::from_micros(1031 + (1 << 23) + (1 << 40)));
    }
}
