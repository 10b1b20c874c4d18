//! The engine: pops events, moves packets, drives the endpoints.
//!
//! A packet of a flow with private access links takes five events through a dumbbell: it arrives at the bottleneck's
//! queue, the bottleneck has transmitted it, it reaches the sink; the acknowledgement arrives at the return queue, and
//! reaches the source. FIFO links are folded into arithmetic (see [`crate::fifo_link`]) where that is exact. It is exact
//! when the packet enters by an event at its arrival time, or when a single other link feeds the FIFO link, so that packets
//! arrive in the order in which they are folded.
//!
//! ```text
//! setup      turns a network into arrays
//! forward    forwards packets from link to link
//! endpoints  senders and receivers, and their timers
//! settle     turns the arrays into an outcome
//! watched    links whose packets are observed
//! external   endpoints that are not simulated
//! agents     programs at nodes that send each other messages
//! ```

mod agents;
mod endpoints;
mod external;
mod forward;
mod settle;
mod setup;
mod watched;

use self::agents::Agents;
use crate::calendar::Calendar;
use crate::external::External;
use crate::fifo_link::{FifoClass, FifoLink};
use crate::flow::{Background, Receiving, Sending};
use crate::id::LinkId;
use crate::measure::{DelayRecord, FlowInterval, QueueInterval, Window};
use crate::network::{Network, NetworkError};
use crate::outcome::SimulationOutcome;
use crate::packet::{Packet, WideHeaders};
use crate::queued_link::QueuedLink;
use crate::route::{EventKind, Hop, Routes};
use crate::watch::{Observation, Watch};
use cutline_units::{Duration, Instant, Rate, Streams};

/// Settings of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulationSettings {
    /// Seed from which every random stream is derived.
    pub seed: u64,
    /// Length of the run.
    pub duration: Duration,
    /// The part of the run that is measured.
    pub window: Window,
    /// Width of the intervals of all series.
    pub interval: Duration,
}

/// Simulates a network from time zero to its end.
///
/// # Errors
/// When a queue cannot be built.
pub fn run(network: &Network, settings: &SimulationSettings) -> Result<SimulationOutcome, NetworkError> {
    let mut simulation = Simulation::new(network, settings)?;
    simulation.advance(Instant::ZERO + settings.duration);
    Ok(simulation.finish())
}

/// A running simulation of a network. The caller advances it to its end in any number of steps, and then takes the outcome.
pub struct Simulation {
    calendar: Calendar<Packet>,
    /// Headers too long for their packets.
    wide_headers: WideHeaders,
    routes: Routes,
    fifo_links: Vec<FifoLink>,
    fifo_classes: Vec<FifoClass>,
    queued_links: Vec<QueuedLink>,
    /// For each link of the network, its place in `fifo_links` or in `queued_links`.
    links: Vec<Hop>,
    /// The three parts of each flow.
    sending: Vec<Sending>,
    receiving: Vec<Receiving>,
    background: Vec<Background>,
    /// Delays of each group, followed by those of the flows with separate records.
    delays: Vec<DelayRecord>,
    groups: usize,
    /// Index into `queued_links` and new rate, for each change.
    rate_changes: Vec<(usize, Rate)>,
    settings: SimulationSettings,
    /// Number of links crossed so far, by all packets.
    hops: u64,
    watch: Watch,
    external: External,
    pub(crate) agents: Agents,
    streams: Streams,
}

impl Simulation {
    /// Sets up a network at time zero.
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub fn new(network: &Network, settings: &SimulationSettings) -> Result<Self, NetworkError> {
        Self::set_up(network, settings)
    }

    /// Handles every event up to and including `until`, but none beyond the settings' duration.
    pub fn advance(&mut self, until: Instant) {
        let until = until.min(Instant::ZERO + self.settings.duration);
        self.external.clock = self.external.clock.max(until);
        while let Some((now, handle, tag)) = self.calendar.pop(until) {
            let hop = Hop::from_tag(tag);
            let index = hop.index();
            match hop.kind() {
                EventKind::FoldedFifoLink | EventKind::FifoLink => self.cross_fifo_links(now, handle, index),
                EventKind::QueuedLink => self.enqueue(now, handle, index),
                EventKind::Sink => self.reach_sink(now, handle, index),
                EventKind::Source => self.reach_source(now, handle, index),
                EventKind::LinkFree => self.serve(now, index, handle),
                EventKind::SourceTimer => self.source_timer(now, handle, index),
                EventKind::SinkTimer => self.sink_timer(now, handle, index),
                EventKind::AppTimer => self.app_timer(now, handle, index),
                EventKind::Interval => self.interval(now, handle),
                EventKind::RateChange => self.change_rate(now, handle, index),
                EventKind::Watched => self.enqueue_watched(now, handle, index),
                EventKind::WatchedFree => self.serve_watched(now, index, handle),
                EventKind::Agent => self.reach_agent(now, handle, index),
                EventKind::External => self.leave(now, handle, index),
                EventKind::Lost => self.lose(now, handle, index),
            }
        }
    }

    /// Takes what happened at the watched links since the last call, in the order of time.
    pub fn take_observations(&mut self) -> impl Iterator<Item = Observation> + '_ {
        self.watch.observations.drain(..)
    }

    /// Returns the time that it has been advanced to.
    pub const fn time(&self) -> Instant {
        self.external.clock
    }

    /// Returns what a flow, by its place in the network, has measured so far in the interval with this number, from zero; `None` if
    /// it keeps no series.
    pub fn flow_interval(&self, flow: usize, number: usize) -> Option<FlowInterval> {
        self.background.get(flow)?.series.as_ref().map(|series| series.get(number))
    }

    /// Returns what a link's queue has measured in the interval with this number, from zero; `None` before its end, and for a link
    /// without a series.
    pub fn queue_interval(&self, link: LinkId, number: usize) -> Option<QueueInterval> {
        let hop = self.links.get(link.0 as usize)?;
        let is_queued = hop.kind() == EventKind::QueuedLink || hop.kind() == EventKind::Watched;
        self.queued_links.get(hop.index()).filter(|_| is_queued)?.interval(number)
    }

    /// Ends the run and returns what was measured.
    pub fn finish(self) -> SimulationOutcome {
        self.settle()
    }
}
