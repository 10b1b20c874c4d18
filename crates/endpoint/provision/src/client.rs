//! A client's connection to `cutlined`.

use crate::protocol::{LONGEST_REPLY, Reply, Request, VERSION};
use cutline_service::{ExchangeError, LineClient};
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
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

impl From<ExchangeError> for Why {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Io(error) => Self::Io(error),
            ExchangeError::Closed => Self::Closed,
            ExchangeError::Late => Self::Late,
            ExchangeError::TooLong(_) => Self::TooLong,
        }
    }
}

/// A connection to `cutlined`. What was asked for over it ends when it is dropped.
#[derive(Debug)]
pub struct DaemonClient {
    path: PathBuf,
    lines: LineClient,
}

/// Time that `cutlined` may take to answer at the beginning, and to read.
const PATIENCE: Duration = Duration::from_secs(2);

impl DaemonClient {
    /// Connects to the `cutlined` whose socket is at `path`.
    ///
    /// # Errors
    /// When nobody listens there, this process may not connect, or it speaks another version.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let failed = |why| ClientError { path: path.to_owned(), why };
        let lines =
            LineClient::connect(path, LONGEST_REPLY, PATIENCE).map_err(|error| failed(error.into()))?;
        let mut this = Self { path: path.to_owned(), lines };
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
        let sent = self.lines.send(request.line().trim_end(), now().saturating_add(PATIENCE));
        sent.map_err(|error| self.failed(error))
    }

    /// Returns the next line of `cutlined`, for which it waits at most so long; `None` if none has come.
    ///
    /// # Errors
    /// When the connection has ended, or what came is no line of `cutlined`.
    pub fn reply(&mut self, time: Duration) -> Result<Option<Reply>, ClientError> {
        let reply = match self.lines.next(now().saturating_add(time)) {
            Ok(None) => return Ok(None),
            Ok(Some(line)) => serde_json::from_slice(line).map_err(Why::from),
            Err(error) => Err(error.into()),
        };
        match reply {
            Ok(Reply::Error { message }) => Err(self.failed(Why::Refused(message))),
            Ok(reply) => Ok(Some(reply)),
            Err(why) => Err(self.failed(why)),
        }
    }

    fn failed(&self, why: impl Into<Why>) -> ClientError {
        ClientError { path: self.path.clone(), why: why.into() }
    }
}

impl AsFd for DaemonClient {
    /// The descriptor to wait for. It says nothing of lines that were received already: before waiting, read until there is none.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}
