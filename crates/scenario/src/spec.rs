//! What a scenario says, as plain values that cannot be wrong: the output of the reader, the input of a simulator.

use crate::catalogue::Parameters;
use cutline_units::{Bytes, Duration, Hint, HintBits, Rate};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// One simulation: a topology, its flows, how long, and what is measured when.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What the results are called.
    pub name: String,
    /// One line for a heading.
    pub title: Option<String>,
    /// A paragraph for a reader.
    pub description: Option<String>,
    /// The first replication's seed.
    pub seed: u64,
    /// The number of replications; they have the seeds `seed`, `seed + 1`, ...
    pub seeds: u64,
    /// Time simulated.
    pub duration: Duration,
    /// Measuring starts here.
    pub warm_up: Duration,
    /// Measuring ends here, at most at `duration`.
    pub measure_until: Duration,
    /// Width of the interval series.
    pub interval: Duration,
    /// Bits of the delay hint, the same in every TSQ queue.
    pub hint_bits: HintBits,
    /// Nodes and links.
    pub topology: Topology,
    /// Flows, in groups.
    pub flows: Vec<FlowSpec>,
    /// The canonical text of what affects the simulation, seed excepted.
    pub canonical: String,
}

/// Nodes and links: the usual shape, or any.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// `s1..sN - r1 = r2 - d1..dN`: flow i goes from s(i) to d(i).
    Dumbbell(DumbbellSpec),
    /// Any graph.
    Graph(GraphSpec),
}

/// A dumbbell: every flow has its own access links, and all share the link between two routers.
#[derive(Clone, Debug, PartialEq)]
pub struct DumbbellSpec {
    /// Rate of the bottleneck, both ways.
    pub rate: Rate,
    /// Propagation delay of the bottleneck.
    pub delay: Duration,
    /// Rate of each access link.
    pub access_rate: Rate,
    /// Propagation delay of each access link, on either side.
    pub access_delay: Duration,
    /// The queue r1 -> r2.
    pub queue: Arc<QueueSpec>,
    /// The queue r2 -> r1.
    pub reverse_queue: Arc<QueueSpec>,
    /// The queues at both ends of each access link.
    pub access_queue: Arc<QueueSpec>,
    /// Changes of the rate r1 -> r2, in order of time.
    pub rate_changes: Vec<RateChange>,
}

/// Nodes and one-way links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphSpec {
    /// Nodes, in the order of the file.
    pub nodes: Vec<NodeSpec>,
    /// Links; one that was written for both ways is two.
    pub links: Vec<LinkSpec>,
}

/// A node: a host, a router or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
}

/// A one-way link and the queue in front of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// What results call it: `r1->r2`.
    pub name: String,
    /// The node it leaves.
    pub from: String,
    /// The node it reaches.
    pub to: String,
    /// Rate at time zero.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// The queue at `from`.
    pub queue: Arc<QueueSpec>,
    /// Changes of the rate, in order of time.
    pub rate_changes: Vec<RateChange>,
}

/// A link's rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// When.
    pub at: Duration,
    /// The new rate.
    pub rate: Rate,
}

/// A queue: its AQM, its limit, and TSQ on top.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    /// The AQM's name in the catalogue.
    pub aqm: String,
    /// All of the AQM's parameters, defaults filled in.
    pub parameters: Parameters,
    /// What fits.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// TSQ on top of the AQM, if switched on.
    pub tsq: Option<TsqSpec>,
}

/// How much fits into a queue, the packet in service left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// This many packets.
    Packets(u64),
    /// This many bytes.
    Bytes(Bytes),
}

/// TSQ's parameters (TSQ section 3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TsqSpec {
    /// n: a hint has 2^n levels.
    pub bits: HintBits,
    /// l: the round-trip time that the router assumes beyond its own queue; 40 ms in the paper.
    pub l: Duration,
    /// The largest p'/p; `None` as in the paper, which has no cap.
    pub max_ratio: Option<f64>,
}

/// A group of like flows.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// The group's name, unique in the scenario.
    pub name: String,
    /// How many flows it has.
    pub count: u64,
    /// Source and sink; `None` in a dumbbell, where each flow has its own.
    pub ends: Option<(String, String)>,
    /// What judges its quality.
    pub class: ClassSpec,
    /// The delay hint of its packets.
    pub hint: Hint,
    /// Whether its packets are ECN-capable.
    pub ecn: bool,
    /// When each flow starts.
    pub start: StartSpec,
    /// When all of them stop sending; `None`: with the simulation.
    pub stop: Option<Duration>,
    /// Transport protocol.
    pub transport: TransportSpec,
    /// What the application sends.
    pub app: AppSpec,
    /// Whether every flow's interval series is kept.
    pub series: bool,
    /// Where full distributions are kept.
    pub distributions: DistributionsOf,
}

/// When the flows of a group start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSpec {
    /// All at once.
    At(Duration),
    /// Each at a time drawn uniformly from `from..to`.
    Uniform {
        /// The earliest.
        from: Duration,
        /// The latest.
        to: Duration,
    },
}

/// Whose distributions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistributionsOf {
    /// Each flow its own.
    Flow,
    /// One for the whole group.
    Group,
}

/// A quality class (TSQ section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassSpec {
    /// Not judged.
    None,
    /// Audio conference.
    Audio,
    /// Video conference.
    Video,
    /// Transfer of files of a size.
    FileTransfer {
        /// S of the paper.
        file_size: Bytes,
    },
    /// Web pages.
    Web {
        /// S, a page's size with all that belongs to it; 100 KB by default.
        page_size: Bytes,
    },
    /// Networked game (Claypool and Claypool 2006).
    Game {
        /// How the player sees the game.
        perspective: Perspective,
    },
}

/// How a player sees a game, which decides how much delay it bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perspective {
    /// Through the avatar's eyes.
    FirstPerson,
    /// From behind the avatar.
    ThirdPerson,
    /// From above.
    Omnipresent,
}

/// A transport protocol and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransportSpec {
    /// TCP.
    Tcp(TcpSpec),
    /// TCP-friendly rate control (RFC 5348).
    Tfrc(TfrcSpec),
    /// UDP, unresponsive.
    Udp(UdpSpec),
}

/// Congestion control of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 5681 with RFC 6582.
    NewReno,
    /// RFC 9438.
    Cubic,
}

/// Which engine's or document's defaults fill in what a scenario leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Defaults {
    /// Those of the RFCs.
    #[default]
    Rfc,
    /// Those of ns-2.35, which the TSQ paper was measured with.
    Ns2,
}

/// A bound in packets, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// No bound.
    None,
    /// At most this many packets.
    Packets(u64),
}

/// TCP as a scenario sets it; `None` leaves a value to the transport's own default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSpec {
    /// Where defaults come from.
    pub defaults: Defaults,
    /// Congestion control.
    pub congestion_control: CongestionControl,
    /// Payload of a full segment; default 1000 B, the papers'.
    pub mss: Bytes,
    /// What each segment has on top of the payload.
    pub header: Option<Bytes>,
    /// An ACK's size on the wire.
    pub ack_size: Option<Bytes>,
    /// Selective acknowledgement (RFC 6675).
    pub sack: Option<bool>,
    /// How long an ACK waits for a second segment (RFC 5681 section 4.2); zero: not at all.
    pub delayed_ack: Option<Duration>,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: Option<bool>,
    /// Initial window in segments.
    pub initial_window: Option<u64>,
    /// Largest window in segments.
    pub max_window: Option<Bound>,
    /// Initial slow-start threshold in segments.
    pub initial_ssthresh: Option<Bound>,
    /// Least retransmission timeout (RFC 6298).
    pub min_rto: Option<Duration>,
    /// How many segments of an application's data may wait in the sender.
    pub send_buffer: Option<Bound>,
}

/// TFRC as a scenario sets it; `None` leaves a value to the transport's own default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TfrcSpec {
    /// Where defaults come from.
    pub defaults: Defaults,
    /// s: payload of a packet; default 1000 B.
    pub packet_size: Bytes,
    /// What each packet has on top of the payload.
    pub header: Option<Bytes>,
    /// A feedback packet's size on the wire.
    pub feedback_size: Option<Bytes>,
    /// How many packets wait in the sender before the application's next one is refused.
    pub send_buffer: Option<u64>,
}

/// UDP's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpSpec {
    /// What each packet has on top of the payload; `None`: the transport's default.
    pub header: Option<Bytes>,
}

/// What an application sends.
#[derive(Clone, Debug, PartialEq)]
pub enum AppSpec {
    /// As much as the transport takes.
    Bulk,
    /// Messages of one size at a constant rate.
    Cbr {
        /// Payload rate.
        rate: Rate,
        /// Payload of a message.
        size: Bytes,
    },
    /// A constant rate during on-times, nothing during off-times.
    OnOff {
        /// Payload rate while on.
        rate: Rate,
        /// Payload of a message.
        size: Bytes,
        /// Length of on-times.
        on: Distribution<Duration>,
        /// Length of off-times.
        off: Distribution<Duration>,
    },
    /// One file after another, with a pause in between.
    Files {
        /// Size of files.
        size: Distribution<Bytes>,
        /// Pause from one file's end to the next one's start.
        think_time: Distribution<Duration>,
    },
    /// A reader of pages: a request, a page with what is embedded in it, a pause.
    RequestResponse {
        /// Size of an object.
        object: Distribution<Bytes>,
        /// Number of objects embedded in a page.
        embedded: Distribution<f64>,
        /// Pause from a page's last byte to the next request.
        think_time: Distribution<Duration>,
        /// Time that a request takes to the server.
        request_delay: Duration,
    },
    /// Speech with silence suppression: exponential talk spurts and pauses (ITU-T P.59: means 1.004 s and 1.587 s).
    TalkSpurt {
        /// Payload rate while talking.
        rate: Rate,
        /// Payload of a message.
        size: Bytes,
        /// Mean length of a talk spurt.
        talk: Duration,
        /// Mean length of a pause.
        silence: Duration,
    },
}

/// A random quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution<T> {
    /// Always the same.
    Fixed(T),
    /// Exponential.
    Exponential {
        /// The mean.
        mean: T,
    },
    /// Log-normal.
    LogNormal {
        /// The median, e^mu.
        median: T,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Pareto.
    Pareto {
        /// The least value.
        minimum: T,
        /// Tail index; the mean is finite above 1.
        shape: f64,
        /// What larger draws are cut to; `None`: nothing.
        maximum: Option<T>,
    },
}

/// One flow of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInstance {
    /// The group's name, with `.1`, `.2`, ... when the group has more than one flow.
    pub name: String,
    /// The group's index in [`Scenario::flows`].
    pub group: usize,
    /// The source node's name.
    pub from: String,
    /// The sink node's name.
    pub to: String,
}

impl Scenario {
    /// The seeds of all replications.
    pub fn all_seeds(&self) -> impl Iterator<Item = u64> + use<> {
        self.seed..self.seed + self.seeds
    }

    /// Number of flows in all groups.
    pub fn flow_count(&self) -> u64 {
        self.flows.iter().map(|group| group.count).sum()
    }

    /// Every flow, in the order of the groups; in a dumbbell flow i goes from `s(i)` to `d(i)`.
    pub fn flow_instances(&self) -> impl Iterator<Item = FlowInstance> + '_ {
        let members = |(group, spec): (usize, _)| instances(group, spec);
        self.flows.iter().enumerate().flat_map(members).zip(1u64..).map(|((name, group, ends), i)| {
            let (from, to) = ends.clone().unwrap_or_else(|| (format!("s{i}"), format!("d{i}")));
            FlowInstance { name, group, from, to }
        })
    }

    /// The nodes and links; a dumbbell is expanded.
    pub fn graph(&self) -> GraphSpec {
        match &self.topology {
            Topology::Graph(graph) => graph.clone(),
            Topology::Dumbbell(dumbbell) => dumbbell.expand(self.flow_count()),
        }
    }

    /// What identifies the run of this scenario with a seed: 16 hex digits of a hash over the canonical scenario, the
    /// seed and the version of the engine, so that a stored run is used again only if it would come out the same.
    pub fn run_id(&self, seed: u64, version: &str) -> String {
        let text = format!("{version}\n{seed}\n{}", self.canonical);
        let digest = Sha256::digest(text.as_bytes());
        digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Name, group and ends of each member of a group.
fn instances(
    group: usize,
    spec: &FlowSpec,
) -> impl Iterator<Item = (String, usize, &Option<(String, String)>)> + '_ {
    (1..=spec.count).map(move |i| {
        let name = if spec.count == 1 { spec.name.clone() } else { format!("{}.{i}", spec.name) };
        (name, group, &spec.ends)
    })
}

impl DumbbellSpec {
    /// The graph of a dumbbell with `pairs` sources and sinks.
    fn expand(&self, pairs: u64) -> GraphSpec {
        let mut graph = GraphSpec::default();
        graph.add_node("r1");
        graph.add_node("r2");
        graph.links.push(self.bottleneck("r1", "r2", &self.queue, &self.rate_changes));
        graph.links.push(self.bottleneck("r2", "r1", &self.reverse_queue, &[]));
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

    fn bottleneck(&self, from: &str, to: &str, queue: &Arc<QueueSpec>, changes: &[RateChange]) -> LinkSpec {
        LinkSpec { rate_changes: changes.to_vec(), ..LinkSpec::new(from, to, self.rate, self.delay, queue) }
    }

    fn access(&self, from: &str, to: &str) -> LinkSpec {
        LinkSpec::new(from, to, self.access_rate, self.access_delay, &self.access_queue)
    }
}

impl GraphSpec {
    fn add_node(&mut self, name: &str) {
        self.nodes.push(NodeSpec { name: name.to_owned() });
    }
}

impl LinkSpec {
    pub(crate) fn new(from: &str, to: &str, rate: Rate, delay: Duration, queue: &Arc<QueueSpec>) -> Self {
        Self {
            name: format!("{from}->{to}"),
            from: from.to_owned(),
            to: to.to_owned(),
            rate,
            delay,
            queue: Arc::clone(queue),
            rate_changes: Vec::new(),
        }
    }
}

impl QueueSpec {
    /// A drop-tail queue: what links have that nobody said anything about.
    pub fn drop_tail(limit: Limit) -> Self {
        let aqm = "drop-tail".to_owned();
        Self { aqm, parameters: Parameters::new(), limit, ecn: true, tsq: None }
    }
}
