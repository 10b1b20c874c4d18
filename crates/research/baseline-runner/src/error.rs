//! Errors of measurements.

use cutline_baseline::{FileError, Invalid};
use cutline_sys::SysError;
use cutline_text::Printable;
use cutline_traffic::TrafficError;
use cutline_traffic::control::ControlError;
use std::io;

/// Reason why measurements end early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The session with the receiver failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The generator or the meter failed.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// An operation failed.
    #[error("{0}: {1}")]
    System(String, io::Error),
    /// A flow failed.
    #[error("flow {flow}: {}", Printable(.why))]
    Flow {
        /// The flow's name.
        flow: String,
        /// Its error.
        why: String,
    },
    /// Several attempts in a row have sent nothing.
    #[error(
        "{0} times in a row, nothing was sent: other programs use all processors, or the duration is too short"
    )]
    Idle(u32),
    /// The receiver in this process has ended.
    #[error("the receiver has ended")]
    ReceiverGone,
    /// The table cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The table was begun too long ago: with further measurements it would not be valid.
    #[error("the table cannot be continued: {0}")]
    Old(Invalid),
    /// The table belongs to other measurements.
    #[error("the table has measurements with another {what}: {theirs}, this run has {ours}")]
    Other {
        /// The property in which both differ.
        what: &'static str,
        /// The value in the table.
        theirs: String,
        /// The value of this run.
        ours: String,
    },
}
