//! The engines: they move packets, and drive the endpoints and queues.
//!
//! A network is simulated in one of two ways, with the same outcome to the last bit. The [event loop](events) takes one event
//! after the other from a calendar. It simulates every network. The [stages](stages) each do one kind of work for a window of time,
//! and exchange packets by windows. They are faster, and need links with a propagation delay; [`stages::StagePlan`] decides.
//!
//! A packet of a flow with private access links takes four steps through a dumbbell: it arrives at the bottleneck's
//! queue, the bottleneck transmits it, it reaches the sink; the acknowledgement arrives at the return queue, and
//! reaches the source. FIFO links are folded into arithmetic (see [`crate::fifo_link`]) where that is exact. It is exact
//! when the packet enters at its arrival time, or when a single other link feeds the FIFO link, so that packets
//! arrive in the order in which they are folded.
//!
//! ```text
//! parts      routes, links and flows, which both engines drive
//! endpoints  senders and receivers, and their timers
//! settle     turns the parts into an outcome
//! events     the event loop
//! stages     the stages
//! ```

mod endpoints;
mod events;
mod parts;
mod settle;
mod stages;

use self::events::EventLoop;
use self::parts::Parts;
use self::stages::Stages;
use crate::external::{FinishedPacket, InjectedPacket};
use crate::id::LinkId;
use crate::measure::{FlowInterval, QueueInterval, Window};
use crate::network::{Network, NetworkError};
use crate::outcome::SimulationOutcome;
use crate::watch::Observation;
use cutline_units::{Duration, Instant};

pub use self::stages::{EndedShard, Mail, Shard, ShardPlan, StageObstacle, StagePlan};

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
    engine: Engine,
}

/// The engine of a simulation.
enum Engine {
    Events(Box<EventLoop>),
    Stages(Box<Stages>),
}

impl Simulation {
    /// Sets up a network at time zero, in stages if it has a [`StagePlan`].
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub fn new(network: &Network, settings: &SimulationSettings) -> Result<Self, NetworkError> {
        match StagePlan::new(network) {
            Ok(plan) => Self::in_stages(network, settings, &plan),
            Err(_) => Self::with_event_loop(network, settings),
        }
    }

    /// Sets up a network at time zero, to be simulated in stages. The plan must be the network's.
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub fn in_stages(
        network: &Network,
        settings: &SimulationSettings,
        plan: &StagePlan,
    ) -> Result<Self, NetworkError> {
        let stages = Stages::new(network, settings, plan)?;
        Ok(Self { engine: Engine::Stages(Box::new(stages)) })
    }

    /// Sets up a network at time zero, to be simulated event by event. The outcome is the same as that of stages.
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub fn with_event_loop(network: &Network, settings: &SimulationSettings) -> Result<Self, NetworkError> {
        let events = EventLoop::new(network, settings)?;
        Ok(Self { engine: Engine::Events(Box::new(events)) })
    }

    /// Handles every event up to and including `until`, but none beyond the settings' duration.
    pub fn advance(&mut self, until: Instant) {
        match &mut self.engine {
            Engine::Events(events) => events.advance(until),
            Engine::Stages(stages) => stages.advance(until),
        }
    }

    /// Takes the observations at the watched links since the last call, in the order of time.
    pub fn take_observations(&mut self) -> impl Iterator<Item = Observation> + '_ {
        self.events().map(EventLoop::take_observations).into_iter().flatten()
    }

    /// Injects a packet from an external endpoint at `at`, after all events that are due until then. A time before the one to
    /// which the simulation was advanced counts as the latter.
    ///
    /// # Panics
    /// When the network does not [use external endpoints](crate::Network::use_external_endpoints), or the packet has 16 MiB or more.
    pub fn inject(&mut self, at: Instant, injected: InjectedPacket) {
        let events = self.events().expect("only a network with external endpoints takes injected packets");
        events.inject(at, injected);
    }

    /// Takes the injected packets that have left the network since the last call, in the order of time.
    pub fn take_finished(&mut self) -> impl Iterator<Item = FinishedPacket> + '_ {
        self.events().map(EventLoop::take_finished).into_iter().flatten()
    }

    /// Returns the time of the next event if no packet is injected before it; [`Instant::FAR_FUTURE`] without any event.
    pub fn next_event(&mut self) -> Instant {
        match &mut self.engine {
            Engine::Events(events) => events.next_event(),
            Engine::Stages(stages) => stages.next_event(),
        }
    }

    /// Returns the time that it has been advanced to.
    pub const fn time(&self) -> Instant {
        match &self.engine {
            Engine::Events(events) => events.time(),
            Engine::Stages(stages) => stages.time(),
        }
    }

    /// Returns the measures so far of a flow, by its place in the network, in the interval with this number, from zero; `None` if
    /// it keeps no series.
    pub fn flow_interval(&self, flow: usize, number: usize) -> Option<FlowInterval> {
        self.parts().flow_interval(flow, number)
    }

    /// Returns the measures of a link's queue in the interval with this number, from zero; `None` before its end, and for a link
    /// without a series.
    pub fn queue_interval(&self, link: LinkId, number: usize) -> Option<QueueInterval> {
        self.parts().queue_interval(link, number)
    }

    /// Ends the run and returns the measures.
    pub fn finish(self) -> SimulationOutcome {
        match self.engine {
            Engine::Events(events) => events.finish(),
            Engine::Stages(stages) => stages.finish(),
        }
    }

    /// The event loop; `None` for stages, which have neither watched links nor external endpoints.
    fn events(&mut self) -> Option<&mut EventLoop> {
        match &mut self.engine {
            Engine::Events(events) => Some(events),
            Engine::Stages(_) => None,
        }
    }

    fn parts(&self) -> &Parts {
        match &self.engine {
            Engine::Events(events) => events.parts(),
            Engine::Stages(stages) => stages.parts(),
        }
    }
}
