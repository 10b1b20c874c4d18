//! Accepting datagram connections.

use super::carrier::{DatagramCarrier, lacks_room};
use super::inbox::CarrierInbox;
use super::reader::Stranger;
use super::{Inner, QosUdpSocket};
use crate::connecting::first_listener;
use crate::error::QosError;
use crate::options::{Peer, QosOptions};
use crate::session::{Role, begin};
use crate::settings::Settings;
use crate::signals;
use cutline_direct::DirectSocket;
use cutline_signal::frame::{self, Frame};
use cutline_signal::negotiation::Carrier;
use cutline_signal::session::{Inbound, Opening, Outbound, Session, SessionEvent};
use cutline_sys::datagrams::{Inbox, Wait};
use cutline_sys::local_address::{self, LocalAddress};
use cutline_sys::lock;
use cutline_sys::now;
use cutline_sys::process::generation;
use cutline_sys::reactor::{PollFd, PollFlags};
use cutline_units::Instant;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A socket that datagram connections come to.
///
/// Every peer gets a separate socket, connected to it, on the same port. One that is no QoS socket is accepted with its
/// first datagram, unless [`Peer::Speaks`] or a key demands one.
pub struct QosUdpListener {
    pub(super) state: Arc<ListenerState>,
    nonblocking: AtomicBool,
    /// Fork generation of the creating process. Another process would take datagrams of a negotiation away.
    generation: u32,
}

/// State that a listener shares with the connections that it has accepted.
pub struct ListenerState {
    socket: DatagramCarrier,
    options: QosOptions,
    arrivals: Mutex<Arrivals>,
}

/// Arrivals that were not accepted.
struct Arrivals {
    inbox: CarrierInbox,
    /// Ends that negotiate, by their addresses.
    joining: BTreeMap<SocketAddr, Joining>,
    /// Connections that can be accepted.
    ready: VecDeque<Ready>,
    /// Connections that were accepted, by the addresses of their peers.
    accepted: BTreeMap<SocketAddr, Accepted>,
}

/// A connection that was accepted.
struct Accepted {
    socket: Weak<Inner>,
    /// The address of this host that it has addressed.
    to: Option<LocalAddress>,
}

/// A connection that can be accepted.
struct Ready {
    peer: SocketAddr,
    /// The address of this host that it has asked.
    to: Option<LocalAddress>,
    session: Session,
    directions: (Outbound, Inbound),
    /// Datagrams that have arrived for it.
    early: Vec<(Instant, Vec<u8>)>,
}

/// An end that negotiates.
struct Joining {
    /// The address of this host that it has asked.
    to: Option<LocalAddress>,
    session: Session,
    directions: (Outbound, Inbound),
    since: Instant,
    /// Bytes received from it, and bytes sent to it.
    received: usize,
    sent: usize,
}

impl Joining {
    fn deadline(&self) -> Instant {
        self.session.deadline(&self.directions.0, &self.directions.1)
    }
}

/// Number of datagrams that one system call returns.
const BATCH: usize = 16;
/// The most ends that negotiate at a time, and the most connections that wait to be accepted. Further ones are dropped, as
/// the kernel does with TCP's.
const BACKLOG: usize = 128;
/// Number of bytes that are sent unasked to an address for each byte received from it, since it may be false
/// (RFC 9000 section 8.1).
const UNPROVEN: usize = 3;
/// The most datagrams that are kept of a connection that waits to be accepted.
const MOST_EARLY: usize = 64;

impl QosUdpListener {
    /// Listens at an address; of a name, at the first one that can be used.
    ///
    /// # Errors
    /// When the address is in use or is none of this machine.
    pub fn bind(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        first_listener(address, options, Self::bind_to)
    }

    fn bind_to(address: SocketAddr, options: &QosOptions) -> Result<Self, QosError> {
        let doing = "cannot listen";
        let socket = open(address).map_err(QosError::system(doing))?;
        // Each end is answered from the address that it has addressed.
        local_address::ask(&socket).map_err(QosError::system("cannot enable local addresses"))?;
        Inbox::prepare(&socket).map_err(QosError::system("cannot enable time stamps"))?;
        // It negotiates for ends that were not accepted yet.
        Settings::of_listener(options)?.mark_listener(&socket, address)?;
        Ok(Self::over(socket.into(), options))
    }

    /// Listens on a socket for frames.
    pub(super) fn bind_direct(socket: DirectSocket, options: &QosOptions) -> Result<Self, QosError> {
        let carrier = DatagramCarrier::Direct(socket);
        carrier.prepare()?;
        Settings::of_listener(options)?
            .mark_carrier(&carrier, carrier.local_addr().map_err(QosError::system("cannot listen"))?)?;
        Ok(Self::over(carrier, options))
    }

    fn over(socket: DatagramCarrier, options: &QosOptions) -> Self {
        let arrivals = Arrivals {
            inbox: CarrierInbox::listening(&socket, BATCH),
            joining: BTreeMap::new(),
            ready: VecDeque::new(),
            accepted: BTreeMap::new(),
        };
        let state = ListenerState { socket, options: options.clone(), arrivals: Mutex::new(arrivals) };
        Self { state: Arc::new(state), nonblocking: AtomicBool::new(false), generation: generation() }
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// When the system refuses another socket, or the listener's socket has an error. Without a free descriptor, memory or the thread that serves
    /// connections ([`io::ErrorKind::OutOfMemory`]), the connection waits for the next call, as one of TCP does.
    /// [`io::ErrorKind::WouldBlock`] when the listener does not wait ([`QosUdpListener::set_nonblocking`]) and there is none.
    pub fn accept(&self) -> io::Result<(QosUdpSocket, SocketAddr)> {
        self.check_process()?;
        let ListenerState { socket, options, arrivals } = &*self.state;
        options.start_threads()?;
        loop {
            let mut arrivals = lock(arrivals);
            arrivals.receive(socket, socket, options, None)?;
            if let Some(peer) = arrivals.ready.front().map(|ready| ready.peer) {
                return Ok((self.connect(peer, &mut arrivals)?, peer));
            }
            let due = arrivals.advance(socket, options);
            drop(arrivals);
            if self.nonblocking.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            signals::wait(&mut [PollFd::new(socket, PollFlags::IN)], due.saturating_since(now()))?;
        }
    }

    /// Sets whether [`QosUdpListener::accept`] waits. One that does not wait has to be called when a datagram has come, and
    /// now and then besides: it also repeats lost messages.
    ///
    /// # Errors
    /// As [`UdpSocket::set_nonblocking`]; [`QosError::Inherited`] in a child by fork(2), which would change its parent's socket.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.check_process()?;
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
        self.state.socket.set_nonblocking(nonblocking)
    }

    /// The address of this socket.
    ///
    /// # Errors
    /// As [`UdpSocket::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.state.socket.local_addr()
    }

    /// # Errors
    /// [`QosError::Inherited`] in a copy of the process.
    fn check_process(&self) -> Result<(), QosError> {
        if self.generation == generation() { Ok(()) } else { Err(QosError::Inherited) }
    }

    /// Makes the socket of a connection that is ready.
    fn connect(&self, peer: SocketAddr, arrivals: &mut Arrivals) -> io::Result<QosUdpSocket> {
        let ListenerState { socket: listener, options, .. } = &*self.state;
        let to = arrivals.ready.iter().find(|ready| ready.peer == peer).and_then(|ready| ready.to);
        let here = listener.local_addr()?;
        let here = to.map_or(here, |to| to.with_port(here.port()));
        let socket = match listener.accept(here, peer) {
            // The connection waits for the next call.
            Err(error) if lacks_room(&error) => return Err(error),
            socket => socket,
        };
        // Earlier datagrams for it are in this listener's queue; later ones are not.
        arrivals.receive(listener, listener, options, None)?;
        if let Ok(socket @ DatagramCarrier::Udp(_)) = &socket {
            // Until it was connected, the kernel took it for another listener: datagrams of any end may be in its queue. A datagram may arrive there
            // even later, because another processor was about to put it there. The reader passes it on.
            arrivals.receive(socket, listener, options, to)?;
        }
        let place = arrivals.ready.iter().position(|ready| ready.peer == peer);
        let ready = place.and_then(|place| arrivals.ready.remove(place));
        let Ready { session, directions, early, .. } = ready.ok_or(io::ErrorKind::ConnectionAborted)?;
        let state = Some(Arc::downgrade(&self.state));
        let made = QosUdpSocket::new(socket?, session, directions, options, (None, state));
        if made.is_err() {
            self.state.release(peer);
        }
        let this = made?;
        lock(&this.0.reader).take_over(&mut arrivals.inbox, here.port());
        this.0.hand_over(early);
        this.0.keep()?;
        arrivals.accepted.retain(|_, accepted| accepted.socket.strong_count() > 0);
        arrivals.accepted.insert(peer, Accepted { socket: Arc::downgrade(&this.0), to });
        Ok(this)
    }
}

impl Drop for QosUdpListener {
    /// Closes the socket, so that its port is free afterwards, although a connection may use the state for a moment.
    fn drop(&mut self) {
        let _later = self.state.socket.vacate();
    }
}

impl fmt::Debug for QosUdpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QosUdpListener")
            .field("local", &self.state.socket.local_addr().ok())
            .field("fd", &self.state.socket.as_fd())
            .finish_non_exhaustive()
    }
}

impl AsFd for QosUdpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.state.socket.as_fd()
    }
}

/// Opens a socket whose address no other socket has, except connections of an earlier listener.
fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    match bind(&socket, &address) {
        Err(Errno::ADDRINUSE) => {
            // Connections allow it, and listeners and other sockets do not, unless they were made to.
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, &address)?;
            sockopt::set_socket_reuseaddr(&socket, false)?;
        }
        bound => bound?,
    }
    Ok(socket.into())
}

/// Returns whether a datagram belongs to a session with a listener that is gone, such as one before this program was started again. Its
/// end takes part, so that the datagram is no plain message, and has to start again.
fn is_left_over(datagram: &[u8], options: &QosOptions) -> bool {
    options.peer != Peer::Plain && frame::token_of(datagram).is_some()
}

impl ListenerState {
    /// Receives datagrams of a peer again, whose connection is over.
    pub fn release(&self, peer: SocketAddr) {
        self.socket.release(peer);
    }

    /// Takes datagrams of other sessions that have come to a connection.
    ///
    /// Of its peer's address, a program that was started again, or another one that got the same port, negotiates again. Returns whether
    /// it has agreed, which shows that it is there (as RFC 6347 section 4.2.8 demands): then it can be accepted, and the connection before
    /// it is over.
    pub fn take_strangers(&self, connection: &Inner, strangers: Vec<Stranger>) -> bool {
        let peer = connection.peer;
        let mut arrivals = lock(&self.arrivals);
        for Stranger { from, at, bytes } in strangers {
            if from == peer {
                arrivals.take_successor(&self.socket, &self.options, connection, at, bytes);
            } else {
                // All that comes to a connection comes to the same address of this host.
                let to = arrivals.accepted.get(&peer).and_then(|accepted| accepted.to);
                arrivals.take(&self.socket, &self.options, (from, to), at, bytes);
            }
        }
        let is_ready = arrivals.ready.iter().any(|ready| ready.peer == peer);
        if is_ready {
            arrivals.accepted.remove(&peer);
        }
        is_ready
    }
}

impl Arrivals {
    /// Takes all datagrams that have come to a socket. Answers are sent by the listener's. A datagram without information on the address of this host that it
    /// was sent to counts as sent to `here`.
    fn receive(
        &mut self,
        from: &DatagramCarrier,
        listener: &DatagramCarrier,
        options: &QosOptions,
        here: Option<LocalAddress>,
    ) -> io::Result<()> {
        loop {
            let count = match self.inbox.fill(from, Wait::No) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            for number in 0..count {
                let Some(from) = self.inbox.sender(number) else { continue };
                let (to, at) = (self.inbox.receiver(number).or(here), self.inbox.arrival(number));
                let bytes = self.inbox.head(number).to_vec();
                self.take(listener, options, (from, to), at, bytes);
            }
        }
    }

    fn take(
        &mut self,
        socket: &DatagramCarrier,
        options: &QosOptions,
        (from, to): (SocketAddr, Option<LocalAddress>),
        at: Instant,
        bytes: Vec<u8>,
    ) {
        let Some(bytes) = self.keep_early(from, at, bytes) else { return };
        // The kernel may have been about to put it into this queue when the connection's socket was connected. Frames have come to both.
        if let Some(socket) = self.accepted.get(&from).and_then(|accepted| accepted.socket.upgrade()) {
            if matches!(socket.socket, DatagramCarrier::Udp(_)) {
                socket.hand_over([(at, bytes)]);
            }
            return;
        }
        if !self.joining.contains_key(&from)
            && (is_left_over(&bytes, options) || !self.begin(options, (from, to), at))
        {
            return;
        }
        self.open(socket, options, from, at, bytes);
    }

    /// Keeps a datagram for its connection if that one waits to be accepted. Returns one that belongs elsewhere.
    fn keep_early(&mut self, from: SocketAddr, at: Instant, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let Some(ready) = self.ready.iter_mut().find(|ready| ready.peer == from) else { return Some(bytes) };
        if ready.early.len() < MOST_EARLY {
            ready.early.push((at, bytes));
        }
        None
    }

    /// Takes a datagram of an end that negotiates.
    fn open(
        &mut self,
        socket: &DatagramCarrier,
        options: &QosOptions,
        from: SocketAddr,
        at: Instant,
        bytes: Vec<u8>,
    ) {
        // While an earlier connection from this address is there, it may be forged in the peer's name.
        let is_successor =
            self.accepted.get(&from).is_some_and(|accepted| accepted.socket.strong_count() > 0);
        let is_left_over = is_left_over(&bytes, options);
        let Some(joining) = self.joining.get_mut(&from) else { return };
        joining.received += bytes.len();
        let Joining { session, directions: (out, inbound), .. } = joining;
        match session.on_opening(at, &bytes, out, inbound) {
            Opening::Negotiation => return self.answer(socket, from, true),
            Opening::Confirmed => {}
            Opening::Foreign if is_successor || is_left_over => return,
            Opening::Foreign if options.requires_qos_peer() => {
                self.joining.remove(&from);
                return;
            }
            Opening::Foreign => session.on_foreign(at, out, inbound),
        }
        self.finish(from, vec![(at, bytes)]);
    }

    /// Takes a datagram that has come to an accepted connection and does not belong to its session.
    fn take_successor(
        &mut self,
        socket: &DatagramCarrier,
        options: &QosOptions,
        before: &Inner,
        at: Instant,
        bytes: Vec<u8>,
    ) {
        let peer = before.peer;
        let Some(bytes) = self.keep_early(peer, at, bytes) else { return };
        let accepted = self.accepted.get(&peer);
        let to = accepted.and_then(|accepted| accepted.to);
        let successor = accepted.and_then(|accepted| accepted.socket.upgrade());
        if let Some(successor) = successor.filter(|socket| !std::ptr::eq(&raw const **socket, before)) {
            successor.hand_over([(at, bytes)]);
            return;
        }
        let begins = frame::datagram(&bytes, None) == Frame::Negotiation;
        if self.joining.contains_key(&peer) || (begins && self.begin(options, (peer, to), at)) {
            self.open(socket, options, peer, at, bytes);
        }
    }

    /// Another end has agreed, or takes no part: it can be accepted.
    fn finish(&mut self, peer: SocketAddr, early: Vec<(Instant, Vec<u8>)>) {
        if let Some(Joining { to, session, directions, .. }) = self.joining.remove(&peer) {
            self.ready.push_back(Ready { peer, to, session, directions, early });
        }
    }

    /// Starts negotiating with a new peer. Returns whether there was room.
    fn begin(
        &mut self,
        options: &QosOptions,
        (from, to): (SocketAddr, Option<LocalAddress>),
        at: Instant,
    ) -> bool {
        if self.ready.len() >= BACKLOG {
            return false;
        }
        if self.joining.len() >= BACKLOG {
            // One that has not gone on for the longest is likely not there.
            let oldest = self.joining.iter().min_by_key(|(_, joining)| joining.since).map(|(from, _)| *from);
            oldest.map(|from| self.joining.remove(&from));
        }
        let role = if options.peer == Peer::Plain { Role::Alone } else { Role::Responder };
        let Ok(session) = begin(options, &role, Carrier::Datagrams) else { return false };
        let directions = session.directions(at);
        self.joining.insert(from, Joining { to, session, directions, since: at, received: 0, sent: 0 });
        true
    }

    /// Sends the messages of a session. A session with an agreement can be accepted; a refused one is dropped.
    fn answer(&mut self, socket: &DatagramCarrier, peer: SocketAddr, is_asked: bool) {
        let Some(Joining { to, session, received, sent, .. }) = self.joining.get_mut(&peer) else { return };
        while let Some(message) = session.transmit() {
            if is_asked || *sent + message.len() <= UNPROVEN * *received {
                *sent += message.len();
                // One that is lost is sent again.
                let _lost = socket.send_from(&message, peer, *to);
            }
        }
        if session.token().is_some() {
            self.finish(peer, Vec::new());
        } else if session.event().is_some_and(|event| matches!(event, SessionEvent::Refused { .. })) {
            self.joining.remove(&peer);
        }
    }

    /// Handles due deadlines. Returns the next one.
    fn advance(&mut self, socket: &DatagramCarrier, options: &QosOptions) -> Instant {
        let now = now();
        let due: Vec<SocketAddr> =
            self.joining.iter().filter(|(_, it)| it.deadline() <= now).map(|(from, _)| *from).collect();
        for from in due {
            if let Some(Joining { session, directions: (out, inbound), .. }) = self.joining.get_mut(&from) {
                session.advance(now, out, inbound);
                self.answer(socket, from, false);
            }
        }
        let longest = options.negotiation.give_up;
        self.joining.retain(|_, joining| now.saturating_since(joining.since) <= longest);
        self.joining.values().map(Joining::deadline).min().unwrap_or(Instant::FAR_FUTURE)
    }
}
