//! `cutline lab`: scenarios with real packets.

use crate::existing::ExistingArgs;
use crate::exit::Failure;
use crate::program::VERSION;
use crate::progress::Bar;
use crate::run::{self, Work, kept};
use crate::scenario_args::ScenarioArgs;
use crate::{interrupt, output};
use clap::{Subcommand, ValueEnum};
use cutline_config::quantity;
use cutline_lab::{Bounds, Options, Stack};
use cutline_results::{Existing, TimingRow};
use cutline_scenario::Scenario;
use cutline_scenario::runner::{self, Job};
use cutline_sys::namespace::sweep;
use cutline_units::Duration;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Run scenarios with real packets and the kernel's own TCP
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<RunArgs>),
    /// Remove what laboratories that were killed have left behind; every `lab run` begins with that, too
    Clean,
}

/// Run a scenario in network namespaces, in real time
///
/// Takes the scenario files of `cutline run`. Sources and sinks are the kernel's own TCP and UDP sockets, in a namespace
/// on either side; every queue and link between them is the simulator's code, in real time, with the delay hint in
/// each packet's DSCP field. What is measured goes into the same tables, so that `cutline compare` can put both side by
/// side (docs/guide/lab.md). Measurements that are stored already are not repeated: --resume adds what is missing, --force
/// measures anew. Needs root.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// How many runs at a time: each takes as long as its scenario says
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// The folder of all results
    #[arg(long, value_name = "DIR", default_value = "results/lab")]
    results: PathBuf,
    /// Store nothing
    #[arg(long, conflicts_with_all = ["results", "resume", "force"])]
    no_store: bool,
    #[command(flatten)]
    existing: ExistingArgs,
    /// Which of Linux's TCP
    #[arg(long, value_enum, default_value = "stock")]
    tcp: Tcp,
    /// The largest 99th percentile of the departure error with which a run's timing is valid
    #[arg(long, value_name = "TIME", default_value = "1 ms", value_parser = bound)]
    departure_bound: Duration,
    /// End with 1 if the timing of a run is not valid
    #[arg(long)]
    strict: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "Examples:
  sudo cutline lab run examples/dumbbell.toml
  cutline run examples/dumbbell.toml && cutline compare results/dumbbell results/lab/dumbbell
  sudo cutline lab run experiments/tsq/audio.toml --seeds 2 --set duration=\"60 s\" --tcp classic";

#[derive(Clone, Copy, ValueEnum)]
enum Tcp {
    /// As the kernel has it
    Stock,
    /// Without RACK, tail loss probes, F-RTO and D-SACK: nearer to what the papers had
    Classic,
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Run(args) => run(args),
        Command::Clean => clean(),
    }
}

fn clean() -> Result<(), Failure> {
    let gone = sweep()?;
    if gone.is_empty() {
        return output::print("nothing was left behind\n");
    }
    output::print(&format!("removed the namespaces {}\n", gone.join(", ")))
}

fn run(args: &RunArgs) -> Result<(), Failure> {
    let (file, points) = args.scenario.load()?;
    for point in &points {
        cutline_lab::check(&point.scenario)
            .map_err(|error| Failure::Usage(format!("{}: {error}", point.label())))?;
    }
    let how = args.options();
    let version = format!("{VERSION} {}", how.stack.label());
    let jobs = runner::plan(&points, &version);
    let cancel = interrupt::cancel_flag(kept(args.no_store))?;
    let bar = Bar::new(jobs.len(), args.quiet);
    if !args.quiet {
        anstream::eprintln!("{}", forecast(&jobs, args.jobs));
    }
    let options =
        runner::Options { threads: args.jobs, cancel: &cancel, progress: &|news| bar.update(&news) };
    let in_lab = |scenario: &Scenario, seed| {
        cutline_lab::run(scenario, seed, &how, &cancel).map_err(|error| error.to_string())
    };
    let work = Work {
        file: &file,
        points: &points,
        jobs: &jobs,
        options: &options,
        version: &version,
        run: &in_lab,
    };
    let store = (!args.no_store).then_some((&*args.results, args.existing.or(Existing::Refuse)));
    let outcome = work.execute(store)?;
    bar.finish();
    run::print(&points, &outcome, args.json)?;
    let bad = warn(&outcome.timing, !args.no_store);
    outcome.verdict(jobs.len())?;
    if args.strict && bad > 0 {
        return Err(Failure::Failed(format!("the timing of {bad} of {} runs is not valid", jobs.len())));
    }
    Ok(())
}

impl RunArgs {
    fn options(&self) -> Options {
        let stack = match self.tcp {
            Tcp::Stock => Stack::Stock,
            Tcp::Classic => Stack::Classic,
        };
        Options { stack, bounds: Bounds { departure: self.departure_bound, ..Bounds::default() } }
    }
}

/// How long it will take: real time.
fn forecast(jobs: &[Job<'_>], at_a_time: NonZeroUsize) -> String {
    let seconds: f64 = jobs.iter().map(|job| job.scenario.duration.as_secs_f64()).sum();
    let minutes = seconds / 60.0 / at_a_time.get() as f64;
    format!("{} runs in real time: about {minutes:.1} minutes", jobs.len())
}

/// Says which runs have an invalid timing, and what to do if they are stored. Returns their number.
fn warn(timing: &[TimingRow], are_stored: bool) -> usize {
    let bad = timing.iter().filter(|row| !row.timing_ok);
    for row in bad.clone() {
        anstream::eprintln!("warning: {} with seed {}: {}", row.point, row.seed, row.problem);
    }
    let count = bad.count();
    if count > 0 && are_stored {
        anstream::eprintln!("the same command with --resume runs them again: {count} of {}", timing.len());
    }
    count
}

fn bound(text: &str) -> Result<Duration, String> {
    quantity::duration(text)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a time such as 1 ms".to_owned())
}
