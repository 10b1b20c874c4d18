//! The rows of a host at one time, in the order of SNMP.

use crate::object::label;
use cutline_flow::TrafficSpec;
use cutline_monitor::{
    HostReservation, HostTotals, KernelQueueEntry, MonitoredHost, Process, PublishedRow, ReservationState,
    RowOwner, Viewer,
};
use cutline_provision::status::{InterfaceStatus, ReservationStatus, SenderStatus, SessionStatus};
use cutline_publish::{DirectionRow, LimitRow, ProgramRow, SocketRow, ViolationRow};
use cutline_records::BucketCounts;
use cutline_router_service::{
    DirectionStatistics, FlowStatistics, HintStatistics, HostStatistics, PacketCount, QdiscDocument,
    ReservedStatistics, Statistics,
};
use cutline_sys::now;
use cutline_units::Instant;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// Index of a row: the arcs that follow a column's name.
pub type Index = Vec<u32>;

/// A QoS socket.
#[derive(Clone, Debug)]
pub struct SocketInstance {
    /// Its process.
    pub process: Process,
    /// Name of the program.
    pub program: Arc<str>,
    /// Its row.
    pub row: Arc<SocketRow>,
}

/// A direction of a QoS socket.
#[derive(Clone, Debug)]
pub struct DirectionInstance {
    row: Arc<SocketRow>,
    is_receive: bool,
}

/// An item of a list in a direction of a QoS socket: a limit, a violation, or a bucket.
#[derive(Clone, Debug)]
pub struct ItemInstance {
    direction: DirectionInstance,
    at: usize,
}

/// A program that runs under `cutline exec`.
#[derive(Clone, Debug)]
pub struct ProgramInstance {
    /// Its row.
    pub row: Arc<ProgramRow>,
    /// Process of `cutline exec`.
    pub process: Process,
}

/// A queue.
#[derive(Clone, Debug)]
pub enum QueueInstance {
    /// A direction of a router.
    Router {
        /// Process of the router.
        process: Process,
        /// Its statistics.
        router: Arc<Statistics>,
        /// True for the reverse direction.
        is_reverse: bool,
    },
    /// A queue in the kernel.
    Kernel(Arc<QdiscDocument>),
}

/// An item of a list of a queue: a reason of drops, a hint, or a bucket.
#[derive(Clone, Debug)]
pub struct QueueItem {
    queue: QueueInstance,
    at: usize,
}

/// The rows of a host at one time. Tables are made on request only.
#[derive(Debug)]
pub struct Snapshot {
    /// Time at which it was taken.
    pub taken: Instant,
    /// Totals of the host.
    pub totals: HostTotals,
    /// Time since the monitor's start, hundredths of a second.
    pub uptime: u32,
    sockets: Vec<(Index, SocketInstance)>,
    programs: Vec<(Index, ProgramInstance)>,
    queues: Vec<(Index, QueueInstance)>,
    directions: OnceLock<Vec<(Index, DirectionInstance)>>,
    limits: OnceLock<Vec<(Index, ItemInstance)>>,
    violations: OnceLock<Vec<(Index, ItemInstance)>>,
    delays: OnceLock<Vec<(Index, ItemInstance)>>,
    drops: OnceLock<Vec<(Index, QueueItem)>>,
    hints: OnceLock<Vec<(Index, QueueItem)>>,
    waits: OnceLock<Vec<(Index, QueueItem)>>,
    queue_flows: OnceLock<Vec<(Index, QueueItem)>>,
    queue_hosts: OnceLock<Vec<(Index, QueueItem)>>,
    reservations: Option<Arc<ReservationState>>,
    links: OnceLock<Vec<(Index, LinkInstance)>>,
    sessions: OnceLock<Vec<(Index, SessionInstance)>>,
    senders: OnceLock<Vec<(Index, SenderInstance)>>,
    session_reservations: OnceLock<Vec<(Index, ReservationInstance)>>,
    flows: OnceLock<Vec<(Index, InstalledInstance)>>,
}

/// An interface of `cutlined`.
#[derive(Clone, Debug)]
pub struct LinkInstance {
    state: Arc<ReservationState>,
    at: usize,
}

/// A session of RSVP.
#[derive(Clone, Debug)]
pub struct SessionInstance {
    state: Arc<ReservationState>,
    at: usize,
}

/// A sender of a session.
#[derive(Clone, Debug)]
pub struct SenderInstance {
    /// Its session.
    pub session: SessionInstance,
    at: usize,
}

/// A reservation for a session.
#[derive(Clone, Debug)]
pub struct ReservationInstance {
    /// Its session.
    pub session: SessionInstance,
    at: usize,
}

/// A reservation that is installed at an interface of this host.
#[derive(Clone, Copy, Debug)]
pub struct InstalledInstance {
    /// The number of the protocol, such as 17 for UDP.
    pub protocol: u8,
    /// Destination of the packets.
    pub destination: SocketAddr,
    /// The first of their sources; `None` for all.
    pub sender: Option<SocketAddr>,
    /// Number of the interface; `None` while it is absent.
    pub interface: Option<u32>,
    /// True for a session of RSVP; false for a reservation at this host alone.
    pub is_of_session: bool,
    /// Reserved token bucket.
    pub bucket: TrafficSpec,
}

impl InstalledInstance {
    /// Returns a reservation; `None` if no interface has it.
    fn new(state: &ReservationState, of: &HostReservation<'_>) -> Option<Self> {
        Some(Self {
            interface: state.interface_number(of.interface?),
            protocol: of.protocol,
            destination: of.destination,
            sender: of.senders.first().copied(),
            is_of_session: of.style.is_some(),
            bucket: of.bucket,
        })
    }
}

impl LinkInstance {
    /// Returns the status of the interface.
    pub fn row(&self) -> &InterfaceStatus {
        &self.state.status.interfaces[self.at]
    }
}

impl SessionInstance {
    /// Returns the status of the session.
    pub fn row(&self) -> &SessionStatus {
        &self.state.status.sessions[self.at]
    }

    /// Returns the number of the interface with this name, in the kernel.
    pub fn interface(&self, name: Option<&String>) -> Option<u32> {
        self.state.interface_number(name?)
    }
}

impl SenderInstance {
    /// Returns the status of the sender.
    pub fn row(&self) -> &SenderStatus {
        &self.session.row().senders[self.at]
    }
}

impl ReservationInstance {
    /// Returns the status of the reservation.
    pub fn row(&self) -> &ReservationStatus {
        &self.session.row().reservations[self.at]
    }
}

/// First number in the indices of queues in the kernel. That of an interface is added, so that an index stays the same while the queue does.
pub const KERNEL_QUEUES: u32 = 1 << 31;

/// Measures of a specification, with their numbers in an index.
pub const MEASURES: &[(&str, i32)] =
    &[("rate", 1), ("delay", 2), ("gap", 3), ("jitter", 4), ("loss", 5), ("recovery", 6)];
/// Reasons of drops, with their numbers in an index.
pub const LOSSES: &[(&str, i32)] =
    &[("early", 1), ("overflow", 2), ("oversize", 3), ("runt", 4), ("unsent", 5), ("memory", 6)];

impl DirectionInstance {
    /// Returns the row of the direction.
    pub fn row(&self) -> &DirectionRow {
        if self.is_receive { &self.row.receive } else { &self.row.send }
    }
}

impl ItemInstance {
    /// Returns the limit.
    pub fn limit(&self) -> Option<&LimitRow> {
        self.direction.row().limits.get(self.at)
    }

    /// Returns the socket, and whether this is the direction in which it receives.
    pub fn socket(&self) -> (&SocketRow, bool) {
        (&self.direction.row, self.direction.is_receive)
    }

    /// Returns the violation.
    pub fn violation(&self) -> Option<&ViolationRow> {
        self.direction.row().violations.get(self.at)
    }

    /// Returns the upper bound of the bucket in us, and the number of delays in it. The last bucket has no bound.
    pub fn bucket(&self) -> (Option<f64>, u64) {
        let (bound_ms, count) = bucket(self.direction.row().delay_buckets_ms.as_ref(), self.at);
        (bound_ms.map(|ms| ms * 1e3), count)
    }
}

impl QueueInstance {
    /// Returns the statistics of the direction.
    pub fn direction(&self) -> &DirectionStatistics {
        match self {
            Self::Router { router, is_reverse, .. } => router.direction(*is_reverse),
            Self::Kernel(queue) => &queue.statistics,
        }
    }

    /// Returns the process of the router; `None` of a queue in the kernel.
    pub const fn pid(&self) -> Option<u32> {
        match self {
            Self::Router { process, .. } => Some(process.pid),
            Self::Kernel(_) => None,
        }
    }

    /// Returns the reserved flows; `None` of a queue in the kernel, which has no reservations.
    pub fn reserved(&self) -> Option<&ReservedStatistics> {
        match self {
            Self::Router { .. } => Some(&self.direction().reserved),
            Self::Kernel(_) => None,
        }
    }
}

impl QueueItem {
    /// Returns the frames lost for the reason.
    pub fn lost(&self) -> Option<&PacketCount> {
        self.queue.direction().dropped.values().nth(self.at)
    }

    /// Returns the counters of the hint.
    pub fn hint(&self) -> Option<&HintStatistics> {
        self.queue.direction().hints.get(self.at)
    }

    /// Returns the flow.
    pub fn flow(&self) -> Option<&FlowStatistics> {
        self.queue.direction().flows.get(self.at)
    }

    /// Returns the host.
    pub fn host(&self) -> Option<&HostStatistics> {
        self.queue.direction().hosts.get(self.at)
    }

    /// Returns the upper bound of the bucket in us, and the number of waits in it. The last bucket has no bound.
    pub fn bucket(&self) -> (Option<f64>, u64) {
        bucket(Some(&self.queue.direction().waits_us), self.at)
    }
}

fn bucket(buckets: Option<&BucketCounts>, at: usize) -> (Option<f64>, u64) {
    let found = buckets.and_then(|buckets| Some((buckets.bounds.get(at).copied(), *buckets.counts.get(at)?)));
    found.unwrap_or((None, 0))
}

/// Returns the number of a name.
pub fn number_of(names: &[(&str, i32)], name: &str) -> Option<u32> {
    let name = label(name);
    let found = names.iter().find(|(known, _)| *known == name)?;
    u32::try_from(found.1).ok()
}

/// Returns the rows of a list inside rows: one for each number that `numbers` returns, with its place.
fn items<R: Clone, I>(
    rows: &[(Index, R)],
    numbers: impl Fn(&R) -> Vec<Option<u32>>,
    item: impl Fn(R, usize) -> I,
) -> Vec<(Index, I)> {
    let mut found = Vec::new();
    for (index, row) in rows {
        let first = found.len();
        for (at, number) in numbers(row).into_iter().enumerate() {
            if let Some(number) = number {
                found.push(([index.as_slice(), &[number]].concat(), item(row.clone(), at)));
            }
        }
        let of_row: &mut [(Index, I)] = &mut found[first..];
        of_row.sort_by(|a, b| a.0.cmp(&b.0));
    }
    // A process may state an item twice.
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// Puts rows into the order of their indices, of which each is there once: a process may state numbers that are larger than those in an index.
fn order<R>(rows: &mut Vec<(Index, R)>) {
    if !rows.is_sorted_by(|a, b| a.0 < b.0) {
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.dedup_by(|a, b| a.0 == b.0);
    }
}

/// Returns the queues in the kernel. Numbers of publishers are far below those of their indices.
fn kernel_queues<'e>(
    entries: impl Iterator<Item = &'e KernelQueueEntry>,
) -> impl Iterator<Item = (Index, QueueInstance)> {
    // The number of an interface is from 1 to 2^31 - 1 (RFC 2863).
    let indexed = entries
        .filter(|entry| (1..KERNEL_QUEUES).contains(&entry.index))
        .map(|entry| (vec![KERNEL_QUEUES + entry.index, 1], QueueInstance::Kernel(Arc::clone(&entry.queue))));
    let mut indexed: Vec<_> = indexed.collect();
    indexed.sort_by(|a, b| a.0.cmp(&b.0));
    indexed.into_iter()
}

/// Returns the numbers of all buckets, from 1 on.
fn all(count: usize) -> Vec<Option<u32>> {
    (1..=count).map(|number| u32::try_from(number).ok()).collect()
}

impl Snapshot {
    /// Takes a snapshot of a host.
    pub fn take(host: &MonitoredHost) -> Self {
        let registry = host.registry();
        let mut snapshot = Self {
            taken: now(),
            totals: registry.totals(Viewer::All),
            uptime: 0,
            sockets: Vec::new(),
            programs: Vec::new(),
            queues: Vec::new(),
            directions: OnceLock::new(),
            limits: OnceLock::new(),
            violations: OnceLock::new(),
            delays: OnceLock::new(),
            drops: OnceLock::new(),
            hints: OnceLock::new(),
            waits: OnceLock::new(),
            queue_flows: OnceLock::new(),
            queue_hosts: OnceLock::new(),
            reservations: host.reservations(),
            links: OnceLock::new(),
            sessions: OnceLock::new(),
            senders: OnceLock::new(),
            session_reservations: OnceLock::new(),
            flows: OnceLock::new(),
        };
        let mut programs: Option<(u32, Arc<str>)> = None;
        for (owner, row) in registry.rows() {
            let name = programs.take().filter(|(publisher, _)| *publisher == owner.publisher);
            let (publisher, program) = name.unwrap_or_else(|| (owner.publisher, owner.program.into()));
            snapshot.add(owner, &program, row);
            programs = Some((publisher, program));
        }
        order(&mut snapshot.sockets);
        order(&mut snapshot.programs);
        snapshot.queues.extend(kernel_queues(registry.kernel_queues()));
        drop(registry);
        snapshot.uptime = (host.elapsed().as_secs_f64() * 100.0) as u64 as u32;
        snapshot
    }

    fn add(&mut self, owner: RowOwner<'_>, program: &Arc<str>, row: &PublishedRow) {
        let RowOwner { publisher, process, .. } = owner;
        // An index should not be 0 (RFC 2578, section 7.7).
        let index = |number: u64| vec![publisher + 1, number as u32];
        match row {
            PublishedRow::Socket(row) => {
                let instance = SocketInstance { process, program: Arc::clone(program), row: Arc::clone(row) };
                self.sockets.push((index(row.socket), instance));
            }
            PublishedRow::Program(row) => {
                self.programs.push((index(row.process), ProgramInstance { row: Arc::clone(row), process }));
            }
            PublishedRow::Router(router) => {
                for (number, is_reverse) in [(1, false), (2, true)] {
                    let queue = QueueInstance::Router { process, router: Arc::clone(router), is_reverse };
                    self.queues.push((index(number), queue));
                }
            }
        }
    }

    /// Returns the sockets.
    pub fn sockets(&self) -> &[(Index, SocketInstance)] {
        &self.sockets
    }

    /// Returns the programs.
    pub fn programs(&self) -> &[(Index, ProgramInstance)] {
        &self.programs
    }

    /// Returns the queues.
    pub fn queues(&self) -> &[(Index, QueueInstance)] {
        &self.queues
    }

    /// Returns the directions of sockets: sending is 1, receiving 2.
    pub fn directions(&self) -> &[(Index, DirectionInstance)] {
        self.directions.get_or_init(|| {
            let both = |row: SocketInstance, at| DirectionInstance { row: row.row, is_receive: at == 1 };
            items(&self.sockets, |_| vec![Some(1), Some(2)], both)
        })
    }

    /// Returns the limits of all directions.
    pub fn limits(&self) -> &[(Index, ItemInstance)] {
        self.limits.get_or_init(|| {
            let numbers = |direction: &DirectionInstance| {
                direction.row().limits.iter().map(|limit| number_of(MEASURES, &limit.measure)).collect()
            };
            items(self.directions(), numbers, |direction, at| ItemInstance { direction, at })
        })
    }

    /// Returns the violations under way.
    pub fn violations(&self) -> &[(Index, ItemInstance)] {
        self.violations.get_or_init(|| {
            let numbers = |direction: &DirectionInstance| {
                let violations = direction.row().violations.iter();
                violations.map(|violation| number_of(MEASURES, &violation.measure)).collect()
            };
            items(self.directions(), numbers, |direction, at| ItemInstance { direction, at })
        })
    }

    /// Returns the buckets of delays.
    pub fn delays(&self) -> &[(Index, ItemInstance)] {
        self.delays.get_or_init(|| {
            let numbers = |direction: &DirectionInstance| {
                all(direction.row().delay_buckets_ms.as_ref().map_or(0, |buckets| buckets.counts.len()))
            };
            items(self.directions(), numbers, |direction, at| ItemInstance { direction, at })
        })
    }

    /// Returns the reasons of drops of all queues.
    pub fn drops(&self) -> &[(Index, QueueItem)] {
        self.drops.get_or_init(|| {
            let numbers = |queue: &QueueInstance| {
                queue.direction().dropped.keys().map(|reason| number_of(LOSSES, reason)).collect()
            };
            items(&self.queues, numbers, |queue, at| QueueItem { queue, at })
        })
    }

    /// Returns the hints of all queues.
    pub fn hints(&self) -> &[(Index, QueueItem)] {
        self.hints.get_or_init(|| {
            let numbers = |queue: &QueueInstance| {
                queue.direction().hints.iter().map(|hint| Some(u32::from(hint.hint))).collect()
            };
            items(&self.queues, numbers, |queue, at| QueueItem { queue, at })
        })
    }

    /// Returns the buckets of waits of all queues.
    pub fn waits(&self) -> &[(Index, QueueItem)] {
        self.waits.get_or_init(|| {
            let numbers = |queue: &QueueInstance| all(queue.direction().waits_us.counts.len());
            items(&self.queues, numbers, |queue, at| QueueItem { queue, at })
        })
    }

    /// Returns the flows that send most through each queue, from 1 on.
    pub fn queue_flows(&self) -> &[(Index, QueueItem)] {
        self.queue_flows.get_or_init(|| {
            let numbers = |queue: &QueueInstance| all(queue.direction().flows.len());
            items(&self.queues, numbers, |queue, at| QueueItem { queue, at })
        })
    }

    /// Returns the hosts that send or receive most through each queue, from 1 on.
    pub fn queue_hosts(&self) -> &[(Index, QueueItem)] {
        self.queue_hosts.get_or_init(|| {
            let numbers = |queue: &QueueInstance| all(queue.direction().hosts.len());
            items(&self.queues, numbers, |queue, at| QueueItem { queue, at })
        })
    }

    /// Returns the number of messages of RSVP that were malformed; `None` without `cutlined`.
    pub fn malformed_messages(&self) -> Option<u64> {
        self.reservations.as_ref().map(|state| state.status.counters.malformed)
    }

    /// Returns the interfaces of `cutlined` by their number in the kernel.
    pub fn links(&self) -> &[(Index, LinkInstance)] {
        self.links.get_or_init(|| {
            let Some(state) = &self.reservations else { return Vec::new() };
            let interfaces = state.status.interfaces.iter().enumerate();
            let link = |at| LinkInstance { state: Arc::clone(state), at };
            let mut links: Vec<_> =
                interfaces.filter_map(|(at, interface)| Some((vec![interface.index?], link(at)))).collect();
            links.sort_by(|a, b| a.0.cmp(&b.0));
            links
        })
    }

    /// Returns the sessions of RSVP.
    pub fn sessions(&self) -> &[(Index, SessionInstance)] {
        self.sessions.get_or_init(|| {
            let Some(state) = &self.reservations else { return Vec::new() };
            let sessions = state.status.sessions.iter().enumerate();
            let session = |at| SessionInstance { state: Arc::clone(state), at };
            let mut sessions: Vec<_> =
                sessions.map(|(at, row)| (vec![row.number as u32], session(at))).collect();
            sessions.sort_by(|a, b| a.0.cmp(&b.0));
            sessions
        })
    }

    /// Returns the senders of all sessions.
    pub fn senders(&self) -> &[(Index, SenderInstance)] {
        self.senders.get_or_init(|| {
            let numbers = |session: &SessionInstance| all(session.row().senders.len());
            items(self.sessions(), numbers, |session, at| SenderInstance { session, at })
        })
    }

    /// Returns the reservations for all sessions.
    pub fn session_reservations(&self) -> &[(Index, ReservationInstance)] {
        self.session_reservations.get_or_init(|| {
            let numbers = |session: &SessionInstance| all(session.row().reservations.len());
            items(self.sessions(), numbers, |session, at| ReservationInstance { session, at })
        })
    }

    /// Returns the reservations that are installed at an interface of this host, numbered from 1 on.
    pub fn flows(&self) -> &[(Index, InstalledInstance)] {
        self.flows.get_or_init(|| {
            let Some(state) = &self.reservations else { return Vec::new() };
            let installed = state.reservations().filter_map(|it| InstalledInstance::new(state, &it));
            (1..).zip(installed).map(|(number, row)| (vec![number], row)).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_monitor::{KernelQueueReading, PublicationLimits, PublishedLine};
    use cutline_publish::{LimitRow, VERSION};
    use serde_json::json;

    fn kernel_queue(index: u32) -> KernelQueueEntry {
        let mut queue = QdiscDocument { interface: format!("eth{index}"), ..QdiscDocument::default() };
        queue.statistics.hints.push(HintStatistics { hint: 6, ..HintStatistics::default() });
        KernelQueueEntry { index, queue: queue.into() }
    }

    /// A manager that walks stops at a name that does not rise, and never sees the ones behind it.
    #[test]
    fn indices_rise_at_any_statements_of_a_process() {
        let host = MonitoredHost::new(PublicationLimits::DEFAULT);
        let mut registry = host.registry();
        let id = registry.open(Process { pid: 5, uid: 1000 }).unwrap();
        let limit = LimitRow { measure: "delay".to_owned(), ..LimitRow::default() };
        let mut statistics = Statistics::default();
        statistics.forward.hints = vec![HintStatistics { hint: 6, ..HintStatistics::default() }; 2];
        let hello = json!({ "hello": { "version": VERSION, "program": "video" } });
        let socket =
            |number: u64| json!({ "socket": { "socket": number, "receive": { "limits": [limit, limit] } } });
        let program = |number: u64| json!({ "program": { "process": number } });
        let numbers = [7, 3, (1 << 32) + 3, (1 << 32) + 1, u64::MAX];
        let lines = [hello, json!({ "router": statistics })].into_iter();
        for line in lines.chain(numbers.map(socket)).chain(numbers.map(program)) {
            let line = line.to_string();
            // A row may have fewer fields than the record.
            let line = PublishedLine::parse(line.as_bytes());
            registry.take(id, line.unwrap()).unwrap();
        }
        drop(registry);
        let snapshot = Snapshot::take(&host);
        let rises = |indices: Vec<&Index>| indices.is_sorted_by(|a, b| a < b);
        let of =
            |rows: &[(Index, SocketInstance)]| rows.iter().map(|(index, _)| index[1]).collect::<Vec<_>>();
        assert_eq!(of(snapshot.sockets()), [1, 3, 7, u32::MAX]);
        assert!(rises(snapshot.programs().iter().map(|(index, _)| index).collect()));
        assert_eq!((snapshot.programs().len(), snapshot.limits().len(), snapshot.hints().len()), (4, 4, 1));
        assert!(rises(snapshot.limits().iter().map(|(index, _)| index).collect()));
    }

    #[test]
    fn queues_in_the_kernel_are_behind_those_of_routers_by_interface() {
        let host = MonitoredHost::new(PublicationLimits::DEFAULT);
        let mut registry = host.registry();
        let id = registry.open(Process { pid: 5, uid: 0 }).unwrap();
        for line in [
            json!({ "hello": { "version": VERSION, "program": "router" } }),
            json!({ "router": Statistics::default() }),
        ] {
            registry.take(id, PublishedLine::parse(line.to_string().as_bytes()).unwrap()).unwrap();
        }
        // The monitor has them by name.
        let queues = vec![kernel_queue(12), kernel_queue(3), kernel_queue(0)];
        registry.set_kernel_queues(KernelQueueReading { queues, problem: None });
        drop(registry);
        let snapshot = Snapshot::take(&host);
        let indices: Vec<&[u32]> = snapshot.queues().iter().map(|(index, _)| &index[..]).collect();
        assert_eq!(indices, [[1, 1], [1, 2], [0x8000_0003, 1], [0x8000_000c, 1]]);
        let (router, kernel) = (&snapshot.queues()[0].1, &snapshot.queues()[2].1);
        assert_eq!((router.pid(), router.reserved().is_some()), (Some(5), true));
        assert_eq!((kernel.pid(), kernel.reserved().is_some()), (None, false));
        let hints: Vec<&[u32]> = snapshot.hints().iter().map(|(index, _)| &index[..]).collect();
        assert_eq!(hints, [[0x8000_0003, 1, 6], [0x8000_000c, 1, 6]]);
        assert_eq!(snapshot.totals.kernel_queues, 3);
    }
}
