//! What flows there are: who sends what to whom, over which transport, and what is kept of it.

use cutline_quality::HintParams;
use cutline_units::{Bytes, Duration, Hint, Rate};

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
    /// BBR as the running kernel has it: for the laboratory alone.
    Bbr,
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
    /// A small segment waits while data is outstanding (RFC 1122 section 4.2.3.4).
    pub nagle: Option<bool>,
    /// The window falls back to the initial one after an idle time (RFC 5681 section 4.1).
    pub idle_restart: Option<bool>,
    /// The retransmission timeout before the first sample (RFC 6298).
    pub initial_rto: Option<Duration>,
    /// Least retransmission timeout (RFC 6298).
    pub min_rto: Option<Duration>,
    /// Largest retransmission timeout (RFC 6298).
    pub max_rto: Option<Duration>,
    /// What round-trip times are rounded to: G of RFC 6298.
    pub clock_granularity: Option<Duration>,
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
    /// The tick of the clock that the equation's timeout is estimated from; 4 R instead where neither this nor the defaults say.
    pub rto_tick: Option<Duration>,
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
    /// Messages at random times, without memory.
    Poisson {
        /// Mean payload rate.
        rate: Rate,
        /// Payload of a message.
        size: Distribution<Bytes>,
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
