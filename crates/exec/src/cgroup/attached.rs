//! The eBPF programs at their hooks, for as long as the process lives.

use super::group::Group;
use super::programs;
use crate::ExecError;
use cutline_marking::Settings;
use cutline_sys::SysError;
use cutline_sys::bpf::{Hook, Target, attach};
use rustix::fd::OwnedFd;
use std::fs;
use std::io;

/// The hooks of a group. Without one of them some sockets would have no mark.
const HOOKS: [Hook; 6] = [
    Hook::SocketOperations,
    Hook::Connect4,
    Hook::Connect6,
    Hook::SendMessage4,
    Hook::SendMessage6,
    Hook::SetSocketOption,
];

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
    pub fn new(group: &Group, settings: &Settings) -> Result<Self, ExecError> {
        let mut links = Vec::new();
        for hook in HOOKS {
            let Some(code) = programs::of_group(hook, settings) else { continue };
            let failed = |error| {
                SysError::privileged(format!("the eBPF program for {hook:?} cannot be attached"), "CAP_BPF and CAP_NET_ADMIN", error)
            };
            links.push(attach(hook, Target::Cgroup(group.folder()), &code).map_err(failed)?);
        }
        let mut without = Vec::new();
        for (name, number, network) in interfaces() {
            let code = programs::of_egress(group.place(), network, settings);
            match attach(Hook::Egress, Target::Interface(number), &code) {
                Ok(link) => links.push(link),
                Err(error) => without.push(format!("{name}: {error}")),
            }
        }
        Ok(Self { _links: links, without })
    }
}

/// The interfaces: name, number, and where IP begins in a frame.
fn interfaces() -> Vec<(String, u32, i32)> {
    /// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK` of linux/if_arp.h. Other kinds give packets without a header.
    const ETHERNET: [u32; 2] = [1, 772];
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().filter_map(Result::ok);
    let number = |entry: &fs::DirEntry, file: &str| {
        let text = fs::read_to_string(entry.path().join(file))?;
        text.trim().parse::<u32>().map_err(io::Error::other)
    };
    let read = |entry: fs::DirEntry| {
        let network = if ETHERNET.contains(&number(&entry, "type").ok()?) { 14 } else { 0 };
        Some((entry.file_name().into_string().ok()?, number(&entry, "ifindex").ok()?, network))
    };
    entries.filter_map(read).collect()
}
