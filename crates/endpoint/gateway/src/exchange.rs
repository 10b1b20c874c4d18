//! Exchanges of datagrams: each is a QoS connection, and a program at the near gateway or a socket to the server at the far one.
//!
//! One thread serves all exchanges of a route. The sender of a datagram is not authenticated, so an exchange is cheap, and one that is not used
//! gives its place to a newcomer: first those that were never answered, as the kernel's connection tracking does with entries that are
//! not assured (`nf_conntrack`).

use crate::connection_table::{Counters, Full, Ticket, count};
use crate::networks::network_of;
use crate::plan::GatewaySide;
use crate::shared::Shared;
use cutline_socket::{Attempt, Pacing, QosUdpSocket};
use cutline_sys::address::lookup;
use cutline_sys::datagram_server::{DatagramServer, Ends};
use cutline_sys::now;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_text::Printable;
use cutline_units::{Duration, Instant};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// The longest datagram, bytes.
pub const LONGEST: usize = 65_535;
/// The most datagrams of an exchange that wait for their turn at the rate agreed on, and the most bytes of them.
const MOST_WAITING: usize = 256;
const MOST_BYTES: usize = 1 << 20;
/// The most bytes that wait in all exchanges of a route.
const MOST_BYTES_OF_ALL: usize = 64 << 20;
/// The most datagrams that are taken from a socket before others are served.
pub const TURN: usize = 64;
/// Time after which a socket without room is tried again.
const RETRY: Duration = Duration::from_millis(1);
/// Interval of checks of idle exchanges.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Idle time after which an exchange gives its place to a newcomer: one that the server has never answered,
/// and another one.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_WITH_ASSURED: Duration = Duration::from_secs(15);
/// Time for which no place is searched after there was none.
const NO_PLACE_FOR: Duration = Duration::from_millis(50);
/// Number of checks after which an exchange checks whether its other gateway is alive.
const LIFE_EVERY: u32 = 10;
/// Longest silence of the other gateway while datagrams are sent to it: before the first sign of life, and
/// then. It reports its received traffic every half second, or up to every minute where that is set.
const FIRST_SILENCE: Duration = Duration::from_secs(65);
const LONGEST_SILENCE: Duration = Duration::from_secs(5);
/// The most errors in a row after which an exchange ends.
const MOST_ERRORS: u32 = 1000;

/// Knowledge about the two ends of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Assurance {
    /// The program has sent.
    Fresh,
    /// The server has answered.
    Answered,
    /// The program has sent again after an answer.
    Assured,
}

/// The end that is no gateway.
pub enum Plain {
    /// A program, at the near gateway.
    Program(Ends),
    /// The server, at the far gateway.
    Server(Server),
}

/// A socket to the server.
pub struct Server {
    socket: UdpSocket,
    /// The addresses of the server that were not tried.
    others: VecDeque<SocketAddr>,
    /// The last datagram that was sent, until the server has answered or there is no other address.
    last: Option<Vec<u8>>,
}

/// Signs of life of the other gateway.
struct Life {
    /// The reports and messages that have come.
    heard: u64,
    /// Time at which there were fewer of them, or at which nothing had been sent since.
    at: Instant,
    /// The messages that were sent then.
    sent: u64,
    /// The longest time without one so far; `None` before the first.
    longest: Option<Duration>,
}

impl Life {
    const fn new(at: Instant) -> Self {
        Self { heard: 0, at, sent: 0, longest: None }
    }

    /// Returns the duration of the silence if it is too long.
    fn silence(&mut self, at: Instant, heard: u64, sent: u64) -> Option<Duration> {
        let since = at.saturating_since(self.at);
        if heard != self.heard {
            let longest = self.longest.unwrap_or(Duration::ZERO);
            *self = Self { heard, at, sent, longest: Some(longest.max(since)) };
        } else if sent == self.sent {
            self.at = at;
        } else {
            let patience = self.longest.map_or(FIRST_SILENCE, |longest| LONGEST_SILENCE.max(longest * 4));
            return (since > patience).then_some(since);
        }
        None
    }
}

/// An exchange.
pub struct Exchange {
    /// `None` while it is being connected.
    qos: Option<QosUdpSocket>,
    plain: Plain,
    ticket: Ticket,
    counters: Arc<Counters>,
    network: IpAddr,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// Time of the next service without news of the descriptors.
    due: Option<Instant>,
    /// Time of the last datagram of either direction.
    latest: Instant,
    assurance: Assurance,
    life: Life,
    errors: u32,
    has_told_oversized: bool,
    has_told_refused: bool,
}

/// All exchanges of a route.
pub struct Exchanges<'s> {
    pub shared: &'s Arc<Shared>,
    pub route: usize,
    pub reactor: Reactor,
    all: BTreeMap<u32, Exchange>,
    due: BTreeSet<(Instant, u32)>,
    waiting_bytes: usize,
    last: u32,
    next_look: Instant,
    looks: u32,
    no_place_until: Instant,
    pub buffer: Vec<u8>,
    /// The programs whose exchanges have ended, and whether that was a failure, for the near gateway.
    pub ended: Vec<(Ends, bool)>,
}

/// The numbers of descriptors that belong to no exchange.
pub const OWN_NUMBERS: u32 = 4;

impl<'s> Exchanges<'s> {
    pub fn new(shared: &'s Arc<Shared>, route: usize) -> io::Result<Self> {
        Ok(Self {
            shared,
            route,
            reactor: Reactor::new()?,
            all: BTreeMap::new(),
            due: BTreeSet::new(),
            waiting_bytes: 0,
            last: OWN_NUMBERS,
            next_look: now().saturating_add(LOOK_EVERY),
            looks: 0,
            no_place_until: Instant::ZERO,
            buffer: vec![0; LONGEST],
            ended: Vec::new(),
        })
    }

    /// Begins an exchange without its QoS connection; `None` if there is no place for it, which is counted.
    pub fn begin(&mut self, peer: SocketAddr, plain: Plain) -> Option<u32> {
        match self.place(peer) {
            Ok(ticket) => Some(self.begin_at(ticket, peer, plain)),
            Err(full) => {
                self.shared.turn_away(self.route, peer, full);
                None
            }
        }
    }

    /// Returns a place for an exchange, if need be that of another one.
    ///
    /// # Errors
    /// When no exchange can be replaced at present.
    pub fn place(&mut self, peer: SocketAddr) -> Result<Ticket, Full> {
        self.shared.book.try_open(self.route, peer).or_else(|full| {
            let of = full.is_of_address().then(|| network_of(peer.ip()));
            if self.make_place(of) { self.shared.book.try_open(self.route, peer) } else { Err(full) }
        })
    }

    /// Begins an exchange at its place, without its QoS connection.
    pub fn begin_at(&mut self, ticket: Ticket, peer: SocketAddr, plain: Plain) -> u32 {
        let network = network_of(peer.ip());
        // Two descriptors each.
        loop {
            self.last = if self.last >= u32::MAX - 4 { OWN_NUMBERS } else { self.last + 2 };
            if !self.all.contains_key(&self.last) {
                break;
            }
        }
        let exchange = Exchange {
            qos: None,
            plain,
            counters: ticket.counters(),
            ticket,
            network,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            due: None,
            latest: now(),
            assurance: Assurance::Fresh,
            life: Life::new(now()),
            errors: 0,
            has_told_oversized: false,
            has_told_refused: false,
        };
        self.all.insert(self.last, exchange);
        self.last
    }

    /// Gives an exchange its QoS connection.
    pub fn attach(&mut self, number: u32, qos: QosUdpSocket) {
        let Some(exchange) = self.all.get_mut(&number) else { return };
        exchange.ticket.attach((*qos).clone());
        let added = qos.set_nonblocking(true).and_then(|()| {
            self.reactor.add(&qos, number, EventFlags::IN)?;
            match &exchange.plain {
                Plain::Server(server) => self.reactor.add(&server.socket, number + 1, EventFlags::IN),
                Plain::Program(_) => Ok(()),
            }
        });
        exchange.qos = Some(qos);
        match added {
            // The descriptor does not report earlier data again.
            Ok(()) => self.set_due(number, Some(now())),
            Err(error) => self.end(number, format!("the descriptor cannot be waited for: {error}"), true),
        }
    }

    /// Returns the number of datagrams that wait for a connection, if the exchange exists and has none.
    pub fn waits_for_connection(&self, number: u32) -> Option<usize> {
        self.all.get(&number).filter(|exchange| exchange.qos.is_none()).map(|exchange| exchange.waiting.len())
    }

    /// Ends the least valuable exchange of an address, or of all. Returns whether it ended one.
    fn make_place(&mut self, of: Option<IpAddr>) -> bool {
        let now = now();
        if now < self.no_place_until {
            return false;
        }
        let may_end = |exchange: &Exchange| {
            let patience = match exchange.assurance {
                Assurance::Assured => PATIENCE_WITH_ASSURED,
                Assurance::Fresh | Assurance::Answered => PATIENCE,
            };
            now.saturating_since(exchange.latest) >= patience && of.is_none_or(|of| of == exchange.network)
        };
        let found = self.all.iter().filter(|(_, exchange)| may_end(exchange));
        let found =
            found.min_by_key(|(_, exchange)| (exchange.assurance == Assurance::Assured, exchange.latest));
        let Some(number) = found.map(|(number, _)| *number) else {
            self.no_place_until = now.saturating_add(NO_PLACE_FOR);
            return false;
        };
        self.end(number, "another exchange has taken its place".to_owned(), false);
        true
    }

    /// Ends an exchange.
    pub fn end(&mut self, number: u32, why: String, failed: bool) {
        let Some(exchange) = self.all.remove(&number) else { return };
        if let Some(due) = exchange.due {
            self.due.remove(&(due, number));
        }
        self.waiting_bytes -= exchange.waiting_bytes;
        if failed {
            self.shared.tell(format_args!("{}: {why}", self.shared.book.route(self.route)));
        }
        if let Plain::Program(ends) = &exchange.plain {
            self.ended.push((*ends, failed));
        }
        exchange.ticket.close(why, failed);
    }

    /// Ends all exchanges, since the gateway ends.
    pub fn end_all(&mut self) {
        for number in self.all.keys().copied().collect::<Vec<_>>() {
            self.end(number, "the gateway was stopped".to_owned(), false);
        }
    }

    /// Returns the time of the next action without news of a descriptor.
    pub fn deadline(&self) -> Instant {
        self.due.first().map_or(self.next_look, |(due, _)| self.next_look.min(*due))
    }

    fn set_due(&mut self, number: u32, due: Option<Instant>) {
        let Some(exchange) = self.all.get_mut(&number) else { return };
        if let Some(before) = std::mem::replace(&mut exchange.due, due) {
            self.due.remove(&(before, number));
        }
        if let Some(due) = due {
            self.due.insert((due, number));
        }
    }

    /// Handles due deadlines. `answer` sends to a program.
    pub fn advance(&mut self, answer: Option<&DatagramServer>) {
        let at = now();
        while let Some((due, number)) = self.due.first().copied()
            && due <= at
        {
            self.set_due(number, None);
            self.receive(number, answer);
            self.flush(number);
        }
        if at >= self.next_look {
            self.next_look = at.saturating_add(LOOK_EVERY);
            let idle = self.shared.limits.idle;
            let is_over = |exchange: &Exchange| at.saturating_since(exchange.latest) > idle;
            let over: Vec<u32> =
                self.all.iter().filter(|(_, it)| is_over(it)).map(|(number, _)| *number).collect();
            for number in over {
                self.end(number, format!("no datagram for {idle}"), false);
            }
            self.looks = self.looks.wrapping_add(1);
            let turn = self.looks % LIFE_EVERY;
            // Numbers are even.
            let has_turn = |(number, _): &(&u32, &mut Exchange)| (**number >> 1) % LIFE_EVERY == turn;
            let silent = self.all.iter_mut().filter(has_turn);
            let silent = silent.filter_map(|(number, exchange)| Some((*number, exchange.silence(at)?)));
            for (number, silence) in silent.collect::<Vec<_>>() {
                let why = format!("the other gateway has been silent for {:.1} s", silence.as_secs_f64());
                self.end(number, why, self.shared.side == GatewaySide::Near);
            }
        }
    }

    /// Serves the exchange to which a descriptor with news belongs.
    pub fn serve(&mut self, descriptor: u32, answer: Option<&DatagramServer>) {
        let number = descriptor & !1;
        if descriptor == number {
            self.receive(number, answer);
        } else {
            self.hear_server(number);
        }
        self.flush(number);
    }

    /// Sends a datagram of a program or the server to the other gateway, now or later.
    pub fn put(&mut self, number: u32, datagram: Vec<u8>) {
        let Some(exchange) = self.all.get_mut(&number) else { return };
        exchange.latest = now();
        if exchange.assurance == Assurance::Answered && matches!(exchange.plain, Plain::Program(_)) {
            exchange.assurance = Assurance::Assured;
        }
        let length = datagram.len();
        let has_room = exchange.waiting.len() < MOST_WAITING
            && exchange.waiting_bytes + length <= MOST_BYTES
            && self.waiting_bytes + length <= MOST_BYTES_OF_ALL;
        if !has_room {
            return count(&exchange.counters.overflowed);
        }
        exchange.waiting.push_back(datagram);
        exchange.waiting_bytes += length;
        self.waiting_bytes += length;
        if exchange.waiting.len() == 1 {
            self.flush(number);
        }
    }

    /// Sends waiting datagrams whose turn has come.
    fn flush(&mut self, number: u32) {
        let Some(exchange) = self.all.get_mut(&number) else { return };
        let before = exchange.waiting_bytes;
        let outcome = exchange.send_waiting(self.shared, self.route);
        self.waiting_bytes -= before - exchange.waiting_bytes;
        match outcome {
            Ok(None) => {}
            Ok(Some(due)) => {
                let earlier = exchange.due.map_or(due, |before| before.min(due));
                self.set_due(number, Some(earlier));
            }
            Err(error) => self.judge(number, &error),
        }
    }

    /// Receives from the other gateway.
    fn receive(&mut self, number: u32, answer: Option<&DatagramServer>) {
        for _ in 0..TURN {
            let Some(exchange) = self.all.get_mut(&number) else { return };
            let Some(qos) = &exchange.qos else { return };
            match qos.recv(&mut self.buffer) {
                Ok(length) => {
                    exchange.errors = 0;
                    exchange.latest = now();
                    exchange.give(&self.buffer[..length], answer, self.shared, self.route);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => return self.judge(number, &error),
            }
        }
        // Others first.
        self.set_due(number, Some(now()));
    }

    /// Receives from the server.
    fn hear_server(&mut self, number: u32) {
        for _ in 0..TURN {
            let Some(exchange) = self.all.get_mut(&number) else { return };
            let Plain::Server(server) = &mut exchange.plain else { return };
            match server.socket.recv(&mut self.buffer) {
                Ok(length) => {
                    server.last = None;
                    server.others.clear();
                    exchange.assurance = exchange.assurance.max(Assurance::Answered);
                    let datagram = self.buffer[..length].to_vec();
                    self.put(number, datagram);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return;
                }
                // An error of the network about a sent datagram.
                Err(error) => {
                    if !server.try_another() {
                        exchange.refused(&error, self.shared, self.route);
                    }
                }
            }
        }
    }

    /// Ends an exchange whose other gateway has gone. Other errors concern single datagrams.
    fn judge(&mut self, number: u32, error: &io::Error) {
        let Some(exchange) = self.all.get_mut(&number) else { return };
        match error.kind() {
            // A near gateway that ends a connection has no other means to report it.
            ErrorKind::ConnectionRefused => {
                let failed = self.shared.side == GatewaySide::Near;
                self.end(number, "the other gateway has gone".to_owned(), failed);
            }
            ErrorKind::TimedOut => {
                let failed = self.shared.side == GatewaySide::Near;
                self.end(number, format!("the other gateway is gone: {error}"), failed);
            }
            ErrorKind::WouldBlock | ErrorKind::Interrupted => {}
            _ => {
                exchange.errors += 1;
                if exchange.errors > MOST_ERRORS {
                    self.end(number, format!("the connection fails again and again: {error}"), true);
                }
            }
        }
    }
}

impl Exchange {
    /// Sends waiting datagrams. Returns the time of the next datagram's turn, if one waits.
    fn send_waiting(&mut self, shared: &Shared, route: usize) -> io::Result<Option<Instant>> {
        let Some(qos) = &self.qos else { return Ok(None) };
        while let Some(datagram) = self.waiting.front() {
            let outcome = match qos.try_send(datagram) {
                Ok(Attempt::Sent(_)) => Ok(()),
                Ok(Attempt::Early(wait)) if qos.pacing() != Pacing::Refuse => {
                    let wait = Duration::from_nanos(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
                    return Ok(Some(now().saturating_add(wait)));
                }
                Ok(Attempt::Early(_)) => {
                    count(&self.counters.unsent);
                    Ok(())
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Some(now().saturating_add(RETRY)));
                }
                Err(error) if is_too_long(&error) => {
                    count(&self.counters.oversized);
                    if !std::mem::replace(&mut self.has_told_oversized, true) {
                        shared.tell(format_args!("{}: not sent: {error}", shared.book.route(route)));
                    }
                    Ok(())
                }
                Err(error) => {
                    count(&self.counters.unsent);
                    Err(error)
                }
            };
            self.waiting_bytes -= datagram.len();
            self.waiting.pop_front();
            match outcome {
                Ok(()) => self.errors = 0,
                Err(error) => {
                    // The error ends it or concerns this datagram; others follow.
                    let due = (!self.waiting.is_empty()).then(|| now().saturating_add(RETRY));
                    if error.kind() == ErrorKind::ConnectionRefused || due.is_none() {
                        return Err(error);
                    }
                    self.errors += 1;
                    return Ok(due);
                }
            }
        }
        Ok(None)
    }

    /// Returns for how long the other gateway has been silent, if that is too long and something was sent to it. One that was killed and started
    /// again knows nothing of the connection, and does not answer.
    fn silence(&mut self, at: Instant) -> Option<Duration> {
        let Some(qos) = &self.qos else {
            self.life.at = at;
            return None;
        };
        let mib = qos.mib();
        self.life.silence(at, mib.reports.used + mib.receive.received.messages, mib.send.sent.messages)
    }

    /// Gives a datagram of the other gateway to the program or the server.
    fn give(&mut self, datagram: &[u8], answer: Option<&DatagramServer>, shared: &Shared, route: usize) {
        match &mut self.plain {
            Plain::Program(ends) => {
                self.assurance = self.assurance.max(Assurance::Answered);
                if answer.is_none_or(|server| server.answer(ends, datagram).is_err()) {
                    count(&self.counters.unsent);
                }
            }
            Plain::Server(server) => {
                if self.assurance == Assurance::Answered {
                    self.assurance = Assurance::Assured;
                }
                if let Err(error) = server.send(datagram) {
                    self.refused(&error, shared, route);
                }
            }
        }
    }

    /// Counts a datagram that the server has refused, and reports the first one.
    fn refused(&mut self, error: &io::Error, shared: &Shared, route: usize) {
        count(&self.counters.unsent);
        if !std::mem::replace(&mut self.has_told_refused, true) {
            let route = shared.book.route(route);
            shared.tell(format_args!("{route}: {} does not take datagrams: {error}", Printable(&route.to)));
        }
    }
}

impl Server {
    /// Connects to the first address of a server that has a route.
    pub fn connect(to: &str) -> io::Result<Self> {
        Self::at(lookup(to, None)?)
    }

    fn at(addresses: Vec<SocketAddr>) -> io::Result<Self> {
        let mut others = VecDeque::from(addresses);
        let mut last = io::Error::from(ErrorKind::NotFound);
        while let Some(address) = others.pop_front() {
            match connect(address) {
                Ok(socket) => return Ok(Self { socket, others, last: None }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        if !self.others.is_empty() {
            self.last = Some(datagram.to_vec());
        }
        match self.socket.send(datagram) {
            Ok(_) => Ok(()),
            // It concerns a datagram before this one.
            Err(_) if self.try_another() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Turns to the next address of a server that has refused and has never answered, and repeats the last datagram there. Returns
    /// false if no address is left.
    fn try_another(&mut self) -> bool {
        while let Some(address) = self.others.pop_front() {
            let any = match address {
                SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let is_same_family = self.socket.local_addr().is_ok_and(|at| at.is_ipv4() == any.is_ipv4());
            if is_same_family && self.socket.connect(address).is_ok() {
                return self.last.as_ref().is_none_or(|last| self.socket.send(last).is_ok());
            }
        }
        false
    }
}

fn connect(address: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Returns whether a message is longer than the agreement allows, or than any datagram with its header.
fn is_too_long(error: &io::Error) -> bool {
    error.kind() == ErrorKind::InvalidInput || Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusing_server_is_tried_at_its_next_address() {
        let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (nobody, there) = (bind().local_addr().unwrap(), bind());
        there.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let mut server = Server::at(vec![nobody, nobody, there.local_addr().unwrap()]).unwrap();
        server.send(b"ask").unwrap();
        let mut buffer = [0; 10];
        for _ in 0..2 {
            let refused = loop {
                match server.socket.recv(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                    other => break other.unwrap_err(),
                }
            };
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            assert!(server.try_another());
        }
        assert_eq!(there.recv(&mut buffer).unwrap(), 3);
        assert!(!server.try_another(), "there are no more");
    }

    #[test]
    fn a_gateway_that_does_not_answer_sent_data_is_silent() {
        let second = |second: u64| Instant::from_nanos(second * 1_000_000_000);
        let mut life = Life::new(second(0));
        // Nothing was sent, so nothing is expected.
        assert_eq!(life.silence(second(100), 0, 0), None);
        // Reports may come every minute.
        assert_eq!(life.silence(second(160), 0, 1), None);
        assert_eq!(life.silence(second(166), 0, 1), Some(Duration::from_secs(66)));
        // One that reports every second is missed after five.
        let mut life = Life::new(second(0));
        for at in 1..10 {
            assert_eq!(life.silence(second(at), at, 2 * at), None);
        }
        assert_eq!(life.silence(second(14), 9, 20), None);
        assert_eq!(life.silence(second(15), 9, 20), Some(Duration::from_secs(6)));
        // One that reports every ten, after forty.
        let mut life = Life::new(second(0));
        for at in [10, 20, 30] {
            assert_eq!(life.silence(second(at), at, 2 * at), None);
        }
        assert_eq!(life.silence(second(70), 30, 90), None);
        assert_eq!(life.silence(second(71), 30, 90), Some(Duration::from_secs(41)));
    }
}
