//! Creation of output files. A command may run as root in a folder of another user, so no output is written through a
//! symbolic link, whether it leads to a file or nowhere, and nothing that exists is replaced unless the user requests it.
//!
//! ```text
//! create      a result in a file that the user names
//! temporary   a file that gets its name when it is complete
//! shared      a file that several processes open, such as a lock
//! FileLock    a lock, which one process has at a time
//! ```
//!
//! The last part of a path decides. The folders before it may be links, as the user names them.

mod lock;

pub use lock::{FileLock, LockError};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it. An empty file is replaced, because interrupted work leaves empty files.
    Keep,
    /// Replace its contents.
    Replace,
}

/// Reason why a file is not created.
#[derive(Debug)]
pub enum CreateError {
    /// The file exists and has contents.
    Exists,
    /// A symbolic link is in its place.
    SymbolicLink,
    /// The system refuses it.
    System(io::Error),
}

/// Names of the process's streams. Some are symbolic links to open files of the process.
const STREAMS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/null", "/dev/tty"];
/// The folders of such files.
const STREAM_FOLDERS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

/// Creates the file of a result, or opens an existing one for writing from its beginning. A pipe or a device is opened as it is.
///
/// # Errors
/// When the file has contents and is to be kept, a symbolic link is in its place, or the system refuses it.
pub fn create(path: &Path, existing: Existing) -> Result<File, CreateError> {
    if is_stream(path) {
        return File::options().write(true).open(path).map_err(CreateError::System);
    }
    // The name may appear or disappear between two calls.
    for _ in 0..10 {
        match open_at(path, OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) => {}
            other => return other.map_err(|errno| CreateError::System(errno.into())),
        }
        let file = match open_at(path, OFlags::empty()) {
            Err(Errno::NOENT) => continue,
            Err(Errno::LOOP) => return Err(CreateError::SymbolicLink),
            other => other.map_err(|errno| CreateError::System(errno.into()))?,
        };
        let about = file.metadata().map_err(CreateError::System)?;
        if !about.is_file() || about.len() == 0 {
            return Ok(file);
        }
        if existing == Existing::Keep {
            return Err(CreateError::Exists);
        }
        return file.set_len(0).map(|()| file).map_err(CreateError::System);
    }
    Err(CreateError::System(io::Error::other("the file appears and disappears")))
}

/// Creates a file that gets its name when it is complete. The remains of an interrupted process are removed.
///
/// # Errors
/// When the system refuses it.
pub fn temporary(path: &Path) -> io::Result<File> {
    for _ in 0..10 {
        match open_at(path, OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
            other => return Ok(other?),
        }
    }
    Err(io::Error::other("another process creates this file again and again"))
}

/// Opens a regular file for reading and writing, and creates it if it does not exist. Its contents stay.
///
/// # Errors
/// When it is a symbolic link or no regular file, or the system refuses it.
pub fn shared(path: &Path) -> io::Result<File> {
    // A pipe must not keep the caller waiting.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::from_raw_mode(0o666)) {
        Err(Errno::LOOP) => return Err(io::Error::other("it is a symbolic link: remove it")),
        other => File::from(other?),
    };
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file: remove it"))
    }
}

/// Writes a whole file that appears under its name when it is complete. `temporary_path` is on the same file system.
///
/// # Errors
/// When the system refuses it.
pub fn write_whole(path: &Path, temporary_path: &Path, contents: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let written = temporary(temporary_path)
        .and_then(|mut file| file.write_all(contents))
        .and_then(|()| fs::rename(temporary_path, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(temporary_path);
    }
    written
}

fn open_at(path: &Path, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::from_raw_mode(0o666)).map(File::from)
}

fn is_stream(path: &Path) -> bool {
    STREAMS.iter().any(|stream| path == Path::new(stream))
        || path.parent().is_some_and(|folder| STREAM_FOLDERS.iter().any(|known| folder == Path::new(known)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn no_output_goes_through_a_symbolic_link() {
        let folder = folder();
        let (victim, absent, link) =
            (folder.path().join("victim"), folder.path().join("absent"), folder.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        for target in [&victim, &absent] {
            symlink(target, &link).unwrap();
            for existing in [Existing::Keep, Existing::Replace] {
                assert!(matches!(create(&link, existing), Err(CreateError::SymbolicLink)), "{existing:?}");
            }
            assert!(shared(&link).unwrap_err().to_string().contains("symbolic link"));
            // A temporary file takes the place of the link itself.
            drop(temporary(&link).unwrap());
            assert!(fs::symlink_metadata(&link).unwrap().is_file());
            fs::remove_file(&link).unwrap();
        }
        symlink(&victim, &link).unwrap();
        write_whole(&folder.path().join("whole"), &link, b"new").unwrap();
        assert_eq!(fs::read(folder.path().join("whole")).unwrap(), b"new");
        assert_eq!((fs::read_to_string(&victim).unwrap().as_str(), absent.exists()), ("precious", false));
    }

    #[test]
    fn an_existing_file_is_kept_unless_it_may_be_replaced() {
        let folder = folder();
        let path = folder.path().join("result");
        write!(create(&path, Existing::Keep).unwrap(), "a long first result").unwrap();
        assert!(matches!(create(&path, Existing::Keep), Err(CreateError::Exists)));
        write!(create(&path, Existing::Replace).unwrap(), "second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        fs::write(&path, "").unwrap();
        assert!(create(&path, Existing::Keep).is_ok(), "an empty file is what failed work has left");
        assert!(matches!(create(folder.path(), Existing::Replace), Err(CreateError::System(_))), "a folder");
    }

    #[test]
    fn streams_of_the_process_are_no_files() {
        for path in ["/dev/null", "/proc/self/fd/2"] {
            assert!(create(Path::new(path), Existing::Keep).is_ok(), "{path}");
        }
        assert!(!is_stream(Path::new("/dev/shm/result")));
    }

    #[test]
    fn a_shared_file_keeps_its_contents_and_is_regular() {
        let folder = folder();
        let path = folder.path().join(".lock");
        write!(shared(&path).unwrap(), "held").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "held");
        drop(shared(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "held");
        assert!(shared(folder.path()).is_err());
    }
}
