//! Options of a QoS socket.

use crate::allocation::{AllocationOptions, Allocator, PacketKind};
use crate::error::{NO_THREAD, QosError};
use crate::reservation::{IfRefused, ReservationOptions, Reserver};
use crate::service_thread;
use cutline_params::ParameterError;
use cutline_provision::{Access, TransportProtocol, UnknownService, open};
use cutline_quality::spec::{ConnectionSpecification, Specification};
use cutline_quality::{Class, HintParams};
use cutline_signal::authentication::Key;
use cutline_signal::monitor::MonitorParams;
use cutline_signal::negotiation::NegotiationParams;
use cutline_signal::operation::OperationParams;
use cutline_signal::rate_control::RateControl;
use cutline_signal::renegotiation::Alternatives;
use cutline_signal::session::trace::SessionTrace;
use cutline_translate::{AckPath, Path};
use cutline_units::{Dscp, Duration, Hint};
use std::net::SocketAddr;

/// Expectation about the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// Nothing: find out whether it is a QoS socket. A plain end is served as by a plain socket, and only values that this end
    /// can see are measured.
    #[default]
    Detect,
    /// A QoS socket is expected; another peer is an error. Nothing is sent to find out, which saves a round
    /// trip of TCP.
    Speaks,
    /// A plain socket is expected. Nothing is negotiated.
    Plain,
}

/// Treatment of a UDP socket's messages beyond the agreed rate. TCP is paced by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// A call waits until the message may be sent; a socket that does not block returns [`std::io::ErrorKind::WouldBlock`].
    #[default]
    Block,
    /// The call fails with [`std::io::ErrorKind::WouldBlock`] and sends nothing.
    Refuse,
    /// The message is sent, and the excess is counted ([`cutline_signal::mib::LocalFeedback::unpaced`]).
    Count,
}

/// Marking of packets with a delay hint.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Marking {
    /// With the hint that fits the specification ([`cutline_translate`]). One that demands nothing has no mark.
    #[default]
    Translated,
    /// Not marked: the socket has the code point that the system gives it.
    None,
    /// With one hint.
    Fixed(Hint),
    /// With one code point, which need be none of a hint.
    Dscp(Dscp),
    /// With the hint that gives the best quality, judged for this class of application by the peer's reports. Without
    /// reports it stays at its first value.
    Adaptive(Class, HintParams),
}

/// Options of a QoS socket.
///
/// ```
/// use cutline_quality::spec::Preset;
/// use cutline_socket::{Marking, QosOptions};
/// use cutline_units::Hint;
///
/// let video = Preset::Video.specification();
/// let options = QosOptions::sending(video).marking(Marking::Fixed(Hint::from_level(6)));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct QosOptions {
    pub(crate) specification: ConnectionSpecification,
    pub(crate) peer: Peer,
    pub(crate) pacing: Pacing,
    pub(crate) rate_control: RateControl,
    pub(crate) marking: Marking,
    pub(crate) path: Path,
    pub(crate) key: Option<Key>,
    pub(crate) operation: Option<OperationParams>,
    pub(crate) alternatives: Option<Alternatives>,
    /// Time to ask whether the peer is a QoS socket; `None` if it follows from the path.
    detection: Option<Duration>,
    pub(crate) negotiation: NegotiationParams,
    pub(crate) monitor: MonitorParams,
    pub(crate) trace: Option<SessionTrace>,
    pub(crate) reconnect: bool,
    /// Largest time of connecting; `None` if as long as the system tries.
    pub(crate) connect_timeout: Option<Duration>,
    /// Time for which a closed stream waits for an acknowledgement; `None` for [`LINGER`].
    linger: Option<Duration>,
    pub(crate) reservation: Option<ReservationOptions>,
    allocation: Option<AllocationOptions>,
    /// True if the connection is not published.
    pub(crate) is_private: bool,
    /// True if managers of the host may weaken limits.
    pub(crate) is_managed: bool,
}

/// Purpose of the keys of QoS sockets.
const PURPOSE: &[u8] = b"cutline QoS socket";

/// Shortest time after which a silent peer counts as a plain socket. Most round-trip times are below a
/// third of it.
const DETECTION: Duration = Duration::from_millis(300);
/// The same in round-trip times of a path whose round-trip time is known: an answer may have to wait in queues, and an offer may get lost.
const DETECTION_ROUND_TRIPS: u64 = 3;

/// Longest silence of the peer of a datagram socket before a call that receives ends, without a recovery time.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// Default time for which a closed stream waits for the peer to acknowledge something more.
const LINGER: Duration = Duration::from_secs(60);

/// The parts of the time of detection between offers.
const SHARES: u64 = 4;
/// The shortest time between offers.
const SHORTEST: Duration = Duration::from_millis(10);

impl QosOptions {
    /// Returns the options of an end with this specification.
    pub fn new(specification: ConnectionSpecification) -> Self {
        Self { specification, ..Self::default() }
    }

    /// Returns the options of an end with requirements on the traffic that it sends.
    pub fn sending(send: Specification) -> Self {
        Self::new(ConnectionSpecification { send, ..ConnectionSpecification::default() })
    }

    /// Returns the options of an end with requirements on the traffic that it receives.
    pub fn receiving(receive: Specification) -> Self {
        Self::new(ConnectionSpecification { receive, ..ConnectionSpecification::default() })
    }

    /// Returns options with the same requirements on both directions.
    pub fn both(each: Specification) -> Self {
        Self::new(ConnectionSpecification { send: each.clone(), receive: each, profile: None })
    }

    /// Sets the knowledge of the peer.
    #[must_use]
    pub fn peer(self, peer: Peer) -> Self {
        Self { peer, ..self }
    }

    /// Sets the behaviour of a UDP socket when the application sends too fast.
    #[must_use]
    pub fn pacing(self, pacing: Pacing) -> Self {
        Self { pacing, ..self }
    }

    /// Sets whether a UDP socket keeps to a rate that is fair to TCP, beside the agreement ([`RateControl::Tfrc`]). Sending too
    /// fast for it is as sending too fast for the agreement ([`Pacing`]). It needs feedback, so another end that is a plain
    /// socket is an error, as with a key. The peer needs no option. For streams it is an error: TCP controls its rate.
    #[must_use]
    pub fn rate_control(self, rate_control: RateControl) -> Self {
        Self { rate_control, ..self }
    }

    /// Sets the marking of packets.
    #[must_use]
    pub fn marking(self, marking: Marking) -> Self {
        Self { marking, ..self }
    }

    /// Demands that the peer shows that it has this key, of 32 to 4096 bytes. One that does not is refused.
    ///
    /// # Errors
    /// When the key is shorter or longer; the error gives the allowed lengths.
    pub fn key(self, content: &[u8]) -> Result<Self, String> {
        let key = Key::new(content, PURPOSE).map_err(|allowed| format!("key: {allowed}"))?;
        Ok(Self { key: Some(key), ..self })
    }

    /// Returns whether the peer has to show a key.
    pub const fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Sets the known properties of the path, which decide buffers and marks.
    #[must_use]
    pub fn path(self, path: Path) -> Self {
        Self { path, ..self }
    }

    /// Lets the rate move inside the region of operation: [`SessionEvent::Rate`](crate::SessionEvent::Rate) gives the rate at which the application
    /// should send, and a faster one is held back.
    #[must_use]
    pub fn adapt_rate(self, operation: OperationParams) -> Self {
        Self { operation: Some(operation), ..self }
    }

    /// Sets the acceptable alternatives, best first. When a limit stays violated and nothing else helps, the socket asks the peer for the
    /// next of these, and for the better one when that is possible again: [`SessionEvent::Requested`](crate::SessionEvent::Requested), then
    /// [`SessionEvent::Agreed`](crate::SessionEvent::Agreed) with the specification that holds.
    #[must_use]
    pub fn alternatives(self, alternatives: Alternatives) -> Self {
        Self { alternatives: Some(alternatives), ..self }
    }

    /// Sets the time for which a connecting end tests whether the peer is a QoS socket, with [`Peer::Detect`]. Unless set, it is 300 ms,
    /// or for three round trips of the [`path`](Self::path) if that is longer. It asks three times. Where the system of the peer reports
    /// that no process listens, it takes one round trip. An answer that comes later changes nothing: over a path whose round trip, queues
    /// included, may take longer, set this, the path, or [`Peer::Speaks`]. With a key the time is that of the negotiation.
    #[must_use]
    pub fn detection(self, time: std::time::Duration) -> Self {
        Self { detection: Some(crate::time::duration(time)), ..self }
    }

    /// Returns the time for which a connecting end asks whether the peer is a QoS socket.
    pub(crate) fn detection_time(&self) -> Duration {
        let of_path = self.path.rtt.map_or(Duration::ZERO, |rtt| rtt * DETECTION_ROUND_TRIPS);
        self.detection.unwrap_or_else(|| of_path.max(DETECTION))
    }

    /// Returns whether connecting to a plain socket is an error: the peer was expected to take part, has to show
    /// that it has the key, or has to send feedback.
    pub(crate) const fn requires_qos_peer(&self) -> bool {
        matches!(self.peer, Peer::Speaks) || self.key.is_some() || self.rate_control.needs_feedback()
    }

    /// Returns the retransmissions of a datagram socket's first offer: a plain socket never answers.
    pub(crate) fn first_round(&self) -> NegotiationParams {
        let NegotiationParams { first_timeout, give_up } = self.negotiation;
        if self.peer != Peer::Detect || self.requires_qos_peer() {
            return NegotiationParams { first_timeout, give_up };
        }
        // Offers come after 1 and 3 shares, as the interval doubles.
        let share = Duration::from_nanos(self.detection_time().as_nanos() / SHARES);
        NegotiationParams { first_timeout: first_timeout.min(share.max(SHORTEST)), give_up }
    }

    /// Sets whether a broken connection is made again, within the shorter `recovery` time of the specification's directions: the one
    /// that the kernel reports as broken, or the one of datagrams whose peer has been silent for too long. [`SessionEvent::Lost`] has how
    /// many messages have arrived for certain, [`SessionEvent::Recovered`](crate::SessionEvent::Recovered) and [`SessionEvent::GaveUp`](crate::SessionEvent::GaveUp) how
    /// it ends.
    ///
    /// After a loss the next call of each direction fails once, with [`io::ErrorKind::ConnectionAborted`](std::io::ErrorKind) and
    /// [`QosError::Lost`](crate::QosError::Lost) in the error, since a message that was under way is not whole. If the new connection is lost
    /// before that call, it fails once for both losses, of which each has its event. Later calls wait for the new connection, and use it. Only the end that has connected can do this: for a listener it is an error, and so it is without a
    /// `recovery` time. A stream that the peer closes in order is not broken.
    ///
    /// [`SessionEvent::Lost`]: crate::SessionEvent::Lost
    #[must_use]
    pub fn reconnect(self, reconnect: bool) -> Self {
        Self { reconnect, ..self }
    }

    /// Returns the time for which a broken connection is tried to be made again; `None` for not at all.
    ///
    /// # Errors
    /// When the specification gives no time.
    pub(crate) fn recovery(&self) -> Result<Option<Duration>, ParameterError> {
        if !self.reconnect {
            return Ok(None);
        }
        let ConnectionSpecification { send, receive, .. } = &self.specification;
        let times = [send.recovery, receive.recovery].into_iter().flatten();
        let without =
            "false, unless the specification has a recovery time: set send.recovery or receive.recovery";
        times.min().map(Some).ok_or_else(|| ParameterError::new("reconnect", true, without))
    }

    /// Sets the longest time that connecting takes: all addresses of a name, the detection of a QoS socket, the connection,
    /// the negotiation, and the answer of the network. After this time connecting fails with [`io::ErrorKind::TimedOut`](std::io::ErrorKind). Unless set, it takes as long
    /// as the system tries, which is over two minutes with an address that does not answer. The look-up of a name is not counted.
    #[must_use]
    pub fn connect_timeout(self, time: std::time::Duration) -> Self {
        Self { connect_timeout: Some(crate::time::duration(time)), ..self }
    }

    /// Returns whether they request a reservation.
    pub(crate) const fn has_reservation(&self) -> bool {
        self.reservation.is_some()
    }

    /// The reservation of a connection between these addresses, that of this end first; `None` if the options request none.
    pub(crate) fn reserver(
        &self,
        transport: TransportProtocol,
        addresses: [SocketAddr; 2],
    ) -> Option<Reserver> {
        let reservation = self.reservation.clone()?;
        Some(Reserver::new(reservation, self.path.clone(), transport, addresses))
    }

    /// Sets the longest time that a closed stream waits for a further acknowledgement of the peer: 60 s unless set.
    ///
    /// Closing a stream delivers data written before. The call does not wait; a thread of the library keeps the descriptor until the other
    /// end's system has everything, or until it has acknowledged nothing more for this time. After that, a report of the peer may reset the
    /// connection, and data that it has not received is lost. When the process ends by `exit` or by returning from `main`, its end waits in the same
    /// way. A process that is killed, or ends by `_exit` or `abort`, delivers nothing more. At most a quarter of the
    /// descriptors that the process may have, and 4096, are kept for closed streams; of more, the oldest are given up.
    #[must_use]
    pub fn linger(self, time: std::time::Duration) -> Self {
        Self { linger: Some(crate::time::duration(time)), ..self }
    }

    /// Returns the time for which a closed stream waits for an acknowledgement.
    pub(crate) fn linger_time(&self) -> Duration {
        self.linger.unwrap_or(LINGER)
    }

    /// Returns the longest silence of the peer of a datagram socket before a call that receives ends.
    pub(crate) fn longest_silence(&self) -> Duration {
        let ConnectionSpecification { send, receive, .. } = &self.specification;
        [send.recovery, receive.recovery].into_iter().flatten().min().unwrap_or(LONGEST_SILENCE)
    }

    /// Checks that a listener may have these options.
    ///
    /// # Errors
    /// When its connections are to be made again, which only the peers can do.
    pub(crate) fn check_listener(&self) -> Result<(), ParameterError> {
        let never = "false at the end that listens: only the end that connects can connect again";
        if self.reconnect { Err(ParameterError::new("reconnect", true, never)) } else { Ok(()) }
    }

    /// Sets the times to wait for the peer.
    #[must_use]
    pub fn negotiation(self, negotiation: NegotiationParams) -> Self {
        Self { negotiation, ..self }
    }

    /// Sets the rules by which the delivery is judged.
    #[must_use]
    pub fn monitor(self, monitor: MonitorParams) -> Self {
        Self { monitor, ..self }
    }

    /// Sets a trace into which the sessions of these sockets write their inputs and outputs, so that it can be seen later why one has
    /// decided as it has. The simulator repeats it (`cutline_sim::qos::replay`). It takes memory without end, and has a copy of each
    /// datagram that was received.
    #[must_use]
    pub fn trace(self, trace: &SessionTrace) -> Self {
        Self { trace: Some(trace.clone()), ..self }
    }

    /// Sets whether the delivery of the connection is published to the monitor of this host ([`cutline_publish`]). It is unless this is set to
    /// false, or the environment variable `CUTLINE_PUBLISH` is `off`. Messages cost nothing more for it.
    #[must_use]
    pub fn publish(self, publish: bool) -> Self {
        Self { is_private: !publish, ..self }
    }

    /// Sets whether managers of this host may request weaker limits, and a new negotiation of the first specification, through
    /// the monitor (SNMP). The default is no. A weaker limit is negotiated with the peer as
    /// [`renegotiate`](crate::ConnectionHandle::renegotiate) does it, so the application gets the same events.
    #[must_use]
    pub fn managed(self, managed: bool) -> Self {
        Self { is_managed: managed, ..self }
    }

    /// Requests a share for the sending direction from the resource manager of this host. The granted rate limits the connection:
    /// a faster application is delayed as above an agreed rate. [`SessionEvent::Allocated`](crate::SessionEvent::Allocated) reports each change.
    /// Connecting waits for the first answer. Without a manager, nothing is limited. A manager that is started later serves the
    /// connection from then on, and a restarted manager takes over its flows.
    ///
    /// The agreed specification of a real-time connection must have a highest rate; otherwise connecting fails.
    #[must_use]
    pub fn allocation(self, allocation: AllocationOptions) -> Self {
        Self { allocation: Some(allocation), ..self }
    }

    /// Starts the threads that serve connections with these options, unless they run. It is called before anything is sent or accepted: later, a
    /// limit of threads would end a connection on which both ends have agreed.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn start_threads(&self) -> Result<(), QosError> {
        service_thread::start().map_err(QosError::system(NO_THREAD))?;
        self.allocation.as_ref().map_or(Ok(()), AllocationOptions::start_thread)
    }

    /// The share of a connection between these addresses, that of this end first; `None` if the options request none.
    pub(crate) fn allocator(&self, transport: PacketKind, addresses: [SocketAddr; 2]) -> Option<Allocator> {
        Some(Allocator::new(self.allocation.clone()?, transport, addresses))
    }

    /// Requests a reservation for the agreement from a service of the network: `mark`, `local`, `rsvp`, or one that was registered
    /// ([`cutline_provision`]). Connecting then waits until the network has answered. The peer should use the same service.
    ///
    /// # Errors
    /// When there is no such service; the error lists the existing ones.
    pub fn service(self, name: &str, access: &Access) -> Result<Self, UnknownService> {
        let reservation = ReservationOptions::new(open(name, access)?);
        Ok(Self { reservation: Some(reservation), ..self })
    }

    /// Sets whether a direction with acknowledgements alone is reserved, too. Nothing happens without a service.
    #[must_use]
    pub fn ack_path(self, ack_path: AckPath) -> Self {
        self.reservation_with(|reservation| reservation.ack_path = ack_path)
    }

    /// Sets the outcome of a connection whose reservation is refused. It has no effect without a service.
    #[must_use]
    pub fn if_refused(self, if_refused: IfRefused) -> Self {
        self.reservation_with(|reservation| reservation.if_refused = if_refused)
    }

    /// Sets the longest time that connecting waits for the network: 3 s unless set. It has no effect without a service.
    #[must_use]
    pub fn reservation_patience(self, time: std::time::Duration) -> Self {
        self.reservation_with(|reservation| reservation.patience = crate::time::duration(time))
    }

    fn reservation_with(mut self, set: impl FnOnce(&mut ReservationOptions)) -> Self {
        if let Some(reservation) = &mut self.reservation {
            set(reservation);
        }
        self
    }
}
