//! The receiving end of TFRC (RFC 5348 6): loss event rate, receive rate, feedback.
//!
//! Feedback leaves once a round trip while packets come, at once for the first packet and for a new loss event
//! (6.1), and with each packet while the sender has no round-trip time yet.
//!
//! `X_recv` is the rate over the last round trip. When a loss event brings feedback early, the rest of that
//! round trip counts with the rate reported before, so that two reports in quick succession do not measure a
//! few packets over a few microseconds.
//!
//! At the first loss event there is no interval yet. RFC 5348 6.3.1 makes one up: `1/p` of the p at which the
//! throughput equation gives the largest receive rate so far. When the very first packet is lost or marked there is no
//! such rate: half a packet a round trip stands for it, p = 0.206 whatever the round trip is.

use std::sync::Arc;

use cutline_units::{Duration, Instant};

use super::equation::loss_event_rate;
use super::holes::{Arrival, Arrivals};
use super::loss_intervals::LossIntervals;
use super::{Feedback, Packet, Params};

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Packets that arrived, duplicates not counted.
    pub packets: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets marked by a router.
    pub marked: u64,
    /// Loss events.
    pub loss_events: u64,
    /// Feedback packets sent.
    pub feedback: u64,
}

/// The receiving end of one flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    params: Arc<Params>,
    arrivals: Arrivals,
    losses: LossIntervals,
    /// The sender's round-trip time as the newest packet said.
    rtt: Duration,
    /// When the newest packet left and arrived.
    echo: Instant,
    arrived: Instant,
    /// The loss event rate last reported.
    p: f64,
    /// Bytes since `measured_from`.
    bytes: u64,
    measured_from: Instant,
    /// The rate last reported, and the largest of all, bytes per second.
    x_recv: f64,
    x_largest: f64,
    /// When the feedback timer runs out; kept while nothing comes, and brought up to date with the next packet.
    timer: Instant,
    waiting: bool,
    stats: ReceiverStats,
}

impl Receiver {
    /// A flow that expects its first packet. `params` are the sender's.
    pub fn new(params: &Arc<Params>) -> Self {
        Self {
            params: Arc::clone(params),
            arrivals: Arrivals::default(),
            losses: LossIntervals::new(params.history_discounting),
            rtt: Duration::ZERO,
            echo: Instant::ZERO,
            arrived: Instant::ZERO,
            p: 0.0,
            bytes: 0,
            measured_from: Instant::ZERO,
            x_recv: 0.0,
            x_largest: 0.0,
            timer: Instant::FAR_FUTURE,
            waiting: false,
            stats: ReceiverStats::default(),
        }
    }

    /// A packet has arrived, marked by a router if `ce`; the feedback that leaves at once, if any.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet, ce: bool) -> Option<Feedback> {
        if self.arrivals.arrive(now, packet.seq) == Arrival::Duplicate {
            return None;
        }
        let first = self.stats.packets == 0;
        self.catch_up(now);
        self.count(packet);
        if packet.sent_at >= self.echo {
            (self.echo, self.arrived) = (packet.sent_at, now);
            self.rtt = packet.rtt;
        }
        let new_event = self.note_losses(now) | (ce && self.note_mark(now, packet.seq));
        if first {
            return Some(self.first_feedback(now));
        }
        if new_event || self.rtt.is_zero() {
            return Some(self.feedback(now));
        }
        self.waiting = true;
        if self.timer == Instant::FAR_FUTURE {
            self.begin_measuring(now);
        }
        None
    }

    /// When the next feedback leaves; [`Instant::FAR_FUTURE`] while there is nothing to report.
    #[inline]
    pub const fn deadline(&self) -> Instant {
        if self.waiting { self.timer } else { Instant::FAR_FUTURE }
    }

    /// It is `now`: the feedback, if it is due.
    pub fn on_deadline(&mut self, now: Instant) -> Option<Feedback> {
        (now >= self.deadline()).then(|| self.feedback(now))
    }

    /// What is set for the flow.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Payload bytes that have arrived.
    pub const fn delivered(&self) -> u64 {
        self.stats.bytes
    }

    /// The loss event rate as of now.
    pub fn loss_event_rate(&self) -> f64 {
        self.losses.rate(self.arrivals.highest())
    }

    /// What was counted so far.
    pub const fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    fn count(&mut self, packet: &Packet) {
        self.stats.packets += 1;
        self.stats.bytes += u64::from(packet.len);
        self.bytes += u64::from(packet.len);
    }

    /// The timer ran out while nothing had come: RFC 5348 6.2 restarts it each time; this does so at once.
    fn catch_up(&mut self, now: Instant) {
        if !self.waiting && self.timer <= now && !self.rtt.is_zero() {
            let missed = now.saturating_since(self.timer).as_nanos() / self.rtt.as_nanos();
            self.measured_from = self.timer + self.rtt * missed;
            self.timer = self.measured_from + self.rtt;
        }
    }

    /// The first packet that tells a round-trip time: the first round trip that can be measured begins here.
    fn begin_measuring(&mut self, now: Instant) {
        self.timer = now + self.rtt;
        self.measured_from = now;
        self.bytes = 0;
    }

    fn note_losses(&mut self, now: Instant) -> bool {
        let mut new_event = false;
        while let Some(hole) = self.arrivals.take_lost() {
            for (seq, at) in hole.losses() {
                self.stats.lost += 1;
                new_event |= self.lose(now, seq, at);
            }
        }
        new_event
    }

    fn note_mark(&mut self, now: Instant, seq: u64) -> bool {
        self.stats.marked += 1;
        self.params.ecn && self.lose(now, seq, now)
    }

    fn lose(&mut self, now: Instant, seq: u64, at: Instant) -> bool {
        let (params, rtt) = (&*self.params, self.rtt);
        let x_target = self.x_largest.max(self.rate_until(now));
        let new = self.losses.lose(seq, at, rtt, || first_interval(params, rtt, x_target, seq));
        self.stats.loss_events += u64::from(new);
        new
    }

    /// RFC 5348 6.3: no rate can be measured yet.
    fn first_feedback(&mut self, now: Instant) -> Feedback {
        self.measured_from = now;
        self.bytes = 0;
        self.report(now, 0.0)
    }

    /// RFC 5348 6.2.
    fn feedback(&mut self, now: Instant) -> Feedback {
        let x_recv = self.rate_until(now);
        self.measured_from = now;
        self.bytes = 0;
        self.x_largest = self.x_largest.max(x_recv);
        self.report(now, x_recv)
    }

    fn report(&mut self, now: Instant, x_recv: f64) -> Feedback {
        self.x_recv = x_recv;
        self.p = self.loss_event_rate();
        self.waiting = false;
        self.timer = if self.rtt.is_zero() { Instant::FAR_FUTURE } else { now + self.rtt };
        self.stats.feedback += 1;
        let t_delay = now.saturating_since(self.arrived);
        Feedback { echo: self.echo, t_delay, x_recv, p: self.p }
    }

    /// The rate over the last round trip, bytes per second.
    fn rate_until(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_since(self.measured_from);
        let rest = self.rtt.saturating_sub(elapsed);
        let seconds = elapsed.max(self.rtt).as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        (self.bytes as f64 + self.x_recv * rest.as_secs_f64()) / seconds
    }
}

/// The interval before the first loss event (RFC 5348 6.3.1), packets.
fn first_interval(params: &Params, rtt: Duration, x_target: f64, seq: u64) -> f64 {
    if rtt.is_zero() {
        // RFC 5348 6.3.1: X_target = s / (2 R), where R cancels. What was sent before the loss, if that is more.
        let (any, half_a_packet) = (Duration::from_secs(1), params.s() / 2.0);
        return (seq as f64).max(1.0 / loss_event_rate(params.s(), any, half_a_packet));
    }
    // A loss within the first round trip has no rate before it: half the initial rate.
    let least = params.initial_window_bytes() / 2.0 / rtt.as_secs_f64();
    let x_target = if x_target > 0.0 { x_target } else { least };
    1.0 / loss_event_rate(params.s(), rtt, x_target)
}
