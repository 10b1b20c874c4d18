//! The window of DCTCP (RFC 8257): a mark takes off in proportion to the share of marks.
//!
//! Growth is `NewReno`'s. Once a window of data has been acknowledged (RFC 8257 section 3.3):
//!
//! ```text
//! M     = bytes acknowledged with an ECN echo / bytes acknowledged
//! alpha = (1 - g) alpha + g M,   g = 1/16, at first alpha = 1
//! cwnd  = cwnd (1 - alpha / 2)   at an echo, at most once a window
//! ```
//!
//! The receiver echoes the mark of each segment instead of latching it until the sender answers ([`super::Receiver`],
//! RFC 8257 section 3.2). A loss halves the window, as in [`NewReno`].
//!
//! Worked: when every segment of a window is marked, alpha stays 1 and the window halves; after one window without a mark
//! alpha is 15/16, and a mark in the next leaves of 100 segments 53 (`a_mark_takes_off_half_of_alpha`).
//!
//! With ECT(1) it is a scalable congestion control in the sense of RFC 9330, as `DualPI2` expects of its low-latency queue;
//! of the Prague requirements (RFC 9331 section 4.3) the response is met, the independence of the round-trip time is not.

use super::congestion::{Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::{Avoidance, NewReno, Params};

/// The weight of a window's share of marks in its estimate (RFC 8257 section 4.2).
const G: f64 = 1.0 / 16.0;

/// What is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    growth: NewReno,
    /// The estimate of the share of marks, 0..1.
    alpha: f64,
    /// Of the window under observation: bytes acknowledged, and those with an echo.
    acked: u64,
    marked: u64,
    /// Its end: a sequence number.
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
    /// An acknowledgement up to `una` covers `bytes` of new data and echoes a mark if `ece`; `next` follows what was sent.
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

    /// The window that an echo leaves, bytes (RFC 8257 section 3.3, step 8).
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

    /// Acknowledges a window of data whose segments are all marked, or none.
    fn round(dctcp: &mut Dctcp, from: u64, marked: bool) -> u64 {
        let end = from + 10 * MSS;
        (1..=10).for_each(|n| dctcp.observe(MSS, marked, from + n * MSS, end));
        end
    }

    #[test]
    fn a_mark_takes_off_half_of_alpha() {
        let mut dctcp = Dctcp::default();
        assert_eq!(dctcp.reduced(&window(100), MSS), 50_000, "alpha begins at 1");
        let end = round(&mut dctcp, 0, false);
        assert!((dctcp.alpha - 15.0 / 16.0).abs() < 1e-12, "{}", dctcp.alpha);
        assert_eq!(dctcp.reduced(&window(100), MSS), 53_125);
        round(&mut dctcp, end, true);
        assert_ne!(dctcp.alpha, 15.0 / 16.0, "the next window counts");
    }

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut dctcp = Dctcp::default();
        let mut una = 0;
        for n in 0..20_000_u64 {
            una += MSS;
            dctcp.observe(MSS, n % 4 == 0, una, una + 40 * MSS);
        }
        assert!((dctcp.alpha - 0.25).abs() < 0.02, "{}", dctcp.alpha);
    }

    #[test]
    fn two_segments_are_left() {
        assert_eq!(Dctcp::default().reduced(&window(3), MSS), 2 * MSS);
    }
}
