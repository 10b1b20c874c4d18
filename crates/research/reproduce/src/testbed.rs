//! The laboratory with routers: with the real programs where they are installed, otherwise with flows of the generator in their places.

use cutline_lab::routed::{LabOptions, Programs, Signalling, run as run_case};
use cutline_results::RunResult;
use cutline_study::{Platform, Run};
use std::sync::OnceLock;

/// Suffixes of the version of results, with and without the programs.
pub(crate) const PROGRAMS: &str = "lab with routers and programs";
const GENERATORS: &str = "lab with routers";
/// The folder of built programs, beside the results.
const BUILT: &str = "programs";
/// The folder of pictures, in an experiment's.
pub(crate) const PICTURES: &str = "pictures";

/// The laboratory with routers.
#[derive(Debug)]
pub(crate) struct Testbed;

impl Platform for Testbed {
    fn name(&self) -> &'static str {
        "testbed"
    }

    fn label(&self) -> &'static str {
        if has_programs() { PROGRAMS } else { GENERATORS }
    }

    fn program_version<'v>(&self, version: &'v str) -> &'v str {
        let stripped = version.strip_suffix(PROGRAMS).or_else(|| version.strip_suffix(GENERATORS));
        stripped.unwrap_or(version).trim_end()
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn permitted(&self) -> Result<(), String> {
        cutline_lab::permitted().map_err(|error| error.to_string())
    }

    fn run(&self, run: Run<'_>) -> Result<RunResult, String> {
        let Run { scenario, seed, folder, cancel } = run;
        let programs = has_programs().then(|| {
            let programs = Programs::new(&folder.with_file_name(BUILT));
            if seed == scenario.seed { programs.with_pictures(&folder.join(PICTURES)) } else { programs }
        });
        // Gateways ask agents for their reservations. Without gateways they are installed.
        let options = LabOptions { programs, signalling: Signalling::Rsvp, ..LabOptions::default() };
        run_case(scenario, seed, &options, cancel).map_err(|error| error.to_string())
    }
}

/// Returns whether all programs are installed.
fn has_programs() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| Programs::missing().is_none())
}
