//! The receiving end of flows over TCP.

use super::record::{Packet, Record};
use super::{LONGEST_DELAY, Run};
use crate::header::{Note, Preamble};
use crate::report::MeterReport;
use crate::socket::mark_answers;
use crate::stream::{Found, Inlet};
use cutline_sys::now;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_units::{Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags, sockopt};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;

/// The number of bytes to read from a connection before others have their turn.
const TURN: usize = 1 << 18;
/// The largest number of open connections without a preamble.
const MOST_UNKNOWN: usize = 1024;

pub(super) struct Connections {
    run: Run,
    open: Vec<Option<Connection>>,
    /// The free places in `open`.
    free: Vec<u32>,
    unknown: usize,
    /// The reactor's number of the first connection.
    first: u32,
    /// The numbers of the flows that have connected.
    taken: BTreeSet<u32>,
    closed: Vec<Record>,
    strangers: u64,
    buffer: Vec<u8>,
}

struct Connection {
    socket: OwnedFd,
    peer: SocketAddr,
    inlet: Inlet,
    /// The preamble and the record of the flow; `None` until the preamble is complete.
    flow: Option<(Preamble, Record)>,
}

/// The result of reading a connection.
enum Outcome {
    Open,
    Ended,
    Failed(String),
    Stranger,
}

impl Connections {
    /// The reactor's numbers of connections begin with `first`.
    pub(super) fn new(run: Run, first: u32) -> Self {
        Self {
            run,
            first,
            open: Vec::new(),
            free: Vec::new(),
            unknown: 0,
            taken: BTreeSet::new(),
            closed: Vec::new(),
            strangers: 0,
            buffer: vec![0; TURN],
        }
    }

    /// Accepts the waiting connections.
    pub(super) fn accept(&mut self, listener: &OwnedFd, reactor: &Reactor) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok((socket, address)) = net::acceptfrom_with(listener, flags) {
            let peer = address.and_then(|address| SocketAddr::try_from(address).ok());
            let peer = peer.filter(|peer| self.run.is_peer(*peer) && self.unknown < MOST_UNKNOWN);
            if peer.is_none_or(|peer| !self.add(socket, peer, reactor)) {
                self.strangers += 1;
            }
        }
    }

    /// Adds a connection to a peer of the session. Returns false if it cannot be polled.
    pub(super) fn add(&mut self, socket: OwnedFd, peer: SocketAddr, reactor: &Reactor) -> bool {
        let number = self.free.last().copied().unwrap_or(self.open.len() as u32);
        if reactor.add(&socket, self.first + number, EventFlags::IN | EventFlags::RDHUP).is_err() {
            return false;
        }
        let connection = Connection { socket, peer, inlet: Inlet::default(), flow: None };
        self.unknown += 1;
        match self.free.pop() {
            Some(free) => self.open[free as usize] = Some(connection),
            None => self.open.push(Some(connection)),
        }
        true
    }

    /// Reads from a connection.
    pub(super) fn read(&mut self, number: u32) {
        let Some(Some(connection)) = self.open.get_mut(number as usize) else { return };
        let was_unknown = connection.flow.is_none();
        let outcome = connection.read(self.run, &mut self.buffer, &mut self.taken);
        self.unknown -= usize::from(was_unknown && connection.flow.is_some());
        match outcome {
            Outcome::Open => {}
            Outcome::Ended => self.close(number, None),
            Outcome::Failed(error) => self.close(number, Some(error)),
            Outcome::Stranger => {
                self.strangers += 1;
                self.close(number, Some("the sender violated the protocol".to_owned()));
            }
        }
    }

    pub(super) fn finish(self, report: &mut MeterReport) {
        let open = self.open.into_iter().flatten().filter_map(|connection| connection.flow);
        let records = self.closed.into_iter().chain(open.map(|(_, record)| record));
        report.flows.extend(records.map(Record::finish));
        report.strangers += self.strangers;
    }

    fn close(&mut self, number: u32, error: Option<String>) {
        let Some(connection) = self.open[number as usize].take() else { return };
        self.free.push(number);
        match connection.flow {
            None => self.unknown -= 1,
            Some((_, mut record)) => {
                if let Some(error) = error {
                    record.fail(error);
                }
                self.closed.push(record);
            }
        }
    }
}

impl Connection {
    /// Reads received data, once, and measures the messages in it. `taken` has the numbers of the flows that have begun.
    fn read(&mut self, run: Run, buffer: &mut [u8], taken: &mut BTreeSet<u32>) -> Outcome {
        let count = match net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => return Outcome::Ended,
            Ok((count, _)) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Outcome::Open,
            Err(errno) => return Outcome::Failed(io::Error::from(errno).to_string()),
        };
        let mut reading =
            Reading { run, now: now(), socket: &self.socket, peer: self.peer, taken, outcome: Outcome::Open };
        let flow = &mut self.flow;
        let fed = self.inlet.feed(&buffer[..count], |found| reading.found(flow, found));
        let outcome = reading.outcome;
        if fed.is_err() { Outcome::Stranger } else { outcome }
    }
}

/// The state while a connection is read.
struct Reading<'r> {
    run: Run,
    now: Instant,
    socket: &'r OwnedFd,
    peer: SocketAddr,
    taken: &'r mut BTreeSet<u32>,
    outcome: Outcome,
}

impl Reading<'_> {
    fn found(&mut self, flow: &mut Option<(Preamble, Record)>, found: Found) {
        if let Found::Flow(preamble) = found {
            return self.introduce(flow, preamble);
        }
        // A connection without a valid preamble has no record.
        let Some((preamble, record)) = flow else { return };
        let at = self.run.time(self.now);
        match found {
            Found::Payload(bytes) => return record.payload(at, bytes),
            Found::End(Some(written)) => {
                let delay: Duration = self.now.saturating_since(written).min(LONGEST_DELAY);
                record.packet(&Packet { at, bytes: 0, delay, marked: false });
            }
            Found::End(None) => record.short_message(at),
            Found::Flow(_) => unreachable!("the preamble is handled above"),
        }
        if preamble.notify {
            self.notify(record.bytes());
        }
    }

    fn introduce(&mut self, flow: &mut Option<(Preamble, Record)>, preamble: Preamble) {
        let is_known = preamble.flow < self.run.params.flows && !preamble.reverse;
        let is_ours = is_known && self.run.is_ours(preamble.token, self.peer);
        if !is_ours || !self.taken.insert(preamble.flow) {
            self.outcome = Outcome::Stranger;
            return;
        }
        mark_answers(self.socket, self.peer, preamble.dscp);
        if preamble.receive_buffer > 0 {
            // If the kernel refuses, the window keeps its default limit.
            let bytes = preamble.receive_buffer as usize;
            let _unbounded = sockopt::set_socket_recv_buffer_size(self.socket, bytes);
        }
        *flow = Some((preamble, self.run.record(preamble.flow)));
    }

    /// Sends the note that a message is complete. The sender waits for this note, so the socket has room for it.
    fn notify(&mut self, delivered: u64) {
        let note = Note { delivered, at: self.now }.write();
        match net::send(self.socket, &note, SendFlags::NOSIGNAL) {
            Ok(count) if count == note.len() => {}
            Ok(_) | Err(Errno::AGAIN) => {
                self.outcome = Outcome::Failed("the sender does not read the receiver's notes".to_owned());
            }
            Err(errno) => self.outcome = Outcome::Failed(io::Error::from(errno).to_string()),
        }
    }
}
