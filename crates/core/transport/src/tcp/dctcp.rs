//! The window of DCTCP (RFC 8257): a mark reduces the window in proportion to the share of marks.
//!
//! The window grows as in [`NewReno`] (RFC 8257 section 3.4). The estimate of the share of marks changes once per window
//! of data (RFC 8257 section 3.3):
//!
//! ```text
//! M     = bytes acknowledged with an ECN echo / bytes acknowledged
//! alpha = (1 - g) alpha + g M,   g = 1/16, at first alpha = 1
//! cwnd  = cwnd (1 - alpha / 2)   at an echo, at most once per window
//! ```
//!
//! The receiver echoes the mark of each segment, and does not repeat the echo until the sender responds
//! ([`super::Receiver`], RFC 8257 section 3.2). A loss halves the window, as in [`NewReno`] (RFC 8257 section 3.5).
//!
//! Worked: if every segment of a window is marked, alpha stays 1 and the window is halved. After one window without a mark
//! alpha is 15/16, and a mark in the next window reduces 100 segments to 53.125
//! (`a_mark_reduces_the_window_by_half_of_alpha`).
//!
//! With ECT(1) this is a scalable congestion control in the sense of RFC 9330, as `DualPI2` expects in its low-latency
//! queue. Of the requirements in RFC 9331 section 4.3 it meets the response to marks, but not the independence of the
//! round-trip time.

use super::congestion::{Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::{Avoidance, NewReno, Params};

/// The estimation gain g: the weight of the last window's share of marks (RFC 8257 section 4.2).
const G: f64 = 1.0 / 16.0;

/// The state of the algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    growth: NewReno,
    /// The estimate of the share of marks, 0..1.
    alpha: f64,
    /// Bytes acknowledged in the current observation window, and those of them with an echo.
    acked: u64,
    marked: u64,
    /// The sequence number at which the observation window ends.
    window_end: u64,
}

impl Default for Dctcp {
    fn default() -> Self {
        Self {
            growth: NewReno::with_avoidance(Avoidance::Bytes),
            alpha: 1.0,
            acked: 0,
            marked: 0,
            window_end: 0,
        }
    }
}

impl Dctcp {
    /// Adds an acknowledgement up to `una` that covers `bytes` of new data and has the echo `ece`. `next` is SND.NXT. At the
    /// end of an observation window, updates alpha (RFC 8257 section 3.3, steps 1 to 8).
    #[inline(never)]
    fn observe(&mut self, bytes: u64, ece: bool, una: u64, next: u64) {
        self.acked += bytes;
        if ece {
            self.marked += bytes;
        }
        if una > self.window_end && self.acked > 0 {
            let share = self.marked as f64 / self.acked as f64;
            self.alpha += G * (share - self.alpha);
            (self.acked, self.marked, self.window_end) = (0, 0, next);
        }
    }

    /// Returns the window after an echo, bytes (RFC 8257 section 3.3, step 9).
    fn reduced(&self, window: &Window, mss: u64) -> u64 {
        ((window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64).max(2 * mss)
    }
}

impl CongestionAlgorithm for Dctcp {
    type Params = NoParams;

    const NAME: &'static str = "dctcp";
    const TITLE: &'static str = "DCTCP";
    const SOURCE: &'static str = "RFC 8257";
    const SCALABLE: bool = true;

    fn begin(_params: &NoParams, _tcp: &Params) -> Self {
        Self::default()
    }
}

impl CongestionControl for Dctcp {
    #[inline]
    fn acknowledged(&mut self, acknowledgement: &Acknowledgement) {
        let Acknowledgement { bytes, marked, una, next, .. } = *acknowledgement;
        self.observe(bytes, marked, una, next);
    }

    fn marked(&mut self, window: &Window, _flight: u64, mss: u64) -> u64 {
        self.reduced(window, mss)
    }

    #[inline(never)]
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        self.growth.avoid(window, acked, mss);
    }

    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        self.growth.congested(window, flight, mss)
    }

    fn timed_out(&mut self) {
        self.growth.timed_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn window(segments: u64) -> Window {
        Window { cwnd: segments * MSS, ssthresh: segments * MSS }
    }

    /// Acknowledges a window of ten segments, all of them marked or none.
    fn round(dctcp: &mut Dctcp, from: u64, marked: bool) -> u64 {
        let end = from + 10 * MSS;
        (1..=10).for_each(|n| dctcp.observe(MSS, marked, from + n * MSS, end));
        end
    }

    #[test]
    fn a_mark_reduces_the_window_by_half_of_alpha() {
        let mut dctcp = Dctcp::default();
        // RFC 8257 section 3.3: alpha begins at 1, so cwnd (1 - 1 / 2).
        assert_eq!(dctcp.reduced(&window(100), MSS), 50_000);
        let end = round(&mut dctcp, 0, false);
        // RFC 8257 section 3.3: (1 - g) * 1 + g * 0, and 100,000 (1 - 15/32).
        assert!((dctcp.alpha - 15.0 / 16.0).abs() < 1e-12, "{}", dctcp.alpha);
        assert_eq!(dctcp.reduced(&window(100), MSS), 53_125);
        let end = round(&mut dctcp, end, true);
        // RFC 8257 section 3.3: once per window of data. The second window ends with its first marked segment, M = 1/10;
        // the third has marked segments only, M = 1.
        let second = 15.0 / 16.0 * 15.0 / 16.0 + 0.1 / 16.0;
        assert!((dctcp.alpha - second).abs() < 1e-12, "{}", dctcp.alpha);
        round(&mut dctcp, end, true);
        assert!((dctcp.alpha - (15.0 / 16.0 * second + 1.0 / 16.0)).abs() < 1e-12, "{}", dctcp.alpha);
    }

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut dctcp = Dctcp::default();
        let mut una = 0;
        // RFC 8257 section 3.3: every fourth segment is marked, M = 1/4.
        for n in 0..20_000_u64 {
            una += MSS;
            dctcp.observe(MSS, n % 4 == 0, una, una + 40 * MSS);
        }
        assert!((dctcp.alpha - 0.25).abs() < 0.02, "{}", dctcp.alpha);
    }

    #[test]
    fn the_least_window_is_two_segments() {
        assert_eq!(Dctcp::default().reduced(&window(3), MSS), 2 * MSS);
    }
}
