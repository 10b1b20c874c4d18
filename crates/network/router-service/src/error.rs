//! Errors of a router as a service, and of its client.

use crate::statistics::StatisticsError;
use cutline_params::ParameterError;
use cutline_ports::PortError;
use cutline_service::{ExchangeError, LineTooLong};
use cutline_sys::SysError;
use cutline_text::Printable;
use std::io;
use std::path::PathBuf;

/// Reason why a router cannot be opened, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A port cannot be opened, or has failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// No such user.
    #[error("there is no user `{name}` in /etc/passwd")]
    NoUser {
        /// The requested name.
        name: String,
    },
    /// The host uses the interfaces itself.
    #[error(
        "the host uses these interfaces itself:\n  {}\nA router between them would copy packets that the kernel also forwards or receives, and \
         would not shape the kernel's own. On a host that routes, use `cutline router up --lan {lan} --wan {wan} --rate RATE`, or `cutline \
         router setup` for its first half (docs/guide/router.md, \"On a host that routes\"). To bridge them anyway, use --force-bridge, or \
         force-bridge = true in the file",
        uses.join("\n  ")
    )]
    InUse {
        /// The uses, a line for each interface.
        uses: Vec<String>,
        /// The first interface.
        lan: String,
        /// The second interface.
        wan: String,
    },
    /// Another router has the interface.
    #[error(
        "another router{} has interface `{name}`: end it first; `cutline router status` lists the running routers",
        process.map_or_else(String::new, |process| format!(", process {process},"))
    )]
    Taken {
        /// The interface's name.
        name: String,
        /// The number of the other router's process, if it is known.
        process: Option<u32>,
    },
    /// A queue cannot be built.
    #[error(transparent)]
    Queue(#[from] ParameterError),
}

/// Error of a request to a router.
#[derive(Debug, thiserror::Error)]
#[error("the router at {}: {}", Printable(path.display()), Printable(kind))]
pub struct RouterClientError {
    /// The path of its socket.
    pub path: PathBuf,
    /// The reason.
    pub kind: RouterClientErrorKind,
}

impl RouterClientError {
    /// Returns whether the router has understood the request and refuses it. Otherwise the connection is of no further use.
    pub const fn is_refusal(&self) -> bool {
        matches!(self.kind, RouterClientErrorKind::Other(StatisticsError::Refused(_)))
    }
}

impl From<ExchangeError> for RouterClientErrorKind {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Io(error) => Self::Io(error),
            ExchangeError::Closed => Self::Closed,
            ExchangeError::Late => Self::Io(io::ErrorKind::TimedOut.into()),
            ExchangeError::TooLong(LineTooLong { longest }) => Self::Io(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("its line is longer than {longest} B"),
            )),
        }
    }
}

/// Reason why a router has not answered.
#[derive(Debug, thiserror::Error)]
pub enum RouterClientErrorKind {
    /// The socket cannot be reached, or the router has not answered in time.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The router has closed the connection.
    #[error("it has closed its socket")]
    Closed,
    /// The reply is not a line of a router's statistics, or is a refusal.
    #[error(transparent)]
    Other(#[from] StatisticsError),
}
