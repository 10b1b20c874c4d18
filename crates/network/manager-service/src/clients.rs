//! The connected clients and their sessions: requests as lines in, replies and notices as lines out.
//!
//! The server of lines bounds the cost of a client ([`LineServer`]). A session outlives its connection: a client that
//! connects again takes it over, and the connection that had it before is no longer its own.

use cutline_allocation::protocol::{AllocationReply, AllocationRequest, LONGEST_LINE};
use cutline_manager::resources::{ClientKey, UserPolicy};
use cutline_service::{LineServer, LineServerOptions};
use cutline_sys::reactor::{EventFlags, Reactor};
use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;

/// The number of a connection.
pub use cutline_service::ClientNumber as ConnectionId;

/// The most requests of a client that are handled before it is another one's turn.
const MOST_REQUESTS: usize = 16;
/// The most bytes of statuses that wait for all clients together.
const MOST_STATUS: usize = 64 << 20;

/// Limits of the clients.
const LIMITS: LineServerOptions = LineServerOptions {
    clients: 4096,
    clients_of_users: 4096,
    clients_of_user: 512,
    longest_line: LONGEST_LINE,
    lines_of_user: Some(20_000),
    waiting: 1 << 20,
    waiting_of_all: 64 << 20,
    ends_with_process: true,
};

/// A process at the other end.
#[derive(Clone, Debug)]
pub struct ClientProcess {
    pub user: u32,
    pub pid: Option<u32>,
    /// Groups of the process when it connected.
    pub groups: Vec<u32>,
    pub policy: UserPolicy,
}

#[derive(Debug)]
struct Client {
    process: ClientProcess,
    session: Option<ClientKey>,
}

/// Returns the reason why a user's client is not served.
fn refusal(user: u32) -> String {
    format!("user = {user}: allowed are the users and groups of the manager's file")
}

/// All connections.
#[derive(Debug)]
pub struct Connections {
    server: LineServer<Client>,
    sessions: BTreeMap<ClientKey, ConnectionId>,
}

impl Connections {
    /// Creates an empty set. A reactor has the connections under their numbers, counted from `base`.
    pub fn new(base: u32) -> Self {
        let refusal = |message: &str| AllocationReply::Error { message: message.to_owned() }.line();
        Self { server: LineServer::new(base, LIMITS, refusal), sessions: BTreeMap::new() }
    }

    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.server.len()
    }

    /// Returns the number of clients that were refused.
    pub fn refused(&self) -> u64 {
        self.server.refused()
    }

    /// Accepts the clients that have connected. `policy` returns the policy of a user with these groups.
    pub fn accept(
        &mut self,
        listener: &UnixListener,
        reactor: &Reactor,
        policy: impl Fn(u32, &[u32]) -> Option<UserPolicy>,
    ) {
        self.server.accept(listener, reactor, |process| {
            let (user, pid) = (process.user, process.pid.map(|pid| pid.as_raw_pid().cast_unsigned()));
            let groups = process.groups.clone();
            let policy = policy(user, &groups).ok_or_else(|| refusal(user))?;
            Ok(Client { process: ClientProcess { user, pid, groups, policy }, session: None })
        });
    }

    /// Applies other rules to the connected clients. Returns the policies of their users. A client that may no longer use the manager gets the
    /// reason, and is disconnected.
    pub fn apply(&mut self, policy: impl Fn(u32, &[u32]) -> Option<UserPolicy>) -> BTreeMap<u32, UserPolicy> {
        let mut policies = BTreeMap::new();
        for id in self.server.numbers() {
            let Some(Client { process, .. }) = self.server.client_mut(id) else { continue };
            let user = process.user;
            if let Some(found) = policy(user, &process.groups) {
                process.policy = found;
                policies.insert(user, found);
            } else {
                self.server.fail(id, &refusal(user));
            }
        }
        policies
    }

    /// Reads as the descriptor with this number of the reactor is ready for. Returns the client if it has gone.
    pub fn ready(&mut self, number: u32, flags: EventFlags) -> Option<ConnectionId> {
        self.server.ready(number, flags)
    }

    /// Returns whether a client can be served without waiting.
    pub fn has_work(&self) -> bool {
        self.server.has_work()
    }

    /// Takes the requests of the next client, a few of them, with its session. A status is the last one of a turn.
    pub fn next_requests(&mut self) -> Option<(ConnectionId, Option<ClientKey>, Vec<AllocationRequest>)> {
        let id = self.server.next_client()?;
        let parse =
            |line: &[u8], _: &mut Client| AllocationRequest::parse(line).map_err(|error| error.to_string());
        let mut requests = Vec::new();
        while requests.len() < MOST_REQUESTS
            && !matches!(requests.last(), Some(AllocationRequest::Status {}))
            && let Some(request) = self.server.request(id, parse)
        {
            requests.push(request);
        }
        let session = self.server.client(id).and_then(|client| client.session);
        Some((id, session, requests))
    }

    /// Begins a second: users may send lines again.
    pub fn begin_second(&mut self) {
        self.server.begin_second();
    }

    /// Returns the process of a connection.
    pub fn process(&self, id: ConnectionId) -> Option<&ClientProcess> {
        self.server.client(id).map(|client| &client.process)
    }

    /// Gives a connection a session. Returns the connection that had it before.
    pub fn set_session(&mut self, id: ConnectionId, session: ClientKey) -> Option<ConnectionId> {
        if let Some(client) = self.server.client_mut(id) {
            client.session = Some(session);
        }
        self.sessions.insert(session, id).filter(|before| *before != id)
    }

    /// Sends a message to a client, which may have gone.
    pub fn send(&mut self, id: ConnectionId, reply: &AllocationReply) {
        self.server.send(id, &reply.line());
    }

    /// Sends a message to the client of a session, if it is connected.
    pub fn send_to(&mut self, session: ClientKey, reply: &AllocationReply) {
        if let Some(id) = self.sessions.get(&session).copied() {
            self.send(id, reply);
        }
    }

    /// Notes that a client has requested a status. Its further requests wait until the status is sent.
    pub fn begin_status(&mut self, id: ConnectionId) {
        self.server.begin_parts(id, "");
    }

    /// Returns the clients that wait for a status and have read everything before, in turn.
    pub fn clients_for_status(&self) -> Vec<ConnectionId> {
        self.server.clients_for_parts()
    }

    /// Returns whether a further status may wait for clients.
    pub fn has_room_for_status(&self) -> bool {
        self.server.shared_waiting(|_| true) < MOST_STATUS
    }

    /// Sends a status to a client. It may be longer than the notices that a client may leave unread.
    pub fn send_status(&mut self, id: ConnectionId, reply: &AllocationReply) {
        self.server.send_shared(id, reply.line().into_bytes().into());
        // Notices since the request follow it.
        self.server.send_part(id, "", true);
    }

    /// Sends an error in the place of a status, and disconnects the client when it has read that.
    pub fn refuse_status(&mut self, id: ConnectionId, message: &str) {
        self.server.fail(id, message);
        self.server.send_part(id, "", true);
    }

    /// Sends an error to a client, and disconnects it when it has read that.
    pub fn fail(&mut self, id: ConnectionId, message: &str) {
        self.server.fail(id, message);
    }

    /// Sends waiting replies. Returns the clients that have disconnected, or leave too much unread.
    pub fn flush(&mut self, reactor: &Reactor) -> Vec<ConnectionId> {
        self.server.flush(reactor)
    }

    /// Disconnects a client. Returns its session, if no other connection has it.
    pub fn remove(&mut self, id: ConnectionId) -> Option<ClientKey> {
        let session = self.server.remove(id)?.session?;
        if self.sessions.get(&session) != Some(&id) {
            return None;
        }
        self.sessions.remove(&session);
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_sys::now;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    /// A status takes longer than other requests.
    #[test]
    fn a_status_is_the_last_request_of_a_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut reactor = Reactor::new().unwrap();
        let mut connections = Connections::new(1);
        let mut client = UnixStream::connect(&path).unwrap();
        connections.accept(&listener, &reactor, |_, _| Some(UserPolicy::default()));
        let [renew, status] = ["renew", "status"].map(|name| format!("{{\"request\":\"{name}\"}}\n"));
        client.write_all(format!("{renew}{status}{status}{renew}").as_bytes()).unwrap();
        let ready: Vec<(u32, EventFlags)> = reactor.wait(now()).unwrap().collect();
        for (number, flags) in ready {
            assert_eq!(connections.ready(number, flags), None);
        }
        let (id, _, requests) = connections.next_requests().unwrap();
        assert_eq!(requests, [AllocationRequest::Renew {}, AllocationRequest::Status {}]);
        connections.begin_status(id);
        assert!(connections.flush(&reactor).is_empty());
        assert!(connections.has_work() && connections.next_requests().is_none(), "the status comes first");
        assert_eq!(connections.clients_for_status(), [id]);
        connections.send_status(id, &AllocationReply::Released { id: 1 });
        assert!(connections.flush(&reactor).is_empty() && connections.clients_for_status().is_empty());
        let (_, _, requests) = connections.next_requests().unwrap();
        assert_eq!(requests, [AllocationRequest::Status {}]);
        connections.begin_status(id);
        connections.refuse_status(id, "too much");
        assert_eq!(connections.flush(&reactor), [id], "it has the reason, and is disconnected");
    }
}
