//! Admission to a session: senders that connect, one of which at a time is let in.
//!
//! A sender that has connected is a *candidate* until it has sent `open`. Candidates wait beside each other and beside a session, each
//! for a bounded time, so none can keep others out by doing nothing. Candidates are few, and fewer of one address.

use super::key::{Key, Role, Seal, nonce};
use super::line::{Line, is_timeout};
use super::message::{
    ControlReply, ControlRequest, Hello, LONGEST_REQUEST, PROTOCOL, split_tag, write_message,
};
use super::prefix::Prefix;
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_units::{Duration, Instant};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// The longest time from connecting to `open`.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest number of candidates. A further one replaces the one that has waited longest.
const MOST_CANDIDATES: usize = 64;
/// The largest number of candidates of one address, or of one IPv6 network.
const MOST_OF_ONE: usize = 4;
/// Time within which the connections of one address are limited.
const WINDOW: Duration = Duration::from_secs(60);
/// The largest number of addresses whose connections are counted.
const MOST_COUNTED: usize = 1024;
/// The most connections that are accepted before candidates are read again. Not more than may wait from one address: a client that connects, leaves and connects
/// again is not refused because its end was not noticed.
const TURN: usize = MOST_OF_ONE;

#[derive(Debug)]
pub(super) struct SessionListener {
    listeners: Vec<TcpListener>,
    key: Option<Key>,
    allow: Vec<Prefix>,
    candidates: Vec<Candidate>,
    counted: Vec<Counted>,
    refused: u64,
    /// The largest number of connections of one address, or of one IPv6 network, within [`WINDOW`].
    most_connections: u32,
}

#[derive(Debug)]
struct Candidate {
    stream: TcpStream,
    peer: SocketAddr,
    /// The `hello` that it was sent.
    hello: Vec<u8>,
    /// Data that it has sent so far.
    received: Vec<u8>,
    until: Instant,
}

/// The recent connections of one address.
#[derive(Debug)]
struct Counted {
    of: Prefix,
    since: Instant,
    connections: u32,
}

/// An admitted sender.
pub(super) struct Entered {
    pub(super) line: Line,
    pub(super) peer: SocketAddr,
}

impl SessionListener {
    pub(super) fn new(
        listeners: Vec<TcpListener>,
        key: Option<Key>,
        allow: Vec<Prefix>,
        most_connections: u32,
    ) -> Self {
        Self {
            listeners,
            key,
            allow,
            candidates: Vec::new(),
            counted: Vec::new(),
            refused: 0,
            most_connections,
        }
    }

    pub(super) fn listeners(&self) -> &[TcpListener] {
        &self.listeners
    }

    /// Returns the number of connections that were refused.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Waits at most `time` for a connection or a message of a candidate.
    pub(super) fn wait(&self, time: Duration) {
        let sockets = self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN));
        let candidates =
            self.candidates.iter().map(|candidate| PollFd::new(&candidate.stream, PollFlags::IN));
        let mut fds: Vec<_> = sockets.chain(candidates).collect();
        // An error needs no handling: the caller looks at the sockets in any case.
        let _ready = wait(&mut fds, time);
    }

    /// Accepts connections and reads the messages of candidates. Returns a sender that may have a session; all are refused as long
    /// as another one has it.
    ///
    /// # Errors
    /// Returns an error if connections cannot be accepted.
    pub(super) fn look(&mut self, is_busy: bool) -> io::Result<Option<Entered>> {
        self.accept()?;
        let now = now();
        let mut entered = None;
        for mut candidate in std::mem::take(&mut self.candidates) {
            match candidate.receive() {
                Received::Part if now < candidate.until => self.candidates.push(candidate),
                Received::Part => self.refused += 1,
                Received::Malformed => self.refuse(&mut candidate, "the first message must be `open`"),
                Received::Line(line) => match self.check(&candidate, &line) {
                    Err(why) => self.refuse(&mut candidate, why),
                    Ok(_) if is_busy || entered.is_some() => {
                        self.refuse(&mut candidate, "it serves another sender: try again later");
                    }
                    Ok(seal) => {
                        let peer = candidate.peer;
                        entered = Line::new(candidate.stream, seal).ok().map(|line| Entered { line, peer });
                    }
                },
            }
        }
        Ok(entered)
    }

    fn accept(&mut self) -> io::Result<()> {
        for i in 0..self.listeners.len() {
            for _ in 0..TURN {
                match self.listeners[i].accept() {
                    Ok((stream, peer)) => self.greet(stream, peer),
                    Err(error) if lacks_room(&error) => {
                        // Without a free descriptor the connection stays ready, so the oldest candidate is disconnected.
                        self.refused += self.candidates.drain(..self.candidates.len().min(1)).count() as u64;
                        break;
                    }
                    Err(error) if is_passing(&error) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn greet(&mut self, stream: TcpStream, peer: SocketAddr) {
        let Ok(mut candidate) = Candidate::new(stream, peer, self.key.is_some()) else {
            self.refused += 1;
            return;
        };
        if !self.count(peer) {
            return self.refuse(&mut candidate, "too many connections from this address within a minute");
        }
        let of = Prefix::of_one_peer(peer.ip());
        if !self.allow.is_empty() && !self.allow.iter().any(|allowed| allowed.contains(peer.ip())) {
            return self.refuse(&mut candidate, "it does not serve this address (its --allow)");
        }
        if self.candidates.iter().filter(|candidate| of.contains(candidate.peer.ip())).count() >= MOST_OF_ONE
        {
            return self.refuse(&mut candidate, "too many connections from this address");
        }
        if self.candidates.len() >= MOST_CANDIDATES {
            self.candidates.remove(0);
            self.refused += 1;
        }
        if candidate.say_hello().is_ok() {
            self.candidates.push(candidate);
        }
    }

    /// Counts a connection. Returns whether its address has few enough of them.
    fn count(&mut self, peer: SocketAddr) -> bool {
        let (now, of) = (now(), Prefix::of_one_peer(peer.ip()));
        self.counted.retain(|counted| now.saturating_since(counted.since) < WINDOW);
        if let Some(counted) = self.counted.iter_mut().find(|counted| counted.of == of) {
            counted.connections = counted.connections.saturating_add(1);
            return counted.connections <= self.most_connections;
        }
        if self.counted.len() >= MOST_COUNTED {
            self.counted.remove(0);
        }
        self.counted.push(Counted { of, since: now, connections: 1 });
        true
    }

    /// Checks the first line of a candidate. Returns the seal of the session if there is a key.
    fn check(&self, candidate: &Candidate, line: &[u8]) -> Result<Option<Seal>, &'static str> {
        let (seal, message) = match (&self.key, split_tag(line)) {
            (None, None) => (None, line),
            (None, Some(_)) => return Err("it has no key: start it with --key-file"),
            (Some(_), None) => return Err("it requires a key: use --key-file"),
            (Some(key), Some((_, open))) => {
                let mut seal = Seal::new(key, Role::Receiver, &candidate.hello, open);
                let is_authentic = seal.open(line).is_some();
                (Some(is_authentic.then_some(seal).ok_or("it has another key")?), open)
            }
        };
        match serde_json::from_slice(message) {
            Ok(ControlRequest::Open(_)) => Ok(seal),
            Ok(_) | Err(_) => Err("the first message must be `open`"),
        }
    }

    fn refuse(&mut self, candidate: &mut Candidate, why: &str) {
        self.refused += 1;
        if let Ok(message) = write_message(&ControlReply::Refused(why.to_owned())) {
            // A candidate that does not read gets no error.
            let _unreported = candidate.stream.write(&message);
        }
    }
}

/// Data of a candidate.
enum Received {
    /// Not a whole line.
    Part,
    Line(Vec<u8>),
    Malformed,
}

impl Candidate {
    fn new(stream: TcpStream, peer: SocketAddr, key: bool) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let hello = Hello { cutline_tg: PROTOCOL, boot_id: String::new(), key, nonce: nonce()? };
        let mut hello = write_message(&ControlReply::Hello(hello))?;
        hello.pop();
        Ok(Self { stream, peer, hello, received: Vec::new(), until: now().saturating_add(PATIENCE) })
    }

    fn say_hello(&mut self) -> io::Result<()> {
        self.stream.write_all(&[&self.hello[..], b"\n"].concat())
    }

    fn receive(&mut self) -> Received {
        let mut bytes = [0; LONGEST_REQUEST as usize];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Received::Malformed,
            Ok(count) => self.received.extend_from_slice(&bytes[..count]),
            Err(error) if is_timeout(&error) => {}
            Err(_) => return Received::Malformed,
        }
        match self.received.iter().position(|byte| *byte == b'\n') {
            // A sender waits for the answer before it sends more.
            Some(end) if end + 1 == self.received.len() => Received::Line(self.received[..end].to_vec()),
            None if (self.received.len() as u64) < LONGEST_REQUEST => Received::Part,
            _ => Received::Malformed,
        }
    }
}

/// Returns whether the process or the system has no descriptor or memory for a connection now.
fn lacks_room(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errnos = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    errnos.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Returns whether the next connection may be accepted in spite of an error: there is none, or it is gone.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, NetworkDown, NetworkUnreachable};
    is_timeout(error)
        || matches!(error.kind(), ConnectionAborted | ConnectionReset | NetworkDown | NetworkUnreachable)
}
