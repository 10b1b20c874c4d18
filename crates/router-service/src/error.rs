//! Errors of a router as a service, and of its client.

use crate::statistics::StatisticsError;
use cutline_params::ParameterError;
use cutline_ports::PortError;
use cutline_sys::SysError;
use cutline_text::Printable;
use std::io;
use std::path::PathBuf;

/// Why a router cannot be opened, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A port cannot be opened, or has failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// There is no such user.
    #[error("there is no user `{name}` in /etc/passwd")]
    NoUser {
        /// The name that was asked for.
        name: String,
    },
    /// A queue cannot be built.
    #[error(transparent)]
    Queue(#[from] ParameterError),
}

/// Why a router has not answered.
#[derive(Debug, thiserror::Error)]
#[error("the router at {}: {}", Printable(path.display()), Printable(why))]
pub struct AskError {
    /// The path of its socket.
    pub path: PathBuf,
    /// The reason.
    pub why: AskProblem,
}

impl AskError {
    /// Returns whether the router has understood the request and refuses it. Otherwise the connection is of no further use.
    pub const fn is_refusal(&self) -> bool {
        matches!(self.why, AskProblem::Other(StatisticsError::Refused(_)))
    }
}

/// The reason for which a router has not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskProblem {
    /// Its socket cannot be reached, or it has not answered in time.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The router has closed the connection.
    #[error("it has closed its socket")]
    Closed,
    /// The reply is not a line of a router's statistics, or is a refusal.
    #[error(transparent)]
    Other(#[from] StatisticsError),
}
