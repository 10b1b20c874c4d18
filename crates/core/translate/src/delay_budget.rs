//! Division of the longest acceptable delay.

use crate::path::Path;
use cutline_quality::spec::Specification;
use cutline_units::{Duration, Rate};

/// Number of equal shares. One goes to each place where data may wait: the sender's buffer, a queue of the
/// path, the spreading of a message over time. The others are for delays that cannot be set here: further queues,
/// the codec, the play-out buffer, the receiving host. With eight shares an audio conference over the TSQ
/// paper's path gets hint 6, the best in TSQ figure 10.
pub(crate) const SHARES: u64 = 8;

/// Time that a host may take to wake a sender, and an interface to report that a packet has left. A sender's
/// buffer that holds less would limit the throughput.
const WAKE_UP: Duration = Duration::from_millis(2);

/// The longest acceptable delay of a direction, and the rest that the path leaves of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayBudget {
    /// The longest acceptable one-way delay.
    pub(crate) limit: Duration,
    /// Share of one place: an eighth of the delay that propagation leaves.
    pub(crate) share: Duration,
}

impl DelayBudget {
    /// The budget of a specification on a path; `None` where any delay is acceptable.
    pub(crate) fn new(spec: &Specification, path: &Path) -> Option<Self> {
        let limit = spec.max_delay?;
        Some(Self { limit, share: limit.saturating_sub(path.propagation()) / SHARES })
    }

    /// Returns the amount of data that may wait in the sender at this rate, B, and the reason.
    pub(crate) fn in_the_sender(&self, rate: Rate, path: &Path) -> (u64, String) {
        if self.share < WAKE_UP {
            let why = format!(
                "the data that leaves at {rate} within {WAKE_UP}, which a host may take to wake a sender"
            );
            return (rate.bytes_in(WAKE_UP).get(), why);
        }
        let why = format!("the data that leaves at {rate} within {}, {}", self.share, self.because(path));
        (rate.bytes_in(self.share).get(), why)
    }

    /// Returns the source of the share, as part of a reason.
    pub(crate) fn because(&self, path: &Path) -> String {
        let known = if path.rtt.is_some() { "" } else { ", which are assumed" };
        format!(
            "an eighth of what max-delay ({}) leaves after a propagation of {}{known}",
            self.limit,
            path.propagation()
        )
    }
}
