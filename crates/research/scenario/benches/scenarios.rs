//! The cost of scenarios: simulates the first point of each file once, with its rows, and prints a line of JSON for each.
//!
//! ```text
//! cargo bench -p cutline-scenario --bench scenarios -- FILE... [KEY=VALUE...] [event-loop]
//! ```
//! `validate/costs.py` runs it under callgrind, for a build before a change and one after it: numbers of instructions do not depend on
//! other work on the machine. With the word `event-loop` all networks are simulated event by event.

use cutline_scenario::{Scenario, ScenarioFile};
use cutline_sim::{Simulation, StagePlan};
use cutline_units::{Duration, Instant};
use std::path::Path;

/// Simulated time of each step, as in `cutline run`.
const STEP: Duration = Duration::from_millis(100);

fn main() {
    // cargo bench adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (settings, others): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.contains('='));
    let (engines, files): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|argument| *argument == "event-loop");
    for file in files {
        match load(file, &settings) {
            Ok(scenario) => println!("{}", measure(file, &scenario, engines.is_empty())),
            Err(error) => println!("{}", serde_json::json!({"file": file, "error": error})),
        }
    }
}

/// Returns the first point of a file with other values of these keys.
fn load(file: &str, settings: &[&str]) -> Result<Scenario, String> {
    let mut loaded = ScenarioFile::load(Path::new(file)).map_err(|error| error.to_string())?;
    for setting in settings {
        loaded.set_pair(setting).map_err(|error| error.to_string())?;
    }
    let points = loaded.expand().map_err(|error| error.to_string())?;
    let scenario = points.into_iter().next().expect("a scenario has a point").scenario;
    scenario.check_simulated().map_err(|error| error.to_string())?;
    Ok(scenario)
}

fn measure(file: &str, scenario: &Scenario, may_have_stages: bool) -> String {
    let (network, settings) = (scenario.network_of(1).expect("it was checked"), scenario.settings(1));
    let in_stages = may_have_stages && StagePlan::new(&network).is_ok();
    let simulation = if in_stages {
        Simulation::new(&network, &settings)
    } else {
        Simulation::with_event_loop(&network, &settings)
    };
    let mut simulation = simulation.expect("it was checked");
    let end = Instant::ZERO + scenario.duration;
    while simulation.time() < end {
        simulation.advance((simulation.time() + STEP).min(end));
    }
    let found = scenario.rows(&network, &simulation.finish());
    let packets: u64 = found.flows.iter().map(|flow| flow.packets_sent).sum();
    serde_json::json!({"file": file, "in_stages": in_stages, "packets": packets}).to_string()
}
