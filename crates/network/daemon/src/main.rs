//! The command `cutlined`.

use clap::Parser;
use cutline_daemon::{
    Daemon, DaemonConfig, DaemonError, MonitorServices, MonitorSpec, check_manager, remove_installed,
    start_manager,
};
use cutline_service::{OutputQueue, SighupWatcher};
use cutline_sys::resources::allow_most_descriptors;
use cutline_sys::{SysError, signal};
use cutline_text::{Printable, Screen};
use cutline_units::Duration;
use rustix::process::Signal;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The RSVP agent of a host or router, and the service of reservations for its applications
///
/// cutlined reads its file again on SIGHUP, and then changes keys and shares. When it ends, it removes everything that it has installed. When it
/// starts, it removes the leftovers of a killed cutlined. `cutline reservations` shows its state.
#[derive(Parser)]
#[command(name = "cutlined", version, after_help = EXAMPLES)]
struct Args {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "/etc/cutline/cutlined.toml")]
    config: PathBuf,
    /// Check the file and the requirements of this machine, and do nothing
    #[arg(long)]
    check: bool,
}

const EXAMPLES: &str = "Examples:
  cutlined --check                             check /etc/cutline/cutlined.toml
  cutlined --config ./cutlined.toml            run with another file, as root
  systemctl reload cutlined                    apply changes of keys and shares
  cutline reservations                         show its reservations

The file is described in cutlined.toml(5).";

/// The exit code of a wrong file.
const WRONG_FILE: u8 = 2;

/// Time that messages may take to be written when the agent has ended.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that the agent waits for a reader of the message of a panic.
const PANIC_PATIENCE: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let args = Args::parse();
    allow_most_descriptors();
    // There is no wait for its reader.
    let log = log();
    let (code, last) = match serve(&args, &log) {
        Ok(()) => (ExitCode::SUCCESS, None),
        Err((code, message)) => (ExitCode::from(code), Some(message)),
    };
    log.finish(last, PATIENCE);
    code
}

/// The exit code when the agent cannot run.
const FAILED: u8 = 1;

fn serve(args: &Args, log: &OutputQueue<String>) -> Result<(), (u8, String)> {
    let config = DaemonConfig::load(&args.config).map_err(|errors| (WRONG_FILE, errors.render()))?;
    for warning in config.warning_messages() {
        let _counted = log.try_send(warning);
    }
    if args.check {
        let wrong = |error: DaemonError| (WRONG_FILE, format!("error: {error}"));
        config.check_interfaces().map_err(wrong)?;
        config.manager.iter().try_for_each(check_manager).map_err(wrong)?;
        config.monitor.iter().try_for_each(MonitorSpec::check).map_err(wrong)?;
        let failed = |error| (FAILED, format!("error: the agent cannot start now: {error}"));
        return config.check_machine().map_err(failed);
    }
    run(config, args.config.clone(), log).map_err(|error| (FAILED, format!("error: {error}")))
}

fn run(config: DaemonConfig, file: PathBuf, log: &OutputQueue<String>) -> Result<(), DaemonError> {
    // Either of both signals stops it.
    let failed = |error| SysError::new("signals cannot be caught", error);
    let stops: [&'static AtomicBool; 2] =
        [signal::flag(Signal::TERM).map_err(failed)?, signal::flag(Signal::INT).map_err(failed)?];
    let hangup = SighupWatcher::new()?;
    let start = |spec: &MonitorSpec| {
        let sender = log.sender();
        spec.start(move |message| {
            let _counted = sender.try_send(message);
        })
    };
    let monitor = config.monitor.as_ref().map(start).transpose()?;
    if let Some(page) = monitor.as_ref().and_then(MonitorServices::page) {
        let _counted = log.try_send(format!("the monitor's page is at http://{page}/"));
    }
    if let Some(agent) = monitor.as_ref().and_then(MonitorServices::snmp) {
        let _counted = log.try_send(format!("the SNMP agent listens at {agent}"));
    }
    let start = |spec| {
        let sender = log.sender();
        start_manager(spec, move |message| {
            let _counted = sender.try_send(message);
        })
    };
    let manager = config.manager.as_ref().map(start).transpose()?;
    let mut agent = Daemon::open(config.clone())?.with_file(file).with_log(log.sender());
    if let Some(monitor) = &monitor {
        agent = agent.with_monitor(Arc::clone(monitor.host()));
    }
    if let Some(manager) = manager {
        agent = agent.with_manager(manager);
    }
    remove_on_panic(config);
    let _counted = log.try_send(agent.summary());
    agent.run(&stops, Some(&hangup))
}

/// A program that was built to abort drops nothing when it panics. The reservations are removed before the message is
/// written.
fn remove_on_panic(config: DaemonConfig) {
    std::panic::set_hook(Box::new(move |panic| {
        let left = remove_installed(&config);
        let log = log();
        for line in [panic.to_string()].into_iter().chain(left) {
            let _counted = log.try_send(line);
        }
        log.finish(None, PANIC_PATIENCE);
    }));
}

/// Standard error.
fn log() -> OutputQueue<String> {
    OutputQueue::new(std::io::stderr(), Screen { styles: &[] }, |message: String| in_words(&message))
}

/// Returns the lines of a message. A problem of the file has several, with the place in the file. All but the first are indented, so that none
/// of them can pass for another message.
fn in_words(message: &str) -> String {
    let mut text = "cutlined: ".to_owned();
    for (number, line) in message.trim_end().lines().enumerate() {
        text += if number == 0 || line.is_empty() { "" } else { "  " };
        let _infallible = writeln!(text, "{}", Printable(line));
    }
    text
}
