//! `cutline run`: simulates every point of a scenario's sweep with every seed, on all cores.

mod json;
mod outcome;
mod tables;
mod traces;
mod watch;

use crate::check::check_points;
use crate::existing::ExistingArgs;
use crate::exit::Failure;
use crate::program::{PRODUCER, VERSION, threads};
use crate::progress::Bar;
use crate::scenario_args::ScenarioArgs;
use crate::{interrupt, message, output};
use cutline_results::ExistingResults;
use cutline_scenario::execution::Execution;
use cutline_scenario::runner::{self, RunOptions};
use cutline_scenario::{Scenario, SweepPoint, cores_of_run, saturated_distributions, threads_for};
use cutline_sim::Network;
use cutline_text::Printable;
pub use outcome::Outcome;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use traces::TraceArgs;
pub use traces::refuse_several_runs;

/// Simulate a scenario: every point of its sweep with every seed, on all cores
///
/// Stores Parquet tables and a summary under DIR/NAME, where NAME is the name of the scenario, and prints means over the
/// seeds with 95 % confidence intervals. The same scenario and seeds give the same bytes with any number of jobs. Stored
/// results of another scenario, other seeds or another version, and files of --pcap and --flent, are replaced only with --force.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Number of runs at a time [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Number of threads of each run [default: one, or with 10,000 flows and more the cores that --jobs leaves]
    ///
    /// The results are the same with any number. A run has at most one thread for each stage, and a single one if its network is
    /// simulated event by event (`cutline check` shows the engine).
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Folder of all results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Do not store the results
    #[arg(long, conflicts_with_all = ["results", "resume"])]
    no_store: bool,
    #[command(flatten)]
    existing: ExistingArgs,
    #[command(flatten)]
    traces: TraceArgs,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "Examples:
  cutline run examples/dumbbell.toml
  cutline run examples/two-bottlenecks.toml --seeds 1 --watch
  cutline run examples/dumbbell.toml --seeds 10 --set dumbbell.queue.tsq=false
  cutline run examples/two-bottlenecks.toml --no-store --json | jq '.runs[0].queues'
  cutline run experiments/tsq/audio.toml --resume
  cutline run examples/two-bottlenecks.toml --seeds 1 --pcap packets.pcapng --flent series.flent.gz";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let (file, points) = args.scenario.load()?;
    check_points(&points, Scenario::check_simulated)?;
    let jobs = runner::plan(&points, VERSION);
    let traces = args.traces.open(&points, args.existing.replaces())?;
    let cancel = interrupt::cancel_flag(kept(args.no_store))?;
    let bar = Bar::of_simulated_time(&jobs, args.quiet || args.traces.watches());
    let (at_once, free) = threads_of_runs(threads(None), args.jobs, args.threads, jobs.len());
    let options = RunOptions { threads: at_once, cancel: &cancel, progress: &|news| bar.update(&news) };
    let of_run = |network: &Network| args.threads.unwrap_or_else(|| threads_for(network, free));
    let simulate = |scenario: &Scenario, seed| {
        traces.simulate(scenario, seed, of_run, &cancel, &|passed| bar.simulated(passed))
    };
    let execution = Execution {
        file: &file,
        points: &points,
        jobs: &jobs,
        options: &options,
        producer: PRODUCER,
        simulate: &simulate,
    };
    let store = (!args.no_store).then_some((&*args.results, args.existing.or(ExistingResults::Repeat)));
    let outcome = Outcome::read(execution.execute(store)?)?;
    bar.finish();
    print(&points, &outcome, args.json)?;
    outcome.verdict(jobs.len())
}

/// Returns the number of runs at a time, and the number of cores that are free for each of them.
fn threads_of_runs(
    cores: NonZeroUsize,
    jobs: Option<NonZeroUsize>,
    threads: Option<NonZeroUsize>,
    runs: usize,
) -> (NonZeroUsize, NonZeroUsize) {
    let at_once =
        jobs.unwrap_or_else(|| cores_of_run(cores, threads.unwrap_or(NonZeroUsize::MIN), usize::MAX));
    (at_once, cores_of_run(cores, at_once, runs))
}

/// Returns a sentence about the runs that are finished when the command is interrupted.
pub fn kept(no_store: bool) -> String {
    let kept =
        if no_store { "Finished runs are shown." } else { "Finished runs are kept: --resume continues." };
    kept.to_owned()
}

/// Prints the results as one JSON document or as tables, and warnings of results that lack values.
pub fn print(points: &[SweepPoint], outcome: &Outcome, as_json: bool) -> Result<(), Failure> {
    for warning in saturated_distributions(&outcome.distributions) {
        message::print(&format!("warning: {}", Printable(warning)));
    }
    if as_json {
        output::print_json(&json::document(points, outcome))
    } else {
        output::print_wrapped(&tables::render(points, outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_divided_between_runs_and_their_threads() {
        let number = |number| NonZeroUsize::new(number).unwrap();
        let of = |jobs: Option<usize>, threads: Option<usize>, runs| {
            let (at_once, free) = threads_of_runs(number(8), jobs.map(number), threads.map(number), runs);
            (at_once.get(), free.get())
        };
        assert_eq!(of(None, None, 100), (8, 1));
        assert_eq!(of(None, None, 1), (8, 8), "one run has all cores");
        assert_eq!(of(None, None, 3), (8, 2));
        assert_eq!(of(Some(2), None, 100), (2, 4));
        assert_eq!(of(None, Some(4), 100), (2, 4));
        assert_eq!(of(None, Some(16), 100), (1, 8), "at least one run");
        assert_eq!(of(Some(3), Some(16), 2), (3, 4));
    }
}
