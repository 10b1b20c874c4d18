//! The traffic of a run. Flows over UDP with a reservation are applications over QoS sockets; all others are those of the traffic
//! generator.

use super::Signalling;
use super::applications::{Application, Applied, PROGRAM_PORT, Programs};
use super::control::LinkShapers;
use super::network::{Ends, Map, Nodes};
use super::outcome::{self, Measured};
use super::shares::{HostManagers, ManagedStream, Shares};
use crate::LabError;
use crate::connections::{self, Connections, Course, Listeners, Placement};
use crate::reader::{FIRST_PORT, QOS_PORT, SINK_PORT};
use crate::run::or_stop;
use crate::threads::punctual;
use crate::traffic::plan;
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_quality::spec::Specification;
use cutline_results::DistributionRow;
use cutline_scenario::Scenario;
use cutline_scenario::spec::{FlowGroupSpec, ProgramSpec, QosSpec};
use cutline_sim::qos::QosConnection;
use cutline_sim::{FlowSpec, LinkId, Network, SimulationSettings};
use cutline_socket::AllocationOptions;
use cutline_sys::SysError;
use cutline_sys::thread::joined;
use cutline_traffic::{
    FlowPlan, Generator, Meter, MeterParams, MeterReport, SenderReport, TrafficError, Window,
};
use cutline_translate::{AckPath, Protocol, Service, TranslationRequest, translate};
use cutline_transport::app::Params;
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Duration, Histogram, Instant, Streams};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::sync::atomic::AtomicBool;

/// The most flows: each has a port from [`QOS_PORT`] on, below [`FIRST_PORT`].
const MOST_FLOWS: u64 = (FIRST_PORT - QOS_PORT) as u64;

/// The flows of a scenario, and the nodes and addresses of their ends.
pub struct Flows<'s> {
    scenario: &'s Scenario,
    network: &'s Network,
    /// Nodes and addresses of the flows' ends.
    ends: Vec<Ends>,
    /// The flows that are QoS connections.
    connections: Connections,
    plans: Vec<FlowPlan>,
    /// The flows whose traffic is that of a program.
    applications: BTreeMap<usize, ProgramSpec>,
    programs: Option<&'s Programs>,
    /// The flows over TCP that are QoS streams.
    qos_streams: BTreeMap<usize, ManagedStream>,
    shares: Option<Shares>,
    /// The resource managers of the hosts.
    managers: HostManagers,
    streams: Streams,
}

/// Reservation for the packets of a filter.
pub struct LinkReservation {
    /// The links, by their numbers.
    pub links: Vec<usize>,
    pub bucket: TrafficSpec,
    pub filter: FlowSelector,
}

/// Measurements of all flows.
pub struct Carried {
    pub measured: Vec<Measured>,
    /// Further measurements of single flows.
    pub extra: Vec<DistributionRow>,
    /// Lateness of applications' writes.
    pub lateness: Histogram,
    /// Flows that ended with an error.
    pub failed: u64,
    /// Datagrams that a meter did not read in time.
    pub overflowed: u64,
}

impl<'s> Flows<'s> {
    /// Plans the flows of a run. Without `programs`, the generator makes the traffic of those that have one.
    ///
    /// # Errors
    /// When the laboratory with routers cannot have one.
    pub fn new(
        scenario: &'s Scenario,
        network: &'s Network,
        map: &Map,
        (programs, shares): (Option<&'s Programs>, Option<Shares>),
        seed: u64,
    ) -> Result<Self, LabError> {
        crate::run::check_counts(scenario)?;
        crate::run::check_transports(scenario)?;
        crate::run::check_tunnels(scenario)?;
        let count = scenario.flow_count();
        if count > MOST_FLOWS {
            return Err(LabError::TooMany { count, max: MOST_FLOWS as usize });
        }
        let streams = Streams::new(seed);
        let mut flows = Self {
            scenario,
            network,
            ends: Vec::new(),
            connections: Connections::new(),
            plans: Vec::new(),
            applications: BTreeMap::new(),
            programs,
            qos_streams: BTreeMap::new(),
            shares,
            managers: HostManagers::default(),
            streams,
        };
        for (index, instance) in scenario.flow_instances().enumerate() {
            let flow = &network.flows()[index];
            let group = &scenario.flows[instance.group];
            if group.adaptive.is_some() {
                return Err(refused(flow, "a hint that adapts", "set it to a level"));
            }
            let program = group.program.filter(|_| programs.is_some());
            let connection =
                if program.is_some() { None } else { connection(flow, group, network, streams)? };
            let stream = if shares.is_some() { ManagedStream::of(flow, group, streams)? } else { None };
            let address = |node: &str, port: u16| SocketAddrV4::new(map.address(node), port);
            let own = [instance.from.clone(), instance.to.clone()];
            let gateways = group.gateways.clone().filter(|_| program.is_some()).unwrap_or(own);
            let (service, client) = (QOS_PORT + index as u16, FIRST_PORT + index as u16);
            let [source, sink] = match program {
                Some(ProgramSpec::NetVideo) => [address(&gateways[0], 0), address(&gateways[1], service)],
                // The near gateway, to which the images go, connects to the far one.
                Some(ProgramSpec::Dirm) => [address(&gateways[0], service), address(&gateways[1], 0)],
                None if connection.is_some() || stream.is_some() => {
                    [address(&instance.from, client), address(&instance.to, service)]
                }
                None => [address(&instance.from, client), address(&instance.to, SINK_PORT)],
            };
            match (program, connection) {
                (Some(program), _) => drop(flows.applications.insert(index, program)),
                (None, Some(connection)) => drop(flows.connections.insert(index, connection)),
                (None, None) if stream.is_some() => {
                    flows.qos_streams.extend(stream.map(|stream| (index, stream)));
                }
                (None, None) => flows.plans.push(plan(scenario, flow, index, [source, sink], streams)),
            }
            let program = SocketAddr::V4(address(&instance.from, PROGRAM_PORT));
            flows.ends.push(Ends { from: instance.from, to: instance.to, gateways, source, sink, program });
        }
        Ok(flows)
    }

    /// Checks the settings that only the generator knows.
    ///
    /// # Errors
    /// The first flow that is not possible.
    pub fn check(&self) -> Result<(), LabError> {
        connections::check(&self.connections, self.network.flows())?;
        self.plans.iter().try_for_each(|plan| plan.validate().map_err(TrafficError::from))?;
        self.reservations(Signalling::None).map(drop)
    }

    /// Returns the reservations that are installed before the flows begin.
    ///
    /// # Errors
    /// When a specification cannot be translated.
    pub fn reservations(&self, signalling: Signalling) -> Result<Vec<LinkReservation>, LabError> {
        let mut all = Vec::new();
        if self.shares.is_some() {
            return Ok(all);
        }
        for (index, flow) in self.network.flows().iter().enumerate() {
            let group = &self.scenario.flows[flow.group.0 as usize];
            let asks = signalling == Signalling::Rsvp && self.applications.contains_key(&index);
            if let Some(qos) = group.qos.as_ref().filter(|_| !asks) {
                all.extend(self.link_reservations(index, flow, qos)?);
            }
        }
        Ok(all)
    }

    fn link_reservations(
        &self,
        index: usize,
        flow: &FlowSpec,
        qos: &QosSpec,
    ) -> Result<Vec<LinkReservation>, LabError> {
        let is_stream = matches!(flow.transport, TransportParams::Tcp(_));
        let failed = |error: String| LabError::Untranslatable { flow: flow.name.clone(), error };
        let request = TranslationRequest {
            protocol: Some(if is_stream { Protocol::RTcp } else { Protocol::RUdp }),
            service: Some(Service::Reservation),
            ..TranslationRequest::new(qos.specification.clone())
        };
        let translation = translate(&request).map_err(|error| failed(error.to_string()))?;
        let reservation = translation.network.reservation.unwrap_or_default();
        let data = reservation.send.ok_or_else(|| failed("no rate is known".to_owned()))?;
        let Ends { gateways, source, sink, .. } = &self.ends[index];
        let protocol = if is_stream { 6 } else { 17 };
        let port = |address: &SocketAddrV4| Some(address.port()).filter(|port| *port != 0);
        let reservation_for =
            |route: Vec<LinkId>, bucket, from: &SocketAddrV4, to: &SocketAddrV4| LinkReservation {
                links: route.iter().map(|link| link.0 as usize).collect(),
                bucket,
                filter: FlowSelector {
                    protocol: Some(protocol),
                    source: Some(IpAddr::V4(*from.ip())),
                    source_port: port(from),
                    destination_port: port(to),
                    ..FlowSelector::to(IpAddr::V4(*to.ip()))
                },
            };
        let route = |[from, to]: [&String; 2]| {
            let node = |name: &String| {
                let links = self.network.links().iter().flat_map(|link| [link.from, link.to]);
                links
                    .into_iter()
                    .find(|node| self.network.node_name(*node) == name)
                    .expect("a flow's nodes have links")
            };
            self.network.route(node(from), node(to))
        };
        let [from, to] = gateways;
        let mut all = vec![reservation_for(route([from, to])?, data, source, sink)];
        if let (AckPath::Reserved, Some(acks)) = (qos.ack_path, reservation.receive) {
            all.push(reservation_for(route([to, from])?, acks, sink, source));
        }
        Ok(all)
    }

    /// Returns whether a program makes the traffic of a flow.
    pub fn has_applications(&self) -> bool {
        !self.applications.is_empty()
    }

    /// Starts the resource managers of the hosts whose flows have shares.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start_managers(&mut self, nodes: &Nodes) -> Result<(), LabError> {
        let Some(shares) = self.shares else { return Ok(()) };
        let with_shares = self.connections.keys().chain(self.qos_streams.keys());
        let hosts: BTreeSet<&String> = with_shares.map(|index| &self.ends[*index].from).collect();
        self.managers = HostManagers::start(shares, nodes, hosts)?;
        Ok(())
    }

    /// Returns the share that a flow requests.
    fn share(&self, index: usize) -> Option<AllocationOptions> {
        let group = &self.scenario.flows[self.network.flows()[index].group.0 as usize];
        self.managers.share(&self.ends[index].from, &group.qos.as_ref()?.specification.send)
    }

    fn place(&self, index: usize) -> Placement {
        let Ends { source, sink, .. } = self.ends[index];
        let flow = &self.network.flows()[index];
        Placement { source, sink, share: self.share(index), most: rate_of(&flow.app) }
    }

    /// The connections of which one end is at a node, by that end.
    fn connections_at(&self, node: &str, end: fn(&Ends) -> &String) -> Connections {
        let at = self.connections.iter().filter(|(index, _)| end(&self.ends[**index]) == node);
        at.map(|(index, connection)| (*index, connection.clone())).collect()
    }
}

fn refused(flow: &FlowSpec, what: &'static str, instead: &'static str) -> LabError {
    LabError::NoRouters { place: format!("flow {}", flow.name), what, instead }
}

/// Messages per second of a constant bit rate.
pub fn rate_of(app: &Params) -> Option<f64> {
    let Params::Cbr(params) = app else { return None };
    Some(params.rate.as_bps() as f64 / (8.0 * params.size.get() as f64))
}

/// The connection of a flow over UDP with a reservation.
pub fn connection(
    flow: &FlowSpec,
    group: &FlowGroupSpec,
    network: &Network,
    streams: Streams,
) -> Result<Option<QosConnection>, LabError> {
    let Some(qos) = group.qos.as_ref().filter(|_| matches!(flow.transport, TransportParams::Udp(_))) else {
        return Ok(None);
    };
    let send: Specification = qos.specification.send.clone();
    let Params::Cbr(app) = &flow.app else {
        return Err(refused(flow, "a reservation for datagrams of a varying rate", "use kind = \"cbr\""));
    };
    if send.size != Some(app.size) || send.max_rate.is_none() {
        return Err(refused(
            flow,
            "a specification for other messages than the application's",
            "set send.max-rate, and send.size to its size",
        ));
    }
    let ends = (network.link(flow.route[0]).from, network.link(flow.return_route[0]).from);
    Ok(Some(QosConnection {
        hint: flow.hint,
        start: flow.start_with(streams),
        stop: flow.stop,
        ..QosConnection::new(&flow.name, ends, send)
    }))
}

/// The traffic of a run, whose receiving sockets are open.
pub struct Traffic<'f> {
    flows: &'f Flows<'f>,
    settings: &'f SimulationSettings,
    meters: BTreeMap<String, Meter>,
    applications: Vec<(usize, Application<'f>)>,
    /// The connections, by the node of their sources, and of their sinks.
    callers: BTreeMap<String, Connections>,
    called: BTreeMap<String, Connections>,
}

impl<'f> Traffic<'f> {
    /// Opens the receiving sockets of the generator's flows.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    pub fn prepare(
        flows: &'f Flows<'f>,
        nodes: &'f Nodes,
        settings: &'f SimulationSettings,
        control: &LinkShapers,
    ) -> Result<Self, LabError> {
        if !(flows.connections.is_empty() && flows.applications.is_empty() && flows.qos_streams.is_empty()) {
            // Otherwise it would keep the first run's namespace alive.
            cutline_socket::start().map_err(|error| SysError::new("a thread cannot be started", error))?;
        }
        let params = MeterParams {
            flows: flows.ends.len() as u32,
            window: window(settings),
            interval: Some(settings.interval),
            ..MeterParams::default()
        };
        let address = SocketAddr::from(([0, 0, 0, 0], SINK_PORT));
        let sinks: BTreeSet<&String> =
            flows.plans.iter().map(|plan| &flows.ends[plan.id as usize].to).collect();
        let bind = |node: &String| {
            let meter = nodes.get(node).within(|| Meter::bind(address, params))??;
            Ok((node.clone(), meter))
        };
        let meters = sinks.into_iter().map(bind).collect::<Result<_, LabError>>()?;
        let of = |end: fn(&Ends) -> &String| {
            let names: BTreeSet<&String> = flows.ends.iter().map(end).collect();
            let some = names.into_iter().map(|node| (node.clone(), flows.connections_at(node, end)));
            some.filter(|(_, connections)| !connections.is_empty()).collect()
        };
        let mut applications = Vec::new();
        for (index, program) in &flows.applications {
            let group = &flows.scenario.flows[flows.network.flows()[*index].group.0 as usize];
            let programs = flows.programs.expect("there are no applications without programs");
            let place = (nodes, settings, programs);
            applications.push((
                *index,
                Application::prepare(*program, &flows.ends[*index], group.qos.as_ref(), control, place)?,
            ));
        }
        Ok(Self {
            flows,
            settings,
            meters,
            applications,
            callers: of(|ends| &ends.from),
            called: of(|ends| &ends.to),
        })
    }

    /// Runs all flows until the end of the scenario. If a thread fails, the others stop.
    ///
    /// # Errors
    /// Those of the sockets, and when the ends of a connection do not agree.
    #[expect(clippy::too_many_lines, reason = "a scope with the threads of all kinds of flows")]
    pub fn run(
        self,
        nodes: &Nodes,
        zero: Instant,
        stop: &AtomicBool,
        ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<Carried, LabError> {
        let Self { flows, settings, meters, applications, callers, called } = self;
        let course = Course { zero, end: zero + settings.duration, ended };
        // Flows with shares are compared by their rates, which a busy machine must not lower.
        let is_punctual = flows.shares.is_some();
        let places = |index: usize| flows.place(index);
        let mut listeners = Vec::new();
        for (node, connections) in &called {
            listeners.push((
                node,
                connections,
                nodes.get(node).within(|| Listeners::bind(connections, &places))??,
            ));
        }
        let mut accepting = Vec::new();
        for (index, stream) in &flows.qos_streams {
            let bind = || stream.listen(flows.ends[*index].sink);
            accepting.push((*index, stream, nodes.get(&flows.ends[*index].to).within(bind)??));
        }
        let mut by_source: BTreeMap<&String, Vec<FlowPlan>> = BTreeMap::new();
        for plan in &flows.plans {
            by_source.entry(&flows.ends[plan.id as usize].from).or_default().push(plan.clone());
        }
        let generators = by_source.into_iter().map(|(node, plans)| {
            let generator = Generator::new(plans, flows.streams)?.with_window(window(settings));
            Ok((node, generator.with_intervals(settings.interval)))
        });
        let generators: Vec<(&String, Generator)> = generators.collect::<Result<_, LabError>>()?;
        std::thread::scope(|scope| {
            let meters: Vec<_> = meters
                .into_iter()
                .map(|(node, meter)| {
                    scope.spawn(move || {
                        let run = || punctual(|| meter.run(zero, settings.duration, stop));
                        or_stop(stop, nodes.get(&node).within(run))
                    })
                })
                .collect();
            let generators: Vec<_> = generators
                .into_iter()
                .map(|(node, generator)| {
                    scope.spawn(move || {
                        let run = || punctual(|| generator.run(zero, settings.duration, stop));
                        or_stop(stop, nodes.get(node).within(run))
                    })
                })
                .collect();
            let listeners: Vec<_> = listeners
                .into_iter()
                .map(|(node, connections, listeners)| {
                    let receive = move || {
                        if is_punctual { punctual(|| listeners.run(course)) } else { listeners.run(course) }
                    };
                    let run = move || or_stop(stop, nodes.get(node).within(receive));
                    (connections, scope.spawn(run))
                })
                .collect();
            let places = &places;
            let callers: Vec<_> = callers
                .iter()
                .map(|(node, connections)| {
                    let send = move || connections::send(connections, places, flows.streams, course);
                    let call = move || if is_punctual { punctual(send) } else { send() };
                    (connections, scope.spawn(move || or_stop(stop, nodes.get(node).within(call))))
                })
                .collect();
            let taken: Vec<_> = accepting
                .into_iter()
                .map(|(index, stream, listener)| {
                    let take = move || punctual(|| stream.take(&listener, course));
                    let run = move || or_stop(stop, nodes.get(&flows.ends[index].to).within(take));
                    (index, scope.spawn(run))
                })
                .collect();
            let written: Vec<_> = flows
                .qos_streams
                .iter()
                .map(|(index, stream)| {
                    let place = places(*index);
                    let write = move || punctual(|| stream.write(&place, course));
                    let run = move || or_stop(stop, nodes.get(&flows.ends[*index].from).within(write));
                    (*index, scope.spawn(run))
                })
                .collect();
            let applications: Vec<_> = applications
                .into_iter()
                .map(|(index, application)| {
                    let flow = &flows.network.flows()[index];
                    (index, scope.spawn(move || or_stop(stop, Ok(application.run(flow, zero)))))
                })
                .collect();
            let mut ends = Both::default();
            for thread in generators {
                ends.sent.extend(joined(thread)?.into_iter().map(|report| (report.flow as usize, report)));
            }
            for thread in meters {
                ends.received.push(joined(thread)?);
            }
            for (connections, thread) in callers {
                ends.called.extend(connections.keys().copied().zip(joined(thread)?));
            }
            for (connections, thread) in listeners {
                ends.arrived.extend(connections.keys().copied().zip(joined(thread)?));
            }
            for (index, thread) in written {
                ends.called.insert(index, joined(thread)?);
            }
            for (index, thread) in taken {
                ends.arrived.insert(index, joined(thread)?);
            }
            for (index, thread) in applications {
                ends.applied.insert(index, joined(thread)?);
            }
            Ok(ends.carried(flows, settings, course))
        })
    }
}

/// Observations of both ends of all flows, by the indices of the flows.
#[derive(Default)]
struct Both {
    sent: BTreeMap<usize, SenderReport>,
    received: Vec<MeterReport>,
    called: BTreeMap<usize, connections::Sent>,
    arrived: BTreeMap<usize, connections::Arrived>,
    applied: BTreeMap<usize, Applied>,
}

impl Both {
    fn carried(mut self, flows: &Flows<'_>, settings: &SimulationSettings, course: Course<'_>) -> Carried {
        let (mut lateness, mut extra) = (Histogram::default(), Vec::new());
        let measured = flows.network.flows().iter().enumerate().map(|(index, flow)| {
            if let Some(sent) = self.sent.get(&index) {
                lateness.merge(&sent.lateness);
                let mut reports = self.received.iter().flat_map(|meter| &meter.flows);
                let received = reports.find(|report| report.flow as usize == index);
                return outcome::generated(flow, settings, sent, received);
            }
            if let Some(applied) = self.applied.remove(&index) {
                extra.extend(applied.extra);
                return applied.measured;
            }
            let sent = self.called.remove(&index).unwrap_or_default();
            lateness.merge(&sent.lateness);
            let record = connections::record(sent, self.arrived.remove(&index).unwrap_or_default(), course);
            outcome::connected(flow, settings, &record)
        });
        let measured: Vec<Measured> = measured.collect();
        let failed = |error: &Option<String>| u64::from(error.is_some());
        let receivers = self.received.iter().flat_map(|meter| &meter.flows);
        Carried {
            measured,
            extra,
            lateness,
            failed: self.sent.values().map(|report| failed(&report.error)).sum::<u64>()
                + receivers.map(|report| failed(&report.error)).sum::<u64>(),
            overflowed: self.received.iter().map(|meter| meter.overflowed).sum(),
        }
    }
}

fn window(settings: &SimulationSettings) -> Window {
    let since_zero = |at: Instant| -> Duration { at.saturating_since(Instant::ZERO) };
    Window { from: since_zero(settings.window.from), until: since_zero(settings.window.until) }
}
