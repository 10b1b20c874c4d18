//! The receiving direction: purpose of each datagram, counters, delays, jitter.

use super::trace::{Input, Output, Recorder};
use super::{CHECKED, ControlKind, Participation, Purpose};
use crate::clock::ClockOffset;
use crate::frame::{self, DATAGRAM_HEADER, Frame};
use crate::monitor::{Arrivals, MessageArrival, MonitorParams, Sample};
use crate::rate_control::{FeedbackMessage, RateReceiver, segment};
use cutline_units::{Bytes, Duration, Histogram, Instant};

/// The receiving direction of an end.
#[derive(Clone, Debug)]
pub struct Inbound {
    pub(super) arrivals: Arrivals,
    /// The peer's clock minus ours; `None` while it is unknown.
    pub(super) offset: Option<ClockOffset>,
    /// The messages' segment, for rate control, bytes.
    segment: u32,
    /// State for the peer's rate control; `None` before a message shows that it has some.
    tfrc: Option<Box<RateReceiver>>,
    recorder: Option<Recorder>,
}

impl Inbound {
    pub(super) fn new(now: Instant, monitor: &MonitorParams, recorder: Option<Recorder>) -> Self {
        let arrivals = Arrivals::new(now, monitor).expect(CHECKED);
        Self { arrivals, offset: None, segment: segment(None), tfrc: None, recorder }
    }

    /// Messages of this size were agreed on.
    pub(super) fn set_size(&mut self, size: Option<Bytes>) {
        self.segment = segment(size);
        if let Some(tfrc) = &mut self.tfrc {
            tfrc.set_segment(self.segment);
        }
    }

    /// Returns the one-way delays of the messages received since the beginning.
    pub const fn delays(&self) -> &Histogram {
        self.arrivals.delays()
    }

    /// Returns the time at which feedback for the peer's rate control has to leave, by
    /// [`Session::advance`](super::Session::advance).
    #[inline]
    pub fn feedback_due(&self) -> Instant {
        self.tfrc.as_ref().map_or(Instant::FAR_FUTURE, |tfrc| tfrc.deadline())
    }

    pub(super) fn feedback(&mut self, now: Instant) -> Option<FeedbackMessage> {
        self.tfrc.as_mut()?.feedback(now)
    }

    #[cold]
    fn control_rate(&mut self, arrived: Instant, (number, sent): (u64, Instant), rtt: Duration, bytes: u64) {
        let tfrc = self.tfrc.get_or_insert_with(|| Box::new(RateReceiver::new(self.segment)));
        tfrc.on_message(arrived, number, sent, rtt, bytes);
    }

    /// Keeps a sample of each message from now on ([`Arrivals::sample`]).
    pub fn sample(&mut self, most: usize) {
        self.arrivals.sample(most);
    }

    /// Takes the samples that were kept ([`Arrivals::take_samples`]).
    pub fn take_samples(&mut self) -> (Vec<Sample>, u64) {
        self.arrivals.take_samples()
    }

    /// A datagram has arrived. Returns its purpose; a message is measured.
    #[inline]
    pub fn on_datagram(&mut self, arrived: Instant, bytes: &[u8], participation: Participation) -> Purpose {
        let purpose = self.purpose(arrived, bytes, participation);
        if let Some(recorder) = &self.recorder {
            let input = Input::Datagram(participation, bytes.to_vec());
            recorder.note(arrived, input, vec![Output::Purpose(purpose)]);
        }
        purpose
    }

    #[inline]
    fn purpose(&mut self, arrived: Instant, bytes: &[u8], participation: Participation) -> Purpose {
        // The address may have been that of an earlier connection, whose peer does not know that it is over. A datagram before the
        // answer, because the network reorders, is not plain either.
        if participation == Participation::Joining && frame::token_of(bytes).is_some() {
            return Purpose::Nothing;
        }
        match frame::datagram(bytes, participation.token()) {
            Frame::Data { number, sent, rtt } => {
                let length = (bytes.len() - DATAGRAM_HEADER) as u64;
                match self.arrivals.on_message(arrived, number, sent, length, self.offset) {
                    MessageArrival::InOrder { .. } | MessageArrival::Late => {
                        if let Some(rtt) = rtt {
                            self.control_rate(arrived, (number, sent), rtt, length);
                        }
                        Purpose::Message(DATAGRAM_HEADER)
                    }
                    MessageArrival::Duplicate | MessageArrival::Impossible => Purpose::Nothing,
                }
            }
            Frame::Plain => {
                self.arrivals.on_plain(arrived, bytes.len() as u64);
                Purpose::Message(0)
            }
            Frame::Negotiation => Purpose::Control(ControlKind::Negotiation),
            Frame::Report => Purpose::Control(ControlKind::Report),
            Frame::Feedback => Purpose::Control(ControlKind::Feedback),
            Frame::Foreign => Purpose::Nothing,
        }
    }

    /// A message has arrived that was sent at a time of the sender's clock.
    #[inline]
    pub fn on_message(&mut self, arrived: Instant, number: u64, sent: Instant, bytes: u64) -> MessageArrival {
        let arrival = self.arrivals.on_message(arrived, number, sent, bytes, self.offset);
        if let Some(recorder) = &self.recorder {
            recorder.note(arrived, Input::Message { number, sent, bytes }, vec![Output::Arrival(arrival)]);
        }
        arrival
    }

    /// Notes that data waits for the application since a time, until [`Inbound::on_read`].
    pub fn on_unread(&mut self, since: Instant) {
        self.arrivals.on_unread(since);
        if let Some(recorder) = &self.recorder {
            recorder.note(since, Input::Unread, Vec::new());
        }
    }

    /// This host has dropped so many datagrams before the next one, which arrived at this time, because the receive buffer was full.
    pub fn on_overflow(&mut self, arrived: Instant, datagrams: u64) {
        self.arrivals.on_overflow(arrived, datagrams);
        if let Some(recorder) = &self.recorder {
            recorder.note(arrived, Input::Overflow(datagrams), Vec::new());
        }
    }

    /// The application has read everything.
    pub fn on_read(&mut self, now: Instant) {
        self.arrivals.on_read(now);
        if let Some(recorder) = &self.recorder {
            recorder.note(now, Input::Read, Vec::new());
        }
    }

    /// A message of an end that takes no part has arrived.
    #[inline]
    pub fn on_plain(&mut self, arrived: Instant, bytes: u64) {
        self.arrivals.on_plain(arrived, bytes);
        if let Some(recorder) = &self.recorder {
            recorder.note(arrived, Input::Plain(bytes), Vec::new());
        }
    }
}
