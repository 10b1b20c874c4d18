//! Rate control of datagrams beside the agreement: TFRC (RFC 5348), with the objects of [`cutline_transport::tfrc`].
//!
//! The sending end states its round-trip time in the header of each message ([`crate::frame`]); so the receiving end knows
//! that it has to send feedback. So nothing is negotiated, and each direction is controlled by itself. Feedback is a message
//! of its own:
//!
//! | bytes | field |
//! | --- | --- |
//! | 4 | number: 1 for the first, one more for each later one |
//! | 8 | when the newest message received was sent, by its sender's clock, ns |
//! | 8 | the time since it arrived, ns |
//! | 8 | the receive rate, bytes per second |
//! | 8 | the loss event rate, 0 to 1 |
//!
//! All numbers are big-endian, the last two floating-point ones of 64 bits.
//!
//! Both ends count a message as one segment at least, and a longer one as more. The segment is the size of messages that was
//! agreed on, or 1000 B if it is open. So an application with short messages gets the packet rate of TCP with such segments.
//!
//! Feedback that comes twice, out of order, or from the future is refused. Where none comes, the nofeedback timer halves the
//! rate (RFC 5348 section 4.4).

use crate::negotiation::Carrier;
use cutline_params::{ParameterError, Parameters as _};
use cutline_transport::tfrc::{Feedback, Packet, Receiver, Sender, Tfrc};
use cutline_transport::wire::DatagramTransport as _;
use cutline_units::{Bytes, Duration, Instant, Rate};
use cutline_wire::{Reader, Writer};
use std::sync::Arc;

pub use cutline_transport::tfrc::Params as TfrcParams;

/// Limit of the rate of an end that sends datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RateControl {
    /// The agreed rate.
    #[default]
    Agreed,
    /// The agreed rate or that of TFRC, whichever is lower. The peer has to take part. Sizes in the
    /// parameters have no effect: the segment is the size of messages that was agreed on, and the queue is
    /// the application's.
    Tfrc(TfrcParams),
}

/// TFRC's state in the direction in which this end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TfrcFigures {
    /// The allowed rate, of messages without headers.
    pub rate: Rate,
    /// The average round-trip time; `None` before the first feedback.
    pub rtt: Option<Duration>,
    /// The loss event rate that the peer has reported, 0 to 1.
    pub loss_event_rate: f64,
    /// Feedback that was used.
    pub feedback: u64,
    /// Number of times that the nofeedback timer expired.
    pub nofeedback: u64,
    /// Feedback that was stale, impossible, or not authentic.
    pub refused: u64,
}

impl RateControl {
    /// Returns whether feedback of the peer is necessary.
    pub const fn needs_feedback(&self) -> bool {
        matches!(self, Self::Tfrc(_))
    }

    /// Returns the same for a process, which may wake up late: its nofeedback timer takes 100 ms at least.
    #[must_use]
    pub fn tolerating_lateness(self) -> Self {
        match self {
            Self::Agreed => self,
            Self::Tfrc(mut params) => {
                Tfrc::tolerate_lateness(&mut params);
                Self::Tfrc(params)
            }
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first parameter that is not allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        match self {
            Self::Agreed => Ok(()),
            Self::Tfrc(params) => params.validate(),
        }
    }

    /// Checks whether messages may be carried so.
    ///
    /// # Errors
    /// When that is TFRC in a stream.
    pub fn check_carrier(&self, carrier: Carrier) -> Result<(), ParameterError> {
        if self.needs_feedback() && carrier == Carrier::Stream {
            return Err(Self::refusal("for a stream, whose transport controls the rate"));
        }
        Ok(())
    }

    /// The error of a connection that cannot have TFRC.
    pub fn refusal(why: &str) -> ParameterError {
        ParameterError::new("rate-control", "tfrc", format!("agreed {why}"))
    }
}

/// The segment where the size of messages is open, bytes.
const OPEN_SEGMENT: u32 = 1000;
/// The longest gap between two messages in which each number counts as a lost one. Of a longer one, so many count.
const LONGEST_GAP: u64 = 4096;
/// The largest receive rate that is accepted, bytes per second.
const LARGEST_RATE: f64 = 1e15;

/// Returns the segment for messages of a size.
pub(crate) fn segment(size: Option<Bytes>) -> u32 {
    size.map_or(OPEN_SEGMENT, |size| size.get().clamp(1, 65_535) as u32)
}

/// Feedback as a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackMessage {
    /// 1 for the first one, one more for each later one.
    pub number: u32,
    /// Content of the feedback.
    pub feedback: Feedback,
}

impl FeedbackMessage {
    /// The length of feedback, bytes.
    pub const LENGTH: usize = 4 + 4 * 8;

    /// Returns the message as bytes.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let Feedback { echo, t_delay, x_recv, p } = self.feedback;
        Writer::new(&mut bytes).u32(self.number).instant(echo).duration(t_delay).number(x_recv).number(p);
        bytes
    }

    /// Returns the message that the bytes are; `None` if this version would not write them.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let number = from.u32().filter(|number| *number > 0)?;
        let (echo, t_delay) = (from.instant()?, from.duration()?);
        let (x_recv, p) = (from.number(LARGEST_RATE)?, from.number(1.0)?);
        from.is_at_end().then_some(Self { number, feedback: Feedback { echo, t_delay, x_recv, p } })
    }
}

/// The sending end.
#[derive(Clone, Debug)]
pub(crate) struct RateSender {
    sender: Sender,
    /// Begin of sending.
    begun: Instant,
    /// The number and the echo of the last feedback.
    last: (u32, Instant),
    /// Feedback that was not accepted.
    refused: u64,
}

impl RateSender {
    pub(crate) fn new(now: Instant, params: &TfrcParams, size: Option<Bytes>) -> Self {
        let params = TfrcParams { segment_size: segment(size), ecn: false, ..*params };
        Self { sender: Sender::new(&Arc::new(params), now), begun: now, last: (0, now), refused: 0 }
    }

    /// Messages have another size from now on.
    pub(crate) fn set_size(&mut self, size: Option<Bytes>) {
        self.sender.set_segment_size(segment(size));
    }

    pub(crate) fn ready_at(&self) -> Instant {
        self.sender.ready_at()
    }

    pub(crate) fn hold(&mut self, now: Instant) {
        self.sender.hold(now);
    }

    pub(crate) fn on_send(&mut self, now: Instant, bytes: u64) {
        self.sender.depart(now, bytes.min(u64::from(u32::MAX)) as u32);
    }

    /// The round-trip time; zero while there is none.
    pub(crate) const fn rtt(&self) -> Duration {
        self.sender.rtt()
    }

    pub(crate) const fn awaits_feedback(&self) -> bool {
        self.sender.awaits_feedback()
    }

    /// Returns the time at which the nofeedback timer expires.
    pub(crate) fn deadline(&self) -> Instant {
        self.sender.deadline()
    }

    pub(crate) fn on_deadline(&mut self, now: Instant) {
        self.sender.on_deadline(now);
    }

    /// Takes feedback; `None` is something that is none.
    pub(crate) fn on_feedback(&mut self, arrived: Instant, message: Option<FeedbackMessage>) {
        let is_possible = |message: &FeedbackMessage| {
            let Feedback { echo, t_delay, .. } = message.feedback;
            let (number, last_echo) = self.last;
            let is_new = message.number > number && echo >= last_echo.max(self.begun);
            is_new && echo <= arrived && t_delay <= arrived.saturating_since(echo)
        };
        let Some(FeedbackMessage { number, feedback }) = message.filter(is_possible) else {
            self.refused += 1;
            return;
        };
        self.last = (number, feedback.echo);
        self.sender.on_feedback(arrived, &feedback);
    }

    pub(crate) fn figures(&self) -> TfrcFigures {
        let (sender, stats) = (&self.sender, self.sender.stats());
        let rtt = sender.rtt();
        TfrcFigures {
            rate: Rate::from_bps((sender.rate() * 8.0) as u64),
            rtt: (!rtt.is_zero()).then_some(rtt),
            loss_event_rate: sender.loss_event_rate(),
            feedback: stats.feedback,
            nofeedback: stats.nofeedback,
            refused: self.refused,
        }
    }
}

/// The receiving end.
#[derive(Clone, Debug)]
pub(crate) struct RateReceiver {
    receiver: Receiver,
    segment: u32,
    /// Number of skipped numbers in long gaps.
    skipped: u64,
    /// The number after the last long gap. Older ones count no more.
    least: u64,
    /// The highest number so far plus one.
    expected: u64,
    /// The number of the last feedback.
    number: u32,
    /// Feedback that has to leave, and the time at which it was made.
    due: Option<(Instant, Feedback)>,
}

impl RateReceiver {
    pub(crate) fn new(segment: u32) -> Self {
        let params = TfrcParams { segment_size: segment, ..TfrcParams::default() };
        let receiver = Receiver::new(&Arc::new(params));
        Self { receiver, segment, skipped: 0, least: 0, expected: 0, number: 0, due: None }
    }

    /// Messages have another segment from now on.
    pub(crate) fn set_segment(&mut self, segment: u32) {
        self.segment = segment;
        self.receiver.set_segment_size(segment);
    }

    /// Takes a message that has arrived for the first time.
    pub(crate) fn on_message(
        &mut self,
        arrived: Instant,
        number: u64,
        sent: Instant,
        rtt: Duration,
        bytes: u64,
    ) {
        if number >= self.expected {
            let excess = (number - self.expected).saturating_sub(LONGEST_GAP);
            if excess > 0 {
                self.skipped += excess;
                self.least = number;
            }
            self.expected = number.saturating_add(1);
        }
        if number < self.least {
            return;
        }
        let len = bytes.clamp(u64::from(self.segment), u64::from(u32::MAX)) as u32;
        let packet = Packet { seq: number - self.skipped, sent_at: sent, rtt, len };
        if let Some(feedback) = self.receiver.on_packet(arrived, &packet, false) {
            self.due = Some((arrived, feedback));
        }
    }

    /// Returns the time at which feedback has to leave.
    pub(crate) fn deadline(&self) -> Instant {
        self.due.map_or_else(|| self.receiver.deadline(), |(made, _)| made)
    }

    /// Feedback that has to leave now.
    pub(crate) fn feedback(&mut self, now: Instant) -> Option<FeedbackMessage> {
        let at = || self.receiver.on_deadline(now).map(|feedback| (now, feedback));
        let (made, mut feedback) = self.due.take().or_else(at)?;
        feedback.t_delay += now.saturating_since(made);
        self.number = self.number.saturating_add(1);
        Some(FeedbackMessage { number: self.number, feedback })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn at(time: u64) -> Instant {
        Instant::ZERO + ms(time)
    }

    fn message(number: u32, echo: Instant, t_delay: Duration) -> FeedbackMessage {
        FeedbackMessage { number, feedback: Feedback { echo, t_delay, x_recv: 5e4, p: 0.01 } }
    }

    #[test]
    fn feedback_is_read_as_it_was_written_and_nothing_else_is() {
        let bytes = message(3, at(5), ms(1)).encode();
        assert_eq!(FeedbackMessage::decode(&bytes), Some(message(3, at(5), ms(1))));
        let with = |place: usize, field: [u8; 8]| {
            let mut bytes = bytes;
            bytes[place..place + 8].copy_from_slice(&field);
            FeedbackMessage::decode(&bytes)
        };
        // p, and the receive rate: values that are no number, negative, infinite or too large.
        for (place, value) in
            [(28, f64::NAN), (28, 1.01), (28, -0.1), (20, f64::INFINITY), (20, 2e15), (20, f64::NAN)]
        {
            assert_eq!(with(place, value.to_bits().to_be_bytes()), None, "{value} at {place}");
        }
        assert_eq!(with(12, u64::MAX.to_be_bytes()), None, "a time of centuries");
        assert_eq!(FeedbackMessage::decode(&bytes[1..]), None);
        assert_eq!(FeedbackMessage::decode(&message(0, at(5), ms(1)).encode()), None);
    }

    #[test]
    fn feedback_that_cannot_be_is_refused() {
        let mut sender = RateSender::new(at(1000), &TfrcParams::default(), None);
        sender.on_send(at(1010), 1000);
        for (number, echo, t_delay) in [(1, at(1101), ms(0)), (1, at(999), ms(0)), (1, at(1010), ms(91))] {
            sender.on_feedback(at(1100), Some(message(number, echo, t_delay)));
        }
        sender.on_feedback(at(1100), None);
        assert_eq!(
            (sender.figures().refused, sender.figures().feedback, sender.rtt()),
            (4, 0, Duration::ZERO)
        );
        sender.on_feedback(at(1100), Some(message(5, at(1010), ms(10))));
        assert_eq!(sender.rtt(), ms(80));
        // The same again, an older one, and one with an older echo.
        for (number, echo) in [(5, at(1010)), (4, at(1020)), (6, at(1009))] {
            sender.on_feedback(at(1120), Some(message(number, echo, ms(0))));
        }
        let TfrcFigures { feedback, refused, rtt, .. } = sender.figures();
        assert_eq!((feedback, refused, rtt), (1, 7, Some(ms(80))));
    }

    #[test]
    fn without_feedback_the_rate_falls_to_its_least() {
        let mut sender = RateSender::new(at(0), &TfrcParams::default(), Some(Bytes::new(500)));
        sender.on_send(at(0), 500);
        assert_eq!(sender.figures().rate, Rate::from_bps(4000));
        for _ in 0..20 {
            let mut now = sender.deadline();
            sender.on_deadline(now);
            now = now.max(sender.ready_at());
            sender.on_send(now, 500);
        }
        // RFC 5348 section 4.3: s / t_mbi, a segment in 64 s.
        assert_eq!(sender.figures().rate, Rate::from_bps(62));
    }

    #[test]
    fn a_long_message_counts_as_several_segments_and_a_short_one_as_one() {
        for (bytes, wait) in [(1, 1000), (1000, 1000), (5000, 5000)] {
            let mut sender = RateSender::new(at(0), &TfrcParams::default(), None);
            sender.on_send(at(0), bytes);
            assert_eq!(sender.ready_at(), at(wait), "{bytes} B at 1000 B/s");
        }
    }

    #[test]
    fn feedback_leaves_once_per_round_trip_with_the_time_that_it_has_waited() {
        let mut receiver = RateReceiver::new(100);
        receiver.on_message(at(20), 0, at(10), Duration::ZERO, 100);
        assert_eq!(receiver.deadline(), at(20));
        let first = receiver.feedback(at(23)).unwrap();
        assert_eq!((first.number, first.feedback.echo, first.feedback.t_delay), (1, at(10), ms(3)));
        assert_eq!((receiver.deadline(), receiver.feedback(at(24))), (Instant::FAR_FUTURE, None));
        for number in 1..=10 {
            receiver.on_message(at(20 + 10 * number), number, at(10 + 10 * number), ms(50), 60);
        }
        // The first round trip that can be measured begins with the second message.
        assert_eq!(receiver.deadline(), at(80));
        let second = receiver.feedback(at(125)).unwrap();
        assert_eq!((second.number, second.feedback.t_delay, second.feedback.p), (2, ms(5), 0.0));
        // Nine messages of one segment each in 95 ms.
        assert!((second.feedback.x_recv - 900.0 / 0.095).abs() < 1e-6, "{second:?}");
    }

    #[test]
    fn a_gap_of_a_million_messages_counts_as_a_few_thousand() {
        let mut receiver = RateReceiver::new(100);
        for number in [0, 1, 1_000_001, 1_000_002, 1_000_003, 500_000, 1_000_004] {
            receiver.on_message(at(100 + number / 10_000), number, at(number / 10_000), ms(20), 100);
        }
        let stats = *receiver.receiver.stats();
        assert_eq!((stats.packets, stats.lost), (6, LONGEST_GAP));
        assert!(receiver.feedback(at(300)).unwrap().feedback.p > 0.0);
    }

    proptest! {
        #[test]
        fn feedback_on_any_arrivals_is_accepted(
            messages in prop::collection::vec((any::<u64>(), any::<u64>(), 0_u64..10_000_000_000, 0_u64..70_000), 1..60),
        ) {
            let mut receiver = RateReceiver::new(1000);
            let mut now = at(1);
            for (number, sent, rtt, bytes) in messages {
                // As the numbers of a session are, which refuses larger gaps.
                let number = receiver.expected.saturating_sub(20) + number % 6000;
                receiver.on_message(now, number, Instant::from_nanos(sent), Duration::from_nanos(rtt), bytes);
                now += Duration::from_nanos(sent % 50_000_000);
                if let Some(feedback) = receiver.feedback(now) {
                    prop_assert_eq!(FeedbackMessage::decode(&feedback.encode()), Some(feedback));
                }
            }
        }

        #[test]
        fn a_sender_has_a_rate_after_any_feedback(
            all in prop::collection::vec((0_u64..300, 0_u64..300, 0.0..1e15_f64, 0.0..=1.0_f64), 1..60),
        ) {
            let mut sender = RateSender::new(at(0), &TfrcParams::default(), None);
            let mut now = at(0);
            for (number, (step, delay, x_recv, p)) in (1..).zip(all) {
                if sender.ready_at() <= now {
                    sender.on_send(now, 1000);
                }
                let echo = now;
                now += ms(step);
                let feedback = Feedback { echo, t_delay: ms(delay), x_recv, p };
                sender.on_feedback(now, Some(FeedbackMessage { number, feedback }));
                let TfrcFigures { rate, .. } = sender.figures();
                prop_assert!(rate >= Rate::from_bps(125), "{}", rate);
                prop_assert!(sender.ready_at() <= now + Duration::from_secs(65));
                sender.on_deadline(now);
            }
        }
    }
}
