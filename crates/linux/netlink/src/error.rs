//! Errors of requests to the kernel.

use cutline_params::ParameterError;
use cutline_sys::SysError;
use cutline_text::Printable;
use rustix::io::Errno;
use std::io;

/// Reason why the kernel could not be queried, or refused a change.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed, or the process lacks a privilege.
    #[error(transparent)]
    System(#[from] SysError),
    /// The kernel refused a request.
    #[error("{failure}: {source}{}", in_words(explanation.as_deref()))]
    Refused {
        /// The failed action, as a sentence.
        failure: String,
        /// The kernel's error.
        source: io::Error,
        /// Its explanation in words, if it gave one.
        explanation: Option<String>,
    },
    /// The kernel's answer has another form than this version knows.
    #[error("the kernel's answer cannot be read: {0}")]
    Answer(String),
    /// The interface has a queueing discipline that another process has set.
    #[error(
        "interface `{interface}` has the queueing discipline {} {handle:x}:, which is not Cutline's: remove it, or allow it to be replaced",
        Printable(kind)
    )]
    OtherQdisc {
        /// The interface.
        interface: String,
        /// The kind, such as `htb`.
        kind: String,
        /// Its major number.
        handle: u16,
    },
    /// The interface has a shaper of Cutline's, of another process or of one that has ended.
    #[error(
        "interface `{interface}` has a shaper of Cutline's already: stop the process that owns it, or remove its leftovers (`sweep`)"
    )]
    Installed {
        /// The interface.
        interface: String,
    },
    /// A value that is not allowed.
    #[error("{field} = {value}: allowed is {allowed}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
    /// A value of a reservation that is not allowed.
    #[error(transparent)]
    Parameter(Box<ParameterError>),
}

impl From<ParameterError> for Error {
    fn from(error: ParameterError) -> Self {
        Self::Parameter(Box::new(error))
    }
}

impl Error {
    #[expect(clippy::needless_pass_by_value, reason = "most are made for the call")]
    pub(crate) fn invalid(field: &'static str, value: impl ToString, allowed: impl ToString) -> Self {
        Self::Invalid { field, value: value.to_string(), allowed: allowed.to_string() }
    }

    /// The kernel's error in something that needs `CAP_NET_ADMIN`.
    pub(crate) fn refused(failure: String, source: io::Error, explanation: Option<String>) -> Self {
        // A prohibited route answers EACCES, which also means permission denied.
        if Errno::from_io_error(&source) == Some(Errno::PERM) {
            return SysError::privileged(failure, "CAP_NET_ADMIN", source).into();
        }
        Self::Refused { failure, source, explanation }
    }

    /// Returns whether the kernel refused a request that was well-formed here.
    pub fn is_refusal(&self) -> bool {
        self.number().is_some()
    }

    /// The kernel's error number, if it refused a request.
    pub(crate) fn number(&self) -> Option<Errno> {
        match self {
            Self::Refused { source, .. } => Errno::from_io_error(source),
            _ => None,
        }
    }
}

fn in_words(explanation: Option<&str>) -> String {
    explanation.map(|text| format!(" ({})", Printable(text))).unwrap_or_default()
}
