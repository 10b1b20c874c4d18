//! Carrying datagrams: each that comes is a message of a QoS connection, and the other way round.
//!
//! At the near gateway, the datagrams of one program's address are one connection. Datagrams have no end, so a connection ends when there were none
//! for a while, or the other gateway is gone. A datagram that is longer than was agreed on is not sent, and one for which too many
//! wait is dropped, as in any queue; both are counted.
//!
//! One thread serves a route. Connecting waits for the other gateway, so a few more threads do that, and no more than a few: a
//! datagram's source may be false.

use crate::exchange::{Exchanges, OWN_NUMBERS, Plain, Server, TURN};
use crate::shared::Shared;
use cutline_socket::{QosError, QosUdpListener, QosUdpSocket};
use cutline_sys::address::lookup;
use cutline_sys::datagram_server::{DatagramServer, Ends};
use cutline_sys::now;
use cutline_sys::reactor::EventFlags;
use cutline_text::Printable;
use cutline_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Pause after a failed connection before the program's next datagram begins another one.
const PAUSE: Duration = Duration::from_secs(1);
/// The most programs of which that is remembered.
const MOST_REMEMBERED: usize = 4096;
/// Interval between calls of a nonblocking listener: it retransmits lost messages.
const CALL_EVERY: Duration = Duration::from_millis(50);
/// Time for which nothing is accepted after the system has refused it.
const REFUSED_FOR: Duration = Duration::from_millis(100);
/// The most connections that are made at a time.
const MOST_CONNECTING: usize = 16;

/// The most connections that wait for a place at the far gateway.
const MOST_PLACELESS: usize = 128;

/// The numbers of the descriptors in a reactor.
const LISTENER: u32 = 0;
const CONNECTED: u32 = 1;

/// A connection that was made, or not, by the number of its exchange.
type Outcome = (u32, Result<QosUdpSocket, QosError>);

/// The programs of a near gateway.
struct Programs<'s> {
    server: DatagramServer,
    exchanges: Exchanges<'s>,
    by_ends: BTreeMap<Ends, u32>,
    /// Programs for which no connection was made, and the time of the failure.
    failed: BTreeMap<Ends, Instant>,
    /// Exchanges that wait for a thread that connects.
    unconnected: Vec<u32>,
    connecting: usize,
    outcomes: Receiver<Outcome>,
    /// Channel for the outcome of a thread that connects.
    sender: Sender<Outcome>,
    wakes: UnixStream,
    waker: Arc<UnixStream>,
}

/// Takes programs' datagrams until the gateway ends.
pub fn near(shared: &Arc<Shared>, route: usize, server: DatagramServer) {
    let carried = Programs::new(shared, route, server).and_then(|mut programs| programs.carry());
    if let Err(error) = carried {
        shared.tell(format_args!("{}: datagrams are no longer carried: {error}", shared.book.route(route)));
    }
}

impl<'s> Programs<'s> {
    fn new(shared: &'s Arc<Shared>, route: usize, server: DatagramServer) -> io::Result<Self> {
        let exchanges = Exchanges::new(shared, route)?;
        exchanges.reactor.add(&server, LISTENER, EventFlags::IN)?;
        let (wakes, waker) = UnixStream::pair()?;
        wakes.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        exchanges.reactor.add(&wakes, CONNECTED, EventFlags::IN)?;
        let (sender, outcomes) = channel();
        Ok(Self {
            server,
            exchanges,
            by_ends: BTreeMap::new(),
            failed: BTreeMap::new(),
            unconnected: Vec::new(),
            connecting: 0,
            outcomes,
            sender,
            wakes,
            waker: Arc::new(waker),
        })
    }

    fn carry(&mut self) -> io::Result<()> {
        while !self.exchanges.shared.stop.is_set() {
            let deadline = self.exchanges.deadline();
            let ready: Vec<u32> = self.exchanges.reactor.wait(deadline)?.map(|(number, _)| number).collect();
            for number in ready {
                match number {
                    LISTENER => self.hear_programs(),
                    CONNECTED => self.take_outcomes(),
                    number => self.exchanges.serve(number, Some(&self.server)),
                }
            }
            self.exchanges.advance(Some(&self.server));
            self.forget_ended();
            self.connect_some();
        }
        self.exchanges.end_all();
        Ok(())
    }

    /// Takes datagrams of programs.
    fn hear_programs(&mut self) {
        for _ in 0..TURN {
            match self.server.receive(&mut self.exchanges.buffer) {
                Ok((length, ends)) => self.hear(ends, length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The kernel reports a program that has gone.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) => {}
                Err(error) => {
                    let shared = self.exchanges.shared;
                    return shared.tell(format_args!(
                        "{}: cannot receive: {error}",
                        shared.book.route(self.exchanges.route)
                    ));
                }
            }
        }
    }

    fn hear(&mut self, ends: Ends, length: usize) {
        let known = self.by_ends.get(&ends).copied();
        let Some(number) = known.or_else(|| self.begin(ends)) else { return };
        let datagram = self.exchanges.buffer[..length].to_vec();
        self.exchanges.put(number, datagram);
    }

    /// Begins an exchange for a program; `None` if there is no place, or its last connection was not made a moment ago.
    fn begin(&mut self, ends: Ends) -> Option<u32> {
        let has_failed = |at: &Instant| now().saturating_since(*at) < PAUSE;
        if self.failed.get(&ends).is_some_and(has_failed) {
            return None;
        }
        let number = self.exchanges.begin(ends.peer, Plain::Program(ends))?;
        self.forget_ended();
        self.by_ends.insert(ends, number);
        self.unconnected.push(number);
        Some(number)
    }

    fn forget_ended(&mut self) {
        for (ends, failed) in std::mem::take(&mut self.exchanges.ended) {
            self.by_ends.remove(&ends);
            if failed && self.failed.len() < MOST_REMEMBERED {
                self.failed.insert(ends, now());
            }
        }
        if self.failed.len() > MOST_REMEMBERED / 2 {
            let now = now();
            self.failed.retain(|_, at| now.saturating_since(*at) < PAUSE);
        }
    }

    /// Starts threads that connect, for programs that have sent most.
    fn connect_some(&mut self) {
        while self.connecting < MOST_CONNECTING {
            let waiting = |number: u32| self.exchanges.waits_for_connection(number);
            self.unconnected.retain(|number| waiting(*number).is_some());
            let places = 0..self.unconnected.len();
            let place = places.max_by_key(|&place| (waiting(self.unconnected[place]), Reverse(place)));
            let Some(number) = place.map(|place| self.unconnected.remove(place)) else { return };
            let (sender, waker, route) = (self.sender.clone(), Arc::clone(&self.waker), self.exchanges.route);
            let spawned = self.exchanges.shared.spawn(move |shared: &Arc<Shared>| {
                let to = &shared.book.route(route).to;
                let found =
                    lookup(to, None).map_err(|source| QosError::System { doing: "cannot connect", source });
                let outcome =
                    found.and_then(|addresses| QosUdpSocket::connect(&addresses[..], &shared.options));
                // The route may have ended.
                let _over = sender.send((number, outcome));
                // A pipe that is full wakes it, too.
                let _full = (&*waker).write(&[0]);
            });
            match spawned {
                Ok(()) => self.connecting += 1,
                Err(error) => {
                    self.exchanges.end(number, format!("no thread for a connection: {error}"), true);
                }
            }
        }
    }

    fn take_outcomes(&mut self) {
        let mut bytes = [0; 64];
        while (&self.wakes).read(&mut bytes).is_ok_and(|length| length > 0) {}
        while let Ok((number, outcome)) = self.outcomes.try_recv() {
            self.connecting -= 1;
            let (shared, route) = (self.exchanges.shared, self.exchanges.route);
            match outcome {
                // It may have made place for another one.
                Ok(qos) => {
                    if self.exchanges.waits_for_connection(number).is_some() {
                        shared.tell_unreserved(route, qos.reservation().as_ref());
                        self.exchanges.attach(number, qos);
                    }
                }
                Err(error) => {
                    let to = &shared.book.route(route).to;
                    let why = format!("the far gateway {} cannot be reached: {error}", Printable(to));
                    self.exchanges.end(number, why, true);
                }
            }
        }
    }
}

/// Accepts near gateways' connections until the gateway ends.
pub fn far(shared: &Arc<Shared>, route: usize, listener: &QosUdpListener) {
    let carried = Exchanges::new(shared, route).and_then(|exchanges| {
        exchanges.reactor.add(listener, LISTENER, EventFlags::IN)?;
        Peers { listener, exchanges, placeless: VecDeque::new() }.carry()
    });
    if let Err(error) = carried {
        shared.tell(format_args!("{}: datagrams are no longer carried: {error}", shared.book.route(route)));
    }
}

/// The near gateways of a far one.
struct Peers<'s, 'l> {
    listener: &'l QosUdpListener,
    exchanges: Exchanges<'s>,
    /// Connections that have been agreed on, and have no place yet. The peer does not know that, so they are not refused: those that
    /// can be replaced soon end, at the latest after a second without datagrams.
    placeless: VecDeque<(QosUdpSocket, SocketAddr)>,
}

impl Peers<'_, '_> {
    fn carry(&mut self) -> io::Result<()> {
        let mut call_at = now();
        while !self.exchanges.shared.stop.is_set() {
            let deadline = self.exchanges.deadline().min(call_at);
            let ready: Vec<u32> = self.exchanges.reactor.wait(deadline)?.map(|(number, _)| number).collect();
            let has_come = ready.contains(&LISTENER);
            for number in ready.into_iter().filter(|number| *number >= OWN_NUMBERS) {
                self.exchanges.serve(number, None);
            }
            self.exchanges.advance(None);
            self.exchanges.ended.clear();
            if has_come || now() >= call_at {
                call_at = now().saturating_add(self.accept());
            }
        }
        self.exchanges.end_all();
        Ok(())
    }

    /// Accepts waiting connections. Returns the time of the next call if nothing arrives.
    fn accept(&mut self) -> Duration {
        for _ in 0..self.placeless.len() {
            if let Some((qos, peer)) = self.placeless.pop_front() {
                self.begin(qos, peer);
            }
        }
        for _ in 0..TURN {
            match self.listener.accept() {
                Ok((qos, peer)) => self.begin(qos, peer),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return CALL_EVERY,
                Err(error) => {
                    self.exchanges.shared.tell(format_args!("a connection cannot be accepted: {error}"));
                    // The listener has dropped the connection that caused it, or keeps it until the system has room.
                    return REFUSED_FOR;
                }
            }
        }
        Duration::ZERO
    }

    /// Begins the exchange of a connection, or keeps the connection until there is a place. Of too many, the oldest is turned away.
    fn begin(&mut self, qos: QosUdpSocket, peer: SocketAddr) {
        let (shared, route) = (self.exchanges.shared, self.exchanges.route);
        let ticket = match self.exchanges.place(peer) {
            Ok(ticket) => ticket,
            Err(full) => {
                self.placeless.push_back((qos, peer));
                if self.placeless.len() > MOST_PLACELESS
                    && let Some((_, oldest)) = self.placeless.pop_front()
                {
                    shared.turn_away(route, oldest, full);
                }
                return;
            }
        };
        let to = &shared.book.route(route).to;
        match Server::connect(to) {
            Ok(server) => {
                let number = self.exchanges.begin_at(ticket, peer, Plain::Server(server));
                self.exchanges.attach(number, qos);
            }
            Err(error) => {
                let why = format!("datagrams cannot be sent to {}: {error}", Printable(to));
                shared.tell(format_args!("{}: {why}", shared.book.route(route)));
                ticket.close(why, true);
            }
        }
    }
}
