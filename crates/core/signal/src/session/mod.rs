//! One end of a QoS connection, without IO: it negotiates, measures the traffic sent and received, exchanges reports, watches the
//! agreement, and adapts.
//!
//! It has three parts, so that a socket may protect each by a lock of its own and the two directions never wait for each other:
//!
//! - [`Outbound`]: the sent direction: numbers, pacing, rate control, counters.
//! - [`Inbound`]: the received direction: counters, delays, jitter.
//! - [`Session`]: everything else, which is needed a few times a second.
//!
//! ```text
//! application -> Outbound -> messages -> network -> messages -> Inbound -> application
//!                    \                                             /
//!                     Session  <--- negotiation and reports --->  Session
//! ```
//!
//! With an end that does not speak this protocol a session is *alone*: its messages are those of a plain connection, and only
//! measures of one end exist.

mod activity;
mod contact;
mod event;
mod inbound;
mod negotiating;
mod outbound;
mod params;
mod participation;
mod purpose;
mod reporting;
#[cfg(test)]
mod tests;
pub mod trace;

pub use activity::Activity;
pub use cutline_flow::Direction;
pub use event::{Cause, SessionEvent};
pub use inbound::Inbound;
pub use outbound::Outbound;
pub use params::{Policies, SessionParams, SessionStart};
pub use participation::{Opening, Participation};
pub use purpose::{ControlKind, Purpose};

use crate::clock::{OffsetEstimator, Stamper};
use crate::mib::{Contract, LocalFeedback, Mib, ReceiveMib, SendMib, TcpFigures};
use crate::monitor::PeerReports;
use crate::negotiation::{Carrier, Negotiation, Nonce};
use crate::operation::Operation;
use crate::renegotiation::Renegotiation;
use crate::violation::{ViolationEvent, Watch, WatchParams};
use contact::Contact;
use cutline_params::{ParameterError, Parameters as _};
use cutline_quality::spec::{Agreement, Specification};
use cutline_quality::{Combination, HintControl};
use cutline_units::{Hint, Instant, Rate};
use std::collections::VecDeque;
use trace::{Beginning, Input, Output, Recorder, Role};

/// Everything of an end but its two directions.
#[derive(Debug)]
pub struct Session {
    /// `None` for an end without a negotiation.
    negotiation: Option<Negotiation>,
    participation: Participation,
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
    events: VecDeque<SessionEvent>,
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

const CHECKED: &str = "the session has checked its parameters";
/// Number of intervals without a report that count as silence.
const MISSED: u64 = 3;
/// The most events that wait to be read. Older ones are dropped: the present state is in the [`Mib`].
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
    /// The initiator. `ids` are unpredictable random numbers: the session's, and a nonce.
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

    /// The responder. `nonce` is an unpredictable random number.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn respond(now: Instant, start: SessionStart, nonce: Nonce) -> Result<Self, ParameterError> {
        let SessionStart { specification, carrier, params, key, .. } = start.clone();
        let negotiation = Negotiation::respond(specification, (carrier, params.negotiation), nonce, key)?;
        Self::new(now, start, Role::Responder(nonce), Some(negotiation))
    }

    /// An end whose peer is known to take no part.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn alone(now: Instant, start: SessionStart) -> Result<Self, ParameterError> {
        let mut this = Self::new(now, start, Role::Alone, None)?;
        this.participation = Participation::Alone;
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
            participation: Participation::Joining,
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

    /// Records an input and the session's actions after it.
    fn note(&mut self, at: Instant, input: impl FnOnce() -> Input) {
        if let Some(recorder) = &self.recorder {
            recorder.note(at, input(), std::mem::take(&mut self.outputs));
        }
    }

    /// Returns whether it is still unknown if the peer takes part.
    pub const fn is_joining(&self) -> bool {
        matches!(self.participation, Participation::Joining)
    }

    /// Returns whether the peer takes part.
    pub const fn participation(&self) -> Participation {
        self.participation
    }

    /// The token of messages; `None` while the peer does not take part.
    pub const fn token(&self) -> Option<u32> {
        self.participation.token()
    }

    /// The hint that packets should have; `None` if nothing adapts it.
    pub fn hint(&self) -> Option<Hint> {
        self.hint.as_ref().map(HintControl::hint)
    }

    /// The effective specification of the traffic that this end sends.
    pub const fn sending(&self) -> &Specification {
        &self.send.contract.effective
    }

    /// The traffic that the peer has received in its last interval, as it reports; `None` before the first report.
    pub const fn delivered(&self) -> Option<&crate::monitor::Delivery> {
        self.peer.delivery()
    }

    /// The next message to send: of a negotiation, or a report.
    pub fn transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    /// Returns the next event, oldest first.
    pub fn event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// Returns the time of the next call of [`Session::advance`], in the present state: messages may bring it
    /// forward if there is rate control.
    pub fn deadline(&self, out: &Outbound, inbound: &Inbound) -> Instant {
        let negotiation = self.negotiation.as_ref().map_or(Instant::FAR_FUTURE, Negotiation::deadline);
        if self.is_joining() {
            return negotiation;
        }
        negotiation.min(self.next).min(out.deadline()).min(inbound.feedback_due())
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

    /// The resource manager of the host lets this end send at most at this rate, of messages without headers.
    pub fn allocate(&mut self, now: Instant, rate: Rate, out: &mut Outbound) {
        let before = out.set_limit(now, Some(rate));
        if before != Some(rate) {
            self.tell(SessionEvent::Allocated { before, rate });
        }
        self.note(now, || Input::Allocate(rate));
    }

    /// The resource manager of the host has no share for this end: the limit is lifted.
    pub fn deallocate(&mut self, now: Instant, reason: String, out: &mut Outbound) {
        out.set_limit(now, None);
        let recorded = self.recorder.is_some().then(|| reason.clone());
        self.tell(SessionEvent::Unallocated(reason));
        if let Some(reason) = recorded {
            self.note(now, || Input::Deallocate(reason));
        }
    }

    /// Returns counters of changes in the MIB.
    pub fn activity(&self, out: &Outbound, inbound: &Inbound) -> Activity {
        let (sent, received) = (out.departures.total(), inbound.arrivals.total());
        let watches = [&self.send.watch, &self.receive.watch];
        Activity {
            messages: sent.messages.saturating_add(received.messages),
            lost: received.lost().saturating_add(self.peer.last().map_or(0, |report| report.received.lost())),
            violations: watches.iter().flat_map(|watch| watch.counts()).fold(0, u64::saturating_add),
            is_violated: watches.iter().any(|watch| watch.violations().next().is_some()),
        }
    }

    /// Returns the state of the connection.
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

    /// Collects messages to send and events.
    fn collect(&mut self) {
        while let Some(bytes) = self.negotiation.as_mut().and_then(Negotiation::transmit) {
            self.post(bytes);
        }
        for direction in [Direction::Send, Direction::Receive] {
            while let Some(event) = self.side(direction).watch.event() {
                self.tell(match event {
                    ViolationEvent::Violated(violation) => SessionEvent::Violated(direction, violation),
                    ViolationEvent::Restored { violation, measured, after } => {
                        SessionEvent::Restored { direction, violation, measured, after }
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

    fn tell(&mut self, event: SessionEvent) {
        if self.recorder.is_some() {
            self.outputs.push(Output::Event(Box::new(event.clone())));
        }
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
