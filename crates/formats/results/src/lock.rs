//! The lock on a folder of results: one process at a time stores there.
//!
//! It is an advisory lock of the operating system on the file `.lock`, so that of a process that was killed is gone with it.
//! The file names the process that has the lock, for the message to others. It is removed when the lock is given up, and so is the
//! folder if nothing else is in it.

use crate::error::StoreError;
use cutline_files::{FileLock, LockError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const FILE: &str = ".lock";

/// A lock that is held. No other process stores results in its folder.
#[derive(Debug)]
pub struct Lock {
    folder: PathBuf,
    /// The lock on the file; `None` once it is given up.
    file: Option<FileLock>,
}

impl Lock {
    /// Takes the lock on a folder, which is created if it is not there, without waiting. `since` is the time, for the
    /// message to other processes.
    ///
    /// # Errors
    /// When another process has the lock, or the folder or the file cannot be created.
    pub fn take(folder: &Path, since: &str) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        loop {
            fs::create_dir_all(folder).map_err(|error| StoreError::io(folder, error))?;
            match FileLock::take(&path, since) {
                Ok(file) => return Ok(Self { folder: folder.to_owned(), file: Some(file) }),
                // Another process has removed the folder, which was empty.
                Err(LockError::System(error))
                    if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {}
                Err(LockError::System(error)) => return Err(StoreError::io(&path, error)),
                Err(LockError::Held(holder)) => {
                    return Err(StoreError::Locked { folder: folder.to_owned(), holder });
                }
            }
        }
    }

    /// The folder that it is for.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = self.file.take().filter(FileLock::is_in_place) {
            drop(file);
            // Only an empty folder can be removed.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_lock_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let held = Lock::take(folder.path(), "noon").unwrap();
        let said = Lock::take(folder.path(), "later").unwrap_err().to_string();
        assert!(said.ends_with(&format!("(process {}, since noon)", std::process::id())), "{said}");
        drop(held);
        assert!(!folder.path().exists(), "nothing else was in it");
        Lock::take(folder.path(), "").unwrap();
    }

    /// In a folder of another user the lock's name may lead to any file.
    #[test]
    fn a_lock_is_no_symbolic_link() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, results) = (folder.path().join("victim"), folder.path().join("results"));
        fs::write(&victim, "precious").unwrap();
        fs::create_dir(&results).unwrap();
        std::os::unix::fs::symlink(&victim, results.join(FILE)).unwrap();
        let said = Lock::take(&results, "noon").unwrap_err().to_string();
        assert!(said.contains(".lock") && said.contains("symbolic link"), "{said}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_file_that_a_killed_process_left_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "process 1, since long ago, and with a text that is longer")
            .unwrap();
        let held = Lock::take(folder.path(), "noon").unwrap();
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(text, format!("process {}, since noon", std::process::id()));
        drop(held);
    }
}
