//! Converts a scenario to the simulator's types: names become links and routes, keys become parameters.

use crate::spec::{
    ClassSpec, DistributionsOf, DumbbellSpec, FlowGroupSpec, FlowInstance, GraphSpec, RateChange, Scenario,
    Topology,
};
use cutline_aqm::{AqmSpec, QueueSpec};
use cutline_quality::Class;
use cutline_sim::{
    Aal5Params, AdaptiveHint, Bottleneck, Distributions, Dumbbell, EqualCostPaths, GroupId, LinkId, LinkSpec,
    Network, NetworkError, NodeId, Pair, SimulationSettings, Window,
};
use cutline_tables::queue::{PassOn, QueueConfig};
use cutline_transport::app::{Params, TransferParams};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Bytes, Distribution, HintBudget, Instant, Rate, Streams};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reason why a valid scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LowerError {
    /// The network does not accept a link, flow or queue.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A flow needs routers with reservations, or a program.
    #[error(
        "flow.{flow}: {key} is available only in the laboratory with routers (`cutline reproduce qsock`)"
    )]
    OnlyWithRouters {
        /// Name of the flow's group.
        flow: String,
        /// The key.
        key: &'static str,
    },
}

impl Scenario {
    /// Returns the network that this scenario describes, in the run with its first seed.
    ///
    /// # Errors
    /// As [`Scenario::network_of`].
    pub fn network(&self) -> Result<Network, LowerError> {
        self.network_of(self.seed)
    }

    /// Returns the network in the run with this seed. Only transfers that arrive, and the paths that flows draw in a generated graph, depend
    /// on the seed.
    ///
    /// # Errors
    /// If an AQM or a transport refuses a parameter, or a flow has no route.
    pub fn network_of(&self, seed: u64) -> Result<Network, LowerError> {
        let mut network = Network::new();
        for group in &self.flows {
            network.add_group(group.name.clone());
        }
        match &self.topology {
            Topology::Dumbbell(dumbbell) => self.lay_dumbbell(dumbbell, &mut network)?,
            Topology::Graph(graph) => self.lay_graph(graph, Streams::new(seed), &mut network)?,
        }
        Ok(network)
    }

    /// Returns the simulator's settings for a run with `seed`.
    pub fn settings(&self, seed: u64) -> SimulationSettings {
        let at = |t| Instant::ZERO + t;
        let window = Window { from: at(self.warm_up), until: at(self.measure_until) };
        SimulationSettings { seed, duration: self.duration, window, interval: self.interval }
    }

    fn lay_dumbbell(&self, spec: &DumbbellSpec, network: &mut Network) -> Result<(), LowerError> {
        let dumbbell = dumbbell(spec)?;
        let middle: Bottleneck = dumbbell.lay(network);
        let templates = self.templates();
        for (number, flow) in (1..).zip(self.flow_instances()) {
            let Pair { route, return_route } = dumbbell.add_pair(network, middle, number);
            add_flow(network, flow, &templates, [route, return_route])?;
        }
        Ok(())
    }

    fn lay_graph(
        &self,
        graph: &GraphSpec,
        streams: Streams,
        network: &mut Network,
    ) -> Result<(), LowerError> {
        let mut nodes: BTreeMap<&str, NodeId> = BTreeMap::new();
        for node in &graph.nodes {
            nodes.insert(&node.name, network.add_node(node.name.clone()));
        }
        for link in &graph.links {
            // A queue can count on the payload of cells.
            let rate = if link.aal5.is_some() { Aal5Params::payload_rate(link.rate) } else { link.rate };
            let id = network.add_link(LinkSpec {
                from: nodes[link.from.as_str()],
                to: nodes[link.to.as_str()],
                rate: link.rate,
                delay: link.delay,
                queue: queue(&link.queue, rate, &link.name)?.into(),
                rate_changes: rate_changes(&link.rate_changes),
                deliveries: link.deliveries.clone(),
                pass_on: link.queue.pass_on.map(|PassOn { step, largest }| HintBudget {
                    bits: self.hint_bits,
                    step,
                    largest,
                }),
                impairment: link.impairment.clone().map(Box::new),
                series: keeps_series(&link.queue),
            });
            if let Some(aal5) = &link.aal5 {
                network.set_cells(id, aal5.clone());
            }
        }
        let templates = self.templates();
        let flows: Vec<FlowInstance> = self.flow_instances().collect();
        let transfers = self.transfers(streams.seed());
        let ends = flows.iter().map(|flow| (&flow.name, &flow.from, &flow.to));
        let ends = ends.chain(transfers.iter().map(|flow| (&flow.name, &flow.from, &flow.to)));
        let ends = ends.map(|(name, from, to)| (name.as_str(), [nodes[from.as_str()], nodes[to.as_str()]]));
        let routes = if graph.generated.is_some() {
            drawn_routes(network, streams, ends)?
        } else {
            first_routes(network, ends)?
        };
        let mut routes = routes.into_iter();
        for (flow, routes) in flows.into_iter().zip(&mut routes) {
            add_flow(network, flow, &templates, routes)?;
        }
        for (transfer, [route, return_route]) in transfers.into_iter().zip(routes) {
            let template = templates[transfer.group].clone();
            let start = Instant::ZERO + transfer.start;
            network.add_flow(cutline_sim::FlowSpec {
                name: transfer.name,
                route,
                return_route,
                app: Params::Transfer(TransferParams { size: Distribution::Fixed(transfer.bytes as f64) }),
                start: (start, start),
                ..template
            })?;
        }
        Ok(())
    }

    /// Returns a flow of each group, without name and routes. The flows of a group share the rest.
    fn templates(&self) -> Vec<cutline_sim::FlowSpec> {
        let hosts: BTreeSet<&str> = self.flows.iter().filter_map(|spec| spec.host.as_deref()).collect();
        let tunnels: BTreeSet<&str> = self.flows.iter().filter_map(|spec| spec.tunnel.as_deref()).collect();
        let of = |(group, spec): (usize, &FlowGroupSpec)| cutline_sim::FlowSpec {
            host: number_among(&hosts, spec.host.as_deref()),
            tunnel: number_among(&tunnels, spec.tunnel.as_deref()),
            ..template(spec, GroupId(group as u32))
        };
        self.flows.iter().enumerate().map(of).collect()
    }
}

/// Returns the number of a host or tunnel among all names.
fn number_among(names: &BTreeSet<&str>, name: Option<&str>) -> Option<u32> {
    names.iter().position(|known| Some(*known) == name).map(|at| at as u32)
}

/// Routes of a flow's data and of its acknowledgements.
type Routes = [Vec<LinkId>; 2];

/// Returns the first shortest routes of flows between these nodes.
fn first_routes<'f>(
    network: &Network,
    flows: impl Iterator<Item = (&'f str, [NodeId; 2])>,
) -> Result<Vec<Routes>, NetworkError> {
    let mut known: BTreeMap<[NodeId; 2], Vec<LinkId>> = BTreeMap::new();
    let mut route = |from, to| match known.entry([from, to]) {
        Entry::Occupied(found) => Ok(found.get().clone()),
        Entry::Vacant(place) => network.route(from, to).map(|route| place.insert(route).clone()),
    };
    flows.map(|(_, [from, to])| Ok([route(from, to)?, route(to, from)?])).collect()
}

/// Draws one of the shortest routes for each flow, from a random stream of its name.
fn drawn_routes<'f>(
    network: &Network,
    streams: Streams,
    flows: impl Iterator<Item = (&'f str, [NodeId; 2])>,
) -> Result<Vec<Routes>, NetworkError> {
    let mut paths = EqualCostPaths::new(network);
    let mut draw = |(name, [from, to]): (&str, [NodeId; 2])| {
        let mut random = streams.stream(name, "path");
        Ok([paths.draw(from, to, &mut random)?, paths.draw(to, from, &mut random)?])
    };
    flows.map(&mut draw).collect()
}

/// Adds a flow of a group, whose flows share all but names and routes.
fn add_flow(
    network: &mut Network,
    flow: FlowInstance,
    templates: &[cutline_sim::FlowSpec],
    [route, return_route]: Routes,
) -> Result<(), LowerError> {
    let template = templates[flow.group].clone();
    network.add_flow(cutline_sim::FlowSpec { name: flow.name, route, return_route, ..template })?;
    Ok(())
}

impl ClassSpec {
    /// Returns the name of the class in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::FileTransfer { .. } => "file-transfer",
            Self::Web { .. } => "web",
            Self::Game { .. } => "game",
        }
    }

    /// Returns the application class that the quality is computed for; `None` if there is none.
    pub fn class(self) -> Option<Class> {
        let kbit = |size: Bytes| size.bits().div_ceil(1000).max(1);
        match self {
            Self::None => None,
            Self::Audio => Some(Class::Audio),
            Self::Video => Some(Class::Video),
            Self::FileTransfer { file_size } => Some(Class::FileTransfer { size_kbit: kbit(file_size) }),
            Self::Web { page_size } => Some(Class::Web { page_kbit: kbit(page_size) }),
            Self::Game { perspective } => Some(Class::Game { perspective }),
        }
    }
}

/// Returns a flow of a group, without name, routes, host and tunnel.
fn template(spec: &FlowGroupSpec, group: GroupId) -> cutline_sim::FlowSpec {
    let at = |t| Instant::ZERO + t;
    let (first, last) = spec.start.bounds();
    cutline_sim::FlowSpec {
        name: String::new(),
        group,
        route: Vec::new(),
        return_route: Vec::new(),
        host: None,
        tunnel: None,
        hint: spec.hint,
        adaptive: adaptive(spec),
        transport: spec.transport(),
        app: spec.app.clone(),
        start: (at(first), at(last)),
        stop: spec.stop.map_or(Instant::FAR_FUTURE, at),
        series: spec.series,
        distributions: match spec.distributions {
            DistributionsOf::Flow => Distributions::PerFlow,
            DistributionsOf::Group => Distributions::PerGroup,
        },
    }
}

/// Returns the parameters of an adaptive hint; `None` if the hint is fixed. The reader refuses adaptive hints without a
/// quality class.
fn adaptive(spec: &FlowGroupSpec) -> Option<Arc<AdaptiveHint>> {
    let (adaptive, class) = (spec.adaptive?, spec.class.class()?);
    Some(Arc::new(AdaptiveHint { class, every: adaptive.report, params: adaptive.params }))
}

fn dumbbell(spec: &DumbbellSpec) -> Result<Dumbbell, LowerError> {
    Ok(Dumbbell {
        rate: spec.rate,
        delay: spec.delay,
        access_rate: spec.access_rate,
        access_delay: spec.access_delay,
        queue: queue(&spec.queue, spec.rate, "r1->r2")?,
        reverse_queue: queue(&spec.reverse_queue, spec.rate, "r2->r1")?,
        access_queue: queue(&spec.access_queue, spec.access_rate, "s1->r1")?,
        rate_changes: rate_changes(&spec.rate_changes),
        deliveries: spec.deliveries.clone(),
        impairments: (*spec.impairments).clone(),
    })
}

/// Returns the queue in front of a link of this rate.
fn queue(config: &QueueConfig, rate: Rate, link: &str) -> Result<QueueSpec, LowerError> {
    let refused = |error| NetworkError::Queue { link: link.to_owned(), error };
    Ok(config.at_rate(rate).map_err(refused)?)
}

fn rate_changes(changes: &[RateChange]) -> Vec<(Instant, Rate)> {
    changes.iter().map(|change| (Instant::ZERO + change.at, change.rate)).collect()
}

/// Returns whether the interval series of a link is stored: only links with an AQM or TSQ have a drop probability to show.
fn keeps_series(queue: &QueueConfig) -> bool {
    !matches!(queue.aqm, AqmSpec::DropTail(_)) || queue.tsq.is_some()
}

impl FlowGroupSpec {
    /// Returns the transport's parameters for the simulator, with the flow's ECN codepoint.
    pub fn transport(&self) -> TransportParams {
        self.transport.params.clone().with_ecn(self.ecn)
    }
}
