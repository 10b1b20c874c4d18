//! A client's connection to the resource manager.

use crate::protocol::{AllocationReply, AllocationRequest, HeldFlow, LONGEST_REPLY, VERSION};
use crate::status::ManagerStatus;
use cutline_service::{JsonLineClient, JsonLineError, LocalService};
use cutline_units::Duration;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

const MANAGER: LocalService = LocalService {
    name: "resource manager",
    remedy: "`cutlined` runs it with a table [manager] in its file (docs/guide/manager.md)",
};

/// A connection to the resource manager. Flows that were requested over it end when it is dropped.
#[derive(Debug)]
pub struct ManagerConnection {
    client: JsonLineClient,
    session: String,
    lease: Duration,
    held: Vec<HeldFlow>,
}

impl ManagerConnection {
    /// Connects to the manager whose socket is at `path`. A client that connects again names its session, and takes
    /// over its flows ([`ManagerConnection::held`]).
    ///
    /// # Errors
    /// When no process listens there, this process may not use the manager, or it speaks another version.
    pub fn connect(path: &Path, session: Option<&str>) -> Result<Self, JsonLineError> {
        let client = JsonLineClient::connect(&MANAGER, path, LONGEST_REPLY)?;
        let mut this = Self { client, session: String::new(), lease: Duration::ZERO, held: Vec::new() };
        this.send(&AllocationRequest::Hello { version: VERSION, session: session.map(str::to_owned) })?;
        let reply = this.client.greeting()?;
        match this.accepted(reply)? {
            AllocationReply::Welcome { version: VERSION, session, lease_ms, flows } => {
                (this.session, this.held) = (session, flows);
                this.lease = Duration::from_millis(lease_ms);
                Ok(this)
            }
            other => Err(this.client.refused(other.line().trim_end().to_owned())),
        }
    }

    /// Name of the session, with which a later connection takes over the flows.
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
    pub fn send(&mut self, request: &AllocationRequest) -> Result<(), JsonLineError> {
        self.client.send(&request.line())
    }

    /// Returns the next reply of the manager, or `None` if none arrives within `time`.
    ///
    /// # Errors
    /// When the connection has ended, or the reply is an error or malformed.
    pub fn reply(&mut self, time: Duration) -> Result<Option<AllocationReply>, JsonLineError> {
        let reply = self.client.receive(time)?;
        reply.map(|reply| self.accepted(reply)).transpose()
    }

    /// Requests the status of the manager, and waits for it for at most `time`.
    ///
    /// # Errors
    /// Those of [`ManagerConnection::send`] and [`ManagerConnection::reply`], and when the manager does not answer in time.
    pub fn status(&mut self, time: Duration) -> Result<ManagerStatus, JsonLineError> {
        self.send(&AllocationRequest::Status {})?;
        match self.reply(time)? {
            Some(AllocationReply::Status { status }) => Ok(*status),
            Some(_) => Err(self.client.unexpected()),
            None => Err(self.client.late()),
        }
    }

    /// Returns the reply, unless it is an error.
    fn accepted(&self, reply: AllocationReply) -> Result<AllocationReply, JsonLineError> {
        match reply {
            AllocationReply::Error { message } => Err(self.client.refused(message)),
            reply => Ok(reply),
        }
    }
}

impl AsFd for ManagerConnection {
    /// The descriptor to wait for. It does not report replies that are already received: before waiting, read until there
    /// is none.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.client.as_fd()
    }
}
