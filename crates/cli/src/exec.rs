//! `cutline exec`: QoS for unchanged programs.

use crate::class_args::ClassArgs;
use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::{arguments, interrupt, message, output};
use clap::ValueEnum;
use cutline_exec::cgroup::{MarkingTarget, Running};
use cutline_exec::{ExecDocument, ExecError, ExecOptions, MarkingMethod, Program};
use cutline_marking::MarkSettings;
use cutline_quality::spec::{ConnectionSpecification, Preset};
use cutline_text::Printable;
use cutline_translate::{Service, TranslationRequest, translate};
use cutline_units::{Dscp, DscpPool2, Duration, HintCodec as _, Rate};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Run an unchanged program with marked and paced sockets
///
/// Every packet of the program and its children carries the code point of a delay hint, over TCP and UDP, IPv4 and IPv6. A
/// rate limits each socket. Dynamic programs are reached by a preloaded library, static and Go programs by a control group
/// with eBPF programs, which requires root (docs/guide/exec.md). Signals are passed on to the program. The deliveries are
/// printed on stderr at the end.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    class: ClassArgs,
    /// Code point instead of a hint: 0 to 63, or a name such as EF
    #[arg(long, conflicts_with_all = ["class", "hint"], value_name = "DSCP")]
    dscp: Option<Dscp>,
    /// Highest rate of each socket, such as 500kbit, of payload
    #[arg(long, value_parser = arguments::rate, value_name = "RATE")]
    rate: Option<Rate>,
    /// Method that marks the program's sockets [default: preload where it works, else cgroup]
    #[arg(long, value_enum)]
    by: Option<MethodName>,
    /// Mark a process that already runs, and the children that it will start, until Ctrl-C or its end (root)
    #[arg(long, value_name = "PID", conflicts_with_all = ["by", "json", "command"])]
    pid: Option<i32>,
    /// Mark the processes of a control group until Ctrl-C: its folder, or its path below the mount of cgroup2 (root)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["by", "json", "command", "pid"])]
    cgroup: Option<PathBuf>,
    /// Print a drop-in that marks a service of systemd, or with --by cgroup a unit; installs nothing
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["json", "command", "pid", "cgroup"])]
    systemd: Option<String>,
    /// Write the counts of delivered data as a JSON document to a file, or to stdout with `-`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace the file of --json if it exists
    #[arg(long, requires = "json")]
    force: bool,
    /// Print only errors on stderr
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    #[arg(required_unless_present_any = ["pid", "cgroup", "systemd"])]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "Examples:
  cutline exec --class video --rate 500kbit -- ffmpeg -re -i film.mp4 -f mpegts udp://192.0.2.1:5000
  cutline exec --hint 10 -- curl -O https://www.example.org/file
  cutline exec --class audio --rtt 300ms --json report.json -- python3 call.py
  sudo cutline exec --class game --by cgroup -- ./server
  sudo cutline exec --class video --pid 1234
  cutline exec --class telemetry --systemd collector.service

Exit codes: that of the program; 128 and the number of the signal that ended it; 125 a failure of cutline exec; 126 the
program cannot be executed; 127 there is no such program; 2 invalid arguments.";

#[derive(Clone, Copy, ValueEnum)]
enum MethodName {
    /// A library that is loaded into the program
    Preload,
    /// A control group with eBPF programs (root)
    Cgroup,
}

/// The exit code of failures that are not the program's, as in env(1).
const OWN: u8 = 125;

impl From<ExecError> for Failure {
    fn from(error: ExecError) -> Self {
        Self::Code(error.exit_code(), error.to_string())
    }
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    let settings = args.settings()?;
    if let Some(unit) = &args.systemd {
        let command = std::env::current_exe()
            .map_err(|error| Failure::Failed(format!("the path of this command is not known: {error}")))?;
        return output::print(&cutline_exec::systemd_unit(
            unit,
            args.method().unwrap_or(MarkingMethod::Preload),
            &settings,
            (&command, &args.again()),
        )?);
    }
    if let Some(target) = args.target()? {
        return mark_running(&target, &settings, args.quiet);
    }
    run(args, settings)
}

fn run(args: &Args, settings: MarkSettings) -> Result<(), Failure> {
    let name = args.command.first().map_or_else(OsString::new, Clone::clone);
    let program = Program::find(&name)?;
    let report = args.json.as_deref().map(|file| Report::create(file, args.force)).transpose()?;
    let choice = cutline_exec::choose(
        &program,
        args.method(),
        cutline_exec::find_library,
        cutline_exec::cgroup::available,
    )?;
    if !args.quiet {
        message::print(&format!("{} by {}: {}", described(&settings), choice.method.name(), choice.because));
        for limit in choice.method.limits() {
            message::print(&format!("  limit: {limit}"));
        }
    }
    let options = ExecOptions { settings, command: args.command.clone() };
    let (ending, document) = cutline_exec::run(&program, &choice, &options)?;
    if !args.quiet {
        message::print(&document.lines());
    }
    if let Some(report) = report {
        report.write(&document)?;
    }
    match ending.exit_code() {
        0 => Ok(()),
        code => Err(Failure::Ended(code)),
    }
}

/// Marks running programs, until it ends or a signal comes.
fn mark_running(target: &MarkingTarget, settings: &MarkSettings, is_quiet: bool) -> Result<(), Failure> {
    cutline_exec::cgroup::available()
        .map_err(|why| Failure::Code(OWN, format!("control groups do not work: {why}")))?;
    let stop = interrupt::cancel_flag("Sockets that were open keep their marks.".to_owned())?;
    let running = Running::mark(target, settings)?;
    if !is_quiet {
        let group = Printable(running.group().display());
        message::print(&format!(
            "{} for {group}; {} open sockets marked",
            described(settings),
            running.open_sockets
        ));
        for interface in running.without() {
            message::print(&format!("  not examined: {}", Printable(interface)));
        }
    }
    let failed = |error| Failure::Code(OWN, format!("the process cannot be waited for: {error}"));
    while !stop.load(Ordering::Relaxed) && running.wait().map_err(failed)? {}
    Ok(())
}

impl Args {
    fn method(&self) -> Option<MarkingMethod> {
        self.by.map(|by| match by {
            MethodName::Preload => MarkingMethod::Preload,
            MethodName::Cgroup => MarkingMethod::Cgroup,
        })
    }

    fn target(&self) -> Result<Option<MarkingTarget>, Failure> {
        let process = |pid| {
            let wrong = || Failure::Code(OWN, format!("--pid is {pid}; it must be the number of a process"));
            MarkingTarget::process(pid).ok_or_else(wrong)
        };
        let group = self.cgroup.clone().map(MarkingTarget::Group);
        self.pid.map(process).transpose().map(|found| found.or(group))
    }

    /// The options for marks and rate, as a command line.
    fn again(&self) -> String {
        let dscp = self.settings().ok().and_then(|settings| settings.dscp);
        let mark = dscp.map(|dscp| format!("--dscp {}", dscp.get()));
        let rate = self.rate.map(|rate| format!("--rate {}bit", rate.as_bps()));
        mark.into_iter().chain(rate).collect::<Vec<_>>().join(" ")
    }

    fn settings(&self) -> Result<MarkSettings, Failure> {
        let of_class = match self.class.class {
            Some(class) => code_point(class, self.class.rtt)?,
            None => None,
        };
        let dscp = self.dscp.or(self.class.hint).or(of_class);
        if dscp.is_none() && self.rate.is_none() && self.class.class.is_none() {
            let message = "nothing to do: give --class, --hint, --dscp or --rate";
            return Err(Failure::Code(OWN, message.to_owned()));
        }
        Ok(MarkSettings::new(dscp, self.rate))
    }
}

/// The code point of a class of application on a path with this round-trip time; `None` where it is to stay unmarked.
fn code_point(class: Preset, rtt: Option<Duration>) -> Result<Option<Dscp>, Failure> {
    let both = class.specification();
    let both = ConnectionSpecification { send: both.clone(), receive: both, profile: None };
    let mut request = TranslationRequest { service: Some(Service::Hint), ..TranslationRequest::new(both) };
    request.path.rtt = rtt;
    let translation = translate(&request).map_err(|error| Failure::Code(OWN, error.to_string()))?;
    Ok(translation.network.dscp)
}

/// Returns the settings in words.
fn described(settings: &MarkSettings) -> String {
    let mark = settings.dscp.map(|dscp| match DscpPool2.decode(dscp) {
        Some(hint) => format!("hint {} (DSCP {})", hint.level(), dscp.get()),
        None => format!("DSCP {dscp}"),
    });
    let rate = settings.rate.map(|rate| format!("at most {} kbit/s per socket", rate.as_kbps_f64()));
    let mark = mark.unwrap_or_else(|| "no mark".to_owned());
    [Some(mark), rate].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Destination of the document of --json.
enum Report {
    Stdout,
    File(OutputFile),
}

impl Report {
    /// Creates the file before the program starts, so that errors are reported early.
    fn create(file: &Path, force: bool) -> Result<Self, Failure> {
        if file == Path::new("-") {
            return Ok(Self::Stdout);
        }
        OutputFile::create(file, force).map(Self::File).map_err(own)
    }

    fn write(self, document: &ExecDocument) -> Result<(), Failure> {
        let Self::File(file) = self else { return output::print_json(document) };
        let text = serde_json::to_string_pretty(document).expect("the document has text keys only") + "\n";
        file.write_all(text.as_bytes()).map_err(own)
    }
}

/// A failure to write --json, with the exit code of failures that are not the program's.
fn own(failure: Failure) -> Failure {
    match failure {
        Failure::Failed(text) => Failure::Code(OWN, format!("--json {text}")),
        other => other,
    }
}
