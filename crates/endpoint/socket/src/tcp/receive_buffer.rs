//! Receive buffer of a stream.

use super::kernel::{receive, receive_parts};
use cutline_signal::frame::{End, STREAM_HEADER, StreamItem, StreamReader, is_data, is_data_kind};
use cutline_signal::negotiation::{Framing, framing};
use rustix::net::RecvFlags;
use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::net::TcpStream;

/// Number of bytes that are read ahead: room for a message of 64 KB with its header.
const ROOM: usize = 1 << 17;
/// Payload of this many bytes goes to the application without being copied.
const DIRECT: usize = 1 << 13;

/// For this many bytes the application may expect a message that would not fit into the buffer together with others.
const WHOLE: usize = 1 << 15;

/// The state of the stream from the peer.
#[derive(Debug, Default)]
pub struct ReceiveBuffer {
    /// The buffer; empty before the first byte.
    buffer: Vec<u8>,
    /// The part of it that has not been taken.
    start: usize,
    end: usize,
    frames: StreamReader,
    /// Number of messages that have ended.
    messages: u64,
    /// Whole messages of a connection before this one.
    left: VecDeque<u8>,
}

/// Item taken from the stream.
#[derive(Debug)]
pub enum Taken {
    /// Payload of the application, with its length; `end` if a message ends with it.
    Payload { bytes: usize, end: Option<End> },
    /// A message of a negotiation.
    Negotiation(Vec<u8>),
    /// A report.
    Report(Vec<u8>),
    /// The peer has closed its direction.
    End,
}

/// Number of attempts of a call that the kernel has not carried out, although it has no reason for that.
const TRIES: u32 = 64;

impl ReceiveBuffer {
    /// The state of a new connection, after this one.
    pub fn succeed(&mut self, next: Self) {
        *self = Self { left: std::mem::take(&mut self.left), ..next };
    }

    /// Takes all that has come over a connection that brings no more, and keeps it for the application, but for a message that is not
    /// whole. `token` is that of its messages, if it has any. Returns the ends of the messages and the control messages.
    pub fn salvage(&mut self, socket: &TcpStream, token: Option<u32>) -> Vec<Taken> {
        let (mut found, mut kept, mut whole) = (Vec::new(), Vec::new(), 0);
        let mut buffer = vec![0; WHOLE];
        let mut tries = 0;
        while tries < TRIES {
            let taken = match token {
                Some(token) => self.read(socket, &mut buffer, token, RecvFlags::empty()),
                None => self.read_plain(socket, &mut buffer, RecvFlags::empty()).map(|bytes| match bytes {
                    0 => Taken::End,
                    bytes => Taken::Payload { bytes, end: None },
                }),
            };
            match taken {
                Ok(Taken::End) => break,
                Ok(Taken::Payload { bytes, end }) => {
                    kept.extend(&buffer[..bytes]);
                    if end.is_some() || token.is_none() {
                        whole = kept.len();
                    }
                    found.push(Taken::Payload { bytes, end });
                }
                Ok(control) => found.push(control),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    tries += 1;
                }
                Err(error) if error.raw_os_error().is_some() => tries += 1,
                Err(_) => break,
            }
        }
        self.left.extend(&kept[..whole]);
        found
    }

    /// Takes the unread bytes of an earlier connection.
    pub fn take_left(&mut self, to: &mut [u8]) -> usize {
        // A deque of bytes reads as two slices, and never fails.
        self.left.read(to).unwrap_or(0)
    }

    /// Returns whether data of an earlier connection are left.
    pub fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// Returns whether the buffer is empty.
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Counts a message that has ended, and returns its number.
    pub const fn count(&mut self) -> u64 {
        self.messages += 1;
        self.messages - 1
    }

    /// Takes the next item, and waits for it if the socket blocks and the flags allow it.
    ///
    /// # Errors
    /// Those of the socket; [`io::ErrorKind::InvalidData`] when the bytes are no message of this session.
    pub fn read(
        &mut self,
        socket: &TcpStream,
        to: &mut [u8],
        token: u32,
        flags: RecvFlags,
    ) -> io::Result<Taken> {
        loop {
            if self.is_empty() && self.frames.rest() >= DIRECT && to.len() >= DIRECT {
                let most = self.frames.rest().min(to.len());
                let bytes = receive(socket, &mut to[..most], flags)?;
                if bytes == 0 {
                    return self.ended();
                }
                return Ok(Taken::Payload { bytes, end: self.frames.take(bytes) });
            }
            if self.is_empty() && self.frames.rest() == 0 && to.len() >= WHOLE {
                return self.read_message(socket, to, token, flags);
            }
            if let Some(taken) = self.next(to, token)? {
                return Ok(taken);
            }
            if self.fill(socket, flags)? == 0 {
                return self.ended();
            }
        }
    }

    /// Reads the next data into an empty buffer: a header, and the bytes behind it into the application's memory, which is right
    /// if it is a message of that length. If it is not, it is moved.
    fn read_message(
        &mut self,
        socket: &TcpStream,
        to: &mut [u8],
        token: u32,
        flags: RecvFlags,
    ) -> io::Result<Taken> {
        let mut header = [0; STREAM_HEADER];
        let most = to.len().min(ROOM - STREAM_HEADER);
        let received = receive_parts(socket, [&mut header, &mut to[..most]], flags)?;
        if received == 0 {
            return self.ended();
        }
        let there = received.saturating_sub(STREAM_HEADER);
        if received >= STREAM_HEADER && is_data(&header) {
            let Some((_, item)) = self.frames.next(&header, token).map_err(broken)? else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            let StreamItem::Payload { end, .. } = item else { return Err(io::ErrorKind::InvalidData.into()) };
            let bytes = there.min(self.frames.rest());
            let end = if bytes > 0 { self.frames.take(bytes) } else { end };
            self.keep(&[&to[bytes..there]]);
            return Ok(Taken::Payload { bytes, end });
        }
        self.keep(&[&header[..received.min(STREAM_HEADER)], &to[..there]]);
        self.read(socket, to, token, flags)
    }

    /// The peer has closed its direction, which is an error within a message: its rest is missing.
    fn ended(&self) -> io::Result<Taken> {
        let begins_message = matches!(self.buffer[self.start..self.end], [kind, ..] if is_data_kind(kind));
        if self.frames.is_within_message() || begins_message {
            let text = "the stream ends within a message: its rest is missing";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        Ok(Taken::End)
    }

    /// Puts bytes into the buffer, which is empty.
    fn keep(&mut self, parts: &[&[u8]]) {
        if self.buffer.is_empty() {
            self.buffer = vec![0; ROOM];
        }
        (self.start, self.end) = (0, 0);
        for part in parts {
            self.buffer[self.end..self.end + part.len()].copy_from_slice(part);
            self.end += part.len();
        }
    }

    /// Takes a control message that comes next, without waiting; `None` if there is none before the application's bytes. Those
    /// stay in the kernel, where the descriptor shows them.
    ///
    /// # Errors
    /// As [`ReceiveBuffer::read`].
    pub fn control(&mut self, socket: &TcpStream, token: u32) -> io::Result<Option<Taken>> {
        if self.frames.rest() > 0 {
            return Ok(None);
        }
        let seen = self.glance(socket)?;
        let found = self.frames.clone().next(&self.buffer[self.start..self.end + seen], token);
        match found.map_err(broken)? {
            None | Some((_, StreamItem::Payload { .. })) => Ok(None),
            Some((_, StreamItem::Negotiation(length) | StreamItem::Report(length))) => {
                self.receive_up_to(socket, length)?;
                self.next(&mut [], token)
            }
        }
    }

    /// Returns whether bytes of the application were received already.
    pub fn has_payload(&self, token: u32) -> bool {
        let there = &self.buffer[self.start..self.end];
        let next =
            || matches!(self.frames.clone().next(there, token), Ok(Some((_, StreamItem::Payload { .. }))));
        !there.is_empty() && (self.frames.rest() > 0 || next())
    }

    /// Takes a message of a negotiation, without waiting; `None` if something else arrives, or the stream has ended.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when more bytes are needed for a decision.
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

    /// As [`ReceiveBuffer::negotiation`], but other bytes stay in the kernel.
    ///
    /// # Errors
    /// As [`ReceiveBuffer::negotiation`].
    pub fn early_negotiation(&mut self, socket: &TcpStream) -> io::Result<Option<Vec<u8>>> {
        let seen = self.glance(socket)?;
        match framing(&self.buffer[self.start..self.end + seen]) {
            Framing::Whole(length) => {
                self.receive_up_to(socket, length)?;
                Ok(Some(self.take(length).to_vec()))
            }
            Framing::Part if seen > 0 || !self.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            Framing::Part | Framing::Foreign => Ok(None),
        }
    }

    /// Peeks at the bytes after the buffered ones, and leaves them in the kernel. Returns the number of bytes that it has seen.
    fn glance(&mut self, socket: &TcpStream) -> io::Result<usize> {
        match self.receive(socket, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.is_empty() => Ok(0),
            seen => seen,
        }
    }

    /// Receives peeked bytes, until so many are buffered.
    fn receive_up_to(&mut self, socket: &TcpStream, length: usize) -> io::Result<()> {
        while self.end - self.start < length {
            let end = self.start + length;
            let bytes = receive(socket, &mut self.buffer[self.end..end], RecvFlags::DONTWAIT)?;
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.end += bytes;
        }
        Ok(())
    }

    /// Reads from a stream without messages.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn read_plain(&mut self, socket: &TcpStream, to: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        if self.is_empty() {
            return Ok(receive(socket, to, flags)?);
        }
        let bytes = to.len().min(self.end - self.start);
        to[..bytes].copy_from_slice(self.take(bytes));
        Ok(bytes)
    }

    /// Takes the next item of the buffer; `None` if there are too few bytes.
    fn next(&mut self, to: &mut [u8], token: u32) -> io::Result<Option<Taken>> {
        // Payload beyond the room in `to` is left for the next call, so the reader does not see it.
        let there = self.end - self.start;
        let most = if self.frames.rest() > 0 { there.min(to.len()) } else { there };
        let before = self.frames.clone();
        let found = self.frames.next(&self.buffer[self.start..self.start + most], token).map_err(broken)?;
        let Some((header, item)) = found else { return Ok(None) };
        Ok(Some(match item {
            StreamItem::Payload { bytes, .. } if bytes > to.len() => {
                // A header, with more payload behind it than there is room for.
                self.frames = before;
                let whole = self.start + header + to.len();
                let item = self.frames.next(&self.buffer[self.start..whole], token).map_err(broken)?;
                let Some((_, StreamItem::Payload { bytes, end })) = item else { return Ok(None) };
                self.start += header;
                to[..bytes].copy_from_slice(self.take(bytes));
                Taken::Payload { bytes, end }
            }
            StreamItem::Payload { bytes, end } => {
                self.start += header;
                to[..bytes].copy_from_slice(self.take(bytes));
                Taken::Payload { bytes, end }
            }
            StreamItem::Negotiation(length) => Taken::Negotiation(self.take(length).to_vec()),
            StreamItem::Report(length) => Taken::Report(self.take(length).to_vec()),
        }))
    }

    fn take(&mut self, bytes: usize) -> &[u8] {
        let start = self.start;
        self.start += bytes;
        &self.buffer[start..self.start]
    }

    /// Receives more after the buffered bytes. Returns the number of bytes; 0 if the peer has closed.
    fn fill(&mut self, socket: &TcpStream, flags: RecvFlags) -> io::Result<usize> {
        let bytes = self.receive(socket, flags)?;
        self.end += bytes;
        Ok(bytes)
    }

    /// Writes the socket's data after the buffered bytes.
    fn receive(&mut self, socket: &TcpStream, flags: RecvFlags) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; ROOM];
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        debug_assert!(self.end < ROOM, "a header or a control message is shorter than the buffer");
        Ok(receive(socket, &mut self.buffer[self.end..], flags)?)
    }
}

fn broken(error: cutline_signal::frame::Broken) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
