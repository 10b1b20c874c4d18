//! From a scenario to what the simulator runs: names become links and routes, words become parameters.

use crate::spec::{
    ClassSpec, DistributionsOf, DumbbellSpec, FlowSpec, GraphSpec, Perspective, RateChange, Scenario,
    StartSpec, Topology,
};
use cutline_aqm::AqmSpec;
use cutline_config::queue::{PassOn, QueueConfig};
use cutline_quality::Class;
use cutline_sim::{
    AdaptiveHint, Bottleneck, Distributions, Dumbbell, GroupId, LinkSpec, Network, NetworkError, NodeId,
    Pair, Settings, Window,
};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Bytes, HintBudget, Instant, Rate};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a scenario that reads well cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LowerError {
    /// The network refused a part.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A flow wants what only the kernel has.
    #[error("flow.{flow}: congestion-control = bbr is the kernel's own: run it with `cutline lab run`")]
    OnlyInLaboratory {
        /// The group's name.
        flow: String,
    },
}

impl Scenario {
    /// The network that this scenario describes.
    ///
    /// # Errors
    /// When an AQM or a transport refuses a parameter, or a flow has no route.
    pub fn network(&self) -> Result<Network, LowerError> {
        let mut network = Network::new();
        for group in &self.flows {
            network.add_group(group.name.clone());
        }
        match &self.topology {
            Topology::Dumbbell(dumbbell) => self.lay_dumbbell(dumbbell, &mut network)?,
            Topology::Graph(graph) => self.lay_graph(graph, &mut network)?,
        }
        Ok(network)
    }

    /// How to run it with a seed.
    pub fn settings(&self, seed: u64) -> Settings {
        let at = |t| Instant::ZERO + t;
        let window = Window { from: at(self.warm_up), until: at(self.measure_until) };
        Settings { seed, duration: self.duration, window, interval: self.interval }
    }

    fn lay_dumbbell(&self, spec: &DumbbellSpec, network: &mut Network) -> Result<(), LowerError> {
        let dumbbell = dumbbell(spec);
        let middle: Bottleneck = dumbbell.lay(network);
        let templates = self.templates();
        for (number, flow) in (1..).zip(self.flow_instances()) {
            let Pair { route, return_route } = dumbbell.add_pair(network, middle, number);
            network.add_flow(cutline_sim::FlowSpec {
                name: flow.name,
                route,
                return_route,
                ..templates[flow.group].clone()
            })?;
        }
        Ok(())
    }

    fn lay_graph(&self, graph: &GraphSpec, network: &mut Network) -> Result<(), LowerError> {
        let mut nodes: BTreeMap<&str, NodeId> = BTreeMap::new();
        for node in &graph.nodes {
            nodes.insert(&node.name, network.add_node(node.name.clone()));
        }
        for link in &graph.links {
            network.add_link(LinkSpec {
                from: nodes[link.from.as_str()],
                to: nodes[link.to.as_str()],
                rate: link.rate,
                delay: link.delay,
                queue: link.queue.at_rate(link.rate),
                rate_changes: rate_changes(&link.rate_changes),
                pass_on: link.queue.pass_on.map(|PassOn { step, largest }| HintBudget {
                    bits: self.hint_bits,
                    step,
                    largest,
                }),
                series: keeps_series(&link.queue),
            });
        }
        let templates = self.templates();
        for flow in self.flow_instances() {
            let (from, to) = (nodes[flow.from.as_str()], nodes[flow.to.as_str()]);
            let (route, return_route) = (network.route(from, to)?, network.route(to, from)?);
            network.add_flow(cutline_sim::FlowSpec {
                name: flow.name,
                route,
                return_route,
                ..templates[flow.group].clone()
            })?;
        }
        Ok(())
    }

    /// A flow of each group, but for its name and its way: what the group's flows share is shared.
    fn templates(&self) -> Vec<cutline_sim::FlowSpec> {
        self.flows.iter().enumerate().map(|(group, spec)| template(spec, GroupId(group as u32))).collect()
    }
}

impl ClassSpec {
    /// The class's name, as scenarios write it.
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

    /// The class of application that quality is judged for; `None` where it is not.
    pub fn class(self) -> Option<Class> {
        let kbit = |size: Bytes| size.bits().div_ceil(1000).max(1);
        match self {
            Self::None => None,
            Self::Audio => Some(Class::Audio),
            Self::Video => Some(Class::Video),
            Self::FileTransfer { file_size } => Some(Class::FileTransfer { size_kbit: kbit(file_size) }),
            Self::Web { page_size } => Some(Class::Web { page_kbit: kbit(page_size) }),
            Self::Game { perspective } => Some(Class::Game {
                perspective: match perspective {
                    Perspective::FirstPerson => cutline_quality::Perspective::FirstPerson,
                    Perspective::ThirdPerson => cutline_quality::Perspective::ThirdPerson,
                    Perspective::Omnipresent => cutline_quality::Perspective::Omnipresent,
                },
            }),
        }
    }
}

fn template(spec: &FlowSpec, group: GroupId) -> cutline_sim::FlowSpec {
    let at = |t| Instant::ZERO + t;
    cutline_sim::FlowSpec {
        name: String::new(),
        group,
        route: Vec::new(),
        return_route: Vec::new(),
        hint: spec.hint,
        adaptive: adaptive(spec),
        transport: spec.transport(),
        app: spec.app.clone(),
        start: match spec.start {
            StartSpec::At(start) => (at(start), at(start)),
            StartSpec::Uniform { from, to } => (at(from), at(to)),
        },
        stop: spec.stop.map_or(Instant::FAR_FUTURE, at),
        series: spec.series,
        distributions: match spec.distributions {
            DistributionsOf::Flow => Distributions::PerFlow,
            DistributionsOf::Group => Distributions::PerGroup,
        },
    }
}

/// How a hint follows the quality; a scenario refuses that for the class none, which has no quality.
fn adaptive(spec: &FlowSpec) -> Option<Arc<AdaptiveHint>> {
    let (adaptive, class) = (spec.adaptive?, spec.class.class()?);
    Some(Arc::new(AdaptiveHint { class, every: adaptive.report, params: adaptive.params }))
}

fn dumbbell(spec: &DumbbellSpec) -> Dumbbell {
    Dumbbell {
        rate: spec.rate,
        delay: spec.delay,
        access_rate: spec.access_rate,
        access_delay: spec.access_delay,
        queue: spec.queue.at_rate(spec.rate),
        reverse_queue: spec.reverse_queue.at_rate(spec.rate),
        access_queue: spec.access_queue.at_rate(spec.access_rate),
        rate_changes: rate_changes(&spec.rate_changes),
    }
}

fn rate_changes(changes: &[RateChange]) -> Vec<(Instant, Rate)> {
    changes.iter().map(|change| (Instant::ZERO + change.at, change.rate)).collect()
}

/// A link behind an AQM or TSQ keeps its interval series: its probability is what one looks at.
fn keeps_series(queue: &QueueConfig) -> bool {
    !matches!(queue.aqm, AqmSpec::DropTail(_)) || queue.tsq.is_some()
}

impl FlowSpec {
    /// What the transport is set to, as the simulator takes it.
    pub fn transport(&self) -> TransportParams {
        self.transport.params.clone().with_ecn(self.ecn)
    }
}
