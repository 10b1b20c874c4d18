//! Received messages of a direct socket.

use crate::address::DirectAddress;
use crate::socket::DirectSocket;
use cutline_sys::datagrams::{Inbox, Wait};
use cutline_units::Instant;
use cutline_wire::direct::{DirectFlow, DirectHeader, DirectMessage, Reassembly, ReassemblyStats};
use rustix::net::{RecvFlags, recv};
use std::collections::BTreeMap;
use std::io;

/// Room for the longest frame that an MTU of Linux allows, bytes. Memory that no frame has needed is not used.
const LONGEST_FRAME: usize = 65_536;
/// Number of frames that one system call returns.
const BATCH: usize = 64;
/// The most incomplete messages of all senders.
const MOST_INCOMPLETE: usize = 64;
/// The most senders whose latest message is remembered.
const MOST_SENDERS: usize = 4096;
/// Number of messages behind the last one of another inbox, after which none can be a repetition.
const SETTLED: u32 = 1024;

/// A message that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Its sender.
    pub from: DirectAddress,
    /// Arrival at the kernel of the frame that has completed it, on the scale of [`cutline_sys::now`].
    pub at: Instant,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Number of messages that were lost so far because the socket's buffer was full. It wraps around.
    pub overflowed: u32,
}

/// Receives messages from a direct socket.
#[derive(Debug)]
pub struct DirectInbox {
    frames: Inbox,
    single: Inbox,
    reassembly: Reassembly,
    messages: Vec<ReceivedMessage>,
    peek_buffer: Vec<u8>,
    losses: LossCounter,
    /// The last message that another inbox has received.
    repeated: Option<u32>,
}

/// Counter of the messages that a full socket has lost.
#[derive(Debug)]
struct LossCounter {
    /// Number of the latest message of each sender.
    latest: BTreeMap<([u8; 6], DirectFlow), u32>,
    /// Frames that the socket has dropped, as the kernel counts them, and the messages among them.
    dropped_frames: u32,
    overflowed: u32,
}

/// The next frame of a socket, which was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum PeekedFrame<'i> {
    /// A message in one frame.
    Message(&'i [u8]),
    /// Part of a message.
    Part,
    /// No frame of a message.
    Malformed,
}

impl Default for DirectInbox {
    fn default() -> Self {
        Self::new(0)
    }
}

impl DirectInbox {
    /// Returns an inbox of a socket that has dropped so many frames already ([`prepare`](Self::prepare)).
    pub fn new(dropped_frames: u32) -> Self {
        Self {
            frames: Inbox::new(LONGEST_FRAME, BATCH),
            single: Inbox::new(LONGEST_FRAME, 1),
            reassembly: Reassembly::new(MOST_INCOMPLETE),
            messages: Vec::new(),
            peek_buffer: Vec::new(),
            losses: LossCounter { latest: BTreeMap::new(), dropped_frames, overflowed: 0 },
            repeated: None,
        }
    }

    /// Enables time stamps, and the count of frames that the kernel drops because the socket's buffer is full. Returns how many
    /// it has dropped so far.
    ///
    /// # Errors
    /// When the kernel does not have one of them.
    pub fn prepare(socket: &DirectSocket) -> io::Result<u32> {
        Inbox::stamp(socket)?;
        Inbox::enable_overflow_count(socket)
    }

    /// Moves the received parts of a peer's incomplete messages to the inbox of the listening socket, and ignores messages that came there.
    pub fn take_over(&mut self, listening: &mut Self, peer: DirectAddress, port: u16) {
        let flow = DirectFlow { destination: port, source: peer.port };
        listening.reassembly.hand_over(peer.link, flow, &mut self.reassembly);
        self.repeated = listening.losses.latest.get(&(peer.link, flow)).copied();
    }

    /// Returns the counters of frames.
    pub const fn stats(&self) -> ReassemblyStats {
        self.reassembly.stats()
    }

    /// Returns the messages of the last call.
    pub fn messages(&self) -> &[ReceivedMessage] {
        &self.messages
    }

    /// Receives frames, in the place of the messages that were there. Returns the number of messages, which may be 0.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when no frame has arrived in time; another one when the socket has an error.
    pub fn fill(&mut self, socket: &DirectSocket, wait: Wait) -> io::Result<usize> {
        self.clear();
        let count = self.frames.fill(socket, wait)?;
        for number in 0..count {
            take(&self.frames, number, &mut self.reassembly, |message, at, dropped| {
                let overflowed = self.losses.count(&message, dropped);
                push(&mut self.messages, &mut self.repeated, (message, at, overflowed), socket);
            });
        }
        Ok(self.messages.len())
    }

    /// Receives one frame, without waiting. Returns the number of messages: 0 or 1.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub fn fill_one(&mut self, socket: &DirectSocket) -> io::Result<usize> {
        self.clear();
        self.single.fill(socket, Wait::No)?;
        take(&self.single, 0, &mut self.reassembly, |message, at, dropped| {
            let overflowed = self.losses.count(&message, dropped);
            push(&mut self.messages, &mut self.repeated, (message, at, overflowed), socket);
        });
        Ok(self.messages.len())
    }

    /// Looks at the next frame, which stays in the socket's queue.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none.
    pub fn peek(&mut self, socket: &DirectSocket) -> io::Result<PeekedFrame<'_>> {
        self.peek_buffer.resize(LONGEST_FRAME, 0);
        let (length, _) = recv(socket, &mut self.peek_buffer[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        Ok(match DirectHeader::read(&self.peek_buffer[..length]) {
            Ok((header, payload, _)) if payload.len() as u32 == header.total => PeekedFrame::Message(payload),
            Ok(_) => PeekedFrame::Part,
            Err(_) => PeekedFrame::Malformed,
        })
    }

    fn clear(&mut self) {
        for message in self.messages.drain(..) {
            self.reassembly.reuse(message.bytes);
        }
    }
}

/// Takes a frame. `each` gets the message that it completes, its time of arrival, and the frames that the socket has dropped before.
fn take(
    inbox: &Inbox,
    number: usize,
    reassembly: &mut Reassembly,
    each: impl FnOnce(DirectMessage, Instant, u32),
) {
    let Some(link) = inbox.link_sender(number) else { return };
    // Frames that are not part of a message are counted.
    if let Ok(Some(message)) = reassembly.take(link, inbox.head(number)) {
        each(message, inbox.arrival(number), inbox.overflowed(number));
    }
}

impl LossCounter {
    /// Counts messages that are missing between a sender's latest one and this one, if the socket has dropped frames meanwhile. Returns
    /// the number of all that were lost so.
    fn count(&mut self, message: &DirectMessage, dropped: u32) -> u32 {
        if self.latest.len() >= MOST_SENDERS {
            self.latest.clear();
        }
        let before = self.latest.insert((message.source.link, message.source.flow), message.number);
        // It comes with no frame before the first drop.
        if dropped != 0 && dropped != self.dropped_frames {
            let frames = dropped.wrapping_sub(self.dropped_frames);
            let missing = before.map_or(0, |before| message.number.wrapping_sub(before).wrapping_sub(1));
            self.dropped_frames = dropped;
            // A message has at least one frame. A number from before is no gap.
            let lost = if missing < 1 << 31 { missing.min(frames) } else { 0 };
            self.overflowed = self.overflowed.wrapping_add(lost);
        }
        self.overflowed
    }
}

fn push(
    messages: &mut Vec<ReceivedMessage>,
    repeated: &mut Option<u32>,
    (message, at, overflowed): (DirectMessage, Instant, u32),
    socket: &DirectSocket,
) {
    if let Some(last) = *repeated {
        let ahead = message.number.wrapping_sub(last);
        if ahead == 0 || ahead >= 1 << 31 {
            return;
        }
        if ahead > SETTLED {
            *repeated = None;
        }
    }
    let DirectMessage { source, bytes, .. } = message;
    let from =
        DirectAddress { interface: socket.local().interface, link: source.link, port: source.flow.source };
    messages.push(ReceivedMessage { from, at, bytes, overflowed });
}
