//! The arguments that choose a scenario: a file and overrides.

use cutline_config::Errors;
use cutline_scenario::{ScenarioFile, SweepPoint};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct ScenarioArgs {
    /// Scenario file (docs/guide/scenario.md)
    scenario: PathBuf,
    /// Override a key of the scenario, such as flow.audio.hint=6 or dumbbell.rate="15 Mbit/s"; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// First seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of replications, with the seeds SEED, SEED + 1, ...
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
}

impl ScenarioArgs {
    /// Returns the file with its overrides, and the points of its sweep.
    ///
    /// # Errors
    /// All errors of the scenario.
    pub fn load(&self) -> Result<(ScenarioFile, Vec<SweepPoint>), Errors> {
        let mut file = ScenarioFile::load(&self.scenario)?;
        for pair in &self.set {
            file.set_pair(pair)?;
        }
        for (key, value) in [("seed", self.seed), ("seeds", self.seeds)] {
            if let Some(value) = value {
                file.set(key, &value.to_string())?;
            }
        }
        let points = file.expand()?;
        Ok((file, points))
    }
}
