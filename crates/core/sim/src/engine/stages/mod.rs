//! Stages: one kind of work for a window of time each, and packets that pass between them by windows.
//!
//! A network is cut at links whose latency is at least a window (conservative synchronisation: Chandy and Misra 1979, Bryant 1977).
//! A packet that one stage sends arrives at another stage in a later window. So the stages of a window do not depend on each other,
//! and each of them handles its whole window in one loop, whose next packets are known. The [event loop](super::events) jumps from
//! stage to stage with every event instead.
//!
//! ```text
//! plan    whether and how a network is cut
//! inbox   packets and timers by windows
//! links   a stage for each queue, and for each FIFO link that several links feed
//! ends    the stages of all sources and of all sinks
//! ahead   reading ahead
//! shard   parts of a simulation that run at the same time
//! slab    storage of packets in queues, and of long headers
//! ```
//!
//! Within a stage, arrivals, transmissions and timers are handled in the same order as in the event loop: by time, kind of event, flow,
//! and order of sending ([`EventKind`]). So both have the same outcome, to the last bit.

mod ahead;
mod ends;
mod inbox;
mod links;
mod plan;
mod shard;
mod slab;

pub use self::plan::{StageObstacle, StagePlan};
pub use self::shard::{EndedShard, Mail, Shard, ShardPlan};

use self::inbox::{Inbox, Parcel, Timers};
use self::links::QueueStage;
use self::shard::OwnStages;
use self::slab::Headers;
use super::SimulationSettings;
use super::endpoints::Endpoints as _;
use super::parts::{Crossed, Parts};
use crate::network::{Network, NetworkError};
use crate::outcome::{SimulationOutcome, Work};
use crate::packet::Packet;
use crate::queued_link::QueuedLink;
use crate::route::{EventKind, Hop};
use cutline_transport::endpoint::PackedHeader;
use cutline_units::Instant;

/// A simulation in stages.
pub(super) struct Stages {
    parts: Parts,
    inboxes: Inboxes,
    /// The stages of the queued links, by their index.
    queues: Vec<QueueStage>,
    /// The FIFO links that are stages of their own. Their inboxes follow those of the queues.
    fifo_links: Vec<usize>,
    /// The stages that run here: all of them, or those of a shard.
    own: OwnStages,
    /// The timers of the sinks, if these are a stage of their own.
    sink_timers: Timers,
    /// The timers of the sources and applications, and of the sinks if these are in the same stage.
    timers: Timers,
    /// True if the sources and the sinks are one stage.
    ends_together: bool,
    /// Headers too long for their packets.
    headers: Headers,
    /// True if the stages read ahead, because there are many flows.
    reads_ahead: bool,
    /// Packets that links have transmitted; see [`Stages::forward`].
    outbox: Vec<Parcel>,
    /// The number of the window that is open.
    window: u64,
    shift: u32,
    /// The latest time to which the simulation was advanced.
    clock: Instant,
    /// Number of arrivals, transmissions, timers and changes of rates so far.
    events: u64,
}

/// The inboxes of all stages.
struct Inboxes {
    links: Vec<Inbox>,
    data: Inbox,
    replies: Inbox,
}

impl Inboxes {
    /// Sends a packet to the stage of the next hop on its route.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Inbox::push")]
    fn push(&mut self, at: Instant, next: Hop, packet: Packet) {
        match next.kind() {
            EventKind::Sink => self.data.push(at, packet),
            EventKind::Source => self.replies.push(at, packet),
            _ => self.links[next.index()].push(at, packet),
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Inbox> {
        self.links.iter_mut().chain([&mut self.data, &mut self.replies])
    }
}

impl Stages {
    /// Sets up a network at time zero. The plan must be the network's.
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub(super) fn new(
        network: &Network,
        settings: &SimulationSettings,
        plan: &StagePlan,
    ) -> Result<Self, NetworkError> {
        Self::with_stages(network, settings, plan, OwnStages::all(network, plan))
    }

    /// Sets up a network at time zero, of which only some stages run here.
    ///
    /// # Errors
    /// When a queue cannot be built.
    fn with_stages(
        network: &Network,
        settings: &SimulationSettings,
        plan: &StagePlan,
        own: OwnStages,
    ) -> Result<Self, NetworkError> {
        let parts = Parts::new(network, settings)?;
        let queues: Vec<QueueStage> =
            (0..parts.queued_links.len()).map(|link| QueueStage::new(&parts, link)).collect();
        let (shift, windows) = (plan.shift, plan.windows);
        let mut stages = Self {
            parts,
            inboxes: Inboxes {
                links: Vec::new(),
                data: Inbox::new(shift, windows),
                replies: Inbox::new(shift, windows),
            },
            queues,
            fifo_links: Vec::new(),
            own,
            sink_timers: Timers::new(shift, windows),
            timers: Timers::new(shift, windows),
            ends_together: plan.ends_together,
            headers: Headers::default(),
            reads_ahead: network.flows().len() >= ahead::FLOWS,
            outbox: Vec::with_capacity(ahead::BLOCK),
            window: 0,
            shift,
            clock: Instant::ZERO,
            events: 0,
        };
        stages.cut_at_fifo_links(plan);
        let inboxes = stages.queues.len() + stages.fifo_links.len();
        stages.inboxes.links.resize_with(inboxes, || Inbox::new(shift, windows));
        for (id, spec) in network.flows().iter().enumerate() {
            stages.parts.add_flow(spec, false);
            stages.arm_app(id);
        }
        stages.parts.links = Vec::new();
        if !stages.own.sources {
            stages.timers = Timers::new(shift, windows);
            stages.parts.sending = Vec::new();
        }
        Ok(stages)
    }

    /// Makes stages of the plan's FIFO links: in routes, the index of their hop is that of their inbox.
    fn cut_at_fifo_links(&mut self, plan: &StagePlan) {
        for link in &plan.fifo_stages {
            let hop = &mut self.parts.links[link.0 as usize];
            let inbox = self.queues.len() + self.fifo_links.len();
            self.fifo_links.push(hop.index());
            *hop = Hop::new(EventKind::FifoLink, inbox);
        }
    }

    pub(super) const fn time(&self) -> Instant {
        self.clock
    }

    pub(super) const fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Handles everything up to and including `until`, but nothing beyond the settings' duration.
    pub(super) fn advance(&mut self, until: Instant) {
        let until = until.min(Instant::ZERO + self.parts.settings.duration);
        loop {
            let end = self.window_end();
            self.run_stages(end.min(until));
            if until < end {
                break;
            }
            self.open_window();
        }
        self.clock = self.clock.max(until);
    }

    /// Lets every stage handle the open window up to and including `until`.
    fn run_stages(&mut self, until: Instant) {
        if self.own.sources && self.ends_together {
            self.run_ends(until);
        } else if self.own.sources {
            self.run_sources(until);
        }
        if self.own.sinks && !self.ends_together {
            self.run_sinks(until);
        }
        for place in 0..self.own.queues.len() {
            self.run_queue(self.own.queues[place], until);
        }
        for place in 0..self.own.fifo_links.len() {
            self.run_fifo_link(self.own.fifo_links[place], until);
        }
    }

    /// Returns the last moment of the open window.
    const fn window_end(&self) -> Instant {
        Instant::from_nanos(((self.window + 1) << self.shift) - 1)
    }

    fn open_window(&mut self) {
        self.window += 1;
        let number = self.window;
        self.inboxes.all().for_each(|inbox| inbox.open(number));
        self.sink_timers.open(number);
        self.timers.open(number);
    }

    /// Returns the time of the next event; [`Instant::FAR_FUTURE`] without one.
    pub(super) fn next_event(&mut self) -> Instant {
        let arrivals = self.inboxes.all().map(|inbox| inbox.next_arrival()).min();
        let links = self.queues.iter().map(QueueStage::next_event).min();
        let timers = self.sink_timers.first().min(self.timers.first());
        [arrivals, links].into_iter().flatten().min().map_or(timers, |other| other.min(timers))
    }

    pub(super) fn finish(self) -> SimulationOutcome {
        let work = Work { events: self.events + self.intervals(), ..Work::default() };
        self.into_parts().settle(work)
    }

    /// Returns the number of intervals of the queues' series that have ended. An interval ends for all of them at once.
    fn intervals(&self) -> u64 {
        let has_series = self.parts.queued_links.iter().any(QueuedLink::has_series);
        let passed = self.clock - Instant::ZERO;
        if has_series { passed.as_nanos() / self.parts.settings.interval.as_nanos() } else { 0 }
    }

    /// Returns the parts, without the memory of packets.
    fn into_parts(self) -> Parts {
        self.parts
    }

    /// Sends a packet that a link has transmitted on to the next hop on its route, and over the FIFO links that are folded. When the
    /// stages read ahead, it waits in the outbox for a block of others.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Inbox::push")]
    fn forward(&mut self, at: Instant, packet: Packet) {
        if self.reads_ahead {
            self.outbox.push(Parcel { at, packet });
            if self.outbox.len() == ahead::BLOCK {
                self.empty_outbox();
            }
        } else {
            self.pass_on(at, packet);
        }
    }

    /// Sends the packets in the outbox on.
    #[inline(never)]
    fn empty_outbox(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        self.parts.read_ahead_of_links(&outbox);
        for parcel in outbox.drain(..) {
            self.pass_on(parcel.at, parcel.packet);
        }
        self.outbox = outbox;
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Inbox::push")]
    fn pass_on(&mut self, at: Instant, packet: Packet) {
        let next = self.parts.routes.at(packet.position);
        if next.is_folded_fifo_link() {
            self.cross_fifo_links(at, next.index(), packet);
        } else {
            self.inboxes.push(at, next, packet);
        }
    }

    /// Sends a packet over a FIFO link and those behind it that are folded, and on to the next stage.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Inbox::push")]
    fn cross_fifo_links(&mut self, now: Instant, fifo_link: usize, mut packet: Packet) {
        match self.parts.cross_fifo_links(now, &mut packet, fifo_link) {
            Crossed::Arrives(at, next) => self.inboxes.push(at, next, packet),
            Crossed::Dropped(at) => self.drop_packet(at, packet.header(), packet.position),
        }
    }

    /// Ends a packet with this header at this position of its route.
    #[cold]
    #[inline(never)]
    fn drop_packet(&mut self, at: Instant, header: PackedHeader, position: u32) {
        if header.is_wide() {
            self.headers.take(header);
        }
        let end = self.parts.routes.end(position);
        if end.kind() == EventKind::Sink {
            self.parts.note_dropped(at, end.index());
        }
    }
}
