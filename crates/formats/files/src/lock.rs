//! Locks: one process at a time works on a file or in a folder.
//!
//! A lock is an advisory lock of the operating system on a file of its own, so that of a process that was killed is gone with it.
//! The file names the process that has the lock, for the message to others. It is removed when the lock is given up.

use crate::shared;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Upper bound of the text about a holder, bytes.
const LONGEST_TEXT: u64 = 200;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    file: File,
}

/// Reason why a lock is not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it: the text of that process about itself.
    Held(String),
    /// The system refuses it.
    System(io::Error),
}

impl FileLock {
    /// Takes the lock whose file is at `path`, without waiting. `since` is the time, for the message to other processes; it may be
    /// empty.
    ///
    /// # Errors
    /// When another process has the lock, or the file is a symbolic link or no regular file, or cannot be created.
    pub fn take(path: &Path, since: &str) -> Result<Self, LockError> {
        loop {
            let file = shared(path).map_err(LockError::System)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&file))),
                Err(TryLockError::Error(error)) => return Err(LockError::System(error)),
            }
            // Another process may have removed the file, with its lock, after it was opened here.
            if is_at(&file, path) {
                let lock = Self { path: path.to_owned(), file };
                lock.describe(since).map_err(LockError::System)?;
                return Ok(lock);
            }
        }
    }

    /// Returns whether the file of the lock is still in its place.
    pub fn is_in_place(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    fn describe(&self, since: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        let since = if since.is_empty() { String::new() } else { format!(", since {since}") };
        write!(&self.file, "process {}{since}", std::process::id())
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.is_in_place() {
            // A file that stays does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns whether this file is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let same =
        |here: fs::Metadata, there: fs::Metadata| (here.dev(), here.ino()) == (there.dev(), there.ino());
    file.metadata()
        .and_then(|here| fs::symlink_metadata(path).map(|there| same(here, there)))
        .unwrap_or(false)
}

/// Returns the text that the holder of a lock has written about itself.
fn holder(file: &File) -> String {
    let mut text = String::new();
    match file.take(LONGEST_TEXT).read_to_string(&mut text) {
        Ok(length) if length > 0 => text,
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_lock_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.lock");
        // A process that was killed leaves its file, which is no lock.
        fs::write(&path, "process 1, since long ago, and with a text that is longer").unwrap();
        let held = FileLock::take(&path, "").unwrap();
        let Err(LockError::Held(holder)) = FileLock::take(&path, "noon") else { panic!("it is held") };
        assert_eq!(holder, format!("process {}", std::process::id()));
        drop(held);
        assert!(!path.exists());
        assert!(FileLock::take(&path, "noon").is_ok());
    }
}
