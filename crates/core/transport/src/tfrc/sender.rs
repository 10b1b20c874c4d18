//! The sending end of TFRC (RFC 5348 section 4): the allowed rate X, and the departures of packets at that rate.
//!
//! - Before the first feedback, X is one packet per second. The first feedback sets it to the initial window of RFC 3390
//!   per round trip (RFC 5348 section 4.2). While p = 0, X doubles once per round trip: slow start
//!   (RFC 5348 section 4.3, step 4).
//! - When p > 0, `X = min(X_Bps, recv_limit)`: the throughput equation, limited to twice the recent receive rate.
//! - Without feedback for `max(4 R, 2 s / X)` the rate is halved, unless the sender was idle and slow
//!   (RFC 5348 section 4.4).
//! - `X_inst = X R_sqmean / sqrt(R_sample)` damps oscillations (RFC 5348 section 4.5).
//! - Packets leave at intervals of `s / X_inst` (RFC 5348 section 4.6). An application that had nothing to send gets no
//!   credit for that time. A late timer is compensated by at most a round trip. A rate that rises is not, so the first
//!   feedback does not cause a burst. RFC 5348 permits both.
//!
//! X is at least `s / t_mbi`. The application's packets wait in a bounded queue; packets that do not fit are dropped and counted.

use std::sync::Arc;

use cutline_params::Parameters as _;
use cutline_units::{Duration, Instant};

use super::coarse_timeout::CoarseTimeout;
use super::equation::{throughput, throughput_with_timeout};
use super::receive_rates::{DataLimits, ReceiveRates};
use super::{Feedback, Packet, Params};
use crate::queue::SendQueue;

/// The nofeedback timer before the first feedback (RFC 5348 section 4.2).
const INITIAL_NOFEEDBACK: Duration = Duration::from_secs(2);

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets sent.
    pub packets: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Packets that found the send buffer full.
    pub dropped_at_sender: u64,
    /// Feedback packets that arrived.
    pub feedback: u64,
    /// Number of expiries of the nofeedback timer.
    pub nofeedback: u64,
}

/// The sending end of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    params: Arc<Params>,
    queue: SendQueue,
    next_seq: u64,
    /// The allowed rate X and the instantaneous rate, bytes per second.
    x: f64,
    x_inst: f64,
    /// R; zero before the first feedback.
    rtt: Duration,
    /// `R_sqmean`, square root of seconds.
    r_sqmean: f64,
    timeout: CoarseTimeout,
    p: f64,
    /// Time at which X was last doubled or, with p > 0, set.
    tld: Instant,
    received: ReceiveRates,
    limits: DataLimits,
    /// Time at which the nofeedback timer expires, and whether anything was sent since it was set.
    nofeedback: Instant,
    sent_since: bool,
    /// The nominal time of the last packet; `None` before the first.
    last_nominal: Option<Instant>,
    /// The length of the last packet, bytes.
    last_len: u32,
    /// A packet waits for its nominal time, and not for the application.
    paced: bool,
    stats: Stats,
}

impl Sender {
    /// Creates a flow with nothing to send yet. `params` must be valid ([`Params::validate`]).
    pub fn new(params: &Arc<Params>, now: Instant) -> Self {
        debug_assert_eq!(params.validate(), Ok(()), "validate parameters where they are read");
        Self {
            queue: SendQueue::new(
                params.segment_size,
                params.send_buffer.map_or(usize::MAX, |packets| packets as usize),
            ),
            next_seq: 0,
            x: params.s(),
            x_inst: params.s(),
            rtt: Duration::ZERO,
            r_sqmean: 0.0,
            timeout: CoarseTimeout::default(),
            p: 0.0,
            tld: now,
            received: ReceiveRates::new(now),
            limits: DataLimits::default(),
            nofeedback: Instant::FAR_FUTURE,
            sent_since: false,
            last_nominal: None,
            last_len: 0,
            paced: false,
            stats: Stats::default(),
            params: Arc::clone(params),
        }
    }

    /// Takes a message of `bytes` from the application: one packet, or several if it is too long. Data that does not fit the
    /// send buffer is dropped. Returns whether everything fitted.
    pub fn write(&mut self, bytes: u64) -> bool {
        let dropped = self.queue.write(bytes);
        self.stats.dropped_at_sender += u64::from(dropped);
        dropped == 0
    }

    /// From now on the application always has more to send.
    pub fn write_unlimited(&mut self) {
        self.queue.write_unlimited();
    }

    /// Ends an endless supply after the bytes sent so far.
    pub fn end_supply(&mut self) {
        self.queue.end_supply();
    }

    /// Handles feedback (RFC 5348 section 4.3).
    pub fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.stats.feedback += 1;
        let sample = now.saturating_since(feedback.echo).saturating_sub(feedback.t_delay);
        let sample = sample.max(Duration::from_nanos(1));
        let first = self.rtt.is_zero();
        self.average_round_trip(sample);
        if first {
            self.start(now);
        }
        let limited = self.limits.on_feedback(now, feedback.echo);
        let recv_limit = self.receive_limit(now, feedback, limited);
        self.p = feedback.p;
        // Every report follows a packet, so X_recv = 0 means that no rate could be measured yet. It does not limit X.
        let unmeasured = feedback.x_recv == 0.0 && feedback.p > 0.0;
        let least = if self.params.packet_per_round_trip { self.packet_per_round_trip() } else { 0.0 };
        self.set_rate(now, if unmeasured { f64::INFINITY } else { recv_limit.max(least) });
        self.reduce_oscillation(sample);
        self.skip_missed_times(now);
        self.set_nofeedback_timer(now);
    }

    /// Returns the time of this sender's next action: that of a packet, or of the nofeedback timer.
    #[inline]
    pub fn deadline(&self) -> Instant {
        if self.queue.is_empty() { self.nofeedback } else { self.nofeedback.min(self.send_time()) }
    }

    /// Handles the expiration of the nofeedback timer. The caller must call [`Sender::transmit`] afterwards.
    pub fn on_deadline(&mut self, now: Instant) {
        if now >= self.nofeedback {
            self.on_nofeedback(now);
        }
    }

    /// Returns the next packet that may leave now. The caller must call this until it returns `None`.
    pub fn transmit(&mut self, now: Instant) -> Option<Packet> {
        if self.queue.is_empty() {
            return None;
        }
        if now < self.send_time() {
            self.hold(now);
            return None;
        }
        let len = self.queue.pop()?;
        let packet = self.depart(now, len);
        if !self.queue.is_empty() {
            self.hold(now);
        }
        Some(packet)
    }

    /// Returns the time at which the next packet may leave, for a caller that has a queue of its own and never calls [`Sender::write`].
    pub fn ready_at(&self) -> Instant {
        self.send_time()
    }

    /// Notes that a packet of the caller's own queue waits for its time: the application does not limit the rate.
    pub fn hold(&mut self, now: Instant) {
        self.paced = true;
        self.limits.note_not_limited(now);
    }

    /// Returns the packet of `len` bytes that the caller takes from its own queue and sends now. One that is longer than a
    /// segment delays the next one as much longer.
    pub fn depart(&mut self, now: Instant, len: u32) -> Packet {
        self.last_nominal = Some(self.nominal_time_of_departure(now));
        self.last_len = len;
        self.paced = false;
        self.packet(now, len)
    }

    /// Returns whether something was sent since the last feedback, or since the nofeedback timer expired.
    pub const fn awaits_feedback(&self) -> bool {
        self.sent_since
    }

    /// Sets the segment size, for an application whose messages have another size from now on. The rate in bytes stays, until
    /// the next feedback.
    pub fn set_segment_size(&mut self, bytes: u32) {
        Arc::make_mut(&mut self.params).segment_size = bytes;
    }

    /// Returns the allowed rate X, bytes per second.
    pub const fn rate(&self) -> f64 {
        self.x
    }

    /// Returns the instantaneous rate, bytes per second.
    pub const fn instantaneous_rate(&self) -> f64 {
        self.x_inst
    }

    /// Returns the average round-trip time; zero before the first feedback.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Returns the loss event rate last reported.
    pub const fn loss_event_rate(&self) -> f64 {
        self.p
    }

    /// Returns the number of packets that wait to be sent, without those of an endless supply.
    pub fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    fn packet(&mut self, now: Instant, len: u32) -> Packet {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.sent_since = true;
        if self.nofeedback == Instant::FAR_FUTURE {
            self.nofeedback = now + INITIAL_NOFEEDBACK;
        }
        self.stats.packets += 1;
        self.stats.bytes += u64::from(len);
        Packet { seq, sent_at: now, rtt: self.rtt, len }
    }

    /// Updates R (RFC 5348 section 4.3, step 2) and `R_sqmean` (RFC 5348 section 4.5).
    fn average_round_trip(&mut self, sample: Duration) {
        let root = sample.as_secs_f64().sqrt();
        if let Some(tick) = self.params.rto_tick {
            self.timeout.measure(sample, tick);
        }
        if self.rtt.is_zero() {
            self.rtt = sample;
            self.r_sqmean = root;
        } else {
            let q = self.params.q;
            self.rtt = self.rtt.mul_f64(q) + sample.mul_f64(1.0 - q);
            let q2 = self.params.q2;
            self.r_sqmean = q2 * self.r_sqmean + (1.0 - q2) * root;
        }
    }

    /// Handles the first feedback (RFC 5348 section 4.2).
    fn start(&mut self, now: Instant) {
        self.x = self.initial_rate();
        self.tld = now;
        self.received = ReceiveRates::new(now);
    }

    /// Returns `initial_rate`, which is also `recover_rate`: `W_init / R`, bytes per second.
    fn initial_rate(&self) -> f64 {
        self.params.initial_window_bytes() / self.rtt.as_secs_f64()
    }

    /// Returns s / R, bytes per second.
    fn packet_per_round_trip(&self) -> f64 {
        self.params.s() / self.rtt.as_secs_f64()
    }

    /// Returns `recv_limit` (RFC 5348 section 4.3, step 4).
    fn receive_limit(&mut self, now: Instant, feedback: &Feedback, data_limited: bool) -> f64 {
        if !data_limited {
            self.received.update(now, feedback.x_recv, self.rtt);
        } else if feedback.p > self.p {
            self.received.halve();
            self.received.maximize(now, 0.85 * feedback.x_recv);
            return self.received.largest();
        } else {
            self.received.maximize(now, feedback.x_recv);
        }
        2.0 * self.received.largest()
    }

    /// Sets X (RFC 5348 section 4.3, step 4).
    fn set_rate(&mut self, now: Instant, recv_limit: f64) {
        if self.p > 0.0 {
            let least = self.params.least_rate();
            let x = self.equation_rate().min(recv_limit).max(least);
            self.x = x.min(self.highest_rate(now));
            self.tld = now;
        } else if now.saturating_since(self.tld) >= self.rtt {
            self.x = (2.0 * self.x).min(recv_limit).max(self.initial_rate());
            self.tld = now;
        }
        self.x_inst = self.x;
    }

    /// Returns the upper bound of X. With [`Params::gradual_increase`], X rises by at most s / R for each round trip since it was set.
    fn highest_rate(&self, now: Instant) -> f64 {
        if !self.params.gradual_increase {
            return f64::INFINITY;
        }
        let round_trips = now.saturating_since(self.tld).as_secs_f64() / self.rtt.as_secs_f64();
        self.x + round_trips * self.packet_per_round_trip()
    }

    /// Returns `X_Bps`.
    fn equation_rate(&self) -> f64 {
        let (s, r, p) = (self.params.s(), self.rtt, self.p);
        let is_bounded = self.params.bound_timeouts;
        match self.params.rto_tick {
            None if !is_bounded => throughput(s, r, p),
            None => throughput_with_timeout(s, r, r * 4, p, is_bounded),
            Some(tick) => throughput_with_timeout(s, r, self.timeout.timeout(tick), p, is_bounded),
        }
    }

    /// Sets `X_inst` (RFC 5348 section 4.5).
    fn reduce_oscillation(&mut self, sample: Duration) {
        if self.params.reduce_oscillation {
            let ratio = self.r_sqmean / sample.as_secs_f64().sqrt();
            self.x_inst = (self.x * ratio).max(self.params.least_rate());
        }
    }

    /// Sets the nofeedback timer (RFC 5348 section 4.3, steps 3 and 6).
    fn set_nofeedback_timer(&mut self, now: Instant) {
        let two_packets = Duration::from_secs_f64(2.0 * self.params.s() / self.x);
        let wait = (self.rtt * u64::from(self.params.nofeedback_round_trips))
            .max(two_packets)
            .max(self.params.least_nofeedback);
        self.nofeedback = now.saturating_add(wait);
        self.sent_since = false;
    }

    /// Handles the expiration of the nofeedback timer (RFC 5348 section 4.4).
    fn on_nofeedback(&mut self, now: Instant) {
        self.stats.nofeedback += 1;
        let halved = (self.x / 2.0).max(self.params.least_rate());
        if self.rtt.is_zero() {
            if self.sent_since {
                self.x = halved;
            }
        } else if self.idle_and_slow() {
            // The rate is not more than that of a new flow, so it stays.
        } else if self.p == 0.0 || self.params.nofeedback_halves {
            self.x = halved;
        } else {
            let x_recv = self.received.largest();
            let equation = self.equation_rate();
            let limit = if equation > 2.0 * x_recv { x_recv } else { equation / 2.0 };
            self.limit_rate(now, limit);
        }
        self.x_inst = self.x;
        self.set_nofeedback_timer(now);
    }

    /// Returns whether the sender was idle since the timer was set, and its rate is below the recovery rate.
    fn idle_and_slow(&self) -> bool {
        let recover_rate = self.initial_rate();
        let slow =
            if self.p > 0.0 { self.received.largest() < recover_rate } else { self.x < 2.0 * recover_rate };
        slow && !self.sent_since
    }

    /// Limits X: `Update_Limits` (RFC 5348 section 4.4).
    fn limit_rate(&mut self, now: Instant, timer_limit: f64) {
        let limit = timer_limit.max(self.params.least_rate());
        self.received.replace(now, limit / 2.0);
        self.set_rate(now, limit);
    }

    /// Returns `t_ipi`, the time from one packet to the next (RFC 5348 section 4.6).
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.params.s().max(f64::from(self.last_len)) / self.x_inst)
    }

    /// Returns the nominal time of the next packet. A change of the rate applies at once.
    fn nominal_time(&self) -> Instant {
        self.last_nominal.map_or(Instant::ZERO, |last| last.saturating_add(self.interval()))
    }

    /// Moves a nominal time that a higher rate has put into the past to now, so that one packet leaves at once and not a
    /// burst. Only a late timer is compensated.
    fn skip_missed_times(&mut self, now: Instant) {
        if self.nominal_time() < now && self.last_nominal.is_some() {
            let interval = self.interval().as_nanos();
            self.last_nominal = Some(Instant::from_nanos(now.as_nanos().saturating_sub(interval)));
        }
    }

    /// Returns the time at which the next packet may leave: its nominal time minus `t_delta` (RFC 5348 section 8.3).
    fn send_time(&self) -> Instant {
        let t_delta = self.interval().min(self.params.t_gran).min(self.rtt) / 2;
        let early = self.nominal_time().as_nanos().saturating_sub(t_delta.as_nanos());
        Instant::from_nanos(early)
    }

    /// Returns the nominal time of a packet that leaves now: the one that it waited for, or else now.
    fn nominal_time_of_departure(&self, now: Instant) -> Instant {
        let due = self.nominal_time();
        let oldest = Instant::from_nanos(now.as_nanos().saturating_sub(self.rtt.as_nanos()));
        if self.paced { due.max(oldest) } else { due.max(now) }
    }
}
