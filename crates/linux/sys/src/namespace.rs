//! Network namespaces that are removed with their owner.
//!
//! A namespace is named `cutline-PID-LABEL` after the process that made it. It is removed when its [`Namespace`] is
//! dropped; the remains of a killed process are removed by a later process with [`sweep`], which leaves the namespaces of
//! running processes alone. A process holds a lock on the file of each of its namespaces, because process numbers mean nothing in another PID
//! namespace.
#![expect(unsafe_code, reason = "unshare, which rustix offers as unsafe because of some of its flags")]

use crate::SysError;
use crate::thread::joined;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, fstatfs, open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

const PREFIX: &str = "cutline-";
const FOLDER: &str = "/run/netns";
/// The file of the lock of [`Sweeping`].
const SWEEPING: &str = "/run/cutline-namespaces.lock";
/// The type of the file system of namespaces (`magic.h`); before it is mounted, the file is an ordinary one.
const NSFS_MAGIC: u64 = 0x6e73_6673;

/// A network namespace that is removed when this is dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// The namespace's file, with a shared lock.
    file: OwnedFd,
}

impl Namespace {
    /// Makes a namespace with its loopback up. `label` is a short word of letters and digits.
    ///
    /// # Errors
    /// When the process may not, or iproute2 is missing.
    pub fn create(label: &str) -> Result<Self, SysError> {
        // No other process sweeps between the making of a namespace and its lock.
        let _creating = Sweeping::wait(FlockOperation::LockShared);
        let name = free_name(label);
        ip(&["netns", "add", &name]).map_err(explained)?;
        let file = open_file(&name)?;
        let _unlocked = flock(&file, FlockOperation::NonBlockingLockShared);
        let namespace = Self { name, file };
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
        // A command that fails because another program has removed the namespace says only that a file does not exist.
        ip(&[&["-n", &self.name], arguments].concat()).or_else(|error| self.check().and(Err(error)))
    }

    /// Runs commands of `ip` in it, one a line.
    ///
    /// # Errors
    /// When one fails; those after it are not run.
    pub fn ip_batch(&self, lines: &str) -> Result<(), SysError> {
        self.ip_batch_towards(&[], lines)
    }

    /// Runs commands of `ip` in it that name other namespaces, one a line, such as those that put the other end of a pair of interfaces there.
    ///
    /// # Errors
    /// When one fails; those after it are not run. If one of the namespaces has been removed, the error names it.
    pub fn ip_batch_towards(&self, others: &[&Self], lines: &str) -> Result<(), SysError> {
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
        [self].iter().chain(others).try_for_each(|namespace| namespace.check())?;
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
        let file = &self.file;
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|errno| SysError::new("the namespace cannot be entered", errno))?;
                Ok(work())
            });
            joined(thread)
        })
    }

    /// Checks that its name still exists.
    ///
    /// # Errors
    /// When the name is gone, or another namespace has it.
    pub fn check(&self) -> Result<(), SysError> {
        let same = open_file(&self.name).and_then(|there| {
            let stat = |file: &OwnedFd| {
                fstat(file).map_err(|errno| SysError::new("a namespace cannot be examined", errno))
            };
            let (here, there) = (stat(&self.file)?, stat(&there)?);
            Ok((here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
        });
        if same.unwrap_or(false) {
            return Ok(());
        }
        let failure = format!("the network namespace {} was removed while it was in use", self.name);
        Err(SysError::new(failure, rustix::io::Errno::NOENT))
    }
}

/// A name with this label that no namespace has. Processes of different PID namespaces may have the same number.
fn free_name(label: &str) -> String {
    let process = std::process::id();
    let name = |number: u32| match number {
        0 => format!("{PREFIX}{process}-{label}"),
        number => format!("{PREFIX}{process}-{label}x{number}"),
    };
    let is_free = |name: &String| !Path::new(FOLDER).join(name).exists();
    (0..100).map(name).find(is_free).unwrap_or_else(|| name(0))
}

fn open_file(name: &str) -> Result<OwnedFd, SysError> {
    let path = format!("{FOLDER}/{name}");
    open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| SysError::new(format!("{path} cannot be opened"), errno))
}

/// The lock by which namespaces are not swept while one is made. Without it, if its file cannot be opened, making and sweeping continue.
struct Sweeping(#[expect(dead_code, reason = "it is a lock until it is closed")] Option<OwnedFd>);

impl Sweeping {
    fn wait(operation: FlockOperation) -> Self {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(SWEEPING, flags, Mode::RUSR | Mode::WUSR).ok();
        Self(file.filter(|file| flock(file, operation).is_ok()))
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
    let _sweeping = Sweeping::wait(FlockOperation::LockExclusive);
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

/// Returns whether a name is that of a namespace of this module whose process has ended: no process of this number is there, nor one
/// elsewhere that holds the lock.
fn is_stale(name: &str) -> bool {
    is_of_absent_process(name) && !is_locked(name)
}

/// Returns whether a process holds the lock of a namespace. Where it cannot be known, it counts as held.
fn is_locked(name: &str) -> bool {
    let Ok(file) = open_file(name) else { return true };
    let is_namespace = fstatfs(&file).is_ok_and(|about| about.f_type as u64 == NSFS_MAGIC);
    !is_namespace || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
}

/// Returns whether a name is that of a namespace of this module, and no process has its number in this PID namespace.
fn is_of_absent_process(name: &str) -> bool {
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

    /// Returns whether this test may make namespaces.
    fn is_permitted() -> bool {
        permitted().is_ok()
    }

    /// As in another PID namespace, where no process has the number of the process that made it.
    #[test]
    fn a_namespace_with_a_living_owner_elsewhere_is_not_stale() {
        if !is_permitted() {
            eprintln!("not run: network namespaces cannot be made");
            return;
        }
        let name = format!("{PREFIX}4194306-alive{}", std::process::id());
        ip(&["netns", "add", &name]).unwrap();
        let owner = open_file(&name).unwrap();
        flock(&owner, FlockOperation::LockShared).unwrap();
        assert!(is_of_absent_process(&name) && !is_stale(&name), "its owner lives");
        assert!(!sweep().unwrap().contains(&name) && Path::new(FOLDER).join(&name).exists());
        drop(owner);
        // A command that another test is just starting has a copy of the descriptor for a moment.
        // A laboratory beside this test also sweeps, so that another sweep may be the one that removes it.
        let is_swept = (0..6000).any(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(10));
            sweep().unwrap();
            !Path::new(FOLDER).join(&name).exists()
        });
        assert!(is_swept, "its owner is gone");
    }

    #[test]
    fn a_removed_namespace_is_noticed() {
        if !is_permitted() {
            eprintln!("not run: network namespaces cannot be made");
            return;
        }
        let namespace = Namespace::create("checked").unwrap();
        namespace.check().unwrap();
        // Another process with the same number, in another PID namespace, has its own names.
        let second = Namespace::create("checked").unwrap();
        assert_ne!(namespace.name(), second.name());
        ip(&["netns", "delete", namespace.name()]).unwrap();
        let errors =
            [namespace.check(), namespace.ip(&["link", "show"]), namespace.ip_batch("link set lo up\n")];
        for error in errors {
            let said = error.unwrap_err().to_string();
            assert!(said.contains(namespace.name()) && said.contains("was removed"), "{said}");
        }
        let pair = format!("link add here type veth peer name there netns {}\n", namespace.name());
        let said = second.ip_batch_towards(&[&namespace], &pair).unwrap_err().to_string();
        assert!(said.contains(namespace.name()) && said.contains("was removed"), "{said}");
        ip(&["netns", "add", namespace.name()]).unwrap();
        assert!(namespace.check().is_err(), "it is another one");
        second.check().unwrap();
    }

    #[test]
    fn only_namespaces_of_processes_that_are_gone_are_stale() {
        assert!(!is_of_absent_process(&format!("cutline-{}-left", std::process::id())));
        // Process numbers end at 4,194,304.
        assert!(is_of_absent_process("cutline-4194305-left"));
        for other in ["left", "cutline-left", "cutline-4194305", "other-4194305-left", "cutline--1-x"] {
            assert!(!is_of_absent_process(other), "{other}");
        }
    }
}
