//! The window of RFC 5681: one segment more each round trip, half at a loss.
//!
//! Congestion avoidance counts the bytes acknowledged and adds one mss whenever a whole window of them has
//! come in (RFC 5681 3.1, the recommended byte counting), or a little with each acknowledgement (eq. 3). After a loss, `ssthresh = max(flight / 2, 2 mss)`
//! (eq. 4). Worked: at 10 segments of 1000 B, the tenth acknowledgement makes it 11; a loss with 11,000 B
//! outstanding leaves 5,500 B.

use cutline_units::Instant;

use super::Avoidance;
use super::congestion::{Acked, CongestionControl, Window};

/// What is remembered: the bytes acknowledged towards the next segment of growth.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewReno {
    acked_bytes: u64,
    avoidance: Avoidance,
}

impl NewReno {
    /// A window that has not grown yet.
    pub const fn new(avoidance: Avoidance) -> Self {
        Self { acked_bytes: 0, avoidance }
    }
}

impl CongestionControl for NewReno {
    #[inline]
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        if self.avoidance == Avoidance::Acknowledgements {
            // RFC 5681 eq. 3
            window.cwnd += (mss * mss / window.cwnd).max(1);
            return;
        }
        self.acked_bytes += acked.bytes;
        if self.acked_bytes >= window.cwnd {
            // RFC 5681 3.1: at most one segment a round trip.
            self.acked_bytes -= window.cwnd;
            window.cwnd += mss;
        }
    }

    fn congested(&mut self, _window: &Window, flight: u64, mss: u64) -> u64 {
        self.acked_bytes = 0;
        // RFC 5681 eq. 4
        (flight / 2).max(2 * mss)
    }

    fn timed_out(&mut self) {
        self.acked_bytes = 0;
    }

    fn application_limited(&mut self, _now: Instant) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Duration;

    #[test]
    fn a_window_of_acknowledgements_adds_a_segment() {
        let mut newreno = NewReno::default();
        let mut window = Window { cwnd: 10_000, ssthresh: 10_000 };
        let acked = Acked { bytes: 1000, now: Instant::ZERO, srtt: Duration::ZERO };
        for _ in 0..9 {
            newreno.avoid(&mut window, &acked, 1000);
        }
        assert_eq!(window.cwnd, 10_000);
        newreno.avoid(&mut window, &acked, 1000);
        // RFC 5681 3.1
        assert_eq!(window.cwnd, 11_000);
        // RFC 5681 eq. 4
        assert_eq!(newreno.congested(&window, 11_000, 1000), 5_500);
        assert_eq!(newreno.congested(&window, 3_000, 1000), 2_000);
    }

    #[test]
    fn every_acknowledgement_adds_its_part() {
        let mut newreno = NewReno::new(Avoidance::Acknowledgements);
        let mut window = Window { cwnd: 10_000, ssthresh: 10_000 };
        let acked = Acked { bytes: 1000, now: Instant::ZERO, srtt: Duration::ZERO };
        newreno.avoid(&mut window, &acked, 1000);
        // RFC 5681 eq. 3: 1000 * 1000 / 10,000, then / 10,100.
        assert_eq!(window.cwnd, 10_100);
        newreno.avoid(&mut window, &acked, 1000);
        assert_eq!(window.cwnd, 10_199);
    }
}
