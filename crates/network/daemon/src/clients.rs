//! Connections of applications: lines in, lines out; a slow one delays no other.
//!
//! A client is read only while nothing waits for it, and in turn with the others: at most [`MOST_REQUESTS`] requests
//! each. So its cost is bounded by its reading. Events of its requests come at any time; a client that leaves too much
//! of it unread is disconnected, and so is the one with the most if all together leave too much.
//!
//! The status of an agent may be long. It is written in slices, each when the one before has left ([`Clients::next_slices`]); news that comes
//! meanwhile follows it.

use crate::requests::{ClientId, RequestId};
use cutline_provision::protocol::{LONGEST_LINE, Reply, Request, VERSION};
use cutline_service::{LineBuffer, write_pending};
use cutline_sys::reactor::{EventFlags, Reactor};
use rustix::net::sockopt::socket_peercred;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};

/// The most clients at a time.
pub const MOST_CLIENTS: usize = 4096;
/// The most clients of a user other than root: one member of the group leaves room for others.
pub const MOST_CLIENTS_OF_USER: usize = 512;
/// The most requests of a client that are handled before it is another one's turn.
pub const MOST_REQUESTS: usize = 16;
/// The length at which a slice of a status ends, bytes.
pub const SLICE: usize = 32 << 10;
/// The most bytes that wait for a client that does not read.
const MOST_WAITING: usize = 8 << 20;
/// The most bytes that wait for all clients together.
const MOST_WAITING_ALL: usize = 64 << 20;
/// The most connections that are accepted before anything else is done.
const MOST_ACCEPTED: usize = 64;

/// Progress of writing a status.
#[derive(Clone, Copy, Debug)]
pub enum StatusPart {
    /// The next session is the first one after this number.
    Sessions(u64),
    /// The next flow that is shaped here is the first one after this request.
    Local(Option<RequestId>),
}

/// A status that is being written.
#[derive(Clone, Copy, Debug)]
pub struct StatusProgress {
    pub place: StatusPart,
    /// True if the next item is the first of the list at this place.
    pub is_first: bool,
}

/// A client.
#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    user: u32,
    incoming: LineBuffer,
    outgoing: Vec<u8>,
    status: Option<StatusProgress>,
    /// Output that follows the status.
    later: Vec<u8>,
    /// True if the client has stated the version of its protocol.
    is_welcome: bool,
    /// True if the client is disconnected once it has read its output.
    is_leaving: bool,
    /// True if the client is in the queue of those that are served.
    is_queued: bool,
    /// Events of its descriptor that are waited for.
    interest: EventFlags,
}

/// All clients.
#[derive(Debug, Default)]
pub struct Clients {
    connections: BTreeMap<ClientId, Connection>,
    /// Clients with input that is not handled yet.
    queue: VecDeque<ClientId>,
    /// Clients with unsent output.
    unsent: BTreeSet<ClientId>,
    /// Clients that have changed since their descriptors were examined.
    touched: BTreeSet<ClientId>,
    /// Client that got the last slice of a status.
    last_slice: ClientId,
    next: ClientId,
    /// The number that the reactor has for the first client.
    base: u32,
    /// Clients that were refused because there were too many.
    pub refused: u64,
}

impl Clients {
    /// Creates an empty set of clients. A reactor has them under their numbers, counted from `base`.
    pub fn new(base: u32) -> Self {
        Self { base, ..Self::default() }
    }

    /// Takes the clients that have come.
    pub fn accept(&mut self, listener: &UnixListener, reactor: &Reactor) {
        for _ in 0..MOST_ACCEPTED {
            let Ok((stream, _)) = listener.accept() else { return };
            let Ok(peer) = socket_peercred(&stream) else { continue };
            let user = peer.uid.as_raw();
            if let Some(limit) = self.limit_reached(user) {
                let message = format!("client limit reached ({limit}): try again later");
                drop(stream.set_nonblocking(true));
                drop((&stream).write_all(Reply::Error { message }.line().as_bytes()));
                self.refused += 1;
                continue;
            }
            // A number is used again after four thousand million clients.
            while self.connections.contains_key(&self.next) || self.next.checked_add(self.base).is_none() {
                self.next = self.next.wrapping_add(1);
            }
            let (id, interest) = (self.next, EventFlags::IN);
            self.next = self.next.wrapping_add(1);
            if stream.set_nonblocking(true).is_err()
                || reactor.add(&stream, self.base + id, interest).is_err()
            {
                continue;
            }
            let connection = Connection {
                stream,
                user,
                incoming: LineBuffer::new(LONGEST_LINE),
                outgoing: Vec::new(),
                status: None,
                later: Vec::new(),
                is_welcome: false,
                is_leaving: false,
                is_queued: false,
                interest,
            };
            self.connections.insert(id, connection);
        }
    }

    /// Returns the limit that a further client of a user would exceed, in words.
    fn limit_reached(&self, user: u32) -> Option<String> {
        if self.connections.len() >= MOST_CLIENTS {
            return Some(MOST_CLIENTS.to_string());
        }
        let of_user = || self.connections.values().filter(|its| its.user == user).count();
        (user != 0 && of_user() >= MOST_CLIENTS_OF_USER).then(|| format!("{MOST_CLIENTS_OF_USER} of a user"))
    }

    /// Returns the number of clients.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Reads and sends as a client's descriptor is ready for. Returns whether the client is still there.
    pub fn ready(&mut self, id: ClientId, flags: EventFlags) -> bool {
        self.touched.insert(id);
        let Some(connection) = self.connections.get_mut(&id) else { return true };
        // Its requests end with its connection, so its unread lines are dropped.
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            return false;
        }
        if flags.contains(EventFlags::IN) && connection.reads() && !connection.read() {
            return false;
        }
        self.enqueue(id);
        true
    }

    /// Queues a client for service, if it has something to handle.
    pub fn enqueue(&mut self, id: ClientId) {
        if let Some(connection) = self.connections.get_mut(&id)
            && !connection.is_queued
            && connection.takes_requests()
            && connection.has_line()
        {
            connection.is_queued = true;
            self.queue.push_back(id);
        }
    }

    /// Takes the next client from the line of those that are served.
    pub fn next_in_line(&mut self) -> Option<ClientId> {
        let id = self.queue.pop_front()?;
        self.touched.insert(id);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_queued = false;
        }
        Some(id)
    }

    /// Returns true if a client can be served without waiting: a request is there, or a status can continue.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty() || self.slices().next().is_some()
    }

    /// Takes the next request of a client.
    pub fn request(&mut self, id: ClientId) -> Option<Request> {
        let connection =
            self.connections.get_mut(&id).filter(|its| !its.is_leaving && its.status.is_none())?;
        let request = connection.take_request().unwrap_or_else(|message| {
            connection.send(&Reply::Error { message });
            connection.is_leaving = true;
            None
        });
        if connection.waiting() > 0 {
            self.unsent.insert(id);
        }
        request
    }

    /// Sends a message to a client, which may have gone.
    pub fn send(&mut self, id: ClientId, reply: &Reply) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.send(reply);
            self.unsent.insert(id);
        }
    }

    /// Starts the status of a client with this text. The rest follows in slices.
    pub fn begin_status(&mut self, id: ClientId, head: &str) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.outgoing.extend(head.as_bytes());
            connection.status = Some(StatusProgress { place: StatusPart::Sessions(0), is_first: true });
            self.unsent.insert(id);
        }
    }

    fn slices(&self) -> impl Iterator<Item = (ClientId, StatusProgress)> {
        self.unsent.iter().filter_map(|id| {
            let connection = self.connections.get(id).filter(|its| its.outgoing.is_empty())?;
            Some((*id, connection.status?))
        })
    }

    /// Returns the clients whose status can continue, with their remaining output, in turn.
    pub fn next_slices(&self) -> Vec<(ClientId, StatusProgress)> {
        let mut slices: Vec<_> = self.slices().collect();
        let first = slices.partition_point(|(id, _)| *id <= self.last_slice);
        slices.rotate_left(first);
        slices
    }

    /// Sends a slice of a status. `progress` is where the next one begins; `None` after the last one.
    pub fn send_slice(&mut self, id: ClientId, slice: &str, progress: Option<StatusProgress>) {
        if let Some(connection) = self.connections.get_mut(&id) {
            self.last_slice = id;
            connection.outgoing.extend(slice.as_bytes());
            connection.status = progress;
            if progress.is_none() {
                connection.outgoing.append(&mut connection.later);
            }
        }
    }

    /// Sends waiting replies. Returns the clients that have disconnected, or leave too much unread.
    pub fn flush(&mut self, reactor: &Reactor) -> Vec<ClientId> {
        let mut ended = Vec::new();
        let mut waiting: Vec<(usize, ClientId)> = Vec::new();
        self.touched.extend(&self.unsent);
        for id in std::mem::take(&mut self.unsent) {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if !connection.flush() || connection.is_leaving && connection.waiting() == 0 {
                ended.push(id);
                continue;
            }
            if connection.waiting() > 0 || connection.status.is_some() {
                waiting.push((connection.waiting(), id));
                self.unsent.insert(id);
            }
        }
        waiting.sort_unstable();
        let mut all: usize = waiting.iter().map(|(bytes, _)| bytes).sum();
        while let Some((bytes, id)) =
            waiting.pop().filter(|(bytes, _)| *bytes > MOST_WAITING || all > MOST_WAITING_ALL)
        {
            all -= bytes;
            ended.push(id);
        }
        self.watch(reactor, &mut ended);
        ended
    }

    /// Waits for each descriptor as its client is served: for room while something waits for the client, for requests otherwise.
    fn watch(&mut self, reactor: &Reactor, ended: &mut Vec<ClientId>) {
        for id in std::mem::take(&mut self.touched) {
            self.enqueue(id);
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let wanted = connection.wanted();
            if wanted == connection.interest {
                continue;
            }
            connection.interest = wanted;
            if reactor.change(&connection.stream, self.base + id, wanted).is_err() {
                ended.push(id);
            }
        }
    }

    /// Disconnects a client.
    pub fn remove(&mut self, id: ClientId) {
        self.connections.remove(&id);
        self.unsent.remove(&id);
    }
}

impl Connection {
    /// Returns whether requests are taken: no output waits for the client.
    fn takes_requests(&self) -> bool {
        self.outgoing.is_empty() && self.status.is_none() && !self.is_leaving
    }

    /// Returns whether the client's socket is read.
    fn reads(&self) -> bool {
        self.takes_requests() && !self.is_queued
    }

    fn wanted(&self) -> EventFlags {
        if !self.outgoing.is_empty() {
            EventFlags::OUT
        } else if self.reads() {
            EventFlags::IN
        } else {
            EventFlags::empty()
        }
    }

    fn waiting(&self) -> usize {
        self.outgoing.len() + self.later.len()
    }

    /// Returns whether there is something to handle: a line, or one that is too long.
    fn has_line(&mut self) -> bool {
        self.incoming.has_line() != Ok(false)
    }

    /// Reads a part of the client's input. Returns false if the client has disconnected.
    fn read(&mut self) -> bool {
        match self.incoming.read_from(&self.stream) {
            Ok(length) => length > 0,
            Err(error) => {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
            }
        }
    }

    /// Takes the next request. `hello` is answered here.
    fn take_request(&mut self) -> Result<Option<Request>, String> {
        let too_long = |_| format!("a line is longer than {LONGEST_LINE} B");
        let Some(line) = self.incoming.take().map_err(too_long)? else { return Ok(None) };
        let request = Request::parse(line).map_err(|error| error.to_string())?;
        match (request, self.is_welcome) {
            (request @ Request::Hello { version: VERSION }, _) => {
                self.is_welcome = true;
                self.send(&Reply::Welcome { version: VERSION });
                Ok(Some(request))
            }
            (Request::Hello { version }, _) => Err(format!("version = {version}: allowed is {VERSION}")),
            (_, false) => Err("the first request must be hello".to_owned()),
            (request, true) => Ok(Some(request)),
        }
    }

    fn send(&mut self, reply: &Reply) {
        if self.is_leaving {
            return;
        }
        let place = if self.status.is_some() { &mut self.later } else { &mut self.outgoing };
        place.extend(reply.line().as_bytes());
    }

    /// Sends pending output without blocking. Returns false if the client has disconnected.
    fn flush(&mut self) -> bool {
        if write_pending(&mut self.stream, &mut self.outgoing).is_err() {
            return false;
        }
        if self.outgoing.is_empty() {
            self.outgoing.shrink_to(SLICE);
        }
        true
    }
}
