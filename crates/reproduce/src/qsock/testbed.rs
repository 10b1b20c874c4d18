//! Runs a case on the testbed: with the real programs where they are installed, otherwise with flows of the generator in their places.

use cutline_lab::routed::{Options, Programs, Signalling, run as run_case};
use cutline_results::RunResult;
use cutline_scenario::Scenario;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// What is added to the version of results, with and without the programs.
pub(crate) const PROGRAMS: &str = "lab with routers and programs";
pub(crate) const STAND_INS: &str = "lab with routers";
/// The folder of built programs, beside the results.
const BUILT: &str = "programs";
/// The folder of pictures, in an experiment's.
pub(crate) const PICTURES: &str = "pictures";

/// Whether all programs are installed.
pub(crate) fn has_programs() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| Programs::missing().is_none())
}

/// The version of the program, taken from the version that is stored with results.
pub(crate) fn program_version(version: &str) -> &str {
    let stripped = version.strip_suffix(PROGRAMS).or_else(|| version.strip_suffix(STAND_INS));
    stripped.unwrap_or(version).trim_end()
}

/// Runs a case once. `folder` is that of the results of its experiment.
pub(crate) fn run(
    scenario: &Scenario,
    seed: u64,
    folder: &Path,
    cancel: &AtomicBool,
) -> Result<RunResult, String> {
    let programs = has_programs().then(|| {
        let programs = Programs::new(&folder.with_file_name(BUILT));
        if seed == scenario.seed { programs.with_pictures(&folder.join(PICTURES)) } else { programs }
    });
    // Gateways ask agents for their reservations. Without gateways they are installed.
    let options = Options { programs, signalling: Signalling::Rsvp, ..Options::default() };
    run_case(scenario, seed, &options, cancel).map_err(|error| error.to_string())
}
