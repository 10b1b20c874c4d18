//! The receiving end of TFRC (RFC 5348 section 6): loss event rate, receive rate, feedback.
//!
//! Feedback leaves once per round trip while packets arrive, at once for the first packet (RFC 5348 section 6.3) and for a
//! new loss event (RFC 5348 section 6.1), and for each packet until the sender knows a round-trip time.
//!
//! `X_recv` is the rate over the last round trip. If a loss event causes early feedback, the rest of that round trip counts
//! with the rate reported before, so that two reports in quick succession do not measure a few packets over a few
//! microseconds.
//!
//! The first loss event ends no interval. RFC 5348 section 6.3.1 defines a synthetic one: `1/p` for the p at which the
//! throughput equation gives the largest receive rate so far. If the first packet of all is lost or marked, there is no such
//! rate, and half a packet per round trip replaces it: p = 0.206 for any round-trip time.

use std::sync::Arc;

use cutline_units::{Duration, Instant};

use super::equation::loss_event_rate;
use super::loss_detection::{Arrival, Arrivals};
use super::loss_intervals::LossIntervals;
use super::{Feedback, Packet, Params};

/// The counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Packets that arrived, without duplicates.
    pub packets: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets that a router marked.
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
    /// The sender's round-trip time from the newest packet.
    rtt: Duration,
    /// Times at which the newest packet left and arrived.
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
    /// Time at which the feedback timer expires. While nothing arrives it is not restarted; the next packet
    /// does that.
    timer: Instant,
    waiting: bool,
    stats: ReceiverStats,
}

impl Receiver {
    /// Creates a flow that expects its first packet. `params` are the sender's.
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

    /// Handles a packet, which a router marked if `ce`. Returns the feedback that leaves at once, if any.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet, ce: bool) -> Option<Feedback> {
        if self.arrivals.arrive(now, packet.seq) == Arrival::Duplicate {
            return None;
        }
        let first = self.stats.packets == 0;
        self.restart_missed_timers(now);
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

    /// Returns the time of the next feedback; [`Instant::FAR_FUTURE`] while there is nothing to report.
    #[inline]
    pub const fn deadline(&self) -> Instant {
        if self.waiting { self.timer } else { Instant::FAR_FUTURE }
    }

    /// Returns the feedback if it is due.
    pub fn on_deadline(&mut self, now: Instant) -> Option<Feedback> {
        (now >= self.deadline()).then(|| self.feedback(now))
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Sets the sender's segment size, for an application whose messages have another size from now on.
    pub fn set_segment_size(&mut self, bytes: u32) {
        Arc::make_mut(&mut self.params).segment_size = bytes;
    }

    /// Returns the payload bytes that have arrived.
    pub const fn delivered(&self) -> u64 {
        self.stats.bytes
    }

    /// Returns the current loss event rate.
    pub fn loss_event_rate(&self) -> f64 {
        self.losses.rate(self.arrivals.highest())
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    fn count(&mut self, packet: &Packet) {
        self.stats.packets += 1;
        self.stats.bytes += u64::from(packet.len);
        self.bytes += u64::from(packet.len);
    }

    /// Restarts the timer as often as it has expired while nothing arrived (RFC 5348 section 6.2).
    fn restart_missed_timers(&mut self, now: Instant) {
        if !self.waiting && self.timer <= now && !self.rtt.is_zero() {
            let missed = now.saturating_since(self.timer).as_nanos() / self.rtt.as_nanos();
            self.measured_from = self.timer + self.rtt * missed;
            self.timer = self.measured_from + self.rtt;
        }
    }

    /// Begins the first round trip that can be measured, with the first packet that carries a round-trip time.
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
                new_event |= self.add_loss(now, seq, at);
            }
        }
        new_event
    }

    fn note_mark(&mut self, now: Instant, seq: u64) -> bool {
        self.stats.marked += 1;
        self.params.ecn && self.add_loss(now, seq, now)
    }

    fn add_loss(&mut self, now: Instant, seq: u64, at: Instant) -> bool {
        let (params, rtt) = (&*self.params, self.rtt);
        let x_target = self.x_largest.max(self.rate_until(now));
        let new = self.losses.add_loss(seq, at, rtt, || first_interval(params, rtt, x_target, seq));
        self.stats.loss_events += u64::from(new);
        new
    }

    /// Returns the feedback for the first packet: no rate can be measured yet (RFC 5348 section 6.3).
    fn first_feedback(&mut self, now: Instant) -> Feedback {
        self.measured_from = now;
        self.bytes = 0;
        self.report(now, 0.0)
    }

    /// Returns the feedback about the time since the last one (RFC 5348 section 6.2).
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

    /// Returns the receive rate over the last round trip, bytes per second.
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

/// Returns the synthetic interval before the first loss event, packets (RFC 5348 section 6.3.1).
fn first_interval(params: &Params, rtt: Duration, x_target: f64, seq: u64) -> f64 {
    if rtt.is_zero() {
        // X_target = s / (2 R), where R cancels; or the rate sent before the loss, if that is more (RFC 5348 section 6.3.1).
        let (any, half_a_packet) = (Duration::from_secs(1), params.s() / 2.0);
        return (seq as f64).max(1.0 / loss_event_rate(params.s(), any, half_a_packet));
    }
    // Before a loss within the first round trip there is no rate. Half the initial rate replaces it.
    let least = params.initial_window_bytes() / 2.0 / rtt.as_secs_f64();
    let x_target = if x_target > 0.0 { x_target } else { least };
    1.0 / loss_event_rate(params.s(), rtt, x_target)
}
