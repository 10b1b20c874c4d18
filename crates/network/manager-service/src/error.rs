//! Errors of the resource manager's start.

use cutline_params::ParameterError;
use cutline_sys::SysError;

/// Reason why the resource manager cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ManagerServiceError {
    /// A parameter is not allowed.
    #[error("manager: {0}")]
    Parameter(#[from] ParameterError),
    /// The system has refused something.
    #[error("manager: {0}")]
    System(#[from] SysError),
    /// A key is not allowed.
    #[error("manager.keys: {0}")]
    Key(String),
}
