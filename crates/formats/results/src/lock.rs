//! The lock on a folder of results: one process at a time stores there.
//!
//! It is an advisory lock of the operating system on the file `.lock`, so that of a process that was killed is gone with it.
//! The file names the process that has the lock, for the message to others. It is removed when the lock is given up, and so is the
//! folder if nothing else is in it.

use crate::error::StoreError;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const FILE: &str = ".lock";
/// Upper bound of the text about a holder.
const LONGEST_TEXT: u64 = 200;

/// A lock that is held. No other process stores results in its folder.
#[derive(Debug)]
pub struct Lock {
    folder: PathBuf,
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock on a folder, which is created if it is not there, without waiting. `since` is the time, for the
    /// message to other processes.
    ///
    /// # Errors
    /// When another process has the lock, or the folder or the file cannot be created.
    pub fn take(folder: &Path, since: &str) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        let failed = |error| StoreError::io(&path, error);
        loop {
            fs::create_dir_all(folder).map_err(|error| StoreError::io(folder, error))?;
            let file = match cutline_files::shared(&path) {
                // Another process has removed the folder, which was empty.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => continue,
                file => file.map_err(failed)?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Locked { folder: folder.to_owned(), holder: holder(&file) });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // Another process may have removed the file, with its lock, after it was opened here.
            if is_at(&file, &path) {
                let lock = Self { folder: folder.to_owned(), path: path.clone(), file };
                lock.describe(since).map_err(failed)?;
                return Ok(lock);
            }
        }
    }

    /// The folder that it is for.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn describe(&self, since: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        let since = if since.is_empty() { String::new() } else { format!(", since {since}") };
        write!(&self.file, "process {}{since}", std::process::id())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            // A file that stays does no harm.
            let _ = fs::remove_file(&self.path);
            // Only an empty folder can be removed.
            let _ = fs::remove_dir(&self.folder);
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
