//! Errors of starting and running `cutlined`.

use cutline_config::Errors;
use cutline_params::ParameterError;
use cutline_sys::SysError;
use cutline_text::Printable;

/// Reason why `cutlined` cannot start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The file has problems.
    #[error(transparent)]
    Config(#[from] Errors),
    /// A system call failed, or a privilege is missing.
    #[error(transparent)]
    System(#[from] SysError),
    /// The kernel's routes or traffic control refuse.
    #[error(transparent)]
    Netlink(#[from] cutline_netlink::Error),
    /// A parameter is not allowed.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The monitor cannot work.
    #[error(transparent)]
    Monitor(#[from] cutline_monitor::MonitorError),
    /// The resource manager cannot work.
    #[error(transparent)]
    Manager(#[from] cutline_manager_service::ManagerServiceError),
    /// SNMP cannot be served.
    #[error(transparent)]
    Snmp(#[from] cutline_snmp::SnmpError),
    /// The file with the monitor's token cannot be used.
    #[error("token-file `{}`: {why}", Printable(file))]
    Token {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
    /// A file with keys cannot be used.
    #[error("keys `{}`: {why}", Printable(file))]
    Keys {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
}
