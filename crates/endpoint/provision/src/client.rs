//! A client's connection to `cutlined`.

use crate::protocol::{LONGEST_REPLY, Reply, Request, VERSION};
use crate::status::Status;
use cutline_service::{JsonLineClient, JsonLineError, LocalService};
use cutline_units::Duration;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

const CUTLINED: LocalService = LocalService {
    name: "cutlined",
    remedy: "`sudo systemctl start cutlined` starts it where it is installed (docs/guide/reservations.md)",
};

/// A connection to `cutlined`. Reservations that were requested over it end when it is dropped.
#[derive(Debug)]
pub struct DaemonClient(JsonLineClient);

impl DaemonClient {
    /// Connects to the `cutlined` whose socket is at `path`.
    ///
    /// # Errors
    /// When no process listens there, this process may not connect, or `cutlined` speaks another version.
    pub fn connect(path: &Path) -> Result<Self, JsonLineError> {
        let mut this = Self(JsonLineClient::connect(&CUTLINED, path, LONGEST_REPLY)?);
        this.send(&Request::Hello { version: VERSION })?;
        let reply = this.0.greeting()?;
        match this.accepted(reply)? {
            Reply::Welcome { version: VERSION } => Ok(this),
            other => Err(this.0.refused(other.line().trim_end().to_owned())),
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// When the connection has ended, or `cutlined` does not read.
    pub fn send(&mut self, request: &Request) -> Result<(), JsonLineError> {
        self.0.send(request.line().trim_end())
    }

    /// Returns the next reply of `cutlined`, or `None` if none arrives within `time`.
    ///
    /// # Errors
    /// When the connection has ended, or the reply is an error or malformed.
    pub fn reply(&mut self, time: Duration) -> Result<Option<Reply>, JsonLineError> {
        let reply = self.0.receive(time)?;
        reply.map(|reply| self.accepted(reply)).transpose()
    }

    /// Requests the status of `cutlined`, and waits for it for at most `time`.
    ///
    /// # Errors
    /// Those of [`DaemonClient::send`] and [`DaemonClient::reply`], and when `cutlined` does not answer in time.
    pub fn status(&mut self, time: Duration) -> Result<Status, JsonLineError> {
        self.send(&Request::Status {})?;
        match self.reply(time)? {
            Some(Reply::Status { status }) => self.0.document(status),
            Some(_) => Err(self.0.unexpected()),
            None => Err(self.0.late()),
        }
    }

    /// Returns the reply, unless it is an error.
    fn accepted(&self, reply: Reply) -> Result<Reply, JsonLineError> {
        match reply {
            Reply::Error { message } => Err(self.0.refused(message)),
            reply => Ok(reply),
        }
    }
}

impl AsFd for DaemonClient {
    /// The descriptor to wait for. It does not report replies that are already received: before waiting, read until there
    /// is none.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
