//! The thread of the manager, and the handle by which other threads reach it.

use crate::clients::{ConnectionId, Connections};
use crate::config::{ManagerSpec, PathKey};
use crate::error::ManagerServiceError;
use crate::host::ManagedHost;
use crate::paths::check_keys;
use crate::reserved::ReservedRates;
use cutline_allocation::protocol::{AllocationReply, AllocationRequest, VERSION};
use cutline_manager::resources::ClientKey;
use cutline_service::SocketFile;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_sys::{SysError, lock, now};
use cutline_units::{Duration, Instant};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The numbers of descriptors: the listener, the socket of summaries, clients from here on.
const LISTENER: u32 = 0;
const SUMMARIES: u32 = 1;
const CLIENTS: u32 = 2;

/// Time for which requests keep everything else waiting.
const TURN: Duration = Duration::from_millis(10);
/// Interval at which budgets are renewed.
const SECOND: Duration = Duration::from_secs(1);

/// Requests of other threads.
#[derive(Debug, Default)]
struct Inbox {
    reserved: Option<ReservedRates>,
    spec: Option<Box<ManagerSpec>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_stopped: AtomicBool,
    inbox: Mutex<Inbox>,
}

/// The resource manager at work. It works until it is dropped; then its state stays for the next process.
#[derive(Debug)]
pub struct ManagerService {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    summaries: Option<SocketAddr>,
    taken_over: u64,
}

impl ManagerService {
    /// Checks settings that need no system: those that would fail at the start.
    ///
    /// # Errors
    /// When a key is too short, or capacities or parameters are not allowed.
    pub fn check(spec: &ManagerSpec, keys: &[PathKey]) -> Result<(), ManagerServiceError> {
        check_keys(keys).map_err(ManagerServiceError::Key)?;
        Ok(spec.capacities.validate()?)
    }

    /// Starts the manager. `say` gets messages for the log.
    ///
    /// # Errors
    /// When another manager has the socket, or something is not available.
    pub fn start(
        spec: ManagerSpec,
        keys: &[PathKey],
        say: impl Fn(String) + Send + 'static,
    ) -> Result<Self, ManagerServiceError> {
        Self::check(&spec, keys)?;
        make_folder(&spec.socket)?;
        make_folder(&spec.state)?;
        let socket = SocketFile::bind(&spec.socket)?;
        // The kernel gives the connected user, and rules decide on the access.
        socket.allow_everyone()?;
        let failed = |error| SysError::new("the socket cannot be set not to wait", error);
        socket.listener().set_nonblocking(true).map_err(failed)?;
        let host = ManagedHost::open(now(), spec, keys)?;
        let taken_over = host.taken_over;
        let summaries = host.paths.as_ref().and_then(|paths| paths.local_addr().ok());
        let shared = Arc::new(Shared::default());
        let service = Service {
            host,
            socket,
            connections: Connections::new(CLIENTS),
            started: now(),
            next_second: now(),
            shared: Arc::clone(&shared),
        };
        let failed = |error| SysError::new("the thread of the resource manager cannot be started", error);
        let thread = std::thread::Builder::new()
            .name("cutline-manager".to_owned())
            .spawn(move || service.run(say))
            .map_err(failed)?;
        Ok(Self { shared, thread: Some(thread), summaries, taken_over })
    }

    /// Reports the rates that reservations of RSVP hold.
    pub fn set_reserved(&self, reserved: ReservedRates) {
        lock(&self.shared.inbox).reserved = Some(reserved);
    }

    /// Changes the settings that can change while the manager runs: capacities and users.
    pub fn reconfigure(&self, spec: ManagerSpec) {
        lock(&self.shared.inbox).spec = Some(Box::new(spec));
    }

    /// The address at which summaries of other hosts are received; `None` without other hosts.
    pub const fn summaries(&self) -> Option<SocketAddr> {
        self.summaries
    }

    /// Number of flows that were taken over from an earlier process.
    pub const fn taken_over(&self) -> u64 {
        self.taken_over
    }
}

impl Drop for ManagerService {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed.
            let _panicked = thread.join();
        }
    }
}

/// Makes the folder of a socket or of a file.
fn make_folder(path: &Path) -> Result<(), SysError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let failed = |error| SysError::new(format!("folder `{}` cannot be made", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(failed)
}

struct Service {
    host: ManagedHost,
    socket: SocketFile,
    connections: Connections,
    started: Instant,
    next_second: Instant,
    shared: Arc<Shared>,
}

impl Service {
    fn run(mut self, say: impl Fn(String)) {
        if let Err(error) = self.serve(&say) {
            say(format!("the resource manager has ended: {error}"));
        }
        self.host.save(now());
        self.host.notices().into_iter().for_each(say);
    }

    fn serve(&mut self, say: &impl Fn(String)) -> Result<(), SysError> {
        let failed = |error| SysError::new("descriptors cannot be waited for", error);
        let mut reactor = Reactor::new().map_err(failed)?;
        reactor.add(self.socket.listener(), LISTENER, EventFlags::IN).map_err(failed)?;
        if let Some(paths) = &self.host.paths {
            reactor.add(paths, SUMMARIES, EventFlags::IN).map_err(failed)?;
        }
        // True if the last turn has ended with clients that have gone: others do not have their shares yet.
        let mut is_unsettled = false;
        while !self.shared.is_stopped.load(Ordering::Relaxed) {
            let deadline = self.host.deadline().min(self.next_second);
            let deadline = if is_unsettled || self.connections.has_work() { now() } else { deadline };
            let ready: Vec<(u32, EventFlags)> = reactor.wait(deadline).map_err(failed)?.collect();
            for (number, flags) in ready {
                match number {
                    LISTENER => {
                        let access = self.host.access();
                        let policy = |user, groups: &[u32]| access.policy(user, groups);
                        self.connections.accept(self.socket.listener(), &reactor, policy);
                    }
                    SUMMARIES => self.host.receive_summaries(now()),
                    _ => {
                        if let Some(gone) = self.connections.ready(number, flags) {
                            self.leave(gone);
                        }
                    }
                }
            }
            self.read_inbox();
            self.serve_requests();
            self.send_statuses();
            let at = now();
            self.host.handle_deadline(at);
            if at >= self.next_second {
                self.next_second = at + SECOND;
                self.connections.begin_second();
            }
            self.settle(at);
            let gone = self.connections.flush(&reactor);
            is_unsettled = !gone.is_empty();
            for gone in gone {
                self.leave(gone);
            }
            self.host.notices().into_iter().for_each(say);
        }
        Ok(())
    }

    fn read_inbox(&mut self) {
        let Inbox { reserved, spec } = std::mem::take(&mut *lock(&self.shared.inbox));
        if let Some(spec) = spec {
            self.host.reconfigure(*spec);
            let access = self.host.access();
            let policies = self.connections.apply(|user, groups| access.policy(user, groups));
            self.host.set_policies(policies);
        }
        if let Some(reserved) = reserved {
            self.host.set_reserved(reserved);
        }
    }

    /// Handles requests of clients, a few of each in turn.
    fn serve_requests(&mut self) {
        let until = now() + TURN;
        while let Some((id, mut session, requests)) = self.connections.next_requests() {
            for request in requests {
                match (request, session) {
                    (AllocationRequest::Hello { version: VERSION, session: token }, None) => {
                        session = self.greet(id, token.as_deref());
                    }
                    (AllocationRequest::Hello { version, .. }, _) => {
                        let why = if version == VERSION { "only once" } else { "1" };
                        self.connections.fail(id, &format!("hello: version = {version}: allowed is {why}"));
                        break;
                    }
                    (_, None) => {
                        self.connections.fail(id, "the first request must be hello");
                        break;
                    }
                    (AllocationRequest::Status {}, Some(_)) => {
                        // Replies to earlier requests come before it.
                        self.settle(now());
                        self.connections.begin_status(id);
                    }
                    (request, Some(key)) => self.host.handle(now(), key, &request),
                }
            }
            if now() >= until {
                return;
            }
        }
    }

    fn greet(&mut self, id: ConnectionId, token: Option<&str>) -> Option<ClientKey> {
        let process = self.connections.process(id)?.clone();
        match self.host.begin((process.user, process.pid), process.policy, token) {
            Ok((key, welcome)) => {
                self.connections.send(id, &welcome);
                if let Some(before) = self.connections.set_session(id, key) {
                    self.connections.remove(before);
                }
                Some(key)
            }
            Err(error) => {
                self.connections.fail(id, &error.to_string());
                None
            }
        }
    }

    /// Sends statuses, one to each client in turn. Each takes longer than other requests, which have a turn of their own.
    fn send_statuses(&mut self) {
        let until = now() + TURN;
        for id in self.connections.clients_for_status() {
            self.send_status(id);
            if now() >= until {
                return;
            }
        }
    }

    fn send_status(&mut self, id: ConnectionId) {
        let Some(viewer) = self.connections.process(id).map(|process| process.user) else { return };
        if !self.connections.has_room_for_status() {
            let message = "too much waits for clients that do not read: try again later";
            return self.connections.refuse_status(id, message);
        }
        let mut status = self.host.status(now(), self.started, viewer);
        status.clients = self.connections.len() as u64;
        status.refused_clients = self.connections.refused();
        self.connections.send_status(id, &AllocationReply::Status { status: Box::new(status) });
    }

    /// Takes the manager's outputs. Replies leave when their state is in the journal.
    fn settle(&mut self, at: Instant) {
        self.host.settle(at);
        self.host.commit(at);
        while let Some((key, reply)) = self.host.reply() {
            self.connections.send_to(key, &reply);
        }
    }

    /// Disconnects a client. Its flows end.
    fn leave(&mut self, id: ConnectionId) {
        if let Some(session) = self.connections.remove(id) {
            self.host.end(session);
        }
    }
}
