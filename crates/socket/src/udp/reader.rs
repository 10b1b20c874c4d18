//! What has been received and not been taken.

use cutline_signal::frame::{DATAGRAM_HEADER, Frame, datagram};
use cutline_signal::monitor::Arrival;
use cutline_signal::negotiation::{Framing, framing};
use cutline_signal::session::{Inbound, Outbound, Session, Standing};
use cutline_sys::datagrams::{Datagram, Inbox, Wait};
use cutline_units::Instant;
use rustix::fd::AsFd;
use rustix::net::{RecvFlags, recv};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// The longest datagram, bytes.
const LONGEST: usize = 65_535;
/// How many datagrams one system call returns.
const BATCH: usize = 16;

/// What has been received and not been taken.
#[derive(Debug)]
pub struct Reader {
    inbox: Inbox,
    /// Messages in the inbox: the number of the datagram, and where in it the message begins.
    messages: VecDeque<(usize, usize)>,
    /// Messages that came before, outside of the inbox, with their times of arrival.
    early: VecDeque<(Instant, Vec<u8>)>,
    /// Takes one datagram at a time.
    single: Inbox,
    /// What was looked at and not taken.
    glance: Vec<u8>,
}

impl Reader {
    /// A reader of a socket that is connected to this peer.
    pub fn new(peer: SocketAddr) -> Self {
        Self {
            inbox: Inbox::connected(LONGEST, BATCH, peer),
            messages: VecDeque::with_capacity(BATCH),
            early: VecDeque::new(),
            single: Inbox::connected(LONGEST, 1, peer),
            glance: vec![0; LONGEST],
        }
    }
}

/// A control message.
#[derive(Debug)]
pub enum Control {
    /// Of a negotiation.
    Negotiation(Vec<u8>),
    /// A report.
    Report(Vec<u8>),
}

impl Control {
    /// Gives the message to a session.
    pub fn handle(&self, session: &mut Session, at: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        match self {
            Self::Negotiation(bytes) => session.on_negotiation(at, bytes, out, inbound),
            Self::Report(bytes) => session.on_report(at, bytes, out, inbound),
        }
    }
}

impl Reader {
    /// Whether there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.early.is_empty()
    }

    /// Adds a message that was received elsewhere.
    pub fn add(&mut self, at: Instant, message: Vec<u8>) {
        self.early.push_back((at, message));
    }

    /// Takes the next message. Returns its length in the buffer, and when it arrived.
    pub fn take(&mut self, buffer: &mut [u8]) -> Option<(usize, Instant)> {
        if let Some((at, message)) = self.early.pop_front() {
            return Some((copy(&message, buffer), at));
        }
        let (number, start) = self.messages.pop_front()?;
        let Datagram { head, at, .. } = self.inbox.datagram(number)?;
        Some((copy(&head[start..], buffer), at))
    }

    /// Receives datagrams; there must be none to take. Returns how many.
    pub fn fill(&mut self, socket: impl AsFd, wait: Wait) -> io::Result<usize> {
        debug_assert!(self.messages.is_empty(), "a datagram that nobody has taken would be overwritten");
        self.inbox.fill(socket, wait)
    }

    /// Finds the messages in the datagrams that were received, and measures them. Returns the control messages among them,
    /// with their times of arrival.
    pub fn sort(
        &mut self,
        count: usize,
        standing: Standing,
        inbound: &mut Inbound,
    ) -> Vec<(Instant, Control)> {
        let mut control = Vec::new();
        for number in 0..count {
            let Some(Datagram { head, at, .. }) = self.inbox.datagram(number) else { continue };
            match sort(head, at, standing, inbound) {
                Sorted::Message(start) => self.messages.push_back((number, start)),
                Sorted::Control(message) => control.push((at, message)),
                Sorted::Nothing => {}
            }
        }
        control
    }
}

impl Reader {
    /// Takes the next datagram if it is none of the application's, without waiting. `None` if there is none, or the
    /// application has to take it, which its descriptor shows.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn take_control(
        &mut self,
        socket: impl AsFd,
        standing: Standing,
        inbound: &mut Inbound,
    ) -> io::Result<Option<(Instant, Sorted)>> {
        let (length, _) = recv(&socket, &mut self.glance[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        let bytes = &self.glance[..length];
        let is_message = match standing {
            Standing::Joined(token) => matches!(datagram(bytes, token), Frame::Data { .. }),
            Standing::Joining | Standing::Alone => framing(bytes) != Framing::Whole(length),
        };
        if is_message || self.single.fill(socket, Wait::No)? == 0 {
            return Ok(None);
        }
        let Some(Datagram { head, at, .. }) = self.single.datagram(0) else { return Ok(None) };
        let mut sorted = sort(head, at, standing, inbound);
        if let Sorted::Message(start) = sorted {
            self.early.push_back((at, head[start..].to_vec()));
            sorted = Sorted::Nothing;
        }
        Ok(Some((at, sorted)))
    }
}

/// What a datagram is for.
pub enum Sorted {
    /// A message for the application, which begins here.
    Message(usize),
    Control(Control),
    /// Nothing: a duplicate, or something that is not of this session.
    Nothing,
}

/// Finds out what a datagram is for, and measures it if it is a message.
pub fn sort(bytes: &[u8], at: Instant, standing: Standing, inbound: &mut Inbound) -> Sorted {
    let Standing::Joined(token) = standing else {
        if framing(bytes) == Framing::Whole(bytes.len()) {
            return Sorted::Control(Control::Negotiation(bytes.to_vec()));
        }
        inbound.on_plain(at, bytes.len() as u64);
        return Sorted::Message(0);
    };
    match datagram(bytes, token) {
        Frame::Data { number, sent } => {
            let length = bytes.len() - DATAGRAM_HEADER;
            match inbound.on_message(at, number, sent, length as u64) {
                Arrival::InOrder { .. } | Arrival::Late => Sorted::Message(DATAGRAM_HEADER),
                Arrival::Duplicate | Arrival::Impossible => Sorted::Nothing,
            }
        }
        Frame::Report => Sorted::Control(Control::Report(bytes.to_vec())),
        Frame::Negotiation => Sorted::Control(Control::Negotiation(bytes.to_vec())),
        Frame::Foreign => Sorted::Nothing,
    }
}

fn copy(message: &[u8], buffer: &mut [u8]) -> usize {
    let length = message.len().min(buffer.len());
    buffer[..length].copy_from_slice(&message[..length]);
    length
}
