//! How a command ends when it does not end well.

use anstyle::{AnsiColor, Style};
use cutline_config::Errors;
use cutline_results::StoreError;
use std::process::ExitCode;

/// The exit codes, for the end of a help text.
pub const CODES: &str = "Exit codes: 0 done; 1 something went wrong or was interrupted; 2 bad arguments or a bad \
                         scenario. Colours follow NO_COLOR and whether the output is a terminal.";

/// What went wrong, for a person to read.
#[derive(Debug)]
pub enum Failure {
    /// Arguments or a scenario that cannot be used: exit code 2.
    Usage(String),
    /// Something that broke while working, or an interruption: exit code 1.
    Failed(String),
}

const ERROR: Style = AnsiColor::Red.on_default().bold();

impl Failure {
    /// Says it on stderr and answers the exit code.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            Self::Usage(message) => (message, 2),
            Self::Failed(message) => (message, 1),
        };
        anstream::eprintln!("{ERROR}error:{ERROR:#} {message}");
        ExitCode::from(code)
    }
}

/// Everything that is wrong with a scenario, each with its line.
impl From<Errors> for Failure {
    fn from(errors: Errors) -> Self {
        Self::Usage(errors.render())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let remedy = match &error {
            StoreError::Taken { can_resume: true, .. } => {
                "\n--resume keeps what is stored and runs what is missing; --force replaces it; --results DIR stores the new \
                 results elsewhere"
            }
            StoreError::Taken { .. } | StoreError::Unknown { .. } => {
                "\n--results DIR stores the new results elsewhere, as does another name in `cutline run` (--set name=NAME); \
                 --force replaces what is stored"
            }
            StoreError::Locked { .. } => {
                "\nwait until it has ended, or store the new results elsewhere with --results DIR"
            }
            damage if damage.is_damage() => {
                "\nthe command that stored these results makes again what is damaged with --resume, and everything with --force"
            }
            _ => "",
        };
        Self::Failed(format!("{error}{remedy}"))
    }
}
