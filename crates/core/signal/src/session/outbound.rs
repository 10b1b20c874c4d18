//! The sending direction: numbers, pacing, rate control, counters.

use super::CHECKED;
use super::trace::{Input, Output, Recorder};
use crate::monitor::{Departures, MonitorParams, Sent};
use crate::pacing::Pacer;
use crate::rate_control::{FeedbackMessage, RateSender, TfrcFigures, TfrcParams};
use cutline_quality::spec::Specification;
use cutline_units::{Bytes, Duration, Instant, Rate};

/// The sending direction of an end.
#[derive(Clone, Debug)]
pub struct Outbound {
    pub(super) departures: Departures,
    pacer: Pacer,
    /// TFRC, if the application has requested it.
    tfrc: Option<Box<RateSender>>,
    /// The effective specification.
    effective: Specification,
    /// The rate at which the application should send, messages/s, if the rate adapts.
    rate: Option<f64>,
    /// The most that the host lets this end send, bit/s of messages without headers.
    limit: Option<Rate>,
    /// The length of a message that may have left and is not counted yet.
    begun: Option<u64>,
    recorder: Option<Recorder>,
}

impl Outbound {
    pub(super) fn new(
        now: Instant,
        monitor: &MonitorParams,
        effective: &Specification,
        recorder: Option<Recorder>,
    ) -> Self {
        let departures = Departures::new(now, monitor).expect(CHECKED);
        let pacer = Pacer::new(effective);
        Self {
            departures,
            pacer,
            tfrc: None,
            effective: effective.clone(),
            rate: None,
            limit: None,
            begun: None,
            recorder,
        }
    }

    /// From now on TFRC limits the rate, too.
    pub(super) fn control_rate(&mut self, now: Instant, params: &TfrcParams) {
        self.tfrc = Some(Box::new(RateSender::new(now, params, self.effective.size)));
    }

    /// Takes feedback of the peer; `None` is something that is none.
    pub(super) fn on_feedback(&mut self, arrived: Instant, feedback: Option<FeedbackMessage>) {
        if let Some(tfrc) = &mut self.tfrc {
            tfrc.on_feedback(arrived, feedback);
        }
    }

    /// Returns the time at which missing feedback takes effect.
    pub(super) fn deadline(&self) -> Instant {
        self.tfrc.as_ref().map_or(Instant::FAR_FUTURE, |tfrc| tfrc.deadline())
    }

    pub(super) fn on_deadline(&mut self, now: Instant) {
        if let Some(tfrc) = &mut self.tfrc {
            tfrc.on_deadline(now);
        }
    }

    pub(super) fn tfrc(&self) -> Option<TfrcFigures> {
        self.tfrc.as_ref().map(|tfrc| tfrc.figures())
    }

    /// Another specification holds from now on.
    pub(super) fn renegotiate(&mut self, effective: &Specification) {
        self.pacer.renegotiate(effective);
        self.effective = effective.clone();
        self.rate = None;
        if let Some(tfrc) = &mut self.tfrc {
            tfrc.set_size(effective.size);
        }
    }

    /// The application should send at this rate, messages/s.
    pub(super) fn set_rate(&mut self, rate: f64) {
        self.pacer.set_rate(&self.effective, rate);
        self.rate = Some(rate);
    }

    /// The host lets this end send at most so much; `None` lifts the limit. Returns the limit before.
    pub(super) fn set_limit(&mut self, now: Instant, limit: Option<Rate>) -> Option<Rate> {
        self.pacer.set_limit(now, limit);
        std::mem::replace(&mut self.limit, limit)
    }

    /// The most that the resource manager of the host lets this end send, of messages without headers; `None` without a limit.
    pub const fn limit(&self) -> Option<Rate> {
        self.limit
    }

    /// The number of the next message.
    #[inline]
    pub const fn number(&self) -> u64 {
        self.departures.total().messages
    }

    /// Returns the time at which the next message may be sent: `now`, or a later time.
    #[inline]
    pub fn ready_at(&self, now: Instant) -> Instant {
        let paced = self.pacer.ready_at(now);
        self.tfrc.as_ref().map_or(paced, |tfrc| paced.max(tfrc.ready_at()))
    }

    /// The round-trip time for the header of the next message, if there is rate control; zero while it is unknown.
    #[inline]
    pub fn stated_rtt(&self) -> Option<Duration> {
        self.tfrc.as_ref().map(|tfrc| tfrc.rtt())
    }

    /// Returns whether feedback may change when the next message may be sent.
    #[inline]
    pub const fn has_rate_control(&self) -> bool {
        self.tfrc.is_some()
    }

    /// Returns whether feedback is to be expected within a round trip.
    pub fn awaits_feedback(&self) -> bool {
        self.tfrc.as_ref().is_some_and(|tfrc| tfrc.awaits_feedback())
    }

    /// The highest throughput at which messages may be sent, for a caller that paces bytes instead of messages; `None` if there is none.
    pub fn throughput(&self) -> Option<Rate> {
        let Self { effective, rate, .. } = self;
        let highest = match rate {
            Some(rate) => Specification { max_rate: Some(*rate), ..effective.clone() }.max_throughput(),
            None => effective.peak_throughput(),
        };
        let highest = highest.or_else(|| effective.max_throughput());
        self.limit.map_or(highest, |limit| Some(highest.map_or(limit, |highest| highest.min(limit))))
    }

    /// The longest message that was agreed on, bytes; `None` if any length is allowed.
    #[inline]
    pub fn longest(&self) -> Option<u64> {
        self.effective.size.map(Bytes::get)
    }

    /// The longest acceptable delay of a message; `None` if any is acceptable.
    pub const fn max_delay(&self) -> Option<Duration> {
        self.effective.max_delay
    }

    /// A message is about to be given to a kernel that may take it only later. A report of the peer may have it before
    /// [`Outbound::on_send`] or [`Outbound::retract`].
    pub fn begin(&mut self, now: Instant, bytes: u64) {
        self.note(now, || Input::Begin(bytes));
        self.begun = Some(bytes);
    }

    /// The message that was about to be sent was not.
    pub fn retract(&mut self, now: Instant) {
        self.note(now, || Input::Retract);
        self.begun = None;
    }

    /// All that the peer may have received.
    pub(super) fn most_sent(&self) -> Sent {
        let sent = self.departures.total();
        let (messages, bytes) = self.begun.map_or((0, 0), |bytes| (1, bytes));
        Sent { messages: sent.messages + messages, bytes: sent.bytes + bytes, ..sent }
    }

    /// A message was sent.
    #[inline]
    pub fn on_send(&mut self, now: Instant, bytes: u64) {
        self.note(now, || Input::Send(bytes));
        self.begun = None;
        self.departures.on_send(now, bytes);
        self.pacer.on_send(now, bytes);
        if let Some(tfrc) = &mut self.tfrc {
            tfrc.on_send(now, bytes);
        }
    }

    /// Notes that the application must wait with sending from now on, until [`Outbound::release`].
    pub fn hold(&mut self, now: Instant) {
        self.note(now, || Input::Hold);
        self.departures.hold(now);
        self.refuse(now);
    }

    /// Notes a message that the application tried to send before its time, without waiting.
    pub fn on_refused(&mut self, now: Instant) {
        self.note(now, || Input::Refused);
        self.refuse(now);
    }

    fn refuse(&mut self, now: Instant) {
        if let Some(tfrc) = &mut self.tfrc {
            tfrc.hold(now);
        }
    }

    /// The application waits no longer.
    pub fn release(&mut self, now: Instant) {
        self.note(now, || Input::Release);
        self.departures.release(now);
    }

    /// Records an input, and its answer about a message that leaves now.
    #[inline]
    fn note(&self, at: Instant, input: impl FnOnce() -> Input) {
        if let Some(recorder) = &self.recorder {
            self.record(recorder, at, input());
        }
    }

    #[cold]
    fn record(&self, recorder: &Recorder, at: Instant, input: Input) {
        let message =
            Output::Message { number: self.number(), rtt: self.stated_rtt(), ready: self.ready_at(at) };
        recorder.note(at, input, vec![message]);
    }
}
