//! Options of a shaper.

use crate::Error;
use cutline_units::Duration;

/// Division of an interface's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaperOptions {
    /// Bytes that each packet takes on the link in addition to those that the kernel counts, which are the IP packet and the Ethernet
    /// header. 24 on Ethernet at its own rate (preamble, checksum, gap); 0 where the rate is one of such frames.
    pub overhead: u16,
    /// Largest waiting time of best-effort packets where nothing is reserved: the fifo holds the packets that
    /// the link sends in this time, and at least 10.
    pub best_effort_delay: Duration,
    /// Largest waiting time of a reservation's excess in addition to its bucket, at the reserved rate; the
    /// fifo has room for at least 10 packets, which is TCP's initial window.
    pub excess_delay: Duration,
    /// Weight of best effort relative to the excess of all reservations together, while both wait; 1 to 64.
    pub best_effort_weight: u32,
    /// True if a discipline of another process is replaced. It is not restored.
    pub replace: bool,
}

impl Default for ShaperOptions {
    /// Fifos of 50 ms for best effort and 100 ms for excess, eight times as much for best effort as for excess, and nothing of others is
    /// replaced.
    fn default() -> Self {
        Self {
            overhead: 0,
            best_effort_delay: Self::BEST_EFFORT_DELAY,
            excess_delay: Duration::from_millis(100),
            best_effort_weight: 8,
            replace: false,
        }
    }
}

impl ShaperOptions {
    /// The default for best effort: a TCP connection over 50 ms keeps the link busy, and a call beside it stays well within the 150 ms one way
    /// that people do not notice (ITU-T G.114).
    pub const BEST_EFFORT_DELAY: Duration = Duration::from_millis(50);

    pub(super) fn validate(&self) -> Result<(), Error> {
        if !(1..=64).contains(&self.best_effort_weight) {
            return Err(Error::invalid("best_effort_weight", self.best_effort_weight, "1 to 64"));
        }
        Ok(())
    }
}
