//! The sending end of NADA: the encoder, its buffer, and the pace of packets (RFC 8698 section 5.2).

use super::{Feedback, Packet, Params, RateController};
use crate::queue::SendQueue;
use cutline_params::Parameters as _;
use cutline_units::{Duration, Instant};
use std::sync::Arc;

/// Largest change of the rates of encoder and pace by the buffer, as a share of the reference rate (eqs. 11 and 12).
const LARGEST_CHANGE: f64 = 0.05;
/// The smallest frame, bytes: a picture has at least some, and on a real network a packet has room for its header.
const SMALLEST_FRAME: f64 = 64.0;
/// One over the weight of the newest sample in the round-trip time.
const RTT_SAMPLES: u64 = 8;
/// Time by which a pace that waited for its timer may be ahead.
const LATE: Duration = Duration::from_millis(5);

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets sent.
    pub packets: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Payload that found the send buffer full, bytes.
    pub refused: u64,
    /// Frames that the encoder has made.
    pub frames: u64,
    /// Reports that arrived.
    pub reports: u64,
    /// Number of times that the rate was halved without reports.
    pub timeouts: u64,
}

/// The sending end of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    params: Arc<Params>,
    rate: RateController,
    queue: SendQueue,
    /// Payload in the queue, bytes.
    waiting: u64,
    /// Time of the next frame; `None` without an encoder.
    frame: Option<Instant>,
    /// Payload that frames have lacked because packets have whole bytes.
    rest: f64,
    next_seq: u64,
    /// Time from which on the next packet may leave.
    next: Instant,
    rtt: Option<Duration>,
    /// Time at which the rate is halved.
    timeout: Instant,
    stats: Stats,
}

impl Sender {
    /// Creates a flow with nothing to send yet. `params` must be valid.
    pub fn new(params: &Arc<Params>, now: Instant) -> Self {
        debug_assert_eq!(params.validate(), Ok(()), "validate parameters where they are read");
        let limit = params.send_buffer.map_or(usize::MAX, |packets| packets as usize);
        Self {
            rate: RateController::new(params),
            queue: SendQueue::new(params.packet_size, limit),
            waiting: 0,
            frame: None,
            rest: 0.0,
            next_seq: 0,
            next: now,
            rtt: None,
            timeout: Instant::FAR_FUTURE,
            stats: Stats::default(),
            params: Arc::clone(params),
        }
    }

    /// Takes a message of `bytes` from the application. Data beyond the send buffer is dropped. Returns whether everything fitted.
    pub fn write(&mut self, bytes: u64) -> bool {
        let whole = self.queue.len();
        let dropped = u64::from(self.queue.write(bytes));
        let packet = u64::from(self.params.packet_size);
        let packets = bytes.div_ceil(packet);
        // The last packet of a message may be shorter, and it is dropped first.
        let last = bytes - packets.saturating_sub(1) * packet;
        let refused = if dropped > 0 { (dropped - 1) * packet + last } else { 0 };
        debug_assert_eq!(
            self.queue.len() as u64,
            whole as u64 + packets - dropped,
            "packets are kept or dropped"
        );
        self.waiting += bytes - refused;
        self.stats.refused += refused;
        dropped == 0
    }

    /// Starts the encoder: a frame now, and at each interval.
    pub fn write_unlimited(&mut self) {
        self.frame.get_or_insert(self.next);
    }

    /// Ends the encoder. Its last frames still leave.
    pub const fn end_supply(&mut self) {
        self.frame = None;
    }

    /// Handles a report.
    pub fn on_feedback(&mut self, now: Instant, report: &Feedback) {
        self.stats.reports += 1;
        let sample = now.saturating_since(report.echo).saturating_sub(report.since_arrival);
        let average = self.rtt.map_or(sample, |rtt| (rtt * (RTT_SAMPLES - 1) + sample) / RTT_SAMPLES);
        self.rtt = Some(average.max(Duration::from_nanos(1)));
        self.rate.on_report(now, average, report);
        self.timeout = now.saturating_add(self.params.feedback_timeout);
    }

    /// Returns the time of the next frame, the next departure, or the end of patience for reports.
    pub fn deadline(&self) -> Instant {
        let frame = self.frame.unwrap_or(Instant::FAR_FUTURE);
        let departure = if self.queue.is_empty() { Instant::FAR_FUTURE } else { self.next };
        frame.min(departure).min(self.timeout)
    }

    /// Makes a frame if it is time, and halves the rate if no reports come.
    pub fn on_deadline(&mut self, now: Instant) {
        if let Some(at) = self.frame.filter(|at| *at <= now) {
            self.encode();
            // A timer that is more than a frame late makes no burst: an encoder has dropped those pictures.
            let interval = Duration::from_secs_f64(1.0 / self.params.frame_rate);
            let next = at + interval;
            self.frame = Some(if next > now { next } else { now + interval });
        }
        if now >= self.timeout {
            self.rate.halve();
            self.stats.timeouts += 1;
            // Without packets there are no reports.
            let is_silent = self.queue.is_empty() && self.frame.is_none();
            self.timeout = if is_silent {
                Instant::FAR_FUTURE
            } else {
                now.saturating_add(self.params.feedback_timeout)
            };
        }
    }

    /// Returns the next packet that may leave now.
    pub fn transmit(&mut self, now: Instant) -> Option<Packet> {
        if self.frame.is_some_and(|at| at <= now) {
            self.on_deadline(now);
        }
        if now < self.next {
            return None;
        }
        let rate = self.sending_rate();
        let len = self.queue.pop()?;
        self.waiting -= u64::from(len);
        let bits = f64::from(len + self.params.header_bytes) * 8.0;
        let from = self.next.max(Instant::from_nanos(now.as_nanos().saturating_sub(LATE.as_nanos())));
        self.next = from + Duration::from_secs_f64(bits / rate);
        if self.timeout == Instant::FAR_FUTURE {
            self.timeout = now.saturating_add(self.params.feedback_timeout);
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        self.stats.packets += 1;
        self.stats.bytes += u64::from(len);
        Some(Packet { seq, sent_at: now, rtt: self.rtt.unwrap_or_default(), len })
    }

    /// Returns the average round-trip time, if there was a report.
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Returns the rate and the congestion signal.
    pub const fn rate(&self) -> &RateController {
        &self.rate
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the rate of the encoder, bit/s with headers (eq. 13).
    fn encoder_rate(&self) -> f64 {
        let less = self.change(self.params.beta_v);
        (self.rate.reference() - less).max(self.params.min_rate.as_bps() as f64)
    }

    /// Returns the sending rate, bit/s with headers (eq. 14).
    fn sending_rate(&self) -> f64 {
        let more = self.change(self.params.beta_s);
        (self.rate.reference() + more).min(self.params.max_rate.as_bps() as f64)
    }

    /// Returns the change of a rate by the buffer, bit/s (eqs. 11 and 12).
    fn change(&self, beta: f64) -> f64 {
        let drain = beta * 8.0 * self.waiting as f64 * self.params.frame_rate;
        drain.min(LARGEST_CHANGE * self.rate.reference())
    }

    /// Makes a frame of the encoder's rate, less the headers of its packets, which have equal sizes.
    fn encode(&mut self) {
        let Params { packet_size, header_bytes, frame_rate, .. } = *self.params;
        let share = f64::from(packet_size) / f64::from(packet_size + header_bytes);
        let bytes = (self.encoder_rate() / 8.0 / frame_rate * share + self.rest).max(SMALLEST_FRAME);
        self.rest = bytes.fract();
        self.stats.frames += 1;
        let (bytes, packets) = (bytes as u64, (bytes as u64).div_ceil(u64::from(packet_size)));
        for number in 0..packets {
            // The first ones have a byte more, if it is not divisible.
            self.write(bytes / packets + u64::from(number < bytes % packets));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Rate;

    fn sender(params: Params) -> Sender {
        Sender::new(&Arc::new(params), Instant::ZERO)
    }

    /// Runs a sender for a time, and returns its packets.
    fn sent(sender: &mut Sender, until: Duration) -> Vec<Packet> {
        let mut packets = Vec::new();
        let mut now = Instant::ZERO;
        while now <= Instant::ZERO + until {
            sender.on_deadline(now);
            packets.extend(std::iter::from_fn(|| sender.transmit(now)));
            now = sender.deadline().max(now + Duration::from_nanos(1));
        }
        packets
    }

    #[test]
    fn an_encoder_sends_its_rate_in_frames() {
        let mut sender = sender(Params { feedback_timeout: Duration::from_secs(60), ..Params::default() });
        sender.write_unlimited();
        let packets = sent(&mut sender, Duration::from_secs(10));
        let bits: u64 = packets.iter().map(|packet| 8 * u64::from(packet.len + 40)).sum();
        let kbps = bits as f64 / 10e3;
        // The headers of packets that are not full make it a little more than 150 kbit/s, but not than 5 %.
        assert!((148.0..158.0).contains(&kbps), "{kbps}");
        assert_eq!(sender.stats().frames, 301);
        assert_eq!(sender.stats().refused, 0);
        sender.end_supply();
        assert!(sender.deadline() > Instant::ZERO + Duration::from_secs(10));
    }

    #[test]
    fn a_late_timer_makes_one_frame() {
        let mut sender = sender(Params::default());
        sender.write_unlimited();
        let late = Instant::ZERO + Duration::from_secs(5);
        sender.on_deadline(late);
        assert_eq!(sender.stats().frames, 1);
        assert!(sender.transmit(late).is_some() && sender.deadline() > late);
    }

    #[test]
    fn packets_leave_at_the_sending_rate() {
        let mut sender = sender(Params { send_buffer: None, ..Params::default() });
        assert!(sender.write(30_000));
        let packets = sent(&mut sender, Duration::from_millis(500));
        // 8320 bits at 150 kbit/s and 5 % more: 52.8 ms.
        assert_eq!(packets.len(), 10, "{packets:?}");
        let gap = packets[2].sent_at.saturating_since(packets[1].sent_at).as_millis_f64();
        assert!((gap - 52.83).abs() < 0.1, "{gap}");
    }

    #[test]
    fn without_reports_the_rate_falls_to_the_lowest() {
        let params = Params { min_rate: Rate::from_kbps(10), ..Params::default() };
        let mut sender = sender(params);
        let report = Feedback { received: Rate::from_kbps(800), ..Feedback::default() };
        sender.on_feedback(Instant::ZERO, &report);
        assert!(sender.rate().reference() > 800e3);
        sender.write_unlimited();
        sent(&mut sender, Duration::from_secs(12));
        assert!((sender.rate().reference() - 10e3).abs() < 1.0, "{}", sender.rate().reference());
        assert!(sender.stats().timeouts >= 7);
    }

    #[test]
    fn a_message_that_does_not_fit_is_refused_to_the_byte() {
        let mut sender = sender(Params { send_buffer: Some(3), ..Params::default() });
        assert!(sender.write(2500));
        assert!(!sender.write(1500));
        assert_eq!(sender.stats().refused, 1500);
        let packets = sent(&mut sender, Duration::from_secs(1));
        assert_eq!(packets.iter().map(|packet| packet.len).collect::<Vec<_>>(), [1000, 1000, 500]);
    }
}
