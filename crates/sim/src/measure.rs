//! What is measured, and when: distributions, interval series, and the records of flows and queues.
//!
//! Measuring costs a few nanoseconds a packet: a delay goes into a histogram and two sums, a packet into the open
//! interval. Everything counts within the measuring window; the totals of the whole run are kept beside it, so
//! that packets can be accounted for to the last one.

mod backlog;
mod flow;
mod series;

pub use backlog::BacklogMeter;
pub use flow::{DelayRecord, FlowRecord, FlowTotals};
pub(crate) use flow::{Received, ReceivedRecord, SentRecord};
pub use series::{FlowInterval, FlowSeries, QueueInterval};

use cutline_units::{Duration, Instant};

/// The part of a run in which measures count: `from <= t < until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The end of the warm-up.
    pub from: Instant,
    /// The end of measuring.
    pub until: Instant,
}

impl Window {
    /// Whether `t` lies in the window.
    #[inline]
    pub fn contains(self, t: Instant) -> bool {
        self.from <= t && t < self.until
    }

    /// Whether all of `start..=end` lies in the window.
    #[inline]
    pub fn covers(self, start: Instant, end: Instant) -> bool {
        self.from <= start && end < self.until
    }

    /// How much of `start..end` lies in the window.
    #[inline]
    pub fn overlap(self, start: Instant, end: Instant) -> Duration {
        end.min(self.until).saturating_since(start.max(self.from))
    }

    /// How long the window is.
    pub fn length(self) -> Duration {
        self.until.saturating_since(self.from)
    }
}
