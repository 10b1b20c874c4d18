//! Trace of the inputs and outputs of sessions, from which their decisions can be explained.
//!
//! A session reads no clock and draws its random numbers from its beginning. So a session with the same beginning and the same
//! inputs again does the same: [`Beginning::session`] and [`TraceStep::repeat`] do so.

use super::{
    Cause, ControlKind, Inbound, Outbound, Participation, Purpose, Session, SessionEvent, SessionStart,
};
use crate::mib::{LocalFeedback, Mib, TcpFigures};
use crate::monitor::MessageArrival;
use crate::negotiation::Nonce;
use cutline_params::ParameterError;
use cutline_quality::spec::ConnectionSpecification;
use cutline_units::{Duration, Instant, Rate, lock};
use std::sync::{Arc, Mutex};

/// Trace into which sessions write their inputs and outputs ([`SessionStart::trace`]). It grows without end. Clones
/// are the same trace.
#[derive(Clone, Debug, Default)]
pub struct SessionTrace(Arc<Mutex<Vec<Recorder>>>);

/// Writer of one session and its two directions.
#[derive(Clone, Debug)]
pub(super) struct Recorder(Arc<Mutex<TraceRecord>>);

/// Inputs and outputs of one session.
#[derive(Clone, Debug)]
pub struct TraceRecord {
    /// Beginning of the session.
    pub beginning: Beginning,
    /// The steps that followed, in order.
    pub steps: Vec<TraceStep>,
}

/// Beginning of a session.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// Time, by this end's clock.
    pub at: Instant,
    /// The values with which it began.
    pub start: SessionStart,
    /// In which role.
    pub role: Role,
}

/// The role of an end, with the random numbers that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// [`Session::initiate`].
    Initiator(u64, Nonce),
    /// [`Session::respond`].
    Responder(Nonce),
    /// [`Session::alone`].
    Alone,
}

/// An input, and all that the session did then.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceStep {
    /// Time, as the caller gave it.
    pub at: Instant,
    /// The input.
    pub input: Input,
    /// Outputs of the session, in order.
    pub outputs: Vec<Output>,
}

/// Input of a session or of one of its directions: a call of the function of that name.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// [`Session::directions`].
    Directions,
    /// A control message, perhaps by [`Session::on_control`].
    Control(ControlKind, Vec<u8>),
    /// A datagram of this session before both ends have agreed ([`Session::on_opening`]).
    Confirmation(Vec<u8>),
    /// [`Session::on_foreign`].
    Foreign,
    /// [`Session::on_silence`].
    Silence,
    /// [`Session::advance`].
    Advance,
    /// [`Session::renegotiate`].
    Renegotiate(Box<ConnectionSpecification>),
    /// [`Session::lose`], with the cause and the number of messages.
    Lose(Cause, u64),
    /// [`Session::find`].
    Find,
    /// [`Session::allocate`], with the rate.
    Allocate(Rate),
    /// [`Session::deallocate`], with the reason.
    Deallocate(String),
    /// [`Session::mib`].
    Mib(LocalFeedback, Option<TcpFigures>),
    /// [`Outbound::begin`], with the length.
    Begin(u64),
    /// [`Outbound::retract`].
    Retract,
    /// [`Outbound::on_send`], with the length.
    Send(u64),
    /// [`Outbound::hold`].
    Hold,
    /// [`Outbound::on_refused`].
    Refused,
    /// [`Outbound::release`].
    Release,
    /// [`Inbound::on_datagram`].
    Datagram(Participation, Vec<u8>),
    /// [`Inbound::on_message`].
    Message {
        /// Its number.
        number: u64,
        /// Time of sending, by the peer's clock.
        sent: Instant,
        /// Its length.
        bytes: u64,
    },
    /// [`Inbound::on_unread`].
    Unread,
    /// [`Inbound::on_overflow`], with the number of datagrams.
    Overflow(u64),
    /// [`Inbound::on_read`].
    Read,
    /// [`Inbound::on_plain`], with the length.
    Plain(u64),
}

/// Output of a session or of one of its directions.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A control message to send.
    Control(Vec<u8>),
    /// An event.
    Event(Box<SessionEvent>),
    /// The MIB of the session.
    Mib(Box<Mib>),
    /// State of the next message at an input of [`Outbound`].
    Message {
        /// The number in its header.
        number: u64,
        /// The round-trip time in its header.
        rtt: Option<Duration>,
        /// Time at which the message may leave.
        ready: Instant,
    },
    /// Purpose of a datagram.
    Purpose(Purpose),
    /// Kind of a message's arrival.
    Arrival(MessageArrival),
}

impl SessionTrace {
    /// Returns the records of all sessions that have begun with this trace, in this order.
    pub fn records(&self) -> Vec<TraceRecord> {
        lock(&self.0).iter().map(|recorder| lock(&recorder.0).clone()).collect()
    }

    pub(super) fn begin(&self, beginning: Beginning) -> Recorder {
        let recorder = Recorder(Arc::new(Mutex::new(TraceRecord { beginning, steps: Vec::new() })));
        lock(&self.0).push(recorder.clone());
        recorder
    }
}

impl Recorder {
    /// Records an input and the session's actions after it.
    pub(super) fn note(&self, at: Instant, input: Input, outputs: Vec<Output>) {
        lock(&self.0).steps.push(TraceStep { at, input, outputs });
    }
}

impl Beginning {
    /// Returns a session that begins alike, and writes into this trace.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn session(&self, trace: &SessionTrace) -> Result<Session, ParameterError> {
        let start = SessionStart { trace: Some(trace.clone()), ..self.start.clone() };
        match self.role {
            Role::Initiator(id, nonce) => Session::initiate(self.at, start, (id, nonce)),
            Role::Responder(nonce) => Session::respond(self.at, start, nonce),
            Role::Alone => Session::alone(self.at, start),
        }
    }
}

impl TraceStep {
    /// Gives the same input to another session.
    pub fn repeat(&self, session: &mut Session, out: &mut Outbound, inbound: &mut Inbound) {
        let at = self.at;
        match &self.input {
            Input::Directions => (*out, *inbound) = session.directions(at),
            Input::Control(control, bytes) => session.on_control(at, *control, bytes, out, inbound),
            Input::Confirmation(datagram) => {
                session.on_opening(at, datagram, out, inbound);
            }
            Input::Foreign => session.on_foreign(at, out, inbound),
            Input::Silence => session.on_silence(at, out, inbound),
            Input::Advance => session.advance(at, out, inbound),
            Input::Renegotiate(specification) => session.renegotiate(at, (**specification).clone(), out),
            Input::Lose(cause, sent) => session.lose(at, cause.clone(), *sent),
            Input::Find => session.find(at),
            Input::Allocate(rate) => session.allocate(at, *rate, out),
            Input::Deallocate(reason) => session.deallocate(at, reason.clone(), out),
            Input::Mib(feedback, tcp) => {
                session.mib(at, (out, inbound), (*feedback, *tcp));
            }
            Input::Begin(bytes) => out.begin(at, *bytes),
            Input::Retract => out.retract(at),
            Input::Send(bytes) => out.on_send(at, *bytes),
            Input::Hold => out.hold(at),
            Input::Refused => out.on_refused(at),
            Input::Release => out.release(at),
            Input::Datagram(participation, bytes) => {
                inbound.on_datagram(at, bytes, *participation);
            }
            Input::Message { number, sent, bytes } => {
                inbound.on_message(at, *number, *sent, *bytes);
            }
            Input::Unread => inbound.on_unread(at),
            Input::Overflow(datagrams) => inbound.on_overflow(at, *datagrams),
            Input::Read => inbound.on_read(at),
            Input::Plain(bytes) => inbound.on_plain(at, *bytes),
        }
    }
}
