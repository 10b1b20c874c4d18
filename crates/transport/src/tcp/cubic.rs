//! The window of CUBIC (RFC 9438): a cubic of the time since the last congestion event.
//!
//! In segments and seconds, with `C = 0.4` and `beta = 0.7`:
//! - `W_cubic(t) = C (t - K)^3 + W_max`, `K = cbrt((W_max - cwnd_epoch) / C)` (eq. 1, 2);
//! - each acknowledged segment moves cwnd by `(target - cwnd) / cwnd`, where target is `W_cubic(t + RTT)` kept
//!   within `cwnd..1.5 cwnd` (4.2, 4.4, 4.5);
//! - the Reno-friendly region: `W_est += alpha / cwnd` a segment, `alpha = 3 (1 - beta) / (1 + beta)` until
//!   `W_est` is back at the window before the reduction, then 1; where it is above `W_cubic(t)` it is the
//!   window (4.3, eq. 4);
//! - a congestion event: `ssthresh = beta * flight`; `W_max = cwnd`, or `cwnd (1 + beta) / 2` when cwnd was
//!   below the last `W_max` (fast convergence, 4.7).
//!
//! Worked: `W_max` = 100 segments, left at 70: `K = cbrt(30 / 0.4)` = 4.217 s; 2 s later `W_cubic` = 95.64.
//!
//! Not implemented: `HyStart++` (4.10 allows plain slow start) and the response to spurious events (4.9),
//! which are not detected.

use cutline_units::{Duration, Instant};

use super::Params;
use super::congestion::{Acked, CongestionAlgorithm, CongestionControl, NoParams, Window};

/// How steep the cubic is, segments per second cubed (RFC 9438 5.1).
const C: f64 = 0.4;
/// What a congestion event leaves of the window (RFC 9438 4.6).
const BETA: f64 = 0.7;
/// Growth of the Reno-friendly estimate while it is below the last window (RFC 9438 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// What is remembered between congestion events; windows in segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cubic {
    /// The window that the cubic's plateau is at.
    w_max: f64,
    /// When the plateau is reached, seconds after the epoch's start.
    k: f64,
    /// The window just before the last reduction.
    cwnd_prior: f64,
    /// What Reno would have.
    w_est: f64,
    /// Growth that is less than a byte yet.
    fraction: f64,
    /// The start of this congestion avoidance stage; none before its first acknowledgement.
    epoch: Option<Instant>,
    /// The last acknowledgement of this epoch.
    last: Instant,
    /// The epoch to come follows a reduction, rather than a slow start that ended by itself.
    reduced: bool,
}

impl CongestionAlgorithm for Cubic {
    type Params = NoParams;

    const NAME: &'static str = "cubic";
    const TITLE: &'static str = "CUBIC";
    const SOURCE: &'static str = "RFC 9438";

    fn begin(_params: &NoParams, _tcp: &Params) -> Self {
        Self::default()
    }
}

impl CongestionControl for Cubic {
    #[inline(never)]
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
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
        let cwnd = window.cwnd as f64 / mss as f64;
        // RFC 9438 4.7
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.reduced = true;
        self.fraction = 0.0;
        // RFC 9438 4.6
        ((flight as f64 * BETA).round() as u64).max(2 * mss)
    }

    /// RFC 9438 4.8: the stage after the slow start to come begins at its own plateau.
    fn timed_out(&mut self) {
        self.epoch = None;
        self.reduced = false;
    }

    /// RFC 9438 5.8: the time in which the application limited the sender does not count.
    fn application_limited(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            *epoch += now.saturating_since(self.last);
            self.last = now;
        }
    }
}

impl Cubic {
    /// The first acknowledgement of a congestion avoidance stage (RFC 9438 4.2).
    fn begin(&mut self, cwnd: f64, now: Instant) -> Instant {
        if !self.reduced || cwnd >= self.w_max {
            self.w_max = cwnd;
        }
        self.k = plateau_after(self.w_max, cwnd);
        self.w_est = cwnd;
        self.reduced = false;
        *self.epoch.insert(now)
    }

    /// The window after `segments` more are acknowledged, `t` into the epoch.
    fn step(&mut self, cwnd: f64, segments: f64, t: Duration, srtt: Duration) -> f64 {
        let alpha = if self.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        // RFC 9438 eq. 4
        self.w_est += alpha * segments / cwnd;
        if w_cubic(self.w_max, self.k, t.as_secs_f64()) < self.w_est {
            return self.w_est.max(cwnd);
        }
        let ahead = w_cubic(self.w_max, self.k, (t + srtt).as_secs_f64());
        let target = ahead.clamp(cwnd, 1.5 * cwnd);
        cwnd + segments * (target - cwnd) / cwnd
    }
}

/// RFC 9438 eq. 1.
fn w_cubic(w_max: f64, k: f64, t: f64) -> f64 {
    C * (t - k).powi(3) + w_max
}

/// K of RFC 9438 eq. 2, seconds.
fn plateau_after(w_max: f64, cwnd_epoch: f64) -> f64 {
    ((w_max - cwnd_epoch) / C).cbrt()
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
