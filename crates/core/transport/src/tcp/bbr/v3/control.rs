//! The controls: pacing rate, quantum and window, from the model and the state.

use super::super::super::congestion::Window;
use super::super::super::{LossState, RateSample};
use super::super::filter::volume;
use super::{
    Bbr3, HEADROOM, LEAST_SEGMENTS, MARGIN, MOST_QUANTUM, NO_BOUND, PROBE_RTT_WINDOW_GAIN,
    STARTUP_PACING_GAIN, State,
};

impl Bbr3 {
    pub(super) fn least_window(&self) -> u64 {
        LEAST_SEGMENTS * self.mss
    }

    pub(super) fn pace(&mut self, gain: f64) {
        let rate = gain * self.bw * MARGIN;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    pub(super) fn set_pacing_rate(&mut self, window: &Window, sample: &RateSample) {
        if !self.has_round_trip && !sample.srtt.is_zero() {
            self.has_round_trip = true;
            self.pacing_rate = STARTUP_PACING_GAIN * window.cwnd as f64 / sample.srtt.as_secs_f64();
        }
        self.pace(self.state.pacing_gain());
    }

    /// `send_quantum`, bytes.
    pub(super) fn quantum(&self) -> u64 {
        ((self.pacing_rate / 1e3) as u64).min(MOST_QUANTUM).max(2 * self.mss)
    }

    /// Returns the product of a rate and the least round trip, times a gain: `BDPMultiple`.
    pub(super) fn product(&self, bandwidth: f64, gain: f64) -> u64 {
        self.min_rtt.map_or(self.initial_window, |rtt| (volume(bandwidth, rtt) * gain) as u64)
    }

    /// Returns a volume with room for three quanta: `QuantizationBudget`.
    pub(super) fn with_quanta(&self, inflight: u64) -> u64 {
        let most = inflight.max(3 * self.quantum()).max(self.least_window());
        most + if self.state == State::Up { 2 * self.mss } else { 0 }
    }

    pub(super) fn inflight(&self, bandwidth: f64, gain: f64) -> u64 {
        self.with_quanta(self.product(bandwidth, gain))
    }

    pub(super) fn target_inflight(&self, window: &Window) -> u64 {
        self.product(self.bw, 1.0).min(window.cwnd)
    }

    pub(super) fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == NO_BOUND {
            return NO_BOUND;
        }
        let headroom = ((HEADROOM * self.inflight_longterm as f64) as u64).max(self.mss);
        self.inflight_longterm.saturating_sub(headroom).max(self.least_window())
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.product(self.bw, PROBE_RTT_WINDOW_GAIN).max(self.least_window())
    }

    /// Keeps the window, to restore it later: `SaveCwnd`.
    pub(super) fn save_window(&mut self, cwnd: u64) {
        let is_normal = self.loss_state == LossState::Open && self.state != State::ProbeRtt;
        self.prior_window = if is_normal { cwnd } else { self.prior_window.max(cwnd) };
    }

    /// Sets the window within its bounds: `SetCwnd`, and `RestoreCwnd` after a recovery.
    pub(super) fn set_window(&mut self, window: &mut Window, sample: &RateSample) {
        let before = std::mem::replace(&mut self.loss_state, sample.state);
        if sample.state == LossState::Open && before != LossState::Open {
            window.cwnd = window.cwnd.max(self.prior_window);
        }
        let most = self.product(self.bw, self.state.window_gain()) + self.extra_acked();
        let most = self.with_quanta(most);
        if self.full_bw_reached {
            window.cwnd = (window.cwnd + sample.newly_delivered).min(most);
        } else if window.cwnd < most || sample.total_delivered < self.initial_window {
            window.cwnd += sample.newly_delivered;
        }
        window.cwnd = window.cwnd.max(self.least_window());
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_window());
        }
        let bound = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => NO_BOUND,
        };
        let bound = bound.min(self.inflight_shortterm).max(self.least_window());
        window.cwnd = window.cwnd.min(bound);
    }
}
