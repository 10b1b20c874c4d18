//! The cost of scenarios: simulates the first point of each file once, with its rows, and prints a line of JSON for each.
//!
//! ```text
//! cargo bench -p cutline-scenario --bench scenarios -- FILE... [KEY=VALUE...]
//! ```
//! `validate/costs.py` runs it under callgrind, for a build before a change and one after it: numbers of instructions do not depend on
//! other work on the machine.

use cutline_scenario::{Scenario, ScenarioFile};
use cutline_sim::StagePlan;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn main() {
    // cargo bench adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (settings, files): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.contains('='));
    for file in files {
        match load(file, &settings) {
            Ok(scenario) => println!("{}", measure(file, &scenario)),
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

fn measure(file: &str, scenario: &Scenario) -> String {
    let in_stages = scenario.network().is_ok_and(|network| StagePlan::new(&network).is_ok());
    let found = scenario.simulate(1, &AtomicBool::new(false)).expect("nobody cancels the run");
    let packets: u64 = found.flows.iter().map(|flow| flow.packets_sent).sum();
    serde_json::json!({"file": file, "in_stages": in_stages, "packets": packets}).to_string()
}
