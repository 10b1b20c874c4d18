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

mod control;
mod model;
mod states;

use super::super::congestion::{Acked, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::super::{LossState, LostSegment, Params, RateSample};
use super::filter::{RoundMax, rate};
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
    /// `tx_in_flight` and `is_app_limited` of the last sample, its time, and the amount delivered then.
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
}

#[cfg(test)]
mod tests;
