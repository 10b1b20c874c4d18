//! Measures: distributions, interval series, and the records of flows and queues.
//!
//! Measuring costs a few nanoseconds per packet: a delay is added to a histogram and two sums, a packet to the open
//! interval. Measures count within the measuring window. The totals of the whole run are counted as well, so that every
//! packet is accounted for.

mod backlog;
mod flow;
mod series;

pub use backlog::BacklogMeter;
pub(crate) use backlog::SmallBacklogMeter;
pub use flow::{DelayRecord, FlowRecord, FlowTotals};
pub(crate) use flow::{OwnDelays, Received, ReceivedRecord, RecordDelays, SentRecord};
pub use series::{FlowInterval, FlowSeries, QueueInterval};

use cutline_units::{Duration, Instant};

/// The part of a run that is measured: `from <= t < until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The end of the warm-up.
    pub from: Instant,
    /// The end of measuring.
    pub until: Instant,
}

impl Window {
    /// Returns whether `t` lies in the window.
    #[inline]
    pub fn contains(self, t: Instant) -> bool {
        self.from <= t && t < self.until
    }

    /// Returns whether all of `start..=end` lies in the window.
    #[inline]
    pub fn covers(self, start: Instant, end: Instant) -> bool {
        self.from <= start && end < self.until
    }

    /// Returns the length of the part of `start..end` that lies in the window.
    #[inline]
    pub fn overlap(self, start: Instant, end: Instant) -> Duration {
        end.min(self.until).saturating_since(start.max(self.from))
    }

    /// Returns the length of the window.
    pub fn length(self) -> Duration {
        self.until.saturating_since(self.from)
    }
}
