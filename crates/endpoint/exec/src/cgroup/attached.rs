//! The eBPF programs at their hooks, for as long as the process lives.

use super::group::ControlGroup;
use super::programs;
use crate::ExecError;
use cutline_marking::MarkSettings;
use cutline_sys::SysError;
use cutline_sys::bpf::{AttachTarget, Hook, attach};
use cutline_sys::interface;
use rustix::fd::OwnedFd;

/// Attached programs. The kernel removes them with this, also when the process is killed.
#[derive(Debug)]
pub struct Attached {
    _links: Vec<OwnedFd>,
    /// The interfaces whose packets are not looked at, each with the reason.
    pub without: Vec<String>,
}

impl Attached {
    /// Attaches the programs to a group, and to the interfaces that there are.
    ///
    /// # Errors
    /// When the kernel has no such hook for control groups, or the process may not.
    pub fn new(group: &ControlGroup, settings: &MarkSettings) -> Result<Self, ExecError> {
        let mut links = Vec::new();
        for hook in programs::HOOKS {
            let Some(code) = programs::of_group(hook, settings) else { continue };
            let failed = |error| {
                SysError::privileged(
                    format!("the eBPF program for {hook:?} cannot be attached"),
                    "CAP_BPF and CAP_NET_ADMIN",
                    error,
                )
            };
            links.push(attach(hook, AttachTarget::Cgroup(group.folder()), &code).map_err(failed)?);
        }
        let mut without = Vec::new();
        for (name, number, network) in interfaces() {
            let code = programs::of_egress(group.position(), network, settings);
            match attach(Hook::Egress, AttachTarget::Interface(number), &code) {
                Ok(link) => links.push(link),
                Err(error) => without.push(format!("{name}: {error}")),
            }
        }
        Ok(Self { _links: links, without })
    }
}

/// Offset of IP in a frame with an Ethernet header.
const ETHERNET_HEADER: i32 = 14;

/// The interfaces of this network namespace: name, number, and offset of IP in a frame. One that is removed meanwhile is left
/// out.
fn interfaces() -> Vec<(String, u32, i32)> {
    let read = |name: String| {
        let number = interface::index(&name).ok()?;
        let network = if interface::has_ethernet_header(&name).ok()? { ETHERNET_HEADER } else { 0 };
        Some((name, number, network))
    };
    interface::names().into_iter().filter_map(read).collect()
}
