//! BBR, version 3: as [version 1](super), with bounds on the rate and the flight that losses and marks set.
//!
//! Source: draft-ietf-ccwg-bbr (the text of 2025 in the working group's repository); the letters of the draft where it has them.
//!
//! | bound | set | reset |
//! | --- | --- | --- |
//! | `inflight_longterm` | in Startup or while probing, when a round trip loses more than 2 %: to the flight of that time | grows in `ProbeBW_UP` by 1, 2, 4, ... segments a round trip |
//! | `bw_shortterm`, `inflight_shortterm` | otherwise, at the end of a round trip with a loss: to its delivered volume and rate, or 0.7 of the bound | when probing begins |
//!
//! | state | pacing gain | window gain | bounds of the flight |
//! | --- | --- | --- | --- |
//! | Startup | 2.77 | 2 | |
//! | Drain | 0.35 | 2 | short-term |
//! | `ProbeBW_DOWN` | 0.9 | 2 | long-term, short-term |
//! | `ProbeBW_CRUISE` | 1 | 2 | 0.85 of long-term, short-term |
//! | `ProbeBW_REFILL` | 1 | 2 | long-term |
//! | `ProbeBW_UP` | 1.25 | 2.25 | long-term |
//! | `ProbeRTT` | 1 | 0.5 | 0.85 of long-term, short-term |
//!
//! `ProbeBW_UP` begins 2 to 3 s after the last one, or after as many round trips as the product has segments, at most 63. `ProbeRTT` begins when
//! the least round trip of 5 s has not been seen for as long, and lasts 200 ms and a round trip.
//!
//! *Marks.* The draft leaves the response to research, and requires that a mark is treated as congestion. Here an ECN echo (RFC 3168), at
//! most one per window of data, is a round trip that loses too much: it ends Startup, sets `inflight_longterm` while probing, and the
//! short-term bounds otherwise.
//!
//! Worked: 100 segments were in flight when a segment left, and it is the third of them that is lost: 3 > 2 % of 100. The two before it
//! are allowed, so `lost_prefix = (0.02 * 99 - 2) / 0.98 = -0.02` segments and `inflight_longterm` is 99 segments less that
//! (`the_third_of_a_hundred_losses_bounds_the_flight`).
//!
//! Departures from the draft's pseudocode, after its text: the filter of `max_bw` advances once in a cycle, and samples of probing end with it.

use super::super::congestion::{Acked, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::super::{LossState, LostSegment, Params, RateSample};
use super::filter::{RoundMax, draw, rate, volume};
use cutline_units::{Duration, Instant, Rate};

const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.35;
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
const PROBE_RTT_WINDOW_GAIN: f64 = 0.5;
/// 1 - `PacingMarginPercent`.
const MARGIN: f64 = 0.99;
/// Tolerated share of lost data in a round trip: `LossThresh`.
const LOSS_THRESHOLD: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
/// Least window in segments: `MinPipeCwnd`.
const LEAST_SEGMENTS: u64 = 4;
/// Length of the filter of the least round trip: `MinRTTFilterLen`.
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// `StartupFullLossCnt`: ranges lost in the round trip that ends Startup.
const STARTUP_LOST_RANGES: u32 = 6;
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The most round trips between two probes, for the sake of Reno.
const MOST_ROUNDS: u64 = 63;
/// Round trip that is assumed before the first sample.
const ASSUMED_RTT: Duration = Duration::from_millis(1);
/// Limit of `send_quantum`, bytes.
const MOST_QUANTUM: u64 = 64_000;
const NO_BOUND: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// Returns whether this is one of the states of `ProbeBW`.
    fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Returns whether the sender accelerates: `IsProbingBW`.
    fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => DRAIN_PACING_GAIN,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
            Self::Up => 1.25,
        }
    }

    fn window_gain(self) -> f64 {
        match self {
            Self::Up => UP_WINDOW_GAIN,
            Self::ProbeRtt => PROBE_RTT_WINDOW_GAIN,
            _ => WINDOW_GAIN,
        }
    }
}

/// The samples that acknowledgements bring: `ack_phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Other,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The bounds that may be restored after a loss that was none.
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: State,
    bw_shortterm: f64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

/// The state of the algorithm. Rates are in bytes per second, volumes in bytes.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the draft, independent of each other")]
pub struct Bbr3 {
    mss: u64,
    initial_window: u64,
    state: State,
    pacing_rate: f64,
    has_round_trip: bool,
    /// `max_bw_filter`: the previous cycle and this one.
    max_bw: [f64; 2],
    bw: f64,
    bw_shortterm: f64,
    bw_latest: f64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
    inflight_latest: u64,
    round: u64,
    next_round_delivered: u64,
    round_start: bool,
    rounds_since_probe: u64,
    loss_in_round: bool,
    loss_round_delivered: u64,
    loss_round_start: bool,
    /// Discontiguous ranges lost in this round trip, and the end of the last one.
    lost_ranges: u32,
    lost_end: u64,
    full_bw_reached: bool,
    full_bw_now: bool,
    full_bw: f64,
    full_bw_count: u32,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    probe_rtt_min: Option<Duration>,
    probe_rtt_min_at: Instant,
    probe_rtt_expired: bool,
    probe_rtt_done: Option<Instant>,
    probe_rtt_round_done: bool,
    ack_phase: AckPhase,
    /// `bw_probe_samples`.
    has_probe_samples: bool,
    probe_up_count: u64,
    probe_up_rounds: u32,
    probe_up_acked: u64,
    probe_wait: Duration,
    cycle_from: Instant,
    idle_restart: bool,
    extra_acked: RoundMax<10>,
    extra_acked_from: Instant,
    extra_acked_delivered: u64,
    prior_window: u64,
    loss_state: LossState,
    undo: Undo,
    /// `tx_in_flight` and `is_app_limited` of the last sample, and when it came with how much delivered.
    last_flight: (u64, bool),
    last_sample: (Instant, u64),
}

impl CongestionAlgorithm for Bbr3 {
    type Params = NoParams;

    const NAME: &'static str = "bbr3";
    const TITLE: &'static str = "BBR (version 3)";
    const SOURCE: &'static str = "draft-ietf-ccwg-bbr";
    const PACED: bool = true;

    fn begin(_params: &NoParams, tcp: &Params) -> Self {
        let initial_window = tcp.initial_window_bytes();
        let state = State::Startup;
        Self {
            mss: u64::from(tcp.mss),
            initial_window,
            state,
            pacing_rate: STARTUP_PACING_GAIN * initial_window as f64 / ASSUMED_RTT.as_secs_f64(),
            has_round_trip: false,
            max_bw: [0.0; 2],
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_shortterm: NO_BOUND,
            inflight_longterm: NO_BOUND,
            inflight_latest: 0,
            round: 0,
            next_round_delivered: 0,
            round_start: false,
            rounds_since_probe: 0,
            loss_in_round: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            lost_ranges: 0,
            lost_end: 0,
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0.0,
            full_bw_count: 0,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            probe_rtt_min: None,
            probe_rtt_min_at: Instant::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            ack_phase: AckPhase::Other,
            has_probe_samples: false,
            probe_up_count: NO_BOUND,
            probe_up_rounds: 0,
            probe_up_acked: 0,
            probe_wait: Duration::ZERO,
            cycle_from: Instant::ZERO,
            idle_restart: false,
            extra_acked: RoundMax::default(),
            extra_acked_from: Instant::ZERO,
            extra_acked_delivered: 0,
            prior_window: 0,
            loss_state: LossState::Open,
            undo: Undo {
                state,
                bw_shortterm: f64::INFINITY,
                inflight_shortterm: NO_BOUND,
                inflight_longterm: NO_BOUND,
            },
            last_flight: (0, false),
            last_sample: (Instant::ZERO, 0),
        }
    }
}

impl CongestionControl for Bbr3 {
    /// Does nothing: `delivered` sets the window.
    fn avoid(&mut self, _window: &mut Window, _acked: &Acked, _mss: u64) {}

    /// Keeps the window for later, because a recovery begins or the timer has expired: `SaveCwnd`. The threshold stays.
    fn congested(&mut self, window: &Window, _flight: u64, _mss: u64) -> u64 {
        self.save_window(window.cwnd);
        window.ssthresh
    }

    /// Takes a mark as a round trip that lost too much.
    fn marked(&mut self, window: &Window, _flight: u64, _mss: u64) -> u64 {
        let (now, delivered) = self.last_sample;
        self.note_loss(delivered);
        if self.state == State::Startup {
            self.leave_startup();
        } else if self.has_probe_samples {
            let (tx_in_flight, is_app_limited) = self.last_flight;
            self.handle_inflight_too_high(window, now, delivered, tx_in_flight, is_app_limited);
        }
        window.ssthresh
    }

    fn timed_out(&mut self) {
        self.loss_state = LossState::Timeout;
        self.save_undo();
    }

    fn lost(&mut self, window: &Window, loss: &LostSegment) {
        self.note_loss(loss.total_delivered);
        self.lost_ranges += u32::from(loss.seq != self.lost_end);
        self.lost_end = loss.seq + loss.bytes;
        if self.has_probe_samples && is_too_much(loss.lost_since_sent, loss.tx_in_flight) {
            let inflight = inflight_at_loss(loss);
            self.handle_inflight_too_high(
                window,
                loss.now,
                loss.total_delivered,
                inflight,
                loss.is_app_limited,
            );
        }
    }

    fn delivered(&mut self, window: &mut Window, sample: &RateSample) {
        if sample.prior_delivered.is_some() {
            self.last_flight = (sample.tx_in_flight, sample.is_app_limited);
        }
        self.last_sample = (sample.now, sample.total_delivered);
        self.update_model_and_state(window, sample);
        self.set_pacing_rate(window, sample);
        self.set_window(window, sample);
    }

    /// Paces at the rate of the model: `HandleRestartFromIdle`.
    fn restarted(&mut self, window: &mut Window, now: Instant) {
        self.idle_restart = true;
        self.extra_acked_from = now;
        if self.state.probes_bandwidth() {
            self.pace(1.0);
        } else if self.state == State::ProbeRtt {
            let delivered = self.last_sample.1;
            self.check_probe_rtt_done(window, now, delivered);
        }
    }

    /// Restores the bounds from before the loss: `HandleSpuriousLossDetection`.
    fn spurious(&mut self) {
        self.loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        if self.state == State::ProbeRtt || self.state == self.undo.state {
            return;
        }
        match self.undo.state {
            State::Startup => self.state = State::Startup,
            State::Up => {
                let delivered = self.last_sample.1;
                self.start_up(delivered, 0.0, self.initial_window);
            }
            _ => {}
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(rate(self.pacing_rate))
    }

    fn limits_itself(&self) -> bool {
        self.state == State::ProbeRtt
    }
}

/// Returns whether more is lost than tolerated: `IsInflightTooHigh`.
fn is_too_much(lost: u64, tx_in_flight: u64) -> bool {
    lost as f64 > tx_in_flight as f64 * LOSS_THRESHOLD
}

/// Returns the bytes in flight when the losses crossed the threshold: `InflightAtLoss`.
fn inflight_at_loss(loss: &LostSegment) -> u64 {
    let before = loss.tx_in_flight.saturating_sub(loss.bytes) as f64;
    let lost_before = loss.lost_since_sent.saturating_sub(loss.bytes) as f64;
    let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
    (before + prefix).max(0.0) as u64
}

impl Bbr3 {
    fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    fn least_window(&self) -> u64 {
        LEAST_SEGMENTS * self.mss
    }

    fn update_model_and_state(&mut self, window: &mut Window, sample: &RateSample) {
        self.update_latest_delivery(sample);
        self.update_congestion_signals(window, sample);
        self.update_aggregation(window, sample);
        self.check_full_bw(sample);
        self.check_startup_done(sample);
        if self.state == State::Drain && sample.in_flight <= self.inflight(self.bw, 1.0) {
            self.start_down(sample.now, sample.total_delivered);
        }
        self.update_cycle_phase(window, sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(window, sample);
        if self.loss_round_start {
            self.bw_latest = sample.rate().unwrap_or(0.0);
            self.inflight_latest = sample.delivered;
        }
        self.bw = self.max_bw().min(self.bw_shortterm);
    }

    /// Updates what this round trip has delivered: `UpdateLatestDeliverySignals`.
    fn update_latest_delivery(&mut self, sample: &RateSample) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(sample.rate().unwrap_or(0.0));
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered) {
            self.loss_round_delivered = sample.total_delivered;
            self.loss_round_start = true;
        }
    }

    /// Updates the rate, and the short-term bounds at the end of a round trip with a loss: `UpdateCongestionSignals`.
    fn update_congestion_signals(&mut self, window: &Window, sample: &RateSample) {
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

    fn update_round(&mut self, sample: &RateSample) {
        self.round_start = sample.prior_delivered.is_some_and(|prior| prior >= self.next_round_delivered);
        if self.round_start {
            self.next_round_delivered = sample.total_delivered;
            self.round += 1;
            self.rounds_since_probe += 1;
        }
    }

    /// Lowers the short-term bounds: `InitLowerBounds` and `LossLowerBounds`.
    fn lower_short_term_bounds(&mut self, window: &Window) {
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

    fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, NO_BOUND);
    }

    /// Updates the excess of acknowledged data over the rate: `UpdateACKAggregation`.
    fn update_aggregation(&mut self, window: &Window, sample: &RateSample) {
        let elapsed = sample.now.saturating_since(self.extra_acked_from);
        let mut expected = volume(self.bw, elapsed);
        if self.extra_acked_delivered as f64 <= expected {
            (self.extra_acked_delivered, self.extra_acked_from, expected) = (0, sample.now, 0.0);
        }
        self.extra_acked_delivered += sample.newly_delivered;
        let extra = (self.extra_acked_delivered as f64 - expected).clamp(0.0, window.cwnd as f64);
        self.extra_acked.add(self.round, extra);
    }

    fn extra_acked(&self) -> u64 {
        let extra = if self.full_bw_reached { self.extra_acked.max() } else { self.extra_acked.last() };
        extra as u64
    }

    fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    /// Finds that the rate has stopped growing: `CheckFullBWReached`.
    fn check_full_bw(&mut self, sample: &RateSample) {
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

    fn check_startup_done(&mut self, sample: &RateSample) {
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
    fn leave_startup(&mut self) {
        self.full_bw_reached = true;
        self.inflight_longterm = self.product(self.bw, 1.0).max(self.inflight_latest);
        self.state = State::Drain;
    }

    /// Moves on in the cycle of `ProbeBW`: `UpdateProbeBWCyclePhase`.
    fn update_cycle_phase(&mut self, window: &Window, sample: &RateSample) {
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

    /// Updates the filter of the rate and raises the long-term bound: `AdaptLongTermModel`.
    fn adapt_long_term(&mut self, window: &Window, sample: &RateSample) {
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
    fn advance_max_bw(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }

    /// Raises the long-term bound while it limits the sender: `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, window: &Window, sample: &RateSample) {
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
    fn raise_slope(&mut self, cwnd: u64) {
        let growth = self.mss << self.probe_up_rounds;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_count = (cwnd / growth).max(1);
    }

    fn is_time_to_probe(&self, window: &Window, now: Instant) -> bool {
        let rounds = (self.target_inflight(window) / self.mss).min(MOST_ROUNDS);
        now > self.cycle_from + self.probe_wait || self.rounds_since_probe >= rounds
    }

    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        sample.in_flight <= self.inflight_with_headroom()
            && sample.in_flight <= self.inflight(self.max_bw(), 1.0)
    }

    fn is_time_to_go_down(&mut self, window: &Window, sample: &RateSample) -> bool {
        if sample.is_window_limited && window.cwnd >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = sample.rate().unwrap_or(0.0);
            return false;
        }
        self.full_bw_now
    }

    fn start_down(&mut self, now: Instant, delivered: u64) {
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

    fn start_refill(&mut self, delivered: u64) {
        self.reset_short_term();
        (self.probe_up_rounds, self.probe_up_acked) = (0, 0);
        self.ack_phase = AckPhase::Refilling;
        self.next_round_delivered = delivered;
        self.state = State::Refill;
    }

    fn start_up(&mut self, delivered: u64, rate: f64, cwnd: u64) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.next_round_delivered = delivered;
        self.reset_full_bw();
        self.full_bw = rate;
        self.state = State::Up;
        self.raise_slope(cwnd);
    }

    /// Notes that this round trip has a loss or a mark: `NoteLoss`.
    fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.loss_round_delivered = delivered;
            self.save_undo();
        }
        self.loss_in_round = true;
    }

    fn save_undo(&mut self) {
        let Self { state, bw_shortterm, inflight_shortterm, inflight_longterm, .. } = *self;
        self.undo = Undo { state, bw_shortterm, inflight_shortterm, inflight_longterm };
    }

    /// Sets the long-term bound, and ends probing: `HandleInflightTooHigh`.
    fn handle_inflight_too_high(
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

    /// Updates the least round trips of 5 and of 10 s: `UpdateMinRTT`.
    fn update_min_rtt(&mut self, sample: &RateSample) {
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

    /// Begins, continues and ends `ProbeRTT`: `CheckProbeRTT` and `HandleProbeRTT`.
    fn check_probe_rtt(&mut self, window: &mut Window, sample: &RateSample) {
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

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: Instant, delivered: u64) {
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

    fn pace(&mut self, gain: f64) {
        let rate = gain * self.bw * MARGIN;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_pacing_rate(&mut self, window: &Window, sample: &RateSample) {
        if !self.has_round_trip && !sample.srtt.is_zero() {
            self.has_round_trip = true;
            self.pacing_rate = STARTUP_PACING_GAIN * window.cwnd as f64 / sample.srtt.as_secs_f64();
        }
        self.pace(self.state.pacing_gain());
    }

    /// `send_quantum`, bytes.
    fn quantum(&self) -> u64 {
        ((self.pacing_rate / 1e3) as u64).min(MOST_QUANTUM).max(2 * self.mss)
    }

    /// Returns the product of a rate and the least round trip, times a gain: `BDPMultiple`.
    fn product(&self, bandwidth: f64, gain: f64) -> u64 {
        self.min_rtt.map_or(self.initial_window, |rtt| (volume(bandwidth, rtt) * gain) as u64)
    }

    /// Returns a volume with room for three quanta: `QuantizationBudget`.
    fn with_quanta(&self, inflight: u64) -> u64 {
        let most = inflight.max(3 * self.quantum()).max(self.least_window());
        most + if self.state == State::Up { 2 * self.mss } else { 0 }
    }

    fn inflight(&self, bandwidth: f64, gain: f64) -> u64 {
        self.with_quanta(self.product(bandwidth, gain))
    }

    fn target_inflight(&self, window: &Window) -> u64 {
        self.product(self.bw, 1.0).min(window.cwnd)
    }

    fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == NO_BOUND {
            return NO_BOUND;
        }
        let headroom = ((HEADROOM * self.inflight_longterm as f64) as u64).max(self.mss);
        self.inflight_longterm.saturating_sub(headroom).max(self.least_window())
    }

    fn probe_rtt_window(&self) -> u64 {
        self.product(self.bw, PROBE_RTT_WINDOW_GAIN).max(self.least_window())
    }

    /// Keeps the window, to restore it later: `SaveCwnd`.
    fn save_window(&mut self, cwnd: u64) {
        let is_normal = self.loss_state == LossState::Open && self.state != State::ProbeRtt;
        self.prior_window = if is_normal { cwnd } else { self.prior_window.max(cwnd) };
    }

    /// Sets the window within its bounds: `SetCwnd`, and `RestoreCwnd` after a recovery.
    fn set_window(&mut self, window: &mut Window, sample: &RateSample) {
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

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    const MSS: u64 = 1000;

    fn bbr() -> (Bbr3, Window) {
        let tcp = Params { algorithm: crate::tcp::Algorithm::Bbr3, ..Params::default() };
        (Bbr3::begin(&NoParams {}, &tcp), Window { cwnd: 100 * MSS, ssthresh: u64::MAX })
    }

    fn loss(number: u64, tx_in_flight: u64) -> LostSegment {
        LostSegment {
            now: Instant::ZERO,
            seq: number * 2 * MSS,
            bytes: MSS,
            total_delivered: 0,
            tx_in_flight,
            lost_since_sent: number * MSS,
            is_app_limited: false,
        }
    }

    #[test]
    fn the_third_of_a_hundred_losses_bounds_the_flight() {
        let (mut bbr, window) = bbr();
        (bbr.state, bbr.full_bw_reached, bbr.has_probe_samples) = (State::Up, true, true);
        (bbr.bw, bbr.min_rtt) = (1e6, Some(Duration::from_millis(100)));
        // draft-ietf-ccwg-bbr, IsInflightTooHigh(): 2 % of 100 segments are allowed.
        (1..=2).for_each(|n| bbr.lost(&window, &loss(n, 100 * MSS)));
        assert_eq!((bbr.inflight_longterm, bbr.state), (NO_BOUND, State::Up));
        bbr.lost(&window, &loss(3, 100 * MSS));
        // InflightAtLoss(): 99,000 + (0.02 * 99,000 - 2000) / 0.98.
        assert_eq!((bbr.inflight_longterm, bbr.state), (98_979, State::Down));
        // It reacts once: more losses of the same probe set no lower bound.
        bbr.lost(&window, &loss(40, 80 * MSS));
        assert_eq!(bbr.inflight_longterm, 98_979);
    }

    #[test]
    fn outside_of_probing_a_round_trip_with_a_loss_lowers_the_short_term_bounds() {
        let (mut bbr, mut window) = bbr();
        (bbr.state, bbr.full_bw_reached) = (State::Cruise, true);
        (bbr.max_bw, bbr.bw, bbr.min_rtt) = ([1e6, 1e6], 1e6, Some(Duration::from_millis(100)));
        (bbr.probe_rtt_min, bbr.cycle_from, bbr.probe_wait) =
            (bbr.min_rtt, Instant::ZERO, Duration::from_secs(60));
        bbr.lost(&window, &loss(1, 100 * MSS));
        // The round trip delivers 50,000 B at 500 kB/s: less than 0.7 of the rate and of the window.
        let ended = RateSample {
            prior_delivered: Some(60 * MSS),
            total_delivered: 120 * MSS,
            delivered: 50 * MSS,
            newly_delivered: MSS,
            ..sample(100)
        };
        bbr.delivered(&mut window, &ended);
        assert!((bbr.bw_shortterm - 0.7e6).abs() < 1.0, "{}", bbr.bw_shortterm);
        assert_eq!((bbr.inflight_shortterm, window.cwnd), (70 * MSS, 70 * MSS));
        assert!((bbr.bw - 0.7e6).abs() < 1.0);
        bbr.start_refill(0);
        assert!(bbr.bw_shortterm.is_infinite() && bbr.inflight_shortterm == NO_BOUND);
    }

    #[test]
    fn a_mark_ends_startup_and_bounds_the_flight() {
        let (mut bbr, window) = bbr();
        (bbr.bw, bbr.min_rtt, bbr.inflight_latest) = (1e6, Some(Duration::from_millis(100)), 130 * MSS);
        assert_eq!(bbr.marked(&window, 0, MSS), u64::MAX);
        assert_eq!((bbr.state, bbr.inflight_longterm), (State::Drain, 130 * MSS));
    }

    #[test]
    fn the_long_term_bound_grows_by_one_two_and_four_segments() {
        let (mut bbr, _) = bbr();
        (bbr.state, bbr.full_bw_reached, bbr.inflight_longterm) = (State::Up, true, 100 * MSS);
        let window = Window { cwnd: 100 * MSS, ssthresh: u64::MAX };
        bbr.raise_slope(window.cwnd);
        for growth in [1, 2, 4] {
            let before = bbr.inflight_longterm;
            for n in 1..=100 {
                bbr.round_start = n == 100;
                let window = Window { cwnd: bbr.inflight_longterm, ..window };
                bbr.probe_upward(
                    &window,
                    &RateSample { newly_delivered: MSS, is_window_limited: true, ..sample(1) },
                );
            }
            let grown = (bbr.inflight_longterm - before) as f64 / MSS as f64;
            assert!((grown - growth as f64).abs() < 0.2 * growth as f64, "{grown} segments, not {growth}");
        }
    }
}
