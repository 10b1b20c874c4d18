//! The program to start, and the settings of its sockets.

use cutline_marking::MarkSettings;
use std::ffi::OsString;

/// The program to start, and the settings of its sockets.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Settings of every socket.
    pub settings: MarkSettings,
    /// The program's name, as the user wrote it, then its arguments.
    pub command: Vec<OsString>,
}
