//! What has been received and not been taken.

use cutline_signal::frame::{End, Item, StreamReader};
use cutline_signal::negotiation::{Framing, framing};
use rustix::net::{RecvFlags, recv};
use std::io;
use std::net::TcpStream;

/// How many bytes are read ahead.
const ROOM: usize = 1 << 16;
/// Payload of this many bytes goes to the application without being copied.
const DIRECT: usize = 1 << 13;

/// The state of the stream from the other end.
#[derive(Debug, Default)]
pub struct Inlet {
    /// What was received; empty before the first byte.
    buffer: Vec<u8>,
    /// The part of it that has not been taken.
    start: usize,
    end: usize,
    frames: StreamReader,
    /// How many messages have ended.
    messages: u64,
}

/// What was taken from the stream.
#[derive(Debug)]
pub enum Taken {
    /// So many bytes of the application; `end` if a message ends with them.
    Payload { bytes: usize, end: Option<End> },
    /// A message of a negotiation.
    Negotiation(Vec<u8>),
    /// A report.
    Report(Vec<u8>),
    /// The other end has closed its direction.
    End,
}

impl Inlet {
    /// Whether nothing is there to be taken.
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Counts a message that has ended, and returns its number.
    pub const fn count(&mut self) -> u64 {
        self.messages += 1;
        self.messages - 1
    }

    /// Takes what comes next, and waits for it if the socket does.
    ///
    /// # Errors
    /// Those of the socket; [`io::ErrorKind::InvalidData`] when what comes is no message of this session.
    pub fn read(&mut self, socket: &TcpStream, to: &mut [u8], token: u32) -> io::Result<Taken> {
        loop {
            if self.is_empty() && self.frames.rest() >= DIRECT && to.len() >= DIRECT {
                let most = self.frames.rest().min(to.len());
                let (bytes, _) = recv(socket, &mut to[..most], RecvFlags::empty())?;
                if bytes == 0 {
                    return Ok(Taken::End);
                }
                return Ok(Taken::Payload { bytes, end: self.frames.take(bytes) });
            }
            if let Some(taken) = self.next(to, token)? {
                return Ok(taken);
            }
            if self.fill(socket, RecvFlags::empty())? == 0 {
                return Ok(Taken::End);
            }
        }
    }

    /// Takes control messages that come next, without waiting; `None` if there are none before the application's bytes.
    ///
    /// # Errors
    /// As [`Inlet::read`].
    pub fn control(&mut self, socket: &TcpStream, token: u32) -> io::Result<Option<Taken>> {
        if self.frames.rest() > 0 {
            return Ok(None);
        }
        loop {
            let mut frames = self.frames.clone();
            let item = frames.next(&self.buffer[self.start..self.end], token).map_err(broken)?;
            match item {
                Some((_, Item::Payload { .. })) => return Ok(None),
                Some(_) => return self.next(&mut [], token),
                None if self.fill(socket, RecvFlags::DONTWAIT)? == 0 => return Ok(None),
                None => {}
            }
        }
    }

    /// Takes a message of a negotiation, without waiting; `None` if something else comes, or nothing any more.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when not enough has come to tell.
    pub fn negotiation(&mut self, socket: &TcpStream) -> io::Result<Option<Vec<u8>>> {
        loop {
            match framing(&self.buffer[self.start..self.end]) {
                Framing::Whole(length) => return Ok(Some(self.take(length).to_vec())),
                Framing::Foreign => return Ok(None),
                Framing::Part if self.fill(socket, RecvFlags::DONTWAIT)? == 0 => return Ok(None),
                Framing::Part => {}
            }
        }
    }

    /// Reads from a stream without messages.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn read_plain(&mut self, socket: &TcpStream, to: &mut [u8]) -> io::Result<usize> {
        if self.is_empty() {
            return Ok(recv(socket, to, RecvFlags::empty())?.0);
        }
        let bytes = to.len().min(self.end - self.start);
        to[..bytes].copy_from_slice(self.take(bytes));
        Ok(bytes)
    }

    /// Takes the next item of what was received; `None` if there is too little.
    fn next(&mut self, to: &mut [u8], token: u32) -> io::Result<Option<Taken>> {
        // Payload that has no room stays: the reader is told of no more bytes than that.
        let there = self.end - self.start;
        let most = if self.frames.rest() > 0 { there.min(to.len()) } else { there };
        let before = self.frames.clone();
        let found = self.frames.next(&self.buffer[self.start..self.start + most], token).map_err(broken)?;
        let Some((header, item)) = found else { return Ok(None) };
        Ok(Some(match item {
            Item::Payload { bytes, .. } if bytes > to.len() => {
                // A header, with more payload behind it than there is room for.
                self.frames = before;
                let whole = self.start + header + to.len();
                let item = self.frames.next(&self.buffer[self.start..whole], token).map_err(broken)?;
                let Some((_, Item::Payload { bytes, end })) = item else { return Ok(None) };
                self.start += header;
                to[..bytes].copy_from_slice(self.take(bytes));
                Taken::Payload { bytes, end }
            }
            Item::Payload { bytes, end } => {
                self.start += header;
                to[..bytes].copy_from_slice(self.take(bytes));
                Taken::Payload { bytes, end }
            }
            Item::Negotiation(length) => Taken::Negotiation(self.take(length).to_vec()),
            Item::Report(length) => Taken::Report(self.take(length).to_vec()),
        }))
    }

    fn take(&mut self, bytes: usize) -> &[u8] {
        let start = self.start;
        self.start += bytes;
        &self.buffer[start..self.start]
    }

    /// Receives more behind what is there. Returns how many bytes; 0 if the other end has closed.
    fn fill(&mut self, socket: &TcpStream, flags: RecvFlags) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; ROOM];
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        debug_assert!(self.end < ROOM, "a header or a control message is shorter than the buffer");
        let (bytes, _) = recv(socket, &mut self.buffer[self.end..], flags)?;
        self.end += bytes;
        Ok(bytes)
    }
}

fn broken(error: cutline_signal::frame::Broken) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
