//! Carrying datagrams: each that comes is a message of a QoS connection, and the other way round.
//!
//! At the near gateway, what one program's address sends is one connection. Datagrams have no end, so a connection ends when there were none
//! for a while, or the other gateway is gone. A datagram that is longer than was agreed on is not sent, and one for which too many
//! wait is dropped, as in any queue; both are counted.

use crate::book::{Counters, Link, Ticket, count};
use crate::gateway::{Shared, pause};
use crate::plan::Side;
use cutline_socket::{QosUdpListener, QosUdpSocket};
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::{Duration, Instant};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time;

/// The longest datagram, bytes.
const LONGEST: usize = 65_535;
/// The most datagrams of a program that wait for their turn at the rate agreed on.
const MOST_WAITING: usize = 256;
/// How often a thread that waits looks whether its connection has ended.
const LOOK_EVERY: time::Duration = time::Duration::from_millis(100);
/// How long a program waits after a connection for it was not made, before the next datagram begins another one.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a listener that does not wait has to be called: it sends again what was lost.
const CALL_EVERY: Duration = Duration::from_millis(50);

/// Whether a connection goes on, for its two threads.
struct Life {
    /// When the last datagram came, of either direction, ns.
    latest: AtomicU64,
    is_over: AtomicBool,
    /// Why it has ended, and whether that is a failure: what was said first.
    ending: Mutex<Option<(String, bool)>>,
}

impl Life {
    fn new() -> Self {
        Self {
            latest: AtomicU64::new(now().as_nanos()),
            is_over: AtomicBool::new(false),
            ending: Mutex::default(),
        }
    }

    fn came(&self) {
        self.latest.store(now().as_nanos(), Ordering::Relaxed);
    }

    fn end(&self, why: String, failed: bool) {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((why, failed));
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether it goes on; it ends when nothing came for too long, or the gateway ends.
    fn goes_on(&self, shared: &Shared) -> bool {
        let latest = Instant::from_nanos(self.latest.load(Ordering::Relaxed));
        if shared.stop.is_set() {
            self.end("the gateway was stopped".to_owned(), false);
        } else if now().saturating_since(latest) > shared.limits.idle {
            self.end(format!("no datagram for {}", shared.limits.idle), false);
        }
        !self.is_over.load(Ordering::Relaxed)
    }

    fn conclude(&self, shared: &Shared, route: usize, ticket: Ticket) {
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (why, failed) = ending.unwrap_or_default();
        if failed {
            shared.tell(format_args!("{}: {why}", shared.book.route(route)));
        }
        ticket.close(why, failed);
    }
}

/// A program that sends datagrams, as the near gateway's listener knows it.
struct Program {
    to: SyncSender<Vec<u8>>,
    counters: Arc<Counters>,
    /// When its connection ended; unset while it goes on.
    ended: Arc<AtomicU64>,
}

/// What [`Program::ended`] is while a connection goes on.
const GOES_ON: u64 = u64::MAX;

/// Takes programs' datagrams until the gateway ends.
pub fn near(shared: &Arc<Shared>, route: usize, socket: &Arc<UdpSocket>) {
    let mut programs: BTreeMap<SocketAddr, Program> = BTreeMap::new();
    let mut buffer = vec![0; LONGEST];
    while !shared.stop.is_set() {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let _ready = shared.stop.readable(socket, None);
                continue;
            }
            // A program that has gone is told of by the kernel.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => {
                shared.tell(format_args!("{}: cannot receive: {error}", shared.book.route(route)));
                pause();
                continue;
            }
        };
        if !programs.contains_key(&from) {
            forget_ended(&mut programs);
            let Some(program) = begin(shared, route, socket, from) else { continue };
            programs.insert(from, program);
        }
        let Some(program) = programs.get(&from) else { continue };
        match program.to.try_send(buffer[..length].to_vec()) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => count(&program.counters.overflowed),
            // A connection that has ended makes place for another one, but not at once if it has only just failed.
            Err(TrySendError::Disconnected(datagram)) => {
                let ended = Instant::from_nanos(program.ended.load(Ordering::Relaxed));
                if now().saturating_since(ended) < PAUSE {
                    continue;
                }
                programs.remove(&from);
                if let Some(program) = begin(shared, route, socket, from) {
                    // Its queue is empty.
                    let _sent = program.to.try_send(datagram);
                    programs.insert(from, program);
                }
            }
        }
    }
}

/// Forgets programs whose connections ended a while ago.
fn forget_ended(programs: &mut BTreeMap<SocketAddr, Program>) {
    let now = now();
    programs.retain(|_, program| {
        let ended = program.ended.load(Ordering::Relaxed);
        ended == GOES_ON || now.saturating_since(Instant::from_nanos(ended)) < PAUSE
    });
}

/// Begins a connection for a program; `None` if that is not possible, which is counted or told.
fn begin(shared: &Arc<Shared>, route: usize, socket: &Arc<UdpSocket>, from: SocketAddr) -> Option<Program> {
    let ticket = shared.book.open(route, from)?;
    let (to, datagrams) = sync_channel(MOST_WAITING);
    let ended = Arc::new(AtomicU64::new(GOES_ON));
    let program = Program { to, counters: ticket.counters(), ended: Arc::clone(&ended) };
    let socket = Arc::clone(socket);
    let work = move |shared: &Arc<Shared>| {
        carry_near(shared, route, (&socket, from), &datagrams, ticket);
        ended.store(now().as_nanos(), Ordering::Relaxed);
    };
    let spawned = shared.spawn(work);
    spawned
        .map_err(|error| {
            shared.tell(format_args!("{}: no thread for a connection: {error}", shared.book.route(route)));
        })
        .ok()
        .map(|()| program)
}

/// Carries a program's datagrams to the far gateway, and back.
fn carry_near(
    shared: &Arc<Shared>,
    route: usize,
    (socket, program): (&UdpSocket, SocketAddr),
    datagrams: &Receiver<Vec<u8>>,
    ticket: Ticket,
) {
    let to = &shared.book.route(route).to;
    let connected = QosUdpSocket::connect(to.as_str(), &shared.options);
    let qos = match connected {
        Ok(qos) => qos,
        Err(error) => {
            let ending = format!("the far gateway {} cannot be reached: {error}", Printable(to));
            shared.tell(format_args!("{}: {ending}", shared.book.route(route)));
            return ticket.close(ending, true);
        }
    };
    shared.tell_unreserved(route, qos.reservation().as_ref());
    let counters = ticket.counters();
    let next = || datagrams.recv_timeout(LOOK_EVERY).ok();
    let give = |datagram: &[u8]| {
        if socket.send_to(datagram, program).is_err() {
            count(&counters.unsent);
        }
    };
    carry(shared, route, &qos, ticket, next, give);
}

/// Accepts near gateways' connections until the gateway ends.
pub fn far(shared: &Arc<Shared>, route: usize, listener: &QosUdpListener) {
    while !shared.stop.is_set() {
        match listener.accept() {
            Ok((qos, peer)) => {
                let Some(ticket) = shared.book.open(route, peer) else { continue };
                let work = move |shared: &Arc<Shared>| carry_far(shared, route, &qos, ticket);
                if let Err(error) = shared.spawn(work) {
                    let route = shared.book.route(route);
                    shared.tell(format_args!("{route}: no thread for a connection: {error}"));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let _ready = shared.stop.readable(listener, Some(CALL_EVERY));
            }
            Err(error) => {
                shared.tell(format_args!("a connection cannot be accepted: {error}"));
                pause();
            }
        }
    }
}

/// Carries a near gateway's messages to the server, and back.
fn carry_far(shared: &Arc<Shared>, route: usize, qos: &QosUdpSocket, ticket: Ticket) {
    let to = &shared.book.route(route).to;
    let socket = match connect(to) {
        Ok(socket) => socket,
        Err(error) => {
            let ending = format!("datagrams cannot be sent to {}: {error}", Printable(to));
            shared.tell(format_args!("{}: {ending}", shared.book.route(route)));
            return ticket.close(ending, true);
        }
    };
    let counters = ticket.counters();
    let (inbox, is_told) = (Mutex::new(vec![0; LONGEST]), AtomicBool::new(false));
    let refused = |error: &io::Error| {
        count(&counters.unsent);
        if !is_told.swap(true, Ordering::Relaxed) {
            let route = shared.book.route(route);
            shared.tell(format_args!("{route}: {} does not take datagrams: {error}", Printable(to)));
        }
    };
    let next = || {
        let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
        match socket.recv(&mut inbox) {
            Ok(length) => Some(inbox[..length].to_vec()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            // What the network says of a datagram that was sent.
            Err(error) => {
                refused(&error);
                None
            }
        }
    };
    let give = |datagram: &[u8]| {
        if let Err(error) = socket.send(datagram) {
            refused(&error);
        }
    };
    carry(shared, route, qos, ticket, next, give);
}

/// A socket that sends to a server.
fn connect(to: &str) -> io::Result<UdpSocket> {
    let none = || io::Error::new(ErrorKind::NotFound, "the name has no address");
    let address = to.to_socket_addrs()?.next().ok_or_else(none)?;
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    Ok(socket)
}

/// Carries datagrams both ways until the connection ends. `next` waits a little for a datagram of this side, `give` takes one that the
/// other gateway has sent.
fn carry(
    shared: &Arc<Shared>,
    route: usize,
    qos: &QosUdpSocket,
    ticket: Ticket,
    next: impl Fn() -> Option<Vec<u8>>,
    give: impl Fn(&[u8]) + Sync,
) {
    let life = Life::new();
    ticket.attach(Link::Udp(qos.clone()));
    let counters = ticket.counters();
    let patience = qos.set_read_timeout(Some(LOOK_EVERY));
    if let Err(error) = patience {
        return ticket.close(format!("the system refuses a timeout: {error}"), true);
    }
    std::thread::scope(|scope| {
        let back = std::thread::Builder::new().name("gateway back".to_owned());
        let back = back.spawn_scoped(scope, || {
            let mut buffer = vec![0; LONGEST];
            while life.goes_on(shared) {
                match qos.recv(&mut buffer) {
                    Ok(length) => {
                        life.came();
                        give(&buffer[..length]);
                    }
                    Err(error) => judge(shared, &life, &error),
                }
            }
        });
        if let Err(error) = back {
            return life.end(format!("no thread for a connection: {error}"), true);
        }
        let is_told = AtomicBool::new(false);
        while life.goes_on(shared) {
            let Some(datagram) = next() else { continue };
            life.came();
            match qos.send(&datagram) {
                Ok(_) => {}
                Err(error) if is_too_long(&error) => {
                    count(&counters.oversized);
                    if !is_told.swap(true, Ordering::Relaxed) {
                        shared.tell(format_args!("{}: not sent: {error}", shared.book.route(route)));
                    }
                }
                Err(error) => {
                    count(&counters.unsent);
                    judge(shared, &life, &error);
                }
            }
        }
    });
    life.conclude(shared, route, ticket);
}

/// Whether a message is longer than was agreed on, or than any datagram with its header.
fn is_too_long(error: &io::Error) -> bool {
    error.kind() == ErrorKind::InvalidInput || Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}

/// Ends a connection whose other gateway has gone. Other errors concern single datagrams.
fn judge(shared: &Shared, life: &Life, error: &io::Error) {
    match error.kind() {
        // A near gateway that ends a connection cannot say so otherwise.
        ErrorKind::ConnectionRefused => {
            life.end("the other gateway has gone".to_owned(), shared.side == Side::Near);
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
        // One that comes again and again must not keep the processor busy.
        _ => std::thread::sleep(time::Duration::from_millis(1)),
    }
}
