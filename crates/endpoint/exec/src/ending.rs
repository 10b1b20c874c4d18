//! End of a program.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// End of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnding {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal of this number.
    Signal(i32),
}

impl ProgramEnding {
    /// The exit code that a shell gives: 128 and the number of a signal.
    pub fn exit_code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        };
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }

    pub(crate) fn of(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or_default()),
        }
    }
}
