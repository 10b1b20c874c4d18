//! What flows there are: who sends what to whom, over which transport, and what is kept of it.

use cutline_quality::HintParams;
use cutline_transport::endpoint::TransportParams;
use cutline_transport::{app, tcp};
use cutline_units::{Bytes, Duration, Ecn, Hint};

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
    /// The delay hint of its packets; the first one, if it adapts.
    pub hint: Hint,
    /// How the hint follows the quality; `None`: it stays.
    pub adaptive: Option<AdaptiveSpec>,
    /// What its data packets say of ECN.
    pub ecn: Ecn,
    /// When each flow starts.
    pub start: StartSpec,
    /// When all of them stop sending; `None`: with the simulation.
    pub stop: Option<Duration>,
    /// Transport protocol.
    pub transport: TransportSpec,
    /// What the application sends.
    pub app: app::Params,
    /// Whether every flow's interval series is kept.
    pub series: bool,
    /// Where full distributions are kept.
    pub distributions: DistributionsOf,
}

/// How a hint follows the quality that the flow gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveSpec {
    /// How often the receiver reports.
    pub report: Duration,
    /// How the hint is looked for.
    pub params: HintParams,
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

/// A transport as a scenario sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportSpec {
    /// The protocol and its parameters, the scenario's defaults filled in. Whether packets are ECN-capable is the flow's.
    pub params: TransportParams,
    /// The keys that the scenario sets: a kernel's TCP has its own values for the others, and cannot be told some.
    pub given: Vec<&'static str>,
    /// The congestion control is BBR as the running kernel has it: for the laboratory alone.
    pub bbr: bool,
}

impl TransportSpec {
    /// TCP's parameters; `None` for another protocol.
    pub fn tcp(&self) -> Option<&tcp::Params> {
        if let TransportParams::Tcp(params) = &self.params { Some(params) } else { None }
    }

    /// What Linux calls the congestion control of TCP.
    pub fn linux_congestion_control(&self) -> &'static str {
        match self.tcp().map(|params| params.algorithm.name()) {
            _ if self.bbr => "bbr",
            None | Some("newreno") => "reno",
            // The kernel may have one of that name, and refuses it otherwise.
            Some(name) => name,
        }
    }
}
