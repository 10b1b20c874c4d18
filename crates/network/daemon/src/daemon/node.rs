//! This host in the protocol: the engine, and the sockets, routes, interfaces and installers that it works with.

use crate::cache::ThrottledCache;
use crate::config::{DaemonConfig, InterfaceSpec};
use crate::convert::{of_flow, reason};
use crate::error::DaemonError;
use crate::installer::ReservedCount;
use crate::installers::{CustomInstallers, Installers};
use crate::interfaces::Interfaces;
use crate::network::Network;
use crate::routes::Routes;
use cutline_flow::FlowSelector;
use cutline_manager_service::{ManagerSpec, ReservedRates};
use cutline_netlink::{NetworkChanges, Touched, TrafficMonitor};
use cutline_provision::status::{InterfaceStatus, MessageCount, ProtocolCounters};
use cutline_provision::{Refusal, RefusalReason};
use cutline_rsvp::admission::{self, AdmissionError, ReservationHandle};
use cutline_rsvp::engine::{
    Control, Engine, EngineOutput, EngineStart, InterfaceId, Police, ReservedFlow, RouteKey, RsvpEvent,
};
use cutline_rsvp::intserv::Tspec;
use cutline_rsvp::object::{ErrorSpec, Sender, Session, Style};
use cutline_sys::clock::wall_clock_offset;
use cutline_sys::interface;
use cutline_sys::{SysError, now};
use cutline_units::{Instant, Rate, Streams};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};

/// This host as a node of the protocol.
#[derive(Debug)]
pub struct Node {
    pub config: DaemonConfig,
    pub engine: Engine,
    network: Network,
    routes: Routes,
    traffic: TrafficMonitor,
    /// The interfaces of the file, in its order.
    interfaces: Interfaces,
    installers: Installers,
    /// Number of reservations that could not be installed.
    not_installed: u64,
    /// Installed reservations for one flow of this host each, with the flow's packets.
    of_one_flow: BTreeMap<(InterfaceId, ReservationHandle), (FlowSelector, Rate)>,
    /// Number of changes of `of_one_flow`.
    pub changed_flows: u64,
    counted: ThrottledCache<BTreeMap<InterfaceId, ReservedCount>>,
    /// Lines for the log.
    pub notices: Vec<String>,
}

impl Node {
    /// Opens sockets, takes over interfaces, and removes the leftovers of an earlier, killed agent.
    ///
    /// # Errors
    /// When something is not available. Nothing is left installed then.
    pub fn open(config: DaemonConfig, custom: CustomInstallers) -> Result<Self, DaemonError> {
        let kinds: Vec<_> = config.interfaces.iter().map(|spec| (spec.version, spec.encapsulation)).collect();
        let network = Network::open(&kinds)?;
        let notices = network.small_buffers().collect();
        let classed = config.manager.iter().flat_map(ManagerSpec::classed_interfaces).cloned().collect();
        let mut this = Self {
            engine: engine(&config)?,
            network,
            routes: Routes::open(config.route_mark)?,
            traffic: TrafficMonitor::open()?,
            interfaces: Interfaces::new(config.interfaces.len()),
            installers: Installers::new(custom, classed),
            not_installed: 0,
            of_one_flow: BTreeMap::new(),
            changed_flows: 0,
            counted: ThrottledCache::default(),
            notices,
            config,
        };
        this.take_interfaces()?;
        Ok(this)
    }

    /// Returns the descriptor that is readable after a change of routes or interfaces.
    pub fn route_descriptor(&self) -> BorrowedFd<'_> {
        self.routes.descriptor()
    }

    /// Returns the descriptor that is readable after a change of traffic control.
    pub fn traffic_descriptor(&self) -> BorrowedFd<'_> {
        self.traffic.as_fd()
    }

    /// Returns the descriptors of the protocol's sockets, each with its number.
    pub fn sockets(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.network.descriptors()
    }

    /// Passes the next message of a socket to the engine. Returns false if no message waits there.
    pub fn receive(&mut self, socket: usize) -> bool {
        let (engine, at) = (&mut self.engine, now());
        self.network.receive(socket, |arrival| engine.receive(at, arrival))
    }

    /// Carries out the engine's outputs until one of them is an event for applications, and returns that event; `None` when no output
    /// is left.
    pub fn next_event(&mut self) -> Option<RsvpEvent> {
        while let Some(output) = self.engine.poll() {
            match output {
                EngineOutput::Send(datagram) => {
                    let detour = self.routes.detour(&datagram, self.network.links());
                    self.network.send(&datagram, detour);
                }
                EngineOutput::AskRoute(key) => {
                    self.routes.remember(key);
                    self.refresh_route(key);
                }
                EngineOutput::ForgetRoute(key) => self.routes.forget(key),
                EngineOutput::Control(control) => self.control(&control),
                EngineOutput::Event(event) => return Some(event),
            }
        }
        None
    }

    /// Installs admitted reservations. A reservation that cannot be installed is ended, and its receivers are notified.
    fn control(&mut self, control: &Control) {
        if let Err((handle, is_new)) = self.install(control)
            && is_new
        {
            self.engine.revoke(now(), handle, false);
        }
    }

    /// Notes a reservation for one flow of this host, or the end of one.
    fn note_flow(&mut self, control: &Control) {
        let (key, flow) = match control {
            Control::Add(flow) | Control::Modify(flow) => {
                ((flow.interface, flow.handle), self.one_flow(flow))
            }
            // It is of several flows now, or was.
            Control::AddFilter { interface, handle, .. }
            | Control::RemoveFilter { interface, handle, .. }
            | Control::Delete { interface, handle } => ((*interface, *handle), None),
        };
        let before = match flow {
            Some(flow) => self.of_one_flow.insert(key, flow),
            None => self.of_one_flow.remove(&key),
        };
        self.changed_flows += u64::from(before != flow);
    }

    /// Returns the packets and the rate of a reservation for one flow of this host; `None` if it is another one.
    fn one_flow(&mut self, flow: &ReservedFlow) -> Option<(FlowSelector, Rate)> {
        let [sender] = &flow.senders[..] else { return None };
        let is_ours = self.routes.is_local(sender.address);
        is_ours.then(|| (flow.session.selector(Some(sender)), flow.tspec.traffic().rate))
    }

    fn install(&mut self, control: &Control) -> Result<(), (ReservationHandle, bool)> {
        let (interface, handle, is_new) = match control {
            Control::Add(flow) | Control::Modify(flow) => (flow.interface, flow.handle, true),
            Control::AddFilter { interface, handle, .. } => (*interface, *handle, true),
            Control::RemoveFilter { interface, handle, .. } | Control::Delete { interface, handle } => {
                (*interface, *handle, false)
            }
        };
        let applied = self.installers.apply(interface, handle, control);
        if applied.is_ok() || !is_new {
            self.note_flow(control);
        }
        applied.map_err(|error| {
            self.not_installed += u64::from(is_new);
            // A problem of the interface is reported once, and not with each request.
            if self.installers.problem(interface).is_none() {
                self.notices.push(format!("interface {}: {error}", self.name_of(interface)));
            }
            (handle, is_new)
        })
    }

    /// Runs the installers' timers. Returns the reservations that were lost there, with their interfaces.
    pub fn maintain(&mut self, at: Instant) -> Vec<(InterfaceId, ReservationHandle)> {
        let mut lost = Vec::new();
        for (interface, handle, error) in self.installers.maintain(at) {
            self.not_installed += 1;
            self.notices.push(format!("interface {}: {error}", self.name_of(interface)));
            lost.push((interface, handle));
        }
        lost
    }

    /// Logs notices about interfaces for the operator: their installers' messages, and problems that have begun or ended.
    pub fn note_problems(&mut self) {
        let ids: Vec<InterfaceId> = self.interfaces.ids().flatten().collect();
        for id in ids {
            for notice in self.installers.notices(id) {
                self.notices.push(format!("interface {}: {notice}", self.name_of(id)));
            }
        }
        for (name, problem) in self.interfaces.new_problems(&self.config, &mut self.installers) {
            self.notices.push(match problem {
                Some(why) => format!("interface {name}: {why}"),
                None => format!("interface {name}: it is in use again"),
            });
        }
    }

    /// Ends a reservation that the network has admitted.
    pub fn revoke(&mut self, handle: ReservationHandle) {
        self.engine.revoke(now(), handle, false);
    }

    /// Removes all installed reservations at once.
    pub fn clear(&mut self) {
        self.installers.clear();
    }

    /// Returns the address of an interface in messages, while the interface is present.
    pub fn address_of(&self, interface: InterfaceId) -> Option<IpAddr> {
        self.network.links().iter().find(|link| link.id == interface).map(|link| link.address)
    }

    /// Returns the interface and the next node on the route of a flow of this host.
    pub fn next_hop(
        &mut self,
        ends: (SocketAddr, SocketAddr),
        protocol: u8,
    ) -> Option<(InterfaceId, Option<IpAddr>)> {
        self.routes.next(ends, protocol, self.network.links())
    }

    /// Returns whether an address is one of this host.
    pub fn is_local(&mut self, address: IpAddr) -> bool {
        self.routes.is_local(address)
    }

    /// Returns the changes of routes and interfaces since the last call.
    pub fn changes(&mut self) -> NetworkChanges {
        self.routes.changes()
    }

    /// Returns the routes that the engine depends on.
    pub fn wanted_routes(&self) -> Vec<RouteKey> {
        self.routes.asked()
    }

    /// Looks a route up again, and reports it to the engine.
    pub fn refresh_route(&mut self, key: RouteKey) {
        let route = self.routes.route(key, self.network.links());
        self.engine.set_route(now(), key, &route);
    }

    /// Stops using interfaces that have gone or changed. Returns whether there were any.
    pub fn detach(&mut self, all: &[cutline_netlink::Interface]) -> bool {
        let Self { interfaces, config, network, installers, .. } = self;
        interfaces.detach(config, all, network, installers)
    }

    /// Starts using interfaces that have appeared. Each error is a problem of its interface.
    ///
    /// # Errors
    /// The first of them. The other interfaces are used nevertheless.
    pub fn attach(&mut self, all: &[cutline_netlink::Interface]) -> Result<(), DaemonError> {
        let Self { interfaces, config, engine, network, installers, .. } = self;
        let outcome = interfaces.attach(config, all, engine, network, installers).map_or(Ok(()), Err);
        self.forget_own_changes();
        outcome
    }

    /// Admits and installs a class for a flow of this host at an interface.
    ///
    /// # Errors
    /// When the interface has too little left, or it cannot be installed.
    pub fn install_local(
        &mut self,
        interface: InterfaceId,
        flow: &cutline_provision::Flow,
        tspec: &Tspec,
    ) -> Result<(InterfaceId, ReservationHandle), Refusal> {
        let node = self.address_of(interface);
        let share = self.engine.share(interface);
        let left = share.map(|share| share.reservable().as_bps().saturating_sub(share.reserved().as_bps()));
        let handle = self.engine.admit_local(interface, tspec).map_err(|refusal| {
            let (reason, available_bps) = match refusal {
                AdmissionError::Bandwidth => (RefusalReason::Bandwidth, left),
                AdmissionError::Delay => (RefusalReason::Burst, None),
                AdmissionError::PacketSize => (RefusalReason::PacketSize, None),
            };
            Refusal { reason, node, available_bps }
        })?;
        let (session, sender) = of_flow(flow);
        let style = Style::FixedFilter;
        let (senders, police) = (vec![sender], Police { entry: true, ..Police::default() });
        let flow = ReservedFlow { interface, handle, session, style, senders, tspec: *tspec, police };
        if self.install(&Control::Add(flow)).is_err() {
            self.engine.release_local(interface, handle);
            return Err(Refusal { node, ..Refusal::new(RefusalReason::Conflict) });
        }
        Ok((interface, handle))
    }

    /// Removes a class of a flow of this host.
    pub fn release(&mut self, interface: InterfaceId, handle: ReservationHandle) {
        let _reported = self.install(&Control::Delete { interface, handle });
        self.engine.release_local(interface, handle);
    }

    /// Returns the reason why a reservation has failed. The grantable traffic is known where the path offers
    /// less than was requested.
    pub fn refusal(
        &self,
        session: Session,
        error: &ErrorSpec,
        senders: &[Sender],
        asked: Option<Tspec>,
    ) -> Refusal {
        let offered = senders.iter().filter_map(|sender| self.engine.path(session, *sender)?.1);
        let least = offered.map(|adspec| adspec.bandwidth).fold(f32::INFINITY, f32::min);
        let is_less = asked.is_some_and(|asked| least < asked.rate);
        let reason = reason(error.code, error.value);
        let is_rate = reason == RefusalReason::Bandwidth;
        let available_bps = (is_less && is_rate).then(|| (f64::from(least) * 8.0) as u64);
        Refusal { reason, node: Some(error.node), available_bps }
    }

    /// Returns the name of an interface.
    pub fn name_of(&self, interface: InterfaceId) -> String {
        let at = self.interfaces.position(interface);
        at.map_or_else(|| interface.0.to_string(), |at| self.config.interfaces[at].name.clone())
    }

    /// Handles changes of traffic control by other programs.
    pub fn update_traffic_control(&mut self) {
        let ports = self.installers.ports();
        let unknown = Touched { is_incomplete: true, ..Touched::default() };
        let touched = self.traffic.take(|port| ports.contains(&port)).unwrap_or(unknown);
        self.installers.touched(&touched);
    }

    fn take_interfaces(&mut self) -> Result<(), DaemonError> {
        let all = cutline_netlink::interfaces()?;
        self.attach(&all)
    }

    /// Skips the reports of removals while interfaces were taken over, by sockets that are closed now.
    fn forget_own_changes(&mut self) {
        let _ours = self.traffic.take(|_| true);
    }

    /// Applies the settings of a new configuration that can change while the agent runs: keys and shares.
    ///
    /// # Errors
    /// When keys cannot be read, or a share is not valid.
    pub fn take_over(&mut self, new: DaemonConfig) -> Result<(), DaemonError> {
        let keys: Vec<_> = new.interfaces.iter().map(InterfaceSpec::integrity).collect::<Result<_, _>>()?;
        for ((spec, id), keys) in new.interfaces.iter().zip(self.interfaces.ids()).zip(keys) {
            // One that has never been there gets all of it when it comes.
            let Some(id) = id else { continue };
            if let Some(keys) = keys {
                self.engine.set_keys(id, keys);
            }
            self.engine.set_share(id, &spec.share)?;
        }
        self.config = new;
        Ok(())
    }

    /// Returns the state of each interface, in the order of the file.
    pub fn interface_statuses(&mut self) -> Vec<InterfaceStatus> {
        let counted = self.counted.get(|| self.installers.counters());
        let problems = self.interfaces.problems(&mut self.installers);
        let each = self.config.interfaces.iter().zip(self.interfaces.ids()).zip(problems);
        each.map(|((spec, id), problem)| {
            let share = id.and_then(|id| self.engine.share(id));
            let counts = id.and_then(|id| counted.get(&id)).copied().unwrap_or_default();
            let link = self.network.links().iter().find(|link| Some(link.id) == id);
            InterfaceStatus {
                name: spec.name.clone(),
                index: interface::index(&spec.name).ok(),
                address: link.map(|link| link.address),
                control: spec.control.name().to_owned(),
                problem,
                rate_bps: spec.rate.as_bps(),
                reservable_bps: share.map(|share| share.reservable().as_bps()),
                reserved_bps: share.map(|share| share.reserved().as_bps()),
                reservations: share.map(|share| share.reservations() as u64),
                reserved_packets: counts.packets,
                reserved_bytes: counts.bytes,
                excess_packets: counts.excess,
                dropped_packets: counts.dropped,
                is_authenticated: spec.keys.is_some(),
            }
        })
        .collect()
    }

    /// Returns the rates that reservations hold.
    pub fn reserved_rates(&self) -> ReservedRates {
        let mut flows: BTreeMap<String, BTreeMap<FlowSelector, Rate>> = BTreeMap::new();
        for ((interface, _), (packets, rate)) in &self.of_one_flow {
            flows.entry(self.name_of(*interface)).or_default().insert(*packets, *rate);
        }
        ReservedRates { interfaces: self.reserved_sums(), flows }
    }

    /// Returns the rate that is reserved on each interface, of both versions of IP, by its name.
    pub fn reserved_sums(&self) -> BTreeMap<String, Rate> {
        let mut rates: BTreeMap<String, Rate> = BTreeMap::new();
        for (spec, id) in self.config.interfaces.iter().zip(self.interfaces.ids()) {
            let reserved =
                id.and_then(|id| self.engine.share(id)).map_or(Rate::ZERO, admission::Share::reserved);
            let sum = rates.entry(spec.name.clone()).or_default();
            *sum = Rate::from_bps(sum.as_bps() + reserved.as_bps());
        }
        rates.retain(|_, rate| *rate > Rate::ZERO);
        rates
    }

    /// Returns the counters of the protocol.
    pub fn counters(&self) -> ProtocolCounters {
        let stats = self.engine.stats();
        let by_name = |counts: &BTreeMap<cutline_rsvp::message::MessageType, u64>| {
            let count = |(kind, count): (&cutline_rsvp::message::MessageType, &u64)| MessageCount {
                message: format!("{kind:?}"),
                count: *count,
            };
            counts.iter().map(count).collect()
        };
        ProtocolCounters {
            sent: by_name(&stats.sent),
            sent_bytes: stats.sent_bytes,
            sent_again: stats.sent_again,
            unsent: self.network.unsent,
            overflowed: self.network.overflowed(),
            received: by_name(&stats.received),
            malformed: stats.malformed,
            without_integrity: stats.without_integrity,
            unknown_key: stats.unknown_key,
            forged: stats.forged,
            replayed: stats.replayed,
            unproven: stats.unproven,
            misplaced: stats.misplaced + self.network.misplaced,
            not_admitted: stats.not_admitted,
            not_installed: self.not_installed,
            expired: stats.expired,
            evicted: stats.evicted,
            full: stats.full,
        }
    }

    /// Returns a summary of the agent, in a line.
    pub fn summary(&self) -> String {
        let names: Vec<String> = self
            .config
            .interfaces
            .iter()
            .map(|spec| {
                let reservable = Rate::from_bps((spec.rate.as_bps() as f64 * spec.share.share) as u64);
                if spec.control.controls() {
                    format!("{} ({reservable} of {} reservable)", spec.name, spec.rate)
                } else {
                    format!("{} (not controlled)", spec.name)
                }
            })
            .collect();
        if names.is_empty() {
            return "no reservations: there is no [[interface]]".to_owned();
        }
        format!("reservations on {}", names.join(", "))
    }
}

/// The engine, without interfaces.
fn engine(config: &DaemonConfig) -> Result<Engine, DaemonError> {
    let secret: [u8; 32] = random()?;
    let seed = u64::from_ne_bytes(random()?);
    Ok(Engine::new(EngineStart {
        params: config.params.clone(),
        secret,
        sequence: ntp_time(),
        random: Streams::new(seed).stream("cutlined", "rsvp"),
    })?)
}

/// Unpredictable random bytes.
fn random<const N: usize>() -> Result<[u8; N], SysError> {
    cutline_sys::random().map_err(|error| SysError::new("cannot get random numbers", error))
}

/// The time since 1900 in NTP's format, which grows over restarts (RFC 2747 section 3).
fn ntp_time() -> u64 {
    const FROM_1900_TO_1970: u64 = 2_208_988_800;
    let ns = now().as_nanos() + wall_clock_offset();
    let fraction = ((ns % 1_000_000_000) << 32) / 1_000_000_000;
    ((ns / 1_000_000_000 + FROM_1900_TO_1970) << 32) | fraction
}
