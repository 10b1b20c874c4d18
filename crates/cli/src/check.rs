//! `cutline check`: prints the runs of a scenario, or all of its errors.

use crate::exit::Failure;
use crate::scenario_args::ScenarioArgs;
use crate::{message, output};
use cutline_scenario::check::{self, ErrorsDocument, ScenarioDocument};
use cutline_scenario::{Scenario, SweepPoint};
use cutline_text::Printable;
use std::fmt::Display;

/// Check a scenario: print its runs, or all of its errors
///
/// Refuses the same files as `cutline run`, with the same messages. `cutline lab check` does so for the laboratory.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print one JSON document instead of text. For a scenario with errors it lists the errors, and the exit code is 2
    #[arg(long)]
    json: bool,
    /// Print the flows of the first point with its first seed, as comma-separated values: starts, sizes and paths, for other simulators
    #[arg(long, conflicts_with = "json")]
    flows: bool,
}

const EXAMPLES: &str = "Examples:
  cutline check examples/dumbbell.toml
  cutline check examples/dumbbell.toml --set flow.bulk.count=50
  cutline check experiments/tsq/audio.toml --json | jq .points
  cutline check examples/fat-tree.toml --flows --set seed=2 > flows.csv";

pub fn execute(args: &Args) -> Result<(), Failure> {
    args.execute(Scenario::check_simulated, check::describe_simulated, check::document_simulated)
}

impl Args {
    /// Prints the runs that would be made, if `supports` accepts every point: in the words of `describe`, or as the document of `document`.
    pub fn execute<E: Display>(
        &self,
        supports: impl Fn(&Scenario) -> Result<(), E>,
        describe: impl Fn(&[SweepPoint]) -> String,
        document: impl Fn(&[SweepPoint]) -> ScenarioDocument,
    ) -> Result<(), Failure> {
        let (_, points) = match self.scenario.load() {
            Ok(loaded) => loaded,
            Err(errors) => {
                if self.json {
                    output::print_json(&ErrorsDocument::from(&errors))?;
                }
                return Err(errors.into());
            }
        };
        check_points(&points, supports)?;
        if self.flows {
            let table = check::flows_table(&points[0].scenario);
            output::print(&table.map_err(|error| Failure::Usage(error.to_string()))?)
        } else if self.json {
            output::print_json(&document(&points))
        } else {
            output::print_wrapped(&describe(&points))
        }
    }
}

/// Checks that `supports` accepts every point, and prints the warnings about them. The commands that run scenarios call it before the
/// first run.
///
/// # Errors
/// The first point that is refused, and why.
pub fn check_points<E: Display>(
    points: &[SweepPoint],
    supports: impl Fn(&Scenario) -> Result<(), E>,
) -> Result<(), Failure> {
    for warning in check::check_points(points, supports).map_err(Failure::Usage)? {
        message::print(&format!("warning: {}", Printable(warning)));
    }
    Ok(())
}
