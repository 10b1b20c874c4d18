//! The model of the path: rates, round trips, and the bounds that losses and marks set.

use super::super::super::RateSample;
use super::super::super::congestion::Window;
use super::super::filter::volume;
use super::{
    AckPhase, BETA, Bbr3, FULL_GROWTH, FULL_ROUNDS, MIN_RTT_FILTER, NO_BOUND, PROBE_RTT_INTERVAL, State,
    is_too_much,
};

impl Bbr3 {
    pub(super) fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// Updates the amounts that this round trip has delivered: `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_delivery(&mut self, sample: &RateSample) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(sample.rate().unwrap_or(0.0));
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered) {
            self.loss_round_delivered = sample.total_delivered;
            self.loss_round_start = true;
        }
    }

    /// Updates the rate, and the short-term bounds at the end of a round trip with a loss: `UpdateCongestionSignals`.
    pub(super) fn update_congestion_signals(&mut self, window: &Window, sample: &RateSample) {
        self.update_round(sample);
        if let Some(rate) = sample.rate()
            && (rate >= self.max_bw() || !sample.is_app_limited)
        {
            self.max_bw[1] = self.max_bw[1].max(rate);
        }
        if !self.loss_round_start {
            return;
        }
        if self.loss_in_round && !self.state.accelerates() {
            self.lower_short_term_bounds(window);
        }
        self.loss_in_round = false;
    }

    pub(super) fn update_round(&mut self, sample: &RateSample) {
        self.round_start = sample.prior_delivered.is_some_and(|prior| prior >= self.next_round_delivered);
        if self.round_start {
            self.next_round_delivered = sample.total_delivered;
            self.round += 1;
            self.rounds_since_probe += 1;
        }
    }

    /// Lowers the short-term bounds: `InitLowerBounds` and `LossLowerBounds`.
    pub(super) fn lower_short_term_bounds(&mut self, window: &Window) {
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm == NO_BOUND {
            self.inflight_shortterm = window.cwnd;
        }
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        let reduced = (BETA * self.inflight_shortterm as f64) as u64;
        self.inflight_shortterm = self.inflight_latest.max(reduced);
    }

    pub(super) fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, NO_BOUND);
    }

    /// Updates the excess of acknowledged data over the rate: `UpdateACKAggregation`.
    pub(super) fn update_aggregation(&mut self, window: &Window, sample: &RateSample) {
        let elapsed = sample.now.saturating_since(self.extra_acked_from);
        let mut expected = volume(self.bw, elapsed);
        if self.extra_acked_delivered as f64 <= expected {
            (self.extra_acked_delivered, self.extra_acked_from, expected) = (0, sample.now, 0.0);
        }
        self.extra_acked_delivered += sample.newly_delivered;
        let extra = (self.extra_acked_delivered as f64 - expected).clamp(0.0, window.cwnd as f64);
        self.extra_acked.add(self.round, extra);
    }

    pub(super) fn extra_acked(&self) -> u64 {
        let extra = if self.full_bw_reached { self.extra_acked.max() } else { self.extra_acked.last() };
        extra as u64
    }

    pub(super) fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    /// Finds that the rate has stopped growing: `CheckFullBWReached`.
    pub(super) fn check_full_bw(&mut self, sample: &RateSample) {
        let Some(rate) = sample.rate() else { return };
        if self.full_bw_now || !self.round_start || sample.is_app_limited {
            return;
        }
        if rate >= self.full_bw * FULL_GROWTH {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// Updates the filter of the rate and raises the long-term bound: `AdaptLongTermModel`.
    pub(super) fn adapt_long_term(&mut self, window: &Window, sample: &RateSample) {
        if self.round_start {
            match self.ack_phase {
                AckPhase::ProbeStarting => self.ack_phase = AckPhase::ProbeFeedback,
                AckPhase::ProbeStopping => {
                    self.ack_phase = AckPhase::Other;
                    self.has_probe_samples = false;
                    if self.state.probes_bandwidth() && !sample.is_app_limited {
                        self.advance_max_bw();
                    }
                }
                AckPhase::Other | AckPhase::Refilling | AckPhase::ProbeFeedback => {}
            }
        }
        if self.inflight_longterm == NO_BOUND || is_too_much(sample.lost_since_sent, sample.tx_in_flight) {
            return;
        }
        self.inflight_longterm = self.inflight_longterm.max(sample.tx_in_flight);
        if self.state == State::Up {
            self.probe_upward(window, sample);
        }
    }

    /// Forgets the cycle before the last one, unless this one has no sample.
    pub(super) fn advance_max_bw(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }

    /// Raises the long-term bound while it limits the sender: `ProbeInflightLongtermUpward`.
    pub(super) fn probe_upward(&mut self, window: &Window, sample: &RateSample) {
        if !sample.is_window_limited || window.cwnd < self.inflight_longterm {
            return;
        }
        self.probe_up_acked += sample.newly_delivered;
        let more = self.probe_up_acked / self.probe_up_count;
        self.probe_up_acked -= more * self.probe_up_count;
        self.inflight_longterm += more;
        if self.round_start {
            self.raise_slope(window.cwnd);
        }
    }

    /// Doubles the growth of the long-term bound: `RaiseInflightLongtermSlope`.
    pub(super) fn raise_slope(&mut self, cwnd: u64) {
        let growth = self.mss << self.probe_up_rounds;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_count = (cwnd / growth).max(1);
    }

    /// Updates the least round trips of 5 and of 10 s: `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, sample: &RateSample) {
        let now = sample.now;
        self.probe_rtt_expired =
            self.probe_rtt_min.is_some() && now > self.probe_rtt_min_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (self.probe_rtt_expired || self.probe_rtt_min.is_none_or(|least| rtt < least))
        {
            (self.probe_rtt_min, self.probe_rtt_min_at) = (Some(rtt), now);
        }
        let has_expired = now > self.min_rtt_at + MIN_RTT_FILTER;
        let Some(recent) = self.probe_rtt_min else { return };
        if has_expired || self.min_rtt.is_none_or(|least| recent < least) {
            (self.min_rtt, self.min_rtt_at) = (Some(recent), self.probe_rtt_min_at);
        }
    }
}
