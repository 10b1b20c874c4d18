//! One end of a QoS connection, without IO: it negotiates, measures what is sent and received, exchanges reports, watches what was
//! agreed on, and adapts.
//!
//! It has three parts, so that a socket may protect each by a lock of its own and the two directions never wait for each other:
//!
//! - [`Outbound`]: what the application sends: numbers, pacing, rate control, counters.
//! - [`Inbound`]: what it receives: counters, delays, jitter.
//! - [`Session`]: everything else, which is needed a few times a second.
//!
//! ```text
//! application -> Outbound -> messages -> network -> messages -> Inbound -> application
//!                    \                                             /
//!                     Session  <--- negotiation and reports --->  Session
//! ```
//!
//! With an end that does not speak this protocol a session is *alone*: its messages are those of a plain connection, and only
//! what one end sees is measured.

mod contact;
mod inbound;
mod outbound;
#[cfg(test)]
mod tests;
pub mod trace;

pub use contact::Cause;
pub use inbound::{ControlKind, Inbound, Purpose};
pub use outbound::Outbound;

use crate::authentication::Key;
use crate::clock::{ClockParams, OffsetEstimator, Stamper};
use crate::frame::{self, Frame};
use crate::mib::{Contract, LocalFeedback, Mib, ReceiveMib, SendMib, TcpFigures};
use crate::monitor::{MonitorParams, PeerReports, Report, SentInterval};
use crate::negotiation::{self, Agreed, Carrier, Negotiation, NegotiationParams, Nonce, OneSidedReason};
use crate::operation::{DEPENDENT, Operation, OperationParams};
use crate::rate_control::{FeedbackMessage, RateControl};
use crate::renegotiation::{Alternatives, Renegotiation, Seen};
use crate::violation::{self, Violation, Watch, WatchParams};
use contact::Contact;
use cutline_params::{ParameterError, Parameters as _};
use cutline_quality::spec::{Agreement, Conflicts, ConnectionSpecification, Measure, Region, Specification};
use cutline_quality::{Class, Combination, HintControl, HintParams};
use cutline_units::{Duration, Hint, Instant, RandomStream};
use std::collections::VecDeque;
use trace::{Beginning, Input, Output, Recorder, Role, SessionTrace};

/// Automatic actions of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    /// The hint follows the quality that the other end reports, judged for this class of application, within the limit of the loss that
    /// was agreed on. The paper's goal, quality at any loss, is [`HintGoal::Quality`](cutline_quality::HintGoal::Quality).
    pub adapt_hint: Option<(Class, HintParams)>,
    /// The rate moves inside the region of operation.
    pub adapt_rate: Option<OperationParams>,
    /// Alternatives that are requested when the other policies cannot keep the limits; the better one is
    /// requested again later.
    pub renegotiate: Option<Alternatives>,
}

/// Parameters of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionParams {
    /// Of its negotiation.
    pub negotiation: NegotiationParams,
    /// Of its measurements.
    pub monitor: MonitorParams,
    /// Of the comparison with the specification.
    pub watch: WatchParams,
    /// Of the offset between the clocks.
    pub clock: ClockParams,
    /// Limit of the rate at which this end sends, once the other end takes part. Streams have
    /// [`RateControl::Agreed`].
    pub rate_control: RateControl,
    /// Automatic actions.
    pub policies: Policies,
}

/// A direction of a connection, as its end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Traffic that this end sends.
    Send,
    /// Traffic that this end receives.
    Receive,
}

/// Event of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Both ends agree. The first time, messages have headers from now on.
    Agreed(Box<Agreed>),
    /// The ends do not agree. What was agreed on before holds.
    Refused {
        /// Conflicts about the traffic that this end sends.
        send: Option<Conflicts>,
        /// Conflicts about the traffic that this end receives.
        receive: Option<Conflicts>,
    },
    /// The other end takes no part in the negotiation. After one in which both ends have agreed, it has not answered, perhaps because its
    /// application leaves messages unread: what was agreed on goes on to hold.
    OneSided(OneSidedReason),
    /// This end asks by itself for another specification ([`Policies::renegotiate`]): its place among the alternatives, from 1, or 0 for
    /// the application's own. [`Event::Agreed`], [`Event::Refused`] or [`Event::OneSided`] says what becomes of it.
    Asked(usize),
    /// A measure is outside its limit.
    Violated(Direction, Violation),
    /// A measure is within its limit again.
    Restored {
        /// Of which direction.
        direction: Direction,
        /// The violation that is over, with the worst value.
        violation: Violation,
        /// The value of the last interval, in the measure's unit.
        measured: f64,
        /// Duration of the violation.
        after: Duration,
    },
    /// Packets are to have this hint from now on.
    Hint(Hint),
    /// The application should send at this rate from now on, messages/s.
    Rate(f64),
    /// The connection is broken, or nothing has been heard of the other end for longer than its reports allow. What becomes of the
    /// messages that it has not reported is unknown.
    Lost {
        /// Cause of the loss.
        cause: Cause,
        /// Number of whole messages sent over this connection.
        sent: u64,
        /// Number of these messages that the other end has reported as received. It may have received more.
        /// An end that takes no part reports none.
        reported: u64,
    },
    /// The connection works again.
    Recovered {
        /// Duration of the interruption.
        after: Duration,
        /// True if it was made again: then all numbers begin anew. Otherwise the other end is heard again.
        is_new: bool,
    },
    /// The connection was not made again within the time that the specification gives; or a datagram
    /// connection without reconnection has been silent for so long that receiving fails.
    GaveUp {
        /// Duration of the attempts.
        after: Duration,
        /// Cause of the last attempt's failure.
        cause: Cause,
    },
}

/// Participation of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody knows yet.
    Joining,
    /// The other end takes part; this is the session's token.
    Joined(u32),
    /// The other end takes no part.
    Alone,
}

impl Standing {
    /// The token of messages; `None` while the other end does not take part.
    #[inline]
    pub const fn token(self) -> Option<u32> {
        match self {
            Self::Joined(token) => Some(token),
            Self::Joining | Self::Alone => None,
        }
    }
}

/// Kind of the first datagram at an end while the other end's participation is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A message of a negotiation, which has been handled.
    Negotiation,
    /// A message or a report of this session, although the other end has not confirmed it: the confirmation is lost. Now both ends
    /// agree, as if it had come.
    Confirmed,
    /// Something else: the other end takes no part.
    Foreign,
}

/// Everything of an end but its two directions.
#[derive(Debug)]
pub struct Session {
    /// `None` for an end that has never asked the other one.
    negotiation: Option<Negotiation>,
    standing: Standing,
    params: SessionParams,
    clock: OffsetEstimator,
    stamper: Stamper,
    /// Number of reports sent.
    reports: u32,
    peer: PeerReports,
    /// Time at which the last report arrived.
    heard: Instant,
    contact: Contact,
    carrier: Carrier,
    /// The effective specification of each direction, and its conformance.
    send: Side,
    receive: Side,
    hint: Option<HintControl>,
    operation: Option<Operation>,
    renegotiation: Option<Renegotiation>,
    events: VecDeque<Event>,
    outbox: VecDeque<Vec<u8>>,
    /// The end of the interval under way.
    next: Instant,
    recorder: Option<Recorder>,
    /// Outputs since the last input, if they are recorded.
    outputs: Vec<Output>,
}

/// A direction: its specification, and whether it is kept to.
#[derive(Debug)]
struct Side {
    contract: Contract,
    watch: Watch,
}

/// Initial values of an end.
#[derive(Clone, Debug)]
pub struct SessionStart {
    /// Requirements of the application.
    pub specification: ConnectionSpecification,
    /// Carrier of the messages.
    pub carrier: Carrier,
    /// Parameters of the session.
    pub params: SessionParams,
    /// The key that both ends share, if there is one.
    pub key: Option<Key>,
    /// Source of random decisions.
    pub random: RandomStream,
    /// Trace of the session's inputs and outputs.
    pub trace: Option<SessionTrace>,
}

const CHECKED: &str = "the session has checked its parameters";
/// Number of intervals without a report that count as silence.
const MISSED: u64 = 3;
/// The most events that wait to be read. Older ones are forgotten: what holds now is in the [`Mib`].
const MOST_EVENTS: usize = 256;

impl Side {
    fn new(specification: Specification, params: &WatchParams) -> Result<Self, ParameterError> {
        let watch = Watch::new(&specification, params.clone())?;
        Ok(Self { contract: Contract { effective: specification, agreement: None }, watch })
    }

    fn agree(&mut self, now: Instant, agreement: &Agreement) {
        self.watch.renegotiate(now, &agreement.effective);
        self.contract =
            Contract { effective: agreement.effective.clone(), agreement: Some(agreement.clone()) };
    }
}

impl Session {
    /// The end that asks. `ids` are random numbers that nobody can guess: the session's, and a nonce.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn initiate(now: Instant, start: SessionStart, ids: (u64, Nonce)) -> Result<Self, ParameterError> {
        let SessionStart { specification, carrier, params, key, .. } = start.clone();
        let how = (carrier, params.negotiation);
        let negotiation = Negotiation::initiate(now, specification, how, ids, key)?;
        let mut this = Self::new(now, start, Role::Initiator(ids.0, ids.1), Some(negotiation))?;
        this.collect();
        Ok(this)
    }

    /// The end that is asked. `nonce` is a random number that nobody can guess.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn respond(now: Instant, start: SessionStart, nonce: Nonce) -> Result<Self, ParameterError> {
        let SessionStart { specification, carrier, params, key, .. } = start.clone();
        let negotiation = Negotiation::respond(specification, (carrier, params.negotiation), nonce, key)?;
        Self::new(now, start, Role::Responder(nonce), Some(negotiation))
    }

    /// An end whose other end is known to take no part.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn alone(now: Instant, start: SessionStart) -> Result<Self, ParameterError> {
        let mut this = Self::new(now, start, Role::Alone, None)?;
        this.standing = Standing::Alone;
        Ok(this)
    }

    fn new(
        now: Instant,
        mut start: SessionStart,
        role: Role,
        negotiation: Option<Negotiation>,
    ) -> Result<Self, ParameterError> {
        let trace = start.trace.take();
        let recorder = trace.map(|trace| trace.begin(Beginning { at: now, start: start.clone(), role }));
        let SessionStart { specification, params, random, carrier, .. } = start;
        params.monitor.validate()?;
        params.rate_control.validate()?;
        params.rate_control.check_carrier(carrier)?;
        let Policies { adapt_hint, adapt_rate, renegotiate } = &params.policies;
        let hint = match adapt_hint {
            Some((class, hint)) => Some(HintControl::new(hint, *class, Combination::Min, now, random)?),
            None => None,
        };
        if let Some(rate) = adapt_rate {
            rate.validate()?;
        }
        let own = || specification.clone();
        let renegotiation =
            renegotiate.clone().map(|them| Renegotiation::new(now, own(), them)).transpose()?;
        let (send, receive) = (specification.send, specification.receive);
        Ok(Self {
            negotiation,
            standing: Standing::Joining,
            clock: OffsetEstimator::new(params.clock.clone())?,
            stamper: Stamper::default(),
            reports: 0,
            peer: PeerReports::default(),
            heard: now,
            contact: Contact::new(now),
            carrier,
            send: Side::new(send, &params.watch)?,
            receive: Side::new(receive, &params.watch)?,
            hint,
            operation: None,
            renegotiation,
            events: VecDeque::new(),
            outbox: VecDeque::new(),
            next: now.saturating_add(params.monitor.interval),
            params,
            recorder,
            outputs: Vec::new(),
        })
    }

    /// The two directions, which begin now.
    pub fn directions(&self, now: Instant) -> (Outbound, Inbound) {
        if let Some(recorder) = &self.recorder {
            recorder.note(now, Input::Directions, Vec::new());
        }
        self.new_directions(now)
    }

    fn new_directions(&self, now: Instant) -> (Outbound, Inbound) {
        let (monitor, recorder) = (&self.params.monitor, || self.recorder.clone());
        let out = Outbound::new(now, monitor, &self.send.contract.effective, recorder());
        (out, Inbound::new(now, monitor, recorder()))
    }

    /// Records an input and what was done then.
    fn note(&mut self, at: Instant, input: impl FnOnce() -> Input) {
        if let Some(recorder) = &self.recorder {
            recorder.note(at, input(), std::mem::take(&mut self.outputs));
        }
    }

    /// Returns whether nobody knows yet if the other end takes part.
    pub const fn is_joining(&self) -> bool {
        matches!(self.standing, Standing::Joining)
    }

    /// Returns whether the other end takes part.
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// The token of messages; `None` while the other end does not take part.
    pub const fn token(&self) -> Option<u32> {
        self.standing.token()
    }

    /// The hint that packets should have; `None` if nothing adapts it.
    pub fn hint(&self) -> Option<Hint> {
        self.hint.as_ref().map(HintControl::hint)
    }

    /// The next message to send: of a negotiation, or a report.
    pub fn transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    /// Returns the next event, oldest first.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time of the next call of [`Session::advance`], as things are: messages may bring it
    /// forward if there is rate control.
    pub fn deadline(&self, out: &Outbound, inbound: &Inbound) -> Instant {
        let negotiation = self.negotiation.as_ref().map_or(Instant::FAR_FUTURE, Negotiation::deadline);
        if self.is_joining() {
            return negotiation;
        }
        negotiation.min(self.next).min(out.deadline()).min(inbound.feedback_due())
    }

    /// Asks the other end for something else. An end that is alone takes it at once.
    pub fn renegotiate(&mut self, now: Instant, specification: ConnectionSpecification, out: &mut Outbound) {
        let recorded = self.recorder.is_some().then(|| Box::new(specification.clone()));
        self.ask(now, specification, out);
        if let Some(specification) = recorded {
            self.note(now, || Input::Renegotiate(specification));
        }
    }

    fn ask(&mut self, now: Instant, specification: ConnectionSpecification, out: &mut Outbound) {
        if let Some(renegotiation) = &mut self.renegotiation {
            renegotiation.restart(now, specification.clone());
        }
        if let (Standing::Joined(_) | Standing::Joining, Some(negotiation)) =
            (self.standing, &mut self.negotiation)
        {
            negotiation.renegotiate(now, specification);
            self.collect();
            return;
        }
        out.renegotiate(&specification.send);
        for (side, effective) in
            [(&mut self.send, specification.send), (&mut self.receive, specification.receive)]
        {
            side.watch.renegotiate(now, &effective);
            side.contract.effective = effective;
        }
    }

    /// Handles a control message that has come: [`Inbound::on_datagram`] or a [`StreamReader`](crate::frame::StreamReader) has found it.
    pub fn on_control(
        &mut self,
        now: Instant,
        control: ControlKind,
        bytes: &[u8],
        out: &mut Outbound,
        inbound: &mut Inbound,
    ) {
        match control {
            ControlKind::Negotiation => self.on_negotiation(now, bytes, out, inbound),
            ControlKind::Report => self.on_report(now, bytes, out, inbound),
            ControlKind::Feedback => self.on_feedback(now, bytes, out),
        }
    }

    /// Returns whether a datagram belongs to another session than this one, which has been agreed on. A new process at the other end's
    /// address sends such datagrams, and so does one there that does not know that this session has taken the place of its own.
    pub fn is_of_another(&self, datagram: &[u8]) -> bool {
        let Some(token) = self.token() else { return false };
        match frame::token_of(datagram) {
            Some(theirs) => theirs != token,
            None => self.negotiation.as_ref().is_some_and(|ours| ours.is_of_another_session(datagram)),
        }
    }

    /// Handles a message of a negotiation.
    pub fn on_negotiation(&mut self, now: Instant, bytes: &[u8], out: &mut Outbound, inbound: &mut Inbound) {
        // An end that was left alone sends plain messages, and a late answer would be one too many among them.
        if let Some(negotiation) = self.negotiation.as_mut().filter(|_| self.standing != Standing::Alone) {
            negotiation.on_message(now, bytes);
            self.settle(now, out, inbound);
        }
        self.note(now, || Input::Control(ControlKind::Negotiation, bytes.to_vec()));
    }

    /// Handles a datagram that has come to an end that was asked, while nobody knows yet whether the other end takes part.
    ///
    /// Of a [message](Opening::Confirmed) the caller has to [take](Inbound::on_datagram) the datagram then. After a
    /// [foreign](Opening::Foreign) one nothing has changed: the caller calls [`Session::on_foreign`] or forgets the session.
    pub fn on_opening(
        &mut self,
        now: Instant,
        datagram: &[u8],
        out: &mut Outbound,
        inbound: &mut Inbound,
    ) -> Opening {
        if frame::datagram(datagram, None) == Frame::Negotiation {
            self.on_negotiation(now, datagram, out, inbound);
            return Opening::Negotiation;
        }
        if self.confirm_by(now, datagram, out, inbound) { Opening::Confirmed } else { Opening::Foreign }
    }

    /// Agrees if a datagram has the token of this session, as if the other end's confirmation had come. Returns whether it has.
    fn confirm_by(
        &mut self,
        now: Instant,
        datagram: &[u8],
        out: &mut Outbound,
        inbound: &mut Inbound,
    ) -> bool {
        let Some(negotiation) =
            self.negotiation.as_mut().filter(|_| matches!(self.standing, Standing::Joining))
        else {
            return false;
        };
        let token = negotiation.token();
        let is_of_session = token.is_some_and(|token| {
            matches!(
                frame::datagram(datagram, Some(token)),
                Frame::Data { .. } | Frame::Report | Frame::Feedback
            )
        });
        if is_of_session {
            negotiation.on_token(now);
            self.settle(now, out, inbound);
            self.note(now, || Input::Confirmation(datagram.to_vec()));
        }
        is_of_session
    }

    /// Ends a negotiation because the other end sends something else.
    pub fn on_foreign(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        if let Some(negotiation) = &mut self.negotiation {
            negotiation.on_foreign(now);
        }
        if self.is_joining() {
            self.leave(now, OneSidedReason::Foreign, inbound);
        }
        self.settle(now, out, inbound);
        self.note(now, || Input::Foreign);
    }

    /// Goes on alone because the other end has not answered so far. What it answers later changes nothing.
    pub fn on_silence(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        if let Some(negotiation) = &mut self.negotiation {
            negotiation.on_silence(now);
        }
        self.settle(now, out, inbound);
        self.note(now, || Input::Silence);
    }

    /// Handles a report that has arrived, with its header and its tag.
    pub fn on_report(&mut self, arrived: Instant, bytes: &[u8], out: &mut Outbound, inbound: &mut Inbound) {
        self.take_report(arrived, bytes, out, inbound);
        self.note(arrived, || Input::Control(ControlKind::Report, bytes.to_vec()));
    }

    fn take_report(&mut self, arrived: Instant, bytes: &[u8], out: &mut Outbound, inbound: &mut Inbound) {
        let authentic = self.negotiation.as_ref().and_then(|negotiation| negotiation.authentic(bytes));
        let Some(report) = authentic.map(frame::report_content).and_then(Report::decode) else {
            self.peer.refuse();
            return;
        };
        let (stamps, delay_error, hint_report) = (report.stamps, report.delay_error, report.for_hint());
        let (theirs, sent) = (report.sent.messages, out.most_sent());
        let exchange = self.stamper.on_stamps(arrived, &stamps);
        let mut clock = self.clock.clone();
        if let Some(exchange) = exchange {
            clock.add(&exchange);
        }
        let Ok(delivery) = self.peer.accept(arrived, report, sent, clock.estimate(arrived)) else { return };
        (self.clock, self.heard) = (clock, arrived);
        self.contact.on_report(arrived, delivery.length());
        inbound.offset = self.clock.estimate(arrived).map(|estimate| estimate.offset);
        inbound.arrivals.on_sent(arrived, theirs);
        let demand = out.departures.last().map(SentInterval::demand);
        let assessment = self.send.watch.on_interval(&delivery, delay_error, demand);
        if let Some(control) = &mut self.hint {
            let before = control.hint();
            let hint = control.on_report(arrived, &hint_report, sent.messages);
            if hint != before {
                self.tell(Event::Hint(hint));
            }
        }
        let is_asking = self.renegotiation.as_ref().is_some_and(Renegotiation::is_asking_for_less);
        if let Some(operation) = self.operation.as_mut().filter(|_| !is_asking) {
            let before = operation.target();
            let demand = demand.unwrap_or_else(|| delivery.demand());
            let rate = operation.on_interval(arrived, &delivery, demand, &assessment);
            if rate.total_cmp(&before).is_ne() {
                out.set_rate(rate);
                self.tell(Event::Rate(rate));
            }
        }
        self.collect();
    }

    /// Handles feedback of rate control that has arrived, with its header and its tag.
    pub fn on_feedback(&mut self, arrived: Instant, bytes: &[u8], out: &mut Outbound) {
        let authentic = self.negotiation.as_ref().and_then(|negotiation| negotiation.authentic(bytes));
        let feedback = authentic.map(frame::report_content).and_then(FeedbackMessage::decode);
        if feedback.is_some() {
            self.contact.hear(arrived);
        }
        out.on_feedback(arrived, feedback);
        self.note(arrived, || Input::Control(ControlKind::Feedback, bytes.to_vec()));
    }

    /// Sends the feedback that is due.
    fn feed_back(&mut self, now: Instant, inbound: &mut Inbound) {
        if let (Standing::Joined(token), Some(negotiation)) = (self.standing, &self.negotiation)
            && let Some(feedback) = inbound.feedback(now)
        {
            let message = frame::feedback(token, &feedback.encode(), negotiation.tagger());
            self.post(message);
        }
    }

    /// Does what is due: sends again what was not answered, ends intervals, reports.
    pub fn advance(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        self.do_due(now, out, inbound);
        self.note(now, || Input::Advance);
    }

    fn do_due(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        if let Some(negotiation) = &mut self.negotiation {
            negotiation.on_deadline(now);
        }
        self.settle(now, out, inbound);
        out.on_deadline(now);
        self.feed_back(now, inbound);
        if self.is_joining() || now < self.next {
            return;
        }
        out.departures.on_deadline(now);
        inbound.arrivals.on_deadline(now);
        let clock = self.clock.estimate(now);
        inbound.offset = clock.map(|estimate| estimate.offset);
        let error = clock.map_or(Duration::ZERO, |estimate| estimate.error);
        while let Some(delivery) = inbound.arrivals.take() {
            self.receive.watch.on_interval(&delivery, error, self.peer.demand());
        }
        self.next = inbound.arrivals.deadline();
        let silence = now.saturating_since(self.heard);
        let is_silent = silence > self.params.monitor.interval * MISSED;
        if let (Standing::Joined(token), Some(negotiation)) = (self.standing, &self.negotiation) {
            if is_silent {
                self.send.watch.on_silence(now, silence);
            }
            self.reports += 1;
            let stamps = self.stamper.stamp(now);
            let report =
                Report::new(self.reports, &inbound.arrivals, &out.departures, clock, stamps).encode();
            let message = frame::report(token, &report, negotiation.tagger());
            self.post(message);
            // Who is not heard does not answer.
            if !is_silent {
                self.reconsider(now, out);
            }
            self.listen(now, out, inbound);
        }
        self.collect();
    }

    /// Notices that nothing is heard of the other end any more, or that it is heard again. In a stream, reports wait behind what the
    /// application does not read, so who owns the socket has to notice it.
    fn listen(&mut self, now: Instant, out: &Outbound, inbound: &Inbound) {
        if self.carrier == Carrier::Stream {
            return;
        }
        let silence = self.contact.silence(now, inbound.arrivals.latest());
        if silence >= self.contact.limit(self.params.monitor.interval) {
            self.on_loss(now, Cause::Silence(silence), out.number());
        } else {
            self.on_contact(now);
        }
    }

    /// Returns the length of the other end's silence.
    pub fn silence(&self, now: Instant, inbound: &Inbound) -> Duration {
        self.contact.silence(now, inbound.arrivals.latest())
    }

    /// Returns the length of silence after which the connection counts as lost.
    pub fn longest_silence(&self) -> Duration {
        self.contact.limit(self.params.monitor.interval)
    }

    /// The connection is lost ([`Event::Lost`]), and so many messages were sent, unless that is known already.
    pub fn lose(&mut self, now: Instant, cause: Cause, sent: u64) {
        self.on_loss(now, cause.clone(), sent);
        self.note(now, || Input::Lose(cause, sent));
    }

    fn on_loss(&mut self, now: Instant, cause: Cause, sent: u64) {
        let silence = if let Cause::Silence(time) = &cause { *time } else { Duration::ZERO };
        let since = Instant::from_nanos(now.as_nanos().saturating_sub(silence.as_nanos()));
        if self.contact.lose(since, cause.clone()) {
            let reported = self.peer.last().map_or(0, |report| report.received.messages);
            self.tell(Event::Lost { cause, sent, reported });
        }
    }

    /// The other end is heard again, if it was lost.
    pub fn find(&mut self, now: Instant) {
        self.on_contact(now);
        self.note(now, || Input::Find);
    }

    fn on_contact(&mut self, now: Instant) {
        if let Some(after) = self.contact.find(now) {
            self.tell(Event::Recovered { after, is_new: false });
        }
    }

    /// Returns the cause of the loss; `None` if the connection is not lost.
    pub fn lost(&self) -> Option<&Cause> {
        self.contact.lost()
    }

    /// Asks for another specification if it is time to.
    fn reconsider(&mut self, now: Instant, out: &mut Outbound) {
        let Some(better) = self.renegotiation.as_ref().map(Renegotiation::better) else { return };
        let seen = self.seen(better);
        let (Some(renegotiation), Some(negotiation)) = (&mut self.renegotiation, &mut self.negotiation)
        else {
            return;
        };
        if negotiation.is_under_way() {
            return;
        }
        if let Some((place, specification)) = renegotiation.on_interval(now, &seen) {
            let send = &specification.send;
            let least = send.min_rate.or(send.max_rate);
            negotiation.renegotiate(now, specification.clone());
            let least = least.filter(|_| renegotiation.is_asking_for_less());
            self.tell(Event::Asked(place));
            if let Some(rate) = least {
                out.set_rate(rate);
                self.tell(Event::Rate(rate));
            }
        }
    }

    /// Restores the rate of the effective specification after a request was refused or not answered.
    fn resume(&mut self, out: &mut Outbound, end: impl FnOnce(&mut Renegotiation)) {
        let Some(renegotiation) = &mut self.renegotiation else { return };
        let was_less = renegotiation.is_asking_for_less();
        end(renegotiation);
        if was_less {
            out.renegotiate(&self.send.contract.effective);
            let target = self.operation.as_ref().map(Operation::target);
            if let Some(rate) = target {
                out.set_rate(rate);
            }
            if let Some(rate) = target.or(self.send.contract.effective.max_rate) {
                self.tell(Event::Rate(rate));
            }
        }
    }

    /// Returns the observation of the last interval, for the effective and for a better specification.
    fn seen(&self, better: Option<&ConnectionSpecification>) -> Seen {
        let sides = [
            (&self.send, better.map(|better| &better.send)),
            (&self.receive, better.map(|better| &better.receive)),
        ];
        let sent = self.send.watch.violations().filter_map(|violation| {
            self.beyond_mending(violation.measure).map(|since| since.max(violation.since))
        });
        let received = self.receive.watch.violations().map(|violation| violation.since);
        let headroom = |(side, better): &(&Side, Option<&Specification>)| {
            let (region, assessment) = (Region::new((*better)?), side.watch.assessment());
            let position = |measure| {
                let (axis, judged) = (region.axis(measure)?, assessment.get(measure)?);
                Some(axis.position(judged.value))
            };
            DEPENDENT.into_iter().filter_map(position).reduce(f64::min)
        };
        let is_violated = sides.iter().any(|(side, _)| side.watch.violations().next().is_some());
        // Up to the best rate that holds, it is known what the network carries.
        let least = better.and_then(|better| better.send.min_rate);
        let is_slow = self
            .operation
            .as_ref()
            .zip(least)
            .is_some_and(|(operation, least)| operation.position() < 1.0 && operation.target() < least);
        Seen {
            violated_since: sent.chain(received).min(),
            headroom: sides.iter().filter_map(headroom).reduce(f64::min),
            is_short: is_violated || is_slow,
        }
    }

    /// Returns the time since which neither rate nor hint can mend a measure of the traffic that this end
    /// sends; `None` if one of them still can.
    fn beyond_mending(&self, measure: Measure) -> Option<Instant> {
        let hint_helps = self.hint.as_ref().zip(self.params.policies.adapt_hint.as_ref()).is_some_and(
            |(control, (_, params))| {
                let is_bound = match measure {
                    Measure::Loss => control.hint() == params.bits.largest(),
                    Measure::Delay | Measure::Jitter => control.hint().level() == 1,
                    Measure::Rate | Measure::Gap | Measure::Recovery => true,
                };
                !control.is_at_rest() && !is_bound
            },
        );
        match &self.operation {
            _ if hint_helps => None,
            Some(operation) if DEPENDENT.contains(&measure) => operation.worst_since(),
            Some(_) | None => Some(Instant::ZERO),
        }
    }

    /// Everything that is known of the connection.
    pub fn mib(
        &self,
        now: Instant,
        (out, inbound): (&Outbound, &Inbound),
        (feedback, tcp): (LocalFeedback, Option<TcpFigures>),
    ) -> Mib {
        let target = self.operation.as_ref().map(Operation::target);
        let Side { contract, watch } = &self.send;
        let tfrc = out.tfrc();
        let send = SendMib::new(contract.clone(), &out.departures, &self.peer, watch, target, tfrc.as_ref());
        let Side { contract, watch } = &self.receive;
        let receive = ReceiveMib::new(contract.clone(), &inbound.arrivals, &self.peer, watch);
        let mib = Mib {
            at: now,
            send,
            receive,
            hint: self.hint(),
            clock: self.clock.estimate(now),
            clock_steps: self.clock.steps(),
            negotiation: self.negotiation.as_ref().map(Negotiation::stats).unwrap_or_default(),
            reports: self.peer.stats(),
            feedback,
            tcp,
            tfrc,
        };
        if let Some(recorder) = &self.recorder {
            recorder.note(now, Input::Mib(feedback, tcp), vec![Output::Mib(Box::new(mib.clone()))]);
        }
        mib
    }

    /// Takes what has become of a negotiation.
    fn settle(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        while let Some(event) = self.negotiation.as_mut().and_then(Negotiation::event) {
            match event {
                negotiation::Event::Agreed(agreed) => self.agree(now, agreed, out, inbound),
                negotiation::Event::Refused { send, receive } => {
                    self.tell(Event::Refused { send, receive });
                    self.resume(out, |renegotiation| renegotiation.on_refused(now));
                }
                negotiation::Event::OneSided(reason) => {
                    self.leave(now, reason, inbound);
                    self.resume(out, |renegotiation| renegotiation.on_no_answer(now));
                }
            }
        }
        self.collect();
    }

    fn agree(&mut self, now: Instant, agreed: Box<Agreed>, out: &mut Outbound, inbound: &mut Inbound) {
        self.send.agree(now, &agreed.send);
        self.receive.agree(now, &agreed.receive);
        let token = self.negotiation.as_ref().and_then(Negotiation::token);
        if let (Standing::Joining, Some(token)) = (self.standing, token) {
            (self.standing, self.heard) = (Standing::Joined(token), now);
            self.contact.hear(now);
            (*out, *inbound) = self.new_directions(now);
            if let RateControl::Tfrc(params) = &self.params.rate_control {
                out.control_rate(now, params);
            }
            self.next = inbound.arrivals.deadline();
        } else {
            out.renegotiate(&agreed.send.effective);
        }
        inbound.set_size(agreed.receive.effective.size);
        if let Some(control) = &mut self.hint {
            control.set_loss_limit(agreed.send.effective.loss.map(|percent| percent / 100.0));
        }
        if let Some(params) = &self.params.policies.adapt_rate {
            let region = Region::new(&agreed.send.effective);
            self.operation = Operation::new(now, &region, params.clone()).ok().flatten();
        }
        if let (Some(renegotiation), Some(negotiation)) = (&mut self.renegotiation, &self.negotiation) {
            renegotiation.on_agreed(now, negotiation.ours());
        }
        self.tell(Event::Agreed(agreed));
    }

    /// The other end takes no part. One that has taken part before goes on to be measured.
    fn leave(&mut self, now: Instant, reason: OneSidedReason, inbound: &mut Inbound) {
        if self.is_joining() {
            self.standing = Standing::Alone;
            // The application of the other end had nothing to send before.
            inbound.arrivals.restart(now);
            self.next = inbound.arrivals.deadline();
        }
        self.tell(Event::OneSided(reason));
    }

    /// Collects messages to send and events.
    fn collect(&mut self) {
        while let Some(bytes) = self.negotiation.as_mut().and_then(Negotiation::transmit) {
            self.post(bytes);
        }
        for direction in [Direction::Send, Direction::Receive] {
            while let Some(event) = self.side(direction).watch.event() {
                self.tell(match event {
                    violation::Event::Violated(violation) => Event::Violated(direction, violation),
                    violation::Event::Restored { violation, measured, after } => {
                        Event::Restored { direction, violation, measured, after }
                    }
                });
            }
        }
    }

    fn side(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::Send => &mut self.send,
            Direction::Receive => &mut self.receive,
        }
    }

    fn post(&mut self, message: Vec<u8>) {
        if self.recorder.is_some() {
            self.outputs.push(Output::Control(message.clone()));
        }
        self.outbox.push_back(message);
    }

    fn tell(&mut self, event: Event) {
        if self.recorder.is_some() {
            self.outputs.push(Output::Event(Box::new(event.clone())));
        }
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
