//! Connections of applications: lines in, lines out, and nobody waits for a slow one.

use cutline_provision::protocol::{LONGEST_LINE, Reply, Request, VERSION};
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};

/// The number of a client.
pub type ClientId = u32;

/// The most clients at a time.
pub const MOST_CLIENTS: usize = 4096;
/// The most bytes that wait for a client that does not read.
const MOST_WAITING: usize = 32 << 20;

/// A client.
#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// It has said which version it speaks.
    is_welcome: bool,
    /// It is disconnected once it has read what there is.
    is_leaving: bool,
}

/// All clients.
#[derive(Debug, Default)]
pub struct Clients {
    connections: BTreeMap<ClientId, Connection>,
    next: ClientId,
    /// Clients that were refused because there were too many.
    pub refused: u64,
}

impl Clients {
    /// Takes the clients that have come. Returns their numbers with their descriptors.
    pub fn accept(&mut self, listener: &UnixListener) -> Vec<(ClientId, UnixStream)> {
        let mut accepted = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            if self.connections.len() >= MOST_CLIENTS {
                let message = format!("{MOST_CLIENTS} clients are connected, which are all that are served");
                drop(stream.set_nonblocking(true));
                drop((&stream).write_all(Reply::Error { message }.line().as_bytes()));
                self.refused += 1;
                continue;
            }
            let (Ok(()), Ok(copy)) = (stream.set_nonblocking(true), stream.try_clone()) else { continue };
            // A number is used again after four thousand million clients.
            while self.connections.contains_key(&self.next) {
                self.next = self.next.wrapping_add(1);
            }
            let id = self.next;
            self.next = self.next.wrapping_add(1);
            let connection = Connection {
                stream,
                incoming: Vec::new(),
                outgoing: Vec::new(),
                is_welcome: false,
                is_leaving: false,
            };
            self.connections.insert(id, connection);
            accepted.push((id, copy));
        }
        accepted
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Reads what a client has sent. Returns its requests, and whether it is still there.
    pub fn read(&mut self, id: ClientId) -> (Vec<Request>, bool) {
        let Some(connection) = self.connections.get_mut(&id) else { return (Vec::new(), false) };
        let mut requests = Vec::new();
        let outcome = connection.read(&mut requests);
        let is_there = match outcome {
            Ok(()) => true,
            Err(Ended::Gone) => false,
            Err(Ended::Wrong(message)) => {
                connection.say(&Reply::Error { message });
                connection.is_leaving = true;
                connection.flush() && !connection.outgoing.is_empty()
            }
        };
        (requests, is_there)
    }

    /// Says something to a client, which may have gone.
    pub fn say(&mut self, id: ClientId, reply: &Reply) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.say(reply);
        }
    }

    /// Sends what waits. Returns the clients that have gone, or do not read.
    pub fn flush(&mut self) -> Vec<ClientId> {
        let waiting = self.connections.iter_mut().filter(|(_, it)| !it.outgoing.is_empty() || it.is_leaving);
        let ended = waiting.filter_map(|(id, connection)| {
            let is_there = connection.flush() && !(connection.is_leaving && connection.outgoing.is_empty());
            (!is_there).then_some(*id)
        });
        ended.collect()
    }

    /// Disconnects a client.
    pub fn remove(&mut self, id: ClientId) {
        self.connections.remove(&id);
    }
}

/// Why a connection ends.
enum Ended {
    Gone,
    Wrong(String),
}

impl Connection {
    fn read(&mut self, requests: &mut Vec<Request>) -> Result<(), Ended> {
        let mut part = [0; 16 * 1024];
        // One client that sends for ever does not keep the others waiting.
        for _ in 0..16 {
            match self.stream.read(&mut part) {
                Ok(0) => return Err(Ended::Gone),
                Ok(length) => self.incoming.extend(&part[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(Ended::Gone),
            }
            self.take_lines(requests)?;
        }
        Ok(())
    }

    fn take_lines(&mut self, requests: &mut Vec<Request>) -> Result<(), Ended> {
        let mut taken = 0;
        while let Some(length) = self.incoming[taken..].iter().position(|byte| *byte == b'\n') {
            let line = &self.incoming[taken..taken + length];
            taken += length + 1;
            let request = Request::parse(line).map_err(|error| Ended::Wrong(error.to_string()))?;
            match (request, self.is_welcome) {
                (Request::Hello { version: VERSION }, _) => {
                    self.is_welcome = true;
                    self.outgoing.extend(Reply::Welcome { version: VERSION }.line().as_bytes());
                }
                (Request::Hello { version }, _) => {
                    return Err(Ended::Wrong(format!("version = {version}: allowed is {VERSION}")));
                }
                (_, false) => return Err(Ended::Wrong("the first request must be hello".to_owned())),
                (request, true) => requests.push(request),
            }
        }
        self.incoming.drain(..taken);
        if self.incoming.len() > LONGEST_LINE {
            return Err(Ended::Wrong(format!("a line is longer than {LONGEST_LINE} B")));
        }
        Ok(())
    }

    fn say(&mut self, reply: &Reply) {
        if !self.is_leaving {
            self.outgoing.extend(reply.line().as_bytes());
        }
    }

    /// Sends what can be sent. Returns whether the client is still there.
    fn flush(&mut self) -> bool {
        let mut sent = 0;
        while sent < self.outgoing.len() {
            match self.stream.write(&self.outgoing[sent..]) {
                Ok(0) => return false,
                Ok(length) => sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.outgoing.drain(..sent);
        self.outgoing.len() <= MOST_WAITING
    }
}
