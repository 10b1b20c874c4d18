//! The command `cutlined`.

use clap::Parser;
use cutline_daemon::{Agent, Config, DaemonError, remove_installed};
use cutline_service::SighupWatcher;
use cutline_sys::{SysError, signal};
use cutline_text::Printable;
use rustix::process::Signal;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// The RSVP agent of a host or router, and who its applications ask for reservations
///
/// It reads its file again on SIGHUP, and then changes keys and shares. It removes all that it has installed when it ends, and at its start
/// what a killed one has left. `cutline reservations` shows what it holds.
#[derive(Parser)]
#[command(name = "cutlined", version, after_help = EXAMPLES)]
struct Args {
    /// The file that says what to do
    #[arg(long, value_name = "FILE", default_value = "/etc/cutline/cutlined.toml")]
    config: PathBuf,
    /// Check the file, and do nothing
    #[arg(long)]
    check: bool,
}

const EXAMPLES: &str = "Examples:
  cutlined --check                             check /etc/cutline/cutlined.toml
  cutlined --config ./cutlined.toml            run with another file, as root
  systemctl reload cutlined                    take changes of keys and shares over
  cutline reservations                         show what it holds

The file is described in cutlined.toml(5).";

/// The exit code of a wrong file.
const WRONG_FILE: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(errors) => {
            say(&errors.render());
            return ExitCode::from(WRONG_FILE);
        }
    };
    config.warnings().iter().for_each(|warning| say(&format!("warning: {warning}")));
    if args.check {
        return match config.interfaces.iter().try_for_each(|spec| spec.integrity().map(drop)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("error: {error}"));
                ExitCode::from(WRONG_FILE)
            }
        };
    }
    match run(config, args.config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(config: Config, file: PathBuf) -> Result<(), DaemonError> {
    // Either of both signals stops it.
    let failed = |error| SysError::new("signals cannot be caught", error);
    let stops: [&'static AtomicBool; 2] =
        [signal::flag(Signal::TERM).map_err(failed)?, signal::flag(Signal::INT).map_err(failed)?];
    let hangup = SighupWatcher::new()?;
    let mut agent = Agent::open(config.clone())?.with_file(file);
    remove_on_panic(config);
    say(&agent.summary());
    agent.run(&stops, Some(&hangup), say)
}

/// A program that was built to abort drops nothing when it panics.
fn remove_on_panic(config: Config) {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        for line in remove_installed(&config) {
            say(&line);
        }
    }));
}

/// Prints a line to standard error. That nobody reads it is no reason to end.
fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "cutlined: {}", Printable(line)));
}
