//! The connected applications: their requests as lines in, replies and events as lines out.
//!
//! The server of lines bounds the cost of a client ([`LineServer`]). The status of an agent may be long: it is written in
//! slices, each when the client has read the one before ([`Clients::next_slices`]); events that come meanwhile follow it.

use crate::requests::{ClientId, RequestId};
use cutline_provision::protocol::{LONGEST_LINE, Reply, Request, VERSION};
use cutline_service::{LineServer, LineServerOptions};
use cutline_sys::reactor::{EventFlags, Reactor};
use std::os::unix::net::UnixListener;

/// The most requests of a client that are handled before it is another one's turn.
pub const MOST_REQUESTS: usize = 16;
/// The length at which a slice of a status ends, bytes.
pub const SLICE: usize = 32 << 10;

/// Limits of the clients. One member of the group leaves room for others.
const LIMITS: LineServerOptions = LineServerOptions {
    clients: 4096,
    clients_of_users: 4096,
    clients_of_user: 512,
    longest_line: LONGEST_LINE,
    lines_of_user: None,
    waiting: 8 << 20,
    waiting_of_all: 64 << 20,
    ends_with_process: false,
};

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

/// State of a client.
#[derive(Debug, Default)]
struct Client {
    status: Option<StatusProgress>,
    /// True if the client has stated the version of its protocol.
    is_welcome: bool,
}

/// All clients.
#[derive(Debug)]
pub struct Clients(LineServer<Client>);

impl Clients {
    /// Creates an empty set of clients. A reactor has them under their numbers, counted from `base`.
    pub fn new(base: u32) -> Self {
        Self(LineServer::new(base, LIMITS, |message| Reply::Error { message: message.to_owned() }.line()))
    }

    /// Accepts the clients that have connected.
    pub fn accept(&mut self, listener: &UnixListener, reactor: &Reactor) {
        self.0.accept(listener, reactor, |_| Ok(Client::default()));
    }

    /// Returns all clients of the user of a client; none if that is root.
    pub fn of_the_same_user(&self, id: ClientId) -> impl Iterator<Item = ClientId> + '_ {
        let user = self.0.user(id).filter(|user| *user != 0);
        user.into_iter().flat_map(move |user| self.0.clients_of(user))
    }

    /// Returns the number of clients.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of clients that were refused because there were too many.
    pub fn refused(&self) -> u64 {
        self.0.refused()
    }

    /// Reads as the descriptor with this number of the reactor is ready for. Returns the client if it has gone.
    pub fn ready(&mut self, number: u32, flags: EventFlags) -> Option<ClientId> {
        self.0.ready(number, flags)
    }

    /// Takes the next client of those that have requests.
    pub fn next_in_line(&mut self) -> Option<ClientId> {
        self.0.next_client()
    }

    /// Returns true if a client can be served without waiting: a request is there, or a status can continue.
    pub fn has_work(&self) -> bool {
        self.0.has_work()
    }

    /// Takes the next request of a client. The first one is the version of its protocol.
    pub fn request(&mut self, id: ClientId) -> Option<Request> {
        self.0.request(id, |line, client| {
            let request = Request::parse(line).map_err(|error| error.to_string())?;
            match request {
                Request::Hello { version: VERSION } => client.is_welcome = true,
                Request::Hello { version } => {
                    return Err(format!("version = {version}: allowed is {VERSION}"));
                }
                _ if !client.is_welcome => return Err("the first request must be hello".to_owned()),
                _ => {}
            }
            Ok(request)
        })
    }

    /// Sends a message to a client, which may have gone.
    pub fn send(&mut self, id: ClientId, reply: &Reply) {
        self.0.send(id, &reply.line());
    }

    /// Starts the status of a client with this text. The rest follows in slices.
    pub fn begin_status(&mut self, id: ClientId, head: &str) {
        if let Some(client) = self.0.client_mut(id) {
            client.status = Some(StatusProgress { place: StatusPart::Sessions(0), is_first: true });
            self.0.begin_parts(id, head);
        }
    }

    /// Returns the clients whose status can continue, with their remaining output, in turn.
    pub fn next_slices(&self) -> Vec<(ClientId, StatusProgress)> {
        let progress = |id: ClientId| Some((id, self.0.client(id)?.status?));
        self.0.clients_for_parts().into_iter().filter_map(progress).collect()
    }

    /// Sends a slice of a status. `progress` is where the next one begins; `None` after the last one.
    pub fn send_slice(&mut self, id: ClientId, slice: &str, progress: Option<StatusProgress>) {
        if let Some(client) = self.0.client_mut(id) {
            client.status = progress;
            self.0.send_part(id, slice, progress.is_none());
        }
    }

    /// Sends waiting replies. Returns the clients that have disconnected, or leave too much unread.
    pub fn flush(&mut self, reactor: &Reactor) -> Vec<ClientId> {
        self.0.flush(reactor)
    }

    /// Disconnects a client.
    pub fn remove(&mut self, id: ClientId) {
        self.0.remove(id);
    }
}
