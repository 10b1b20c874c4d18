//! The clients of a service: lines in, lines out, over a local stream socket. A slow client delays no other.
//!
//! ```text
//! accept        connects clients within the limits, and tells others why they are refused
//! ready         reads and writes as a client's descriptor is ready for
//! next_client   the clients with a whole line, in turn
//! request       the next line of a client, parsed by the service
//! send          a line to a client, written as the client reads
//! flush         writes, waits for the right events, and ends clients that leave too much unread
//! ```
//!
//! A client is read only while no output waits for it, so its cost is bounded by its reading. Lines that it has not
//! requested may come at any time; a client that leaves too many of them unread is disconnected, and so is the one with
//! the most if all together leave too much.
//!
//! A long answer has two forms. It is sent in parts, each made when the client has read the one before; lines that are
//! sent meanwhile follow the last one. Or it is sent as shared bytes: several clients can wait for one copy, which does
//! not count as output of either, and the service bounds the bytes of all copies.

mod output;
#[cfg(test)]
mod tests;

use crate::accepter::{AcceptedStream, Accepter};
use crate::lines::{LineBuffer, LineTooLong};
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_sys::{PeerProcess, peer_groups};
use output::{Output, is_temporary};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

/// The number of a client, while it is connected.
pub type ClientNumber = u32;

/// Limits and properties of a server.
#[derive(Clone, Copy, Debug)]
pub struct LineServerOptions {
    /// The most clients at a time.
    pub clients: usize,
    /// The most clients of all users other than root together.
    pub clients_of_users: usize,
    /// The most clients of one user other than root.
    pub clients_of_user: usize,
    /// The longest request, bytes.
    pub longest_line: usize,
    /// The most requests of a user in a second; `None` for any number. Of a user that sends more, no client is read for the
    /// rest of the second.
    pub lines_of_user: Option<u32>,
    /// The most bytes that wait for a client that does not read.
    pub waiting: usize,
    /// The most bytes that wait for all clients together.
    pub waiting_of_all: usize,
    /// True if a client ends with its process. A copy of the process by fork can keep the connection open for longer.
    pub ends_with_process: bool,
}

/// The process at the other end of a connection, when it connected.
#[derive(Clone, Debug)]
pub struct ClientProcess {
    /// User number.
    pub user: u32,
    /// Process number; `None` for a process of another PID namespace that has no number here.
    pub pid: Option<Pid>,
    /// Numbers of the groups, the primary one last.
    pub groups: Vec<u32>,
}

/// The clients of a service. `C` is the service's state of each.
#[derive(Debug)]
pub struct LineServer<C> {
    options: LineServerOptions,
    accepter: Accepter,
    /// Returns the line for a client that is refused, or has sent a malformed request, from the reason.
    refusal: fn(&str) -> String,
    clients: BTreeMap<ClientNumber, Client<C>>,
    /// Clients with a request that is not handled yet.
    queue: VecDeque<ClientNumber>,
    /// Clients that have changed since their descriptors were examined.
    touched: BTreeSet<ClientNumber>,
    /// Clients that get a long answer in parts.
    in_parts: BTreeSet<ClientNumber>,
    /// Client that got the last part of a long answer.
    last_part: ClientNumber,
    /// Requests of users in this second.
    lines: BTreeMap<u32, u32>,
    next: ClientNumber,
    /// The number that the reactor has for the first client. A client has two: the connection and the process.
    base: u32,
    refused: u64,
}

#[derive(Debug)]
struct Client<C> {
    stream: UnixStream,
    /// The process, if the client ends with it.
    _process: Option<OwnedFd>,
    user: u32,
    state: C,
    incoming: LineBuffer,
    outgoing: Output,
    /// Output that follows a long answer; `None` unless that is sent in parts.
    later: Option<Vec<u8>>,
    /// True if the client is disconnected once it has read its output.
    is_leaving: bool,
    /// True if the client is in the queue.
    is_queued: bool,
    /// Events of its descriptor that are waited for.
    interest: EventFlags,
}

/// The most connections that are accepted before anything else is done.
const MOST_ACCEPTED: usize = 64;
/// Number of clients' numbers. There are two of a reactor for each of them above the largest base.
const NUMBERS: ClientNumber = 1 << 29;

impl<C> LineServer<C> {
    /// Creates a server without clients. A reactor has them under their numbers, counted from `base`, which is at most
    /// 3 * 2^30. `refusal` makes a line of an error, its end included.
    pub fn new(base: u32, options: LineServerOptions, refusal: fn(&str) -> String) -> Self {
        Self {
            options,
            accepter: Accepter::default(),
            refusal,
            clients: BTreeMap::new(),
            queue: VecDeque::new(),
            touched: BTreeSet::new(),
            in_parts: BTreeSet::new(),
            last_part: 0,
            lines: BTreeMap::new(),
            next: 0,
            base,
            refused: 0,
        }
    }

    /// Accepts the clients that have connected. `admit` returns the state of a new client, or why it is refused.
    pub fn accept(
        &mut self,
        listener: &UnixListener,
        reactor: &Reactor,
        mut admit: impl FnMut(&ClientProcess) -> Result<C, String>,
    ) {
        for _ in 0..MOST_ACCEPTED {
            let stream = match self.accepter.accept(listener) {
                None => return,
                Some(AcceptedStream::Stream(stream)) => stream,
                Some(AcceptedStream::Excess(stream)) => {
                    self.refuse(&stream, "no file descriptor is left (ulimit -n): try again later");
                    continue;
                }
            };
            let (Ok(peer), Ok(())) = (PeerProcess::of(&stream), stream.set_nonblocking(true)) else {
                continue;
            };
            let mut groups = peer_groups(&stream).unwrap_or_default();
            groups.push(peer.group);
            let process = ClientProcess { user: peer.user, pid: peer.pid, groups };
            let limit = self.limit_reached(process.user).map_or(Ok(()), Err);
            match limit.and_then(|()| admit(&process)) {
                Ok(state) => self.connect(stream, &process, state, reactor),
                Err(reason) => self.refuse(&stream, &reason),
            }
        }
    }

    /// Sends a client the reason why it is not served. The part that it does not read at once is lost.
    fn refuse(&mut self, mut stream: &UnixStream, reason: &str) {
        let _would_wait = stream.set_nonblocking(true);
        let _gone = stream.write_all((self.refusal)(reason).as_bytes());
        self.refused += 1;
    }

    /// Returns the limit that a further client of a user would exceed, in words.
    fn limit_reached(&self, user: u32) -> Option<String> {
        let LineServerOptions { clients, clients_of_users, clients_of_user, .. } = self.options;
        let count =
            |is_one: &dyn Fn(u32) -> bool| self.clients.values().filter(|its| is_one(its.user)).count();
        let limit = if self.clients.len() >= clients {
            clients.to_string()
        } else if user != 0 && count(&|other| other == user) >= clients_of_user {
            format!("{clients_of_user} of a user")
        } else if user != 0 && count(&|other| other != 0) >= clients_of_users {
            format!("{clients_of_users} of all users but root")
        } else {
            return None;
        };
        Some(format!("client limit reached ({limit}): try again later"))
    }

    fn connect(&mut self, stream: UnixStream, process: &ClientProcess, state: C, reactor: &Reactor) {
        let handle = if self.options.ends_with_process {
            process.pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        } else {
            None
        };
        while self.clients.contains_key(&self.next) {
            self.next = (self.next + 1) % NUMBERS;
        }
        let (number, interest) = (self.next, EventFlags::IN);
        self.next = (self.next + 1) % NUMBERS;
        let of_reactor = self.base + 2 * number;
        let is_added = reactor.add(&stream, of_reactor, interest).is_ok()
            && handle.as_ref().is_none_or(|handle| reactor.add(handle, of_reactor + 1, interest).is_ok());
        if is_added {
            let client = Client {
                stream,
                _process: handle,
                user: process.user,
                state,
                incoming: LineBuffer::new(self.options.longest_line),
                outgoing: Output::default(),
                later: None,
                is_leaving: false,
                is_queued: false,
                interest,
            };
            self.clients.insert(number, client);
        }
    }

    /// Returns the number of clients.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Returns whether no client is connected.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Returns the number of clients that were refused.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the numbers of the clients.
    pub fn numbers(&self) -> Vec<ClientNumber> {
        self.clients.keys().copied().collect()
    }

    /// Returns the user of a client, if that is connected.
    pub fn user(&self, number: ClientNumber) -> Option<u32> {
        self.clients.get(&number).map(|client| client.user)
    }

    /// Returns the clients of a user.
    pub fn clients_of(&self, user: u32) -> impl Iterator<Item = ClientNumber> + '_ {
        self.clients.iter().filter(move |(_, client)| client.user == user).map(|(number, _)| *number)
    }

    /// Returns the service's state of a client, if the client is connected.
    pub fn client(&self, number: ClientNumber) -> Option<&C> {
        self.clients.get(&number).map(|client| &client.state)
    }

    /// Returns the service's state of a client for a change, if the client is connected.
    pub fn client_mut(&mut self, number: ClientNumber) -> Option<&mut C> {
        self.clients.get_mut(&number).map(|client| &mut client.state)
    }

    /// Reads as the descriptor with this number of the reactor is ready for. Returns the client if it has gone; the
    /// service removes it.
    pub fn ready(&mut self, of_reactor: u32, flags: EventFlags) -> Option<ClientNumber> {
        let offset = of_reactor - self.base;
        let (number, has_ended) = (offset / 2, offset % 2 == 1);
        let client = self.clients.get_mut(&number)?;
        self.touched.insert(number);
        // Its requests end with its connection, so its unread lines are dropped.
        let has_gone = has_ended
            || flags.intersects(EventFlags::HUP | EventFlags::ERR)
            || flags.contains(EventFlags::IN) && client.is_read() && !client.read();
        if has_gone {
            return Some(number);
        }
        self.enqueue(number);
        None
    }

    /// Queues a client if it has a request, and may have one handled.
    fn enqueue(&mut self, number: ClientNumber) {
        let is_paused =
            |user| self.lines.get(&user).is_some_and(|lines| Some(*lines) == self.options.lines_of_user);
        if let Some(client) = self.clients.get_mut(&number)
            && !client.is_queued
            && client.takes_requests()
            && !is_paused(client.user)
            && client.incoming.has_line() != Ok(false)
        {
            client.is_queued = true;
            self.queue.push_back(number);
        }
    }

    /// Returns whether a client can be served without waiting: it has a request, or a long answer can go on.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty() || self.ready_for_part().next().is_some()
    }

    /// Takes the next client from the queue. It returns to its end when it has further requests.
    pub fn next_client(&mut self) -> Option<ClientNumber> {
        let number = self.queue.pop_front()?;
        self.touched.insert(number);
        if let Some(client) = self.clients.get_mut(&number) {
            client.is_queued = false;
        }
        Some(number)
    }

    /// Takes the next request of a client; `None` if there is none, or the client may not have it handled now. A client
    /// whose request is too long, or cannot be parsed, gets the reason and is disconnected.
    pub fn request<T>(
        &mut self,
        number: ClientNumber,
        parse: impl FnOnce(&[u8], &mut C) -> Result<T, String>,
    ) -> Option<T> {
        let client = self.clients.get_mut(&number)?;
        let lines = self.lines.entry(client.user).or_default();
        if client.is_leaving || client.later.is_some() || Some(*lines) == self.options.lines_of_user {
            return None;
        }
        let parsed = match client.incoming.take() {
            Ok(None) => return None,
            Ok(Some(line)) => parse(line, &mut client.state),
            Err(LineTooLong { longest }) => Err(format!("a line is longer than {longest} B")),
        };
        *lines = lines.saturating_add(1);
        parsed.map_err(|reason| self.fail(number, &reason)).ok()
    }

    /// Begins a second: all users may send requests again.
    pub fn begin_second(&mut self) {
        let (most, lines) = (self.options.lines_of_user, std::mem::take(&mut self.lines));
        let is_paused = |user| lines.get(&user).is_some_and(|lines| Some(*lines) == most);
        let paused = self.clients.iter().filter(|(_, its)| is_paused(its.user));
        self.touched.extend(paused.map(|(number, _)| *number));
    }

    /// Sends a line, its end included, to a client, which may have gone.
    pub fn send(&mut self, number: ClientNumber, line: &str) {
        if let Some(client) = self.clients.get_mut(&number).filter(|its| !its.is_leaving) {
            match &mut client.later {
                Some(later) => later.extend(line.as_bytes()),
                None => client.outgoing.push(line.as_bytes()),
            }
            self.touched.insert(number);
        }
    }

    /// Sends an error to a client, and disconnects it when it has read that.
    pub fn fail(&mut self, number: ClientNumber, reason: &str) {
        let line = (self.refusal)(reason);
        self.send(number, &line);
        if let Some(client) = self.clients.get_mut(&number) {
            client.is_leaving = true;
        }
    }

    /// Sends a long answer to a client: lines of which others can have the same copy. It does not count as output that
    /// is left unread.
    pub fn send_shared(&mut self, number: ClientNumber, lines: Arc<[u8]>) {
        if let Some(client) = self.clients.get_mut(&number).filter(|its| !its.is_leaving) {
            client.outgoing.push_shared(lines);
            self.touched.insert(number);
        }
    }

    /// Returns the bytes of shared answers that wait for clients of these users. A copy that several wait for counts once.
    pub fn shared_waiting(&self, is_one: impl Fn(u32) -> bool) -> usize {
        let those = self.clients.values().filter(|client| is_one(client.user));
        let shared: BTreeSet<(*const u8, usize)> = those
            .flat_map(|client| client.outgoing.shared())
            .map(|bytes| (bytes.as_ptr(), bytes.len()))
            .collect();
        shared.into_iter().map(|(_, length)| length).sum()
    }

    /// Begins a long answer that is sent in parts. This is the first one.
    pub fn begin_parts(&mut self, number: ClientNumber, first: &str) {
        if let Some(client) = self.clients.get_mut(&number).filter(|its| !its.is_leaving) {
            client.outgoing.push(first.as_bytes());
            client.later.get_or_insert_default();
            self.in_parts.insert(number);
            self.touched.insert(number);
        }
    }

    fn ready_for_part(&self) -> impl Iterator<Item = ClientNumber> {
        let is_ready =
            |number: &ClientNumber| self.clients.get(number).is_some_and(|its| its.outgoing.is_empty());
        self.in_parts.iter().copied().filter(is_ready)
    }

    /// Returns the clients that have read all parts of their long answers so far, in turn.
    pub fn clients_for_parts(&self) -> Vec<ClientNumber> {
        let mut numbers: Vec<_> = self.ready_for_part().collect();
        let first = numbers.partition_point(|number| *number <= self.last_part);
        numbers.rotate_left(first);
        numbers
    }

    /// Sends a further part of a long answer.
    pub fn send_part(&mut self, number: ClientNumber, part: &str, is_last: bool) {
        if let Some(client) = self.clients.get_mut(&number) {
            self.last_part = number;
            client.outgoing.push(part.as_bytes());
            if is_last {
                client.outgoing.push(&client.later.take().unwrap_or_default());
                self.in_parts.remove(&number);
            }
            self.touched.insert(number);
        }
    }

    /// Writes waiting output, and waits for each descriptor as its client is served: for room while output waits for
    /// the client, for requests otherwise. Returns the clients that have disconnected, or leave too much unread; the
    /// service removes them.
    pub fn flush(&mut self, reactor: &Reactor) -> Vec<ClientNumber> {
        let mut ended = Vec::new();
        let mut is_waiting = false;
        for number in std::mem::take(&mut self.touched) {
            let Some(client) = self.clients.get_mut(&number) else { continue };
            let is_connected = client.outgoing.write(&client.stream).is_ok();
            let waiting = client.waiting();
            if !is_connected
                || client.is_leaving && client.outgoing.is_empty() && client.later.is_none()
                || waiting > self.options.waiting
            {
                ended.push(number);
                continue;
            }
            is_waiting |= waiting > 0;
            self.enqueue(number);
            let Some(client) = self.clients.get_mut(&number) else { continue };
            let wanted = client.wanted();
            if wanted != client.interest {
                client.interest = wanted;
                if reactor.change(&client.stream, self.base + 2 * number, wanted).is_err() {
                    ended.push(number);
                }
            }
        }
        // The sum grows with the clients above only.
        if is_waiting {
            self.end_largest(&mut ended);
        }
        ended
    }

    /// Ends the clients that leave the most unread, until the rest is within the bound of all together.
    fn end_largest(&self, ended: &mut Vec<ClientNumber>) {
        let stay = self.clients.iter().filter(|(number, _)| !ended.contains(number));
        let mut waiting: Vec<(usize, ClientNumber)> =
            stay.map(|(number, its)| (its.waiting(), *number)).collect();
        let mut all: usize = waiting.iter().map(|(bytes, _)| bytes).sum();
        if all <= self.options.waiting_of_all {
            return;
        }
        waiting.sort_unstable();
        while let Some((bytes, number)) = waiting.pop().filter(|_| all > self.options.waiting_of_all) {
            all -= bytes;
            ended.push(number);
        }
    }

    /// Disconnects a client. Returns the service's state of the client.
    pub fn remove(&mut self, number: ClientNumber) -> Option<C> {
        self.in_parts.remove(&number);
        self.clients.remove(&number).map(|client| client.state)
    }
}

impl<C> Client<C> {
    /// Returns whether requests are handled: no output waits for the client.
    fn takes_requests(&self) -> bool {
        self.outgoing.is_empty() && self.later.is_none() && !self.is_leaving
    }

    /// Returns whether the client's socket is read.
    fn is_read(&self) -> bool {
        self.takes_requests() && !self.is_queued
    }

    /// Returns the bytes that wait for the client, shared answers aside.
    fn waiting(&self) -> usize {
        self.outgoing.own() + self.later.as_ref().map_or(0, Vec::len)
    }

    fn wanted(&mut self) -> EventFlags {
        if !self.outgoing.is_empty() {
            EventFlags::OUT
        } else if self.is_read() && self.incoming.has_line() == Ok(false) {
            EventFlags::IN
        } else {
            EventFlags::empty()
        }
    }

    /// Reads a part of the client's input. Returns false if the client has disconnected.
    fn read(&mut self) -> bool {
        match self.incoming.read_from(&self.stream) {
            Ok(length) => length > 0,
            Err(error) => is_temporary(&error),
        }
    }
}
