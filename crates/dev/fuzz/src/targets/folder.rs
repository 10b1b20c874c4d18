//! A folder for the parsers that read files.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Folder in memory for the inputs, if there is one: a disk would take longer than the parsers.
const IN_MEMORY: &str = "/dev/shm";

/// A folder with one file.
pub struct Folder;

thread_local! {
    /// One for each thread, for good: making one takes longer than reading most files.
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

impl Folder {
    /// Calls `read` with a folder in which the file `name` has these bytes.
    pub fn with<T>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
        FOLDER.with_borrow_mut(|folder| {
            let folder = folder.get_or_insert_with(make);
            fs::write(folder.path().join(name), bytes).expect("a file can be written");
            read(folder.path())
        })
    }
}

fn make() -> TempDir {
    tempfile::tempdir_in(IN_MEMORY).or_else(|_| tempfile::tempdir()).expect("a folder can be made")
}
