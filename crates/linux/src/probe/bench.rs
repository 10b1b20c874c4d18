//! A throw-away namespace with a virtual pair, for trying things that would be felt elsewhere.

use super::Answer;
use crate::LinuxError;
use crate::namespace::Namespace;

/// The namespace `cutline-PID-doctor`, and in it `probe0` joined to `probe1`. It is removed when this is dropped.
#[derive(Debug)]
pub struct Bench {
    namespace: Namespace,
}

impl Bench {
    /// One end of the pair.
    pub(super) const NEAR: &'static str = "probe0";
    /// The other end.
    pub(super) const FAR: &'static str = "probe1";

    /// Makes it.
    ///
    /// # Errors
    /// When the process may not, the kernel has no namespaces or virtual pairs, or iproute2 is missing.
    pub fn create() -> Result<Self, LinuxError> {
        let namespace = Namespace::create("doctor")?;
        let (near, far) = (Self::NEAR, Self::FAR);
        namespace.ip(&["link", "add", near, "type", "veth", "peer", "name", far])?;
        for end in [near, far] {
            namespace.ip(&["link", "set", end, "up"])?;
        }
        Ok(Self { namespace })
    }

    /// What making one has come to. Without privileges, it says nothing about the kernel.
    pub fn answer(made: &Result<Self, LinuxError>) -> Answer {
        match made {
            Ok(_) => Answer::Yes,
            Err(_) if !rustix::process::geteuid().is_root() => {
                Answer::Unknown("namespaces are root's to make".to_owned())
            }
            Err(error) => Answer::No(error.to_string()),
        }
    }

    /// The namespace.
    pub(super) fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}
