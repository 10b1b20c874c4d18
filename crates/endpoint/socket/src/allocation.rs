//! Share of the host's resources for the sending direction of a connection: it is requested from the resource manager of the
//! host ([`cutline_allocation`]), and limits the rate.
//!
//! The manager counts headers, the application does not. The rates of requests and notices are converted by the size of
//! messages: each has this library's header, and those of UDP or TCP and IP for each packet.

use crate::connection::Connection;
use crate::error::{NO_THREAD, QosError};
use crate::gate::GatedFlow;
use crate::reservation::IfRefused;
use cutline_allocation::protocol::FlowNeed;
use cutline_allocation::{
    AllocatedFlow, AllocationState, DEFAULT_SOCKET, FlowHandler, FlowNotice, allocate,
    start_allocation_thread,
};
use cutline_manager::feedback::{FlowEdges, FlowReport};
use cutline_manager::resources::{CarrierKind, HIGHEST_PRIORITY, MOST_WEIGHT, SchedulingClass};
use cutline_params::ParameterError;
use cutline_quality::spec::{Region, Specification};
use cutline_signal::frame::{DATAGRAM_HEADER, STREAM_HEADER};
use cutline_signal::session::{Inbound, Outbound, Participation, Session};
use cutline_sys::{lock, now};
use cutline_units::{Bytes, Duration, Instant, Rate};
use cutline_wire::direct::{CHECKSUM, HEADER};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Share of the host that a connection requests from the resource manager.
///
/// ```
/// use cutline_socket::{AllocationOptions, Preset, QosOptions, SchedulingClass};
///
/// let allocation = AllocationOptions::new(SchedulingClass::RealTime).priority(9);
/// let options = QosOptions::sending(Preset::Video.specification()).allocation(allocation);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationOptions {
    class: SchedulingClass,
    weight: u32,
    priority: u8,
    socket: PathBuf,
    if_refused: IfRefused,
    patience: Duration,
}

/// Default time for which connecting waits for the manager's answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Default priority: the middle of the range.
const PRIORITY: u8 = 7;

impl AllocationOptions {
    /// Options of a connection of this class. A real-time connection is promised the highest rate of its specification. A
    /// time-shared connection is promised the lowest rate, and shares the remaining capacity.
    pub fn new(class: SchedulingClass) -> Self {
        Self {
            class,
            weight: 1,
            priority: PRIORITY,
            socket: DEFAULT_SOCKET.into(),
            if_refused: IfRefused::default(),
            patience: PATIENCE,
        }
    }

    /// Sets the weight among the connections of the same user, 1 to 1000: 1 unless set.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    /// Sets the importance, 0 to 15: 7 unless set. Connections of low importance are lowered first.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// Sets the path of the manager's socket.
    #[must_use]
    pub fn socket(self, path: &Path) -> Self {
        Self { socket: path.to_owned(), ..self }
    }

    /// Sets the outcome of a connection that the manager refuses.
    #[must_use]
    pub fn if_refused(self, if_refused: IfRefused) -> Self {
        Self { if_refused, ..self }
    }

    /// Sets the longest time that connecting waits for the manager's answer: 1 s unless set. Without a manager, it does not wait.
    #[must_use]
    pub fn patience(self, time: std::time::Duration) -> Self {
        Self { patience: crate::time::duration(time), ..self }
    }

    /// Starts the thread that requests shares, unless it runs.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start_thread(&self) -> Result<(), QosError> {
        start_allocation_thread(&self.socket).map_err(QosError::system(NO_THREAD))
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        if !(1..=MOST_WEIGHT).contains(&self.weight) {
            return Err(ParameterError::new("weight", self.weight, format!("1 to {MOST_WEIGHT}")));
        }
        if self.priority > HIGHEST_PRIORITY {
            return Err(ParameterError::new("priority", self.priority, format!("0 to {HIGHEST_PRIORITY}")));
        }
        Ok(())
    }
}

/// The packets of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Segments of TCP.
    Segments,
    /// Datagrams of UDP.
    Datagrams,
    /// Frames below IP.
    Frames,
}

/// Share of a connection.
pub struct Allocator {
    options: AllocationOptions,
    transport: PacketKind,
    /// Address of this end.
    source: Mutex<SocketAddr>,
    peer: SocketAddr,
    /// The connection, once the service thread serves it.
    handler: OnceLock<Weak<dyn FlowHandler>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    flow: Option<AllocatedFlow>,
    /// Time of the request.
    asked: Option<Instant>,
    /// Bytes on the wire for a byte of a message.
    factor: f64,
    /// End of the last interval that was reported.
    reported: Instant,
    /// Place among the datagram sockets of this process; `None` for a stream, which the kernel paces, and without a share.
    gate: Option<Arc<GatedFlow>>,
}

impl Allocator {
    pub fn new(options: AllocationOptions, transport: PacketKind, [local, peer]: [SocketAddr; 2]) -> Self {
        let (handler, state) = (OnceLock::new(), Mutex::default());
        Self { options, transport, source: Mutex::new(local), peer, handler, state }
    }

    /// Sets the address of the reconnected socket, by which the manager knows the packets of the connection.
    pub fn moved(&self, local: SocketAddr) {
        *lock(&self.source) = local;
        if let Some(flow) = &lock(&self.state).flow {
            flow.moved(local);
        }
    }

    /// Sets the connection for which shares are requested from now on.
    pub fn begin(&self, handler: Weak<dyn FlowHandler>) {
        // It was not set before.
        let _first = self.handler.set(handler);
    }

    /// Requests a share for the specification that holds now.
    ///
    /// # Errors
    /// When a real-time connection has no highest rate, or the thread cannot be started.
    pub fn ask(&self, sending: &Specification, participation: Participation) -> Result<(), QosError> {
        let Some(handler) = self.handler.get() else { return Ok(()) };
        if participation == Participation::Joining {
            return Ok(());
        }
        let (need, factor) = self.need(sending, participation)?;
        let mut state = lock(&self.state);
        state.factor = factor;
        if let Some(flow) = &state.flow {
            let desired = need.desired_bps.map(Rate::from_bps);
            flow.change(desired, Rate::from_bps(need.minimum_bps), need.edges());
            return Ok(());
        }
        let started = allocate(&self.options.socket, need, Weak::clone(handler));
        state.flow = Some(started.map_err(QosError::system(NO_THREAD))?);
        state.asked = Some(now());
        Ok(())
    }

    fn need(
        &self,
        sending: &Specification,
        participation: Participation,
    ) -> Result<(FlowNeed, f64), QosError> {
        self.options.validate()?;
        let AllocationOptions { class, weight, priority, .. } = self.options;
        let has_header = matches!(participation, Participation::Joined(_));
        let factor = factor(self.transport, self.peer, has_header, sending.size);
        let on_wire = |rate: Rate| (rate.as_bps() as f64 * factor).ceil() as u64;
        let desired = sending.peak_throughput().or_else(|| sending.max_throughput()).map(on_wire);
        if desired.is_none() && class == SchedulingClass::RealTime {
            let allowed = "time-shared, unless send.max-rate and send.size are set";
            return Err(ParameterError::new("allocation", "real-time", allowed).into());
        }
        let minimum = sending.min_throughput().map_or(0, on_wire);
        let least = u64::from(class == SchedulingClass::RealTime);
        let edges = FlowEdges::new(&Region::new(sending));
        let need = FlowNeed {
            class,
            carrier: match self.transport {
                PacketKind::Segments => CarrierKind::Tcp,
                PacketKind::Datagrams | PacketKind::Frames => CarrierKind::Datagrams,
            },
            source: *lock(&self.source),
            destination: self.peer,
            desired_bps: desired,
            minimum_bps: minimum.max(least).min(desired.unwrap_or(u64::MAX)),
            priority,
            weight,
            delay_ms: edges.delay,
            loss_percent: edges.loss,
        };
        Ok((need, factor))
    }

    /// Returns the manager's answer; `None` while it may still come. `is_limited` is true once the session limits its rate.
    pub fn settled(&self, is_limited: bool) -> Option<Result<(), QosError>> {
        let state = lock(&self.state);
        let (Some(flow), Some(asked)) = (&state.flow, state.asked) else { return Some(Ok(())) };
        let is_late = now().saturating_since(asked) >= self.options.patience;
        match flow.state() {
            AllocationState::Granted(_) if is_limited => Some(Ok(())),
            AllocationState::Pending | AllocationState::Granted(_) => is_late.then_some(Ok(())),
            AllocationState::Refused(reason) if self.options.if_refused == IfRefused::Fail => {
                Some(Err(QosError::Unallocated(reason)))
            }
            AllocationState::Refused(_) | AllocationState::Away(_) => Some(Ok(())),
        }
    }

    /// Returns the state at the manager; `None` before the first request.
    pub fn state(&self) -> Option<AllocationState> {
        lock(&self.state).flow.as_ref().map(AllocatedFlow::state)
    }

    /// Converts a notice to a change of the session.
    pub fn change(
        &self,
        notice: FlowNotice,
    ) -> impl FnOnce(&mut Session, &mut Outbound, &mut Inbound) + use<> {
        let mut state = lock(&self.state);
        let factor = state.factor.max(1.0);
        self.set_gate(&mut state, &notice);
        drop(state);
        move |session, out, _| match notice {
            FlowNotice::Rate { rate, .. } => {
                let bps = (rate.as_bps() as f64 / factor) as u64;
                session.allocate(now(), Rate::from_bps(bps.max(1)), out);
            }
            FlowNotice::Refused(reason) => session.deallocate(now(), reason, out),
            FlowNotice::Revoked(cause) => {
                let reason = format!("the share was revoked: {}", in_words(cause));
                session.deallocate(now(), reason, out);
            }
        }
    }

    fn set_gate(&self, state: &mut State, notice: &FlowNotice) {
        let AllocationOptions { class, weight, .. } = self.options;
        match notice {
            FlowNotice::Rate { rate, .. } if self.transport != PacketKind::Segments => match &state.gate {
                Some(gate) => gate.set_rate(class, weight, *rate),
                None => state.gate = Some(Arc::new(GatedFlow::new(class, weight, *rate))),
            },
            FlowNotice::Rate { .. } => {}
            FlowNotice::Refused(_) | FlowNotice::Revoked(_) => state.gate = None,
        }
    }

    /// Returns the place among the datagram sockets of this process; `None` if the connection has none.
    pub fn gate(&self) -> Option<Arc<GatedFlow>> {
        lock(&self.state).gate.clone()
    }

    /// Returns the length of a message with its headers.
    pub fn on_wire(&self, bytes: u64) -> Bytes {
        Bytes::new((bytes as f64 * lock(&self.state).factor.max(1.0)).ceil() as u64)
    }

    /// Returns the report of the last interval; `None` if it was reported before.
    pub fn report(&self, connection: &Connection, backlog: Bytes) -> Option<FlowReport> {
        let delivery = connection.delivered()?;
        let mut state = lock(&self.state);
        if delivery.until <= state.reported {
            return None;
        }
        state.reported = delivery.until;
        Some(FlowReport { delivery, backlog })
    }
}

fn in_words(cause: cutline_manager::resources::AllocationCause) -> &'static str {
    use cutline_manager::resources::AllocationCause;
    match cause {
        AllocationCause::Share => "other flows need it",
        AllocationCause::Capacity => "the capacities of the host have shrunk",
        AllocationCause::Path => "the path is overloaded",
        AllocationCause::Lease => "it was not renewed in time",
        AllocationCause::Request => "another rate was requested",
    }
}

/// The longest packet, bytes.
const MTU: u64 = 1500;
/// Assumed size of messages if the specification leaves it open, bytes.
const OPEN_SIZE: u64 = 1000;

/// Bytes on the wire for a byte of a message.
fn factor(transport: PacketKind, peer: SocketAddr, has_header: bool, size: Option<Bytes>) -> f64 {
    let ip = if peer.is_ipv6() && !peer.ip().to_canonical().is_ipv4() { 40 } else { 20 };
    let size = size.map_or(OPEN_SIZE, Bytes::get).max(1);
    let own = |header: usize| if has_header { header as u64 } else { 0 };
    let bytes = match transport {
        PacketKind::Datagrams => {
            let datagram = size + own(DATAGRAM_HEADER) + 8;
            datagram + datagram.div_ceil(MTU - ip) * ip
        }
        PacketKind::Frames => {
            let message = size + own(DATAGRAM_HEADER);
            let payload = MTU - (HEADER + CHECKSUM) as u64;
            message + CHECKSUM as u64 + message.div_ceil(payload) * HEADER as u64
        }
        PacketKind::Segments => {
            let (message, tcp) = (size + own(STREAM_HEADER), 32);
            message + message.div_ceil(MTU - ip - tcp) * (ip + tcp)
        }
    };
    bytes as f64 / size as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_count_on_the_wire() {
        let (v4, v6) = ("192.0.2.1:1".parse().unwrap(), "[2001:db8::1]:1".parse().unwrap());
        let mapped = "[::ffff:192.0.2.1]:1".parse().unwrap();
        let of = |transport, peer, size: u64| {
            (factor(transport, peer, false, Some(Bytes::new(size))) * size as f64).round() as u64
        };
        assert_eq!(of(PacketKind::Datagrams, v4, 100), 128);
        assert_eq!([of(PacketKind::Datagrams, v6, 100), of(PacketKind::Datagrams, mapped, 100)], [148, 128]);
        assert_eq!(of(PacketKind::Datagrams, v4, 2000), 2000 + 8 + 40, "two fragments");
        assert_eq!([of(PacketKind::Frames, v6, 1476), of(PacketKind::Frames, v6, 1477)], [1500, 1521]);
        assert_eq!(of(PacketKind::Segments, v4, 1448), 1500);
        assert_eq!(of(PacketKind::Segments, v4, 1449), 1449 + 2 * 52);
        let with = factor(PacketKind::Datagrams, v4, true, None);
        assert!(with > factor(PacketKind::Datagrams, v4, false, None) && with < 1.1);
    }

    #[test]
    fn values_that_are_not_allowed_are_named() {
        let new = || AllocationOptions::new(SchedulingClass::TimeShared);
        assert_eq!(new().validate(), Ok(()));
        let error = new().weight(0).validate().unwrap_err().to_string();
        assert_eq!(error, "weight = 0: allowed is 1 to 1000");
        let error = new().priority(16).validate().unwrap_err().to_string();
        assert_eq!(error, "priority = 16: allowed is 0 to 15");
    }
}
