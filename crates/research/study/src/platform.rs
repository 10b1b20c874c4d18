//! Platforms of experiments: the simulator, or any that another crate provides.

use cutline_results::{ExistingResults, RunResult};
use cutline_scenario::Scenario;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// One run of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Run<'r> {
    /// The point of the sweep.
    pub scenario: &'r Scenario,
    /// The seed.
    pub seed: u64,
    /// The folder of the experiment's results.
    pub folder: &'r Path,
    /// Becomes true when the run shall stop early.
    pub cancel: &'r AtomicBool,
}

/// Runs scenarios. `study.toml` names the platform of an experiment.
pub trait Platform: fmt::Debug + Sync {
    /// Returns the name in `study.toml`.
    fn name(&self) -> &str;

    /// Returns the suffix of the version that is stored with results, so that results of several platforms
    /// are never mistaken for each other. Empty for the simulator.
    fn label(&self) -> &str;

    /// The version of the program, taken from the version that is stored with results.
    fn program_version<'v>(&self, version: &'v str) -> &'v str {
        version.strip_suffix(self.label()).unwrap_or(version).trim_end()
    }

    /// Returns whether runs take real time. Their results are repeated only on request.
    fn is_real_time(&self) -> bool {
        false
    }

    /// Checks whether this process can run anything there.
    ///
    /// # Errors
    /// Missing requirement, and its remedy.
    fn permitted(&self) -> Result<(), String> {
        Ok(())
    }

    /// Runs a scenario once.
    ///
    /// # Errors
    /// Why the run failed.
    fn run(&self, run: Run<'_>) -> Result<RunResult, String>;
}

/// The simulator.
#[derive(Clone, Copy, Debug)]
pub struct Simulator;

impl Platform for Simulator {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn label(&self) -> &'static str {
        ""
    }

    fn run(&self, run: Run<'_>) -> Result<RunResult, String> {
        run.scenario.simulate(run.seed, run.cancel).map_err(|error| error.to_string())
    }
}

/// The version that is stored with results of a platform.
pub(crate) fn version_on(platform: &dyn Platform, version: &str) -> String {
    format!("{version} {}", platform.label()).trim_end().to_owned()
}

/// Returns the treatment of existing results of a platform. Measurements in real time are only repeated on
/// request.
pub(crate) fn existing_on(platform: &dyn Platform, existing: ExistingResults) -> ExistingResults {
    match existing {
        ExistingResults::Repeat if platform.is_real_time() => ExistingResults::Refuse,
        _ => existing,
    }
}
