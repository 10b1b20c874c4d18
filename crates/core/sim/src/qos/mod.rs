//! QoS connections in the simulator: two agents with the same session objects that a QoS socket has
//! ([`cutline_signal::session`]).
//!
//! The agent at the source has an application and the initiating end of a session. The application makes messages of the agreed size
//! at the agreed rate, or at the rate that the session requests ([`SessionEvent::Rate`](cutline_signal::session::SessionEvent::Rate)). Each message
//! is a datagram with the header that a socket writes. It waits for its turn as in a socket that blocks, and has the hint that the
//! session requests. The agent at the sink has the responding end. Offers, answers and reports are packets as well: they wait in queues
//! and are lost there.
//!
//! ```text
//! application -> Outbound -> datagrams -> links and queues -> datagrams -> Inbound
//!                    \                                             /
//!                     Session  <--- negotiation and reports --->  Session
//! ```
//!
//! A [plain](ConnectionService::Plain) connection has the same application over datagrams without header, negotiation, reports and policies.
//!
//! The caller reads events from the connection's [`QosLog`]. Both clocks begin with the simulation, but the
//! sink's may be [ahead](QosConnection::clock_ahead), so that the ends have to find out the offset, as real ones do.
//!
//! [`replay`] gives the inputs of a session of a QoS socket to an end of the simulator, and shows that it decides the same.
//!
//! The payload of a message is its number, 8 bytes, and zeros. Sizes on the wire include the headers of UDP and IPv4.

mod application;
mod driver;
mod end;
mod record;

pub use driver::{Replayed, replay};
pub use record::{EndRecord, Passage, Passed, QosLog, QosRecord};

use crate::agent::{Address, Agent, AgentSpec};
use crate::id::NodeId;
use crate::managed::ManagedShare;
use crate::network::{Network, NetworkError};
use application::{Receiver, Sender};
use cutline_params::{ParameterError, Parameters as _};
use cutline_quality::spec::{ConnectionSpecification, Specification};
use cutline_signal::authentication::Key;
use cutline_signal::negotiation::{Carrier, Nonce};
use cutline_signal::operation::OperationParams;
use cutline_signal::rate_control::RateControl;
use cutline_signal::session::{Policies, Session, SessionParams, SessionStart};
use cutline_units::{Bytes, Duration, Hint, HintBits, Instant, RandomStream};
use rand_core::Rng as _;
use std::sync::Arc;

/// The headers of UDP and IPv4, bytes.
const LOWER_HEADERS: u32 = 8 + 20;
/// The shortest message: its number.
const SHORTEST_MESSAGE: u64 = 8;

/// Carrier of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionService {
    /// QoS sockets at both ends.
    Qos,
    /// Plain datagram sockets at both ends.
    Plain,
}

/// A QoS connection: an application at one node that sends messages to another node.
#[derive(Clone, Debug)]
pub struct QosConnection {
    /// The name. Random streams are derived from it.
    pub name: String,
    /// Node of the application.
    pub source: NodeId,
    /// Destination of the messages.
    pub sink: NodeId,
    /// The port of both agents, below 2^31.
    pub port: u32,
    /// Carrier of the messages.
    pub service: ConnectionService,
    /// Specification of the sending end. It must have `max-rate` and `size`, which the application uses.
    pub send: Specification,
    /// Specification of the receiving end.
    pub receive: Specification,
    /// Parameters of the sending end's session. The receiving end has the same without policies.
    pub params: SessionParams,
    /// The key that both ends share.
    pub key: Option<Key>,
    /// The hint of the packets of both ends, until the session requests another one. If the session adapts it, the source's
    /// packets begin with the first hint of its parameters.
    pub hint: Hint,
    /// Time at which the application connects.
    pub start: Instant,
    /// Time at which the application stops sending.
    pub stop: Instant,
    /// Lead of the sink's clock over the source's.
    pub clock_ahead: Duration,
    /// Interval between records of the MIBs.
    pub sample: Duration,
    /// Share of the source's host, which its manager grants; `None` for a connection that is not managed.
    pub managed: Option<ManagedShare>,
}

impl QosConnection {
    /// Returns a connection whose receiving end accepts the sending end's specification. It begins with the simulation and does not stop.
    /// Its packets have the largest hint of four bits, as unmarked ones do.
    pub fn new(name: impl Into<String>, (source, sink): (NodeId, NodeId), send: Specification) -> Self {
        Self {
            name: name.into(),
            source,
            sink,
            port: 1,
            service: ConnectionService::Qos,
            receive: send.clone(),
            send,
            params: SessionParams::default(),
            key: None,
            hint: HintBits::PAPER.largest(),
            start: Instant::ZERO,
            stop: Instant::FAR_FUTURE,
            clock_ahead: Duration::ZERO,
            sample: Duration::from_millis(500),
            managed: None,
        }
    }

    /// Adds the connection to a network: agents `NAME.source` and `NAME.sink`. Returns its log.
    ///
    /// # Errors
    /// When a parameter is not allowed, or one of the addresses is taken.
    pub fn connect(self, network: &mut Network) -> Result<QosLog, NetworkError> {
        self.validate().map_err(|error| NetworkError::Connection { connection: self.name.clone(), error })?;
        let log = QosLog::default();
        let connection = Arc::new(self);
        let QosConnection { name, source, sink, port, .. } = &*connection;
        for (side, end, node) in [(Side::Source, "source", *source), (Side::Sink, "sink", *sink)] {
            let spec = EndSpec { connection: Arc::clone(&connection), side, log: log.clone() };
            network.add_agent(format!("{name}.{end}"), Address { node, port: *port }, Arc::new(spec))?;
        }
        Ok(log)
    }

    /// Checks that all parameters are allowed.
    ///
    /// # Errors
    /// The first parameter that is not; the error gives the allowed range.
    pub fn validate(&self) -> Result<(), ParameterError> {
        if self.send.max_rate.is_none() {
            return Err(ParameterError::new("max-rate", "off", "a rate, which the application uses"));
        }
        let shortest = |size: Option<Bytes>| size.is_some_and(|size| size.get() < SHORTEST_MESSAGE);
        let too_short = [&self.send, &self.receive].into_iter().find(|spec| shortest(spec.size));
        let allowed = format!("at least {SHORTEST_MESSAGE} B, which the application uses");
        match (too_short.and_then(|spec| spec.size), self.send.size) {
            (Some(size), _) => return Err(ParameterError::new("size", size.get(), allowed)),
            (None, None) => return Err(ParameterError::new("size", "off", allowed)),
            (None, Some(_)) => {}
        }
        if self.sample.is_zero() {
            return Err(ParameterError::new("sample", self.sample, "above 0"));
        }
        let Policies { adapt_hint, adapt_rate, renegotiate } = &self.params.policies;
        self.send.validate()?;
        self.receive.validate()?;
        self.params.negotiation.validate()?;
        self.params.monitor.validate()?;
        self.params.watch.validate()?;
        self.params.clock.validate()?;
        self.params.rate_control.validate()?;
        if self.params.rate_control.needs_feedback() && self.service == ConnectionService::Plain {
            return Err(RateControl::refusal("between plain sockets, which send no feedback"));
        }
        adapt_hint.as_ref().map_or(Ok(()), |(_, hint)| hint.validate())?;
        adapt_rate.as_ref().map_or(Ok(()), OperationParams::validate)?;
        let own = ConnectionSpecification { send: self.send.clone(), ..Default::default() };
        let Some(alternatives) = renegotiate else { return Ok(()) };
        alternatives.validate(&own)?;
        let lacks = |open: fn(&Specification) -> bool| {
            alternatives.specifications.iter().any(|alternative| open(&alternative.send))
        };
        let missing = |what| Err(ParameterError::new(what, "off", "a value, which the application uses"));
        if lacks(|send| send.max_rate.is_none()) {
            return missing("alternative: send.max-rate");
        }
        if lacks(|send| send.size.is_none_or(|size| size.get() < SHORTEST_MESSAGE)) {
            return missing("alternative: send.size");
        }
        Ok(())
    }
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Sink,
}

/// Initial values of an end.
struct Beginning {
    connection: Arc<QosConnection>,
    side: Side,
    random: RandomStream,
}

impl Beginning {
    /// The session of this end, which begins now by its clock.
    fn session(&mut self, now: Instant) -> Session {
        let connection = &*self.connection;
        let ids = (self.random.next_u64(), nonce(&mut self.random));
        let (specification, params) = match self.side {
            Side::Source => {
                let specification =
                    ConnectionSpecification { send: connection.send.clone(), ..Default::default() };
                (specification, connection.params.clone())
            }
            Side::Sink => {
                let receive = connection.receive.clone();
                let specification = ConnectionSpecification { receive, ..Default::default() };
                let params = SessionParams { policies: Policies::default(), ..connection.params.clone() };
                (specification, params)
            }
        };
        let (key, random) = (connection.key, self.random.clone());
        let start =
            SessionStart { specification, carrier: Carrier::Datagrams, params, key, random, trace: None };
        let session = match (connection.service, self.side) {
            (ConnectionService::Plain, _) => {
                let params = SessionParams { policies: Policies::default(), ..start.params };
                Session::alone(now, SessionStart { params, ..start })
            }
            (ConnectionService::Qos, Side::Source) => Session::initiate(now, start, ids),
            (ConnectionService::Qos, Side::Sink) => Session::respond(now, start, ids.1),
        };
        session.expect("a network refuses a connection whose parameters are not allowed")
    }
}

fn nonce(random: &mut RandomStream) -> Nonce {
    let mut nonce = Nonce::default();
    random.fill_bytes(&mut nonce);
    nonce
}

#[derive(Debug)]
struct EndSpec {
    connection: Arc<QosConnection>,
    side: Side,
    log: QosLog,
}

impl AgentSpec for EndSpec {
    fn build(&self, address: Address, random: RandomStream) -> Box<dyn Agent> {
        let (connection, side, log) = (Arc::clone(&self.connection), self.side, self.log.clone());
        let QosConnection { source, sink, .. } = *connection;
        let beginning = Beginning { connection, side, random };
        match side {
            Side::Source => {
                log.clear();
                Box::new(Sender::new(beginning, Address { node: sink, ..address }, log))
            }
            Side::Sink => Box::new(Receiver::new(beginning, Address { node: source, ..address }, log)),
        }
    }
}
