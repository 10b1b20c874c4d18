//! A client's connection to `cutlined`.

use crate::protocol::{LONGEST_REPLY, Reply, Request, VERSION};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_text::Printable;
use cutline_units::{Duration, Instant};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Reason why `cutlined` cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("cutlined at {}: {why}", Printable(path.display()))]
pub struct ClientError {
    /// The path of its socket.
    path: PathBuf,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it has closed the connection")]
    Closed,
    #[error("it has not answered in time")]
    Late,
    #[error("it says: {}", Printable(.0))]
    Refused(String),
    #[error("its line cannot be read: {0}")]
    Line(#[from] serde_json::Error),
    #[error("its line is longer than {LONGEST_REPLY} B")]
    TooLong,
}

/// A connection to `cutlined`. What was asked for over it ends when it is dropped.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    stream: UnixStream,
    /// Received data that were not taken; the first `taken` bytes were.
    incoming: Vec<u8>,
    taken: usize,
    /// Number of bytes without an end of a line.
    searched: usize,
}

/// Time that `cutlined` may take to answer at the beginning, and to read.
const PATIENCE: Duration = Duration::from_secs(2);

impl Client {
    /// Connects to the `cutlined` whose socket is at `path`.
    ///
    /// # Errors
    /// When nobody listens there, this process may not connect, or it speaks another version.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let failed = |why| ClientError { path: path.to_owned(), why };
        let stream = UnixStream::connect(path).map_err(|error| failed(error.into()))?;
        stream.set_nonblocking(true).map_err(|error| failed(error.into()))?;
        let mut this = Self { path: path.to_owned(), stream, incoming: Vec::new(), taken: 0, searched: 0 };
        this.send(&Request::Hello { version: VERSION })?;
        match this.reply(PATIENCE)? {
            Some(Reply::Welcome { version: VERSION }) => Ok(this),
            Some(other) => Err(failed(Why::Refused(other.line().trim_end().to_owned()))),
            None => Err(failed(Why::Late)),
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// When the connection has ended, or `cutlined` does not read.
    pub fn send(&mut self, request: &Request) -> Result<(), ClientError> {
        self.write(request.line().as_bytes()).map_err(|why| ClientError { path: self.path.clone(), why })
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Why> {
        let until = now().saturating_add(PATIENCE);
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(Why::Closed),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // What it says meanwhile is read, else both would wait for each other.
                    self.fill()?;
                    let left = until.saturating_since(now());
                    if left.is_zero() {
                        return Err(Why::Late);
                    }
                    let mut fds = [PollFd::new(&self.stream, PollFlags::OUT | PollFlags::IN)];
                    wait(&mut fds, left)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns the next line of `cutlined`, for which it waits at most so long; `None` if none has come.
    ///
    /// # Errors
    /// When the connection has ended, or what came is no line of `cutlined`.
    pub fn reply(&mut self, time: Duration) -> Result<Option<Reply>, ClientError> {
        self.read(now().saturating_add(time)).map_err(|why| ClientError { path: self.path.clone(), why })
    }

    fn read(&mut self, until: Instant) -> Result<Option<Reply>, Why> {
        loop {
            if let Some(reply) = self.line()? {
                return match reply {
                    Reply::Error { message } => Err(Why::Refused(message)),
                    reply => Ok(Some(reply)),
                };
            }
            if self.fill()? {
                continue;
            }
            let left = until.saturating_since(now());
            if left.is_zero() {
                return Ok(None);
            }
            wait(&mut [PollFd::new(&self.stream, PollFlags::IN)], left)?;
        }
    }

    /// Takes a whole line of what has come.
    fn line(&mut self) -> Result<Option<Reply>, Why> {
        let from = self.searched.max(self.taken);
        let Some(end) = self.incoming[from..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.incoming.len();
            if self.incoming.len() - self.taken > LONGEST_REPLY {
                return Err(Why::TooLong);
            }
            return Ok(None);
        };
        let line = &self.incoming[self.taken..from + end];
        let reply = serde_json::from_slice(line)?;
        self.taken = from + end + 1;
        if self.taken == self.incoming.len() {
            self.incoming.clear();
            (self.taken, self.searched) = (0, 0);
        }
        Ok(Some(reply))
    }

    /// Reads what has come, without waiting. Returns whether anything has.
    fn fill(&mut self) -> Result<bool, Why> {
        if self.taken > 0 {
            self.incoming.drain(..self.taken);
            self.searched -= self.taken.min(self.searched);
            self.taken = 0;
        }
        let mut part = [0; 16 * 1024];
        match self.stream.read(&mut part) {
            Ok(0) => Err(Why::Closed),
            Ok(length) => {
                self.incoming.extend(&part[..length]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Client {
    /// The descriptor to wait for. It says nothing of lines that were received already: before waiting, read until there is none.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
