//! A socket whose descriptor the runtime watches, and its events.

use cutline_socket::{
    Connect, Connecting, ConnectionHandle, QosDirectSocket, QosError, QosTcpStream, QosUdpSocket, Readiness,
    SessionEvent,
};
use std::future::{Future as _, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::sync::Notify;
use tokio::task::coop::consume_budget;
use tokio::time::timeout;

/// A socket by its descriptor.
#[derive(Debug)]
pub struct Descriptor<T>(pub T);

impl<T: AsFd> AsRawFd for Descriptor<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Registers a socket with the runtime.
#[expect(
    deprecated,
    reason = "its successor is unsafe, as a type may give away another descriptor each time; these own the one they give"
)]
pub fn watch<T: AsFd>(socket: T) -> io::Result<AsyncFd<Descriptor<T>>> {
    AsyncFd::new(Descriptor(socket))
}

/// Registers a descriptor with the runtime for one interest.
#[expect(deprecated, reason = "as above")]
fn watch_for(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

/// Accepts a connection while another descriptor is free, which [`Watched`] needs. Otherwise the listener keeps the connection.
pub fn accept_watchable<L: AsFd, T>(listener: &L, accept: impl FnOnce(&L) -> io::Result<T>) -> io::Result<T> {
    let spare = listener.as_fd().try_clone_to_owned();
    let outcome = accept(listener);
    drop(spare);
    outcome
}

/// A connected socket of any kind.
pub trait Connected: AsFd + Deref<Target = ConnectionHandle> + Send + Sync + 'static {
    /// Makes calls fail instead of waiting.
    fn do_not_wait(&self) -> io::Result<()>;
}

impl Connected for QosTcpStream {
    fn do_not_wait(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Connected for QosUdpSocket {
    fn do_not_wait(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Connected for QosDirectSocket {
    fn do_not_wait(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// The calls that all connections share, on the [`Watched`] socket in this field.
macro_rules! connection_calls {
    ($connection:ident, $field:tt) => {
        impl $connection {
            /// Waits for the next event. Safe to cancel: then no event was taken.
            pub async fn event(&self) -> cutline_socket::SessionEvent {
                self.$field.event().await
            }

            /// The next event that was not taken; `None` if there is none.
            pub fn try_event(&self) -> Option<cutline_socket::SessionEvent> {
                self.$field.try_event()
            }

            /// Returns the state of the connection.
            pub fn mib(&self) -> cutline_socket::Mib {
                self.$field.socket().mib()
            }

            /// Keeps a sample of each message that arrives from now on: its delay and its jitter. At most so many are kept until they are
            /// taken with [`take_samples`](Self::take_samples); of more, the oldest are forgotten. 0 ends it.
            pub fn sample(&self, most: usize) {
                self.$field.socket().sample(most);
            }

            /// Takes the samples that were kept, oldest first, and the number of those forgotten since the last call.
            pub fn take_samples(&self) -> (Vec<cutline_socket::Sample>, u64) {
                self.$field.socket().take_samples()
            }

            /// Returns the state of the reservation; `None` without a service
            /// ([`QosOptions::service`](cutline_socket::QosOptions::service)).
            pub fn reservation(&self) -> Option<cutline_socket::ConnectionReservation> {
                self.$field.socket().reservation()
            }

            /// Returns the state of the allocation at the resource manager of the host; `None` without
            /// [`QosOptions::allocation`](cutline_socket::QosOptions::allocation). Its rate counts all headers.
            pub fn allocation(&self) -> Option<cutline_socket::AllocationState> {
                self.$field.socket().allocation()
            }

            /// Returns the counters of messages and missed deadlines ([`Mib::scheduling`](cutline_socket::Mib::scheduling)).
            pub fn scheduling(&self) -> Option<cutline_socket::SchedulingStats> {
                self.$field.socket().scheduling()
            }

            /// The next event of the reservation that was not taken; `None` if there is none. It does not wait.
            pub fn reservation_event(&self) -> Option<cutline_socket::ReservationEvent> {
                self.$field.socket().reservation_event()
            }

            /// Requests another specification from the peer. The outcome is an [`SessionEvent`](cutline_socket::SessionEvent).
            pub fn renegotiate(&self, specification: cutline_socket::ConnectionSpecification) {
                self.$field.socket().renegotiate(specification);
            }
        }

        impl std::fmt::Debug for $connection {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($connection)).field(self.$field.socket()).finish()
            }
        }

        impl std::os::fd::AsFd for $connection {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.$field.socket().as_fd()
            }
        }
    };
}
pub(crate) use connection_calls;

/// The calls for messages that sockets of datagrams and of frames have alike, on the [`Watched`] socket in their first field.
macro_rules! message_calls {
    ($socket:ident, $address:ty) => {
        impl $socket {
            /// A socket that was connected elsewhere. It must have no clones.
            ///
            /// # Errors
            /// When the runtime cannot watch it.
            pub fn from_blocking(socket: cutline_socket::$socket) -> std::io::Result<Self> {
                $crate::watched::Watched::new(socket).map(Self)
            }

            /// Sends a message. If the application sends faster than was agreed on, [`Pacing`](cutline_socket::Pacing) gives the behaviour;
            /// waiting is a timer of the runtime. Safe to cancel: then the message was not sent.
            ///
            /// # Errors
            #[doc = concat!("As [`cutline_socket::", stringify!($socket), "::send`].")]
            pub async fn send(&self, message: &[u8]) -> std::io::Result<usize> {
                let pacing = self.0.socket().pacing();
                $crate::datagrams::send(&self.0, pacing, |socket| socket.try_send(message)).await
            }

            /// Receives a message. Bytes that do not fit in the buffer are lost. Returns its length in the buffer. Safe to cancel: then no
            /// message was taken.
            ///
            /// # Errors
            #[doc = concat!("As [`cutline_socket::", stringify!($socket), "::recv`].")]
            pub async fn recv(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
                // The descriptor does not report data that was received already.
                self.0.call(tokio::io::Interest::READABLE, |socket| socket.recv(buffer)).await
            }

            /// Sends a message if it may be sent now, and does not wait for that.
            ///
            /// # Errors
            #[doc = concat!("As [`cutline_socket::", stringify!($socket), "::try_send`].")]
            pub fn try_send(&self, message: &[u8]) -> std::io::Result<cutline_socket::Attempt> {
                self.0.socket().try_send(message)
            }

            /// Receives a message that has come, and does not wait. Returns its length in the buffer.
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if there is none; otherwise as [`recv`](Self::recv).
            pub fn try_recv(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.0.socket().recv(buffer)
            }

            /// Returns whether the peer is a QoS socket.
            pub fn has_qos_peer(&self) -> bool {
                self.0.socket().has_qos_peer()
            }

            /// The address of the peer.
            pub fn peer_addr(&self) -> $address {
                self.0.socket().peer_addr()
            }

            /// The address of this end.
            ///
            /// # Errors
            #[doc = concat!("As [`cutline_socket::", stringify!($socket), "::local_addr`].")]
            pub fn local_addr(&self) -> std::io::Result<$address> {
                self.0.socket().local_addr()
            }
        }
    };
}
pub(crate) use message_calls;

/// A connection that the runtime watches.
///
/// The runtime keeps it forever that a descriptor was closed, so a connection that was made again needs another one of the same
/// socket.
pub struct Watched<T: Connected> {
    socket: T,
    io: Mutex<Arc<Io>>,
    signs: Arc<Signs>,
}

/// A descriptor of a connection's socket that the runtime watches.
pub type Io = AsyncFd<Descriptor<OwnedFd>>;

/// Signs that the handler of events has noted.
#[derive(Default)]
struct Signs {
    has_event: Notify,
    /// A connection was lost, made again or given up, or has a message that its descriptor does not report: tasks that wait for the descriptor look
    /// again.
    changed: Notify,
    /// True if the runtime watches the descriptor of a connection before the current one.
    is_stale: AtomicBool,
}

impl Signs {
    /// Notes an event; without one, a message that the descriptor does not report.
    fn note(&self, event: Option<&SessionEvent>) {
        let Some(event) = event else { return self.changed.notify_waiters() };
        if let SessionEvent::Recovered { is_new: true, .. } = event {
            self.is_stale.store(true, Ordering::Release);
        }
        if let SessionEvent::Lost { .. } | SessionEvent::Recovered { .. } | SessionEvent::GaveUp { .. } =
            event
        {
            self.changed.notify_waiters();
        }
        self.has_event.notify_one();
    }
}

fn watched(socket: &impl AsFd) -> io::Result<Arc<Io>> {
    watch(socket.as_fd().try_clone_to_owned()?).map(Arc::new)
}

impl<T: Connected> Watched<T> {
    pub fn new(socket: T) -> io::Result<Self> {
        socket.do_not_wait()?;
        let signs = Arc::new(Signs::default());
        let noted = Arc::clone(&signs);
        let io = Mutex::new(watched(&socket)?);
        socket.on_activity(move |event| noted.note(event.as_ref()));
        Ok(Self { socket, io, signs })
    }

    /// The descriptor to wait for.
    pub fn io(&self) -> io::Result<Arc<Io>> {
        let mut io = self.io.lock().unwrap_or_else(PoisonError::into_inner);
        if self.signs.is_stale.swap(false, Ordering::AcqRel) {
            *io = watched(&self.socket)?;
        }
        Ok(Arc::clone(&io))
    }

    pub const fn socket(&self) -> &T {
        &self.socket
    }

    /// Makes a call that does not wait, until it need not.
    pub async fn call<R>(
        &self,
        interest: Interest,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        // A task whose calls never wait lets others run now and then, as with the sockets of tokio.
        consume_budget().await;
        loop {
            // Before the call, so that no change is missed.
            let mut changed = pin!(self.signs.changed.notified());
            changed.as_mut().enable();
            match call(&self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            if self.socket.is_reconnecting() {
                changed.await;
                continue;
            }
            let io = self.io()?;
            let mut ready = pin!(io.ready(interest));
            // Whichever comes first.
            let guard = poll_fn(|cx| match changed.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => ready.as_mut().poll(cx).map(Some),
            });
            if let Some(guard) = guard.await {
                let mut guard = guard?;
                // Only the kernel's refusal resets the descriptor's readiness.
                match call(&self.socket) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                    outcome => return outcome,
                }
            }
        }
    }

    pub fn try_event(&self) -> Option<SessionEvent> {
        self.socket().event()
    }

    /// Waits for the next event.
    pub async fn event(&self) -> SessionEvent {
        loop {
            if let Some(event) = self.socket().event() {
                // Another task may wait for another one.
                self.signs.has_event.notify_one();
                return event;
            }
            self.signs.has_event.notified().await;
        }
    }
}

impl<T: Connected> Drop for Watched<T> {
    fn drop(&mut self) {
        // Not within a runtime's thread for longer than a notification takes.
        self.socket().remove_handler();
    }
}

/// The addresses of a name.
pub async fn addresses(
    address: impl ToSocketAddrs,
    doing: &'static str,
) -> Result<Vec<SocketAddr>, QosError> {
    let found = lookup_host(address).await.map_err(|error| system(doing, error))?;
    Ok(found.collect())
}

/// Connects a socket. No thread waits for it.
pub async fn connected<S: Connect>(mut connecting: Connecting<S>) -> Result<S, QosError> {
    loop {
        if let Some(outcome) = connecting.advance() {
            return outcome;
        }
        let awaited = connecting.awaits().into_iter().map(|(fd, readiness)| {
            let interest = if readiness == Readiness::Read { Interest::READABLE } else { Interest::WRITABLE };
            fd.try_clone_to_owned().and_then(|fd| watch_for(fd, interest))
        });
        let awaited: Vec<_> =
            awaited.collect::<io::Result<_>>().map_err(|error| system("cannot watch the socket", error))?;
        let any_is_ready = poll_fn(|cx| {
            let is_ready = |fd: &AsyncFd<OwnedFd>| {
                // Those that are not watched for one of them are never ready for it.
                fd.poll_read_ready(cx).is_ready() || fd.poll_write_ready(cx).is_ready()
            };
            if awaited.iter().any(is_ready) { Poll::Ready(()) } else { Poll::Pending }
        });
        // When the time is over, it continues as well.
        let _ready = timeout(connecting.time_left(), any_is_ready).await;
    }
}

/// An error of the system as one of QoS sockets.
pub fn system(doing: &'static str, source: io::Error) -> QosError {
    QosError::System { doing, source }
}
