//! A client's connection to the resource manager.

use crate::protocol::{AllocationReply, AllocationRequest, HeldFlow, LONGEST_REPLY, VERSION};
use cutline_service::{ExchangeError, LineClient};
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Reason why the resource manager cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("resource manager at {}: {why}", Printable(path.display()))]
pub struct ManagerError {
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

/// A connection to the resource manager. The flows that were asked for over it end when it is dropped.
#[derive(Debug)]
pub struct ManagerConnection {
    path: PathBuf,
    lines: LineClient,
    session: String,
    lease: Duration,
    held: Vec<HeldFlow>,
}

/// Time that the manager may take to answer at the beginning, and to read.
const PATIENCE: Duration = Duration::from_secs(2);

impl ManagerConnection {
    /// Connects to the manager whose socket is at `path`. A client that connects again says its session, and has its
    /// flows again ([`ManagerConnection::held`]).
    ///
    /// # Errors
    /// When nobody listens there, this process may not use the manager, or it speaks another version.
    pub fn connect(path: &Path, session: Option<&str>) -> Result<Self, ManagerError> {
        let failed = |why| ManagerError { path: path.to_owned(), why };
        let lines =
            LineClient::connect(path, LONGEST_REPLY, PATIENCE).map_err(|error| failed(error.into()))?;
        let (lease, held) = (Duration::ZERO, Vec::new());
        let mut this = Self { path: path.to_owned(), lines, session: String::new(), lease, held };
        this.send(&AllocationRequest::Hello { version: VERSION, session: session.map(str::to_owned) })?;
        match this.reply(PATIENCE)? {
            Some(AllocationReply::Welcome { version: VERSION, session, lease_ms, flows }) => {
                (this.session, this.held) = (session, flows);
                this.lease = Duration::from_millis(lease_ms);
                Ok(this)
            }
            Some(other) => Err(failed(Why::Refused(other.line().trim_end().to_owned()))),
            None => Err(failed(Why::Late)),
        }
    }

    /// The session, by which a later connection has the flows again.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Time without a renewal after which a flow is revoked.
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// Flows that the session had when the connection was made.
    pub fn held(&self) -> &[HeldFlow] {
        &self.held
    }

    /// Sends a request.
    ///
    /// # Errors
    /// When the connection has ended, or the manager does not read.
    pub fn send(&mut self, request: &AllocationRequest) -> Result<(), ManagerError> {
        let sent = self.lines.send(&request.line(), now().saturating_add(PATIENCE));
        sent.map_err(|error| self.failed(error))
    }

    /// Returns the next line of the manager, for which it waits at most so long; `None` if none has come.
    ///
    /// # Errors
    /// When the connection has ended, or what came is no line of the manager.
    pub fn reply(&mut self, time: Duration) -> Result<Option<AllocationReply>, ManagerError> {
        let reply = match self.lines.next(now().saturating_add(time)) {
            Ok(None) => return Ok(None),
            Ok(Some(line)) => serde_json::from_slice(line).map_err(Why::from),
            Err(error) => Err(error.into()),
        };
        match reply {
            Ok(AllocationReply::Error { message }) => Err(self.failed(Why::Refused(message))),
            Ok(reply) => Ok(Some(reply)),
            Err(why) => Err(self.failed(why)),
        }
    }

    fn failed(&self, why: impl Into<Why>) -> ManagerError {
        ManagerError { path: self.path.clone(), why: why.into() }
    }
}

impl AsFd for ManagerConnection {
    /// The descriptor to wait for. It says nothing of lines that were received already: before waiting, read until
    /// there is none.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}
