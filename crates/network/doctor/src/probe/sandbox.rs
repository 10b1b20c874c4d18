//! A temporary namespace with a virtual pair, for tests that would disturb real interfaces.

use super::answer::Answer;
use cutline_sys::SysError;
use cutline_sys::namespace::Namespace;

/// The namespace `cutline-PID-doctor`, with `probe0` connected to `probe1`. It is removed when this value is dropped.
#[derive(Debug)]
pub struct Sandbox {
    namespace: Namespace,
}

impl Sandbox {
    /// One end of the pair.
    pub(super) const NEAR: &'static str = "probe0";
    /// The other end.
    pub(super) const FAR: &'static str = "probe1";

    /// Creates the namespace and the pair.
    ///
    /// # Errors
    /// When the process lacks the privilege, the kernel has no namespaces or virtual pairs, or iproute2 is missing.
    pub fn create() -> Result<Self, SysError> {
        let namespace = Namespace::create("doctor")?;
        let (near, far) = (Self::NEAR, Self::FAR);
        namespace.ip(&["link", "add", near, "type", "veth", "peer", "name", far])?;
        for end in [near, far] {
            namespace.ip(&["link", "set", end, "up"])?;
        }
        Ok(Self { namespace })
    }

    /// The answer from creating a sandbox. Without privileges, it is unknown whether the kernel supports it.
    pub fn answer(created: &Result<Self, SysError>) -> Answer {
        match created {
            Ok(_) => Answer::Yes,
            Err(_) if !rustix::process::geteuid().is_root() => {
                Answer::Unknown("only root may create namespaces".to_owned())
            }
            Err(error) => Answer::No(error.to_string()),
        }
    }

    /// The namespace.
    pub(super) fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}
