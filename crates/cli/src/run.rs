//! `cutline run`: every point of a scenario's sweep with every seed, on all cores.

mod json;
mod tables;
mod traces;

use crate::exit::Failure;
use crate::progress::Bar;
use crate::scenario_args::ScenarioArgs;
use crate::{interrupt, output};
use cutline_scenario::results::{FlowRow, QueueRow, RunResult, Store, Summary};
use cutline_scenario::runner::{self, Job, Options};
use cutline_scenario::{Scenario, ScenarioFile, SweepPoint};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use traces::{TraceArgs, Traces};

/// The version that results are stamped with.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Simulate a scenario: every point of its sweep with every seed, on all cores
///
/// Stores Parquet tables and a summary under DIR/NAME, NAME being the scenario's, and prints means over the seeds with
/// 95 % confidence intervals. The same scenario and seeds give the same bytes at any number of jobs.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// How many runs at a time [default: one a core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// The folder of all results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Store nothing
    #[arg(long, conflicts_with_all = ["results", "resume"])]
    no_store: bool,
    /// Go on where an earlier run stopped: what is stored and would come out the same is not run again
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    traces: TraceArgs,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "Examples:
  cutline run examples/dumbbell.toml
  cutline run examples/dumbbell.toml --seeds 10 --set dumbbell.queue.tsq=false
  cutline run examples/two-bottlenecks.toml --no-store --json | jq '.runs[0].queues'
  cutline run experiments/tsq/audio.toml --resume
  cutline run examples/two-bottlenecks.toml --seeds 1 --pcap packets.pcapng --flent series.flent.gz";

/// What was measured, and what went wrong.
struct Outcome {
    flows: Vec<FlowRow>,
    queues: Vec<QueueRow>,
    failed: usize,
    missing: usize,
    /// Where it is stored.
    folder: Option<PathBuf>,
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    let (file, points) = args.scenario.load()?;
    let jobs = runner::plan(&points, VERSION);
    let traces = args.traces.open(&points)?;
    let cancel = interrupt::cancel_flag(kept(args.no_store))?;
    let bar = Bar::new(jobs.len(), args.quiet);
    let options =
        Options { threads: threads(args.jobs), cancel: &cancel, progress: &|news| bar.update(&news) };
    let work = Work { file: &file, points: &points, jobs: &jobs, options: &options, traces: &traces };
    let outcome = if args.no_store { work.in_memory() } else { work.stored(args)? };
    bar.finish();
    if args.json {
        output::print_json(&json::document(&points, &outcome))?;
    } else {
        output::print(&tables::render(&points, &outcome))?;
    }
    outcome.verdict(jobs.len())
}

/// What an interruption leaves.
fn kept(no_store: bool) -> String {
    let kept = if no_store {
        "What is finished is shown."
    } else {
        "What is finished is kept: --resume goes on from there."
    };
    kept.to_owned()
}

/// As many as were asked for, else one a core.
pub fn threads(jobs: Option<NonZeroUsize>) -> NonZeroUsize {
    jobs.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}

/// All that is needed to run.
struct Work<'w> {
    file: &'w ScenarioFile,
    points: &'w [SweepPoint],
    jobs: &'w [Job<'w>],
    options: &'w Options<'w>,
    traces: &'w Traces,
}

impl Work<'_> {
    fn simulate(&self, scenario: &Scenario, seed: u64) -> Result<RunResult, String> {
        self.traces.simulate(scenario, seed, self.options.cancel)
    }

    fn in_memory(&self) -> Outcome {
        let results =
            runner::run_in_memory(self.jobs, self.options, |scenario, seed| self.simulate(scenario, seed));
        let mut outcome =
            Outcome { flows: Vec::new(), queues: Vec::new(), failed: 0, missing: 0, folder: None };
        for result in results {
            match result {
                Some(Ok(result)) => {
                    outcome.flows.extend(result.flows);
                    outcome.queues.extend(result.queues);
                }
                Some(Err(_)) => outcome.failed += 1,
                None => outcome.missing += 1,
            }
        }
        outcome
    }

    fn stored(&self, args: &Args) -> Result<Outcome, Failure> {
        let folder = args.results.join(&self.points[0].scenario.name);
        let store = if args.resume { Store::resume(&folder) } else { Store::create(&folder) }?;
        let summary = Summary::new(self.file, self.points, VERSION, now());
        let simulate = |scenario: &Scenario, seed| self.simulate(scenario, seed);
        let endings = runner::run_and_store(self.jobs, &store, self.options, simulate)?;
        let summary = runner::conclude(summary, self.points, self.jobs, &endings, &store, now())?;
        let (finished, failed) = (summary.finished.len(), summary.failed.len());
        let missing = self.jobs.len() - finished - failed;
        Ok(Outcome { flows: store.read()?, queues: store.read()?, failed, missing, folder: Some(folder) })
    }
}

impl Outcome {
    /// Whether everything went well.
    fn verdict(&self, total: usize) -> Result<(), Failure> {
        let resume =
            self.folder.as_deref().map_or("", |_: &Path| "; the same command with --resume runs the rest");
        if self.missing > 0 {
            let why =
                format!("interrupted: {} of {total} runs are missing{resume}", self.missing + self.failed);
            return Err(Failure::Failed(why));
        }
        if self.failed > 0 {
            let why = format!("{} of {total} runs failed{resume}", self.failed);
            return Err(Failure::Failed(why));
        }
        Ok(())
    }
}

/// The time, for the summary.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
