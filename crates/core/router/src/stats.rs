//! The counters of one direction of the router, in frames and in bytes as the port shows them.
//!
//! At any time received = sent + dropped + queued. Here dropped is the sum over [`Loss::ALL`], and queued are the frames that
//! wait for the link and those that wait for the port because their transmission has started.

use cutline_aqm::{Count, DropReason};
use cutline_units::{Duration, Hint, Histogram};

/// Number of hints with separate counters. A larger hint counts as the largest.
pub const HINTS: usize = 16;

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
    /// There was no memory for it.
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
    /// Total time by which the schedule has slipped because the router was woken too late.
    pub slipped: Duration,
    departure_error: Histogram,
}

/// The counters of reserved flows. At any time conforming = departed + dropped + those that wait in the reserved class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservedStats {
    /// Frames that conformed to their bucket.
    pub conforming: Count,
    /// Frames that did not, or found no room in the reserved class. They went into the queue.
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

/// The counters of the frames with one hint that were not reserved.
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

    /// Returns what the reason means, for the documentation of statistics.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Early => "Dropped by the AQM, by its drop probability or by TSQ's.",
            Self::Overflow => "The queue was full.",
            Self::Oversize => "Longer than the outgoing interface can take: its MTU and a tag.",
            Self::Runt => "Too short to have an Ethernet header.",
            Self::Unsent => "Not taken by the outgoing interface: it is down, or its own queue is full.",
            Self::Memory => "There was no memory for it.",
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
}

impl ShaperStats {
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
        let stats = &mut self.by_hint[lane(hint)];
        stats.departed.add(length as u32);
        stats.waited += waited;
        stats.longest_wait = stats.longest_wait.max(waited);
    }
}

#[inline]
fn lane(hint: Hint) -> usize {
    hint.lane().min(HINTS - 1)
}
