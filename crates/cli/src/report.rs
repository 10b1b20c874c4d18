//! `cutline report`: figures and claims from stored results.

use crate::exit::Failure;
use crate::reproduce::{ChangeArgs, show};
use crate::study_arg::{StudyArg, StudyParser};
use std::path::PathBuf;

/// Draw a study's figures and check its claims from stored results, without a simulation
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Study, `all`, or a folder with a study of your own
    #[arg(value_parser = StudyParser)]
    study: StudyArg,
    /// Folder of all results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    #[command(flatten)]
    changes: ChangeArgs,
    /// Print the claims as JSON instead of a table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Example:
  cutline report tsq --results results";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let mut opened = None;
    let studies = args.study.studies(&mut opened)?;
    let changes = args.changes.changes(&studies)?;
    let evaluations: Result<Vec<_>, _> =
        studies.iter().map(|study| study.report(&args.results, &changes)).collect();
    show(&evaluations?, args.json)
}
