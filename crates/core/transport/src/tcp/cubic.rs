//! The window of CUBIC (RFC 9438): a cubic of the time since the last congestion event.
//!
//! In segments and seconds, with `C = 0.4` and `beta = 0.7`; the figures of RFC 9438 are its equations:
//! - `W_cubic(t) = C (t - K)^3 + W_max`, `K = cbrt((W_max - cwnd_epoch) / C)` (RFC 9438 figures 1 and 2).
//! - Each acknowledged segment increases cwnd by `(target - cwnd) / cwnd`. The target is `W_cubic(t + RTT)`, kept within
//!   `cwnd..=1.5 cwnd` (RFC 9438 sections 4.2, 4.4 and 4.5).
//! - In the Reno-friendly region, each acknowledged segment adds `alpha / cwnd` to `W_est`. `alpha` is
//!   `3 (1 - beta) / (1 + beta)` until `W_est` reaches the window before the reduction, and then 1. Where `W_est` is above
//!   `W_cubic(t)`, it is the window (RFC 9438 section 4.3, figure 4).
//! - A congestion event sets `ssthresh = beta * flight` (RFC 9438 section 4.6) and `W_max = cwnd`, or
//!   `W_max = cwnd (1 + beta) / 2` if cwnd was below the last `W_max` (fast convergence, RFC 9438 section 4.7).
//!
//! Worked: `W_max` = 100 segments, reduced to 70: `K = cbrt(30 / 0.4)` = 4.217 s; 2 s later `W_cubic` = 95.64.
//!
//! Slow start is plain, which RFC 9438 section 4.10 permits, or ends early ([`Params::hystart`]). Not implemented: the response to spurious congestion
//! events (RFC 9438 section 4.9), which are not detected.

use cutline_units::{Duration, Instant};

use super::Params;
use super::congestion::{Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::cubic_whole::WholeCubic;
use super::hystart::Hystart;

/// The constant C of the cubic, segments per second cubed (RFC 9438 section 5.1).
const C: f64 = 0.4;
/// The factor by which a congestion event reduces the window (RFC 9438 section 4.6).
const BETA: f64 = 0.7;
/// The growth of the Reno-friendly estimate while it is below the last window (RFC 9438 section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The state of the algorithm. Windows are in segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cubic {
    /// The window at the plateau of the cubic.
    w_max: f64,
    /// The time from the start of the epoch to the plateau, seconds.
    k: f64,
    /// The window just before the last reduction.
    cwnd_prior: f64,
    /// The estimate of Reno's window.
    w_est: f64,
    /// Growth of less than a byte that is carried over.
    fraction: f64,
    /// The start of this congestion avoidance stage; `None` before its first acknowledgement.
    epoch: Option<Instant>,
    /// The last acknowledgement of this epoch.
    last: Instant,
    /// The next epoch follows a reduction, and not a slow start that ended without one.
    reduced: bool,
    /// State with which slow start ends early.
    hystart: Option<Hystart>,
    /// The state in whole segments, with [`whole_segments`](super::Variant::whole_segments); the windows above are then not used.
    whole: Option<WholeCubic>,
}

impl CongestionAlgorithm for Cubic {
    type Params = NoParams;

    const NAME: &'static str = "cubic";
    const TITLE: &'static str = "CUBIC";
    const SOURCE: &'static str = "RFC 9438";

    fn begin(_params: &NoParams, tcp: &Params) -> Self {
        Self {
            hystart: tcp.hystart.then(|| Hystart::new(tcp.mss)),
            whole: tcp.variant.whole_segments.then(WholeCubic::default),
            ..Self::default()
        }
    }
}

impl CongestionControl for Cubic {
    #[inline]
    fn acknowledged(&mut self, acknowledgement: &Acknowledgement) {
        if let Some(hystart) = &mut self.hystart {
            hystart.acknowledged(acknowledgement);
        }
        if let Some(whole) = &mut self.whole {
            whole.sample(acknowledgement.now, acknowledgement.now.saturating_since(acknowledgement.echo));
        }
    }

    fn slow_start(&mut self, window: &mut Window, acked: &Acked, most: u64) {
        if self.hystart.as_mut().is_some_and(|hystart| hystart.ends_slow_start(window.cwnd)) {
            window.ssthresh = window.cwnd;
        } else {
            window.cwnd += acked.bytes.min(most);
        }
    }

    #[inline(never)]
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        if let Some(whole) = &mut self.whole {
            window.cwnd = whole.avoid(window.cwnd, acked.bytes, acked.now, mss);
            return;
        }
        let cwnd = window.cwnd as f64 / mss as f64;
        let epoch = self.epoch.unwrap_or_else(|| self.begin(cwnd, acked.now));
        self.last = acked.now;
        let segments = acked.bytes as f64 / mss as f64;
        let t = acked.now.saturating_since(epoch);
        let grown = self.step(cwnd, segments, t, acked.srtt) * mss as f64 + self.fraction;
        window.cwnd = (grown as u64).max(window.cwnd);
        self.fraction = (grown - window.cwnd as f64).max(0.0);
    }

    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        if let Some(whole) = &mut self.whole {
            return whole.congested(flight, mss);
        }
        let cwnd = window.cwnd as f64 / mss as f64;
        // Fast convergence (RFC 9438 section 4.7).
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.reduced = true;
        self.fraction = 0.0;
        // RFC 9438 section 4.6
        ((flight as f64 * BETA).round() as u64).max(2 * mss)
    }

    /// Forgets the epoch: the stage after the next slow start begins at its plateau (RFC 9438 section 4.8).
    fn timed_out(&mut self) {
        self.epoch = None;
        self.reduced = false;
        if let Some(whole) = &mut self.whole {
            whole.timed_out();
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.reset();
        }
    }

    /// Excludes from the epoch the time in which the application limited the sender (RFC 9438 section 5.8).
    fn application_limited(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            *epoch += now.saturating_since(self.last);
            self.last = now;
        }
    }
}

impl Cubic {
    /// Begins a congestion avoidance stage with its first acknowledgement (RFC 9438 section 4.2).
    fn begin(&mut self, cwnd: f64, now: Instant) -> Instant {
        if !self.reduced || cwnd >= self.w_max {
            self.w_max = cwnd;
        }
        self.k = plateau_after(self.w_max, cwnd);
        self.w_est = cwnd;
        self.reduced = false;
        *self.epoch.insert(now)
    }

    /// Returns the window after `segments` more are acknowledged at the time `t` of the epoch.
    fn step(&mut self, cwnd: f64, segments: f64, t: Duration, srtt: Duration) -> f64 {
        let alpha = if self.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        // RFC 9438 figure 4
        self.w_est += alpha * segments / cwnd;
        if w_cubic(self.w_max, self.k, t.as_secs_f64()) < self.w_est {
            return self.w_est.max(cwnd);
        }
        let ahead = w_cubic(self.w_max, self.k, (t + srtt).as_secs_f64());
        let target = ahead.clamp(cwnd, 1.5 * cwnd);
        cwnd + segments * (target - cwnd) / cwnd
    }
}

/// Returns the window of the cubic at the time `t`, segments (RFC 9438 figure 1).
fn w_cubic(w_max: f64, k: f64, t: f64) -> f64 {
    C * (t - k).powi(3) + w_max
}

/// Returns K, the time from the start of the epoch to the plateau, seconds (RFC 9438 figure 2).
fn plateau_after(w_max: f64, cwnd_epoch: f64) -> f64 {
    ((w_max - cwnd_epoch) / C).cbrt()
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
