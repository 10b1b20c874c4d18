//! Receive buffer of a datagram socket.

use super::carrier::DatagramCarrier;
use super::inbox::{CarrierInbox, LONGEST};
use cutline_direct::PeekedFrame;
use cutline_signal::frame::{Frame, datagram, token_of};
use cutline_signal::session::{ControlKind, Inbound, Participation, Purpose};
use cutline_sys::datagrams::Wait;
use cutline_units::Instant;
use rustix::net::{RecvFlags, recvfrom};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// Number of datagrams that one system call returns.
const BATCH: usize = 16;

/// Receive buffer.
#[derive(Debug)]
pub struct DatagramReader {
    peer: SocketAddr,
    inbox: CarrierInbox,
    /// Messages in the inbox: the number of the datagram, and the offset of the message in it.
    messages: VecDeque<(usize, usize)>,
    /// Messages that came before, outside of the inbox, with their times of arrival.
    early: VecDeque<(Instant, Vec<u8>)>,
    /// Takes one datagram at a time; `None` where the inbox does that, too.
    single: Option<CarrierInbox>,
    /// Datagram that was peeked at and not taken.
    peek_buffer: Vec<u8>,
    /// Datagrams that the kernel has dropped before the latest one, as it counts them.
    overflowed: u32,
}

impl DatagramReader {
    /// Returns a reader of a socket that is connected to this peer, and that was made for it alone or accepted by a listener. Its kernel
    /// has dropped so many datagrams so far ([`DatagramCarrier::prepare`]).
    pub fn new(carrier: &DatagramCarrier, peer: SocketAddr, is_accepted: bool, overflowed: u32) -> Self {
        let inbox = |batch| CarrierInbox::connected(carrier, batch, (peer, is_accepted), overflowed);
        let is_udp = matches!(carrier, DatagramCarrier::Udp(_));
        Self {
            peer,
            inbox: inbox(BATCH),
            messages: VecDeque::with_capacity(BATCH),
            early: VecDeque::new(),
            single: is_udp.then(|| inbox(1)),
            peek_buffer: if is_udp { vec![0; LONGEST] } else { Vec::new() },
            // Frames that were dropped are no messages; their inbox counts those.
            overflowed: if is_udp { overflowed } else { 0 },
        }
    }
}

/// A control message, and the time of its arrival.
#[derive(Debug)]
pub struct ControlMessage {
    pub at: Instant,
    pub control: ControlKind,
    pub bytes: Vec<u8>,
}

impl DatagramReader {
    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.early.is_empty()
    }

    /// Returns the time of arrival of the next message to take.
    pub fn oldest(&self) -> Option<Instant> {
        let in_inbox = || self.messages.front().map(|(number, _)| self.inbox.arrival(*number));
        self.early.front().map(|(at, _)| *at).or_else(in_inbox)
    }

    /// Adds a message that was received elsewhere.
    pub fn add(&mut self, at: Instant, message: Vec<u8>) {
        self.early.push_back((at, message));
    }

    /// Keeps the messages of the inbox, which datagrams of another connection would overwrite.
    pub fn keep(&mut self) {
        for (number, start) in self.messages.drain(..) {
            let message = self.inbox.head(number)[start..].to_vec();
            self.early.push_back((self.inbox.arrival(number), message));
        }
    }

    /// Forgets the messages of the inbox. Returns whether there were any.
    pub fn forget(&mut self) -> bool {
        let there = !self.messages.is_empty();
        self.messages.clear();
        there
    }

    /// Takes the next message. Returns its length in the buffer, and the time of its arrival.
    pub fn take(&mut self, buffer: &mut [u8]) -> Option<(usize, Instant)> {
        if let Some((at, message)) = self.early.pop_front() {
            return Some((copy(&message, buffer), at));
        }
        let (number, start) = self.messages.pop_front()?;
        Some((copy(&self.inbox.head(number)[start..], buffer), self.inbox.arrival(number)))
    }

    /// Receives datagrams; none may be left to take. Returns their number.
    pub fn fill(&mut self, socket: &DatagramCarrier, wait: Wait) -> io::Result<usize> {
        debug_assert!(self.messages.is_empty(), "a datagram that nobody has taken would be overwritten");
        self.inbox.fill(socket, wait)
    }

    /// Takes incomplete messages over from a listening socket ([`CarrierInbox::take_over`]).
    pub fn take_over(&mut self, listening: &mut CarrierInbox, port: u16) {
        self.inbox.take_over(listening, self.peer, port);
    }

    /// Returns whether so many datagrams were received, and all are empty.
    pub fn has_only_empty(&self, count: usize) -> bool {
        count > 0 && (0..count).all(|number| self.inbox.length(number) == 0)
    }

    /// Finds the messages in the datagrams that were received, and measures them. Returns the control messages among them, and datagrams
    /// of other sessions.
    pub fn sort(
        &mut self,
        count: usize,
        participation: Participation,
        inbound: &mut Inbound,
    ) -> (Vec<ControlMessage>, Vec<Stranger>) {
        let (mut found, mut strangers) = (Vec::new(), Vec::new());
        for number in 0..count {
            let (head, at) = (self.inbox.head(number), self.inbox.arrival(number));
            note_overflow(&mut self.overflowed, (self.inbox.overflowed(number), at), inbound);
            if !self.inbox.is_of_peer(number) {
                strangers.extend(Stranger::of(&self.inbox, number));
                continue;
            }
            match inbound.on_datagram(at, head, participation) {
                Purpose::Message(start) => self.messages.push_back((number, start)),
                Purpose::Control(control) => {
                    found.push(ControlMessage { at, control, bytes: head.to_vec() });
                }
                Purpose::Nothing if is_strange(head, participation) => {
                    strangers.extend(Stranger::of(&self.inbox, number));
                }
                Purpose::Nothing => {}
            }
        }
        (found, strangers)
    }
}

impl DatagramReader {
    /// Takes the next datagram if it is none of the application's, without waiting. `None` if there is none, or the
    /// application has to take it, which its descriptor shows.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn take_control(
        &mut self,
        socket: &DatagramCarrier,
        participation: Participation,
        inbound: &mut Inbound,
    ) -> io::Result<Option<Taken>> {
        let (is_taken, count) = match (socket, &mut self.inbox) {
            (DatagramCarrier::Direct(socket), CarrierInbox::Direct(inbox)) => {
                let is_message = match inbox.peek(socket)? {
                    PeekedFrame::Message(bytes) => is_message(bytes, participation),
                    // Control messages are short, except those of a long negotiation, which the next call that receives takes.
                    PeekedFrame::Part => true,
                    PeekedFrame::Malformed => false,
                };
                (!is_message, if is_message { 0 } else { inbox.fill_one(socket)? })
            }
            _ => self.take_single(socket, participation)?,
        };
        if count == 0 {
            return Ok(is_taken.then_some(Taken::Other));
        }
        let single = self.single.as_ref().unwrap_or(&self.inbox);
        note_overflow(&mut self.overflowed, (single.overflowed(0), single.arrival(0)), inbound);
        if !single.is_of_peer(0) {
            return Ok(Some(Stranger::of(single, 0).map_or(Taken::Other, Taken::Stranger)));
        }
        let (head, at) = (single.head(0), single.arrival(0));
        Ok(Some(match inbound.on_datagram(at, head, participation) {
            Purpose::Message(start) => {
                self.early.push_back((at, head[start..].to_vec()));
                Taken::Other
            }
            Purpose::Control(control) => Taken::Control(ControlMessage { at, control, bytes: head.to_vec() }),
            Purpose::Nothing if is_strange(head, participation) => {
                Stranger::of(single, 0).map_or(Taken::Other, Taken::Stranger)
            }
            Purpose::Nothing => Taken::Other,
        }))
    }

    /// Takes a datagram of UDP that is none of the application's. Returns whether there was one, and the number of datagrams in the inbox.
    fn take_single(
        &mut self,
        socket: &DatagramCarrier,
        participation: Participation,
    ) -> io::Result<(bool, usize)> {
        let (length, _, from) =
            recvfrom(socket, &mut self.peek_buffer[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        let is_ours =
            from.and_then(|from| from.try_into().ok()).is_none_or(|from: SocketAddr| from == self.peer);
        if is_message(&self.peek_buffer[..length], participation) && is_ours {
            return Ok((false, 0));
        }
        let count = match &mut self.single {
            Some(single) => single.fill(socket, Wait::No)?,
            None => 0,
        };
        Ok((count > 0, count))
    }
}

/// Returns whether a datagram is a message of the application.
fn is_message(bytes: &[u8], participation: Participation) -> bool {
    matches!(datagram(bytes, participation.token()), Frame::Data { .. } | Frame::Plain)
}

/// Takes the kernel's count of dropped datagrams with one that arrived at a time. It comes with no datagram before the first drop.
#[inline]
fn note_overflow(before: &mut u32, (count, at): (u32, Instant), inbound: &mut Inbound) {
    if count != 0 && count != *before {
        inbound.on_overflow(at, count.wrapping_sub(*before).into());
        *before = count;
    }
}

/// A datagram of another session, which the kernel has put into the queue of this socket.
#[derive(Debug)]
pub struct Stranger {
    /// The sender: the peer of the socket, or another one where the kernel found the socket before it was connected.
    pub from: SocketAddr,
    pub at: Instant,
    pub bytes: Vec<u8>,
}

impl Stranger {
    fn of(inbox: &CarrierInbox, number: usize) -> Option<Self> {
        let from = inbox.sender(number)?;
        Some(Self { from, at: inbox.arrival(number), bytes: inbox.head(number).to_vec() })
    }
}

/// Returns whether a datagram that serves no purpose belongs to another session.
fn is_strange(datagram: &[u8], participation: Participation) -> bool {
    token_of(datagram).is_some_and(|token| participation.token().is_some_and(|ours| ours != token))
}

/// Datagram that is not for the application.
pub enum Taken {
    Control(ControlMessage),
    Stranger(Stranger),
    /// Nothing that has to be handled.
    Other,
}

fn copy(message: &[u8], buffer: &mut [u8]) -> usize {
    let length = message.len().min(buffer.len());
    buffer[..length].copy_from_slice(&message[..length]);
    length
}
