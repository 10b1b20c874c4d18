//! Errors of starting a program, with the exit code of env(1).

use cutline_sys::SysError;
use cutline_text::Printable;
use std::io;
use std::path::PathBuf;

/// Reason why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// No such program.
    #[error("there is no program `{}`", Printable(.0))]
    NotFound(String),
    /// The file is there, and cannot be executed.
    #[error("`{}` cannot be executed: {source}", Printable(program.display()))]
    NotExecutable {
        /// The program.
        program: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The program's sockets cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The preloaded library is missing.
    #[error(
        "the library {name} is not beside the cutline command, nor in ../lib/cutline or ../preload of its folder; \
         `make install` builds and installs it (in a build folder, `make target/preload/{name}` builds it), or set {variable} to its path"
    )]
    NoLibrary {
        /// The library's file name.
        name: &'static str,
        /// The environment variable that may have its path.
        variable: &'static str,
    },
    /// Something else that the system refused.
    #[error("{failure}: {source}")]
    System {
        /// The failed action, as a sentence.
        failure: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// A control group, or its eBPF programs.
    #[error(transparent)]
    Sys(#[from] SysError),
}

impl ExecError {
    /// The exit code, as env(1) has it: 127 where there is no such program, 126 where it cannot be executed, 125 otherwise.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}
