//! Runs a scenario and writes the packets at a link while it runs.

use crate::CaptureError;
use crate::pcapng::Writer;
use cutline_aqm::AqmSpec;
use cutline_results::RunResult;
use cutline_scenario::Scenario;
use cutline_sim::{LinkId, Network, Simulation};
use std::io::Write;
use std::sync::atomic::AtomicBool;

/// The link to capture, and the program that writes the file.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'c> {
    /// The link whose queue is captured, together with the link in the reverse direction.
    pub link: LinkId,
    /// The program that writes the file, such as `cutline 1.0.0`.
    pub application: &'c str,
}

/// The link of a name, such as `r1->r2`. Without one: the first link whose queue is more than drop-tail, else the first
/// link of all; in a dumbbell, the bottleneck.
///
/// # Errors
/// When there is no such link.
pub fn link_named(network: &Network, name: Option<&str>) -> Result<LinkId, CaptureError> {
    let links = || (0..network.links().len() as u32).map(LinkId);
    let Some(name) = name else {
        return Ok(links().find(|&link| is_managed(network, link)).unwrap_or(LinkId(0)));
    };
    links()
        .find(|&link| network.link_name(link) == name)
        .ok_or_else(|| CaptureError::UnknownLink { name: name.to_owned(), known: known_links(network) })
}

/// Returns a link, and the link in the reverse direction if there is one, which carries the acknowledgements.
pub fn with_return(network: &Network, link: LinkId) -> Vec<LinkId> {
    let forward = network.link(link);
    let mut links = (0..).zip(network.links());
    let reverse = links.find(|(_, reverse)| (reverse.from, reverse.to) == (forward.to, forward.from));
    [Some(link), reverse.map(|(id, _)| LinkId(id))].into_iter().flatten().collect()
}

/// Simulates a scenario with a seed and writes the packets at a link to `out` as pcapng, in memory that does not
/// grow with the run. Observations before an error or an interruption are written, too. `after_step` is called every
/// 100 ms of simulated time.
///
/// # Errors
/// When the scenario cannot be simulated, was interrupted, or the file cannot be written.
pub fn simulate_captured(
    scenario: &Scenario,
    seed: u64,
    cancel: &AtomicBool,
    capture: Capture<'_>,
    out: impl Write,
    mut after_step: impl FnMut(&Simulation),
) -> Result<RunResult, CaptureError> {
    let mut network = scenario.network_of(seed).map_err(cutline_scenario::SimulateError::from)?;
    let links = with_return(&network, capture.link);
    for &link in &links {
        network.watch(link);
    }
    let about = format!("{}, seed {seed}; time 0 is the simulation's beginning", scenario.name);
    let mut writer = Writer::new(out, &network, &links, &about, capture.application)?;
    let result = scenario.simulate_network(&network, seed, cancel, |simulation| {
        after_step(simulation);
        simulation.take_observations().try_for_each(|seen| writer.record(&seen))
    });
    let finished = writer.finish();
    let result = result?;
    finished.map(|()| result)
}

/// Returns whether a link's queue is more than drop-tail.
fn is_managed(network: &Network, link: LinkId) -> bool {
    let queue = &network.link(link).queue;
    queue.tsq.is_some() || !matches!(queue.aqm, AqmSpec::DropTail(_))
}

/// The links' names, limited to a readable number.
fn known_links(network: &Network) -> String {
    const MOST: usize = 10;
    let links = network.links().len();
    let names: Vec<String> =
        (0..links.min(MOST) as u32).map(|link| network.link_name(LinkId(link))).collect();
    let more = if links > MOST { format!(" and {} more", links - MOST) } else { String::new() };
    format!("{}{more}", names.join(", "))
}
