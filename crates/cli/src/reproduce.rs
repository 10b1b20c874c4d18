//! `cutline reproduce`: runs a study from the simulation to the report.

use crate::existing::ExistingArgs;
use crate::exit::Failure;
use crate::picture_file;
use crate::program::{COMMIT, VERSION, now, threads};
use crate::progress::Bar;
use crate::study_arg::{StudyArg, StudyParser};
use crate::{interrupt, message, output};
use cutline_report::report::{Claim, ClaimSummary, ClaimVerdict, Claims, Counts};
use cutline_results::ExistingResults;
use cutline_study::{Evaluation, EvaluationEvent, EvaluationOptions, ExperimentChanges, Study, StudyError};
use cutline_text::Printable;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Reproduce a study: simulate its experiments, draw its figures, check its claims
///
/// A study is the evaluation of a paper, a study of the project, or a folder of your own (docs/guide/study.md). Everything is stored under DIR/STUDY: results as Parquet,
/// report.html with every figure beside the paper's statement, figures as SVG, PNG and PDF, and claims.json. The report shows
/// every figure whose results are stored. Results of another version are replaced only with --force.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Study, `all`, or a folder with a study of your own
    #[arg(value_parser = StudyParser)]
    study: StudyArg,
    /// Simulate only the experiments of this figure; allowed with one study, may be repeated
    #[arg(long = "figure", value_name = "N")]
    figures: Vec<u32>,
    #[command(flatten)]
    changes: ChangeArgs,
    /// Number of runs at a time [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Folder of all results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    #[command(flatten)]
    existing: ExistingArgs,
    /// Print the claims as JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// Changes to the experiments.
#[derive(clap::Args)]
pub struct ChangeArgs {
    /// Shorter runs and two seeds, for the shapes of the figures and not for their numbers. Stored under DIR/STUDY-quick
    #[arg(long)]
    quick: bool,
    /// Override a key of every experiment, such as seeds=3 or dumbbell.rate="20 Mbit/s"; may be repeated. Stored under DIR/STUDY-changed
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder of scenario files that are used instead of the program's own where they differ. Stored under DIR/STUDY-changed
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    experiments: PathBuf,
    /// Use the scenario files in the program, not those on disk
    #[arg(long, conflicts_with = "experiments")]
    built_in: bool,
}

impl ChangeArgs {
    /// The changes for these studies. A message names the files that are taken from disk.
    ///
    /// # Errors
    /// When a setting is no pair, or a file cannot be read.
    pub fn changes(&self, studies: &[&Study]) -> Result<ExperimentChanges, Failure> {
        let mut changes = ExperimentChanges::quick(self.quick);
        for pair in &self.set {
            let Some((path, value)) = pair.split_once('=') else {
                return Err(Failure::Usage(format!(
                    "--set {}: expected KEY=VALUE such as seeds=3",
                    Printable(pair)
                )));
            };
            changes.set.push((path.trim().to_owned(), value.trim().to_owned()));
        }
        for study in studies.iter().filter(|_| !self.built_in) {
            let taken =
                changes.take_files(study.scenario_texts(), &self.experiments).map_err(|(name, error)| {
                    Failure::Failed(format!(
                        "{} cannot be read: {error}",
                        Printable(self.experiments.join(name).display())
                    ))
                })?;
            for name in taken {
                message::print(&format!(
                    "{} differs from the one in this program and is used; --built-in uses the program's",
                    Printable(self.experiments.join(name).display())
                ));
            }
        }
        Ok(changes)
    }
}

const EXAMPLES: &str = "Examples:
  cutline reproduce tsq                      the whole evaluation, 10 seeds
  cutline reproduce all                      every study
  cutline reproduce tsq --figure 10          one figure
  cutline reproduce tsq --quick --json       short runs, claims as JSON
  cutline reproduce tsq --set seeds=3        a variant of your own, beside the results of the study
  cutline reproduce tsq --resume             after an interruption
  cutline reproduce examples/study           a study of your own: study.toml, figures.toml, scenarios";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let mut opened = None;
    let studies = args.study.studies(&mut opened)?;
    if studies.len() > 1 && !args.figures.is_empty() {
        return Err(Failure::Usage("--figure is not allowed with `all`: choose one study".to_owned()));
    }
    let cancel = interrupt::cancel_flag("Finished runs are kept: --resume continues.".to_owned())?;
    let options = EvaluationOptions {
        results: args.results.clone(),
        figures: args.figures.clone(),
        changes: args.changes.changes(&studies)?,
        existing: args.existing.or(ExistingResults::Repeat),
        threads: threads(args.jobs),
        version: VERSION,
        commit: COMMIT,
        clock: now,
    };
    // All are checked and locked before the first run.
    let studies = studies.iter().map(|study| study.ready(&options)).collect::<Result<Vec<_>, _>>()?;
    let bar = Bar::new(0, args.quiet);
    let on_event = |event: EvaluationEvent<'_>| {
        let EvaluationEvent::ExperimentStarted { experiment, runs } = event;
        bar.stage(&experiment.id, runs);
    };
    let evaluations: Result<Vec<_>, _> =
        studies.into_iter().map(|study| study.run(&cancel, &on_event, &|news| bar.update(&news))).collect();
    bar.finish();
    show(&evaluations?, args.json)
}

/// Prints the claims. Returns an error if a run failed or is missing.
pub fn show(evaluations: &[Evaluation], json: bool) -> Result<(), Failure> {
    if json {
        let claims = evaluations.iter().flat_map(|evaluation| &evaluation.claims).collect();
        output::print_json(&Claims(claims))?;
    } else {
        output::print_wrapped(&evaluations.iter().map(table).collect::<Vec<_>>().join("\n"))?;
    }
    let missing: BTreeSet<&str> =
        evaluations.iter().flat_map(|evaluation| &evaluation.written.missing_scripts).copied().collect();
    picture_file::warn_of_missing(&missing.into_iter().collect::<Vec<_>>());
    let failed: Vec<&String> = evaluations.iter().flat_map(|evaluation| &evaluation.failed).collect();
    if let [first, others @ ..] = failed.as_slice() {
        return Err(Failure::Failed(format!("{first} (and {} more runs failed)", others.len())));
    }
    if evaluations.iter().any(|evaluation| !evaluation.complete) {
        return Err(Failure::Failed("interrupted: some runs are missing; --resume continues".to_owned()));
    }
    Ok(())
}

fn table(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    for claim in &evaluation.claims {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{}", line(claim));
    }
    let ClaimSummary { statements, variants, checks, expected_wrong, together } =
        ClaimSummary::of(&evaluation.claims);
    let report = Printable(evaluation.written.report.display());
    let _ = writeln!(text, "\nstatements: {}", tally(&statements));
    for (name, counts) in [("variants", &variants), ("checks of the code", &checks)] {
        if counts.all() > 0 {
            let _ = writeln!(text, "{name}: {}", tally(counts));
        }
    }
    if expected_wrong > 0.0 {
        let _ = writeln!(
            text,
            "up to {expected_wrong:.1} verdicts on statements may be wrong by chance; all tests together (Holm): {}",
            tally(&together)
        );
    }
    let _ = writeln!(text, "report: {report}");
    text
}

fn tally(counts: &Counts) -> String {
    format!("{} hold, {} differ, {} are unclear", counts.holds, counts.differs, counts.unclear)
}

fn line(claim: &Claim) -> String {
    let verdict = match claim.holds {
        ClaimVerdict::Holds => "holds  ",
        ClaimVerdict::Differs => "differs",
        ClaimVerdict::Unclear => "unclear",
    };
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    let interval = match (claim.ci_low, claim.ci_high) {
        (Some(low), Some(high)) => format!(" [{low:.3}, {high:.3}]"),
        _ => String::new(),
    };
    let measured = number(claim.measured);
    format!("{verdict}  figure {:>2}  {:<32} {measured}{interval} {}", claim.figure, claim.id, claim.unit)
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Figure(_) => Self::Usage(error.to_string()),
            StudyError::Files(errors) => errors.into(),
            StudyError::Store(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}
