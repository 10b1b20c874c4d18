//! Arrivals at a queue: those of sources that a test generates, and recorded traces.
//!
//! A trace is recorded by the simulator at the bottleneck of an experiment of this repository, with its TCP, TFRC and UDP. The same seed gives the same
//! trace, so none is stored. Its packets do not respond to the queues that are compared.

use cutline_scenario::{ScenarioFile, SimulateError};
use cutline_sim::QueueEvent;
use cutline_units::mix;
use std::path::Path;
use std::slice;
use std::sync::atomic::AtomicBool;

/// A packet that arrives at a queue.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// Time, s.
    pub at: f64,
    /// Level of its delay hint.
    pub hint: u16,
    /// Bytes on the link.
    pub size: u32,
    /// Number of its flow.
    pub flow: u32,
}

/// Arrivals in the order of time.
pub trait Load {
    /// Takes the next arrival; none after the last one.
    fn take(&mut self) -> Option<Offered>;

    /// Responds to the verdict on the packet that was taken last. `stored` packets had been stored before it.
    fn respond(&mut self, passed: bool, stored: u32);
}

/// A recorded trace.
pub struct Recorded<'t>(slice::Iter<'t, Offered>);

impl<'t> Recorded<'t> {
    /// Returns a trace from its beginning.
    pub fn new(trace: &'t [Offered]) -> Self {
        Self(trace.iter())
    }
}

impl Load for Recorded<'_> {
    fn take(&mut self) -> Option<Offered> {
        self.0.next().copied()
    }

    fn respond(&mut self, _passed: bool, _stored: u32) {}
}

/// Records the arrivals at the bottleneck of an experiment, such as `tsq/mixed.toml`, with settings.
pub fn record(experiment: &str, settings: &[(&str, &str)]) -> Vec<Offered> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments").join(experiment);
    let mut file = ScenarioFile::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    for (key, value) in settings {
        file.set(key, value).unwrap_or_else(|errors| panic!("{errors}"));
    }
    let scenario = file.scenario().unwrap_or_else(|errors| panic!("{errors}"));
    let mut network = scenario.network().unwrap();
    let bottleneck = network.link_ids().find(|link| network.link_name(*link) == "r1->r2");
    network.watch(bottleneck.expect("a dumbbell has a bottleneck"));
    let mut trace = Vec::new();
    let never = AtomicBool::new(false);
    scenario
        .simulate_network::<SimulateError>(&network, scenario.seed, &never, |simulation| {
            for seen in simulation.take_observations() {
                if matches!(seen.event, QueueEvent::Arrived(_)) {
                    let flow = seen.packet.flow.expect("packets of an experiment belong to flows");
                    trace.push(Offered {
                        at: seen.at.as_nanos() as f64 / 1e9,
                        hint: seen.packet.hint.level(),
                        size: seen.packet.size,
                        flow: mix(u64::from(flow) + 99) as u32,
                    });
                }
            }
            Ok(())
        })
        .unwrap();
    trace
}
