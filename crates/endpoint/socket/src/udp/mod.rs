//! Datagrams with quality of service.
//!
//! Each datagram of the application is a message. Between two QoS sockets it has a header with its number and the time when it was
//! sent ([`cutline_signal::frame`]); control messages are datagrams of their own, which the application never sees.

mod dial;
mod errors;
mod listener;
mod reader;
mod redial;
#[cfg(test)]
mod redial_tests;
#[cfg(test)]
mod tests;

pub use listener::QosUdpListener;

use crate::connecting::Connecting;
use crate::connection::{Connection, Patience, Until, lock, mark};
use crate::error::QosError;
use crate::keeper::KeptConnection;
use crate::mib::Mib;
use crate::options::{Pacing, QosOptions};
use crate::recovery::{Admission, Candidate, Recovery};
use crate::reservation::{ReservationStatus, Reserver};
use crate::settings::Settings;
use crate::signals::{self, sleep};
use crate::time::duration;
use cutline_provision::{GrantEvent as ReservationEvent, Transport};
use cutline_quality::spec::ConnectionSpecification;
use cutline_signal::frame::{DATAGRAM_HEADER, datagram_header};
use cutline_signal::monitor::Sample;
use cutline_signal::session::{Cause, Direction, Event, Inbound, Outbound, Purpose, Session, Standing};
use cutline_sys::datagrams::{Inbox, Wait};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_translate::Protocol;
use cutline_units::{Duration, Hint, Instant};
use dial::Joining;
use errors::{Errors, Judged, count};
use listener::Entrance;
use reader::{ControlMessage, DatagramReader, Strangers, Taken};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time;

/// A datagram socket with quality of service, connected to one other end.
///
/// Its calls are those of [`UdpSocket`]. It can be shared by threads; each call takes `&self`. Clones are the same socket.
#[derive(Clone)]
pub struct QosUdpSocket(Arc<Inner>);

struct Inner {
    socket: UdpSocket,
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
    entrance: Option<Weak<Entrance>>,
    /// True if the other end has begun another connection from the same address, which the listener has
    /// accepted in the place of this one.
    is_replaced: AtomicBool,
    /// True if the application wants to send and the send queue is full.
    is_held: AtomicBool,
    /// The error that the next call returns, which the thread that serves connections has met; 0 for none.
    fault: AtomicI32,
    /// Length of the other end's silence, ns, if that is too long; otherwise 0.
    silence: AtomicU64,
    /// Longest silence before a call that receives ends.
    longest_silence: Duration,
    /// Recovery with a new session if the other end is gone; `None` if there is none.
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

/// The most datagrams that are handed over by the listener and not taken.
const MOST_EARLY: usize = 128;
/// The most control messages that are taken at a time, by who does not wait for messages of the application.
const MOST_CONTROL: usize = 16;
/// The longest time between looks for feedback, while sending waits for its turn under rate control and another thread
/// receives.
const LONGEST_LOOK: Duration = Duration::from_millis(5);
/// Interval of checks for feedback while the round-trip time is unknown.
const FIRST_LOOKS: Duration = Duration::from_millis(10);

impl QosUdpSocket {
    /// Connects to an address, and negotiates with the QoS socket there. It waits until both ends agree, or until it is known
    /// that the other end takes no part ([`Peer`](crate::Peer)). Of a name, the addresses are tried one after the other until a QoS socket
    /// answers. Where none does, it is a plain socket to the first address that the network has not refused.
    ///
    /// # Errors
    /// When an option is not allowed, the ends do not agree, there is no such address, nobody receives there, or the time is over
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
        Connecting::of(peer, Joining::over(socket, options)?, options).finish()
    }

    fn new(
        socket: UdpSocket,
        session: Session,
        directions: (Outbound, Inbound),
        options: &QosOptions,
        (recovery, entrance): (Option<Recovery<Box<Candidate>>>, Option<Weak<Entrance>>),
    ) -> Result<Self, QosError> {
        let peer = socket.peer_addr().map_err(QosError::system("the socket is not connected"))?;
        Inbox::stamp(&socket).map_err(QosError::system("cannot ask for time stamps"))?;
        Settings::new(options, Protocol::Udp, &session)?.apply(&socket, peer)?;
        let local = socket.local_addr().map_err(QosError::system("the socket has no address"))?;
        let reserver = Reserver::new(options, Transport::Udp, [local, peer]);
        let errors = Errors::of(&socket).map_err(QosError::system("cannot ask for errors"))?;
        Ok(Self(Arc::new(Inner {
            socket,
            errors,
            peer,
            connection: Connection::new(session, directions, reserver),
            reader: Mutex::new(DatagramReader::new(peer)),
            pacing: options.pacing,
            nonblocking: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            patience: Patience::default(),
            early: Mutex::default(),
            has_early: AtomicBool::new(false),
            entrance,
            is_replaced: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            fault: AtomicI32::new(0),
            silence: AtomicU64::new(0),
            longest_silence: options.longest_silence(),
            recovery,
        })))
    }

    /// Sends a message. If the application sends faster than was agreed on, [`Pacing`] says what happens.
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

    /// Receives a message. What does not fit in the buffer is lost. Returns its length in the buffer.
    ///
    /// # Errors
    /// As [`UdpSocket::recv`]; [`QosError::Silent`] when nothing has been heard of the other end, which is a QoS socket, for the specification's
    /// `recovery` time, or for 30 s if it says none, and at least until the event [`Event::Lost`]. If it is heard again, calls work again.
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

    /// The next event that was not taken; `None` if there is none.
    pub fn event(&self) -> Option<Event> {
        self.0.connection.event()
    }

    /// The events that were not taken, oldest first. It ends when there are no more; later there may be others.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        std::iter::from_fn(|| self.event())
    }

    /// Waits for the next event, at most so long.
    pub fn wait_for_event(&self, time: time::Duration) -> Option<Event> {
        self.0.connection.wait_for_event(duration(time))
    }

    /// Has a handler called with each event from now on, and first with those that were not taken yet. Events can be taken as before,
    /// too. An earlier handler is replaced.
    ///
    /// The thread that serves all connections calls it, and holds no lock then: the handler may call everything of this socket, but
    /// should not wait in it, since reports of all connections wait meanwhile. One that panics is called again with the next event. When
    /// this call returns, an earlier handler is running no more, unless this is called by it. A handler that owns a clone of the socket
    /// keeps it open until [`remove_handler`](Self::remove_handler).
    pub fn on_event(&self, handler: impl FnMut(Event) + Send + 'static) {
        let service = Arc::downgrade(&self.0) as Weak<dyn KeptConnection>;
        self.0.connection.set_handler(service, Box::new(handler));
    }

    /// Removes the handler of events. When this returns it is not called any more, unless this is called by the handler itself.
    pub fn remove_handler(&self) {
        self.0.connection.remove_handler();
    }

    /// All that is known of the connection.
    pub fn mib(&self) -> Mib {
        self.0.connection.mib(&self.0.socket, None)
    }

    /// Keeps a sample of each message that arrives from now on: its delay and its jitter. At most so many are kept until they are taken
    /// with [`take_samples`](Self::take_samples); of more, the oldest are forgotten. 0 ends it.
    pub fn sample(&self, most: usize) {
        self.0.connection.inbound().sample(most);
    }

    /// Takes the samples that were kept, oldest first, and how many were forgotten since they were last taken.
    pub fn take_samples(&self) -> (Vec<Sample>, u64) {
        self.0.connection.inbound().take_samples()
    }

    /// Returns the state of the reservation; `None` without a service ([`QosOptions::service`]).
    pub fn reservation(&self) -> Option<ReservationStatus> {
        self.0.connection.reservation()
    }

    /// The next event of the reservation that was not taken; `None` if there is none. It does not wait.
    pub fn reservation_event(&self) -> Option<ReservationEvent> {
        self.0.connection.reserver.as_ref()?.event()
    }

    /// Asks the other end for something else. The outcome is an [`Event`]. Until then, what was agreed on holds.
    pub fn renegotiate(&self, specification: ConnectionSpecification) {
        if self.0.connection.is_inherited() {
            return;
        }
        if let Some(recovery) = &self.0.recovery {
            recovery.specify(&specification);
        }
        self.0.act(|session, out, _| session.renegotiate(now(), specification, out));
    }

    /// Returns whether the other end is a QoS socket.
    pub fn has_qos_peer(&self) -> bool {
        matches!(self.0.connection.standing(), Standing::Joined(_))
    }

    /// Returns whether the other end is gone and a new session is being begun ([`QosOptions::reconnect`]). A
    /// socket that does not wait has to wait for [`Event::Recovered`] or [`Event::GaveUp`] then; its
    /// descriptor says nothing of use.
    pub fn is_reconnecting(&self) -> bool {
        self.0.recovery.as_ref().is_some_and(Recovery::is_under_way)
    }

    /// Returns whether a message was received already, so that [`QosUdpSocket::recv`] does not wait. The
    /// descriptor does not show it.
    pub fn has_pending(&self) -> bool {
        self.0.has_early.load(Ordering::SeqCst)
            || self.0.reader.try_lock().is_ok_and(|reader| !reader.is_empty())
    }

    /// The address of the other end.
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
    /// As [`UdpSocket::set_nonblocking`].
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.nonblocking.store(nonblocking, Ordering::Relaxed);
        self.0.is_watched.fetch_or(nonblocking, Ordering::Relaxed);
        self.0.socket.set_nonblocking(nonblocking)
    }

    /// Sets how long [`QosUdpSocket::recv`] waits.
    ///
    /// # Errors
    /// As [`UdpSocket::set_read_timeout`].
    pub fn set_read_timeout(&self, time: Option<time::Duration>) -> io::Result<()> {
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
            .field("standing", &self.0.connection.standing())
            .field("fd", &self.0.socket.as_fd())
            .finish_non_exhaustive()
    }
}

impl AsFd for QosUdpSocket {
    /// The descriptor to wait for: it is readable when a message may have come. It says nothing of messages that were received
    /// already ([`QosUdpSocket::has_pending`]): before waiting, receive until [`io::ErrorKind::WouldBlock`]. Who reads from it
    /// takes messages away.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.is_watched.store(true, Ordering::Relaxed);
        self.0.socket.as_fd()
    }
}

/// A call waits for room by itself, so that the time is known in which it does.
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
/// Messages up to this length are copied behind their header: for those the kernel takes longer to read a list of parts.
const COPIED: usize = 1 << 14;

/// Sends a datagram of a header and a message.
fn send_parts(socket: &UdpSocket, header: &[u8; DATAGRAM_HEADER], message: &[u8]) -> io::Result<usize> {
    thread_local! {
        static BUFFER: RefCell<[u8; DATAGRAM_HEADER + COPIED]> = const { RefCell::new([0; DATAGRAM_HEADER + COPIED]) };
    }
    let length = DATAGRAM_HEADER + message.len();
    if message.len() <= COPIED {
        return BUFFER.with_borrow_mut(|buffer| {
            buffer[..DATAGRAM_HEADER].copy_from_slice(header);
            buffer[DATAGRAM_HEADER..length].copy_from_slice(message);
            Ok(send(socket, &buffer[..length], SEND_FLAGS)?)
        });
    }
    let parts = [IoSlice::new(header), IoSlice::new(message)];
    let none = &mut SendAncillaryBuffer::default();
    Ok(sendmsg(socket, &parts, none, SEND_FLAGS)?)
}

/// Result of filling the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// Datagrams, perhaps control messages alone.
    Datagrams,
    /// Nothing, and nothing will: the application has shut the direction down.
    End,
}

/// Returns whether this end receives no more.
fn is_shut_down(socket: &UdpSocket) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket, PollFlags::RDHUP)];
    Ok(wait(&mut fds, Duration::ZERO)? && fds[0].revents().contains(PollFlags::RDHUP))
}

/// Returns the time from now until the next check for feedback; `None` if none is expected.
fn time_of_feedback(out: &Outbound) -> Option<Duration> {
    let rtt = out.stated_rtt().filter(|_| out.awaits_feedback())?;
    Some(if rtt.is_zero() { FIRST_LOOKS } else { rtt })
}

impl Inner {
    /// Lets the session do something, and sends what it has to send.
    fn act(&self, act: impl FnOnce(&mut Session, &mut Outbound, &mut Inbound)) -> Instant {
        let send = |message: &[u8]| {
            // A control message that is lost is sent again, or made up for by the next report. Those of a session that is over belong
            // nowhere.
            if self.is_up() {
                let _lost = self.try_to_send(|| self.socket.send(message));
            }
        };
        let mark_with = |hint: Hint| {
            let _unmarked = mark(&self.socket, self.peer, hint);
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

    /// Gives datagrams of other sessions from the other end's address to the listener. The kernel delivers them to this socket, because it
    /// is connected to that address. When another session has been agreed on there, this one is over.
    fn pass_on(&self, strangers: Strangers) {
        let entrance = self.entrance.as_ref().and_then(Weak::upgrade).filter(|_| !strangers.is_empty());
        if entrance.is_some_and(|entrance| entrance.succeed(self.peer, strangers)) {
            self.retire();
        }
    }

    /// Ends the connection in favour of another one from the same address.
    fn retire(&self) {
        if self.is_replaced.swap(true, Ordering::Relaxed) {
            return;
        }
        // Connected to itself, it receives nothing more from there. It stays bound, and a socket that is connected to nobody would take
        // datagrams away from the listener.
        let moved = self.socket.local_addr().and_then(|own| self.socket.connect(own));
        // Calls that wait for datagrams end.
        let ended = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        debug_assert!(moved.is_ok() && ended.is_ok(), "{moved:?} {ended:?}");
        let cause = Cause::Failed(QosError::Replaced.to_string());
        self.connection.tell([Event::GaveUp { after: Duration::ZERO, cause }]);
    }

    /// # Errors
    /// When the connection is over because the other end has begun another one.
    fn check_place(&self) -> io::Result<()> {
        if self.is_replaced.load(Ordering::Relaxed) { Err(QosError::Replaced.into()) } else { Ok(()) }
    }

    fn keep(self: &Arc<Self>) -> Result<(), QosError> {
        // What has happened before is told at once.
        self.act(|session, out, inbound| session.advance(now(), out, inbound));
        self.connection.keep(Arc::downgrade(self) as Weak<dyn KeptConnection>)
    }

    /// Makes a call of a direction, over a new connection if the one that holds is lost.
    fn over_any<T>(
        &self,
        direction: Direction,
        until: Option<Instant>,
        mut call: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(recovery) = &self.recovery else { return call() };
        loop {
            recovery.serve(self);
            if recovery.admit(direction)? == Admission::Up {
                let outcome = call();
                if outcome.is_ok() || recovery.is_up() {
                    return outcome;
                }
                recovery.serve(self);
            }
            recovery.wait(direction, until, !self.nonblocking.load(Ordering::Relaxed))?;
        }
    }

    fn send(&self, message: &[u8]) -> io::Result<usize> {
        self.connection.check_process()?;
        self.over_any(Direction::Send, None, || {
            self.check_place()?;
            self.take_fault()?;
            let out = self.may_send(message)?;
            let (out, now) = self.pace(out)?;
            let waits = !self.nonblocking.load(Ordering::Relaxed);
            self.transmit(out, now, message, waits)
        })
    }

    /// Checks that a message is not too long.
    fn may_send(&self, message: &[u8]) -> io::Result<MutexGuard<'_, Outbound>> {
        let out = self.connection.outbound();
        if let Some(longest) = out.longest().filter(|longest| message.len() as u64 > *longest) {
            let text = format!("a message of {} B: agreed on are at most {longest} B", message.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(out)
    }

    fn try_send(&self, message: &[u8]) -> io::Result<Attempt> {
        self.connection.check_process()?;
        self.over_any(Direction::Send, Some(Instant::ZERO), || self.try_to_transmit(message))
    }

    fn try_to_transmit(&self, message: &[u8]) -> io::Result<Attempt> {
        self.check_place()?;
        self.take_fault()?;
        let (mut out, now) = (self.may_send(message)?, now());
        let mut wait = out.ready_at(now).saturating_since(now);
        if !wait.is_zero() && out.has_rate_control() {
            // Feedback may allow it, that has come or that comes.
            out = self.with_feedback(out);
            wait = out.ready_at(now).saturating_since(now).min(LONGEST_LOOK);
        }
        if !wait.is_zero() {
            out.on_refused(now);
        }
        if !wait.is_zero() && self.pacing != Pacing::Count {
            self.connection.feed_back(|feedback| feedback.pacing_waits += 1);
            return Ok(Attempt::Early(time::Duration::from_nanos(wait.as_nanos())));
        }
        if !wait.is_zero() {
            self.connection.feed_back(|feedback| feedback.unpaced += 1);
        }
        self.transmit(out, now, message, false).map(Attempt::Sent)
    }

    /// Sends a message. While it waits for room in the send queue, the application is held back.
    fn transmit<'c>(
        &'c self,
        mut out: MutexGuard<'c, Outbound>,
        mut now: Instant,
        message: &[u8],
        waits: bool,
    ) -> io::Result<usize> {
        loop {
            if !self.is_up() {
                // The connection was lost while this has waited for its turn: the caller looks.
                return Err(io::ErrorKind::NotConnected.into());
            }
            let sent = match self.connection.standing() {
                Standing::Joining | Standing::Alone => {
                    self.try_to_send(|| Ok(send(&self.socket, message, SEND_FLAGS)?))
                }
                Standing::Joined(token) => {
                    let header = datagram_header(token, out.number(), now, out.stated_rtt());
                    let sent = self.try_to_send(|| send_parts(&self.socket, &header, message));
                    sent.map(|sent| sent.saturating_sub(DATAGRAM_HEADER))
                }
            };
            let error = match sent {
                Ok(sent) => {
                    self.release(&mut out, now);
                    out.on_send(now, sent as u64);
                    if let Some(time) = time_of_feedback(&out) {
                        self.connection.hasten(now.saturating_add(time));
                    }
                    return Ok(sent);
                }
                Err(error) => error,
            };
            let errno = Errno::from_io_error(&error);
            self.connection.feed_back(|feedback| match errno {
                Some(Errno::NOBUFS) => feedback.no_buffers += 1,
                Some(Errno::AGAIN) => feedback.queue_full += 1,
                _ => {}
            });
            if errno != Some(Errno::AGAIN) {
                return Err(error);
            }
            if !self.is_held.swap(true, Ordering::Relaxed) {
                out.hold(now);
            }
            if !waits {
                return Err(error);
            }
            drop(out);
            let waited = self.wait_for_room();
            (out, now) = (self.connection.outbound(), cutline_sys::now());
            self.release(&mut out, now);
            waited?;
        }
    }

    /// The application that was held back by a full queue is so no longer.
    fn release(&self, out: &mut Outbound, now: Instant) {
        if self.is_held.load(Ordering::Relaxed) {
            self.is_held.store(false, Ordering::Relaxed);
            out.release(now);
        }
    }

    /// Waits until the send queue has room.
    fn wait_for_room(&self) -> io::Result<()> {
        let mut writable = [PollFd::new(&self.socket, PollFlags::OUT)];
        while self.is_up() {
            if signals::wait_long(&mut writable, Duration::MAX)? {
                break;
            }
        }
        Ok(())
    }

    /// Notices that there is room for an application that does not wait.
    fn notice_room(&self, now: Instant) {
        if self.is_held.load(Ordering::Relaxed)
            && self.nonblocking.load(Ordering::Relaxed)
            && wait(&mut [PollFd::new(&self.socket, PollFlags::OUT)], Duration::ZERO).unwrap_or(true)
        {
            self.release(&mut self.connection.outbound(), now);
        }
    }

    /// Makes a call that sends a datagram. What a plain socket does not see is no error.
    fn try_to_send<T>(&self, call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let outcome = self.errors.retry((&self.socket, &self.connection), call);
        if let Err(error) = &outcome {
            self.notice(error);
        }
        outcome
    }

    /// The error of a call that receives, if the application is to see it.
    fn shown(&self, error: io::Error) -> io::Result<()> {
        match self.errors.judge(&self.socket, error) {
            Judged::Shown(error) => {
                self.notice(&error);
                Err(error)
            }
            Judged::Hidden(messages, _) => {
                count(&self.connection, messages);
                Ok(())
            }
        }
    }

    /// Waits until the next message may be sent, as the application has chosen.
    fn pace<'c>(
        &'c self,
        mut out: MutexGuard<'c, Outbound>,
    ) -> io::Result<(MutexGuard<'c, Outbound>, Instant)> {
        let start = now();
        let (mut time, mut looked) = (start, false);
        loop {
            let ready = out.ready_at(time);
            if ready <= time {
                break;
            }
            let is_controlled = out.has_rate_control();
            if is_controlled && !looked {
                // Feedback that has come may allow it.
                (out, looked) = (self.with_feedback(out), true);
                continue;
            }
            let waits = self.pacing == Pacing::Block && !self.nonblocking.load(Ordering::Relaxed);
            if self.pacing == Pacing::Count {
                out.on_refused(time);
                self.connection.feed_back(|feedback| feedback.unpaced += 1);
                break;
            }
            if !waits {
                out.on_refused(time);
                self.connection.feed_back(|feedback| feedback.pacing_waits += 1);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            out.hold(time);
            drop(out);
            let wait = ready.saturating_since(time);
            let waited = if is_controlled { self.sleep_or_hear(wait) } else { sleep(wait) };
            out = self.connection.outbound();
            time = now();
            out.release(time);
            waited?;
        }
        if time > start {
            self.connection.feed_back(|feedback| {
                feedback.pacing_waits += 1;
                feedback.waited += time.saturating_since(start);
            });
        }
        Ok((out, time))
    }

    /// Takes the feedback that has come.
    fn with_feedback<'c>(&'c self, out: MutexGuard<'c, Outbound>) -> MutexGuard<'c, Outbound> {
        drop(out);
        if let Ok(mut reader) = self.reader.try_lock() {
            self.hear(&mut reader);
        }
        self.connection.outbound()
    }

    /// Waits for the turn of a message, at most so long: feedback that comes may bring it forward. While another thread receives,
    /// it is that one that gets the feedback.
    fn sleep_or_hear(&self, wait_for: Duration) -> io::Result<()> {
        let wait_for = wait_for.min(LONGEST_LOOK);
        if let Ok(mut reader) = self.reader.try_lock()
            && reader.is_empty()
        {
            let mut readable = [PollFd::new(&self.socket, PollFlags::IN)];
            match signals::wait(&mut readable, wait_for) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(_) | Ok(false) => return Ok(()),
                Ok(true) if self.hear(&mut reader) => return Ok(()),
                Ok(true) => {}
            }
        }
        sleep(wait_for)
    }

    /// Takes what has come while the application does not receive. Returns whether it took something. An error is the application's
    /// to see, with its next call.
    fn hear(&self, reader: &mut DatagramReader) -> bool {
        if !reader.is_empty() {
            return false;
        }
        if self.is_watched.load(Ordering::Relaxed) {
            return self.take_control(reader);
        }
        match self.fill(reader, Wait::No) {
            Ok(filled) => filled == Filled::Datagrams,
            Err(error) => {
                self.put_off(&error);
                false
            }
        }
    }

    /// Keeps an error for the next call that finds no datagram: the kernel reports it once. Returns whether it is kept: a
    /// connection that is made again is lost by it, and what ends a wait is of the call alone.
    fn put_off(&self, error: &io::Error) -> bool {
        let is_of_call = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
        match error.raw_os_error() {
            Some(errno) if self.recovery.is_none() && !is_of_call => {
                self.fault.store(errno, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Takes the datagrams that wait if an error is kept: they came before it, but the kernel reports errors first.
    ///
    /// # Errors
    /// The error, if no datagram waits.
    fn take_fault_behind_datagrams(&self, reader: &mut DatagramReader) -> io::Result<()> {
        while self.fault.load(Ordering::Relaxed) != 0 && reader.is_empty() {
            if !matches!(self.fill(reader, Wait::No), Ok(Filled::Datagrams)) {
                return self.take_fault();
            }
        }
        Ok(())
    }

    /// The error that was kept for the next call.
    ///
    /// # Errors
    /// That one.
    fn take_fault(&self) -> io::Result<()> {
        if self.fault.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        match self.fault.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn recv(&self, buffer: &mut [u8]) -> io::Result<(usize, Instant)> {
        self.connection.check_process()?;
        let until = self.patience.until();
        if self.recovery.is_none() {
            return self.recv_until(&mut lock(&self.reader), buffer, &until);
        }
        // What came before the loss comes first.
        if let Some(message) = lock(&self.reader).take(buffer) {
            return Ok(message);
        }
        self.over_any(Direction::Receive, until.time(), || {
            let mut reader = lock(&self.reader);
            if !self.is_up() {
                return Err(io::ErrorKind::NotConnected.into());
            }
            self.recv_until(&mut reader, buffer, &until)
        })
    }

    fn recv_until(
        &self,
        reader: &mut DatagramReader,
        buffer: &mut [u8],
        until: &Until,
    ) -> io::Result<(usize, Instant)> {
        loop {
            self.take_early(reader);
            if let Some(message) = reader.take(buffer) {
                return Ok(message);
            }
            self.check_place()?;
            let waits = !self.nonblocking.load(Ordering::Relaxed);
            self.take_fault_behind_datagrams(reader)?;
            if !reader.is_empty() {
                continue;
            }
            let may_end =
                waits && (self.recovery.is_some() || self.entrance.is_some() || self.is_watching_silence());
            match self.fill(reader, if may_end { Wait::No } else { Wait::ForOne }) {
                Ok(Filled::End) => {
                    self.check_place()?;
                    return Ok((0, now()));
                }
                Err(error) if may_end && error.kind() == io::ErrorKind::WouldBlock => {
                    self.connection.note_read();
                    if self.wait_for_datagrams(until)? == Filled::End {
                        return Ok((0, now()));
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.connection.note_read();
                    return Err(self.silent().map_or(error, io::Error::from));
                }
                Ok(Filled::Datagrams) => self.silence.store(0, Ordering::Relaxed),
                Err(error) if self.put_off(&error) => continue,
                Err(error) => {
                    signals::again(until, &self.socket, error)?;
                    continue;
                }
            }
            if !reader.is_empty() {
                continue;
            }
            // Control messages alone have come, which do not make the time longer.
            if !may_end {
                until.wait(&self.socket)?;
            }
        }
    }

    /// Returns whether an end that is silent for too long ends a call that receives. Only one that takes part
    /// reports, so that its silence means something; a connection that is made again ends in another way.
    fn is_watching_silence(&self) -> bool {
        self.recovery.is_none() && matches!(self.connection.standing(), Standing::Joined(_))
    }

    /// The error of a call that receives from an end that has been silent for too long.
    fn silent(&self) -> Option<QosError> {
        let silence = self.silence.load(Ordering::Relaxed);
        (silence > 0).then(|| QosError::Silent(Duration::from_nanos(silence)))
    }

    /// Notices that the other end has been silent for so long that nothing more is expected of it, or that it is heard again.
    fn note_silence(&self, silence: Duration, longest: Duration) {
        let is_over = self.is_watching_silence() && silence >= longest.max(self.longest_silence);
        let before = self.silence.swap(if is_over { silence.as_nanos() } else { 0 }, Ordering::Relaxed);
        if is_over && before == 0 {
            self.connection.tell([Event::GaveUp { after: silence, cause: Cause::Silence(silence) }]);
        }
    }

    /// Waits where nothing tells the kernel that the other end is gone, so that it would wait for ever.
    fn wait_for_datagrams(&self, until: &Until) -> io::Result<Filled> {
        let mut readable = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::RDHUP)];
        loop {
            self.check_place()?;
            if !self.is_up() {
                return Err(io::ErrorKind::NotConnected.into());
            }
            if let Some(silent) = self.silent() {
                return Err(silent.into());
            }
            if self.has_early.load(Ordering::SeqCst) {
                return Ok(Filled::Datagrams);
            }
            let left = until.time().map_or(Duration::MAX, |until| until.saturating_since(now()));
            // Another thread takes a connection that is lost down.
            let wait = if self.recovery.is_some() { signals::wait } else { signals::wait_long };
            if wait(&mut readable, left)? {
                // A call that does not wait does not say it.
                let is_over = readable[0].revents().contains(PollFlags::RDHUP);
                self.check_place()?;
                return Ok(if is_over { Filled::End } else { Filled::Datagrams });
            }
            if left.is_zero() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Receives datagrams into an empty reader, measures them, and handles those that are control messages.
    fn fill(&self, reader: &mut DatagramReader, wait: Wait) -> io::Result<Filled> {
        let count = match reader.fill(&self.socket, wait) {
            Ok(count) => count,
            Err(error) => return self.shown(error).map(|()| Filled::Datagrams),
        };
        // A direction that was shut down reads like empty datagrams, as many as there is room for.
        if reader.has_only_empty(count) && is_shut_down(&self.socket)? {
            return Ok(Filled::End);
        }
        let ((control, strangers), due) = {
            let mut inbound = self.connection.inbound();
            (reader.sort(count, self.connection.standing(), &mut inbound), inbound.feedback_due())
        };
        self.pass_on(strangers);
        self.handle(&control);
        self.feed_back(due);
        // Only an end that takes no part sends something else while this one negotiates.
        if self.connection.standing() == Standing::Joining && !reader.is_empty() {
            self.act(|session, out, inbound| session.on_foreign(now(), out, inbound));
        }
        Ok(Filled::Datagrams)
    }

    /// Sends the feedback for the other end's rate control, now or when it is due.
    fn feed_back(&self, due: Instant) {
        if due == Instant::FAR_FUTURE {
            return;
        }
        if due <= now() {
            self.act(|session, out, inbound| session.advance(now(), out, inbound));
        } else {
            self.connection.hasten(due);
        }
    }

    /// Returns whether a message waits in the kernel that is left there for an application which waits for the descriptor.
    fn has_message_in_kernel(&self) -> bool {
        let waits = |length| length > 0;
        self.is_watched.load(Ordering::Relaxed) && ioctl_fionread(&self.socket).is_ok_and(waits)
    }

    fn handle(&self, messages: &[ControlMessage]) {
        for ControlMessage { at, control, bytes } in messages {
            let mut is_strange = false;
            self.act(|session, out, inbound| {
                is_strange = session.is_of_another(bytes);
                session.on_control(*at, *control, bytes, out, inbound);
            });
            if is_strange {
                self.pass_on(vec![(*at, bytes.clone())]);
            }
        }
    }

    /// Takes control messages that come next, and leaves messages of the application in the kernel, where the descriptor shows
    /// them. They are measured when the application receives them, with the kernel's time of arrival. Returns whether it took
    /// something.
    fn take_control(&self, reader: &mut DatagramReader) -> bool {
        let mut took = false;
        for _ in 0..MOST_CONTROL {
            let standing = self.connection.standing();
            let taken = reader.take_control(&self.socket, standing, &mut self.connection.inbound());
            match taken {
                Ok(Some(taken)) => {
                    took = true;
                    match taken {
                        Taken::Control(message) => self.handle(&[message]),
                        Taken::Stranger(at, bytes) => self.pass_on(vec![(at, bytes)]),
                        Taken::Other => {}
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    if let Err(error) = self.shown(error) {
                        self.put_off(&error);
                        break;
                    }
                }
            }
        }
        took
    }

    /// Takes datagrams that were received by the listener's socket. A call that receives looks for them.
    pub(super) fn hand_over(&self, datagrams: impl IntoIterator<Item = (Instant, Vec<u8>)>) {
        let mut early = lock(&self.early);
        early.extend(datagrams);
        early.truncate(MOST_EARLY);
        self.has_early.store(!early.is_empty(), Ordering::SeqCst);
    }

    /// Takes what was handed over into the reader.
    fn take_early(&self, reader: &mut DatagramReader) {
        if !self.has_early.swap(false, Ordering::SeqCst) {
            return;
        }
        let mut found = Vec::new();
        {
            let datagrams = std::mem::take(&mut *lock(&self.early));
            let mut inbound = self.connection.inbound();
            for (at, mut bytes) in datagrams {
                match inbound.on_datagram(at, &bytes, self.connection.standing()) {
                    Purpose::Message(start) => reader.add(at, bytes.split_off(start)),
                    Purpose::Control(control) => found.push(ControlMessage { at, control, bytes }),
                    Purpose::Nothing => {}
                }
            }
        }
        self.handle(&found);
        let due = self.connection.inbound().feedback_due();
        self.feed_back(due);
    }
}

impl KeptConnection for Inner {
    fn call_handler(&self) {
        self.connection.call_handler();
    }

    fn serve(&self, now: Instant) -> Instant {
        if let Some(due) = self.recovery.as_ref().and_then(|recovery| recovery.serve(self)) {
            return due;
        }
        // While the application waits for messages it reads what comes.
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
