//! The file of a local socket (unix(7)): it replaces that of a process that has ended, and refuses that of a running one.
//!
//! While a process has the socket, it holds a lock on a file beside it, `PATH.lock`, which its owner alone may open.
//!
//! The socket's file has the mode 0660: its owner and group may connect.

use cutline_sys::SysError;
use cutline_text::Printable;
use rustix::fs::{FlockOperation, Mode, OFlags, chmod, fchmod, flock, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with};
use rustix::process::geteuid;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Number of clients that may wait to be accepted, as in the standard library.
const BACKLOG: i32 = 128;

/// A bound socket, whose file is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile {
    listener: UnixListener,
    /// Kept because dropping it ends the lock.
    _lock: Lock,
    path: PathBuf,
    /// Device and inode of the file, so that no other file is removed.
    file: (u64, u64),
}

impl SocketFile {
    /// Binds a socket to `path`, in a folder that exists. The socket file of a process that has ended is replaced.
    ///
    /// # Errors
    /// When another process listens there, when the file is no socket, or the process may not write to the folder.
    pub fn bind(path: &Path) -> Result<Self, SysError> {
        let failed = |error: io::Error| cannot_be_opened(path, error);
        // Two processes that start at the same time would replace each other's socket.
        let lock = Lock::take(path).map_err(failed)?;
        clear(path).map_err(failed)?;
        let listener = listen(path).map_err(failed)?;
        let file = identity(&std::fs::symlink_metadata(path).map_err(failed)?);
        Ok(Self { listener, _lock: lock, path: path.to_owned(), file })
    }

    /// Checks that a socket could be bound to `path`, without a change. A process that serves it is no obstacle, because
    /// configurations are checked while their service runs, and neither is a missing folder that [a unit makes](Self::is_made_at_start).
    ///
    /// # Errors
    /// When there is no such folder, the path is too long, or the file is no socket.
    pub fn check(path: &Path) -> Result<(), SysError> {
        let checked = || {
            SocketAddrUnix::new(path)?;
            match folder_of(path).metadata() {
                Ok(folder) if !folder.is_dir() => return Err(Errno::NOTDIR.into()),
                Err(error) if !Self::is_made_at_start(path) => return Err(error),
                Ok(_) | Err(_) => {}
            }
            found_socket(path).map(drop)
        };
        checked().map_err(|error: io::Error| cannot_be_opened(path, error))
    }

    /// Returns whether the folder of a socket is missing and below `/run`, where units make theirs as they start
    /// (systemd.exec(5), `RuntimeDirectory`).
    pub fn is_made_at_start(path: &Path) -> bool {
        let is_below_run = ["/run/", "/var/run/"].iter().any(|run| path.starts_with(run));
        is_below_run && !folder_of(path).exists()
    }

    /// The socket that listens.
    pub const fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Lets every user connect. The kernel reports the user of a connection (unix(7), `SO_PEERCRED`).
    ///
    /// # Errors
    /// When the mode of the file cannot be changed.
    pub fn allow_everyone(&self) -> Result<(), SysError> {
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        chmod(&self.path, mode).map_err(|errno| {
            let failure =
                format!("socket `{}` cannot be opened to all users", Printable(self.path.display()));
            SysError::new(failure, errno)
        })
    }

    /// Changes the owner and the group of the socket's file; `None` leaves one as it is.
    ///
    /// # Errors
    /// When the process may not.
    pub fn set_owner(&self, user: Option<u32>, group: Option<u32>) -> Result<(), SysError> {
        chown(&self.path, user, group).map_err(|error| {
            let failure =
                format!("the owner of socket `{}` cannot be changed", Printable(self.path.display()));
            SysError::privileged(failure, "CAP_CHOWN", error)
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = std::fs::symlink_metadata(&self.path).is_ok_and(|file| identity(&file) == self.file);
        if is_ours {
            // The process may no longer write to the folder; the next one replaces the file.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Listens at `path`. The file has the mode 0660 at most from its beginning, and no thread sees another mask of modes meanwhile.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The file takes the socket's mode, without the bits that the process's mask removes.
    fchmod(&socket, mode)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    chmod(path, mode)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn cannot_be_opened(path: &Path, error: io::Error) -> SysError {
    SysError::new(format!("socket `{}` cannot be opened", Printable(path.display())), error)
}

/// The folder of a socket's file. A name alone is in the present folder.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns whether there is a file, which must be a socket.
fn found_socket(path: &Path) -> io::Result<bool> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(false) };
    if found.file_type().is_socket() {
        return Ok(true);
    }
    Err(io::Error::other("the file there is not a socket"))
}

/// Removes the socket file of a process that has ended.
fn clear(path: &Path) -> io::Result<()> {
    if !found_socket(path)? {
        return Ok(());
    }
    // A process that does not accept must not keep this one waiting.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::AGAIN) => Err(served()),
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path),
        Err(errno) => Err(errno.into()),
    }
}

fn served() -> io::Error {
    io::Error::other("another process serves it")
}

/// A lock that ends with the process, on a file that its owner alone may open.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock of the socket at `path`, without waiting.
    fn take(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        // A process that ends removes its file, perhaps between our opening and locking it.
        for _ in 0..100 {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|errno| {
                io::Error::other(format!(
                    "its lock `{}`: {}",
                    Printable(path.display()),
                    io::Error::from(errno)
                ))
            })?);
            let found = file.metadata()?;
            let is_ours = found.uid() == geteuid().as_raw();
            // Root takes over the remains of an unprivileged process.
            if !found.is_file() || !(is_ours || geteuid().is_root()) {
                let why = "is another user's, or no regular file: remove it";
                return Err(io::Error::other(format!("its lock `{}` {why}", Printable(path.display()))));
            }
            if is_ours {
                fchmod(&file, Mode::RUSR | Mode::WUSR)?;
            }
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::AGAIN) => return Err(served()),
                Err(errno) => return Err(errno.into()),
            }
            if std::fs::symlink_metadata(&path).is_ok_and(|there| identity(&there) == identity(&found)) {
                return Ok(Self { path, file });
            }
        }
        Err(served())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let ours = self.file.metadata().map(|file| identity(&file)).ok();
        if std::fs::symlink_metadata(&self.path).ok().map(|file| identity(&file)) == ours {
            // The process may no longer write to the folder; the next one takes the file over.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn place(label: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("cutline-socket-file-{}-{label}", std::process::id()));
        drop(std::fs::remove_file(&path));
        path
    }

    #[test]
    fn only_the_file_of_an_ended_process_is_replaced() {
        let path = place("stale");
        let lock = PathBuf::from(format!("{}.lock", path.display()));
        let first = SocketFile::bind(&path).unwrap();
        let refused = || SocketFile::bind(&path).unwrap_err().to_string();
        assert!(refused().ends_with("another process serves it"), "{}", refused());
        // As after a kill: the listener and the lock are closed, and the files are there.
        let stale = first.file;
        std::fs::remove_file(&lock).unwrap();
        assert!(refused().ends_with("another process serves it"), "it answers: {}", refused());
        rustix::net::shutdown(&first.listener, rustix::net::Shutdown::Both).unwrap();
        let second = SocketFile::bind(&path).unwrap();
        assert_ne!(second.file, stale);
        drop(first);
        assert!(path.exists() && lock.exists(), "the first removes its own files only");
        drop(second);
        std::fs::write(&path, "a file").unwrap();
        assert!(refused().ends_with("the file there is not a socket"), "{}", refused());
        std::fs::remove_file(&path).unwrap();
        assert!(SocketFile::bind(Path::new("/nosuch/r.sock")).is_err());
    }

    /// A lock that another process may hold forever is no reason to wait.
    #[test]
    fn binding_does_not_wait_for_a_lock() {
        let path = place("lock");
        let lock = PathBuf::from(format!("{}.lock", path.display()));
        let file = File::create(&lock).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        let error = SocketFile::bind(&path).unwrap_err().to_string();
        assert!(error.ends_with("another process serves it"), "{error}");
        drop(file);
        let socket = SocketFile::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
        drop(socket);
        std::os::unix::fs::symlink("/dev/null", &lock).unwrap();
        let error = SocketFile::bind(&path).unwrap_err().to_string();
        assert!(error.contains("its lock"), "{error}");
        std::fs::remove_file(&lock).unwrap();
    }

    /// A check finds what a start would, beside a process that has the socket.
    #[test]
    fn a_check_finds_the_obstacles_of_a_start_and_changes_nothing() {
        let path = place("check");
        SocketFile::check(&path).unwrap();
        assert!(!path.exists());
        let socket = SocketFile::bind(&path).unwrap();
        SocketFile::check(&path).unwrap();
        drop(socket);
        std::fs::write(&path, "a file").unwrap();
        let wrong = |path: &Path| {
            let error = SocketFile::check(path).unwrap_err().to_string();
            assert!(SocketFile::bind(path).is_err(), "the start agrees");
            error
        };
        assert!(wrong(&path).ends_with("the file there is not a socket"));
        assert!(wrong(&path.join("r.sock")).contains("Not a directory"));
        std::fs::remove_file(&path).unwrap();
        assert!(wrong(&path.join("r.sock")).contains("No such file"));
        let long = std::env::temp_dir().join("x".repeat(120));
        assert!(wrong(&long).contains("cannot be opened"));
        SocketFile::check(Path::new("/run/cutline-no-such-unit/r.sock")).unwrap();
        assert!(SocketFile::is_made_at_start(Path::new("/run/cutline-no-such-unit/r.sock")));
        assert!(!SocketFile::is_made_at_start(Path::new("/nosuch/r.sock")));
    }
}
