//! What one direction of the router counts, in frames and in bytes as the port shows them.
//!
//! Always: received = sent + dropped + queued, where dropped is the sum over [`Loss::ALL`], and queued what waits for
//! the link or, its sending begun, for the port.

use cutline_aqm::{Count, DropReason};
use cutline_units::{Duration, Hint, Histogram};

/// How many hints are counted apart; a larger one counts as the largest.
pub const HINTS: usize = 16;

/// Why a frame did not come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The AQM's probability, or what TSQ made of it, came up.
    Early,
    /// The queue was full.
    Overflow,
    /// Longer than the outgoing port can take.
    Oversize,
    /// Too short to have an Ethernet header.
    Runt,
    /// The outgoing port did not take it.
    Unsent,
}

/// The counters of one direction. They only grow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShaperStats {
    /// Came in.
    pub received: Count,
    /// Went out.
    pub sent: Count,
    /// Came in, and were not IP or not whole: passed as unmarked.
    pub not_ip: Count,
    /// Marked with CE by this queue.
    pub marked: Count,
    /// Given another code point.
    pub remarked: Count,
    lost: [Count; Loss::ALL.len()],
    by_hint: [HintStats; HINTS],
    /// How much of its schedule the router has given up because it was woken too late.
    pub slipped: Duration,
    departure_error: Histogram,
}

/// What the frames of one hint met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintStats {
    /// Their sending began.
    pub departed: Count,
    /// Dropped by the queue.
    pub dropped: Count,
    /// The sum of the departed ones' sojourn times.
    pub waited: Duration,
    /// The longest of these.
    pub longest_wait: Duration,
}

/// How many departure errors are remembered at most, before half of them are forgotten; a histogram's bucket holds
/// twice as many.
const ERRORS: u64 = 1 << 31;

impl Loss {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 5] = [Self::Early, Self::Overflow, Self::Oversize, Self::Runt, Self::Unsent];

    /// The reason's name, as statistics spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Overflow => "overflow",
            Self::Oversize => "oversize",
            Self::Runt => "runt",
            Self::Unsent => "unsent",
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

impl HintStats {
    /// The mean sojourn time, zero before the first departure.
    pub fn mean_wait(&self) -> Duration {
        self.waited / self.departed.packets.max(1)
    }
}

impl ShaperStats {
    /// Frames lost for a reason.
    pub const fn lost(&self, loss: Loss) -> Count {
        self.lost[loss as usize]
    }

    /// Frames lost for any reason.
    pub fn dropped(&self) -> Count {
        self.lost.iter().fold(Count::default(), |mut sum, &count| {
            sum += count;
            sum
        })
    }

    /// What the frames of a hint met.
    pub fn of_hint(&self, hint: Hint) -> &HintStats {
        &self.by_hint[lane(hint)]
    }

    /// How late each frame was handed to the port: the time when the port had taken it, less that at which its sending
    /// was to begin. What a slipped schedule has given up is not in it. Of more than 2^31 frames the newer ones weigh
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
