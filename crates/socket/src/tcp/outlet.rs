//! What has been begun and not been sent.

use crate::connection::Connection;
use cutline_signal::frame::{LONGEST_FRAGMENT, STREAM_HEADER, stream_header};
use cutline_sys::now;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, IoSlice};
use std::net::TcpStream;

/// The longest message that one call writes, bytes.
const LONGEST: usize = if LONGEST_FRAGMENT < 1 << 20 { LONGEST_FRAGMENT } else { 1 << 20 };

/// The state of the stream towards the other end.
///
/// A header says how many bytes follow it. If the kernel takes fewer, the rest is *owed*: the next bytes that the application writes.
/// So no data of the application is kept here.
#[derive(Debug, Default)]
pub struct Outlet {
    /// Bytes of a header or of control messages that the kernel has not taken yet.
    pending: Vec<u8>,
    /// Payload that the last header has announced and that has not been written, bytes.
    owed: usize,
}

impl Outlet {
    /// Writes bytes of the application. If nothing is owed they are a new message. Returns how many the kernel has taken: all,
    /// or less if the call does not wait, or not for longer.
    pub fn write(
        &mut self,
        socket: &TcpStream,
        bytes: &[u8],
        (connection, token): (&Connection, u32),
        waits: bool,
    ) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.owed == 0 {
            // Control messages go before the header.
            self.pending.extend(connection.take_control().into_iter().flatten());
            let (now, length) = (now(), bytes.len().min(LONGEST));
            self.pending.extend(stream_header(token, length, true, now));
            self.owed = length;
            connection.outbound().on_send(now, length as u64);
        }
        let bytes = &bytes[..bytes.len().min(self.owed)];
        let mut written = 0;
        while written < bytes.len() {
            let parts = [IoSlice::new(&self.pending), IoSlice::new(&bytes[written..])];
            let none = &mut SendAncillaryBuffer::default();
            match sendmsg(socket, &parts, none, SendFlags::NOSIGNAL) {
                Ok(taken) => {
                    let payload = self.took(taken);
                    written += payload;
                    self.owed -= payload;
                }
                Err(Errno::INTR) if written == 0 => {}
                Err(errno) => {
                    if errno == Errno::AGAIN {
                        connection.feed_back(|feedback| feedback.queue_full += 1);
                    }
                    return if written > 0 { Ok(written) } else { Err(errno.into()) };
                }
            }
            if !waits && written < bytes.len() {
                break;
            }
        }
        if written == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(written) }
    }

    /// Sends control messages without waiting, unless a message is under way.
    pub fn send_control(&mut self, socket: &TcpStream, connection: &Connection) -> io::Result<()> {
        if self.owed > 0 {
            return Ok(());
        }
        self.pending.extend(connection.take_control().into_iter().flatten());
        while !self.pending.is_empty() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let taken = rustix::net::send(socket, &self.pending, flags)?;
            self.took(taken);
        }
        Ok(())
    }

    /// The kernel has taken so many bytes, pending ones first. Returns how many were payload.
    fn took(&mut self, taken: usize) -> usize {
        let pending = taken.min(self.pending.len());
        self.pending.drain(..pending);
        taken - pending
    }
}

const _: () = assert!(STREAM_HEADER < LONGEST);
