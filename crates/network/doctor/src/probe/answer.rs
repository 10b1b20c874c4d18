//! The answer of a probe.

/// Availability of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Available.
    Yes,
    /// Not available, for this reason.
    No(String),
    /// Not tested, for this reason.
    Unknown(String),
}

impl Answer {
    /// Returns whether it is known to be available.
    pub fn is_yes(&self) -> bool {
        *self == Self::Yes
    }

    /// The answer from trying it. If the process lacks a privilege, the answer is unknown.
    pub(super) fn from_result(result: Result<(), std::io::Error>) -> Self {
        match result {
            Ok(()) => Self::Yes,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Self::Unknown("not permitted".to_owned())
            }
            Err(error) => Self::No(error.to_string()),
        }
    }
}
