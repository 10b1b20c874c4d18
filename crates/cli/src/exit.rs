//! Failures of commands, and their exit codes.

use crate::message;
use anstyle::{AnsiColor, Style};
use cutline_analysis::AnalysisError;
use cutline_config::Errors;
use cutline_results::StoreError;
#[cfg(feature = "machine")]
use cutline_service::JsonLineError;
#[cfg(feature = "qdisc")]
use cutline_sys::SysError;
use std::process::ExitCode;
use std::time::Duration;

/// The exit codes, for the end of a help text.
pub const CODES: &str = "Exit codes: 0 success; 1 a failure or an interruption; 2 invalid arguments or an invalid \
                         scenario. Output is coloured if it goes to a terminal and NO_COLOR is not set.";

/// A failure, with a message for the user.
#[derive(Debug)]
pub enum Failure {
    /// The arguments or the scenario are invalid. The exit code is 2.
    Usage(String),
    /// The command failed or was interrupted. The exit code is 1.
    Failed(String),
    /// The command failed in a way that has an exit code of its own.
    Code(u8, String),
    /// A program that the command has run ended with this exit code, and has printed the reason.
    Ended(u8),
}

/// Time that a message may take to be written.
const PATIENCE: Duration = Duration::from_secs(1);
const ERROR: Style = AnsiColor::Red.on_default().bold();

impl Failure {
    /// Prints the message on stderr and returns the exit code.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            Self::Usage(message) => (message, 2),
            Self::Failed(message) => (message, 1),
            Self::Code(code, message) => (message, code),
            Self::Ended(code) => return ExitCode::from(code),
        };
        message::write(format!("{ERROR}error:{ERROR:#} {message}\n"), Some(PATIENCE));
        ExitCode::from(code)
    }
}

/// All errors of a scenario, each with its line.
impl From<Errors> for Failure {
    fn from(errors: Errors) -> Self {
        Self::Usage(errors.render())
    }
}

impl From<AnalysisError> for Failure {
    fn from(error: AnalysisError) -> Self {
        match error {
            AnalysisError::Choice { option: "", message } => Self::Usage(message),
            AnalysisError::Choice { option, message } => Self::Usage(format!("--{option}{message}")),
            AnalysisError::NoResults(_) => Self::Usage(error.to_string()),
            AnalysisError::Nothing(message) => Self::Failed(message),
            AnalysisError::Store(error) => error.into(),
        }
    }
}

#[cfg(feature = "qdisc")]
impl From<SysError> for Failure {
    fn from(error: SysError) -> Self {
        match error {
            SysError::NoInterface { .. } => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(feature = "machine")]
impl From<JsonLineError> for Failure {
    fn from(error: JsonLineError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let remedy = match &error {
            StoreError::Taken { can_resume: true, .. } => {
                "\n--resume keeps the stored runs and adds the missing ones; --force replaces the stored results; \
                 --results DIR stores the new results elsewhere"
            }
            StoreError::Taken { .. } | StoreError::Unknown { .. } => {
                "\n--results DIR stores the new results elsewhere, as does another name in `cutline run` (--set name=NAME); \
                 --force replaces the stored results"
            }
            StoreError::Locked { .. } => {
                "\nwait until it has ended, or store the new results elsewhere with --results DIR"
            }
            damage if damage.is_damage() => {
                "\nthe command that stored these results repeats damaged runs with --resume, and everything with --force"
            }
            _ => "",
        };
        Self::Failed(format!("{error}{remedy}"))
    }
}
