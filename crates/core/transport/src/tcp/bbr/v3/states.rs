//! The states: conditions and steps from one to the next.

use super::super::super::congestion::Window;
use super::super::super::{LossState, RateSample};
use super::super::filter::draw;
use super::{
    AckPhase, BETA, Bbr3, MOST_ROUNDS, NO_BOUND, PROBE_RTT_DURATION, STARTUP_LOST_RANGES, State, Undo,
    is_too_much,
};
use cutline_units::{Duration, Instant};

impl Bbr3 {
    pub(super) fn check_startup_done(&mut self, sample: &RateSample) {
        if self.loss_round_start {
            let loses_much = self.lost_ranges >= STARTUP_LOST_RANGES
                && sample.state == LossState::Recovery
                && is_too_much(sample.lost_since_sent, sample.tx_in_flight);
            if self.state == State::Startup && loses_much {
                self.leave_startup();
            }
            self.lost_ranges = 0;
        }
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
        }
    }

    /// Ends Startup for losses or a mark: the pipe is full, and the delivered volume bounds the flight.
    pub(super) fn leave_startup(&mut self) {
        self.full_bw_reached = true;
        self.inflight_longterm = self.product(self.bw, 1.0).max(self.inflight_latest);
        self.state = State::Drain;
    }

    /// Moves on in the cycle of `ProbeBW`: `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle_phase(&mut self, window: &Window, sample: &RateSample) {
        if !self.full_bw_reached {
            return;
        }
        self.adapt_long_term(window, sample);
        let delivered = sample.total_delivered;
        let begins_up = self.state == State::Refill;
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(window, sample.now) => {
                self.start_refill(delivered);
            }
            State::Down if self.is_time_to_cruise(sample) => self.state = State::Cruise,
            State::Refill if self.round_start => {
                self.has_probe_samples = true;
                self.start_up(delivered, sample.rate().unwrap_or(0.0), window.cwnd);
            }
            _ => {}
        }
        if self.state == State::Up && !begins_up && self.is_time_to_go_down(window, sample) {
            self.start_down(sample.now, delivered);
        }
    }

    pub(super) fn is_time_to_probe(&self, window: &Window, now: Instant) -> bool {
        let rounds = (self.target_inflight(window) / self.mss).min(MOST_ROUNDS);
        now > self.cycle_from + self.probe_wait || self.rounds_since_probe >= rounds
    }

    pub(super) fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        sample.in_flight <= self.inflight_with_headroom()
            && sample.in_flight <= self.inflight(self.max_bw(), 1.0)
    }

    pub(super) fn is_time_to_go_down(&mut self, window: &Window, sample: &RateSample) -> bool {
        if sample.is_window_limited && window.cwnd >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = sample.rate().unwrap_or(0.0);
            return false;
        }
        self.full_bw_now
    }

    pub(super) fn start_down(&mut self, now: Instant, delivered: u64) {
        self.loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0);
        self.probe_up_count = NO_BOUND;
        let drawn = draw(now);
        self.rounds_since_probe = u64::from(drawn < 0.5);
        self.probe_wait = Duration::from_secs(2) + Duration::from_secs_f64((drawn * 2.0).fract());
        self.cycle_from = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.next_round_delivered = delivered;
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, delivered: u64) {
        self.reset_short_term();
        (self.probe_up_rounds, self.probe_up_acked) = (0, 0);
        self.ack_phase = AckPhase::Refilling;
        self.next_round_delivered = delivered;
        self.state = State::Refill;
    }

    pub(super) fn start_up(&mut self, delivered: u64, rate: f64, cwnd: u64) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.next_round_delivered = delivered;
        self.reset_full_bw();
        self.full_bw = rate;
        self.state = State::Up;
        self.raise_slope(cwnd);
    }

    /// Notes that this round trip has a loss or a mark: `NoteLoss`.
    pub(super) fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.loss_round_delivered = delivered;
            self.save_undo();
        }
        self.loss_in_round = true;
    }

    pub(super) fn save_undo(&mut self) {
        let Self { state, bw_shortterm, inflight_shortterm, inflight_longterm, .. } = *self;
        self.undo = Undo { state, bw_shortterm, inflight_shortterm, inflight_longterm };
    }

    /// Sets the long-term bound, and ends probing: `HandleInflightTooHigh`.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        window: &Window,
        now: Instant,
        delivered: u64,
        tx_in_flight: u64,
        is_app_limited: bool,
    ) {
        self.has_probe_samples = false;
        if !is_app_limited {
            let reduced = (self.target_inflight(window) as f64 * BETA) as u64;
            self.inflight_longterm = tx_in_flight.max(reduced);
        }
        if self.state == State::Up {
            self.start_down(now, delivered);
        }
    }

    /// Begins, continues and ends `ProbeRTT`: `CheckProbeRTT` and `HandleProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, window: &mut Window, sample: &RateSample) {
        let delivered = sample.total_delivered;
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_window(window.cwnd);
            self.state = State::ProbeRtt;
            self.probe_rtt_done = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.next_round_delivered = delivered;
        }
        if self.state == State::ProbeRtt {
            if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(window, sample.now, delivered);
                }
            } else if sample.in_flight <= self.probe_rtt_window() {
                self.probe_rtt_done = Some(sample.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = delivered;
            }
        }
        if sample.newly_delivered > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, window: &mut Window, now: Instant, delivered: u64) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_at = now;
        window.cwnd = window.cwnd.max(self.prior_window);
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(now, delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
