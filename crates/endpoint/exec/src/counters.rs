//! The file of the table of counters, which the program's processes map.

use crate::ExecError;
use cutline_marking::table::{self, Snapshot};
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Prefix of the folders' names.
const PREFIX: &str = "cutline-exec-";
/// The file in a folder.
const TABLE: &str = "table";

/// The table's file, in a folder that only this user may enter. Both are removed when this is dropped. The file is locked as long as this
/// process lives, so that a later run recognises the remains of a killed one ([`sweep`]).
pub(crate) struct Counters {
    folder: TempDir,
    /// The lock is held as long as the file is open.
    _locked: File,
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
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        // It has its name only when it is locked: an unlocked one is taken for a killed run's.
        let unlocked = folder.path().join("unlocked");
        let file = File::create_new(&unlocked)?;
        file.set_len(table::BYTES as u64)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(unlocked, folder.path().join(TABLE))?;
        Ok(Self { folder, _locked: file })
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
    for folder in ours.map(|entry| entry.path()).filter(|folder| is_stale(folder)) {
        // Another run may be removing it.
        let _is_gone = fs::remove_file(folder.join(TABLE)).and_then(|()| fs::remove_dir(&folder));
    }
}

fn is_stale(folder: &Path) -> bool {
    let is_ours =
        fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
    let open = || {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(folder.join(TABLE))
    };
    is_ours && open().is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_nobody_used_is_empty() {
        let counters = Counters::new().unwrap();
        let path = counters.path();
        let read = counters.read().unwrap();
        assert_eq!((read.sockets().count(), read.without_record()), (0, 0));
        drop(counters);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_run_has_left_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let running = Counters::within(place.path()).unwrap();
        let killed = Counters::within(place.path()).unwrap();
        let left = killed.path();
        // The lock of a killed process is gone; its folder is not.
        let Counters { folder, _locked: locked } = killed;
        let _path = folder.keep();
        drop(locked);
        let target = place.path().join("target");
        fs::create_dir(&target).unwrap();
        fs::write(target.join(TABLE), "").unwrap();
        let link = place.path().join("cutline-exec-link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        sweep(place.path());
        assert!(running.path().exists() && !left.parent().unwrap().exists());
        assert!(target.join(TABLE).exists() && link.symlink_metadata().is_ok());
        sweep(place.path());
        assert!(running.path().exists());
    }
}
