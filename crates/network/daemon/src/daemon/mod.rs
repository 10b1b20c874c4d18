//! The daemon: a single-threaded event loop over messages, deadlines, clients, routes and signals.
//!
//! ```text
//! node          this host in the protocol: engine, sockets, routes, interfaces, installers
//! applications  requests of applications, and their events
//! topology      interfaces and routes that change
//! statuses      documents of the state, written in slices
//! ```

mod applications;
mod node;
mod statuses;
mod topology;

use crate::clients::MOST_REQUESTS;
use crate::config::DaemonConfig;
use crate::error::DaemonError;
use crate::installers::CustomInstallers;
use crate::record::InterfaceRecord;
use applications::Applications;
use cutline_manager_service::{ManagerService, ManagerSpec};
use cutline_monitor::MonitoredHost;
use cutline_netlink::{Interface, sweep};
use cutline_provision::protocol::Request;
use cutline_service::{OutputSender, SdNotify, SighupWatcher, SocketFile};
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_sys::{SysError, now};
use cutline_units::{Duration, Instant, Rate};
use node::Node;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use topology::Stale;

/// The numbers of descriptors: the listener, routes, traffic control, sockets from here on, clients from there on.
const LISTENER: u32 = 0;
const ROUTES: u32 = 1;
const TRAFFIC: u32 = 2;
const SOCKETS: u32 = 3;
const CLIENTS: u32 = 100;

/// Interval at which the monitor gets the status.
const MONITORED_EVERY: Duration = Duration::from_secs(1);

/// Time for which one socket, or the end of a client's requests, keeps the others waiting.
const TURN: Duration = Duration::from_millis(20);

/// A daemon that is ready to run. All that it has installed is removed when it is dropped.
///
/// Its fields are dropped in their order: those that install traffic control, the record of its interfaces, and the socket, whose next owner
/// reads the record.
#[derive(Debug)]
pub struct Daemon {
    node: Node,
    applications: Applications,
    /// State that depends on routes which may have changed.
    stale: VecDeque<Stale>,
    file: Option<PathBuf>,
    started: Instant,
    /// Destination of the log.
    log: Option<OutputSender<String>>,
    /// The monitor, and the next time at which it gets the status.
    monitor: Option<(Arc<MonitoredHost>, Instant)>,
    /// The resource manager, and the reserved rates that it knows, with the number of their version.
    manager: Option<(ManagerService, BTreeMap<String, Rate>, u64)>,
    record: InterfaceRecord,
    socket: SocketFile,
}

impl Daemon {
    /// Opens sockets, takes over interfaces, and removes the leftovers of an earlier, killed agent.
    ///
    /// # Errors
    /// When something is not available. Nothing is left installed then.
    pub fn open(config: DaemonConfig) -> Result<Self, DaemonError> {
        Self::open_with(config, CustomInstallers::new())
    }

    /// Opens the agent with installers for the interfaces of these names, instead of those in the file. Nothing else is
    /// installed there. In the file, the traffic has to be controlled there.
    ///
    /// # Errors
    /// As [`Daemon::open`].
    pub fn open_with(config: DaemonConfig, custom: CustomInstallers) -> Result<Self, DaemonError> {
        let socket = SocketFile::bind(&config.socket)?;
        if let Some(group) = config.group {
            socket.set_owner(None, Some(group))?;
        }
        socket
            .listener()
            .set_nonblocking(true)
            .map_err(|error| SysError::new("the socket cannot be set not to wait", error))?;
        let shaped = config.shaped_interfaces().filter(|name| !custom.contains_key(*name)).cloned().collect();
        let mut notices = Vec::new();
        let mut record = InterfaceRecord::open(&config.socket, shaped, &mut notices);
        let mut node = Node::open(config, custom)?;
        record.note_start();
        node.notices.append(&mut notices);
        Ok(Self {
            node,
            applications: Applications::new(CLIENTS),
            stale: VecDeque::new(),
            file: None,
            started: now(),
            log: None,
            monitor: None,
            manager: None,
            record,
            socket,
        })
    }

    /// Reads this file again on SIGHUP.
    #[must_use]
    pub fn with_file(self, file: PathBuf) -> Self {
        Self { file: Some(file), ..self }
    }

    /// Reports events to this log, a line each.
    #[must_use]
    pub fn with_log(self, log: OutputSender<String>) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Passes the status to this monitor, once a second.
    #[must_use]
    pub fn with_monitor(self, host: Arc<MonitoredHost>) -> Self {
        Self { monitor: Some((host, now())), ..self }
    }

    /// Reports reserved rates to this resource manager, and ends it with the daemon.
    #[must_use]
    pub fn with_manager(self, manager: ManagerService) -> Self {
        Self { manager: Some((manager, BTreeMap::new(), 0)), ..self }
    }

    /// Serves until one of `stops` is set.
    ///
    /// # Errors
    /// When descriptors cannot be waited for.
    pub fn run(&mut self, stops: &[&AtomicBool], hangup: Option<&SighupWatcher>) -> Result<(), DaemonError> {
        let failed = |error| SysError::new("descriptors cannot be waited for", error);
        let mut reactor = Reactor::new().map_err(failed)?;
        reactor.add(self.socket.listener(), LISTENER, EventFlags::IN).map_err(failed)?;
        reactor.add(self.node.route_descriptor(), ROUTES, EventFlags::IN).map_err(failed)?;
        reactor.add(self.node.traffic_descriptor(), TRAFFIC, EventFlags::IN).map_err(failed)?;
        for (number, descriptor) in self.node.sockets() {
            reactor.add(descriptor, SOCKETS + number as u32, EventFlags::IN).map_err(failed)?;
        }
        let manager = SdNotify::from_environment();
        manager.ready(&self.node.summary());
        let mut next_watchdog = now();
        while !stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            let deadline = if self.has_work() { now() } else { self.deadline() };
            let ready: Vec<(u32, EventFlags)> = reactor.wait(deadline).map_err(failed)?.collect();
            for (number, flags) in ready {
                match number {
                    LISTENER => self.applications.clients.accept(self.socket.listener(), &reactor),
                    ROUTES => self.handle_changes(),
                    TRAFFIC => self.node.update_traffic_control(),
                    CLIENTS.. => self.applications.ready(number, flags),
                    _ => self.receive((number - SOCKETS) as usize),
                }
            }
            self.refresh_routes(now() + TURN);
            // Grants of others must have ended before the same is requested.
            if !self.applications.is_leaving() {
                self.serve_requests();
            }
            self.continue_statuses();
            let at = now();
            if at >= self.node.engine.deadline() {
                self.node.engine.handle_deadline(at);
            }
            self.maintain(at);
            self.inform_monitor(at);
            self.inform_manager();
            self.applications.flush(&reactor);
            self.applications.end_requests(&mut self.node);
            if hangup.is_some_and(SighupWatcher::take) {
                manager.reloading(at);
                self.reload();
                manager.ready(&self.node.summary());
            }
            manager.flush();
            if let Some(interval) = manager.watchdog_interval().filter(|_| at >= next_watchdog) {
                manager.watchdog();
                next_watchdog = at + interval;
            }
            self.write_log();
        }
        manager.stopping();
        self.withdraw_all();
        Ok(())
    }

    /// Returns the time of the next work that waits for no descriptor.
    fn deadline(&self) -> Instant {
        let of_monitor = self.monitor.as_ref().map(|(_, due)| *due);
        of_monitor.into_iter().fold(self.node.engine.deadline(), Instant::min)
    }

    /// Passes the status to the monitor if it is time.
    fn inform_monitor(&mut self, at: Instant) {
        let Some((host, _)) = self.monitor.take_if(|(_, due)| at >= *due) else { return };
        let status = self.monitored_status();
        host.set_reservations(status);
        self.monitor = Some((host, at + MONITORED_EVERY));
    }

    /// Passes the reserved rates of interfaces to the resource manager if they have changed.
    fn inform_manager(&mut self) {
        let Some((manager, known, version)) = &mut self.manager else { return };
        let sums = self.node.reserved_sums();
        if sums != *known || self.node.changed_flows != *version {
            manager.set_reserved(self.node.reserved_rates());
            (*known, *version) = (sums, self.node.changed_flows);
        }
    }

    /// Returns whether work remains that waits for no descriptor and no deadline.
    fn has_work(&self) -> bool {
        self.applications.is_leaving() || !self.stale.is_empty() || self.applications.clients.has_work()
    }

    /// Handles the messages of a socket, for one turn at most.
    fn receive(&mut self, socket: usize) {
        let until = now() + TURN;
        while self.node.receive(socket) {
            // The engine keeps few messages that wait for an answer.
            self.applications.settle(&mut self.node);
            if now() >= until {
                return;
            }
        }
    }

    /// Handles requests of clients, a few of each in turn.
    fn serve_requests(&mut self) {
        let until = now() + TURN;
        while let Some(client) = self.applications.clients.next_in_line() {
            for _ in 0..MOST_REQUESTS {
                let Some(request) = self.applications.clients.request(client) else { break };
                match request {
                    Request::Status {} => self.begin_status(client),
                    request => self.applications.handle(&mut self.node, client, request),
                }
                // Its events are sent before the next request is handled.
                self.applications.settle(&mut self.node);
                if now() >= until {
                    return;
                }
            }
        }
    }

    /// Runs the installers' timers, and carries out the engine's outputs.
    fn maintain(&mut self, at: Instant) {
        for (interface, handle) in self.node.maintain(at) {
            self.applications.class_lost(&mut self.node, interface, handle);
        }
        self.node.note_problems();
        self.applications.settle(&mut self.node);
    }

    /// Removes the installed reservations, and reports to neighbours that the requests of this host have ended.
    fn withdraw_all(&mut self) {
        self.node.clear();
        self.applications.end_all(&mut self.node);
        self.applications.settle(&mut self.node);
    }

    /// Returns a summary of the agent, in a line.
    pub fn summary(&self) -> String {
        self.node.summary()
    }

    /// Reads the file again, and applies the settings that can change while running: keys, shares, and capacities and
    /// users of the resource manager. The log has the warnings of a file that is applied, as at the start.
    fn reload(&mut self) {
        let Some(file) = &self.file else { return };
        let outcome = DaemonConfig::load(file).map_err(|errors| errors.to_string()).and_then(|new| {
            let fixed = self.node.config.fixed_differences(&new);
            if fixed.is_empty() {
                Ok(new)
            } else {
                Err(format!("{} cannot change while it runs: restart it", fixed.join(", ")))
            }
        });
        let outcome = outcome.and_then(|new| {
            let (manager, warnings) = (new.manager.clone(), new.warning_messages());
            // Only the manager's interfaces can change.
            let classed = manager.iter().flat_map(ManagerSpec::classed_interfaces).cloned().collect();
            self.node.take_over(new).map_err(|error| error.to_string())?;
            self.node.notices.extend(warnings);
            self.record.add(classed, &mut self.node.notices);
            if let (Some((running, ..)), Some(spec)) = (&self.manager, manager) {
                running.reconfigure(spec);
            }
            Ok(())
        });
        self.node.notices.push(match outcome {
            Ok(()) => format!("reloaded: {}", self.node.summary()),
            Err(why) => format!("reload failed; keeping the previous configuration: {why}"),
        });
    }

    /// Gives the notices to the log. The log counts those that find no room.
    fn write_log(&mut self) {
        for line in self.node.notices.drain(..) {
            let _counted = self.log.as_ref().is_some_and(|log| log.try_send(line));
        }
    }
}

/// Removes the installations of an agent with this file, also of a killed one. Returns those that cannot be removed, a line
/// each.
pub fn remove_installed(config: &DaemonConfig) -> Vec<String> {
    let names = config.shaped_interfaces();
    let remove = |name: &String| Interface::named(name).and_then(|interface| sweep(&interface));
    names.filter_map(|name| Some(format!("interface {name}: {}", remove(name).err()?))).collect()
}
