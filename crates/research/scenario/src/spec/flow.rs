//! The flows of a scenario: their ends, application, transport, quality class and stored results.

use super::arrivals::ArrivalsSpec;
use cutline_quality::spec::ConnectionSpecification;
use cutline_quality::{HintParams, Perspective};
use cutline_translate::AckPath;
use cutline_transport::endpoint::TransportParams;
use cutline_transport::{app, tcp};
use cutline_units::{Bytes, Duration, Ecn, Hint};

/// A group of flows with the same parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroupSpec {
    /// The group's name, unique in the scenario.
    pub name: String,
    /// Number of flows in the group; a group with none has no rows in the results. Zero for a group with arrivals.
    pub count: u64,
    /// Transfers that arrive at random, in the place of a number of flows between two nodes.
    pub arrivals: Option<ArrivalsSpec>,
    /// The end that sends. Only files of flows without a network set it; a scenario has source and sink.
    pub direction: FlowDirection,
    /// Source and sink; `None` in a dumbbell, where each flow has its own pair of hosts.
    pub ends: Option<(String, String)>,
    /// The host that the flows come from, if they share one; queues that separate hosts see it.
    pub host: Option<String>,
    /// The tunnel that the flows are in; queues see the flows of a tunnel as one.
    pub tunnel: Option<String>,
    /// Quality class.
    pub class: ClassSpec,
    /// Delay hint of the packets; the initial hint if it adapts.
    pub hint: Hint,
    /// Adaptation of the hint to the quality; `None` if the hint is fixed.
    pub adaptive: Option<AdaptiveSpec>,
    /// ECN codepoint of the data packets.
    pub ecn: Ecn,
    /// Start time of each flow.
    pub start: StartSpec,
    /// Time at which all flows of the group stop sending; `None` if they send until the end of the simulation.
    pub stop: Option<Duration>,
    /// Transport protocol and its parameters.
    pub transport: TransportSpec,
    /// Application and its parameters.
    pub app: app::Params,
    /// Requirements of the flow that are reserved for it; `None` for best effort. Only the laboratory with
    /// routers has reservations.
    pub qos: Option<QosSpec>,
    /// A program that makes the traffic in the laboratory with routers, instead of the application.
    pub program: Option<ProgramSpec>,
    /// The nodes with the gateways over which a program sends and receives; `None`: they are where the program is.
    pub gateways: Option<[String; 2]>,
    /// True if the interval series of every flow is stored.
    pub series: bool,
    /// Unit of distributions: flows or groups.
    pub distributions: DistributionsOf,
}

/// The direction of flows between the end that requests a run of the traffic generator and its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowDirection {
    /// To the receiver.
    #[default]
    Forward,
    /// From the receiver.
    Reverse,
    /// Each flow in both directions at once.
    Bidirectional,
}

/// Reservation for a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct QosSpec {
    /// Requirements on both directions.
    pub specification: ConnectionSpecification,
    /// Reservation of the acknowledgements' path. Datagrams have none.
    pub ack_path: AckPath,
}

/// A program whose traffic is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramSpec {
    /// A video tool over datagrams (QoSockets section III.B).
    NetVideo,
    /// A CORBA server of slides and its client, over a pair of gateways (QoSockets section III.C).
    Dirm,
}

/// Adaptation of a hint to the quality of its flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveSpec {
    /// Interval between two reports of the receiver.
    pub report: Duration,
    /// Parameters of the hint search.
    pub params: HintParams,
}

/// Start time of the flows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSpec {
    /// All flows start at this time.
    At(Duration),
    /// Each flow starts at a random time, uniformly distributed in `from..to`.
    Uniform {
        /// Earliest start.
        from: Duration,
        /// Latest start.
        to: Duration,
    },
}

impl StartSpec {
    /// Returns the earliest and the latest start.
    pub const fn bounds(self) -> (Duration, Duration) {
        match self {
            Self::At(at) => (at, at),
            Self::Uniform { from, to } => (from, to),
        }
    }
}

/// Scope of the stored distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistributionsOf {
    /// One distribution for each flow.
    Flow,
    /// One distribution for the whole group.
    Group,
}

/// A quality class (TSQ section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassSpec {
    /// No quality class: the quality is not computed.
    None,
    /// Audio conference.
    Audio,
    /// Video conference.
    Video,
    /// Transfer of files of a fixed size.
    FileTransfer {
        /// File size, S in the paper.
        file_size: Bytes,
    },
    /// Web pages.
    Web {
        /// Size of a page with its embedded objects, S in the paper; 100 KB by default.
        page_size: Bytes,
    },
    /// Networked game (Claypool and Claypool 2006).
    Game {
        /// The player's perspective.
        perspective: Perspective,
    },
}

/// The transport of a flow, as the scenario sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportSpec {
    /// The protocol and its parameters, including defaults. [`FlowGroupSpec::ecn`] determines the ECN codepoint.
    pub params: TransportParams,
    /// The keys that the scenario sets. The kernel's TCP uses its own values for the other keys, and does not support all
    /// keys.
    pub given: Vec<&'static str>,
}

impl TransportSpec {
    /// Returns the parameters of TCP; `None` for another protocol.
    pub fn tcp(&self) -> Option<&tcp::Params> {
        if let TransportParams::Tcp(params) = &self.params { Some(params) } else { None }
    }

    /// Returns Linux's name of TCP's congestion control; `None` for another protocol. The running kernel may not support it.
    pub fn linux_congestion_control(&self) -> Option<&'static str> {
        Some(match &self.tcp()?.algorithm {
            tcp::Algorithm::NewReno => "reno",
            // DCTCP, CUBIC, BBR and the algorithms of other crates have the same name in Linux.
            other => other.name(),
        })
    }

    /// Returns the value of `congestion-control` in the scenario; `None` if the protocol is not TCP.
    pub fn congestion_control(&self) -> Option<&'static str> {
        Some(self.tcp()?.algorithm.name())
    }
}
