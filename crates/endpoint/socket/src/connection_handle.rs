//! The calls that streams and datagram sockets share.

use crate::connection::Connection;
use crate::mib::Mib;
use crate::reservation::ConnectionReservation;
use crate::service_thread::ServedConnection;
use crate::time::duration;
use cutline_allocation::AllocationState;
use cutline_manager::scheduling::SchedulingStats;
use cutline_provision::GrantEvent as ReservationEvent;
use cutline_quality::spec::ConnectionSpecification;
use cutline_signal::monitor::Sample;
use cutline_signal::session::SessionEvent;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time;

/// Parts of the shared calls that differ between the kinds of socket.
pub trait SharedCalls: ServedConnection {
    /// Returns the connection, which every kind of socket has.
    fn connection(&self) -> &Connection;

    /// Returns the name of the transport: `tcp` or `udp`.
    fn transport(&self) -> &'static str;

    /// Returns this end's address and that of the other one.
    fn addresses(&self) -> io::Result<[SocketAddr; 2]>;

    /// Returns the state and the measurements of the connection.
    fn mib(&self) -> Mib;

    /// Requests another specification from the peer.
    fn renegotiate(&self, specification: ConnectionSpecification);

    /// Returns whether the connection is being made again.
    fn is_reconnecting(&self) -> bool;

    /// Handles the end of the last handle. A thread of this library may still use the connection for a moment.
    fn on_last_handle(&self) {}
}

/// A QoS connection of either kind, stream or datagrams: events, measures, reservation and renegotiation.
///
/// [`QosTcpStream`](crate::QosTcpStream) and [`QosUdpSocket`](crate::QosUdpSocket) dereference to it, so its calls are calls of both.
/// A clone keeps the connection open, as a clone of the socket does.
///
/// In a copy of the process by fork(2) ([`is_inherited`](Self::is_inherited)) nothing is known of the connection: a lock may be held by a
/// thread that only the parent has. There are no events, samples and reservation, [`mib`](Self::mib) has zeros, and nothing is changed.
#[derive(Clone)]
pub struct ConnectionHandle(Arc<Held>);

/// A connection that the application holds.
struct Held(Arc<dyn SharedCalls>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.on_last_handle();
    }
}

impl Deref for Held {
    type Target = dyn SharedCalls;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl ConnectionHandle {
    /// Returns the connection of a socket.
    pub(crate) fn new(socket: Arc<impl SharedCalls + 'static>) -> Self {
        Self(Arc::new(Held(socket)))
    }

    /// The next event that was not taken; `None` if there is none.
    pub fn event(&self) -> Option<SessionEvent> {
        self.0.connection().event()
    }

    /// The events that were not taken, oldest first. It ends when there are no more; later there may be others.
    pub fn events(&self) -> impl Iterator<Item = SessionEvent> + '_ {
        std::iter::from_fn(|| self.event())
    }

    /// Waits for the next event, at most so long.
    pub fn wait_for_event(&self, time: time::Duration) -> Option<SessionEvent> {
        self.0.connection().wait_for_event(duration(time))
    }

    /// As [`wait_for_event`](Self::wait_for_event), in a call that may return for signals ([`Interruptible`](crate::Interruptible)).
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] when it does. No event was taken then.
    pub fn next_event(&self, time: time::Duration) -> io::Result<Option<SessionEvent>> {
        self.0.connection().next_event(duration(time))
    }

    /// Sets a handler that is called with each event from now on, and first with the events that were not taken yet. Events can be taken as before,
    /// too. An earlier handler is replaced.
    ///
    /// The thread that serves all connections calls it, and holds no lock then: the handler may call everything of the socket, but
    /// should not wait in it, since reports of all connections wait meanwhile. One that panics is called again with the next event. When
    /// this call returns, an earlier handler is running no more, unless this is called by it. A handler that owns a clone of the socket or of this
    /// keeps it open until [`remove_handler`](Self::remove_handler).
    pub fn on_event(&self, mut handler: impl FnMut(SessionEvent) + Send + 'static) {
        self.on_activity(move |event| {
            if let Some(event) = event {
                handler(event);
            }
        });
    }

    /// As [`on_event`](Self::on_event). The handler is also called with `None` when a message waits that the descriptor does not report
    /// ([`QosUdpSocket::has_pending`](crate::QosUdpSocket::has_pending)): a program that waits for the descriptor has to receive again.
    pub fn on_activity(&self, handler: impl FnMut(Option<SessionEvent>) + Send + 'static) {
        let service = Arc::downgrade(&self.0.0) as Weak<dyn ServedConnection>;
        self.0.connection().set_handler(service, Box::new(handler));
    }

    /// Removes the handler of events. After the return it is no longer called, unless this is called by the handler itself.
    pub fn remove_handler(&self) {
        self.0.connection().remove_handler();
    }

    /// Returns the state of the connection.
    pub fn mib(&self) -> Mib {
        if self.is_inherited() { Mib::unknown() } else { self.0.mib() }
    }

    /// Keeps a sample of each message that arrives from now on: its delay and its jitter. At most so many are kept until they are taken
    /// with [`take_samples`](Self::take_samples); of more, the oldest are forgotten. 0 ends it.
    pub fn sample(&self, most: usize) {
        if !self.is_inherited() {
            self.0.connection().inbound().sample(most);
        }
    }

    /// Takes the samples that were kept, oldest first, and the number of those forgotten since the last call.
    pub fn take_samples(&self) -> (Vec<Sample>, u64) {
        if self.is_inherited() { (Vec::new(), 0) } else { self.0.connection().inbound().take_samples() }
    }

    /// Returns the state of the reservation; `None` without a service ([`QosOptions::service`](crate::QosOptions::service)).
    pub fn reservation(&self) -> Option<ConnectionReservation> {
        if self.is_inherited() { None } else { self.0.connection().reservation() }
    }

    /// The next event of the reservation that was not taken; `None` if there is none. It does not wait.
    pub fn reservation_event(&self) -> Option<ReservationEvent> {
        let reserver = self.0.connection().reserver.as_ref().filter(|_| !self.is_inherited());
        reserver?.event()
    }

    /// The events of the reservation that were not taken, oldest first. It ends when there are no more; later there may be others.
    pub fn reservation_events(&self) -> impl Iterator<Item = ReservationEvent> + '_ {
        std::iter::from_fn(|| self.reservation_event())
    }

    /// Returns the state of the allocation at the resource manager of the host; `None` without [`QosOptions::allocation`](crate::QosOptions::allocation).
    /// Its rate counts all headers.
    pub fn allocation(&self) -> Option<AllocationState> {
        let allocator = self.0.connection().allocator.as_ref()?;
        if self.is_inherited() {
            return Some(AllocationState::Away("the flow belongs to the parent process".to_owned()));
        }
        allocator.state()
    }

    /// Returns the counters of messages and missed deadlines ([`Mib::scheduling`]).
    pub fn scheduling(&self) -> Option<SchedulingStats> {
        if self.is_inherited() { None } else { self.0.connection().scheduling() }
    }

    /// Requests another specification from the peer. The outcome is an [`SessionEvent`]. Until then, the agreement holds.
    pub fn renegotiate(&self, specification: ConnectionSpecification) {
        if !self.is_inherited() {
            self.0.renegotiate(specification);
        }
    }

    /// Returns whether this process is a copy by fork(2) of the one that has made the connection, so that calls fail with
    /// [`QosError::Inherited`](crate::QosError::Inherited). The connection must not be used then, but may be dropped.
    pub fn is_inherited(&self) -> bool {
        self.0.connection().is_inherited()
    }

    /// Returns whether the connection is broken and is being made again ([`QosOptions::reconnect`](crate::QosOptions::reconnect)).
    /// Meanwhile the descriptor has no useful state: a socket that does not wait has to wait for [`SessionEvent::Recovered`] or
    /// [`SessionEvent::GaveUp`].
    pub fn is_reconnecting(&self) -> bool {
        !self.is_inherited() && self.0.is_reconnecting()
    }
}

impl fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionHandle")
            .field("participation", &self.0.connection().participation())
            .finish_non_exhaustive()
    }
}
