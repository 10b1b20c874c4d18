//! The window of RFC 5681: one segment more each round trip, half at a loss.
//!
//! Congestion avoidance counts the bytes acknowledged and adds one mss when a whole window has been acknowledged (the
//! byte counting that RFC 5681 section 3.1 recommends), or it adds `mss * mss / cwnd` with each acknowledgement
//! (RFC 5681 eq. 3). The latter is rarely a whole number of bytes. The remainder is carried to the next acknowledgement:
//! at 170 segments of 1000 B, 5.88 B would otherwise become 5 B, and the window would grow by a seventh too slowly.
//!
//! After a loss, `ssthresh = max(flight / 2, 2 mss)` (RFC 5681 eq. 4). Worked: at 10 segments of 1000 B, the tenth
//! acknowledgement increases the window to 11; a loss with 11,000 B outstanding leaves 5,500 B.

use super::congestion::{Acked, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::{Avoidance, Params};

/// The state of the algorithm: the progress towards the next growth.
// Packed, it takes 16 bytes with the tag of the control, in each of many connections.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
pub struct NewReno {
    /// Bytes acknowledged towards the next segment. With [`Avoidance::Acknowledgements`]: the remainder of the last division.
    credit: u64,
    avoidance: Avoidance,
}

impl NewReno {
    /// Creates the state before any growth.
    pub const fn with_avoidance(avoidance: Avoidance) -> Self {
        Self { credit: 0, avoidance }
    }
}

impl CongestionAlgorithm for NewReno {
    type Params = NoParams;

    const NAME: &'static str = "newreno";
    const TITLE: &'static str = "NewReno";
    const SOURCE: &'static str = "RFC 5681, RFC 6582";

    fn begin(_params: &NoParams, tcp: &Params) -> Self {
        Self::with_avoidance(tcp.variant.avoidance)
    }
}

impl CongestionControl for NewReno {
    #[inline]
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        if self.avoidance == Avoidance::Acknowledgements {
            // RFC 5681 eq. 3
            self.credit += mss * mss;
            let cwnd = window.cwnd;
            window.cwnd += self.credit / cwnd;
            self.credit %= cwnd;
            return;
        }
        self.credit += acked.bytes;
        if self.credit >= window.cwnd {
            // At most one segment per round trip (RFC 5681 section 3.1).
            self.credit -= window.cwnd;
            window.cwnd += mss;
        }
    }

    fn congested(&mut self, _window: &Window, flight: u64, mss: u64) -> u64 {
        self.credit = 0;
        // RFC 5681 eq. 4
        (flight / 2).max(2 * mss)
    }

    fn timed_out(&mut self) {
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Duration, Instant};

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
        // RFC 5681 section 3.1: ten segments are acknowledged.
        assert_eq!(window.cwnd, 11_000);
        // RFC 5681 eq. 4: max(11,000 / 2, 2 * 1000), then max(3,000 / 2, 2 * 1000).
        assert_eq!(newreno.congested(&window, 11_000, 1000), 5_500);
        assert_eq!(newreno.congested(&window, 3_000, 1000), 2_000);
    }

    #[test]
    fn every_acknowledgement_adds_its_share() {
        let mut newreno = NewReno::with_avoidance(Avoidance::Acknowledgements);
        let mut window = Window { cwnd: 10_000, ssthresh: 10_000 };
        let acked = Acked { bytes: 1000, now: Instant::ZERO, srtt: Duration::ZERO };
        newreno.avoid(&mut window, &acked, 1000);
        // RFC 5681 eq. 3: 1000 * 1000 / 10,000, then / 10,100.
        assert_eq!(window.cwnd, 10_100);
        newreno.avoid(&mut window, &acked, 1000);
        assert_eq!(window.cwnd, 10_199);
    }

    #[test]
    fn fractions_of_a_byte_add_up() {
        let mut newreno = NewReno::with_avoidance(Avoidance::Acknowledgements);
        let mut window = Window { cwnd: 170_000, ssthresh: 10_000 };
        let acked = Acked { bytes: 1000, now: Instant::ZERO, srtt: Duration::ZERO };
        for _ in 0..170 {
            newreno.avoid(&mut window, &acked, 1000);
        }
        // RFC 5681 eq. 3: sqrt(170,000^2 + 170 * 2 * 10^6) = 170,997; in whole bytes it would be 170,850.
        assert!((170_990..=171_000).contains(&window.cwnd), "{}", window.cwnd);
    }

    #[test]
    fn a_window_larger_than_a_segment_squared_still_grows() {
        let mut newreno = NewReno::with_avoidance(Avoidance::Acknowledgements);
        let mut window = Window { cwnd: 2_000_000, ssthresh: 10_000 };
        let acked = Acked { bytes: 1000, now: Instant::ZERO, srtt: Duration::ZERO };
        for _ in 0..2000 {
            newreno.avoid(&mut window, &acked, 1000);
        }
        // RFC 5681 eq. 3: half a byte each.
        assert!((2_000_998..=2_001_000).contains(&window.cwnd), "{}", window.cwnd);
    }
}
