//! The files of a folder, for tests that compare or copy results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files with their contents, by their paths in a folder.
pub type FolderFiles = BTreeMap<PathBuf, Vec<u8>>;

/// Returns the files of a folder and its subfolders.
///
/// # Panics
/// When one of them cannot be read.
pub fn read_folder(root: &Path) -> FolderFiles {
    let (mut files, mut folders) = (FolderFiles::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(path).unwrap());
            }
        }
    }
    files
}

/// Writes files into a folder, with their subfolders.
///
/// # Panics
/// When one of them cannot be written.
pub fn write_folder(root: &Path, files: &FolderFiles) {
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}
