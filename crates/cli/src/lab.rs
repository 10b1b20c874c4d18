//! `cutline lab`: runs scenarios with real packets.

use crate::arguments::duration;
use crate::check::check_points;
use crate::existing::ExistingArgs;
use crate::exit::Failure;
use crate::program::{PRODUCER, VERSION};
use crate::progress::Bar;
use crate::run::{self, Outcome, kept, refuse_several_runs};
use crate::scenario_args::ScenarioArgs;
use crate::table::number;
use crate::{check, interrupt, message, output};
use clap::{Subcommand, ValueEnum};
use cutline_lab::{
    Bounds, ExternalProgram, LabError, LabOptions, NetworkSide, ProgramHost, Shell, Stack, Traffic,
};
use cutline_results::{ExistingResults, TimingRow};
use cutline_scenario::Scenario;
use cutline_scenario::check as scenario_check;
use cutline_scenario::execution::{Execution, Producer};
use cutline_scenario::runner::{self, Job};
use cutline_sys::namespace::sweep;
use cutline_text::Printable;
use cutline_units::Duration;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process;

/// Run scenarios with real packets and the kernel's TCP
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<RunArgs>),
    Shell(Box<ShellArgs>),
    /// Check a scenario: print the runs that `lab run` would make, or all of its errors
    ///
    /// Refuses the same files as `cutline lab run`, with the same messages. Root is not required.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(check::Args),
    /// Remove the namespaces of laboratories that were killed. Every `lab run` does that first, too
    Clean,
}

/// Run a scenario in network namespaces, in real time
///
/// Accepts the scenario files of `cutline run`. Sources and sinks are TCP and UDP sockets of the kernel, in one namespace
/// per side. The queues and links between them are the simulator's code in real time, with the delay hint in the DSCP
/// field of each packet. The results have the same tables, so `cutline compare` can compare both (docs/guide/lab.md).
/// Stored measurements are not repeated: --resume adds the missing ones, --force measures again. Requires root.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Number of runs at a time; each takes the duration of its scenario
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// Run a program in the place of a flow over UDP or TFRC, from the flow's start to its end, as for sh -c; may be repeated
    ///
    /// `CUTLINE_OTHER` is the address of the flow's sink, which is in the namespace `CUTLINE_OTHER_NAMESPACE`. `CUTLINE_ADDRESS`,
    /// `CUTLINE_SEED` and `CUTLINE_SECONDS`, the time until the program is ended, are set, too. The output of the program goes to
    /// stderr (docs/guide/lab.md).
    #[arg(long, value_name = "FLOW=COMMAND", value_parser = external_program)]
    exec: Vec<ExternalProgram>,
    /// Folder of all results
    #[arg(long, value_name = "DIR", default_value = "results/lab")]
    results: PathBuf,
    /// Do not store the results
    #[arg(long, conflicts_with_all = ["results", "resume", "force"])]
    no_store: bool,
    #[command(flatten)]
    existing: ExistingArgs,
    /// Variant of Linux's TCP
    #[arg(long, value_enum, default_value = "stock")]
    tcp: Tcp,
    /// Upper bound of the 99th percentile of the departure error; above it, the timing of a run is not valid
    #[arg(long, value_name = "TIME", default_value = "1 ms", value_parser = duration)]
    departure_bound: Duration,
    /// Exit with code 1 if the timing of a run is not valid
    #[arg(long)]
    strict: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "Examples:
  sudo cutline lab run examples/dumbbell.toml
  cutline run examples/dumbbell.toml && cutline compare results/dumbbell results/lab/dumbbell
  sudo cutline lab run experiments/tsq/audio.toml --seeds 2 --set duration=\"60 s\" --tcp classic
  sudo cutline lab run examples/two-bottlenecks.toml --exec 'conference=ping -q -i 0.02 $CUTLINE_OTHER'";

/// Open a shell, or run a command, in the network of a scenario
///
/// The program runs on the host where the scenario's first flow begins, in a network namespace. Its traffic with
/// programs at the other end crosses the links and queues of the scenario in real time, beside the scenario's flows
/// (docs/guide/lab.md). `CUTLINE_ADDRESS`,
/// `CUTLINE_OTHER` and `CUTLINE_OTHER_NAMESPACE` are set for it. The exit code is that of the program. Requires root.
#[derive(clap::Args)]
#[command(after_help = SHELL_EXAMPLES)]
struct ShellArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// End of the network where the program runs
    #[arg(long, value_enum, default_value = "sources")]
    at: End,
    /// Let the scenario's flows send nothing
    #[arg(long)]
    alone: bool,
    /// Longest time; then the program is killed
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    limit: Duration,
    /// Variant of Linux's TCP
    #[arg(long, value_enum, default_value = "stock")]
    tcp: Tcp,
    /// Do not print where the program runs
    #[arg(long, short)]
    quiet: bool,
    /// Program and its arguments [default: $SHELL, or /bin/sh]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const SHELL_EXAMPLES: &str = "Examples:
  sudo cutline lab shell examples/dumbbell.toml --set sweep={}
  sudo cutline lab shell examples/dumbbell.toml --set sweep={} --alone -- sh -c 'ping -c 3 $CUTLINE_OTHER'
  sudo cutline lab shell examples/dumbbell.toml --set sweep={} --at sinks -- iperf3 -s";

const CHECK_EXAMPLES: &str = "Examples:
  cutline lab check examples/dumbbell.toml
  cutline lab check experiments/tsq/audio.toml --json | jq .points";

#[derive(Clone, Copy, ValueEnum)]
enum Tcp {
    /// The defaults of the kernel
    Stock,
    /// Without RACK, tail loss probes, F-RTO and D-SACK: closer to the TCP of the papers
    Classic,
}

/// An end of the network.
#[derive(Clone, Copy, ValueEnum)]
enum End {
    /// The side from which flows send data
    Sources,
    /// The side that receives the data
    Sinks,
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Run(args) => run(args),
        Command::Shell(args) => shell(args),
        Command::Check(args) => {
            args.execute(cutline_lab::check, scenario_check::describe, scenario_check::document)
        }
        Command::Clean => clean(),
    }
}

fn clean() -> Result<(), Failure> {
    let gone = sweep()?;
    if gone.is_empty() {
        return output::print("no namespaces were left behind\n");
    }
    output::print(&format!("removed the namespaces {}\n", gone.join(", ")))
}

fn run(args: &RunArgs) -> Result<(), Failure> {
    let (file, points) = args.scenario.load()?;
    let how = args.options();
    check_points(&points, |scenario| {
        cutline_lab::check_with(scenario, &how.programs).map_err(|error| error.to_string())
    })?;
    cutline_lab::permitted()?;
    let version = how.version(VERSION);
    let jobs = runner::plan(&points, &version);
    let cancel = interrupt::cancel_flag(kept(args.no_store))?;
    let bar = Bar::new(jobs.len(), args.quiet);
    if !args.quiet {
        message::print(&forecast(&jobs, args.jobs));
    }
    let options =
        runner::RunOptions { threads: args.jobs, cancel: &cancel, progress: &|news| bar.update(&news) };
    let in_lab = |scenario: &Scenario, seed| {
        cutline_lab::run(scenario, seed, &how, &cancel).map_err(|error| error.to_string())
    };
    let execution = Execution {
        file: &file,
        points: &points,
        jobs: &jobs,
        options: &options,
        producer: Producer { version: &version, ..PRODUCER },
        simulate: &in_lab,
    };
    let store = (!args.no_store).then_some((&*args.results, args.existing.or(ExistingResults::Refuse)));
    let outcome = Outcome::read(execution.execute(store)?)?;
    bar.finish();
    run::print(&points, &outcome, args.json)?;
    let bad = warn(&outcome.timing, !args.no_store);
    outcome.verdict(jobs.len())?;
    if args.strict && bad > 0 {
        return Err(Failure::Failed(format!("the timing of {bad} of {} runs is not valid", jobs.len())));
    }
    Ok(())
}

fn shell(args: &ShellArgs) -> Result<(), Failure> {
    let (_, points) = args.scenario.load()?;
    check_points(&points, cutline_lab::check)?;
    refuse_several_runs("a shell", &points, 1)?;
    cutline_lab::permitted()?;
    let side = match args.at {
        End::Sources => NetworkSide::Sources,
        End::Sinks => NetworkSide::Sinks,
    };
    let options = Shell { side, alone: args.alone, limit: args.limit, stack: args.tcp.stack() };
    let scenario = &points[0].scenario;
    let command = |host: &ProgramHost| {
        if !args.quiet {
            message::print(&welcome(scenario, args.alone, host));
        }
        let usual = || std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let (program, arguments) = match args.command.split_first() {
            Some((program, arguments)) => (program.clone(), arguments),
            None => (usual(), &[][..]),
        };
        let mut command = process::Command::new(program);
        command.args(arguments).env("CUTLINE_ADDRESS", host.address.to_string());
        command.env("CUTLINE_OTHER", host.other.to_string());
        command.env("CUTLINE_OTHER_NAMESPACE", &host.other_namespace);
        command
    };
    let ended = cutline_lab::shell(scenario, &options, command)?;
    if !args.quiet {
        message::print(&met(&ended.traffic));
    }
    if !ended.timing.timing_ok {
        message::print(&format!("warning: the network's timing was not valid: {}", ended.timing.problem));
    }
    if ended.is_killed {
        return Err(Failure::Failed(format!(
            "the program was killed after {}; --limit gives it more time",
            args.limit
        )));
    }
    match ended.status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::Ended(u8::try_from(code).unwrap_or(1))),
        None => Err(Failure::Failed(format!("the program ended with {}", ended.status))),
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Prints the treatment of a program's packets.
fn met(traffic: &Traffic) -> String {
    let Traffic { received, dropped, .. } = traffic;
    let share = 100.0 * *dropped as f64 / (received + dropped).max(1) as f64;
    let ms = |time: Duration| number(time.as_millis_f64());
    let wait = match (traffic.queuing, traffic.queuing_p99) {
        (Some(mean), Some(p99)) => {
            format!("; those that arrived waited {} ms in queues (99th percentile {} ms)", ms(mean), ms(p99))
        }
        (Some(mean), None) => format!("; those that arrived waited {} ms in queues", ms(mean)),
        (None, _) => String::new(),
    };
    format!(
        "{received} packets of the program arrived at the sinks, {} kbit/s, and {dropped} ({} %) were dropped{wait}",
        number(traffic.rate().as_bps() as f64 / 1e3),
        number(share),
    )
}

/// Prints the host of a program and its environment.
fn welcome(scenario: &Scenario, alone: bool, host: &ProgramHost) -> String {
    let flows = match scenario.flow_count() {
        _ if alone => "no other flow".to_owned(),
        1 => "the scenario's flow".to_owned(),
        count => format!("the scenario's {count} flows"),
    };
    format!(
        "in the network of {}, beside {flows}: this host is {}, the other one is {}\n\
         run a program there: ip netns exec {} PROGRAM",
        Printable(&scenario.name),
        host.address,
        host.other,
        host.other_namespace
    )
}

impl Tcp {
    const fn stack(self) -> Stack {
        match self {
            Self::Stock => Stack::Stock,
            Self::Classic => Stack::Classic,
        }
    }
}

impl RunArgs {
    fn options(&self) -> LabOptions {
        let stack = self.tcp.stack();
        let bounds = Bounds { departure: self.departure_bound, ..Bounds::default() };
        LabOptions { stack, bounds, programs: self.exec.clone() }
    }
}

fn external_program(text: &str) -> Result<ExternalProgram, String> {
    let (flow, command) = text.split_once('=').ok_or("expected FLOW=COMMAND")?;
    let is_empty = flow.is_empty() || command.trim().is_empty();
    let program = ExternalProgram { flow: flow.to_owned(), command: command.to_owned() };
    if is_empty { Err("expected FLOW=COMMAND, both not empty".to_owned()) } else { Ok(program) }
}

/// Returns the number of runs and their time in words.
fn forecast(jobs: &[Job<'_>], at_a_time: NonZeroUsize) -> String {
    let seconds: f64 = jobs.iter().map(|job| job.scenario.duration.as_secs_f64()).sum();
    let minutes = seconds / 60.0 / at_a_time.get() as f64;
    format!("{} runs in real time: about {minutes:.1} minutes", jobs.len())
}

/// Prints the runs whose timing is not valid, and the remedy if they are stored. Returns their number.
fn warn(timing: &[TimingRow], are_stored: bool) -> usize {
    let bad = timing.iter().filter(|row| !row.timing_ok);
    for row in bad.clone() {
        let (point, problem) = (Printable(&row.point), Printable(&row.problem));
        message::print(&format!("warning: {point} with seed {}: {problem}", row.seed));
    }
    let count = bad.count();
    if count > 0 && are_stored {
        let all = timing.len();
        message::print(&format!("to repeat these {count} of {all} runs, use the same command with --resume"));
    }
    count
}
