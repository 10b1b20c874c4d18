//! Connections of clients: lines in, lines out; a slow one delays no other.
//!
//! A client is read only while nothing waits for it, and in turn with the others. Notices come at any time; a client
//! that leaves too many unread is disconnected, and its flows end. If all together leave too many, the one with the most is. The lines of a user in a second are limited: of a
//! user that sends more, no client is read for the rest of the second.

use cutline_allocation::protocol::{AllocationReply, AllocationRequest, LONGEST_LINE};
use cutline_manager::resources::{ClientKey, UserPolicy};
use cutline_service::{LineBuffer, write_pending};
use cutline_sys::peer_groups;
use cutline_sys::reactor::{EventFlags, Reactor};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

/// The number of a connection.
pub type ConnectionId = u32;

/// The most connections at a time.
pub const MOST_CLIENTS: usize = 4096;
/// The most connections of a user other than root.
pub const MOST_CLIENTS_OF_USER: usize = 512;
/// The most requests of a client that are handled before it is another one's turn.
const MOST_REQUESTS: usize = 16;
/// The most lines of a user in a second.
const MOST_LINES: u32 = 20_000;
/// The most bytes that wait for a client that does not read.
const MOST_WAITING: usize = 1 << 20;
/// The most bytes that wait for all clients together, beside statuses.
const MOST_WAITING_ALL: usize = 64 << 20;
/// The most bytes of a status that wait for all clients together.
const MOST_STATUS: usize = 64 << 20;
/// The most connections that are accepted before anything else is done.
const MOST_ACCEPTED: usize = 64;

/// A process at the other end.
#[derive(Clone, Debug)]
pub struct ClientProcess {
    pub user: u32,
    pub pid: u32,
    pub policy: UserPolicy,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    /// The process. A copy of it by fork can keep the connection open when it has ended.
    _handle: Option<OwnedFd>,
    process: ClientProcess,
    session: Option<ClientKey>,
    incoming: LineBuffer,
    outgoing: Vec<u8>,
    /// Bytes of `outgoing` that are a status.
    status_bytes: usize,
    /// True if the client is disconnected once it has read its output.
    is_leaving: bool,
    /// True if the client is in the queue of those that are served.
    is_queued: bool,
    interest: EventFlags,
}

/// All connections.
#[derive(Debug, Default)]
pub struct Connections {
    all: BTreeMap<ConnectionId, Connection>,
    sessions: BTreeMap<ClientKey, ConnectionId>,
    /// Clients with input that is not handled yet.
    queue: VecDeque<ConnectionId>,
    /// Clients that have changed since their descriptors were examined.
    touched: BTreeSet<ConnectionId>,
    /// Lines of users in this second.
    lines: BTreeMap<u32, u32>,
    next: ConnectionId,
    /// The number that the reactor has for the first client. A client has two numbers: the connection and the process.
    base: u32,
    pub refused: u64,
}

impl Connections {
    pub fn new(base: u32) -> Self {
        Self { base, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes the clients that have come. `admit` returns the policy of a user with these groups.
    pub fn accept(
        &mut self,
        listener: &UnixListener,
        reactor: &Reactor,
        admit: impl Fn(u32, &[u32]) -> Option<UserPolicy>,
    ) {
        for _ in 0..MOST_ACCEPTED {
            let Ok((stream, _)) = listener.accept() else { return };
            let Ok(peer) = socket_peercred(&stream) else { continue };
            let (user, pid) = (peer.uid.as_raw(), peer.pid.as_raw_pid().cast_unsigned());
            let mut groups = peer_groups(&stream).unwrap_or_default();
            groups.push(peer.gid.as_raw());
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let refuse = |message: String| {
                let _gone = (&stream).write_all(AllocationReply::Error { message }.line().as_bytes());
            };
            let of_user = self.all.values().filter(|other| other.process.user == user).count();
            if self.all.len() >= MOST_CLIENTS || user != 0 && of_user >= MOST_CLIENTS_OF_USER {
                refuse("client limit reached: try again later".to_owned());
                self.refused += 1;
                continue;
            }
            let Some(policy) = admit(user, &groups) else {
                refuse(format!("user = {user}: allowed are the users and groups of the manager's file"));
                self.refused += 1;
                continue;
            };
            let handle = pidfd_open(peer.pid, PidfdFlags::empty()).ok();
            while self.all.contains_key(&self.next) {
                self.next = (self.next + 1) % (u32::MAX / 4);
            }
            let (id, interest) = (self.next, EventFlags::IN);
            self.next = (self.next + 1) % (u32::MAX / 4);
            let number = self.base + 2 * id;
            let is_added = reactor.add(&stream, number, interest).is_ok()
                && handle.as_ref().is_none_or(|handle| reactor.add(handle, number + 1, interest).is_ok());
            if is_added {
                let connection = Connection {
                    stream,
                    _handle: handle,
                    process: ClientProcess { user, pid, policy },
                    session: None,
                    incoming: LineBuffer::new(LONGEST_LINE),
                    outgoing: Vec::new(),
                    status_bytes: 0,
                    is_leaving: false,
                    is_queued: false,
                    interest,
                };
                self.all.insert(id, connection);
            }
        }
    }

    /// Reads as a descriptor is ready for. Returns the client if it has gone.
    pub fn ready(&mut self, number: u32, flags: EventFlags) -> Option<ConnectionId> {
        let (id, has_ended) = ((number - self.base) / 2, (number - self.base) % 2 == 1);
        let connection = self.all.get_mut(&id)?;
        self.touched.insert(id);
        // Its flows end with it, so its unread lines are dropped.
        if has_ended || flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            return Some(id);
        }
        if flags.contains(EventFlags::IN) && connection.reads() && !connection.read() {
            return Some(id);
        }
        self.enqueue(id);
        None
    }

    fn enqueue(&mut self, id: ConnectionId) {
        let lines = &self.lines;
        if let Some(connection) = self.all.get_mut(&id)
            && !connection.is_queued
            && connection.outgoing.is_empty()
            && !connection.is_leaving
            && lines.get(&connection.process.user).is_none_or(|lines| *lines < MOST_LINES)
            && connection.incoming.has_line() != Ok(false)
        {
            connection.is_queued = true;
            self.queue.push_back(id);
        }
    }

    /// Returns whether a client can be served without waiting.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes the requests of the next client, a few of them, with its session.
    pub fn next_requests(&mut self) -> Option<(ConnectionId, Option<ClientKey>, Vec<AllocationRequest>)> {
        let id = self.queue.pop_front()?;
        self.touched.insert(id);
        let Some(connection) = self.all.get_mut(&id) else { return Some((id, None, Vec::new())) };
        connection.is_queued = false;
        let lines = self.lines.entry(connection.process.user).or_default();
        let mut requests = Vec::new();
        while requests.len() < MOST_REQUESTS && *lines < MOST_LINES && !connection.is_leaving {
            match connection.take_request() {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => break,
                Err(message) => {
                    connection.send(&AllocationReply::Error { message });
                    connection.is_leaving = true;
                }
            }
            *lines += 1;
        }
        Some((id, connection.session, requests))
    }

    /// Begins a second: users may send lines again.
    pub fn renew_budgets(&mut self) {
        let paused: Vec<u32> =
            self.lines.iter().filter(|(_, lines)| **lines >= MOST_LINES).map(|(user, _)| *user).collect();
        self.lines.clear();
        let ids: Vec<ConnectionId> = self
            .all
            .iter()
            .filter(|(_, its)| paused.contains(&its.process.user))
            .map(|(id, _)| *id)
            .collect();
        self.touched.extend(ids);
    }

    pub fn process(&self, id: ConnectionId) -> Option<&ClientProcess> {
        self.all.get(&id).map(|connection| &connection.process)
    }

    /// Gives a connection a session. Returns the connection that had it before.
    pub fn set_session(&mut self, id: ConnectionId, session: ClientKey) -> Option<ConnectionId> {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.session = Some(session);
        }
        self.sessions.insert(session, id).filter(|before| *before != id)
    }

    /// Sends a message to a client, which may have gone.
    pub fn send(&mut self, id: ConnectionId, reply: &AllocationReply) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.send(reply);
            self.touched.insert(id);
        }
    }

    /// Sends a message to the client of a session, if it is connected.
    pub fn send_to(&mut self, session: ClientKey, reply: &AllocationReply) {
        if let Some(id) = self.sessions.get(&session).copied() {
            self.send(id, reply);
        }
    }

    /// Returns whether a further status may wait for clients.
    pub fn has_room_for_status(&self) -> bool {
        self.all.values().map(|its| its.status_bytes).sum::<usize>() < MOST_STATUS
    }

    /// Sends a status to a client.
    pub fn send_status(&mut self, id: ConnectionId, reply: &AllocationReply) {
        self.send(id, reply);
        if let Some(connection) = self.all.get_mut(&id) {
            connection.status_bytes = connection.outgoing.len();
        }
    }

    /// Sends an error to a client, and disconnects it when it has read that.
    pub fn fail(&mut self, id: ConnectionId, message: String) {
        self.send(id, &AllocationReply::Error { message });
        if let Some(connection) = self.all.get_mut(&id) {
            connection.is_leaving = true;
        }
    }

    /// Sends waiting replies, and sets the events of each descriptor. Returns the clients that have disconnected, or
    /// leave too much unread.
    pub fn flush(&mut self, reactor: &Reactor) -> Vec<ConnectionId> {
        let mut ended = Vec::new();
        let mut is_waiting = false;
        for id in std::mem::take(&mut self.touched) {
            let Some(connection) = self.all.get_mut(&id) else { continue };
            if !connection.flush() || connection.is_leaving && connection.outgoing.is_empty() {
                ended.push(id);
                continue;
            }
            let waiting = connection.waiting();
            if waiting > MOST_WAITING {
                ended.push(id);
                continue;
            }
            is_waiting |= waiting > 0;
            self.enqueue(id);
            let Some(connection) = self.all.get_mut(&id) else { continue };
            let wanted = connection.wanted();
            if wanted != connection.interest {
                connection.interest = wanted;
                if reactor.change(&connection.stream, self.base + 2 * id, wanted).is_err() {
                    ended.push(id);
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
    fn end_largest(&self, ended: &mut Vec<ConnectionId>) {
        let stay = self.all.iter().filter(|(id, _)| !ended.contains(id));
        let mut waiting: Vec<(usize, ConnectionId)> = stay.map(|(id, its)| (its.waiting(), *id)).collect();
        let mut all: usize = waiting.iter().map(|(bytes, _)| bytes).sum();
        if all <= MOST_WAITING_ALL {
            return;
        }
        waiting.sort_unstable();
        while let Some((bytes, id)) = waiting.pop().filter(|_| all > MOST_WAITING_ALL) {
            all -= bytes;
            ended.push(id);
        }
    }

    /// Disconnects a client. Returns its session, if no other connection has it.
    pub fn remove(&mut self, id: ConnectionId) -> Option<ClientKey> {
        let connection = self.all.remove(&id)?;
        let session = connection.session?;
        if self.sessions.get(&session) != Some(&id) {
            return None;
        }
        self.sessions.remove(&session);
        Some(session)
    }
}

impl Connection {
    fn reads(&self) -> bool {
        self.outgoing.is_empty() && !self.is_leaving && !self.is_queued
    }

    /// Returns how many bytes wait beside a status.
    const fn waiting(&self) -> usize {
        self.outgoing.len().saturating_sub(self.status_bytes)
    }

    fn wanted(&mut self) -> EventFlags {
        if !self.outgoing.is_empty() {
            EventFlags::OUT
        } else if self.reads() && self.incoming.has_line() == Ok(false) {
            EventFlags::IN
        } else {
            EventFlags::empty()
        }
    }

    fn read(&mut self) -> bool {
        match self.incoming.read_from(&self.stream) {
            Ok(length) => length > 0,
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    fn take_request(&mut self) -> Result<Option<AllocationRequest>, String> {
        let too_long = |_| format!("a line is longer than {LONGEST_LINE} B");
        let Some(line) = self.incoming.take().map_err(too_long)? else { return Ok(None) };
        AllocationRequest::parse(line).map(Some).map_err(|error| error.to_string())
    }

    fn send(&mut self, reply: &AllocationReply) {
        if !self.is_leaving {
            self.outgoing.extend(reply.line().as_bytes());
        }
    }

    /// Sends pending output without blocking. Returns false if the client has disconnected.
    fn flush(&mut self) -> bool {
        if write_pending(&mut self.stream, &mut self.outgoing).is_err() {
            return false;
        }
        self.status_bytes = self.status_bytes.min(self.outgoing.len());
        if self.outgoing.is_empty() {
            self.outgoing.shrink_to(LONGEST_LINE);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that read nothing and leave a little less than each may: those with the most are disconnected, and the rest stays below
    /// the bound of all.
    #[test]
    fn clients_that_do_not_read_hold_little_memory_together() {
        const CLIENTS: usize = 140;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.sock");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let reactor = Reactor::new().unwrap();
        let mut connections = Connections::new(0);
        let silent: Vec<UnixStream> = (0..CLIENTS)
            .map(|_| {
                let client = UnixStream::connect(&path).unwrap();
                connections.accept(&listener, &reactor, |_, _| Some(UserPolicy::default()));
                client
            })
            .collect();
        assert_eq!(connections.len(), CLIENTS);
        let ids: Vec<ConnectionId> = connections.all.keys().copied().collect();
        let (few, many) = ids.split_at(CLIENTS / 10);
        let mut ended = Vec::new();
        for (group, bytes) in [(few, 400 << 10), (many, 950 << 10)] {
            for id in group {
                connections.send(*id, &AllocationReply::Error { message: "x".repeat(bytes) });
                for gone in connections.flush(&reactor) {
                    connections.remove(gone);
                    ended.push(gone);
                }
                let waiting: usize = connections.all.values().map(Connection::waiting).sum();
                assert!(waiting <= MOST_WAITING_ALL, "{waiting}");
            }
        }
        assert!(ended.len() > CLIENTS / 10, "{} were disconnected", ended.len());
        assert!(ended.iter().all(|gone| many.contains(gone)), "those that leave less stay");
        assert_eq!(connections.len() + ended.len(), CLIENTS);
        drop(silent);
    }
}
