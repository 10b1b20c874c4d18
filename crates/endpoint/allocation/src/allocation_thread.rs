//! Thread that requests shares for the flows of a process from the resource manager, renews their leases, and takes them
//! over after a restart of the manager.
//!
//! There is one thread for each socket of a manager, from the first flow on. Without a manager, the thread tries to connect
//! at least every two seconds, so that a manager that is started later serves the existing flows. While the manager is
//! absent, a flow keeps its rate. A forked child has neither the threads of its parent nor its flows.

use crate::connection::ManagerConnection;
use crate::protocol::{AllocationReply, AllocationRequest, FlowNeed, ReportLine};
use cutline_manager::feedback::{FlowEdges, FlowReport};
use cutline_manager::resources::AllocationCause;
use cutline_service::JsonLineError;
use cutline_sys::process::{PerProcess, generation};
use cutline_sys::reactor::{PollFd, PollFlags, wait_once};
use cutline_sys::thread::start_named;
use cutline_sys::{lock, now};
use cutline_units::{Duration, Instant, Rate};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

/// Handler of a flow: limits the flow to its granted rate, and measures its delivery.
pub trait FlowHandler: Send + Sync {
    /// Handles a notice. The thread of this crate calls this method, which must not wait.
    fn on_notice(&self, notice: FlowNotice);

    /// Returns the report of the last interval; `None` if nothing has been measured since the last call.
    fn report(&self) -> Option<FlowReport>;

    /// Returns the number of messages that have left after their deadlines.
    fn missed(&self) -> u64 {
        0
    }
}

/// Notice of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowNotice {
    /// The flow may send at this rate from now on, with all headers.
    Rate {
        /// The previous rate; `None` if the flow had none.
        before: Option<Rate>,
        /// The rate from now on.
        rate: Rate,
        /// Reason of the change.
        cause: AllocationCause,
    },
    /// The flow is refused, for this reason. The request is repeated every five seconds.
    Refused(String),
    /// The manager has revoked the flow. The request is repeated.
    Revoked(AllocationCause),
}

/// State of a flow's allocation at the manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationState {
    /// Not answered yet.
    Pending,
    /// Permission to send at this rate, with all headers.
    Granted(Rate),
    /// Refusal, with the reason.
    Refused(String),
    /// The manager cannot be reached, for this reason.
    Away(String),
}

/// A flow that is held at the manager. The manager releases it when this value is dropped.
#[derive(Debug)]
pub struct AllocatedFlow {
    id: u64,
    shared: Arc<Shared>,
    /// The process that has requested it.
    generation: u32,
}

/// Requests of other threads.
#[derive(Debug)]
enum Command {
    Admit(u64),
    Change(u64),
    Move(u64),
    Release(u64),
}

struct Entry {
    need: FlowNeed,
    handler: Weak<dyn FlowHandler>,
    state: AllocationState,
    /// The rate in the last notice to the handler.
    rate: Option<Rate>,
    /// Number of missed deadlines in the last report to the manager.
    missed: u64,
    /// Time at which the flow is requested again.
    again: Instant,
}

#[derive(Default)]
struct State {
    flows: BTreeMap<u64, Entry>,
    commands: VecDeque<Command>,
    next: u64,
}

struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    /// The end of a socket pair that wakes the thread.
    wake: UnixStream,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Interval of reports and renewals, unless a lease is shorter than four of them.
const INTERVAL: Duration = Duration::from_millis(500);
/// The shortest interval of reports and renewals.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(25);
/// Time after which a refused flow is requested again.
const REFUSED_REST: Duration = Duration::from_secs(5);
/// Time after which a flow whose lease had expired is requested again.
const EXPIRED_REST: Duration = Duration::from_millis(100);
/// Times between attempts to connect: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Requests a share for a flow from the manager whose socket is at `path`. The share is released when the returned value is
/// dropped. This call does not wait for an answer: notices go to `handler`.
///
/// # Errors
/// When the thread cannot be started.
pub fn allocate(path: &Path, need: FlowNeed, handler: Weak<dyn FlowHandler>) -> io::Result<AllocatedFlow> {
    let shared = thread_of(path)?;
    let id = {
        let mut state = lock(&shared.state);
        let id = state.next;
        state.next += 1;
        state.flows.insert(
            id,
            Entry {
                need,
                handler,
                state: AllocationState::Pending,
                rate: None,
                missed: 0,
                again: Instant::FAR_FUTURE,
            },
        );
        state.commands.push_back(Command::Admit(id));
        id
    };
    shared.wake_up();
    Ok(AllocatedFlow { id, shared, generation: generation() })
}

/// Starts the thread that keeps the shares of the manager whose socket is at `path`, unless it runs: before a connection is made, which
/// could not have a share otherwise. It is started with the first share otherwise.
///
/// # Errors
/// When the thread cannot be started.
pub fn start_allocation_thread(path: &Path) -> io::Result<()> {
    thread_of(path).map(drop)
}

/// Returns the state that is shared with the thread of a manager's socket, which is started if it does not run.
fn thread_of(path: &Path) -> io::Result<Arc<Shared>> {
    static THREADS: PerProcess<Mutex<BTreeMap<PathBuf, Arc<Shared>>>> = PerProcess::new();
    let mut threads = lock(THREADS.get());
    if let Some(shared) = threads.get(path) {
        return Ok(Arc::clone(shared));
    }
    let shared = start(path)?;
    threads.insert(path.to_owned(), Arc::clone(&shared));
    Ok(shared)
}

fn start(path: &Path) -> io::Result<Arc<Shared>> {
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let shared = Arc::new(Shared { path: path.to_owned(), state: Mutex::default(), wake });
    let thread = AllocationThread {
        shared: Arc::clone(&shared),
        woken,
        connection: None,
        session: None,
        retry: (Instant::ZERO, RETRY.0),
        renewal: Instant::FAR_FUTURE,
        interval: INTERVAL,
    };
    start_named("cutline-share", move || thread.run())?;
    Ok(shared)
}

impl AllocatedFlow {
    /// Returns the state of the flow's allocation.
    pub fn state(&self) -> AllocationState {
        if self.generation != generation() {
            return AllocationState::Away("the flow belongs to the parent process".to_owned());
        }
        let state = lock(&self.shared.state);
        state.flows.get(&self.id).map_or(AllocationState::Pending, |entry| entry.state.clone())
    }

    /// Requests other rates: the highest useful one, `None` if more is always useful, and the lowest acceptable one.
    /// Sets the edges of the flow's region.
    pub fn change(&self, desired: Option<Rate>, minimum: Rate, edges: FlowEdges) {
        if self.generation != generation() {
            return;
        }
        let mut state = lock(&self.shared.state);
        if let Some(entry) = state.flows.get_mut(&self.id) {
            let before = entry.need;
            entry.need.desired_bps = desired.map(Rate::as_bps);
            entry.need.minimum_bps = minimum.as_bps();
            (entry.need.delay_ms, entry.need.loss_percent) = (edges.delay, edges.loss);
            if entry.need == before {
                return;
            }
            state.commands.push_back(Command::Change(self.id));
        }
        drop(state);
        self.shared.wake_up();
    }

    /// States the address of this end, whose connection was made again.
    pub fn moved(&self, source: SocketAddr) {
        if self.generation != generation() {
            return;
        }
        let mut state = lock(&self.shared.state);
        if let Some(entry) = state.flows.get_mut(&self.id) {
            if entry.need.source == source {
                return;
            }
            entry.need.source = source;
            state.commands.push_back(Command::Move(self.id));
        }
        drop(state);
        self.shared.wake_up();
    }
}

impl Drop for AllocatedFlow {
    fn drop(&mut self) {
        // In a copy of the process a lock may be held forever, and the connection is the parent's.
        if self.generation != generation() {
            return;
        }
        let mut state = lock(&self.shared.state);
        state.flows.remove(&self.id);
        state.commands.push_back(Command::Release(self.id));
        drop(state);
        self.shared.wake_up();
    }
}

impl Shared {
    fn wake_up(&self) {
        // If there is no room, the thread has been woken before.
        let _woken = (&self.wake).write(&[1]);
    }
}

struct AllocationThread {
    shared: Arc<Shared>,
    woken: UnixStream,
    connection: Option<ManagerConnection>,
    session: Option<String>,
    /// Time of the next attempt to connect, and the time to the one after it.
    retry: (Instant, Duration),
    /// Time of the next renewal.
    renewal: Instant,
    interval: Duration,
}

impl AllocationThread {
    fn run(mut self) -> ! {
        loop {
            if let Err(error) = self.turn() {
                self.lose(&error);
            }
            self.wait();
        }
    }

    /// Does the work that is due: connects, sends requests, reads replies, reports.
    ///
    /// # Errors
    /// When the connection to the manager has failed.
    fn turn(&mut self) -> Result<(), JsonLineError> {
        let is_idle = lock(&self.shared.state).flows.is_empty();
        if is_idle {
            // All flows were released before.
            let outcome = self.carry_out();
            self.connection = None;
            self.session = None;
            self.retry = (Instant::ZERO, RETRY.0);
            return outcome;
        }
        if self.connection.is_none() {
            if now() < self.retry.0 {
                return Ok(());
            }
            self.connect()?;
        }
        self.carry_out()?;
        self.listen()?;
        self.ask_again()?;
        if now() >= self.renewal {
            self.renewal = now().saturating_add(self.interval);
            self.report()?;
        }
        Ok(())
    }

    /// Connects, and requests the flows that the manager no longer has.
    fn connect(&mut self) -> Result<(), JsonLineError> {
        let connection = ManagerConnection::connect(&self.shared.path, self.session.as_deref())?;
        self.session = Some(connection.session().to_owned());
        self.interval = (connection.lease() / 4).clamp(SHORTEST_INTERVAL, INTERVAL);
        self.renewal = now().saturating_add(self.interval);
        self.retry = (Instant::ZERO, RETRY.0);
        let held: BTreeMap<u64, Rate> =
            connection.held().iter().map(|flow| (flow.id, Rate::from_bps(flow.rate_bps))).collect();
        self.connection = Some(connection);
        let mut requests = Vec::new();
        let mut notices = Vec::new();
        {
            let mut state = lock(&self.shared.state);
            // Pending commands concern flows that are requested or released here.
            state.commands.clear();
            for (id, entry) in &mut state.flows {
                let Some(rate) = held.get(id).copied() else {
                    requests.push(AllocationRequest::Admit { id: *id, need: entry.need });
                    entry.again = Instant::FAR_FUTURE;
                    continue;
                };
                entry.state = AllocationState::Granted(rate);
                entry.missed = 0;
                requests.push(change(*id, &entry.need));
                // The address may have changed without a manager.
                requests.push(AllocationRequest::Move { id: *id, source: entry.need.source });
                if entry.rate != Some(rate) {
                    let (before, cause) = (entry.rate.replace(rate), AllocationCause::Share);
                    notices.push((entry.handler.clone(), FlowNotice::Rate { before, rate, cause }));
                }
            }
            let gone = held.keys().filter(|id| !state.flows.contains_key(id));
            requests.extend(gone.map(|id| AllocationRequest::Release { id: *id }));
        }
        deliver(notices);
        requests.iter().try_for_each(|request| self.send(request))
    }

    fn send(&mut self, request: &AllocationRequest) -> Result<(), JsonLineError> {
        self.connection.as_mut().map_or(Ok(()), |connection| connection.send(request))
    }

    /// Sends the requests of other threads. Without a connection they wait for the next one.
    fn carry_out(&mut self) -> Result<(), JsonLineError> {
        let commands = std::mem::take(&mut lock(&self.shared.state).commands);
        for command in commands {
            let request = {
                let state = lock(&self.shared.state);
                let need = |id: &u64| state.flows.get(id).map(|entry| entry.need);
                match &command {
                    Command::Admit(id) => need(id).map(|need| AllocationRequest::Admit { id: *id, need }),
                    Command::Change(id) => need(id).map(|need| change(*id, &need)),
                    Command::Move(id) => {
                        need(id).map(|need| AllocationRequest::Move { id: *id, source: need.source })
                    }
                    Command::Release(id) => Some(AllocationRequest::Release { id: *id }),
                }
            };
            if let Some(request) = request {
                self.send(&request)?;
            }
        }
        Ok(())
    }

    /// Reads and handles the manager's replies.
    fn listen(&mut self) -> Result<(), JsonLineError> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(()) };
            let Some(reply) = connection.reply(Duration::ZERO)? else { return Ok(()) };
            let notice = self.take(reply);
            deliver(notice);
        }
    }

    fn take(&self, reply: AllocationReply) -> Option<(Weak<dyn FlowHandler>, FlowNotice)> {
        let mut state = lock(&self.shared.state);
        let (id, state_now, notice) = match reply {
            AllocationReply::Rate { id, rate_bps, cause, .. } => {
                let rate = Rate::from_bps(rate_bps);
                let before = state.flows.get(&id)?.rate;
                (id, AllocationState::Granted(rate), FlowNotice::Rate { before, rate, cause })
            }
            AllocationReply::Refused { id, reason } => {
                (id, AllocationState::Refused(reason.clone()), FlowNotice::Refused(reason))
            }
            AllocationReply::Revoked { id, cause } => {
                (id, AllocationState::Pending, FlowNotice::Revoked(cause))
            }
            _ => return None,
        };
        let entry = state.flows.get_mut(&id)?;
        let is_refused_change =
            matches!(notice, FlowNotice::Refused(_)) && matches!(entry.state, AllocationState::Granted(_));
        if is_refused_change {
            // The flow keeps its rate, until a repetition finds room.
            entry.again = now().saturating_add(REFUSED_REST);
            return None;
        }
        let is_known = entry.state == state_now && matches!(notice, FlowNotice::Refused(_));
        entry.rate = if let AllocationState::Granted(rate) = state_now { Some(rate) } else { None };
        entry.again = match &notice {
            // A change that was refused is still to be repeated.
            FlowNotice::Rate { .. } if matches!(entry.state, AllocationState::Granted(_)) => entry.again,
            FlowNotice::Rate { .. } => Instant::FAR_FUTURE,
            FlowNotice::Revoked(AllocationCause::Lease) => now().saturating_add(EXPIRED_REST),
            FlowNotice::Revoked(_) | FlowNotice::Refused(_) => now().saturating_add(REFUSED_REST),
        };
        entry.state = state_now;
        (!is_known).then(|| (entry.handler.clone(), notice))
    }

    /// Repeats the requests of flows that were refused or revoked, and changes that were refused.
    fn ask_again(&mut self) -> Result<(), JsonLineError> {
        let at = now();
        let mut requests = Vec::new();
        for (id, entry) in &mut lock(&self.shared.state).flows {
            if entry.again <= at {
                entry.again = Instant::FAR_FUTURE;
                requests.push(match entry.state {
                    AllocationState::Granted(_) => change(*id, &entry.need),
                    _ => AllocationRequest::Admit { id: *id, need: entry.need },
                });
            }
        }
        requests.iter().try_for_each(|request| self.send(request))
    }

    /// Reports the delivery of flows, and renews all leases.
    fn report(&mut self) -> Result<(), JsonLineError> {
        let handlers: Vec<_> = {
            let state = lock(&self.shared.state);
            let granted =
                state.flows.iter().filter(|(_, entry)| matches!(entry.state, AllocationState::Granted(_)));
            granted.map(|(id, entry)| (*id, entry.missed, entry.handler.clone())).collect()
        };
        for (id, known, handler) in handlers {
            let Some(handler) = handler.upgrade() else { continue };
            if let Some(report) = handler.report() {
                let report = ReportLine::from(&report);
                self.send(&AllocationRequest::Report { id, report })?;
            }
            let missed = handler.missed();
            if missed != known {
                self.send(&AllocationRequest::Missed { id, missed })?;
                if let Some(entry) = lock(&self.shared.state).flows.get_mut(&id) {
                    entry.missed = missed;
                }
            }
        }
        self.send(&AllocationRequest::Renew {})
    }

    /// Notes that the connection to the manager has failed. Flows keep their rates.
    fn lose(&mut self, error: &JsonLineError) {
        self.connection = None;
        let (_, rest) = self.retry;
        self.retry = (now().saturating_add(rest), (rest + rest).min(RETRY.1));
        let reason = error.to_string();
        for entry in lock(&self.shared.state).flows.values_mut() {
            if !matches!(entry.state, AllocationState::Granted(_)) {
                entry.state = AllocationState::Away(reason.clone());
            }
        }
    }

    /// Waits for a reply, a request of another thread, or the next deadline.
    fn wait(&mut self) {
        let due = {
            let state = lock(&self.shared.state);
            if !state.commands.is_empty() && self.connection.is_some() {
                return;
            }
            let again = state.flows.values().map(|entry| entry.again).min();
            match (&self.connection, state.flows.is_empty()) {
                (_, true) => Instant::FAR_FUTURE,
                (None, false) => self.retry.0,
                (Some(_), false) => self.renewal.min(again.unwrap_or(Instant::FAR_FUTURE)),
            }
        };
        let left = due.saturating_since(now()).min(Duration::from_secs(3600));
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        fds.extend(self.connection.as_ref().map(|connection| PollFd::new(connection, PollFlags::IN)));
        // A signal, or a failure to wait, leads to another turn.
        if wait_once(&mut fds, left).is_err() {
            std::thread::yield_now();
        }
        drop(fds);
        let mut bytes = [0; 64];
        while self.woken.read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
    }
}

fn change(id: u64, need: &FlowNeed) -> AllocationRequest {
    AllocationRequest::Change {
        id,
        desired_bps: need.desired_bps,
        minimum_bps: need.minimum_bps,
        delay_ms: need.delay_ms,
        loss_percent: need.loss_percent,
    }
}

/// Delivers notices to handlers. The caller holds no lock.
fn deliver(notices: impl IntoIterator<Item = (Weak<dyn FlowHandler>, FlowNotice)>) {
    for (handler, notice) in notices {
        if let Some(handler) = handler.upgrade() {
            handler.on_notice(notice);
        }
    }
}
