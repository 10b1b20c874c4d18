//! The file of the table of counters, which the program's processes map.

use crate::ExecError;
use cutline_marking::table::{self, Snapshot};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Prefix of the folders' names.
const PREFIX: &str = "cutline-exec-";
/// The file in a folder.
const TABLE: &str = "table";
/// The file until it is locked.
const UNLOCKED: &str = "unlocked";

/// The table's file, in a folder that only this user may enter. Both are removed when this is dropped. Both are locked as long as this
/// process lives, so that a later run recognises the remains of a killed one ([`sweep`]).
pub(crate) struct Counters {
    folder: TempDir,
    /// The locks are held as long as the folder and the file are open. Some file systems lock no folders.
    _locked: (Option<File>, File),
}

impl Counters {
    /// Makes the file, and removes those that killed runs of this user have left.
    ///
    /// # Errors
    /// When the folder for temporary files cannot be written.
    pub(crate) fn new() -> Result<Self, ExecError> {
        let place = std::env::temp_dir();
        sweep(&place);
        Self::within(&place)
            .map_err(|source| ExecError::System { failure: "the table of counters cannot be made", source })
    }

    fn within(place: &Path) -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
            let lock = match locked(folder.path()) {
                // Until it was locked, another run has taken it for a killed one's, and removes it.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotFound) => continue,
                lock => lock.ok(),
            };
            // It has its name only when it is locked: an unlocked one is taken for a killed run's.
            let unlocked = folder.path().join(UNLOCKED);
            let file = File::create_new(&unlocked)?;
            file.set_len(table::BYTES as u64)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            fs::rename(unlocked, folder.path().join(TABLE))?;
            return Ok(Self { folder, _locked: (lock, file) });
        }
    }

    /// The file's path.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(TABLE)
    }

    /// Reads the table.
    pub(crate) fn read(&self) -> Option<Snapshot> {
        Snapshot::read(&fs::read(self.path()).ok()?)
    }
}

/// Removes the folders whose run was killed. Those of other users stay.
fn sweep(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().filter_map(Result::ok);
    let ours = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    for folder in ours.map(|entry| entry.path()).filter(|folder| is_of_this_user(folder)) {
        // While it is locked, no run begins in it.
        let Ok(_locked) = locked(&folder) else { continue };
        if !is_table_locked(&folder) {
            let _absent = [TABLE, UNLOCKED].map(|name| fs::remove_file(folder.join(name)));
            // One with other files stays.
            let _is_gone = fs::remove_dir(&folder);
        }
    }
}

fn is_of_this_user(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw())
}

fn is_table_locked(folder: &Path) -> bool {
    match open(&folder.join(TABLE), OFlags::NONBLOCK) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_err(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Locks a folder.
///
/// # Errors
/// [`ErrorKind::WouldBlock`] when another process has locked it; [`ErrorKind::NotFound`] when it is gone.
fn locked(folder: &Path) -> io::Result<File> {
    let file = open(folder, OFlags::DIRECTORY)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // It may have been removed before it was locked.
    fs::symlink_metadata(folder).map(|_| file)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | flags;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_table_is_empty() {
        let counters = Counters::new().unwrap();
        let path = counters.path();
        let read = counters.read().unwrap();
        assert_eq!((read.sockets().count(), read.without_record()), (0, 0));
        drop(counters);
        assert!(!path.exists());
    }

    #[test]
    fn counters_of_a_killed_run_alone_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let running = Counters::within(place.path()).unwrap();
        let killed = Counters::within(place.path()).unwrap();
        let left = killed.path();
        // The lock of a killed process is gone; its folder is not.
        let Counters { folder, _locked: locked } = killed;
        let _path = folder.keep();
        drop(locked);
        // Killed before the table was locked, or made.
        let [begun, empty] = ["begun", "empty"].map(|name| place.path().join(format!("{PREFIX}{name}")));
        fs::create_dir(&begun).unwrap();
        fs::write(begun.join(UNLOCKED), "").unwrap();
        fs::create_dir(&empty).unwrap();
        let target = place.path().join("target");
        fs::create_dir(&target).unwrap();
        fs::write(target.join(TABLE), "").unwrap();
        let link = place.path().join("cutline-exec-link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        sweep(place.path());
        assert!(running.path().exists() && !left.parent().unwrap().exists());
        assert!(!begun.exists() && !empty.exists());
        assert!(target.join(TABLE).exists() && link.symlink_metadata().is_ok());
        sweep(place.path());
        assert!(running.path().exists());
    }
}
