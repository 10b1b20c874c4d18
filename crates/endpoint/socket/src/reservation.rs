//! Requests to the network for a connection: once both ends agree, each announces the traffic that it sends
//! and reserves for the traffic that it receives ([`cutline_provision`]).

use crate::error::QosError;
use cutline_provision::{
    Demand, Direction, Flow, Grant, GrantEvent, GrantState, Provisioner, Refusal, RefusalReason,
    TransportProtocol,
};
use cutline_quality::spec::{ConnectionSpecification, Specification};
use cutline_signal::frame::{DATAGRAM_HEADER, STREAM_HEADER};
use cutline_sys::{lock, now};
use cutline_translate::{AckPath, Path, Protocol, TranslationRequest, translate};
use cutline_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// Treatment of a connection whose reservation is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfRefused {
    /// The connection continues as best effort, and [`ConnectionReservation`] has the reason, also without an answer.
    #[default]
    BestEffort,
    /// Connecting is an error with the reason. An end that accepts continues as best effort.
    Fail,
}

/// State of a connection's reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionReservation {
    /// The service.
    pub service: &'static str,
    /// The request; `None` before the ends have agreed.
    pub demand: Option<Demand>,
    /// State of the direction in which this end sends. A direction that is pending for longer than the
    /// patience ([`reservation_patience`](crate::QosOptions::reservation_patience)) has failed with
    /// [`RefusalReason::Unanswered`]. A later answer replaces that.
    pub send: GrantState,
    /// State of the direction in which it receives.
    pub receive: GrantState,
    /// True if a direction was reserved and has failed since.
    pub is_lost: bool,
}

/// Options of a reservation.
#[derive(Clone, Debug)]
pub struct ReservationOptions {
    pub provisioner: Arc<dyn Provisioner>,
    pub ack_path: AckPath,
    pub if_refused: IfRefused,
    /// Time for which connecting waits for the network.
    pub patience: Duration,
}

/// Default time for which connecting waits for the network.
const PATIENCE: Duration = Duration::from_secs(3);

impl ReservationOptions {
    pub fn new(provisioner: Box<dyn Provisioner>) -> Self {
        Self {
            provisioner: provisioner.into(),
            ack_path: AckPath::default(),
            if_refused: IfRefused::default(),
            patience: PATIENCE,
        }
    }
}

/// The reservation of a connection.
#[derive(Debug)]
pub struct Reserver {
    options: ReservationOptions,
    path: Path,
    flow: Mutex<Flow>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    demand: Option<Demand>,
    /// Refusal at once, or an impossible request.
    refused: Option<Refusal>,
    grant: Option<Grant>,
    /// The events of immediate refusals.
    events: VecDeque<GrantEvent>,
    /// Time of the request to the network.
    asked: Option<Instant>,
}

impl Reserver {
    /// The reservation of a connection between these addresses, that of this end first.
    pub fn new(
        options: ReservationOptions,
        path: Path,
        transport: TransportProtocol,
        [local, peer]: [SocketAddr; 2],
    ) -> Self {
        let flow = Flow { transport, source: local, destination: peer };
        Self { options, path, flow: Mutex::new(flow), state: Mutex::default() }
    }

    /// Sets the address of the reconnected socket, for which later reservations are requested.
    pub fn moved(&self, local: SocketAddr) {
        lock(&self.flow).source = local;
    }

    /// Requests a reservation for the agreement of both ends. A later agreement replaces it.
    pub fn on_agreed(&self, send: &Specification, receive: &Specification) -> Result<(), QosError> {
        let demand = self.demand(send, receive)?;
        let mut state = lock(&self.state);
        if state.demand == Some(demand) {
            return Ok(());
        }
        // The network learns of the end first, so that both are never reserved together.
        state.grant = None;
        state.asked = Some(now());
        state.events.clear();
        (state.grant, state.refused) = match self.options.provisioner.request(&demand) {
            Ok(grant) => (Some(grant), None),
            Err(refusal) => {
                let lost = |direction| GrantEvent::Lost(direction, refusal.clone());
                state.events.extend(asked(&demand).map(lost));
                (None, Some(refusal))
            }
        };
        state.demand = Some(demand);
        Ok(())
    }

    fn demand(&self, send: &Specification, receive: &Specification) -> Result<Demand, QosError> {
        let flow = *lock(&self.flow);
        let (protocol, header) = match flow.transport {
            TransportProtocol::Tcp => (Protocol::RTcp, STREAM_HEADER),
            TransportProtocol::Udp => (Protocol::RUdp, DATAGRAM_HEADER),
        };
        // Our own header is in each message, too.
        let framed = |spec: &Specification| Specification {
            size: spec.size.map(|size| size + Bytes::new(header as u64)),
            ..spec.clone()
        };
        let specification =
            ConnectionSpecification { send: framed(send), receive: framed(receive), profile: None };
        let request = TranslationRequest {
            protocol: Some(protocol),
            path: self.path.clone(),
            ..TranslationRequest::new(specification)
        };
        let found = translate(&request)?.network.reservation.unwrap_or_default();
        let mut demand = Demand::new(flow, found);
        if self.options.ack_path == AckPath::BestEffort {
            demand.send = demand.send.filter(|_| has_data(send));
            demand.receive = demand.receive.filter(|_| has_data(receive));
        }
        Ok(demand)
    }

    /// Returns the network's answer; `None` while it may still come.
    pub fn settled(&self) -> Option<Result<(), QosError>> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let is_late = state.asked.is_some_and(|asked| now().saturating_since(asked) >= self.options.patience);
        let outcome = match (&mut state.grant, &state.refused) {
            (Some(grant), _) => {
                grant.refresh();
                match grant.wait(Duration::ZERO) {
                    Err(refusal) if refusal.reason == RefusalReason::Unanswered && !is_late => return None,
                    outcome => outcome,
                }
            }
            (None, Some(refusal)) => Err(refusal.clone()),
            // The peer takes no part, so nothing was requested.
            (None, None) => Ok(()),
        };
        Some(match outcome {
            Err(refusal) if self.options.if_refused == IfRefused::Fail => Err(QosError::Reservation(refusal)),
            _ => Ok(()),
        })
    }

    /// The next event that was not taken.
    pub fn event(&self) -> Option<GrantEvent> {
        let mut state = lock(&self.state);
        state.events.pop_front().or_else(|| state.grant.as_mut().and_then(Grant::event))
    }

    pub fn status(&self) -> ConnectionReservation {
        let mut state = lock(&self.state);
        let state = &mut *state;
        if let Some(grant) = &mut state.grant {
            grant.refresh();
        }
        let is_late = state.asked.is_some_and(|asked| now().saturating_since(asked) >= self.options.patience);
        let state_of = |direction| match (&state.grant, &state.refused) {
            (Some(grant), _) => match grant.direction(direction) {
                GrantState::Pending if is_late => GrantState::Failed(Refusal::new(RefusalReason::Unanswered)),
                decided => decided.clone(),
            },
            (None, Some(refusal)) if state.demand.is_some_and(|it| asked(&it).any(|it| it == direction)) => {
                GrantState::Failed(refusal.clone())
            }
            (None, _) => GrantState::NotRequested,
        };
        ConnectionReservation {
            service: self.options.provisioner.name(),
            demand: state.demand,
            send: state_of(Direction::Send),
            receive: state_of(Direction::Receive),
            is_lost: state.grant.as_ref().is_some_and(|grant| {
                [Direction::Send, Direction::Receive].into_iter().any(|direction| grant.is_lost(direction))
            }),
        }
    }
}

/// The directions for which a reservation is requested.
fn asked(demand: &Demand) -> impl Iterator<Item = Direction> + use<> {
    let both = [(Direction::Send, demand.send), (Direction::Receive, demand.receive)];
    both.into_iter().filter_map(|(direction, bucket)| bucket.map(|_| direction))
}

/// Returns whether there is anything but acknowledgements.
fn has_data(spec: &Specification) -> bool {
    spec.size.is_some() && (spec.min_rate.is_some() || spec.max_rate.is_some() || spec.peak_rate.is_some())
}
