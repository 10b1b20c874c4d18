//! The engine: pops events, moves packets, drives the endpoints.
//!
//! A packet of a flow with private access links takes five events through a dumbbell: it comes to the bottleneck's
//! queue, the bottleneck has sent it, it reaches the sink; the acknowledgement comes to the return queue, and
//! reaches the source. The wires between are folded into arithmetic (see [`crate::wire`]) where that is exact: the
//! packet enters from an event of this moment, or the wire is fed by one other link alone, so that packets come
//! to it in the order in which they are folded.
//!
//! ```text
//! setup      a network becomes arrays
//! forward    the way of a packet
//! endpoints  what happens at its two ends
//! settle     arrays become an outcome
//! watched    the same at a link whose packets are observed
//! outside    ends that are not simulated
//! agents     programs at nodes that send each other messages
//! ```

mod agents;
mod endpoints;
mod forward;
mod outside;
mod settle;
mod setup;
mod watched;

pub(crate) use self::agents::Agents;
use crate::calendar::Calendar;
use crate::flow::{Background, Receiving, Sending};
use crate::measure::{DelayRecord, Window};
use crate::network::{Network, NetworkError};
use crate::outcome::Outcome;
use crate::outside::Outside;
use crate::packet::{Packet, WideHeaders};
use crate::route::{Kind, Routes, Stop};
use crate::served::Served;
use crate::watch::{Observation, Watch};
use crate::wire::{Wire, WireClass};
use cutline_units::{Duration, Instant, Rate, Streams};

/// How to run a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Every random stream is derived from it.
    pub seed: u64,
    /// The run ends here.
    pub duration: Duration,
    /// The part of the run that is measured.
    pub window: Window,
    /// The width of the interval series.
    pub interval: Duration,
}

/// Simulates a network from time zero to its end.
///
/// # Errors
/// When a queue cannot be built.
pub fn run(network: &Network, settings: &Settings) -> Result<Outcome, NetworkError> {
    let mut simulation = Simulation::new(network, settings)?;
    simulation.advance(Instant::ZERO + settings.duration);
    Ok(simulation.finish())
}

/// A network under way. Advance it to its end in as many steps as you like; then take the outcome.
pub struct Simulation {
    calendar: Calendar<Packet>,
    /// Headers too long for their packets.
    wide_headers: WideHeaders,
    routes: Routes,
    wires: Vec<Wire>,
    wire_classes: Vec<WireClass>,
    served: Vec<Served>,
    /// Where each link of the network is, in its order: in `wires` or in `served`.
    links: Vec<Stop>,
    /// The three parts of each flow.
    sending: Vec<Sending>,
    receiving: Vec<Receiving>,
    background: Vec<Background>,
    /// Of each group, then of the flows that keep their own.
    delays: Vec<DelayRecord>,
    groups: usize,
    /// Of the links in `served`.
    rate_changes: Vec<(usize, Rate)>,
    settings: Settings,
    /// Links crossed so far.
    hops: u64,
    watch: Watch,
    outside: Outside,
    pub(crate) agents: Agents,
    streams: Streams,
}

impl Simulation {
    /// Sets up a network at time zero.
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub fn new(network: &Network, settings: &Settings) -> Result<Self, NetworkError> {
        Self::set_up(network, settings)
    }

    /// Handles every event up to and including `until`, but none beyond the settings' duration.
    pub fn advance(&mut self, until: Instant) {
        let until = until.min(Instant::ZERO + self.settings.duration);
        self.outside.clock = self.outside.clock.max(until);
        while let Some((now, handle, tag)) = self.calendar.pop(until) {
            let stop = Stop::of_tag(tag);
            let index = stop.index();
            match stop.kind() {
                Kind::FoldedWire | Kind::Wire => self.cross_wires(now, handle, index),
                Kind::Served => self.enqueue(now, handle, index),
                Kind::Sink => self.reach_sink(now, handle, index),
                Kind::Source => self.reach_source(now, handle, index),
                Kind::LinkFree => self.serve(now, index, handle),
                Kind::SourceTimer => self.source_timer(now, handle, index),
                Kind::SinkTimer => self.sink_timer(now, handle, index),
                Kind::AppTimer => self.app_timer(now, handle, index),
                Kind::Interval => self.interval(now, handle),
                Kind::RateChange => self.change_rate(now, handle, index),
                Kind::Watched => self.enqueue_watched(now, handle, index),
                Kind::WatchedFree => self.serve_watched(now, index, handle),
                Kind::Agent => self.reach_agent(now, handle, index),
                Kind::Outside => self.leave(now, handle, index),
                Kind::Spare => unreachable!("nothing schedules it"),
            }
        }
    }

    /// What happened at the watched links since this was last asked, in the order of time.
    pub fn take_observations(&mut self) -> impl Iterator<Item = Observation> + '_ {
        self.watch.observations.drain(..)
    }

    /// Ends the run and hands out what was measured.
    pub fn finish(self) -> Outcome {
        self.settle()
    }
}
