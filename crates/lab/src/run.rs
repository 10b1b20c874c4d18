//! One run of a scenario.

use crate::LabError;
use crate::hosts::{Hosts, INTERFACES, MOST_FLOWS};
use crate::links::Links;
use crate::timing::{Bounds, Busy};
use crate::tuning::Stack;
use cutline_linux::namespace::sweep;
use cutline_linux::now;
use cutline_scenario::Scenario;
use cutline_scenario::results::RunResult;
use cutline_units::{Duration, HintBits};
use std::sync::atomic::AtomicBool;

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Which of Linux's TCP.
    pub stack: Stack,
    /// What timing is good enough.
    pub bounds: Bounds,
}

/// From setting up to the scenario's beginning: the hosts' threads have started by then.
const LEAD: Duration = Duration::from_millis(100);

/// Runs a scenario once, in real time. `cancel`, set from elsewhere, ends it early.
///
/// # Errors
/// When the scenario is not for the laboratory, the process may not, or it was interrupted.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    cancel: &AtomicBool,
) -> Result<RunResult, LabError> {
    check(scenario)?;
    sweep()?;
    let mut network = scenario.network()?;
    network.put_ends_outside();
    let hosts = Hosts::create(network.flows(), options.stack)?;
    let settings = scenario.settings(seed);
    let zero = now() + LEAD;
    let links = hosts.network.within(|| Links::new(&network, &settings, INTERFACES, zero))??;
    let before = Busy::now();
    let (outcome, clocked) = links.run(cancel)?;
    let mut result = scenario.rows(&network, &outcome);
    let busy = before.and_then(|before| Busy::now()?.share_since(before));
    result.timing.push(clocked.row(&options.bounds, scenario.duration, busy, 0));
    Ok(result)
}

/// Refuses what only a simulation has.
fn check(scenario: &Scenario) -> Result<(), LabError> {
    if let Some(group) = scenario.flows.iter().find(|group| group.adaptive.is_some()) {
        return Err(LabError::OnlySimulated {
            flow: group.name.clone(),
            what: "a hint that adapts",
            instead: "give it a level",
        });
    }
    let count = scenario.flow_count();
    if count > MOST_FLOWS as u64 {
        return Err(LabError::TooMany { count, most: MOST_FLOWS });
    }
    if scenario.hint_bits.levels() > HintBits::PAPER.levels() {
        return Err(LabError::WideHints { bits: scenario.hint_bits.get() });
    }
    Ok(())
}
