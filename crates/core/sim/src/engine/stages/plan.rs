//! The cut of a network into stages.
//!
//! A stage is a queued link, a FIFO link that several links feed, or the sources, or the sinks. The lookahead is the least latency
//! from one stage to another: the propagation delays of the links between them, without the transmission times. Windows are at most
//! as long as the lookahead, and short enough that the packets of a window stay in the processor's cache.

use crate::engine::parts::is_fifo_link;
use crate::id::LinkId;
use crate::impairment::{ImpairmentParams, JitterDistribution};
use crate::network::{LinkSpec, Network};
use cutline_units::{Duration, Rate};
use std::fmt;

/// Windows are shortened to this number of packets on the fastest link...
const PACKETS: f64 = 512.0;
/// ...and networks are not cut if a window has fewer: opening it then costs more than its packets gain.
const LEAST_PACKETS: u64 = 8;
/// The bits of a packet for these numbers.
const PACKET_BITS: f64 = 8000.0;
/// A window has at most 2^32 ns, because timers have the time since its beginning in 32 bits.
const MOST_SHIFT: u32 = 32;
/// The least number of windows that are kept ready.
const LEAST_WINDOWS: u64 = 16;
/// The largest number of them, for each stage and for all stages together, whichever is more. Packets beyond them are kept in a map.
const MOST_WINDOWS: (u64, u64) = (4096, 1 << 16);

/// The cut of a network into stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePlan {
    /// The least latency from one stage to another.
    pub lookahead: Duration,
    /// The link behind which it is.
    nearest: LinkId,
    /// The number of packets that the fastest link can send in a window.
    packets: u64,
    /// The number of stages.
    pub stages: usize,
    /// A window is 2^shift nanoseconds long.
    pub(super) shift: u32,
    /// The number of windows that are kept ready, a power of two.
    pub(super) windows: usize,
    /// The FIFO links that are stages.
    pub(super) fifo_stages: Vec<LinkId>,
    /// True if the sources and the sinks are one stage.
    pub(super) ends_together: bool,
}

/// The reason why a network is simulated event by event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageObstacle {
    /// Watched links.
    Watched,
    /// External endpoints.
    External,
    /// Agents: adaptive hints, QoS connections, reservations.
    Agents,
    /// A network without flows.
    NoFlows,
    /// A flow begins at this link, whose queue is not a plain FIFO queue.
    QueueAtHost(String),
    /// Some flows begin at this link and others come from another link.
    SharedFirstLink(String),
    /// A packet reaches the next stage within this latency after this link, which is too short for a window.
    ShortLatency {
        /// The link.
        link: String,
        /// The latency.
        latency: Duration,
    },
}

impl fmt::Display for StageObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watched => write!(f, "links are observed packet by packet"),
            Self::External => write!(f, "flows have external endpoints"),
            Self::Agents => write!(f, "hints adapt, or hosts exchange messages"),
            Self::NoFlows => write!(f, "there are no flows"),
            Self::QueueAtHost(link) => {
                write!(f, "a flow begins at link `{link}`, whose queue decides packet by packet")
            }
            Self::SharedFirstLink(link) => {
                write!(f, "some flows begin at link `{link}`, and others reach it over another link")
            }
            Self::ShortLatency { link, latency } => {
                write!(f, "the latency of {latency} behind link `{link}` is too short for a window")
            }
        }
    }
}

/// The use of a link by all routes.
#[derive(Clone, Copy, Default)]
struct Use {
    /// First link of the data of a flow.
    from_source: bool,
    /// First link of the replies of a flow.
    from_sink: bool,
    /// Later link of a route.
    inside: bool,
}

/// Part of a route from one stage to the next.
#[derive(Clone, Copy)]
struct RoutePart {
    /// The first link behind the stage.
    link: LinkId,
    latency: Duration,
    /// The greatest latency without waiting.
    longest: Duration,
}

impl StagePlan {
    /// Cuts a network into stages if they are faster than the event loop.
    ///
    /// # Errors
    /// The reason why the network is simulated event by event.
    pub fn new(network: &Network) -> Result<Self, StageObstacle> {
        let plan = Self::cut(network)?;
        if plan.packets < LEAST_PACKETS {
            return Err(short_latency(network, plan.nearest, plan.lookahead));
        }
        Ok(plan)
    }

    /// Cuts a network into stages, even if windows are so short that the event loop is faster.
    ///
    /// # Errors
    /// The reason why the network must be simulated event by event.
    pub fn cut(network: &Network) -> Result<Self, StageObstacle> {
        check_kind(network)?;
        let uses = uses(network);
        check_first_links(network, &uses)?;
        let folded = network.fed_by_one_link();
        let is_stage = |link: LinkId| {
            !(is_fifo_link(network, link) && (folded[link.0 as usize] || !uses[link.0 as usize].inside))
        };
        let (shortest, longest) = latencies(network, &is_stage).ok_or(StageObstacle::NoFlows)?;
        let is_fifo_stage =
            |link: &LinkId| is_fifo_link(network, *link) && uses[link.0 as usize].inside && is_stage(*link);
        let fifo_stages: Vec<LinkId> = network.link_ids().filter(is_fifo_stage).collect();
        let queued = network.link_ids().filter(|link| !is_fifo_link(network, *link));
        let waits = network.flows().iter().any(|flow| flow.app.needs_reliability());
        let shared = uses.iter().any(|link| link.from_source && link.from_sink);
        let ends_together = waits || shared;
        let stages = queued.count() + fifo_stages.len() + if ends_together { 1 } else { 2 };
        let fastest = fastest(network, &is_stage).as_bps() as f64;
        let enough = Duration::from_secs_f64(PACKETS * PACKET_BITS / fastest);
        let length = shortest.latency.min(enough).as_nanos();
        let shift =
            length.checked_ilog2().ok_or_else(|| short_latency(network, shortest.link, shortest.latency))?;
        let shift = shift.min(MOST_SHIFT);
        let packets = (Duration::from_nanos(1 << shift).as_secs_f64() * fastest / PACKET_BITS) as u64;
        // Some windows more, for packets that wait on the way.
        let windows = (longest.as_nanos() >> shift) + 8;
        let most = MOST_WINDOWS.0.max(MOST_WINDOWS.1 / stages as u64);
        let windows = windows.clamp(LEAST_WINDOWS, most).next_power_of_two() as usize;
        let (lookahead, nearest) = (shortest.latency, shortest.link);
        Ok(Self { lookahead, nearest, packets, stages, shift, windows, fifo_stages, ends_together })
    }

    /// The length of a window.
    pub fn window(&self) -> Duration {
        Duration::from_nanos(1 << self.shift)
    }
}

fn check_kind(network: &Network) -> Result<(), StageObstacle> {
    if network.link_ids().any(|link| network.is_watched(link)) {
        return Err(StageObstacle::Watched);
    }
    if network.has_external_endpoints() {
        return Err(StageObstacle::External);
    }
    let observed = (0..network.flows().len()).any(|flow| network.is_observed(flow));
    if observed || !network.agents().is_empty() || network.flows().iter().any(|flow| flow.adaptive.is_some())
    {
        return Err(StageObstacle::Agents);
    }
    Ok(())
}

fn uses(network: &Network) -> Vec<Use> {
    let mut uses = vec![Use::default(); network.links().len()];
    for flow in network.flows() {
        uses[flow.route[0].0 as usize].from_source = true;
        uses[flow.return_route[0].0 as usize].from_sink = true;
        for link in flow.route[1..].iter().chain(&flow.return_route[1..]) {
            uses[link.0 as usize].inside = true;
        }
    }
    uses
}

/// Checks that packets enter the network over FIFO links that no other packets use.
fn check_first_links(network: &Network, uses: &[Use]) -> Result<(), StageObstacle> {
    for (id, link) in uses.iter().enumerate().filter(|(_, link)| link.from_source || link.from_sink) {
        let id = LinkId(id as u32);
        if !is_fifo_link(network, id) {
            return Err(StageObstacle::QueueAtHost(network.link_name(id)));
        }
        if link.inside {
            return Err(StageObstacle::SharedFirstLink(network.link_name(id)));
        }
    }
    Ok(())
}

/// Returns the part with the least latency of all routes between two stages, and the greatest latency of all parts.
fn latencies(network: &Network, is_stage: &impl Fn(LinkId) -> bool) -> Option<(RoutePart, Duration)> {
    let mut shortest: Option<RoutePart> = None;
    let mut longest = Duration::ZERO;
    for route in network.flows().iter().flat_map(|flow| [&flow.route, &flow.return_route]) {
        let mut part = RoutePart { link: route[0], latency: Duration::ZERO, longest: Duration::ZERO };
        for (number, &id) in route.iter().enumerate() {
            let link = network.link(id);
            if number > 0 && is_stage(id) {
                shortest = Some(shorter(shortest, part));
                longest = longest.max(part.longest);
                part = RoutePart { link: id, latency: Duration::ZERO, longest: Duration::ZERO };
            }
            let jitter = link.impairment.as_ref().map_or(Duration::ZERO, |params| params.jitter);
            part.latency += least_delay(link);
            part.longest += link.delay + jitter;
        }
        shortest = Some(shorter(shortest, part));
        longest = longest.max(part.longest);
    }
    shortest.map(|part| (part, longest))
}

fn shorter(part: Option<RoutePart>, other: RoutePart) -> RoutePart {
    part.filter(|part| part.latency <= other.latency).unwrap_or(other)
}

/// Returns the least time from the end of a packet's transmission to its arrival at the other end of a link.
fn least_delay(link: &LinkSpec) -> Duration {
    match link.impairment.as_deref() {
        Some(ImpairmentParams { jitter, jitter_distribution: JitterDistribution::Uniform, .. }) => {
            link.delay.saturating_sub(*jitter)
        }
        // A normal jitter has no limit.
        Some(params) if !params.jitter.is_zero() => Duration::ZERO,
        _ => link.delay,
    }
}

fn short_latency(network: &Network, link: LinkId, latency: Duration) -> StageObstacle {
    StageObstacle::ShortLatency { link: network.link_name(link), latency }
}

/// Returns the rate of the fastest link that is a stage; of all links if none is.
fn fastest(network: &Network, is_stage: &impl Fn(LinkId) -> bool) -> Rate {
    let all = || network.links().iter().enumerate();
    let stages = all().filter(|(id, _)| is_stage(LinkId(*id as u32))).map(|(_, link)| link.rate).max();
    let fastest = stages.or_else(|| all().map(|(_, link)| link.rate).max());
    fastest.expect("a network with flows has links")
}
