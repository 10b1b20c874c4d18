//! The rows that processes have published, with their limits; the queues in the kernel; and access to both. No IO.

mod limits;
mod line;
mod row;
#[cfg(test)]
mod tests;
mod viewer;

pub use limits::{PublicationLimits, is_system, of_all_users};
pub use line::{PublishedLine, PublishedLineError};
pub use row::{PublishedRow, RowOwner};
pub use viewer::Viewer;

use crate::document::{HostDocument, HostTotals, KernelQueueEntry, ProgramEntry, RouterEntry, SocketEntry};
use crate::kernel_queues::KernelQueueReading;
use cutline_publish::{RowKind, SocketRow, VERSION};
use cutline_router_service::Statistics;
use line::Content;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a publisher, a connection of a process; below 2^30.
pub type PublisherId = u32;

/// A process, as the kernel states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Number of the process; 0 for one of another PID namespace that has no number here.
    pub pid: u32,
    /// User that it runs as.
    pub uid: u32,
}

/// Number of publishers that have been numbered before numbers are used again.
const NUMBERS: PublisherId = 1 << 30;

/// The largest row of a socket or program, bytes of its line. A router's has one direction or two, each with a few kilobytes.
const LARGEST_ROW: usize = 16 << 10;

/// A connection of a process, and its rows.
#[derive(Debug)]
struct Publisher {
    process: Process,
    /// Name of the program, as the process states it; empty before its first line.
    program: String,
    /// The rows, each with the memory that it takes at most.
    rows: BTreeMap<(RowKind, u64), (PublishedRow, usize)>,
}

/// Rows of all processes of the host, and its queues in the kernel.
#[derive(Debug)]
pub struct RowRegistry {
    limits: PublicationLimits,
    publishers: BTreeMap<PublisherId, Publisher>,
    next: PublisherId,
    /// Memory of the rows of each user, bytes.
    bytes: BTreeMap<u32, usize>,
    kernel_queues: KernelQueueReading,
    /// Publishers that were refused because there were too many.
    pub refused_publishers: u64,
    /// Rows that were refused because they were too large, or there were too many.
    pub refused_rows: u64,
    /// Publishers that were disconnected because of a line that is not of the protocol.
    pub malformed: u64,
}

impl RowRegistry {
    /// Creates an empty registry.
    pub const fn new(limits: PublicationLimits) -> Self {
        Self {
            limits,
            publishers: BTreeMap::new(),
            next: 0,
            bytes: BTreeMap::new(),
            kernel_queues: KernelQueueReading { queues: Vec::new(), problem: None },
            refused_publishers: 0,
            refused_rows: 0,
            malformed: 0,
        }
    }

    /// Takes a new publisher.
    ///
    /// # Errors
    /// When there are too many.
    pub fn open(&mut self, process: Process) -> Result<PublisherId, PublishedLineError> {
        let uid = process.uid;
        let of_user = || self.publishers.values().filter(|it| it.process.uid == uid).count();
        let of_users = || self.publishers.values().filter(|it| !is_system(it.process.uid)).count();
        let is_full = self.publishers.len() >= self.limits.publishers
            || uid != 0 && of_user() >= self.limits.publishers_of_user
            || !is_system(uid) && of_users() >= of_all_users(self.limits.publishers);
        if is_full {
            self.refused_publishers += 1;
            return Err(PublishedLineError::Full);
        }
        while self.publishers.contains_key(&self.next) {
            self.next = (self.next + 1) % NUMBERS;
        }
        let id = self.next;
        self.next = (self.next + 1) % NUMBERS;
        let publisher = Publisher { process, program: String::new(), rows: BTreeMap::new() };
        self.publishers.insert(id, publisher);
        Ok(id)
    }

    /// Forgets a publisher with all of its rows.
    pub fn close(&mut self, id: PublisherId) {
        let Some(publisher) = self.publishers.remove(&id) else { return };
        let bytes = publisher.rows.values().map(|(_, bytes)| bytes).sum();
        self.release(publisher.process.uid, bytes);
    }

    fn release(&mut self, uid: u32, bytes: usize) {
        let Some(of_user) = self.bytes.get_mut(&uid) else { return };
        *of_user = of_user.saturating_sub(bytes);
        if *of_user == 0 {
            self.bytes.remove(&uid);
        }
    }

    /// Takes a line of a publisher. A row for which there is no room is counted, and the one before it stays.
    ///
    /// # Errors
    /// When the line may not come now, or its version is another one. The publisher should be closed then.
    pub fn take(&mut self, id: PublisherId, line: PublishedLine) -> Result<(), PublishedLineError> {
        let Some(publisher) = self.publishers.get_mut(&id) else { return Ok(()) };
        let is_welcome = !publisher.program.is_empty();
        let (number, row) = match line.content {
            Content::Hello { version: VERSION, program } => {
                let name: String = program.chars().take(64).collect();
                publisher.program = if name.is_empty() { "?".to_owned() } else { name };
                return Ok(());
            }
            Content::Hello { version, .. } => return Err(PublishedLineError::Version(version)),
            _ if !is_welcome => {
                return Err(PublishedLineError::Malformed("the first line must be hello".to_owned()));
            }
            Content::Gone { kind, number } => {
                let uid = publisher.process.uid;
                if let Some((_, bytes)) = publisher.rows.remove(&(kind, number)) {
                    self.release(uid, bytes);
                }
                return Ok(());
            }
            Content::Socket(row) => (row.socket, PublishedRow::Socket(row.into())),
            Content::Program(row) => (row.process, PublishedRow::Program(row.into())),
            Content::Router(row) => (0, PublishedRow::Router(row.into())),
        };
        self.put(id, (number, row), line.length);
        Ok(())
    }

    /// Forgets a publisher that has sent something else than the protocol allows.
    pub fn close_malformed(&mut self, id: PublisherId) {
        self.malformed += 1;
        self.close(id);
    }

    fn put(&mut self, id: PublisherId, (number, row): (u64, PublishedRow), length: usize) {
        let Some(publisher) = self.publishers.get_mut(&id) else { return };
        let uid = publisher.process.uid;
        let (key, bytes) = ((row.kind(), number), row.memory(length));
        let before = publisher.rows.get(&key).map_or(0, |(_, bytes)| *bytes);
        let of_user = self.bytes.get(&uid).copied().unwrap_or_default() + bytes - before;
        let of_all = self.bytes.values().sum::<usize>() + bytes - before;
        let users = self.bytes.iter().filter(|(uid, _)| !is_system(**uid));
        let of_users = || users.map(|(_, bytes)| *bytes).sum::<usize>() + bytes - before;
        let is_too_large = length > LARGEST_ROW && !matches!(row, PublishedRow::Router(_));
        let has_room = of_all <= self.limits.bytes
            && (uid == 0 || of_user <= self.limits.bytes_of_user)
            && (is_system(uid) || of_users() <= of_all_users(self.limits.bytes));
        if is_too_large || !has_room {
            self.refused_rows += 1;
            return;
        }
        publisher.rows.insert(key, (row, bytes));
        self.bytes.insert(uid, of_user);
    }

    /// Returns the document of the host for a viewer, without its times.
    pub fn document(&self, viewer: Viewer) -> HostDocument {
        let mut document = HostDocument {
            event: "host".to_owned(),
            publishers: self.publishers.len() as u64,
            refused_publishers: self.refused_publishers,
            refused_rows: self.refused_rows,
            malformed_publishers: self.malformed,
            totals: self.totals(viewer),
            kernel_queues: self.kernel_queues.queues.clone(),
            kernel_queues_problem: self.kernel_queues.problem.clone(),
            ..HostDocument::default()
        };
        for Publisher { process: Process { pid, uid }, program, rows } in self.publishers.values() {
            let sees = viewer.sees(*uid);
            let (pid, uid) = (*pid, *uid);
            for (row, _) in rows.values() {
                let program = || program.clone();
                match row {
                    PublishedRow::Socket(row) if sees => {
                        let socket = Arc::clone(row);
                        document.sockets.push(SocketEntry { pid, uid, program: program(), socket });
                    }
                    PublishedRow::Program(row) if sees => {
                        document.programs.push(ProgramEntry { pid, uid, row: Arc::clone(row) });
                    }
                    PublishedRow::Router(row) if viewer.sees_router(uid) => {
                        let router = if sees {
                            Arc::clone(row)
                        } else {
                            Arc::new(Statistics::clone(row).without_flows())
                        };
                        document.routers.push(RouterEntry { pid, uid, router });
                    }
                    _ => document.hidden_rows += 1,
                }
            }
        }
        document
    }

    /// Returns the totals of the rows that a viewer may see.
    pub fn totals(&self, viewer: Viewer) -> HostTotals {
        let publishers = self.publishers.len() as u64;
        let kernel_queues = self.kernel_queues.queues.len() as u64;
        let mut totals = HostTotals { publishers, kernel_queues, ..HostTotals::default() };
        for (RowOwner { process: Process { uid, .. }, .. }, row) in self.rows() {
            match row {
                PublishedRow::Socket(row) if viewer.sees(uid) => totals.add_socket(row),
                PublishedRow::Program(_) if viewer.sees(uid) => totals.programs += 1,
                PublishedRow::Router(_) if viewer.sees_router(uid) => totals.routers += 1,
                _ => {}
            }
        }
        totals
    }

    /// Sets the queues in the kernel, as they were read last.
    pub fn set_kernel_queues(&mut self, reading: KernelQueueReading) {
        self.kernel_queues = reading;
    }

    /// Returns the queues in the kernel. Every viewer sees them: they have counters, which reveal nothing about a user's traffic.
    pub fn kernel_queues(&self) -> impl Iterator<Item = &KernelQueueEntry> {
        self.kernel_queues.queues.iter()
    }

    /// Returns the rows of all users with their owners, in order of publisher, kind and number.
    pub fn rows(&self) -> impl Iterator<Item = (RowOwner<'_>, &PublishedRow)> {
        self.publishers.iter().flat_map(|(&publisher, Publisher { process, program, rows })| {
            let owner = RowOwner { publisher, process: *process, program };
            rows.values().map(move |(row, _)| (owner, row))
        })
    }

    /// Returns the sockets of all users, with their processes.
    pub fn sockets(&self) -> impl Iterator<Item = (Process, &SocketRow)> {
        self.rows().filter_map(|(owner, row)| match row {
            PublishedRow::Socket(row) => Some((owner.process, &**row)),
            _ => None,
        })
    }

    /// Returns the statistics of the routers of all users, with their processes.
    pub fn routers(&self) -> impl Iterator<Item = (Process, &Statistics)> {
        self.rows().filter_map(|(owner, row)| match row {
            PublishedRow::Router(statistics) => Some((owner.process, &**statistics)),
            _ => None,
        })
    }
}
