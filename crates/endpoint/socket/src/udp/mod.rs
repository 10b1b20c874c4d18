//! Datagrams with quality of service.
//!
//! Each datagram of the application is a message. Between two QoS sockets it has a header with its number and the time when it was
//! sent ([`cutline_signal::frame`]); control messages are datagrams of their own, which the application never sees.

mod carrier;
mod dial;
mod direct;
#[cfg(test)]
mod direct_tests;
mod errors;
mod inbox;
mod listener;
mod reader;
mod receiving;
mod redial;
#[cfg(test)]
mod redial_tests;
mod sending;
#[cfg(test)]
mod tests;

pub(crate) use carrier::DatagramCarrier;
pub use direct::{QosDirectListener, QosDirectSocket};
pub use listener::QosUdpListener;

use crate::allocation::PacketKind;
use crate::connecting::Connecting;
use crate::connection::Connection;
use crate::connection_handle::{ConnectionHandle, SharedCalls};
use crate::error::QosError;
use crate::mib::Mib;
use crate::options::{Pacing, QosOptions};
use crate::patience::Patience;
use crate::recovery::{Candidate, Recovery};
use crate::service_thread::ServedConnection;
use crate::settings::Settings;
use cutline_allocation::{FlowHandler, FlowNotice};
use cutline_manager::feedback::FlowReport;
use cutline_provision::TransportProtocol;
use cutline_quality::spec::ConnectionSpecification;
use cutline_signal::session::{Cause, Inbound, Outbound, Participation, Session, SessionEvent};
use cutline_sys::now;
use cutline_translate::Protocol;
use cutline_units::{Duration, Hint, Instant};
use dial::Joining;
use errors::Errors;
use listener::ListenerState;
use reader::DatagramReader;
use sending::time_of_feedback;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::{fmt, time};

/// A datagram socket with quality of service, connected to one peer.
///
/// Its calls are those of [`UdpSocket`]. It can be shared by threads; each call takes `&self`. Clones are the same socket.
#[derive(Clone)]
pub struct QosUdpSocket(Arc<Inner>, ConnectionHandle);

struct Inner {
    socket: DatagramCarrier,
    errors: Errors,
    peer: SocketAddr,
    connection: Connection,
    /// Receive buffer. It is locked while a call waits for datagrams.
    reader: Mutex<DatagramReader>,
    pacing: Pacing,
    nonblocking: AtomicBool,
    /// True if the application waits for the descriptor: then only it takes messages from the kernel.
    is_watched: AtomicBool,
    patience: Patience,
    /// Datagrams that the listener's socket has received.
    early: Mutex<Vec<(Instant, Vec<u8>)>>,
    has_early: AtomicBool,
    /// The listener that has accepted it.
    listener: Option<Weak<ListenerState>>,
    /// True if the peer has begun another connection from the same address, which the listener has
    /// accepted in the place of this one.
    is_replaced: AtomicBool,
    /// True if the application waits to send because the send queue is full.
    is_held: AtomicBool,
    /// The error that the next call returns, which the thread that serves connections has met; 0 for none.
    fault: AtomicI32,
    /// Length of the peer's silence, ns, if that is too long; otherwise 0.
    silence: AtomicU64,
    /// Longest silence before a call that receives ends.
    longest_silence: Duration,
    /// Recovery with a new session if the peer is gone; `None` if there is none.
    recovery: Option<Recovery<Box<Candidate>>>,
}

/// Outcome of an attempt to send ([`QosUdpSocket::try_send`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The message was sent, with so many bytes.
    Sent(usize),
    /// The message was not sent: the agreement permits it after this time. Under rate control it may be
    /// longer, or feedback makes it shorter.
    Early(time::Duration),
}

impl QosUdpSocket {
    /// Connects to an address, and negotiates with the QoS socket there. It waits until both ends agree, or until it is known
    /// that the peer takes no part ([`Peer`](crate::Peer)). Of a name, the addresses are tried one after the other until a QoS socket
    /// answers. Where none does, it is a plain socket to the first address that the network has not refused.
    ///
    /// # Errors
    /// When an option is not allowed, the ends do not agree, there is no such address, no socket receives there, or the time is over
    /// ([`QosOptions::connect_timeout`]).
    pub fn connect(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        Self::connecting(address, options)?.finish()
    }

    /// Begins to connect to an address, as [`connect`](Self::connect) does, and does not wait but for the addresses of a name.
    ///
    /// # Errors
    /// When the name has no address.
    pub fn connecting(
        address: impl ToSocketAddrs,
        options: &QosOptions,
    ) -> Result<Connecting<Self>, QosError> {
        Connecting::new(address, options)
    }

    /// Negotiates over a connected socket of the application, which may have options of its own.
    ///
    /// # Errors
    /// As for [`QosUdpSocket::connect`].
    pub fn over(socket: UdpSocket, options: &QosOptions) -> Result<Self, QosError> {
        let peer = socket.peer_addr().map_err(QosError::system("the socket is not connected"))?;
        Connecting::of(peer, Joining::over(socket.into(), options)?, options).finish()
    }

    fn new(
        socket: DatagramCarrier,
        session: Session,
        directions: (Outbound, Inbound),
        options: &QosOptions,
        (recovery, listener): (Option<Recovery<Box<Candidate>>>, Option<Weak<ListenerState>>),
    ) -> Result<Self, QosError> {
        let peer = socket.peer_addr().map_err(QosError::system("the socket is not connected"))?;
        let overflowed = socket.prepare()?;
        Settings::new(options, Protocol::Udp, &session)?.apply_to(&socket, peer)?;
        let local = socket.local_addr().map_err(QosError::system("the socket has no address"))?;
        let is_direct = matches!(socket, DatagramCarrier::Direct(_));
        let kind = if is_direct { PacketKind::Frames } else { PacketKind::Datagrams };
        let shares =
            (options.reserver(TransportProtocol::Udp, [local, peer]), options.allocator(kind, [local, peer]));
        let errors = Errors::of(&socket).map_err(QosError::system("cannot enable the error queue"))?;
        let reader = DatagramReader::new(&socket, peer, listener.is_some(), overflowed);
        let inner = Arc::new(Inner {
            socket,
            errors,
            peer,
            connection: Connection::new(session, directions, shares, options),
            reader: Mutex::new(reader),
            pacing: options.pacing,
            nonblocking: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            patience: Patience::default(),
            early: Mutex::default(),
            has_early: AtomicBool::new(false),
            listener,
            is_replaced: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            fault: AtomicI32::new(0),
            silence: AtomicU64::new(0),
            longest_silence: options.longest_silence(),
            recovery,
        });
        Ok(Self(Arc::clone(&inner), ConnectionHandle::new(inner)))
    }

    /// Sends a message. If the application sends faster than was agreed on, [`Pacing`] gives the behaviour.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when the message is longer than was agreed on; `ENOBUFS` when the interface's queue has no room for
    /// it, where the message was not sent; otherwise as [`UdpSocket::send`].
    pub fn send(&self, message: &[u8]) -> io::Result<usize> {
        self.0.send(message)
    }

    /// Sends a message if it may be sent now, and does not wait for that.
    ///
    /// # Errors
    /// As [`QosUdpSocket::send`]; [`io::ErrorKind::WouldBlock`] if the kernel has no room for it.
    pub fn try_send(&self, message: &[u8]) -> io::Result<Attempt> {
        self.0.try_send(message)
    }

    /// Returns the treatment of messages beyond the agreed rate.
    pub fn pacing(&self) -> Pacing {
        self.0.pacing
    }

    /// Receives a message. Bytes that do not fit in the buffer are lost. Returns its length in the buffer.
    ///
    /// # Errors
    /// As [`UdpSocket::recv`]; [`QosError::Silent`] when nothing has arrived from the peer, which is a QoS socket, for the specification's
    /// `recovery` time, or for 30 s if it gives none, and at least until the event [`SessionEvent::Lost`]. If it sends again, calls work again.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.0.recv(buffer)?.0)
    }

    /// As [`QosUdpSocket::recv`]. Also returns when the kernel received the message, on the scale of the MIB's times.
    ///
    /// # Errors
    /// As [`UdpSocket::recv`].
    pub fn recv_stamped(&self, buffer: &mut [u8]) -> io::Result<(usize, Instant)> {
        self.0.recv(buffer)
    }

    /// Returns whether the peer is a QoS socket.
    pub fn has_qos_peer(&self) -> bool {
        matches!(self.0.connection.participation(), Participation::Joined(_))
    }

    /// Returns whether a message was received already, so that [`QosUdpSocket::recv`] does not wait. The
    /// descriptor does not show it.
    pub fn has_pending(&self) -> bool {
        self.0.has_early.load(Ordering::SeqCst)
            || self.0.reader.try_lock().is_ok_and(|reader| !reader.is_empty())
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.0.peer
    }

    /// The address of this end.
    ///
    /// # Errors
    /// As [`UdpSocket::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket.local_addr()
    }

    /// Sets whether calls wait.
    ///
    /// # Errors
    /// As [`UdpSocket::set_nonblocking`]; [`QosError::Inherited`] in a child by fork(2), which would change its parent's socket.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.connection.check_process()?;
        self.0.nonblocking.store(nonblocking, Ordering::Relaxed);
        self.0.is_watched.fetch_or(nonblocking, Ordering::Relaxed);
        self.0.socket.set_nonblocking(nonblocking)
    }

    /// Sets the longest wait of [`QosUdpSocket::recv`].
    ///
    /// # Errors
    /// As [`UdpSocket::set_read_timeout`]; [`QosError::Inherited`] in a child by fork(2).
    pub fn set_read_timeout(&self, time: Option<time::Duration>) -> io::Result<()> {
        self.0.connection.check_process()?;
        self.0.socket.set_read_timeout(time)?;
        self.0.patience.set(time);
        Ok(())
    }
}

impl fmt::Debug for QosUdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QosUdpSocket")
            .field("local", &self.0.socket.local_addr().ok())
            .field("peer", &self.0.peer)
            .field("participation", &self.0.connection.participation())
            .field("fd", &self.0.socket.as_fd())
            .finish_non_exhaustive()
    }
}

impl Deref for QosUdpSocket {
    type Target = ConnectionHandle;

    /// The calls that a datagram socket shares with a stream.
    fn deref(&self) -> &ConnectionHandle {
        &self.1
    }
}

impl AsFd for QosUdpSocket {
    /// The descriptor to wait for: it is readable when a message may have come. It is not ready for messages that were received
    /// already ([`QosUdpSocket::has_pending`]): before waiting, receive until [`io::ErrorKind::WouldBlock`]. The handler of
    /// [`ConnectionHandle::on_activity`] is called for later ones. A program that reads from it takes messages away.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.is_watched.store(true, Ordering::Relaxed);
        self.0.socket.as_fd()
    }
}

impl Inner {
    /// Calls the session, and sends its control messages.
    fn act(&self, act: impl FnOnce(&mut Session, &mut Outbound, &mut Inbound)) -> Instant {
        let send = |message: &[u8]| {
            // A control message that is lost is sent again, or made up for by the next report. Those of a session that is over belong
            // nowhere.
            if self.is_up() {
                let _lost = self.try_to_send(|| self.socket.send(message));
            }
        };
        let mark_with = |hint: Hint| {
            let _unmarked = self.socket.mark(self.peer, hint);
        };
        let mut is_lost = false;
        let act = |session: &mut Session, out: &mut Outbound, inbound: &mut Inbound| {
            act(session, out, inbound);
            // While the directions are locked, so that nothing is sent which the event does not count.
            if let (Some(recovery), Some(cause)) = (&self.recovery, session.lost()) {
                is_lost = recovery.break_off(|| cause.clone());
            }
        };
        let due = self.connection.with_session(act, send, mark_with);
        let due = if is_lost { now() } else { due };
        self.connection.hasten(due);
        due
    }

    /// Returns whether calls may use the socket.
    fn is_up(&self) -> bool {
        !self.is_replaced.load(Ordering::Relaxed) && self.recovery.as_ref().is_none_or(Recovery::is_up)
    }

    /// Ends the connection in favour of another one from the same address, whose listener gets its received datagrams.
    fn retire(&self, listener: &ListenerState) {
        if self.is_replaced.swap(true, Ordering::Relaxed) {
            return;
        }
        // The listener of frames receives them again before this socket receives no more.
        listener.release(self.peer);
        // Connected to itself, it receives nothing more from there.
        let moved = self.socket.let_go();
        listener.take_strangers(self, self.remaining());
        let ended = self.socket.end_waits();
        debug_assert!(moved.is_ok() && ended.is_ok(), "{moved:?} {ended:?}");
        let cause = Cause::Failed(QosError::Replaced.to_string());
        self.connection.tell([SessionEvent::GaveUp { after: Duration::ZERO, cause }]);
    }

    /// # Errors
    /// When the connection is over because the peer has begun another one.
    fn check_place(&self) -> io::Result<()> {
        if self.is_replaced.load(Ordering::Relaxed) { Err(QosError::Replaced.into()) } else { Ok(()) }
    }

    fn keep(self: &Arc<Self>) -> Result<(), QosError> {
        // Earlier events are delivered at once.
        self.act(|session, out, inbound| session.advance(now(), out, inbound));
        self.connection.keep(Arc::downgrade(self) as Weak<dyn ServedConnection>)?;
        self.connection.begin_allocation(Arc::downgrade(self) as Weak<dyn FlowHandler>)
    }
}

impl SharedCalls for Inner {
    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn transport(&self) -> &'static str {
        self.socket.name()
    }

    fn addresses(&self) -> io::Result<[SocketAddr; 2]> {
        Ok([self.socket.local_addr()?, self.peer])
    }

    fn mib(&self) -> Mib {
        self.connection.mib(&self.socket, || self.socket.hint(self.peer), None)
    }

    fn renegotiate(&self, specification: ConnectionSpecification) {
        if let Some(recovery) = &self.recovery {
            recovery.specify(&specification);
        }
        self.act(|session, out, _| session.renegotiate(now(), specification, out));
    }

    fn is_reconnecting(&self) -> bool {
        self.recovery.as_ref().is_some_and(Recovery::is_under_way)
    }

    /// Closes the socket, so that its port is free when the drop of the last handle returns.
    fn on_last_handle(&self) {
        // In a copy by fork, the listener's socket is shared with the parent, where this connection continues.
        if let Some(listener) = self.listener.as_ref().and_then(Weak::upgrade)
            && !self.is_replaced.load(Ordering::Relaxed)
            && !self.connection.is_inherited()
        {
            listener.release(self.peer);
        }
        // Without room for another descriptor, the thread that serves connections closes it, after microseconds.
        let _later = self.socket.vacate();
    }
}

impl FlowHandler for Inner {
    fn on_notice(&self, notice: FlowNotice) {
        if let Some(allocator) = &self.connection.allocator {
            self.act(allocator.change(notice));
        }
    }

    fn report(&self) -> Option<FlowReport> {
        self.connection.flow_report(&self.socket)
    }

    fn missed(&self) -> u64 {
        self.connection.missed_deadlines()
    }
}

impl ServedConnection for Inner {
    fn shared_calls(&self) -> Option<&dyn SharedCalls> {
        Some(self)
    }

    fn serve(&self, now: Instant) -> Instant {
        if let Some(due) = self.recovery.as_ref().and_then(|recovery| recovery.serve(self)) {
            return due;
        }
        // While the application waits for messages it reads control messages, too.
        if let Ok(mut reader) = self.reader.try_lock() {
            self.take_early(&mut reader);
            self.hear(&mut reader);
            // A message in the kernel may have come only just now.
            let in_kernel = || self.has_message_in_kernel().then_some(now);
            self.connection.note_unread(reader.oldest().or_else(in_kernel));
        }
        self.notice_room(now);
        let mut silence = (Duration::ZERO, Duration::MAX);
        let due = self.act(|session, out, inbound| {
            session.advance(now, out, inbound);
            silence = (session.silence(now, inbound), session.longest_silence());
        });
        self.note_silence(silence.0, silence.1);
        let feedback = time_of_feedback(&self.connection.outbound());
        feedback.map_or(due, |time| due.min(now.saturating_add(time)))
    }
}
