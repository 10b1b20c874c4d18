//! A scenario as plain, valid values: the output of the reader and the input of the simulator.

mod arrivals;
mod flow;

pub use arrivals::{
    ArrivalsSpec, Demands, DrawnTransfer, PairShare, SizeTable, TrafficMatrix, TransferSizes,
};
pub use flow::{
    AdaptiveSpec, ClassSpec, DistributionsOf, FlowDirection, FlowGroupSpec, ProgramSpec, QosSpec, StartSpec,
    TransportSpec,
};

use cutline_sim::{Aal5Params, Deliveries, ImpairmentParams, Impairments};
use cutline_tables::queue::QueueConfig;
use cutline_units::{Duration, HintBits, Rate};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One simulation: its topology, flows, duration and measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the results.
    pub name: String,
    /// Title of one line.
    pub title: Option<String>,
    /// Description of one paragraph.
    pub description: Option<String>,
    /// Seed of the first replication.
    pub seed: u64,
    /// Number of replications. Their seeds are `seed`, `seed + 1`, ...
    pub seeds: u64,
    /// Simulated time.
    pub duration: Duration,
    /// Start of the measurement.
    pub warm_up: Duration,
    /// End of the measurement, at most `duration`.
    pub measure_until: Duration,
    /// Width of the interval series.
    pub interval: Duration,
    /// The delay that the flows' quality is computed from.
    pub quality_delay: QualityDelay,
    /// Number of bits of the delay hint, the same in every TSQ queue.
    pub hint_bits: HintBits,
    /// Nodes and links.
    pub topology: Topology,
    /// Flows, in groups.
    pub flows: Vec<FlowGroupSpec>,
    /// Canonical text of all keys that affect the simulation, except the seed.
    pub canonical: String,
}

/// The delay d in a flow's quality Q(d, T).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QualityDelay {
    /// The mean one-way delay, from the source's send to the last bit at the receiver.
    OneWay,
    /// The propagation delay of the route and the mean queuing delay, without the time on the wire (TSQ section 4).
    PropagationAndQueuing,
}

/// Nodes and links of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// A dumbbell, `s1..sN - r1 = r2 - d1..dN`. Flow i goes from s(i) to d(i).
    Dumbbell(DumbbellSpec),
    /// A graph of nodes and links.
    Graph(GraphSpec),
}

/// A dumbbell: every flow has its own access links, and all flows share the link between two routers.
#[derive(Clone, Debug, PartialEq)]
pub struct DumbbellSpec {
    /// Rate of the bottleneck, in both directions.
    pub rate: Rate,
    /// Propagation delay of the bottleneck.
    pub delay: Duration,
    /// Rate of each access link.
    pub access_rate: Rate,
    /// Propagation delay of each access link, on both sides.
    pub access_delay: Duration,
    /// The queue r1 -> r2.
    pub queue: Arc<QueueConfig>,
    /// The queue r2 -> r1.
    pub reverse_queue: Arc<QueueConfig>,
    /// The queues at both ends of each access link.
    pub access_queue: Arc<QueueConfig>,
    /// Changes of the rate r1 -> r2, in order of time.
    pub rate_changes: Vec<RateChange>,
    /// The recorded times at which r1 -> r2 delivers, if it does so in place of sending at its rate.
    pub deliveries: Option<Arc<Deliveries>>,
    /// Loss, reordering and jitter: r1 -> r2, r2 -> r1, and each access link.
    pub impairments: Box<Impairments>,
}

/// Nodes and one-way links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphSpec {
    /// Nodes, in the order of the file.
    pub nodes: Vec<NodeSpec>,
    /// One-way links. A link of the file with `both-ways` is two of them.
    pub links: Vec<GraphLinkSpec>,
    /// Origin of a generated graph, in which each flow draws one of its shortest paths; `None` for nodes and links that the scenario
    /// lists, between which all flows take the first shortest path.
    pub generated: Option<Generated>,
}

/// Origin of a generated graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// A phrase such as `a fat-tree with k = 4`.
    pub description: String,
    /// True if a file describes the graph.
    pub from_file: bool,
    /// Demands of the file; `None` if it has none, and an error if they cannot be read.
    pub demands: Option<Result<Arc<Demands>, String>>,
}

/// A node: a host, a router or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
}

/// A one-way link and the queue in front of it.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLinkSpec {
    /// Name in the results, such as `r1->r2`.
    pub name: String,
    /// Name of the node at the start of the link.
    pub from: String,
    /// Name of the node at the end of the link.
    pub to: String,
    /// Rate at time zero.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// The queue at `from`.
    pub queue: Arc<QueueConfig>,
    /// Changes of the rate, in order of time.
    pub rate_changes: Vec<RateChange>,
    /// The recorded times at which the link delivers, if it does so in place of sending at its rate.
    pub deliveries: Option<Arc<Deliveries>>,
    /// Loss, reordering and jitter on the wire behind the queue.
    pub impairment: Option<ImpairmentParams>,
    /// Cells of ATM that carry the packets.
    pub aal5: Option<Aal5Params>,
}

/// A change of a link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// Time of the change.
    pub at: Duration,
    /// The new rate.
    pub rate: Rate,
}

/// One flow of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInstance {
    /// The group's name, with `.1`, `.2`, ... if the group has more than one flow.
    pub name: String,
    /// The group's index in [`Scenario::flows`].
    pub group: usize,
    /// The source node's name.
    pub from: String,
    /// The sink node's name.
    pub to: String,
}

impl Scenario {
    /// Returns the seeds of all replications.
    pub fn all_seeds(&self) -> impl Iterator<Item = u64> + use<> {
        self.seed..self.seed + self.seeds
    }

    /// Returns the groups that have flows, or transfers that arrive.
    pub fn nonempty_groups(&self) -> impl Iterator<Item = &FlowGroupSpec> {
        self.flows.iter().filter(|group| group.count > 0 || group.arrivals.is_some())
    }

    /// Returns the number of flows in all groups, without [transfers that arrive](Self::transfers).
    pub fn flow_count(&self) -> u64 {
        self.flows.iter().map(|group| group.count).sum()
    }

    /// Returns every flow, in the order of the groups, without [transfers that arrive](Self::transfers). In a dumbbell flow i goes from `s(i)` to `d(i)`.
    pub fn flow_instances(&self) -> impl Iterator<Item = FlowInstance> + '_ {
        let members = |(group, spec): (usize, _)| instances(group, spec);
        self.flows.iter().enumerate().flat_map(members).zip(1u64..).map(|((name, group, ends), i)| {
            let (from, to) = ends.clone().unwrap_or_else(|| (format!("s{i}"), format!("d{i}")));
            FlowInstance { name, group, from, to }
        })
    }

    /// Returns the nodes and links. A dumbbell is expanded.
    pub fn graph(&self) -> GraphSpec {
        match &self.topology {
            Topology::Graph(graph) => graph.clone(),
            Topology::Dumbbell(dumbbell) => dumbbell.expand(self.flow_count()),
        }
    }

    /// Returns the identifier of the run of this scenario with a seed.
    ///
    /// It is 16 hexadecimal digits of a hash over the canonical scenario, the seed and the version of the engine. A stored
    /// run is reused only if its identifier is the same.
    pub fn run_id(&self, seed: u64, version: &str) -> String {
        let text = format!("{version}\n{seed}\n{}", self.canonical);
        let digest = Sha256::digest(text.as_bytes());
        let first = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        format!("{first:016x}")
    }
}

/// Returns the name, group and ends of each flow of a group.
fn instances(
    group: usize,
    spec: &FlowGroupSpec,
) -> impl Iterator<Item = (String, usize, &Option<(String, String)>)> + '_ {
    spec.member_names().map(move |name| (name, group, &spec.ends))
}

impl FlowGroupSpec {
    /// Returns the names of the group's flows. The random numbers of a flow depend on its name.
    pub fn member_names(&self) -> impl Iterator<Item = String> + '_ {
        member_names(&self.name, self.count)
    }
}

/// Returns the names of the flows of a group with this name and number of flows: the group's name, with `.1`, `.2`, ... if it has more than
/// one flow.
pub fn member_names(group: &str, count: u64) -> impl Iterator<Item = String> + '_ {
    (1..=count).map(move |i| if count == 1 { group.to_owned() } else { format!("{group}.{i}") })
}

impl DumbbellSpec {
    /// Returns the graph of a dumbbell with `pairs` sources and sinks.
    fn expand(&self, pairs: u64) -> GraphSpec {
        let mut graph = GraphSpec::default();
        graph.add_node("r1");
        graph.add_node("r2");
        let Impairments { forward, reverse, .. } = &*self.impairments;
        let middle = |from, to, queue, impairment: &Option<ImpairmentParams>| GraphLinkSpec {
            impairment: impairment.clone(),
            ..GraphLinkSpec::new(from, to, self.rate, self.delay, queue)
        };
        let there = middle("r1", "r2", &self.queue, forward);
        let (rate_changes, deliveries) = (self.rate_changes.clone(), self.deliveries.clone());
        graph.links.push(GraphLinkSpec { rate_changes, deliveries, ..there });
        graph.links.push(middle("r2", "r1", &self.reverse_queue, reverse));
        for i in 1..=pairs {
            let (source, sink) = (format!("s{i}"), format!("d{i}"));
            graph.add_node(&source);
            graph.add_node(&sink);
            for (from, to) in [(&*source, "r1"), ("r1", &*source), ("r2", &*sink), (&*sink, "r2")] {
                graph.links.push(self.access(from, to));
            }
        }
        graph
    }

    fn access(&self, from: &str, to: &str) -> GraphLinkSpec {
        GraphLinkSpec {
            impairment: self.impairments.access.clone(),
            ..GraphLinkSpec::new(from, to, self.access_rate, self.access_delay, &self.access_queue)
        }
    }
}

impl GraphSpec {
    pub(crate) fn add_node(&mut self, name: &str) {
        self.nodes.push(NodeSpec { name: name.to_owned() });
    }

    /// Returns the names of the hosts, in the order of the nodes: the nodes with one neighbour.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let mut neighbours: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for link in &self.links {
            neighbours.entry(&link.from).or_default().insert(&link.to);
            neighbours.entry(&link.to).or_default().insert(&link.from);
        }
        let is_host = move |name: &&str| neighbours.get(name).is_some_and(|others| others.len() == 1);
        self.nodes.iter().map(|node| node.name.as_str()).filter(is_host)
    }

    /// Returns the rates of the links that leave each node together, and of those that lead to it, bit/s.
    pub fn node_rates(&self) -> BTreeMap<&str, [f64; 2]> {
        let mut rates: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
        for link in &self.links {
            rates.entry(&link.from).or_default()[0] += link.rate.as_bps() as f64;
            rates.entry(&link.to).or_default()[1] += link.rate.as_bps() as f64;
        }
        rates
    }
}

impl GraphLinkSpec {
    pub(crate) fn new(from: &str, to: &str, rate: Rate, delay: Duration, queue: &Arc<QueueConfig>) -> Self {
        Self {
            name: format!("{from}->{to}"),
            from: from.to_owned(),
            to: to.to_owned(),
            rate,
            delay,
            queue: Arc::clone(queue),
            rate_changes: Vec::new(),
            deliveries: None,
            impairment: None,
            aal5: None,
        }
    }
}
