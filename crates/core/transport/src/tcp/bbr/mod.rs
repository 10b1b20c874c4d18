//! BBR, version 1, as in Linux: the window and the rate follow a model of the path, and losses do not reduce them by themselves.
//!
//! Sources: N. Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00; the behaviour of Linux 6.
//!
//! ```text
//! BtlBw  = largest delivery rate of the last 10 round trips     RTprop = least round trip of the last 10 s
//! pacing_rate = 0.99 pacing_gain BtlBw                          cwnd   = cwnd_gain BtlBw RTprop + extra_acked + 3 quanta
//! ```
//!
//! | state | `pacing_gain` | `cwnd_gain` | ends |
//! | --- | --- | --- | --- |
//! | Startup | 2.885 = 2 / ln 2 | 2.885 | after three round trips in which the rate grew by less than a quarter |
//! | Drain | 1 / 2.885 | 2.885 | when no more than `BtlBw RTprop` is in flight |
//! | `ProbeBW` | 1.25, 0.75, and six times 1, each for `RTprop` | 2 | |
//! | `ProbeRTT` | 1 | window of 4 segments | 200 ms and a round trip after the flight has fallen to the window |
//!
//! `ProbeRTT` begins when `RTprop` has not been seen for 10 s. In the first round trip of a recovery, packets are conserved; its end restores
//! the window. [`aggregation`] allows for acknowledgements that arrive in bursts, and [`policer`] finds a token bucket (both as in Linux).
//!
//! Worked: 10 Mbit/s and 40 ms are 50,000 B. With segments of 1000 B and a quantum of two segments, the window of `ProbeBW` is
//! 100 + 3 * 2 = 106 segments (`the_window_is_two_products_and_three_quanta`).
//!
//! Not as in Linux: segments leave one by one, and not by quanta; the first window leaves without a round-trip time from a handshake, so at
//! the initial window per millisecond. A mark is ignored, as Linux does.

mod aggregation;
mod filter;
mod policer;
#[cfg(test)]
mod tests;
mod v3;

pub use v3::Bbr3;

#[cfg(test)]
pub(super) use tests::sample;

use super::congestion::{Acked, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::{LossState, Params, RateSample};
use aggregation::Aggregation;
use cutline_units::{Duration, Instant, Rate};
use filter::{RoundMax, draw, rate, volume};
use policer::Policer;

/// 2 / ln 2, the least gain with which the rate doubles in each round trip.
const HIGH_GAIN: f64 = 2.885;
/// The gains of `ProbeBW`.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const CYCLE_WINDOW_GAIN: f64 = 2.0;
/// Pacing stays a hundredth below the model, so that queues drain.
const MARGIN: f64 = 0.99;
const RTPROP_FILTER: Duration = Duration::from_secs(10);
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Segments in flight that a receiver with delayed acknowledgements needs.
const LEAST_SEGMENTS: u64 = 4;
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Round trip that is assumed before the first sample.
const ASSUMED_RTT: Duration = Duration::from_millis(1);
/// Below this pacing rate, a quantum is one segment, above it at least two.
const SINGLE_SEGMENT_BELOW: f64 = 1.2e6 / 8.0;
/// Limit of a quantum, bytes.
const MOST_QUANTUM: f64 = 65_200.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// The state of the algorithm.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the draft, independent of each other")]
pub struct Bbr {
    mss: u64,
    initial_window: u64,
    mode: Mode,
    pacing_gain: f64,
    window_gain: f64,
    /// Bytes per second.
    pacing_rate: f64,
    has_round_trip: bool,
    /// `BtlBw`, bytes per second.
    bandwidth: RoundMax<10>,
    round: u64,
    /// End of the round trip: the delivery of a segment that left with at least this amount delivered.
    round_end: u64,
    round_started: bool,
    /// `RTprop`.
    least_rtt: Option<Duration>,
    least_rtt_at: Instant,
    probe_rtt_done: Option<Instant>,
    probe_rtt_round: bool,
    cycle: usize,
    cycle_from: Instant,
    full_bandwidth: f64,
    full_rounds: u32,
    is_full: bool,
    idle_restart: bool,
    aggregation: Aggregation,
    policer: Policer,
    state: LossState,
    conserves: bool,
    /// The window before recovery or `ProbeRTT`.
    prior_window: u64,
    /// The timer has expired since the last acknowledgement.
    timed_out: bool,
}

impl CongestionAlgorithm for Bbr {
    type Params = NoParams;

    const NAME: &'static str = "bbr";
    const TITLE: &'static str = "BBR (version 1)";
    const SOURCE: &'static str = "Cardwell et al. 2016; Linux";
    const PACED: bool = true;

    fn begin(_params: &NoParams, tcp: &Params) -> Self {
        let initial_window = tcp.initial_window_bytes();
        Self {
            mss: u64::from(tcp.mss),
            initial_window,
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            pacing_rate: HIGH_GAIN * initial_window as f64 / ASSUMED_RTT.as_secs_f64(),
            has_round_trip: false,
            bandwidth: RoundMax::default(),
            round: 0,
            round_end: 0,
            round_started: false,
            least_rtt: None,
            least_rtt_at: Instant::ZERO,
            probe_rtt_done: None,
            probe_rtt_round: false,
            cycle: 0,
            cycle_from: Instant::ZERO,
            full_bandwidth: 0.0,
            full_rounds: 0,
            is_full: false,
            idle_restart: false,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            state: LossState::Open,
            conserves: false,
            prior_window: 0,
            timed_out: false,
        }
    }
}

impl CongestionControl for Bbr {
    /// Does nothing: `delivered` sets the window.
    fn avoid(&mut self, _window: &mut Window, _acked: &Acked, _mss: u64) {}

    /// Keeps the window for later, because a recovery begins or the timer has expired. The threshold stays.
    fn congested(&mut self, window: &Window, _flight: u64, _mss: u64) -> u64 {
        self.keep_window(window.cwnd);
        window.ssthresh
    }

    fn marked(&mut self, window: &Window, _flight: u64, _mss: u64) -> u64 {
        window.ssthresh
    }

    fn timed_out(&mut self) {
        self.timed_out = true;
        self.state = LossState::Timeout;
        self.full_bandwidth = 0.0;
    }

    fn delivered(&mut self, window: &mut Window, sample: &RateSample) {
        self.update_bandwidth(sample);
        self.aggregation.update(sample, self.round_started, self.bandwidth(), window.cwnd);
        self.update_cycle(sample);
        self.check_full(sample);
        self.check_drained(sample);
        self.update_least_rtt(window, sample);
        self.set_gains();
        self.set_pacing_rate(window, sample);
        self.set_window(window, sample);
        self.timed_out = false;
    }

    fn restarted(&mut self, window: &mut Window, now: Instant) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth => self.pace(1.0),
            Mode::ProbeRtt => self.check_probe_rtt_done(window, now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn spurious(&mut self) {
        (self.full_bandwidth, self.full_rounds) = (0.0, 0);
        self.policer.reset();
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(rate(self.pacing_rate))
    }

    fn limits_itself(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }
}

impl Bbr {
    /// Returns the rate of the model, bytes per second.
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.max())
    }

    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.round_started = self.timed_out;
        let (Some(prior), Some(bandwidth)) = (sample.prior_delivered, sample.rate()) else { return };
        if prior >= self.round_end {
            self.round_end = sample.total_delivered;
            self.round += 1;
            self.round_started = true;
            self.conserves = false;
        }
        let has_losses = sample.newly_lost > 0 || self.timed_out;
        let probes = self.mode == Mode::ProbeBandwidth;
        if self.policer.update(sample, self.round_started, has_losses, probes) {
            self.begin_cycle(sample.now);
        }
        // A rate that the application limits counts if it is higher.
        if !sample.is_app_limited || bandwidth >= self.bandwidth.max() {
            self.bandwidth.add(self.round, bandwidth);
        }
    }

    fn update_cycle(&mut self, sample: &RateSample) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let is_long = Some(sample.now.saturating_since(self.cycle_from)) > self.least_rtt;
        let in_flight = self.in_flight_at_departure(sample, sample.prior_in_flight);
        let model = self.bandwidth.max();
        let ends = if self.pacing_gain > 1.0 {
            is_long && (sample.newly_lost > 0 || in_flight >= self.inflight(model, self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            is_long || in_flight <= self.inflight(model, 1.0)
        } else {
            is_long
        };
        if ends {
            self.cycle = (self.cycle + 1) % CYCLE.len();
            self.cycle_from = sample.now;
        }
    }

    /// Begins `ProbeBW` in any phase but that of 0.75.
    fn begin_cycle(&mut self, now: Instant) {
        self.mode = Mode::ProbeBandwidth;
        let others = CYCLE.len() - 1;
        let drawn = ((draw(now) * others as f64) as usize).min(others - 1);
        self.cycle = (CYCLE.len() - drawn) % CYCLE.len();
        self.cycle_from = now;
    }

    /// Finds that the rate has stopped growing: the pipe is full.
    fn check_full(&mut self, sample: &RateSample) {
        if self.is_full || !self.round_started || sample.is_app_limited {
            return;
        }
        if self.bandwidth.max() >= self.full_bandwidth * FULL_GROWTH {
            (self.full_bandwidth, self.full_rounds) = (self.bandwidth.max(), 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drained(&mut self, sample: &RateSample) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            self.set_gains();
        }
        if self.mode == Mode::Drain
            && self.in_flight_at_departure(sample, sample.in_flight)
                <= self.inflight(self.bandwidth.max(), 1.0)
        {
            self.begin_cycle(sample.now);
        }
    }

    fn update_least_rtt(&mut self, window: &mut Window, sample: &RateSample) {
        let has_expired = self.least_rtt.is_some() && sample.now > self.least_rtt_at + RTPROP_FILTER;
        if let Some(rtt) = sample.rtt
            && (self.least_rtt.is_none_or(|least| rtt < least) || (has_expired && !sample.is_ack_delayed))
        {
            (self.least_rtt, self.least_rtt_at) = (Some(rtt), sample.now);
        }
        if has_expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.keep_window(window.cwnd);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            if self.probe_rtt_done.is_some() {
                self.probe_rtt_round |= self.round_started;
                if self.probe_rtt_round {
                    self.check_probe_rtt_done(window, sample.now);
                }
            } else if sample.in_flight <= LEAST_SEGMENTS * self.mss {
                self.probe_rtt_done = Some(sample.now + PROBE_RTT);
                self.probe_rtt_round = false;
                self.round_end = sample.total_delivered;
            }
        }
        if sample.newly_delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: Instant) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.least_rtt_at = now;
        window.cwnd = window.cwnd.max(self.prior_window);
        if self.is_full {
            self.begin_cycle(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn set_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (1.0, CYCLE_WINDOW_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.cycle], CYCLE_WINDOW_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    fn pace(&mut self, gain: f64) {
        let rate = self.bandwidth() * gain * MARGIN;
        if self.is_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_pacing_rate(&mut self, window: &Window, sample: &RateSample) {
        if !self.has_round_trip && !sample.srtt.is_zero() {
            self.has_round_trip = true;
            self.pacing_rate = HIGH_GAIN * window.cwnd as f64 / sample.srtt.as_secs_f64();
        }
        self.pace(self.pacing_gain);
    }

    /// Returns the number of segments that leave together in Linux.
    fn quantum(&self) -> u64 {
        let least = if self.pacing_rate < SINGLE_SEGMENT_BELOW { 1 } else { 2 };
        let bytes = (self.pacing_rate / 1024.0).min(MOST_QUANTUM);
        ((bytes / self.mss as f64) as u64).clamp(least, 127)
    }

    /// Returns the product of a rate and `RTprop`, times a gain, in bytes of whole segments.
    fn product(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(rtt) = self.least_rtt else { return self.initial_window };
        (volume(bandwidth, rtt) * gain / self.mss as f64).ceil() as u64 * self.mss
    }

    /// Returns a window with room for three quanta, in an even number of segments, and for probing.
    fn with_quanta(&self, window: u64) -> u64 {
        let segments = (window.div_ceil(self.mss) + 3 * self.quantum()).next_multiple_of(2);
        let probes = self.mode == Mode::ProbeBandwidth && self.cycle == 0;
        (segments + if probes { 2 } else { 0 }) * self.mss
    }

    fn inflight(&self, bandwidth: f64, gain: f64) -> u64 {
        self.with_quanta(self.product(bandwidth, gain))
    }

    /// Returns the bytes in flight when the next segment leaves.
    fn in_flight_at_departure(&self, sample: &RateSample, in_flight: u64) -> u64 {
        let until = sample.next_send.saturating_since(sample.now);
        let delivered = volume(self.bandwidth(), until) as u64;
        let more = if self.pacing_gain > 1.0 { self.quantum() * self.mss } else { 0 };
        (in_flight + more).saturating_sub(delivered)
    }

    /// Keeps the window, to restore it later.
    fn keep_window(&mut self, cwnd: u64) {
        let is_normal = self.state == LossState::Open && self.mode != Mode::ProbeRtt;
        self.prior_window = if is_normal { cwnd } else { self.prior_window.max(cwnd) };
    }

    fn set_window(&mut self, window: &mut Window, sample: &RateSample) {
        if sample.newly_delivered > 0 && !self.conserve_or_restore(window, sample) {
            let target = self.product(self.bandwidth(), self.window_gain);
            let extra = if self.is_full { self.aggregation.allowance(self.bandwidth()) } else { 0 };
            let target = self.with_quanta(target + extra);
            if self.is_full {
                window.cwnd = (window.cwnd + sample.newly_delivered).min(target);
            } else if window.cwnd < target || sample.total_delivered < self.initial_window {
                window.cwnd += sample.newly_delivered;
            }
            window.cwnd = window.cwnd.max(LEAST_SEGMENTS * self.mss);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(LEAST_SEGMENTS * self.mss);
        }
    }

    /// Conserves packets in the first round trip of a recovery, and restores the window after it. Returns whether that sets the window.
    fn conserve_or_restore(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        let before = std::mem::replace(&mut self.state, sample.state);
        window.cwnd = window.cwnd.saturating_sub(sample.newly_lost).max(self.mss);
        let conserved = sample.in_flight + sample.newly_delivered;
        if self.state == LossState::Recovery && before != LossState::Recovery {
            self.conserves = true;
            self.round_end = sample.total_delivered;
            window.cwnd = conserved;
        } else if self.state == LossState::Open && before != LossState::Open {
            window.cwnd = window.cwnd.max(self.prior_window);
            self.conserves = false;
        }
        if self.conserves {
            window.cwnd = window.cwnd.max(conserved);
        }
        self.conserves
    }
}
