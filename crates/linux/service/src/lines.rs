//! Lines over a local stream socket: the protocol of `cutlined` and of a router at work.
//!
//! Both ends write lines, each a request or a document. A [`LineBuffer`] finds the lines in received bytes. A [`LineClient`]
//! is the client's end, with a limit of time for every step.

use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_units::{Duration, Instant};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Bytes that are read at once.
const PART: usize = 16 * 1024;

/// Received bytes, taken line by line. A line is at most so long.
#[derive(Debug)]
pub struct LineBuffer {
    longest: usize,
    bytes: Vec<u8>,
    /// Number of bytes that were taken.
    taken: usize,
    /// Number of bytes up to which there is no end of a further line.
    searched: usize,
}

/// A line is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong {
    /// The largest length, bytes, without the line's end.
    pub longest: usize,
}

/// Reason why a client's exchange of lines has failed.
#[derive(Debug)]
pub enum ExchangeError {
    /// The socket has failed.
    Io(io::Error),
    /// The other end has closed the connection.
    Closed,
    /// The other end does not read.
    Late,
    /// The other end's line is too long.
    TooLong(LineTooLong),
}

impl LineBuffer {
    /// Creates an empty buffer for lines of at most `longest` bytes, without their end.
    pub const fn new(longest: usize) -> Self {
        Self { longest, bytes: Vec::new(), taken: 0, searched: 0 }
    }

    /// Reads once. Returns the number of bytes; 0 at the end of the stream.
    ///
    /// # Errors
    /// Those of `from`.
    pub fn read_from(&mut self, mut from: impl Read) -> io::Result<usize> {
        let mut part = [0; PART];
        let length = from.read(&mut part)?;
        self.push(&part[..length]);
        Ok(length)
    }

    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.searched -= self.taken;
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns whether there is a whole line.
    ///
    /// # Errors
    /// When the next line is too long, whole or not.
    pub fn has_line(&mut self) -> Result<bool, LineTooLong> {
        let end = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        self.searched = end.map_or(self.bytes.len(), |at| self.searched + at);
        if self.searched - self.taken > self.longest {
            return Err(LineTooLong { longest: self.longest });
        }
        Ok(end.is_some())
    }

    /// Takes a line without its end; `None` if no whole line is there.
    ///
    /// # Errors
    /// When it is too long.
    pub fn take(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        if !self.has_line()? {
            return Ok(None);
        }
        let line = self.taken..self.searched;
        self.taken = line.end + 1;
        self.searched = self.taken;
        Ok(Some(&self.bytes[line]))
    }

    /// Returns whether no byte is left.
    pub const fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }
}

/// The client's end of a connection.
#[derive(Debug)]
pub struct LineClient {
    stream: UnixStream,
    lines: LineBuffer,
}

impl LineClient {
    /// Connects to the socket at `path`, whose lines have at most `longest` bytes. A process that is stopped accepts no
    /// connection; after `patience` it counts as absent.
    ///
    /// # Errors
    /// When no process listens there in time, or this process may not connect.
    pub fn connect(path: &Path, longest: usize, patience: Duration) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let stream = UnixStream::from(socket);
        // It holds for connecting, too.
        stream.set_write_timeout(Some(std::time::Duration::from_nanos(patience.as_nanos())))?;
        rustix::net::connect(&stream, &SocketAddrUnix::new(path)?)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, lines: LineBuffer::new(longest) })
    }

    /// Sends a line, to which its end is added, until this time. Data that arrives meanwhile is read; otherwise both ends could
    /// wait for each other.
    ///
    /// A server that refuses a client sends the reason and closes, maybe before the client has sent anything. So a line that
    /// cannot be sent is not an error while there are received lines: [`LineClient::next`] returns them, and the error after
    /// them.
    ///
    /// # Errors
    /// When the connection has ended, or the other end does not read in time.
    pub fn send(&mut self, line: &str, until: Instant) -> Result<(), ExchangeError> {
        let sent = self.send_until(format!("{line}\n").as_bytes(), until);
        if matches!(sent, Err(ExchangeError::Closed | ExchangeError::Io(_))) {
            while self.fill().is_ok_and(|is_more| is_more) {}
            if self.lines.has_line() == Ok(true) {
                return Ok(());
            }
        }
        sent
    }

    fn send_until(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), ExchangeError> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(ExchangeError::Closed),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.fill()?;
                    if !self.wait(PollFlags::OUT | PollFlags::IN, until)? {
                        return Err(ExchangeError::Late);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(ExchangeError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns the next line without its end; `None` if none has come until this time.
    ///
    /// # Errors
    /// When the connection has ended, or the line is too long.
    pub fn next(&mut self, until: Instant) -> Result<Option<&[u8]>, ExchangeError> {
        while !self.lines.has_line()? {
            if !self.fill()? && !self.wait(PollFlags::IN, until)? {
                return Ok(None);
            }
        }
        Ok(self.lines.take()?)
    }

    /// Waits for events. Returns whether there was time left.
    fn wait(&self, events: PollFlags, until: Instant) -> io::Result<bool> {
        let left = until.saturating_since(now());
        if left.is_zero() {
            return Ok(false);
        }
        wait(&mut [PollFd::new(&self.stream, events)], left)?;
        Ok(true)
    }

    /// Reads received data, without waiting. Returns whether there was any.
    fn fill(&mut self) -> Result<bool, ExchangeError> {
        match self.lines.read_from(&self.stream) {
            Ok(0) => Err(ExchangeError::Closed),
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for LineClient {
    /// The descriptor to wait for. It is not ready for lines that were received already: before waiting, take lines until
    /// there is none.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<LineTooLong> for ExchangeError {
    fn from(error: LineTooLong) -> Self {
        Self::TooLong(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::thread;

    fn taken(lines: &mut LineBuffer) -> Vec<String> {
        std::iter::from_fn(|| lines.take().unwrap().map(|line| String::from_utf8(line.to_vec()).unwrap()))
            .collect()
    }

    #[test]
    fn lines_are_found_at_any_cut() {
        let text = b"one\n\ntwo and three\nfo";
        for size in 1..text.len() {
            let mut lines = LineBuffer::new(100);
            let mut found = Vec::new();
            for part in text.chunks(size) {
                lines.push(part);
                // Asking twice changes nothing.
                assert_eq!(lines.has_line(), lines.has_line());
                found.extend(taken(&mut lines));
            }
            assert_eq!(found, ["one", "", "two and three"], "parts of {size} bytes");
            assert!(!lines.is_empty());
            lines.push(b"ur\n");
            assert_eq!((taken(&mut lines), lines.is_empty()), (vec!["four".to_owned()], true));
        }
    }

    #[test]
    fn a_line_has_a_largest_length() {
        let mut lines = LineBuffer::new(4);
        lines.push(b"four\n");
        assert_eq!(lines.take(), Ok(Some(&b"four"[..])));
        lines.push(b"four");
        assert_eq!(lines.take(), Ok(None));
        lines.push(b"!");
        assert_eq!(lines.take(), Err(LineTooLong { longest: 4 }));
        lines.push(b"\n");
        assert_eq!(lines.has_line(), Err(LineTooLong { longest: 4 }));
    }

    /// A server that answers each line with itself, and reads the next only when the answer was read.
    #[test]
    fn a_client_exchanges_lines_that_are_longer_than_the_sockets_buffers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = LineBuffer::new(4 << 20);
            while lines.read_from(&stream).unwrap() > 0 {
                while let Some(line) = lines.take().unwrap() {
                    stream.write_all(line).unwrap();
                    stream.write_all(b"\n").unwrap();
                }
            }
        });
        let patience = Duration::from_secs(60);
        let mut client = LineClient::connect(&path, 4 << 20, patience).unwrap();
        for length in [0, 1, 3 << 20] {
            let line = "x".repeat(length);
            for _ in 0..3 {
                client.send(&line, now() + patience).unwrap();
            }
            for _ in 0..3 {
                assert_eq!(client.next(now() + patience).unwrap(), Some(line.as_bytes()));
            }
        }
        assert_eq!(client.next(now() + Duration::from_millis(1)).unwrap(), None);
        drop(client);
        server.join().unwrap();
    }

    /// A server that has sent its refusal and closed before the client has sent a word.
    #[test]
    fn the_reason_of_a_refusal_arrives_before_an_early_close() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let patience = Duration::from_secs(60);
        for length in [1, 4 << 20] {
            for refusal in ["", "full\n", "full\ntry later\n"] {
                let mut client = LineClient::connect(&path, 100, patience).unwrap();
                let (mut server, _) = listener.accept().unwrap();
                server.write_all(refusal.as_bytes()).unwrap();
                drop(server);
                let sent = client.send(&"x".repeat(length), now() + patience);
                assert_eq!(sent.is_ok(), !refusal.is_empty(), "{sent:?}");
                for line in refusal.lines() {
                    assert_eq!(client.next(now() + patience).unwrap(), Some(line.as_bytes()));
                }
                let after = client.next(now() + patience);
                assert!(matches!(after, Err(ExchangeError::Closed | ExchangeError::Io(_))), "{after:?}");
            }
        }
    }

    #[test]
    fn a_server_that_does_not_read_or_closes_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let patience = Duration::from_secs(60);
        let mut client = LineClient::connect(&path, 100, patience).unwrap();
        let sent = client.send(&"x".repeat(64 << 20), now() + Duration::from_millis(20));
        assert!(matches!(sent, Err(ExchangeError::Late)), "{sent:?}");
        drop(listener);
        assert!(matches!(client.next(now() + patience), Err(ExchangeError::Closed | ExchangeError::Io(_))));
        assert!(LineClient::connect(&path, 100, patience).is_err());
        // A listener that accepts no connection: its queue of connections is full.
        let stopped = UnixListener::bind(folder.path().join("t")).unwrap();
        rustix::net::listen(&stopped, 0).unwrap();
        let connect = || LineClient::connect(&folder.path().join("t"), 100, Duration::from_millis(50));
        let held: Vec<_> = (0..3).map(|_| connect()).collect();
        assert!(held.iter().any(Result::is_err), "{held:?}");
    }
}
