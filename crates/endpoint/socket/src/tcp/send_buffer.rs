//! Send buffer of a stream.

use super::kernel;
use crate::connection::Connection;
use crate::patience::Until;
use crate::signals::{self, CountedWait};
use cutline_signal::frame::{LONGEST_FRAGMENT, STREAM_HEADER, stream_header};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_units::{Duration, Instant};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::io;
use std::net::TcpStream;

/// The longest message that one call writes, bytes.
const LONGEST: usize = if LONGEST_FRAGMENT < 1 << 20 { LONGEST_FRAGMENT } else { 1 << 20 };

/// The state of the stream towards the peer.
///
/// A header gives the number of bytes after it. If the kernel takes fewer, the rest is *owed*: the next bytes that the application writes.
/// So no data of the application is kept here.
#[derive(Debug, Default)]
pub struct SendBuffer {
    /// Bytes of a header or of control messages that the kernel has not taken yet.
    pending: Vec<u8>,
    /// Payload that the last header has announced and that has not been written, bytes.
    owed: usize,
    /// This direction was shut down: nothing more is sent.
    is_shut_down: bool,
    /// True if the application waits for room to send.
    is_held: bool,
    /// Error that the kernel reported after it had accepted a part of the bytes of a call. The kernel reports an error once.
    failure: Option<Errno>,
}

impl SendBuffer {
    /// Returns a buffer that begins with bytes that the kernel has not taken yet.
    pub const fn new(pending: Vec<u8>) -> Self {
        Self { pending, owed: 0, is_shut_down: false, is_held: false, failure: None }
    }

    /// Returns whether a message has begun and not ended.
    pub const fn is_within_message(&self) -> bool {
        self.owed > 0
    }

    /// Writes bytes of the application. If nothing is owed they are a new message. Returns the number that the kernel has accepted: all,
    /// or less if the call does not wait (without `until`), or not for longer.
    pub fn write(
        &mut self,
        socket: &TcpStream,
        bytes: &[u8],
        (connection, token): (&Connection, u32),
        until: Option<&Until>,
    ) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let mut begins = None;
        if self.owed == 0 {
            // Control messages go before the header.
            self.pending.extend(connection.take_control().into_iter().flatten());
            let (now, length) = (now(), bytes.len().min(LONGEST));
            self.pending.extend(stream_header(token, length, true, now));
            self.owed = length;
            begins = Some(now);
            connection.outbound().begin(now, length as u64);
        }
        let bytes = &bytes[..bytes.len().min(self.owed)];
        let (written, failure) = self.push(socket, bytes, connection, until, |this, payload| {
            if let Some(at) = begins.take_if(|_| this.pending.len() < STREAM_HEADER) {
                connection.outbound().on_send(at, this.owed as u64);
            }
            this.owed -= payload;
        });
        if begins.is_some() {
            self.retract(connection);
        }
        self.outcome(written, failure)
    }

    /// Writes bytes of the application as they are, to an end that takes no part. Returns the number that the kernel has accepted, as
    /// [`SendBuffer::write`] does.
    pub fn write_plain(
        &mut self,
        socket: &TcpStream,
        bytes: &[u8],
        connection: &Connection,
        until: Option<&Until>,
    ) -> io::Result<usize> {
        let (written, failure) = self.push(socket, bytes, connection, until, |_, _| {});
        self.outcome(written, failure)
    }

    /// Gives bytes to the kernel, pending ones before them, and waits for room as long as the call may. `on_taken` gets the number of
    /// the application's bytes in each part that the kernel has accepted. Returns the number of all, and the error that has ended the call before the last one.
    fn push(
        &mut self,
        socket: &TcpStream,
        bytes: &[u8],
        connection: &Connection,
        until: Option<&Until>,
        mut on_taken: impl FnMut(&mut Self, usize),
    ) -> (usize, Option<Errno>) {
        if self.is_shut_down {
            // A report of the peer may have reset the connection since, which the kernel would return.
            return (0, Some(Errno::PIPE));
        }
        // The flags of the next try: a call that looks for signals waits before it, any other one in the kernel.
        let next_try = |until: &Until| {
            if !signals::looks() {
                return Ok(SendFlags::empty());
            }
            match until.wait_until_ready(socket, PollFlags::OUT) {
                Ok(()) => Ok(SendFlags::DONTWAIT),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Errno::AGAIN),
                Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::INTR)),
            }
        };
        // The first try does not wait, so that the time is known in which the call does.
        let (mut written, mut flags, mut waits_since) = (0, SendFlags::DONTWAIT, None);
        let failure = loop {
            match kernel::send(socket, [&self.pending, &bytes[written..]], flags) {
                Ok(taken) => {
                    let payload = self.took(taken);
                    on_taken(self, payload);
                    written += payload;
                    if written == bytes.len() {
                        self.release(connection);
                        break None;
                    }
                    let was_waiting = flags.is_empty();
                    self.hold(connection);
                    if until.is_some() {
                        waits_since.get_or_insert_with(|| begin_wait(connection));
                    }
                    // A call that waits stops in the middle for a signal, or at the end of its time.
                    if was_waiting && signals::may_interrupt() {
                        break Some(Errno::INTR);
                    }
                    match until.map(next_try) {
                        None => break Some(Errno::AGAIN),
                        Some(Err(errno)) => break Some(errno),
                        Some(Ok(next)) => flags = next,
                    }
                }
                Err(Errno::INTR) if written == 0 && !signals::may_interrupt() => {}
                Err(Errno::AGAIN) => {
                    self.hold(connection);
                    waits_since.get_or_insert_with(|| begin_wait(connection));
                    // The kernel itself has waited until the end of the call's time.
                    match until.filter(|_| !flags.is_empty()).map(next_try) {
                        None => break Some(Errno::AGAIN),
                        Some(Err(errno)) => break Some(errno),
                        Some(Ok(next)) => flags = next,
                    }
                }
                Err(errno) => break Some(errno),
            }
        };
        if until.is_some() {
            self.release(connection);
            if let Some(since) = waits_since {
                let waited = now().saturating_since(since);
                connection.feed_back(|feedback| feedback.waited += waited);
            }
        }
        (written, failure)
    }

    /// Returns the result of a call. An error after a part of its bytes is kept.
    fn outcome(&mut self, written: usize, failure: Option<Errno>) -> io::Result<usize> {
        match failure {
            Some(errno) if written == 0 => Err(errno.into()),
            Some(errno) if ![Errno::AGAIN, Errno::INTR].contains(&errno) => {
                self.failure = Some(errno);
                Ok(written)
            }
            _ => Ok(written),
        }
    }

    /// Takes the error of a call that was not returned, because the call had written a part of its bytes.
    pub const fn take_failure(&mut self) -> Option<Errno> {
        self.failure.take()
    }

    /// The application waits for room from now on.
    fn hold(&mut self, connection: &Connection) {
        if !self.is_held {
            self.is_held = true;
            connection.outbound().hold(now());
        }
    }

    /// The application waits no longer.
    fn release(&mut self, connection: &Connection) {
        if self.is_held {
            self.is_held = false;
            connection.outbound().release(now());
        }
    }

    /// Notices that there is room for an application that does not wait.
    pub fn notice_room(&mut self, socket: &TcpStream, connection: &Connection) {
        if self.is_held && wait(&mut [PollFd::new(socket, PollFlags::OUT)], Duration::ZERO).unwrap_or(true) {
            self.release(connection);
        }
    }

    /// Takes back a message of which the kernel has nothing, not even of its header: its bytes may never be written.
    fn retract(&mut self, connection: &Connection) {
        connection.outbound().retract(now());
        self.pending.truncate(self.pending.len() - STREAM_HEADER);
        self.owed = 0;
    }

    /// Sends control messages without waiting, unless a message is under way.
    pub fn send_control(&mut self, socket: &TcpStream, connection: &Connection) -> io::Result<()> {
        if self.owed > 0 {
            return Ok(());
        }
        let control = connection.take_control();
        if self.is_shut_down {
            return Ok(());
        }
        self.pending.extend(control.into_iter().flatten());
        while !self.pending.is_empty() {
            let taken = kernel::send(socket, [&self.pending, &[]], SendFlags::DONTWAIT)?;
            self.took(taken);
        }
        Ok(())
    }

    /// Returns whether this direction was shut down.
    pub const fn is_shut_down(&self) -> bool {
        self.is_shut_down
    }

    /// This direction was shut down. Data that waited for the kernel is dropped.
    pub fn shut_down(&mut self) {
        self.is_shut_down = true;
        self.pending = Vec::new();
    }

    /// Returns the number of bytes that wait for the kernel.
    #[cfg(test)]
    pub const fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Removes the bytes that the kernel has accepted, pending ones first. Returns the number of payload bytes among them.
    fn took(&mut self, taken: usize) -> usize {
        let pending = taken.min(self.pending.len());
        self.pending.drain(..pending);
        taken - pending
    }
}

/// Counts that a call has found a full send queue. Returns the time from which on it waits, if it does.
fn begin_wait(connection: &Connection) -> Instant {
    if signals::counts(CountedWait::Room) {
        connection.feed_back(|feedback| feedback.queue_full += 1);
    }
    now()
}

const _: () = assert!(STREAM_HEADER < LONGEST);
