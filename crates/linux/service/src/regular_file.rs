//! Reading a file that is a regular one and not too long. Reading a pipe or a device might never end.

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The longest file, bytes: a router's file has a few hundred.
pub const LONGEST: u64 = 1 << 20;

/// Returns the text of the file at `path`.
///
/// # Errors
/// The reason why it cannot be read, as the rest of a sentence.
pub fn read(path: &Path) -> Result<String, String> {
    // Opening a pipe must not wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty()).map_err(|errno| std::io::Error::from(errno).to_string())?;
    let status = fstat(&file).map_err(|errno| std::io::Error::from(errno).to_string())?;
    let kind = FileType::from_raw_mode(status.st_mode);
    if kind != FileType::RegularFile {
        return Err(format!("it is {}, not a regular file", name(kind)));
    }
    let mut text = String::new();
    let read = File::from(file).take(LONGEST + 1).read_to_string(&mut text);
    if text.len() as u64 > LONGEST || status.st_size as u64 > LONGEST {
        return Err(format!("it is longer than {LONGEST} B"));
    }
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

/// Returns the text of a file that only its owner may read, such as a key.
///
/// # Errors
/// The reason why it cannot be read, as the rest of a sentence.
pub fn read_private(path: &Path) -> Result<String, String> {
    let mode = std::fs::metadata(path).map_err(|error| error.to_string())?.mode();
    if mode & 0o077 != 0 {
        let mode = mode & 0o777;
        return Err(format!("its mode is {mode:o}, so others may read or change it: allowed is 600 or 400"));
    }
    read(path)
}

fn name(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a pipe",
        FileType::Directory => "a folder",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Socket => "a socket",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mknodat};

    #[test]
    fn only_regular_files_of_bounded_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read(&path).unwrap(), "text");
        std::fs::write(&path, vec![b'#'; LONGEST as usize]).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, LONGEST);
        std::fs::write(&path, vec![b'#'; LONGEST as usize + 1]).unwrap();
        assert_eq!(read(&path).unwrap_err(), "it is longer than 1048576 B");
        std::fs::write(&path, [0xff]).unwrap();
        assert!(read(&path).unwrap_err().contains("UTF-8"));
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(read(&pipe).unwrap_err(), "it is a pipe, not a regular file");
        assert_eq!(read(folder.path()).unwrap_err(), "it is a folder, not a regular file");
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err(), "it is a device, not a regular file");
        assert!(read(Path::new("/nosuch")).unwrap_err().starts_with("No such file"));
    }
}
