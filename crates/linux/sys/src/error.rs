//! Errors of system calls.

use std::io;

/// Reason why a system call, or a command of iproute2, has failed.
#[derive(Debug, thiserror::Error)]
pub enum SysError {
    /// No such interface.
    #[error("there is no interface `{name}`; there are: {}", known.join(", "))]
    NoInterface {
        /// The name that was requested.
        name: String,
        /// The interfaces that exist.
        known: Vec<String>,
    },
    /// The process lacks a privilege.
    #[error("{failure}: not permitted; run it as root, or give it the capability {capability}")]
    NotPermitted {
        /// The failed action, as a sentence.
        failure: String,
        /// The capability that allows it.
        capability: &'static str,
    },
    /// Any other error of the kernel.
    #[error("{failure}: {source}")]
    System {
        /// The failed action, as a sentence.
        failure: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The command `ip` of iproute2 failed.
    #[error("`ip {arguments}` failed: {message}")]
    Ip {
        /// Its arguments.
        arguments: String,
        /// Output of the command.
        message: String,
    },
}

impl SysError {
    /// An error of the kernel. `failure` is a sentence such as "the socket cannot be opened".
    pub fn new(failure: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { failure: failure.into(), source: source.into() }
    }

    /// An error of a system call that needs `capability`, which the message names if it was missing.
    pub fn privileged(
        failure: impl Into<String>,
        capability: &'static str,
        source: impl Into<io::Error>,
    ) -> Self {
        let (failure, source) = (failure.into(), source.into());
        if source.kind() == io::ErrorKind::PermissionDenied {
            return Self::NotPermitted { failure, capability };
        }
        Self::System { failure, source }
    }
}
