//! The receiving end of NADA: measurements over half a second, and reports (RFC 8698 section 5.1).
//!
//! A packet that arrives after one that was sent later counts as lost, though the application has it. The base delay is the least of the
//! last ten to twenty minutes, so that it forgets an earlier path (RFC 8698 section 5.1.1).

use super::{Feedback, Packet, Params};
use crate::tfrc::{LossIntervals, loss_event_rate};
use cutline_units::{Duration, Instant, Rate};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of packets whose least queuing delay is reported (RFC 8698 section 5.1.1).
const FILTER: usize = 15;
/// Length of an epoch of the base delay.
const EPOCH: Duration = Duration::from_secs(600);

/// The counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Packets that arrived.
    pub packets: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Packets that were missing when a later one arrived.
    pub lost: u64,
    /// Packets that a router marked.
    pub marked: u64,
    /// Reports sent.
    pub reports: u64,
}

/// A packet of the window.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    /// Size on the wire, bytes.
    size: u64,
    /// Packets missing in front of it; `None` if it came after a later one.
    missing: Option<u64>,
    marked: bool,
    /// One-way delay by two clocks, ns.
    delay: i64,
}

/// The least delay of the present epoch and of the one before, ns.
#[derive(Clone, Copy, Debug)]
struct BaseDelay {
    since: Instant,
    present: i64,
    before: i64,
}

/// The receiving end of one flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    params: Arc<Params>,
    window: VecDeque<Arrival>,
    bytes: u64,
    /// Number of the next packet in order.
    expected: u64,
    base: Option<BaseDelay>,
    losses: LossIntervals,
    last_loss: u64,
    first: Option<Instant>,
    /// Times at which the newest packet left and arrived.
    echo: Instant,
    arrived: Instant,
    /// Time of the next report, while packets have arrived since the last one.
    due: Instant,
    reported: Instant,
    stats: ReceiverStats,
}

impl Receiver {
    /// Creates a flow that expects its first packet. `params` are the sender's.
    pub fn new(params: &Arc<Params>) -> Self {
        Self {
            params: Arc::clone(params),
            window: VecDeque::new(),
            bytes: 0,
            expected: 0,
            base: None,
            losses: LossIntervals::new(false),
            last_loss: 0,
            first: None,
            echo: Instant::ZERO,
            arrived: Instant::ZERO,
            due: Instant::FAR_FUTURE,
            reported: Instant::ZERO,
            stats: ReceiverStats::default(),
        }
    }

    /// Handles a packet, which a router marked if `ce`.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet, ce: bool) {
        let first = *self.first.get_or_insert(now);
        self.stats.packets += 1;
        self.stats.bytes += u64::from(packet.len);
        self.stats.marked += u64::from(ce);
        let missing = packet.seq.checked_sub(self.expected);
        if let Some(missing) = missing {
            if missing > 0 {
                self.note_loss(now, packet, missing);
            }
            self.expected = packet.seq.saturating_add(1);
            (self.echo, self.arrived) = (packet.sent_at, now);
        }
        let delay = (now.as_nanos() as i64).wrapping_sub(packet.sent_at.as_nanos() as i64);
        self.note_base(now, delay);
        let size = u64::from(packet.len) + u64::from(self.params.header_bytes);
        self.bytes += size;
        self.window.push_back(Arrival { at: now, size, missing, marked: ce, delay });
        self.prune(now);
        if self.due == Instant::FAR_FUTURE {
            self.due = (self.reported.max(first) + self.params.feedback_interval).max(now);
        }
    }

    /// Returns the time of the next report; [`Instant::FAR_FUTURE`] while nothing has arrived.
    pub const fn deadline(&self) -> Instant {
        self.due
    }

    /// Returns the report if it is due.
    pub fn on_deadline(&mut self, now: Instant) -> Option<Feedback> {
        if now < self.due {
            return None;
        }
        self.due = Instant::FAR_FUTURE;
        self.reported = now;
        self.prune(now);
        self.stats.reports += 1;
        Some(self.report(now))
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the payload bytes that have arrived.
    pub const fn delivered(&self) -> u64 {
        self.stats.bytes
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Returns the average loss interval, packets; 0 before the first loss (RFC 5348 section 5.4).
    fn loss_interval(&self) -> f64 {
        let rate = self.losses.rate(self.expected.saturating_sub(1));
        if rate > 0.0 { 1.0 / rate } else { 0.0 }
    }

    fn note_loss(&mut self, now: Instant, packet: &Packet, missing: u64) {
        self.stats.lost += missing;
        self.last_loss = packet.seq - 1;
        let first = self.first_interval(now, packet.rtt);
        self.losses.add_loss(self.expected, now, packet.rtt, || first);
    }

    /// Returns the loss interval before the first loss, packets: that of a TCP flow with this rate (RFC 5348 section 6.3.1). The number of
    /// packets before it would keep that loss from being forgotten for as long again.
    fn first_interval(&self, now: Instant, rtt: Duration) -> f64 {
        let before = self.expected.max(1) as f64;
        let rate = self.received(now) / 8.0;
        if rtt.is_zero() || rate <= 0.0 {
            return before;
        }
        before.min(1.0 / loss_event_rate(f64::from(self.params.packet_size), rtt, rate))
    }

    /// Returns the rate at which packets arrived in the window, bit/s with headers.
    fn received(&self, now: Instant) -> f64 {
        let Params { feedback_interval, log_window, .. } = *self.params;
        let span = now.saturating_since(self.first.unwrap_or(now)).clamp(feedback_interval, log_window);
        self.bytes as f64 * 8.0 / span.as_secs_f64()
    }

    fn note_base(&mut self, now: Instant, delay: i64) {
        let base = self.base.get_or_insert(BaseDelay { since: now, present: delay, before: delay });
        if now.saturating_since(base.since) >= EPOCH {
            *base = BaseDelay { since: now, present: delay, before: base.present };
        }
        base.present = base.present.min(delay);
    }

    fn prune(&mut self, now: Instant) {
        while let Some(oldest) = self.window.front() {
            if now.saturating_since(oldest.at) <= self.params.log_window {
                break;
            }
            self.bytes -= oldest.size;
            self.window.pop_front();
        }
    }

    fn report(&self, now: Instant) -> Feedback {
        let base = self.base.map_or(0, |base| base.present.min(base.before));
        let queuing = |delay: i64| Duration::from_nanos(delay.saturating_sub(base).max(0) as u64);
        let least = self.window.iter().rev().take(FILTER).map(|arrival| arrival.delay).min();
        let most = self.window.iter().map(|arrival| arrival.delay).max();
        let (mut present, mut missing, mut marked) = (0_u64, 0_u64, 0_u64);
        for arrival in &self.window {
            present += u64::from(arrival.missing.is_some());
            missing += arrival.missing.unwrap_or_default();
            marked += u64::from(arrival.marked);
        }
        let share = |part: u64, of: u64| if of > 0 { (part as f64 / of as f64).min(1.0) } else { 0.0 };
        Feedback {
            echo: self.echo,
            since_arrival: now.saturating_since(self.arrived),
            queuing_delay: least.map_or(Duration::ZERO, queuing),
            largest_delay: most.map_or(Duration::ZERO, queuing),
            lost: share(missing, present + missing),
            marked: share(marked, self.window.len() as u64),
            received: Rate::from_bps(self.received(now) as u64),
            loss_interval: self.loss_interval(),
            since_loss: self.expected.saturating_sub(self.last_loss + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    fn packet(seq: u64, sent_ms: u64) -> Packet {
        Packet { seq, sent_at: at(sent_ms), rtt: MS(50), len: 960 }
    }

    #[test]
    fn a_report_has_the_delay_and_the_rate_of_the_window() {
        let mut receiver = Receiver::new(&Arc::default());
        assert_eq!(receiver.deadline(), Instant::FAR_FUTURE);
        // A packet each 10 ms, 1000 B with headers; the delay is 40 ms, then 70 ms.
        let mut last = None;
        for number in 0..100 {
            let delay = if number < 30 { 40 } else { 70 };
            let now = at(10 * number + delay);
            last = receiver.on_deadline(now).or(last);
            receiver.on_packet(now, &packet(number, 10 * number), false);
        }
        let report = last.unwrap();
        assert_eq!((report.queuing_delay, report.largest_delay), (MS(30), MS(30)));
        // 500 ms have 50 or 51 packets of 8000 bits.
        let kbps = report.received.as_bps() / 1000;
        assert!((790..=820).contains(&kbps), "{kbps}");
        assert_eq!((report.lost, report.loss_interval), (0.0, 0.0));
        assert!(report.since_arrival <= MS(10));
        receiver.on_deadline(receiver.deadline()).unwrap();
        assert_eq!(receiver.deadline(), Instant::FAR_FUTURE, "nothing has come since");
        assert_eq!(receiver.delivered(), 96_000);
    }

    #[test]
    fn gaps_and_late_packets_are_lost() {
        let mut receiver = Receiver::new(&Arc::default());
        for (number, seq) in [0, 1, 2, 3, 6, 5, 7, 8, 9].into_iter().enumerate() {
            receiver.on_packet(at(20 + number as u64), &packet(seq, number as u64), seq == 9);
        }
        let report = receiver.on_deadline(receiver.deadline()).unwrap();
        assert!((report.lost - 0.2).abs() < 1e-12, "two of ten: {}", report.lost);
        assert!((report.marked - 1.0 / 9.0).abs() < 1e-12);
        assert_eq!(report.since_loss, 4, "6, 7, 8, 9");
        // Four packets before the loss, and six since then.
        assert!((report.loss_interval - 5.0).abs() < 1e-12, "{}", report.loss_interval);
        assert_eq!(receiver.stats().lost, 2);
    }

    #[test]
    fn reports_come_at_their_interval_while_packets_arrive() {
        let mut receiver = Receiver::new(&Arc::default());
        let mut reports = Vec::new();
        for number in 0..100 {
            let now = at(50 + 10 * number);
            if receiver.on_deadline(now).is_some() {
                reports.push(now);
            }
            receiver.on_packet(now, &packet(number, 10 * number), false);
        }
        assert_eq!(reports[..3], [at(150), at(250), at(350)]);
    }

    #[test]
    fn another_path_becomes_the_base_after_two_epochs() {
        let mut receiver = Receiver::new(&Arc::default());
        let mut report = |second: u64, delay: u64| {
            let sent = 1000 * second;
            receiver.on_packet(at(sent + delay), &packet(second, sent), false);
            receiver.on_deadline(receiver.deadline()).unwrap().queuing_delay
        };
        assert_eq!(report(0, 20), Duration::ZERO);
        assert_eq!(report(1, 60), MS(40));
        assert_eq!(report(601, 60), MS(40));
        assert_eq!(report(1202, 60), Duration::ZERO);
    }
}
