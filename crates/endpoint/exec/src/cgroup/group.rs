//! The control group of a run: a folder of the cgroup2 file system, which is removed with the run.
//!
//! It is named `cutline-exec-PID` after the process that made it, below that process's own group, so the limits of that group
//! still hold. The remains of a killed process are removed by a later one ([`sweep`]).

use super::programs::CgroupPosition;
use crate::ExecError;
use cutline_sys::SysError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, geteuid, test_kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const PREFIX: &str = "cutline-exec-";

/// A control group.
#[derive(Debug)]
pub struct ControlGroup {
    path: PathBuf,
    folder: OwnedFd,
    position: CgroupPosition,
    /// True if the group is removed when this is dropped.
    is_ours: bool,
}

impl ControlGroup {
    /// Makes the group of this process's run, below its own group.
    ///
    /// # Errors
    /// When there is no cgroup2 file system, or the process may not.
    pub fn create() -> Result<Self, ExecError> {
        Self::create_below(&own_group().map_err(ExecError::Unreachable)?)
    }

    /// Makes a group below that of another process, and moves the process into it. Its sockets stay where they are: those that
    /// it opens from now on belong to the group. It is moved back when this is dropped.
    ///
    /// # Errors
    /// When the process has ended, or this process may not.
    pub fn around(process: Pid) -> Result<Self, ExecError> {
        let number = process.as_raw_nonzero().get();
        let group = Self::create_below(&group_of(&number.to_string()).map_err(ExecError::Unreachable)?)?;
        enter(&group.path, number)?;
        Ok(group)
    }

    fn create_below(above: &Path) -> Result<Self, ExecError> {
        let path = above.join(format!("{PREFIX}{}", std::process::id()));
        let failed =
            |error| SysError::privileged("the control group cannot be made", "CAP_DAC_OVERRIDE", error);
        fs::create_dir(&path).map_err(failed)?;
        Self::open(&path, true).inspect_err(|_| drop(fs::remove_dir(&path)))
    }

    /// The group in a folder that exists; a path that begins without `/` is below the mount of the file system.
    ///
    /// # Errors
    /// When it is none.
    pub fn existing(path: &Path) -> Result<Self, ExecError> {
        let mount = mount().map_err(ExecError::Unreachable)?;
        let path = mount.join(path);
        if !path.starts_with(&mount) || !path.join("cgroup.procs").is_file() {
            let path = cutline_text::Printable(path.display());
            return Err(ExecError::Unreachable(format!("{path} is no control group of cgroup2")));
        }
        Self::open(&path, false)
    }

    fn open(path: &Path, is_ours: bool) -> Result<Self, ExecError> {
        let failed = |error: std::io::Error| SysError::new("the control group cannot be opened", error);
        let level = path
            .strip_prefix(mount().map_err(ExecError::Unreachable)?)
            .map_or(0, |below| below.components().count());
        let folder = open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let folder = folder.map_err(|errno| failed(errno.into()))?;
        let id = fs::metadata(path).map_err(failed)?.ino();
        let position = CgroupPosition { id, level: i32::try_from(level).unwrap_or(i32::MAX) };
        Ok(Self { path: path.to_owned(), folder, position, is_ours })
    }

    /// Returns the folder of the group.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(super) const fn position(&self) -> CgroupPosition {
        self.position
    }

    /// Calls a function in the group: processes that it starts belong to the group. This process leaves the group after the call.
    ///
    /// # Errors
    /// When the process cannot move.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, ExecError> {
        let before = own_group().map_err(ExecError::Unreachable)?;
        enter(&self.path, 0)?;
        let done = work();
        enter(&before, 0)?;
        Ok(done)
    }

    /// The processes in the group, without those of groups below it.
    pub fn processes(&self) -> Vec<Pid> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        if self.is_ours {
            // Processes that are left go to the group above, where nothing is set on their sockets.
            if let Some(above) = self.path.parent() {
                for process in self.processes() {
                    let _has_ended = enter(above, process.as_raw_nonzero().get());
                }
            }
            // Groups that cannot be removed now are removed by the next sweep.
            let _is_in_use = fs::remove_dir(&self.path);
        }
    }
}

/// Zero is this process.
fn enter(group: &Path, process: i32) -> Result<(), ExecError> {
    let failed = |error| {
        SysError::privileged("a process cannot be moved to a control group", "CAP_DAC_OVERRIDE", error)
    };
    Ok(fs::write(group.join("cgroup.procs"), process.to_string()).map_err(failed)?)
}

/// Checks that control groups with eBPF programs are available.
///
/// # Errors
/// Why they are not, as a sentence.
pub fn available() -> Result<(), String> {
    if !geteuid().is_root() {
        return Err("they need root".to_owned());
    }
    mount().map(drop)
}

/// Removes the groups of runs that were killed. Returns their folders.
pub fn sweep() -> Vec<PathBuf> {
    let Ok(own) = own_group() else { return Vec::new() };
    let entries = fs::read_dir(own).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| is_stale(path)).filter(|path| fs::remove_dir(path).is_ok()).collect()
}

fn is_stale(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let owner = name.strip_prefix(PREFIX).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    owner.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// The folder of this process's own group.
fn own_group() -> Result<PathBuf, String> {
    group_of("self")
}

/// The folder of the group of a process, by its name in `/proc`.
fn group_of(process: &str) -> Result<PathBuf, String> {
    let file = format!("/proc/{process}/cgroup");
    let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let own = text.lines().find_map(|line| line.strip_prefix("0::/")).ok_or("this kernel has no cgroup2")?;
    Ok(mount()?.join(own))
}

/// Returns the mount point of the cgroup2 file system.
fn mount() -> Result<PathBuf, String> {
    let text = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    find_mount(&text).ok_or_else(|| "no cgroup2 file system is mounted".to_owned())
}

/// The mount point of cgroup2 whose root is that of the hierarchy, in `/proc/PID/mountinfo` (proc(5)).
fn find_mount(mountinfo: &str) -> Option<PathBuf> {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // A space in a path is written \040. Such a path is left out.
        (after.split(' ').next() == Some("cgroup2") && root == "/" && !point.contains('\\'))
            .then(|| point.into())
    };
    mountinfo.lines().find_map(mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found() {
        let text = "24 1 0:22 / /proc rw,relatime shared:12 - proc proc rw\n\
                    30 25 0:27 /docker/x /mnt rw shared:9 - cgroup2 cgroup2 rw\n\
                    31 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(find_mount(text), Some("/sys/fs/cgroup".into()));
        assert_eq!(find_mount("24 1 0:22 / /proc rw - proc proc rw\nshort\n"), None);
    }

    #[test]
    fn only_groups_of_ended_processes_are_stale() {
        let own = format!("/sys/fs/cgroup/{PREFIX}{}", std::process::id());
        assert!(!is_stale(Path::new(&own)));
        for other in ["/x/cutline-exec-", "/x/cutline-exec-a", "/x/system.slice", "/"] {
            assert!(!is_stale(Path::new(other)));
        }
        // Above the largest number that a process can have.
        assert!(is_stale(Path::new("/x/cutline-exec-2147483647")));
    }
}
