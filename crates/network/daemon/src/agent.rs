//! One thread with everything: messages, deadlines, clients, routes, signals.

use crate::clients::{ClientId, Clients, MOST_REQUESTS, SLICE, StatusPart, StatusProgress};
use crate::config::{ControlKind, DaemonConfig, InterfaceSpec};
use crate::convert::{address, of_flow, reason, sender, session};
use crate::error::DaemonError;
use crate::installer::Counted;
use crate::installers::{Given, Installers};
use crate::interfaces::Interfaces;
use crate::network::Network;
use crate::requests::{Announced, Ask, RequestId, Requests, Shaped, Wanted};
use crate::routes::Routes;
use crate::sparing::Sparing;
use crate::status::{
    InterfaceStatus, LocalStatus, MessageCount, ProtocolCounters, ReservationStatus, SenderStatus,
    SessionStatus, Status,
};
use cutline_netlink::{Interface, Touched, TrafficMonitor, sweep};
use cutline_provision::protocol::{Reply, Request, Senders};
use cutline_provision::{Reason, Refusal};
use cutline_rsvp::admission::{self, Handle};
use cutline_rsvp::engine::{
    CallError, Control, Engine, EngineStart, Event, Flow, InterfaceId, LocalSender, Output, Police, RouteKey,
    SessionView,
};
use cutline_rsvp::intserv::{Adspec, Tspec};
use cutline_rsvp::object::{ErrorSpec, Sender, Session, Style};
use cutline_service::{Pen, SdNotify, SighupWatcher, SocketFile};
use cutline_sys::clock::wall_clock_offset;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_sys::{SysError, now};
use cutline_units::{Duration, Instant, Rate, Streams};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The numbers of descriptors: the listener, routes, traffic control, sockets from here on, clients from there on.
const LISTENER: u32 = 0;
const ROUTES: u32 = 1;
const TRAFFIC: u32 = 2;
const SOCKETS: u32 = 3;
const CLIENTS: u32 = 100;

/// Time for which one socket, or the end of a client's requests, keeps the others waiting.
const TURN: Duration = Duration::from_millis(20);

/// State that depends on a route.
#[derive(Clone, Copy, Debug)]
enum Stale {
    Route(RouteKey),
    Announced(RequestId),
    Shaped(RequestId),
}

/// An agent that is ready to run. All that it has installed is removed when it is dropped.
#[derive(Debug)]
pub struct Agent {
    config: DaemonConfig,
    file: Option<PathBuf>,
    engine: Engine,
    network: Network,
    routes: Routes,
    traffic: TrafficMonitor,
    /// The interfaces of the file, in its order.
    interfaces: Interfaces,
    installers: Installers,
    clients: Clients,
    requests: Requests,
    /// Requests of clients that have gone, which have not ended yet.
    leaving: VecDeque<RequestId>,
    /// Routes that may have changed.
    stale: VecDeque<Stale>,
    socket: SocketFile,
    started: Instant,
    not_installed: u64,
    counted: Sparing<BTreeMap<InterfaceId, Counted>>,
    /// Log lines that wait to be written.
    reports: Vec<String>,
    /// Destination of the log.
    log: Option<Pen<String>>,
}

impl Agent {
    /// Opens sockets, takes over interfaces, and removes the leftovers of an earlier, killed agent.
    ///
    /// # Errors
    /// When something is not available. Nothing is left installed then.
    pub fn open(config: DaemonConfig) -> Result<Self, DaemonError> {
        Self::open_with(config, Given::new())
    }

    /// Opens the agent with installers for the interfaces of these names, instead of those in the file. Nothing else is
    /// installed there. The file has to say that the traffic is controlled there.
    ///
    /// # Errors
    /// As [`Agent::open`].
    pub fn open_with(config: DaemonConfig, given: Given) -> Result<Self, DaemonError> {
        let socket = SocketFile::bind(&config.socket)?;
        if let Some(group) = config.group {
            socket.set_owner(None, Some(group))?;
        }
        socket
            .listener()
            .set_nonblocking(true)
            .map_err(|error| SysError::new("the socket cannot be set not to wait", error))?;
        let kinds: Vec<_> = config.interfaces.iter().map(|spec| (spec.version, spec.encapsulation)).collect();
        let network = Network::open(&kinds)?;
        let reports = network.small_buffers().collect();
        let mut this = Self {
            engine: engine(&config)?,
            network,
            routes: Routes::open(config.route_mark)?,
            traffic: TrafficMonitor::open()?,
            interfaces: Interfaces::new(config.interfaces.len()),
            installers: Installers::new(given),
            clients: Clients::new(CLIENTS),
            requests: Requests::default(),
            leaving: VecDeque::new(),
            stale: VecDeque::new(),
            socket,
            started: now(),
            not_installed: 0,
            counted: Sparing::default(),
            reports,
            log: None,
            config,
            file: None,
        };
        this.take_interfaces()?;
        Ok(this)
    }

    /// Reads this file again on SIGHUP.
    #[must_use]
    pub fn with_file(self, file: PathBuf) -> Self {
        Self { file: Some(file), ..self }
    }

    /// Reports what happens to this log, a line each.
    #[must_use]
    pub fn with_log(self, log: Pen<String>) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Serves until one of `stops` is set.
    ///
    /// # Errors
    /// When descriptors cannot be waited for.
    pub fn run(&mut self, stops: &[&AtomicBool], hangup: Option<&SighupWatcher>) -> Result<(), DaemonError> {
        let failed = |error| SysError::new("descriptors cannot be waited for", error);
        let mut reactor = Reactor::new().map_err(failed)?;
        reactor.add(self.socket.listener(), LISTENER, EventFlags::IN).map_err(failed)?;
        reactor.add(self.routes.descriptor(), ROUTES, EventFlags::IN).map_err(failed)?;
        reactor.add(&self.traffic, TRAFFIC, EventFlags::IN).map_err(failed)?;
        for (number, descriptor) in self.network.descriptors() {
            reactor.add(descriptor, SOCKETS + number as u32, EventFlags::IN).map_err(failed)?;
        }
        let manager = SdNotify::from_environment();
        manager.ready(&self.summary());
        let mut next_watchdog = now();
        while !stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            let has_work = !self.leaving.is_empty() || !self.stale.is_empty() || self.clients.has_work();
            let deadline = if has_work { now() } else { self.engine.deadline() };
            let ready: Vec<(u32, EventFlags)> = reactor.wait(deadline).map_err(failed)?.collect();
            for (number, flags) in ready {
                match number {
                    LISTENER => self.clients.accept(self.socket.listener(), &reactor),
                    ROUTES => self.look_around(),
                    TRAFFIC => self.look_at_traffic_control(),
                    CLIENTS.. if !self.clients.ready(number - CLIENTS, flags) => self.leave(number - CLIENTS),
                    CLIENTS.. => {}
                    _ => self.receive((number - SOCKETS) as usize),
                }
            }
            self.refresh_routes(now() + TURN);
            // What others had must have ended before somebody asks for the same.
            if self.leaving.is_empty() {
                self.serve_some();
            }
            self.go_on_with_statuses();
            let at = now();
            if at >= self.engine.deadline() {
                self.engine.handle_deadline(at);
            }
            self.maintain(at);
            self.act();
            for client in self.clients.flush(&reactor) {
                self.leave(client);
            }
            self.end_some();
            if hangup.is_some_and(SighupWatcher::take) {
                manager.reloading(at);
                self.reload();
                manager.ready(&self.summary());
            }
            manager.flush();
            if let Some(interval) = manager.watchdog_interval().filter(|_| at >= next_watchdog) {
                manager.watchdog();
                next_watchdog = at + interval;
            }
            for line in self.reports.drain(..) {
                // One that finds no room is counted.
                let _counted = self.log.as_ref().is_some_and(|log| log.give(line));
            }
        }
        manager.stopping();
        self.withdraw_all();
        Ok(())
    }

    /// Removes the installed reservations, and reports to neighbours that the requests of this host have ended.
    fn withdraw_all(&mut self) {
        self.installers.clear();
        let clients: Vec<ClientId> = self.requests.clients();
        for client in clients {
            self.leave(client);
        }
        while !self.leaving.is_empty() {
            self.end_some();
        }
        self.act();
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
        format!("reservations on {}", names.join(", "))
    }

    fn receive(&mut self, socket: usize) {
        let until = now() + TURN;
        loop {
            let (engine, at) = (&mut self.engine, now());
            if !self.network.receive(socket, |arrival| engine.receive(at, arrival)) {
                return;
            }
            // The engine keeps few messages that wait for an answer.
            self.act();
            if now() >= until {
                return;
            }
        }
    }

    /// Carries out the engine's outputs, until none is left.
    fn act(&mut self) {
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Send(datagram) => {
                    let detour = self.routes.detour(&datagram, self.network.links());
                    self.network.send(&datagram, detour);
                }
                Output::AskRoute(key) => {
                    self.routes.remember(key);
                    let route = self.routes.route(key, self.network.links());
                    self.engine.set_route(now(), key, &route);
                }
                Output::ForgetRoute(key) => self.routes.forget(key),
                Output::Control(control) => self.control(&control),
                Output::Event(event) => self.tell(event),
            }
        }
    }

    /// Installs admitted reservations. A reservation that cannot be installed is ended, and its receivers are notified.
    fn control(&mut self, control: &Control) {
        if let Err((handle, is_new)) = self.install(control)
            && is_new
        {
            self.engine.revoke(now(), handle, false);
        }
    }

    fn install(&mut self, control: &Control) -> Result<(), (Handle, bool)> {
        let (interface, handle, is_new) = match control {
            Control::Add(flow) | Control::Modify(flow) => (flow.interface, flow.handle, true),
            Control::AddFilter { interface, handle, .. } => (*interface, *handle, true),
            Control::RemoveFilter { interface, handle, .. } | Control::Delete { interface, handle } => {
                (*interface, *handle, false)
            }
        };
        self.installers.apply(interface, handle, control).map_err(|error| {
            self.not_installed += u64::from(is_new);
            // A problem of the interface is reported once, and not with each request.
            if self.installers.problem(interface).is_none() {
                self.reports.push(format!("interface {}: {error}", self.name_of(interface)));
            }
            (handle, is_new)
        })
    }

    /// Runs the installers' timers. Reservations that are lost there are ended, and their clients are notified.
    fn maintain(&mut self, at: Instant) {
        for (interface, handle, error) in self.installers.maintain(at) {
            self.not_installed += 1;
            self.reports.push(format!("interface {}: {error}", self.name_of(interface)));
            let is_its = |shaped: &Shaped| shaped.place == Some((interface, handle));
            let local = self.requests.shaped().find(|(_, shaped)| is_its(shaped)).map(|(request, _)| request);
            let Some(request) = local else {
                self.engine.revoke(at, handle, false);
                continue;
            };
            self.release(interface, handle);
            if let Some(Ask::Shape(shaped)) = self.requests.get_mut(request) {
                shaped.place = None;
            }
            let node = self.network.links().iter().find(|link| link.id == interface).map(|link| link.address);
            self.fail(request, Refusal { node, ..Refusal::new(Reason::Conflict) });
        }
        let ids: Vec<InterfaceId> = self.interfaces.ids().flatten().collect();
        for id in ids {
            for notice in self.installers.notices(id) {
                self.reports.push(format!("interface {}: {notice}", self.name_of(id)));
            }
        }
        for (name, problem) in self.interfaces.new_problems(&self.config, &mut self.installers) {
            self.reports.push(match problem {
                Some(why) => format!("interface {name}: {why}"),
                None => format!("interface {name}: it is in use again"),
            });
        }
    }

    fn name_of(&self, interface: InterfaceId) -> String {
        let at = self.interfaces.position(interface);
        at.map_or_else(|| interface.0.to_string(), |at| self.config.interfaces[at].name.clone())
    }

    /// Delivers events to applications.
    fn tell(&mut self, event: Event) {
        match event {
            Event::Path { session, sender, tspec, adspec } => {
                for (client, id) in self.requests.reservers(session, &[sender]) {
                    self.clients.say(client, &sender_reply(id, &sender, &tspec, adspec.as_ref()));
                }
            }
            Event::PathEnded { session, sender } => {
                for (client, id) in self.requests.reservers(session, &[sender]) {
                    self.clients.say(client, &Reply::SenderGone { id, sender: address(&sender) });
                }
            }
            Event::Reserved { session, senders, flowspec, .. } => {
                for request in self.requests.announcers(session, &senders) {
                    let Some(Ask::Announce(announced)) = self.requests.get_mut(request) else { continue };
                    let announced = announced.tspec;
                    let installed = flowspec.map(|flowspec| flowspec.tspec().installed(&announced).traffic());
                    self.clients.say(request.0, &Reply::Reserved { id: request.1, bucket: installed });
                }
            }
            Event::PathError { session, error, sender } => {
                let refusal =
                    Refusal { node: Some(error.node), ..Refusal::new(reason(error.code, error.value)) };
                for (client, id) in self.requests.announcers(session, &[sender]) {
                    self.clients
                        .say(client, &Reply::Failed { id, refusal: refusal.clone(), in_place: false });
                }
            }
            Event::ResvError { session, error, flowspec, senders, .. } => {
                let asked = flowspec.map(|flowspec| *flowspec.tspec());
                let refusal = self.refusal(session, &error, &senders, asked);
                for (client, id) in self.requests.reservers(session, &senders) {
                    let in_place = error.in_place;
                    self.clients.say(client, &Reply::Failed { id, refusal: refusal.clone(), in_place });
                }
            }
            Event::Confirmed { session, node, senders, .. } => {
                for (client, id) in self.requests.reservers(session, &senders) {
                    self.clients.say(client, &Reply::Confirmed { id, node });
                }
            }
        }
    }

    /// Returns the reason why a reservation has failed. What would be granted is known where the path offers
    /// less than was asked for.
    fn refusal(
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
        let is_rate = reason == Reason::Bandwidth;
        let available_bps = (is_less && is_rate).then(|| (f64::from(least) * 8.0) as u64);
        Refusal { reason, node: Some(error.node), available_bps }
    }

    /// Looks at interfaces and routes again, if something has changed.
    fn look_around(&mut self) {
        let changes = self.routes.changes();
        if changes.links || changes.addresses {
            self.look_at_interfaces();
        }
        if changes.any() {
            self.look_at_routes();
        }
    }

    /// Handles changes of traffic control by other programs.
    fn look_at_traffic_control(&mut self) {
        let ports = self.installers.ports();
        let unknown = Touched { is_incomplete: true, ..Touched::default() };
        let touched = self.traffic.take(|port| ports.contains(&port)).unwrap_or(unknown);
        self.installers.touched(&touched);
    }

    /// Takes over the present interfaces.
    ///
    /// # Errors
    /// When one cannot be taken over.
    fn take_interfaces(&mut self) -> Result<(), DaemonError> {
        let all = cutline_netlink::interfaces()?;
        let Self { interfaces, config, engine, network, installers, .. } = self;
        let outcome = interfaces.attach(config, &all, engine, network, installers).map_or(Ok(()), Err);
        self.forget_own_changes();
        outcome
    }

    /// Passes over the reports of what taking interfaces over has removed there, by sockets that are closed now.
    fn forget_own_changes(&mut self) {
        let _ours = self.traffic.take(|_| true);
    }

    /// Releases interfaces that have gone, and takes over new ones. Failures are reported.
    fn look_at_interfaces(&mut self) {
        let all = match cutline_netlink::interfaces() {
            Ok(all) => all,
            Err(error) => return self.reports.push(error.to_string()),
        };
        let Self { interfaces, config, network, installers, .. } = self;
        if interfaces.detach(config, &all, network, installers) {
            // What was reserved there ends before an interface of the same name begins.
            self.look_at_routes();
            self.refresh_routes(Instant::FAR_FUTURE);
            self.act();
        }
        self.look_at_traffic_control();
        let Self { interfaces, config, engine, network, installers, .. } = self;
        // An error is a problem of its interface, which is reported.
        let _first = interfaces.attach(config, &all, engine, network, installers);
        self.forget_own_changes();
    }

    /// Marks all routes for another look-up, which takes turns with other work.
    fn look_at_routes(&mut self) {
        self.stale.clear();
        self.stale.extend(self.routes.asked().into_iter().map(Stale::Route));
        self.stale.extend(self.requests.announced().into_iter().map(Stale::Announced));
        self.stale.extend(self.requests.shaped().map(|(request, _)| Stale::Shaped(request)));
    }

    /// Looks up some of the marked routes, until that time.
    fn refresh_routes(&mut self, until: Instant) {
        while let Some(stale) = self.stale.pop_front() {
            match stale {
                Stale::Route(key) => {
                    let route = self.routes.route(key, self.network.links());
                    self.engine.set_route(now(), key, &route);
                }
                Stale::Announced(request) => self.announce(request, false),
                Stale::Shaped(request) => self.shape(request, false),
            }
            if now() >= until {
                return;
            }
        }
    }

    /// Handles some of what clients have sent, a few requests of each in turn.
    fn serve_some(&mut self) {
        let until = now() + TURN;
        while let Some(client) = self.clients.next_in_line() {
            for _ in 0..MOST_REQUESTS {
                let Some(request) = self.clients.request(client) else { break };
                self.handle(client, request);
                // Its events are sent before the next request is handled.
                self.act();
                if now() >= until {
                    return;
                }
            }
        }
    }

    /// Writes some more of the statuses that clients have requested and read so far.
    fn go_on_with_statuses(&mut self) {
        let until = now() + TURN;
        for (client, progress) in self.clients.next_slices() {
            let (slice, next) = self.status_slice(progress);
            self.clients.send_slice(client, &slice, next);
            if now() >= until {
                return;
            }
        }
    }

    /// Returns the beginning of a status as a line: all but the lists that may be long, which come in slices.
    fn status_head(&mut self) -> String {
        let head = self.short_status();
        let mut head = serde_json::to_value(Reply::Status { status: json(&head) }).unwrap_or_default();
        if let Some(status) = head["status"].as_object_mut() {
            status.remove("sessions");
            status.remove("local");
        }
        let status = head["status"].to_string();
        let status = status.strip_suffix('}').unwrap_or(&status);
        format!("{{\"reply\":\"status\",\"status\":{status},\"sessions\":[")
    }

    /// Returns the next slice of a status, and where the one after it begins.
    fn status_slice(&self, progress: StatusProgress) -> (String, Option<StatusProgress>) {
        let (mut slice, mut is_first) = (String::new(), progress.is_first);
        let mut add = |slice: &mut String, item: serde_json::Value| {
            if !std::mem::take(&mut is_first) {
                slice.push(',');
            }
            slice.push_str(&item.to_string());
        };
        match progress.place {
            StatusPart::Sessions(mut last) => {
                for (number, view) in self.engine.sessions_after(last) {
                    if slice.len() >= SLICE {
                        let place = StatusPart::Sessions(last);
                        return (slice, Some(StatusProgress { place, is_first: false }));
                    }
                    add(&mut slice, json(&self.session_status(&view)));
                    last = number;
                }
                slice.push_str("],\"local\":[");
                (slice, Some(StatusProgress { place: StatusPart::Local(None), is_first: true }))
            }
            StatusPart::Local(mut last) => {
                for (request, shaped) in self.requests.shaped_after(last) {
                    if slice.len() >= SLICE {
                        let place = StatusPart::Local(last);
                        return (slice, Some(StatusProgress { place, is_first: false }));
                    }
                    add(&mut slice, json(&self.local_status(shaped)));
                    last = Some(request);
                }
                slice.push_str("]}}\n");
                (slice, None)
            }
        }
    }

    /// Disconnects a client. All of its requests end.
    fn leave(&mut self, client: ClientId) {
        self.leaving.extend(self.requests.of(client));
        self.clients.remove(client);
    }

    /// Ends some of the requests of disconnected clients.
    fn end_some(&mut self) {
        let until = now() + TURN;
        while let Some(request) = self.leaving.pop_front() {
            self.withdraw(request);
            if now() >= until {
                return;
            }
        }
    }

    fn handle(&mut self, client: ClientId, request: Request) {
        let (id, outcome) = match request {
            Request::Hello { .. } => return,
            Request::Status {} => {
                let head = self.status_head();
                self.clients.begin_status(client, &head);
                return;
            }
            Request::Withdraw { id } => {
                self.withdraw((client, id));
                self.clients.say(client, &Reply::Withdrawn { id });
                return;
            }
            Request::Announce { id, flow, bucket } => {
                let (session, sender) = of_flow(&flow);
                let ask = Ask::Announce(Announced { session, sender, tspec: bucket.into(), route: None });
                (id, self.begin((client, id), ask, &bucket.into()))
            }
            Request::Reserve { id, transport, destination, senders, bucket, confirm } => {
                let (style, senders) = match senders {
                    Senders::Fixed { senders } => (Style::FixedFilter, senders),
                    Senders::Shared { senders } => (Style::SharedExplicit, senders),
                    Senders::Any {} => (Style::WildcardFilter, Vec::new()),
                };
                let (session, tspec) = (session(transport, destination), bucket.into());
                let senders = senders.into_iter().map(sender).collect();
                let ask = Ask::Reserve(Wanted { session, style, senders, tspec, confirm });
                (id, self.begin((client, id), ask, &tspec))
            }
            Request::Shape { id, flow, bucket } => {
                let ask = Ask::Shape(Shaped { flow, bucket, place: None });
                (id, self.begin((client, id), ask, &bucket.into()))
            }
        };
        match outcome {
            Ok(()) => {
                self.clients.say(client, &Reply::Accepted { id });
                self.start((client, id));
            }
            Err(refusal) => self.clients.say(client, &Reply::Failed { id, refusal, in_place: false }),
        }
    }

    /// Takes a request up, if it is sound.
    fn begin(&mut self, request: RequestId, ask: Ask, tspec: &Tspec) -> Result<(), Refusal> {
        let (field, address) = match &ask {
            Ask::Announce(announced) => ("flow.source", announced.sender.address),
            Ask::Shape(shaped) => ("flow.source", shaped.flow.source.ip()),
            Ask::Reserve(wanted) => ("destination", wanted.session.destination),
        };
        // What other hosts send or receive is theirs to ask for.
        let is_group = field == "destination" && address.is_multicast();
        if !is_group && !self.routes.is_local(address) {
            let allowed = if field == "destination" { " or a group" } else { "" };
            let why = format!("{field} = {address}: allowed is an address of this host{allowed}");
            return Err(Refusal::new(Reason::Invalid(why)));
        }
        tspec.validate().map_err(|error| Refusal::new(Reason::Invalid(error.to_string())))?;
        self.requests.add(request, ask)
    }

    /// Starts a request.
    fn start(&mut self, request: RequestId) {
        let session = match self.requests.get_mut(request) {
            Some(Ask::Announce(_)) => return self.announce(request, true),
            Some(Ask::Shape(_)) => return self.shape(request, true),
            Some(Ask::Reserve(wanted)) => wanted.session,
            None => return,
        };
        let Some(Ask::Reserve(wanted)) = self.requests.get_mut(request) else { return };
        let (client, id) = request;
        for sender in &wanted.senders {
            // Those that come later are events.
            if let Some((tspec, adspec)) = self.engine.path(session, *sender) {
                self.clients.say(client, &sender_reply(id, sender, &tspec, adspec.as_ref()));
            }
        }
        let outcome = self.engine.watch(now(), session, true).and_then(|()| self.reserve(session));
        if let Err(error) = outcome {
            self.refuse(request, Reason::Invalid(error.to_string()));
        }
    }

    /// Refuses and removes a request.
    fn refuse(&mut self, request: RequestId, reason: Reason) {
        self.fail(request, Refusal::new(reason));
        self.withdraw(request);
    }

    fn fail(&mut self, (client, id): RequestId, refusal: Refusal) {
        self.clients.say(client, &Reply::Failed { id, refusal, in_place: false });
    }

    /// Reserves what all applications want of a session.
    fn reserve(&mut self, session: Session) -> Result<(), CallError> {
        if let Some((wanted, flowspecs)) = self.requests.merged(session) {
            return self.engine.reserve_each(now(), session, wanted, flowspecs);
        }
        self.engine.release_reservation(now(), session);
        self.engine.watch(now(), session, false)
    }

    /// Announces a flow by the route that it takes now, unless it is announced so already.
    fn announce(&mut self, request: RequestId, is_first: bool) {
        let Some(Ask::Announce(announced)) = self.requests.get_mut(request) else { return };
        let Session { destination, protocol, port } = announced.session;
        let ends = (address(&announced.sender), SocketAddr::new(destination, port));
        let route = self.routes.next(ends, protocol, self.network.links());
        if route == announced.route && !is_first {
            return;
        }
        let was_there = std::mem::replace(&mut announced.route, route).is_some();
        let Announced { session, sender, tspec, .. } = *announced;
        let Some((interface, next_hop)) = route else {
            if was_there {
                self.engine.end_path(now(), session, sender);
            }
            return self.fail(request, Refusal::new(Reason::NoPath));
        };
        let local = LocalSender { sender, tspec, interface, next_hop, advertise: true };
        if let Err(error) = self.engine.send_path(now(), session, &local) {
            self.refuse(request, Reason::Invalid(error.to_string()));
        }
    }

    /// Installs a class at the interface that a flow takes now, unless it is installed already.
    fn shape(&mut self, request: RequestId, is_first: bool) {
        let Some(Ask::Shape(shaped)) = self.requests.get_mut(request) else { return };
        let Shaped { flow, bucket: wanted, place } = *shaped;
        let interface =
            self.routes.next((flow.source, flow.destination), flow.transport.number(), self.network.links());
        let interface = interface.map(|(interface, _)| interface);
        if !is_first && interface.is_some() && interface == place.map(|(interface, _)| interface) {
            return;
        }
        shaped.place = None;
        if let Some((interface, handle)) = place {
            self.release(interface, handle);
        }
        let outcome = match interface {
            Some(interface) => self.install_local(interface, &flow, &wanted.into()),
            None => Err(Refusal::new(Reason::NoPath)),
        };
        match outcome {
            Ok(place) => {
                if let Some(Ask::Shape(shaped)) = self.requests.get_mut(request) {
                    shaped.place = Some(place);
                }
                let (client, id) = request;
                self.clients.say(client, &Reply::Reserved { id, bucket: Some(wanted) });
            }
            Err(refusal) => self.fail(request, refusal),
        }
    }

    fn install_local(
        &mut self,
        interface: InterfaceId,
        flow: &cutline_provision::Flow,
        tspec: &Tspec,
    ) -> Result<(InterfaceId, Handle), Refusal> {
        let node = self.network.links().iter().find(|link| link.id == interface).map(|link| link.address);
        let share = self.engine.share(interface);
        let left = share.map(|share| share.reservable().as_bps().saturating_sub(share.reserved().as_bps()));
        let handle = self.engine.admit_local(interface, tspec).map_err(|refusal| {
            let (reason, available_bps) = match refusal {
                admission::Refusal::Bandwidth => (Reason::Bandwidth, left),
                admission::Refusal::Delay => (Reason::Burst, None),
                admission::Refusal::PacketSize => (Reason::PacketSize, None),
            };
            Refusal { reason, node, available_bps }
        })?;
        let (session, sender) = of_flow(flow);
        let style = Style::FixedFilter;
        let (senders, police) = (vec![sender], Police { entry: true, ..Police::default() });
        let flow = Flow { interface, handle, session, style, senders, tspec: *tspec, police };
        if self.install(&Control::Add(flow)).is_err() {
            self.engine.release_local(interface, handle);
            return Err(Refusal { node, ..Refusal::new(Reason::Conflict) });
        }
        Ok((interface, handle))
    }

    fn release(&mut self, interface: InterfaceId, handle: Handle) {
        let _reported = self.install(&Control::Delete { interface, handle });
        self.engine.release_local(interface, handle);
    }

    /// Ends a request.
    fn withdraw(&mut self, request: RequestId) {
        match self.requests.remove(request) {
            Some(Ask::Announce(announced)) => {
                self.engine.end_path(now(), announced.session, announced.sender);
            }
            Some(Ask::Reserve(wanted)) => {
                // What others of the session have was allowed before.
                let _allowed = self.reserve(wanted.session);
            }
            Some(Ask::Shape(Shaped { place: Some((interface, handle)), .. })) => {
                self.release(interface, handle);
            }
            Some(Ask::Shape(_)) | None => {}
        }
        self.act();
    }

    /// Reads the file again, and applies the settings that can change while running: keys and shares.
    fn reload(&mut self) {
        let Some(file) = &self.file else { return };
        let outcome = DaemonConfig::load(file).map_err(|errors| errors.to_string()).and_then(|new| {
            let fixed = self.config.fixed_differences(&new);
            if fixed.is_empty() {
                Ok(new)
            } else {
                Err(format!("{} cannot change while it runs: restart it", fixed.join(", ")))
            }
        });
        let outcome = outcome.and_then(|new| self.take_over(new).map_err(|error| error.to_string()));
        self.reports.push(match outcome {
            Ok(()) => format!("reloaded: {}", self.summary()),
            Err(why) => format!("reload failed; keeping the previous configuration: {why}"),
        });
    }

    fn take_over(&mut self, new: DaemonConfig) -> Result<(), DaemonError> {
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

    fn session_status(&self, view: &SessionView) -> SessionStatus {
        let name = |interface: InterfaceId| self.name_of(interface);
        let senders = view.senders.iter().map(|sender| SenderStatus {
            source: address(&sender.sender),
            bucket: sender.tspec.traffic(),
            from_interface: sender.previous.map(|(interface, _)| name(interface)),
            from: sender.previous.map(|(_, address)| address),
            to_interfaces: sender.outgoing.iter().map(|interface| name(*interface)).collect(),
        });
        let reservations = view.reservations.iter().map(|reservation| ReservationStatus {
            interface: reservation.next.map(|(interface, _)| name(interface)),
            next: reservation.next.map(|(_, address)| address),
            style: style_name(reservation.style).to_owned(),
            senders: reservation.senders.iter().map(address).collect(),
            bucket: reservation.flowspec.tspec().traffic(),
        });
        SessionStatus {
            protocol: view.session.protocol,
            destination: (view.session.destination, view.session.port).into(),
            senders: senders.collect(),
            reservations: reservations.collect(),
        }
    }

    fn local_status(&self, shaped: &Shaped) -> LocalStatus {
        LocalStatus {
            flow: shaped.flow,
            bucket: shaped.bucket,
            interface: shaped.place.map(|(interface, _)| self.name_of(interface)),
        }
    }

    /// Returns the status without sessions and without reservations of this host alone.
    fn short_status(&mut self) -> Status {
        let counted = self.counted.get(|| self.installers.counters());
        let problems = self.interfaces.problems(&mut self.installers);
        let each = self.config.interfaces.iter().zip(self.interfaces.ids()).zip(problems);
        let interfaces = each.map(|((spec, id), problem)| {
            let share = id.and_then(|id| self.engine.share(id));
            let counts = id.and_then(|id| counted.get(&id)).copied().unwrap_or_default();
            let link = self.network.links().iter().find(|link| Some(link.id) == id);
            InterfaceStatus {
                name: spec.name.clone(),
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
        });
        Status {
            elapsed_s: (now() - self.started).as_nanos() as f64 / 1e9,
            interfaces: interfaces.collect(),
            sessions: Vec::new(),
            local: Vec::new(),
            clients: self.clients.len() as u64,
            refused_clients: self.clients.refused,
            dropped_output: self.log.as_ref().map_or(0, Pen::dropped),
            counters: self.counters(),
        }
    }

    fn counters(&self) -> ProtocolCounters {
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
}

/// A value as JSON.
fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns the reply about a sender.
fn sender_reply(id: u64, sender: &Sender, tspec: &Tspec, adspec: Option<&Adspec>) -> Reply {
    let known = adspec.filter(|adspec| adspec.bandwidth.is_finite());
    let path_bps = known.map(|adspec| (f64::from(adspec.bandwidth) * 8.0) as u64);
    Reply::Sender { id, sender: address(sender), bucket: tspec.traffic(), path_bps }
}

const fn style_name(style: Style) -> &'static str {
    match style {
        Style::FixedFilter => "FF",
        Style::SharedExplicit => "SE",
        Style::WildcardFilter => "WF",
        Style::Other(_) => "other",
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
    cutline_sys::random().map_err(|error| SysError::new("random numbers cannot be got", error))
}

/// The time since 1900 in NTP's format, which grows over restarts (RFC 2747 section 3).
fn ntp_time() -> u64 {
    const FROM_1900_TO_1970: u64 = 2_208_988_800;
    let ns = now().as_nanos() + wall_clock_offset();
    let fraction = ((ns % 1_000_000_000) << 32) / 1_000_000_000;
    ((ns / 1_000_000_000 + FROM_1900_TO_1970) << 32) | fraction
}

/// Removes the installations of an agent with this file, also of a killed one. Returns those that cannot be removed, a line
/// each.
pub fn remove_installed(config: &DaemonConfig) -> Vec<String> {
    let controlled = config.interfaces.iter().filter(|spec| matches!(spec.control, ControlKind::Tc { .. }));
    let remove = |spec: &InterfaceSpec| Interface::named(&spec.name).and_then(|interface| sweep(&interface));
    let failed = |spec: &InterfaceSpec| remove(spec).err().map(|error| in_words(spec, &error));
    controlled.filter_map(failed).collect()
}

fn in_words(spec: &InterfaceSpec, error: &dyn Display) -> String {
    format!("interface {}: {error}", spec.name)
}
