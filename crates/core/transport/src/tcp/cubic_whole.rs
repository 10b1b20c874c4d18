//! CUBIC in whole segments, as Linux computes it ([`Variant::whole_segments`](super::Variant::whole_segments)).
//!
//! It is the cubic of [`cubic`](super::cubic), with these differences:
//! - The window is a whole number of segments. It grows by one when `count` segments have been acknowledged, with
//!   `count = cwnd / (target - cwnd)`, at least 2, and 100 windows where the target is not above the window.
//! - The target is the cubic at the present time plus the least round trip, rounded towards the plateau.
//! - The Reno-friendly window grows by one with each `15/8 cwnd` segments, in all of an epoch. Where it is above the window, `count` is
//!   at most `cwnd / (friendly - cwnd)`.
//! - The target is computed again when the window changes, or a 32nd of a second later.
//! - Before the first loss the window grows by 5 % a round trip or more. A timeout forgets the last window.
//!
//! Worked: 10 segments after a loss at 14 (`cwnd = 14 * 717 / 1024 = 9`): `K = cbrt((14 - 9) / 0.4)` = 2.32 s.

use cutline_units::{Duration, Instant};

/// The constant C of the cubic, segments per second cubed (RFC 9438 section 5.1).
const C: f64 = 0.4;
/// The share of the window that a loss leaves, in 1024ths: 0.7.
const BETA: u64 = 717;
/// Number of segments that increase the Reno-friendly window by one, in eighths of the window: 8 (1 + beta) /
/// (3 (1 - beta)), rounded down.
const FRIENDLY: u64 = 15;
/// The largest `count` before the first loss.
const FIRST_COUNT: u64 = 20;
/// Time for which a target is kept for an unchanged window.
const KEPT: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// Samples of the round-trip time so early in an epoch are left out: the queue has just been drained.
const SETTLING: Duration = Duration::from_secs(1);

/// The state of one connection. Windows are whole segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WholeCubic {
    /// The window at the last loss, less by fast convergence; 0 before the first.
    last_max: u64,
    origin: u64,
    /// The time from the start of the epoch to the plateau, s.
    k: f64,
    epoch: Option<Instant>,
    /// The window, and the time at which it was read.
    last: (u64, Instant),
    count: u64,
    /// Segments acknowledged towards the next growth of the Reno-friendly window.
    friendly_acked: u64,
    friendly: u64,
    /// Segments acknowledged towards the next growth of the window.
    credit: u64,
    /// Bytes acknowledged that are not a whole segment.
    rest: u64,
    least_rtt: Option<Duration>,
}

impl WholeCubic {
    /// Takes a sample of the round-trip time.
    pub(super) fn sample(&mut self, now: Instant, rtt: Duration) {
        let is_early = self.epoch.is_some_and(|epoch| now.saturating_since(epoch) < SETTLING);
        if !is_early && !rtt.is_zero() {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Returns the window after `bytes` are acknowledged, both in bytes.
    pub(super) fn avoid(&mut self, cwnd: u64, bytes: u64, now: Instant, mss: u64) -> u64 {
        self.rest += bytes;
        let (segments, window) = (self.rest / mss, (cwnd / mss).max(1));
        self.rest %= mss;
        self.update(window, segments, now);
        let mut grown = 0;
        if self.credit >= self.count {
            self.credit = 0;
            grown = 1;
        }
        self.credit += segments;
        grown += self.credit / self.count;
        self.credit %= self.count;
        cwnd + grown * mss
    }

    /// Computes the number of segments that must be acknowledged for the window to grow by one.
    fn update(&mut self, window: u64, segments: u64, now: Instant) {
        self.friendly_acked += segments;
        let (last_window, last_time) = self.last;
        if self.epoch.is_some() && last_window == window && now.saturating_since(last_time) <= KEPT {
            return;
        }
        self.last = (window, now);
        let epoch = self.epoch.unwrap_or_else(|| self.begin(window, segments, now));
        let t = now.saturating_since(epoch) + self.least_rtt.unwrap_or(Duration::ZERO);
        let target = self.target(t.as_secs_f64());
        self.count = if target > window { window / (target - window) } else { 100 * window };
        if self.last_max == 0 {
            self.count = self.count.min(FIRST_COUNT);
        }
        let needed = (window * FRIENDLY / 8).max(1);
        while self.friendly_acked > needed {
            self.friendly_acked -= needed;
            self.friendly += 1;
        }
        if self.friendly > window {
            self.count = self.count.min(window / (self.friendly - window));
        }
        self.count = self.count.max(2);
    }

    fn begin(&mut self, window: u64, segments: u64, now: Instant) -> Instant {
        self.friendly_acked = segments;
        self.friendly = window;
        self.origin = self.last_max.max(window);
        self.k = ((self.origin - window) as f64 / C).cbrt();
        *self.epoch.insert(now)
    }

    /// The cubic at the time `t` of the epoch, in whole segments, rounded towards the plateau.
    fn target(&self, t: f64) -> u64 {
        let off = (C * (t - self.k).abs().powi(3)) as u64;
        if t < self.k { self.origin.saturating_sub(off) } else { self.origin + off }
    }

    /// Returns the threshold after a loss with this window, both in bytes.
    pub(super) fn congested(&mut self, cwnd: u64, mss: u64) -> u64 {
        let window = cwnd / mss;
        // Fast convergence (RFC 9438 section 4.7).
        self.last_max = if window < self.last_max { window * (1024 + BETA) / 2048 } else { window };
        self.epoch = None;
        self.credit = 0;
        (window * BETA / 1024).max(2) * mss
    }

    /// Forgets everything but the round trips.
    pub(super) fn timed_out(&mut self) {
        *self = Self { least_rtt: self.least_rtt, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_loss_leaves_whole_segments() {
        let mut cubic = WholeCubic::default();
        // RFC 9438 section 4.6: 0.7 of 14 segments are 9.8.
        assert_eq!(cubic.congested(14 * MSS, MSS), 9 * MSS);
        assert_eq!(cubic.last_max, 14);
        // RFC 9438 section 4.7: 12 segments, less than the 14 before, count as 10.2.
        assert_eq!((cubic.congested(12 * MSS, MSS), cubic.last_max), (8 * MSS, 10));
        assert_eq!(cubic.congested(2 * MSS, MSS), 2 * MSS, "never below two");
    }

    #[test]
    fn the_worked_numbers() {
        let mut cubic = WholeCubic::default();
        cubic.congested(14 * MSS, MSS);
        cubic.avoid(9 * MSS, MSS, at(0), MSS);
        // RFC 9438 figure 2: K = cbrt(5 / 0.4).
        assert!((cubic.k - 2.321).abs() < 1e-3, "{}", cubic.k);
        // One second before the plateau the cubic is 0.4 below it, which whole segments round to 0; two seconds, 3.2.
        assert_eq!(
            (cubic.target(cubic.k - 1.0), cubic.target(cubic.k - 2.0), cubic.target(cubic.k + 2.0)),
            (14, 11, 17)
        );
    }

    #[test]
    fn the_friendly_window_grows_by_one_for_15_eighths_of_a_window() {
        let mut cubic = WholeCubic::default();
        cubic.congested(1000 * MSS, MSS);
        cubic.congested(10 * MSS, MSS);
        // Far from the plateau of 850 segments the cubic is steep; here only the friendly window is looked at.
        cubic.begin(8, 0, at(0));
        cubic.origin = 8;
        cubic.k = 0.0;
        for ms in 1..=16 {
            cubic.update(8, 1, at(ms * 40));
        }
        // RFC 9438 section 4.3: alpha = 9/17; 15 segments make 8 segments 9, and one more must have been acknowledged.
        assert_eq!((cubic.friendly, cubic.friendly_acked), (9, 1));
        assert_eq!(cubic.count, 8, "a segment for the whole window");
    }

    #[test]
    fn the_window_is_whole_and_grows_by_one_for_each_count() {
        let mut cubic = WholeCubic::default();
        cubic.congested(14 * MSS, MSS);
        let mut cwnd = 9 * MSS;
        let mut now = 0;
        for _ in 0..400 {
            now += 30;
            cwnd = cubic.avoid(cwnd, MSS, at(now), MSS);
            assert_eq!(cwnd % MSS, 0);
        }
        // After 12 s the cubic is at 14 + 0.4 (12 - 2.32)^3 = 377 segments; half of the acknowledged segments is the most growth.
        assert!(cwnd > 100 * MSS && cwnd <= 209 * MSS, "{cwnd}");
    }

    #[test]
    fn before_the_first_loss_it_grows_by_a_twentieth_of_what_is_acknowledged() {
        let mut cubic = WholeCubic::default();
        let mut cwnd = 100 * MSS;
        for segment in 0..100 {
            cwnd = cubic.avoid(cwnd, MSS, at(segment / 10), MSS);
        }
        assert_eq!(cwnd, 105 * MSS);
    }
}
