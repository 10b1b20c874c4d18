//! The rows that processes have published, with their limits; the queues in the kernel; and access to both. No IO.

use crate::document::{HostDocument, HostTotals, KernelQueueEntry, ProgramEntry, RouterEntry, SocketEntry};
use crate::kernel_queues::KernelQueueReading;
use cutline_publish::{DirectionRow, LimitRow, ProgramRow, RowKind, SocketRow, VERSION, ViolationRow};
use cutline_router_service::{DirectionStatistics, Statistics};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a publisher, a connection of a process; below 2^30.
pub type PublisherId = u32;

/// A process, as the kernel states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Number of the process.
    pub pid: u32,
    /// User that it runs as.
    pub uid: u32,
}

/// Reader of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Viewer {
    /// Sees the rows of every user.
    All,
    /// Sees the rows of this user, and the routers of the system.
    User(u32),
    /// Sees the routers of the system alone.
    Nobody,
}

/// Limits of publications by processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationLimits {
    /// The most publishers. A quarter of the places is for root and the services of the system.
    pub publishers: usize,
    /// The most publishers of a user other than root.
    pub publishers_of_user: usize,
    /// The most memory that all rows may take, bytes. A quarter of it is for root and the services of the system.
    pub bytes: usize,
    /// The most memory that the rows of a user other than root may take.
    pub bytes_of_user: usize,
}

impl PublicationLimits {
    /// Limits for tens of thousands of sockets.
    pub const DEFAULT: Self =
        Self { publishers: 4096, publishers_of_user: 1024, bytes: 256 << 20, bytes_of_user: 64 << 20 };
}

/// The most measures in a direction of a row.
const MOST_MEASURES: usize = 16;
/// The most buckets in a direction of a row.
const MOST_BUCKETS: usize = 64;
/// The most reasons of losses in a direction of a router.
const MOST_REASONS: usize = 32;
/// The most hints in a direction of a router.
const MOST_HINTS: usize = cutline_router::HINTS;
/// The most flows, and the most hosts, in a direction of a router.
const MOST_FLOWS: usize = 32;
/// The most interfaces of a router.
const MOST_INTERFACES: usize = 16;
/// The longest name, bytes. Longer ones are cut.
const LONGEST_NAME: usize = 256;
/// The longest other text, such as a specification in words or a reason, bytes. Longer ones are cut.
const LONGEST_TEXT: usize = 1024;
/// Memory of a row beside the row itself, bytes: its place in the map and its reference count.
const ENTRY: usize = 128;
/// Memory of a router's lists for a byte of its line, at most, bytes: a number of one digit and its comma are eight bytes.
const ROUTER_LISTS: usize = 4;
/// Number of publishers that have been numbered before numbers are used again.
const NUMBERS: PublisherId = 1 << 30;

/// The largest row of a socket or program, bytes of its line. A router's has one direction or two, each with a few kilobytes.
const LARGEST_ROW: usize = 16 << 10;

/// Reason why a publisher is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedLineError {
    /// A line is not of the protocol.
    #[error("a line is not of the protocol: {0}")]
    Malformed(String),
    /// The publisher's protocol has another version.
    #[error("the version of the protocol is {0}, allowed is {VERSION}")]
    Version(u32),
    /// Too many publishers.
    #[error("there are too many publishers, in total or of this user")]
    Full,
}

/// A line of a publisher.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    Hello { version: u32, program: String },
    Socket(Box<SocketRow>),
    Program(Box<ProgramRow>),
    Router(Box<Statistics>),
    Gone { kind: RowKind, number: u64 },
}

/// A line of a publisher, and its length.
#[derive(Debug)]
pub struct PublishedLine {
    content: Content,
    length: usize,
}

impl PublishedLine {
    /// Parses a line, without its end.
    ///
    /// # Errors
    /// When it is not of the protocol, or its lists are longer than a publisher's.
    pub fn parse(line: &[u8]) -> Result<Self, PublishedLineError> {
        let mut content: Content =
            serde_json::from_slice(line).map_err(|error| PublishedLineError::Malformed(error.to_string()))?;
        let has_long_lists = match &content {
            Content::Socket(row) => [&row.send, &row.receive].into_iter().any(has_long_lists),
            Content::Router(statistics) => has_long_router_lists(statistics),
            Content::Hello { .. } | Content::Program(_) | Content::Gone { .. } => false,
        };
        if has_long_lists {
            return Err(PublishedLineError::Malformed("a list is too long".to_owned()));
        }
        cut_texts(&mut content);
        Ok(Self { content, length: line.len() })
    }
}

/// Returns whether a router states more than a router has.
fn has_long_router_lists(statistics: &Statistics) -> bool {
    let is_long = |direction: &DirectionStatistics| {
        let buckets = &direction.waits_us;
        direction.dropped.len() > MOST_REASONS
            || direction.dropped.keys().any(|reason| reason.len() > LONGEST_NAME)
            || direction.hints.len() > MOST_HINTS
            || direction.flows.len().max(direction.hosts.len()) > MOST_FLOWS
            || buckets.counts.len().max(buckets.bounds.len()) > MOST_BUCKETS
    };
    is_long(&statistics.forward)
        || is_long(&statistics.reverse)
        || statistics.interfaces.len() > MOST_INTERFACES
}

/// Cuts texts: the names among them are labels of metrics, each of which is repeated in many lines.
fn cut_texts(content: &mut Content) {
    match content {
        Content::Socket(row) => {
            let SocketRow { transport, local, peer, state, reservation, refusal, .. } = &mut **row;
            [transport, local, peer, state, reservation].into_iter().for_each(cut);
            if let Some(refusal) = refusal {
                cut_to(LONGEST_TEXT, refusal);
            }
            for direction in [&mut row.send, &mut row.receive] {
                let DirectionRow { offered, requested, effective, .. } = direction;
                for specification in [offered, requested, effective] {
                    cut_to(LONGEST_TEXT, specification);
                }
                direction.limits.iter_mut().for_each(|limit| cut(&mut limit.measure));
                for violation in &mut direction.violations {
                    [&mut violation.measure, &mut violation.origin].into_iter().for_each(cut);
                }
            }
        }
        Content::Program(row) => {
            let ProgramRow { program, method, .. } = &mut **row;
            [program, method].into_iter().for_each(cut);
        }
        Content::Router(statistics) => {
            for direction in [&mut statistics.forward, &mut statistics.reverse] {
                [&mut direction.name, &mut direction.queue].into_iter().for_each(cut);
                for flow in &mut direction.flows {
                    [&mut flow.source, &mut flow.destination].into_iter().for_each(cut);
                }
                for host in &mut direction.hosts {
                    [&mut host.host, &mut host.side].into_iter().for_each(cut);
                }
            }
            for interface in &mut statistics.interfaces {
                [&mut interface.name, &mut interface.kind].into_iter().for_each(cut);
            }
            if let Some(error) = statistics.reload.as_mut().and_then(|reload| reload.error.as_mut()) {
                cut_to(LONGEST_TEXT, error);
            }
        }
        // The name of a program is cut where it is kept.
        Content::Hello { .. } | Content::Gone { .. } => {}
    }
}

/// Cuts a name that is too long.
fn cut(name: &mut String) {
    cut_to(LONGEST_NAME, name);
}

/// Cuts a text to at most so many bytes.
fn cut_to(longest: usize, text: &mut String) {
    if text.len() > longest {
        let most = longest - "…".len();
        let end = (0..=most).rfind(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
}

/// Returns whether a direction has more measures or buckets than there are. A short line could take much memory with them.
fn has_long_lists(direction: &DirectionRow) -> bool {
    let buckets = direction.delay_buckets_ms.as_ref();
    let counts = buckets.map_or(0, |buckets| buckets.counts.len().max(buckets.bounds.len()));
    direction.limits.len().max(direction.violations.len()) > MOST_MEASURES || counts > MOST_BUCKETS
}

/// A published row.
#[derive(Clone, Debug)]
pub enum PublishedRow {
    /// A socket.
    Socket(Arc<SocketRow>),
    /// A program that runs under `cutline exec`.
    Program(Arc<ProgramRow>),
    /// A router.
    Router(Arc<Statistics>),
}

/// Owner of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOwner<'r> {
    /// The publisher.
    pub publisher: PublisherId,
    /// Its process.
    pub process: Process,
    /// Name of the program, as the process states it.
    pub program: &'r str,
}

impl PublishedRow {
    const fn kind(&self) -> RowKind {
        match self {
            Self::Socket(_) => RowKind::Socket,
            Self::Program(_) => RowKind::Program,
            Self::Router(_) => RowKind::Router,
        }
    }

    /// Returns the memory that it takes at most, bytes; its line has `length` bytes, and its texts have no more.
    fn memory(&self, length: usize) -> usize {
        let own = match self {
            Self::Socket(row) => {
                size_of::<SocketRow>() + [&row.send, &row.receive].map(memory_of_lists).iter().sum::<usize>()
            }
            Self::Program(_) => size_of::<ProgramRow>(),
            Self::Router(_) => size_of::<Statistics>() + ROUTER_LISTS * length,
        };
        own + ENTRY + length
    }
}

/// Returns the memory of a direction's lists, bytes.
fn memory_of_lists(direction: &DirectionRow) -> usize {
    let buckets = direction.delay_buckets_ms.as_ref();
    let numbers = buckets.map_or(0, |buckets| buckets.counts.len() + buckets.bounds.len());
    direction.limits.len() * size_of::<LimitRow>()
        + direction.violations.len() * size_of::<ViolationRow>()
        + numbers * size_of::<u64>()
}

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

/// Returns whether a user is root or a service that runs under a user of its own (`DynamicUser` of systemd).
pub const fn is_system(uid: u32) -> bool {
    uid == 0 || matches!(uid, 61_184..=65_519)
}

/// Returns the part of some places that all users have together who are neither root nor a service of the system. Several users may work
/// together, or one have several numbers (`/etc/subuid`).
pub const fn of_all_users(places: usize) -> usize {
    places - places / 4
}

impl Viewer {
    /// Returns the viewer that a user is.
    pub const fn of_user(uid: u32) -> Self {
        if uid == 0 { Self::All } else { Self::User(uid) }
    }

    /// Returns whether the rows of this user are seen.
    pub const fn sees(self, owner: u32) -> bool {
        match self {
            Self::All => true,
            Self::User(uid) => uid == owner,
            Self::Nobody => false,
        }
    }

    /// Returns whether a router of this user is seen. The counters of a system's router reveal nothing about a user's traffic; its flows and
    /// hosts do, and only readers of its user's rows see them.
    pub const fn sees_router(self, owner: u32) -> bool {
        self.sees(owner) || is_system(owner)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_router_service::{FlowStatistics, HintStatistics, HostStatistics, Interface, PacketCount};
    use proptest::prelude::*;
    use serde_json::json;

    const ROOT: Process = Process { pid: 1, uid: 0 };
    const ANN: Process = Process { pid: 20, uid: 1000 };
    const BOB: Process = Process { pid: 30, uid: 1001 };

    fn hello() -> Vec<u8> {
        json!({ "hello": { "version": VERSION, "program": "video" } }).to_string().into_bytes()
    }

    fn socket(number: u64) -> Vec<u8> {
        json!({ "socket": { "socket": number, "transport": "udp" } }).to_string().into_bytes()
    }

    fn send(registry: &mut RowRegistry, id: PublisherId, line: &[u8]) -> Result<(), PublishedLineError> {
        registry.take(id, PublishedLine::parse(line)?)
    }

    fn opened(registry: &mut RowRegistry, process: Process) -> PublisherId {
        let id = registry.open(process).unwrap();
        send(registry, id, &hello()).unwrap();
        id
    }

    fn seen(registry: &RowRegistry, viewer: Viewer) -> (Vec<u64>, u64) {
        let document = registry.document(viewer);
        (document.sockets.iter().map(|entry| entry.socket.socket).collect(), document.hidden_rows)
    }

    #[test]
    fn a_user_sees_own_rows_and_root_sees_all() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        for (process, number) in [(ROOT, 1), (ANN, 2), (BOB, 3)] {
            let id = opened(&mut registry, process);
            send(&mut registry, id, &socket(number)).unwrap();
        }
        assert_eq!(seen(&registry, Viewer::of_user(0)), (vec![1, 2, 3], 0));
        assert_eq!(seen(&registry, Viewer::of_user(ANN.uid)), (vec![2], 2));
        assert_eq!(seen(&registry, Viewer::Nobody), (vec![], 3));
    }

    /// The flows of a router are the traffic of others.
    #[test]
    fn flows_of_a_router_are_seen_by_root_and_its_own_user_alone() {
        let flow = cutline_router_service::FlowStatistics { source: "10.0.0.7".into(), ..Default::default() };
        let host = cutline_router_service::HostStatistics { host: "10.0.0.7".into(), ..Default::default() };
        let way = cutline_router_service::DirectionStatistics {
            flows: vec![flow],
            hosts: vec![host],
            ..Default::default()
        };
        let router = Statistics { forward: way.clone(), reverse: way, ..Statistics::default() };
        for process in [ROOT, ANN] {
            let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
            let id = opened(&mut registry, process);
            send(&mut registry, id, json!({ "router": router }).to_string().as_bytes()).unwrap();
            let shown = |viewer| {
                let document = registry.document(viewer);
                let text = serde_json::to_string(&document).unwrap();
                (document.routers.len(), text.contains("10.0.0.7"))
            };
            assert_eq!(shown(Viewer::All), (1, true));
            assert_eq!(shown(Viewer::of_user(process.uid)), (1, true));
            let others = usize::from(process == ROOT);
            assert_eq!(shown(Viewer::User(BOB.uid)), (others, false));
            assert_eq!(shown(Viewer::Nobody), (others, false));
        }
    }

    #[test]
    fn every_viewer_sees_the_queues_in_the_kernel_or_why_they_are_missing() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let viewers = [Viewer::All, Viewer::User(BOB.uid), Viewer::Nobody];
        registry.set_kernel_queues(KernelQueueReading {
            queues: vec![KernelQueueEntry { index: 2, ..KernelQueueEntry::default() }],
            problem: None,
        });
        for viewer in viewers {
            let document = registry.document(viewer);
            assert_eq!((document.kernel_queues[0].index, document.totals.kernel_queues), (2, 1));
            assert_eq!((document.hidden_rows, document.kernel_queues_problem), (0, None));
        }
        let problem = Some("not permitted".to_owned());
        registry.set_kernel_queues(KernelQueueReading { queues: Vec::new(), problem: problem.clone() });
        for viewer in viewers {
            let document = registry.document(viewer);
            assert_eq!((document.kernel_queues.len(), &document.kernel_queues_problem), (0, &problem));
        }
    }

    #[test]
    fn rows_end_with_their_socket_and_with_their_process() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let id = opened(&mut registry, ANN);
        for number in 1..=3 {
            send(&mut registry, id, &socket(number)).unwrap();
        }
        send(&mut registry, id, &socket(2)).unwrap();
        let gone = json!({ "gone": { "kind": "socket", "number": 1 } }).to_string();
        send(&mut registry, id, gone.as_bytes()).unwrap();
        assert_eq!(seen(&registry, Viewer::All).0, [2, 3]);
        registry.close(id);
        assert_eq!(seen(&registry, Viewer::All).0, Vec::<u64>::new());
        assert!(registry.bytes.is_empty(), "{:?}", registry.bytes);
    }

    #[test]
    fn what_a_user_may_publish_is_bounded_and_takes_nothing_from_others() {
        let limits =
            PublicationLimits { publishers: 4, publishers_of_user: 2, bytes: 100_000, bytes_of_user: 10_000 };
        let mut registry = RowRegistry::new(limits);
        let ids = [opened(&mut registry, ANN), opened(&mut registry, ANN)];
        assert_eq!(registry.open(ANN), Err(PublishedLineError::Full));
        for number in 0..100 {
            send(&mut registry, ids[number as usize % 2], &socket(number)).unwrap();
        }
        let of_ann = seen(&registry, Viewer::of_user(ANN.uid)).0.len();
        assert!((1..10).contains(&of_ann), "{of_ann} rows");
        let bob = opened(&mut registry, BOB);
        send(&mut registry, bob, &socket(7)).unwrap();
        assert_eq!(seen(&registry, Viewer::of_user(BOB.uid)).0, [7]);
        assert_eq!((registry.refused_publishers, registry.refused_rows), (1, 100 - of_ann as u64));
        // A row that is too large by itself is refused, too.
        let large = json!({ "socket": { "socket": 8, "peer": "x".repeat(LARGEST_ROW) } }).to_string();
        let root = opened(&mut registry, ROOT);
        send(&mut registry, root, large.as_bytes()).unwrap();
        assert_eq!(seen(&registry, Viewer::All).0.len(), of_ann + 1);
    }

    /// Four users work together.
    #[test]
    fn users_take_no_place_of_the_system() {
        let limits =
            PublicationLimits { publishers: 8, publishers_of_user: 2, bytes: 100_000, bytes_of_user: 40_000 };
        let mut registry = RowRegistry::new(limits);
        let mut ids = Vec::new();
        for pid in 0..8 {
            ids.extend(registry.open(Process { pid, uid: 1000 + pid / 2 }));
        }
        assert_eq!((ids.len(), registry.refused_publishers), (6, 2));
        for id in &ids {
            send(&mut registry, *id, &hello()).unwrap();
            for number in 0..100 {
                send(&mut registry, *id, &socket(number)).unwrap();
            }
        }
        let taken: usize = registry.bytes.values().sum();
        assert!((60_000..=75_000).contains(&taken), "{taken} bytes");
        let before = registry.refused_rows;
        for process in [ROOT, Process { pid: 2, uid: 61_200 }] {
            let id = opened(&mut registry, process);
            send(&mut registry, id, &socket(7)).unwrap();
        }
        assert_eq!(registry.refused_rows, before);
        assert_eq!(registry.open(ROOT), Err(PublishedLineError::Full));
    }

    #[test]
    fn other_lines_are_errors() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let id = registry.open(ANN).unwrap();
        assert!(
            matches!(send(&mut registry, id, &socket(1)), Err(PublishedLineError::Malformed(_))),
            "before hello"
        );
        let version = json!({ "hello": { "version": 2, "program": "video" } }).to_string();
        assert_eq!(send(&mut registry, id, version.as_bytes()), Err(PublishedLineError::Version(2)));
        send(&mut registry, id, &hello()).unwrap();
        for line in ["", "{}", "[]", "{\"socket\":{\"socket\":\"a\"}}", "{\"unknown\":1}"] {
            assert!(send(&mut registry, id, line.as_bytes()).is_err(), "{line}");
        }
    }

    /// Each of these lines is within the limit of a row, and would take a hundred times its length.
    #[test]
    fn short_lines_take_no_more_memory_than_they_are_counted_for() {
        let many = |item: &str, number: usize| vec![item; number].join(",");
        for line in [
            format!("{{\"socket\":{{\"send\":{{\"limits\":[{}]}}}}}}", many("{}", 5000)),
            format!("{{\"socket\":{{\"receive\":{{\"violations\":[{}]}}}}}}", many("{}", 5000)),
            format!(
                "{{\"socket\":{{\"send\":{{\"delay_buckets_ms\":{{\"bounds\":[],\"sum\":0,\"counts\":[{}]}}}}}}}}",
                many("1", 5000)
            ),
        ] {
            assert!(line.len() <= LARGEST_ROW, "{}", line.len());
            assert!(PublishedLine::parse(line.as_bytes()).is_err(), "{line}");
        }
        // The shortest row counts with its own size.
        let limits = PublicationLimits { bytes_of_user: 1 << 20, ..PublicationLimits::DEFAULT };
        let mut registry = RowRegistry::new(limits);
        let id = opened(&mut registry, ANN);
        for number in 0..10_000 {
            let line = format!("{{\"socket\":{{\"socket\":{number}}}}}");
            send(&mut registry, id, line.as_bytes()).unwrap();
        }
        let rows = seen(&registry, Viewer::All).0.len();
        assert!((100..1000).contains(&rows) && rows * size_of::<SocketRow>() <= 1 << 20, "{rows} rows");
    }

    /// A router has 9 reasons, 16 hints, 16 flows and 2 interfaces. Each of those would be lines of metrics and rows of tables.
    #[test]
    fn a_router_states_no_more_than_a_router_has() {
        let parsed = |change: &dyn Fn(&mut Statistics)| {
            let mut statistics = Statistics::default();
            change(&mut statistics);
            PublishedLine::parse(json!({ "router": statistics }).to_string().as_bytes())
        };
        let reasons = |direction: &mut DirectionStatistics, number: usize| {
            let reasons = (0..number).map(|reason| (reason.to_string(), PacketCount::default()));
            direction.dropped = reasons.collect();
        };
        parsed(&|it| reasons(&mut it.forward, MOST_REASONS)).unwrap();
        parsed(&|it| it.reverse.hints.resize(MOST_HINTS, HintStatistics::default())).unwrap();
        for change in [
            &(|it: &mut Statistics| reasons(&mut it.reverse, MOST_REASONS + 1)) as &dyn Fn(&mut Statistics),
            &|it| it.forward.dropped.extend([("x".repeat(LONGEST_NAME + 1), PacketCount::default())]),
            &|it| it.forward.hints.resize(MOST_HINTS + 1, HintStatistics::default()),
            &|it| it.reverse.flows.resize(MOST_FLOWS + 1, FlowStatistics::default()),
            &|it| it.forward.hosts.resize(MOST_FLOWS + 1, HostStatistics::default()),
            &|it| it.forward.waits_us.counts.resize(MOST_BUCKETS + 1, 1),
            &|it| it.interfaces.resize(MOST_INTERFACES + 1, Interface::default()),
        ] {
            assert!(matches!(parsed(change), Err(PublishedLineError::Malformed(_))));
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let (long, longer) = ("ü".repeat(500), "x".repeat(3000));
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let id = opened(&mut registry, ANN);
        let mut statistics = Statistics::default();
        statistics.forward.name.clone_from(&long);
        statistics.forward.queue = "sieve".to_owned();
        for line in [
            json!({ "socket": {
                "local": long, "refusal": long, "send": { "violations": [{ "origin": long }], "offered": longer }
            } }),
            json!({ "program": { "program": long } }),
            json!({ "router": statistics }),
        ] {
            send(&mut registry, id, line.to_string().as_bytes()).unwrap();
        }
        let document = registry.document(Viewer::All);
        let cut = format!("{}…", "ü".repeat(126));
        let socket = &document.sockets[0].socket;
        let direction = &document.routers[0].router.forward;
        let names = [&socket.local, &socket.send.violations[0].origin, &document.programs[0].row.program];
        assert!(names.into_iter().chain([&direction.name]).all(|name| *name == cut), "{cut}");
        assert_eq!((socket.refusal.as_ref(), direction.queue.as_str()), (Some(&long), "sieve"));
        assert_eq!(socket.send.offered, format!("{}…", "x".repeat(1021)));
    }

    #[test]
    fn numbers_of_publishers_begin_again() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        registry.next = NUMBERS - 1;
        assert_eq!([registry.open(ANN), registry.open(ANN)], [Ok(NUMBERS - 1), Ok(0)]);
    }

    proptest! {
        #[test]
        fn no_line_does_harm(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
            let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
            let id = opened(&mut registry, ANN);
            for line in lines {
                let _refused = send(&mut registry, id, &line);
            }
            registry.close(id);
            prop_assert!(registry.bytes.is_empty());
        }
    }
}
