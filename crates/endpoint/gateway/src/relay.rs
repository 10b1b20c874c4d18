//! One stream: bytes read at each end are written to the other one.
//!
//! One thread serves both directions, so that an end that fails is closed with a reset at once, and never looks like one that has ended in
//! order. The backlog between reading and writing is bounded: while an end takes nothing, the other one is not read.

use crate::greeting::Greeting;
use crate::stop::Stop;
use cutline_socket::QosTcpStream;
use rustix::event::PollFlags;
use rustix::net::sockopt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

/// The most that is read and not written yet, of each direction, bytes. A message is at most this long.
pub const ROOM: usize = 1 << 16;

/// An end of a relay. It does not wait.
pub trait Stream: AsFd {
    fn take(&self, to: &mut [u8]) -> io::Result<usize>;
    fn put(&self, bytes: &[u8]) -> io::Result<usize>;
    fn end_writing(&self) -> io::Result<()>;
}

/// Implements [`Stream`] for sockets by the calls that they have alike.
macro_rules! streams {
    ($($socket:ty),+) => { $(
        impl Stream for $socket {
            fn take(&self, to: &mut [u8]) -> io::Result<usize> {
                (&mut &*self).read(to)
            }

            fn put(&self, bytes: &[u8]) -> io::Result<usize> {
                (&mut &*self).write(bytes)
            }

            fn end_writing(&self) -> io::Result<()> {
                self.shutdown(Shutdown::Write)
            }
        }
    )+ };
}

streams!(TcpStream, QosTcpStream);

/// Reason for the end of a relay.
#[derive(Debug)]
pub enum Ending {
    /// Both directions have ended in order.
    Done,
    /// The connection to the program or server broke.
    Plain(io::Error),
    /// The QoS connection broke.
    Qos(io::Error),
    /// The far gateway has not reached the server, or is none.
    Refused(Option<Greeting>),
    /// The gateway ends.
    Stopped,
}

/// Message that a near end expects before the server's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expects {
    /// The far gateway's greeting.
    Greeting,
    /// Nothing.
    Nothing,
}

/// A direction.
struct Pipe {
    buffer: Box<[u8]>,
    /// Range of data read and not written.
    start: usize,
    end: usize,
    /// The longest message that may be written, bytes.
    longest: usize,
    has_read_all: bool,
    has_written_all: bool,
}

impl Pipe {
    fn new(longest: usize) -> Self {
        Self {
            buffer: vec![0; ROOM].into_boxed_slice(),
            start: 0,
            end: 0,
            longest: longest.clamp(1, ROOM),
            has_read_all: false,
            has_written_all: false,
        }
    }

    const fn wants_to_read(&self) -> bool {
        !self.has_read_all && self.end - self.start < ROOM
    }

    const fn wants_to_write(&self) -> bool {
        self.start < self.end
    }

    /// Reads available bytes. Returns whether there were any, or the end.
    fn read(&mut self, from: &impl Stream) -> io::Result<bool> {
        if !self.wants_to_read() {
            return Ok(false);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let Some(bytes) = unless_blocked(from.take(&mut self.buffer[self.end..]))? else { return Ok(false) };
        self.end += bytes;
        self.has_read_all = bytes == 0;
        Ok(true)
    }

    /// Writes as many bytes as the stream accepts, and the end after all bytes. Returns whether something was written.
    fn write(&mut self, to: &impl Stream) -> io::Result<bool> {
        if self.wants_to_write() {
            let most = self.end.min(self.start + self.longest);
            let bytes = unless_blocked(to.put(&self.buffer[self.start..most]))?;
            self.start += bytes.unwrap_or(0);
            return Ok(bytes.is_some());
        }
        if self.has_read_all && !self.has_written_all {
            to.end_writing()?;
            self.has_written_all = true;
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes the first byte that was read.
    fn take_first(&mut self) -> Option<u8> {
        let first = *self.buffer[..self.end].get(self.start)?;
        self.start += 1;
        Some(first)
    }
}

/// A result; `None` if the call would have had to wait.
fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        other => other.map(Some),
    }
}

/// Relays until both directions have ended, or one end breaks. Both ends must not wait. `longest` is the longest message of the QoS
/// connection, bytes.
pub fn relay(
    plain: &impl Stream,
    qos: &impl Stream,
    expects: Expects,
    longest: usize,
    stop: &Stop,
) -> Ending {
    let (mut out, mut back) = (Pipe::new(longest), Pipe::new(ROOM));
    let mut greets = expects == Expects::Greeting;
    loop {
        let mut is_busy = false;
        match step(plain, qos, &mut out, &mut back, &mut greets) {
            Ok(progress) => is_busy |= progress,
            Err(ending) => return ending,
        }
        if out.has_written_all && back.has_written_all {
            return Ending::Done;
        }
        if stop.is_set() {
            return Ending::Stopped;
        }
        if !is_busy && let Err(ending) = wait(plain, qos, &out, &back, stop) {
            return ending;
        }
    }
}

/// Reads and writes once each, as far as possible.
fn step(
    plain: &impl Stream,
    qos: &impl Stream,
    out: &mut Pipe,
    back: &mut Pipe,
    greets: &mut bool,
) -> Result<bool, Ending> {
    let mut progress = out.read(plain).map_err(Ending::Plain)?;
    progress |= back.read(qos).map_err(Ending::Qos)?;
    if *greets {
        match back.take_first().map(Greeting::from_byte) {
            Some(Some(Greeting::Connected)) => *greets = false,
            Some(other) => return Err(Ending::Refused(other)),
            None if back.has_read_all => return Err(Ending::Refused(None)),
            None => {}
        }
    }
    progress |= out.write(qos).map_err(Ending::Qos)?;
    progress |= back.write(plain).map_err(Ending::Plain)?;
    Ok(progress)
}

/// Waits until an end can continue.
fn wait(plain: &impl Stream, qos: &impl Stream, out: &Pipe, back: &Pipe, stop: &Stop) -> Result<(), Ending> {
    let interest = |reads: &Pipe, writes: &Pipe| {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, reads.wants_to_read());
        flags.set(PollFlags::OUT, writes.wants_to_write());
        flags
    };
    let (of_plain, of_qos) = (interest(out, back), interest(back, out));
    // An end without pending reads or writes is watched for a failure, unless it has received everything: it would be reported as hung up all the time.
    let found = match (of_plain.is_empty() && back.has_written_all, of_qos.is_empty() && out.has_written_all)
    {
        (true, true) => return Ok(()),
        (true, false) => {
            let [qos] = stop.poll([(qos.as_fd(), of_qos)], None).map_err(Ending::Qos)?;
            [PollFlags::empty(), qos]
        }
        (false, true) => {
            let [plain] = stop.poll([(plain.as_fd(), of_plain)], None).map_err(Ending::Plain)?;
            [plain, PollFlags::empty()]
        }
        (false, false) => {
            stop.poll([(plain.as_fd(), of_plain), (qos.as_fd(), of_qos)], None).map_err(Ending::Qos)?
        }
    };
    failure(plain, of_plain, found[0]).map_err(Ending::Plain)?;
    failure(qos, of_qos, found[1]).map_err(Ending::Qos)
}

/// Returns the failure of an end that is neither read nor written at the moment. The next call reports other failures.
fn failure(stream: &impl Stream, interest: PollFlags, found: PollFlags) -> io::Result<()> {
    let is_broken = found.intersects(PollFlags::ERR | PollFlags::HUP);
    if !interest.is_empty() || !is_broken {
        return Ok(());
    }
    match sockopt::socket_error(stream.as_fd())? {
        Err(errno) => Err(errno.into()),
        Ok(()) => Err(ErrorKind::ConnectionReset.into()),
    }
}

/// Closes a stream with a reset, so that its peer does not take the received part for the whole.
pub fn reset(stream: impl AsFd) {
    // Where that is refused, the connection is gone already.
    let _gone = sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO));
}
