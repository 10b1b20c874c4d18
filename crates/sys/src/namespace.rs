//! Network namespaces that are removed with their owner.
//!
//! A namespace is named `cutline-PID-LABEL` after the process that made it. It is removed when its [`Namespace`] is
//! dropped; what a killed process has left is removed by a later process with [`sweep`], which leaves the namespaces of
//! running processes alone.
#![expect(unsafe_code, reason = "unshare, which rustix offers as unsafe because of some of its flags")]

use crate::SysError;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

const PREFIX: &str = "cutline-";
const FOLDER: &str = "/run/netns";

/// A network namespace that is removed when this is dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace with its loopback up. `label` is a short word of letters and digits.
    ///
    /// # Errors
    /// When the process may not, or iproute2 is missing.
    pub fn create(label: &str) -> Result<Self, SysError> {
        let name = format!("{PREFIX}{}-{label}", std::process::id());
        ip(&["netns", "add", &name]).map_err(explained)?;
        let namespace = Self { name };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Returns its name, as `ip netns` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` in it.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn ip(&self, arguments: &[&str]) -> Result<(), SysError> {
        ip(&[&["-n", &self.name], arguments].concat())
    }

    /// Runs commands of `ip` in it, one a line.
    ///
    /// # Errors
    /// When one fails; those after it are not run.
    pub fn ip_batch(&self, lines: &str) -> Result<(), SysError> {
        let failed = |message: String| SysError::Ip { arguments: "-batch".to_owned(), message };
        let mut command = Command::new("ip");
        command.args(["-n", &self.name, "-batch", "-"]).stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("{error} (it is part of iproute2)")))?;
        let written = child.stdin.take().expect("its input is piped").write_all(lines.as_bytes());
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        if output.status.success() && written.is_ok() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }

    /// Sets a kernel parameter of it, such as `net.ipv4.tcp_sack`. Returns false where this kernel has no such parameter.
    ///
    /// # Errors
    /// When it cannot be set.
    pub fn set(&self, parameter: &str, value: &str) -> Result<bool, SysError> {
        let path = format!("/proc/sys/{}", parameter.replace('.', "/"));
        let written = self.within(|| match std::fs::write(&path, value) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            written => written.map(|()| true),
        })?;
        written.map_err(|error| SysError::new(format!("{parameter} cannot be set to {value}"), error))
    }

    /// Runs `work` in it, on a new thread. Sockets that are opened there stay in it.
    ///
    /// # Errors
    /// When the thread cannot move into it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SysError> {
        let file = self.open()?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|errno| SysError::new("the namespace cannot be entered", errno))?;
                Ok(work())
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn open(&self) -> Result<OwnedFd, SysError> {
        let path = format!("{FOLDER}/{}", self.name);
        open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| SysError::new(format!("{path} cannot be opened"), errno))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // An error cannot be reported here; the next sweep tries again.
        drop(ip(&["netns", "delete", &self.name]));
    }
}

/// Checks whether this process may make namespaces, by a thread that moves into a nameless one and ends.
///
/// # Errors
/// When it may not, or the kernel has no network namespaces.
pub fn permitted() -> Result<(), SysError> {
    // SAFETY: the thread leaves only its network namespace; it shares its files with the others as before.
    let leave = || unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
    let made = std::thread::scope(|scope| scope.spawn(leave).join().expect("the call does not panic"));
    made.map_err(|errno| match errno {
        rustix::io::Errno::PERM => not_permitted(),
        errno => SysError::new("network namespaces cannot be made", errno),
    })
}

/// Names the missing capabilities, where they are the likely cause.
fn explained(error: SysError) -> SysError {
    if rustix::process::geteuid().is_root() { error } else { not_permitted() }
}

fn not_permitted() -> SysError {
    SysError::NotPermitted {
        failure: "network namespaces cannot be made".to_owned(),
        capability: "CAP_SYS_ADMIN, and CAP_NET_ADMIN and CAP_NET_RAW inside",
    }
}

/// Removes the namespaces of processes that have ended. Returns their names.
///
/// # Errors
/// When one cannot be removed.
pub fn sweep() -> Result<Vec<String>, SysError> {
    let Ok(entries) = std::fs::read_dir(FOLDER) else { return Ok(Vec::new()) };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let stale: Vec<String> = names.filter(|name| is_stale(name)).collect();
    for name in &stale {
        let deleted = ip(&["netns", "delete", name]);
        // Another process may sweep at the same time.
        if Path::new(FOLDER).join(name).exists() {
            deleted?;
        }
    }
    Ok(stale)
}

/// Returns whether a name is that of a namespace of this module whose process has ended.
fn is_stale(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).map(|(process, _)| process);
    process
        .and_then(|process| process.parse::<u32>().ok())
        .is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
}

/// Runs `ip` of iproute2.
///
/// # Errors
/// When it fails, or is not there.
fn ip(arguments: &[&str]) -> Result<(), SysError> {
    let failed = |message: String| SysError::Ip { arguments: arguments.join(" "), message };
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| failed(format!("{error} (it is part of iproute2)")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_namespaces_of_processes_that_are_gone_are_stale() {
        assert!(!is_stale(&format!("cutline-{}-left", std::process::id())));
        // Process numbers end at 4,194,304.
        assert!(is_stale("cutline-4194305-left"));
        for other in ["left", "cutline-left", "cutline-4194305", "other-4194305-left", "cutline--1-x"] {
            assert!(!is_stale(other), "{other}");
        }
    }
}
