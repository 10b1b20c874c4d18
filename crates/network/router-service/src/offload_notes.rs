//! Notes in files about offloads that a router has turned off, so that they are turned on again after the
//! router was killed.
//!
//! A note is written before anything is turned off, and removed after it was turned on again. It is a file
//! `offloads-NAMESPACE-INTERFACE-PROCESS.json` in the folder that `RUNTIME_DIRECTORY` names (systemd sets it), or else in
//! `/run/cutline`. The router keeps a lock on it, so the note of a living router differs from that of a killed one. Notes are
//! about the network namespace in which they were written, and only there are they acted on.
//!
//! ```json
//! {"version":1,"namespace":4026531840,"index":3,"interface":"eth0","turned_off":["tx-checksumming"]}
//! ```

use cutline_sys::{Offloads, SysError, interface};
use cutline_text::Printable;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::{geteuid, getpid};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The note about one interface, removed when this is dropped.
#[derive(Debug)]
pub struct Note {
    path: PathBuf,
    /// Locked.
    file: File,
    is_kept: bool,
}

/// Content of a note.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    /// The number of the network namespace.
    namespace: u64,
    /// The interface's number in it.
    index: u32,
    /// Its name when the note was written.
    interface: String,
    /// Names of [`Offloads::names`].
    turned_off: Vec<String>,
}

/// Result of restoring from the note of a killed router.
#[derive(Debug)]
pub enum Restored {
    /// Offloads that were turned on again.
    Done {
        /// The interface's present name.
        interface: String,
        /// The offloads' names.
        names: Vec<&'static str>,
    },
    /// The note stays, because of this.
    Failed(String),
}

const VERSION: u32 = 1;
const FOLDER: &str = "/run/cutline";
const PREFIX: &str = "offloads-";
/// The longest note, bytes.
const LONGEST: u64 = 4096;

/// Returns the folder for this process's notes.
pub fn folder() -> PathBuf {
    let of_service = std::env::var_os("RUNTIME_DIRECTORY");
    // systemd.exec(5): there may be several, with colons between them.
    let first = of_service.as_ref().and_then(|folders| std::env::split_paths(folders).next());
    first.filter(|folder| folder.is_absolute()).unwrap_or_else(|| FOLDER.into())
}

impl Note {
    /// Notes that these offloads of an interface will be turned off.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn write(folder: &Path, interface: &str, names: &[&str]) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        let index = interface::index(interface).map_err(io::Error::other)?;
        let namespace = namespace()?;
        let process = getpid().as_raw_nonzero();
        let path = folder.join(format!("{PREFIX}{namespace}-{index}-{process}.json"));
        let mut file = open_locked(&path, OFlags::CREATE)?.ok_or(io::ErrorKind::AlreadyExists)?;
        let (interface, turned_off) = (interface.to_owned(), names.iter().map(ToString::to_string).collect());
        let content = Content { version: VERSION, namespace, index, interface, turned_off };
        file.set_len(0)?;
        file.write_all(serde_json::to_string(&content).map_err(io::Error::other)?.as_bytes())?;
        Ok(Self { path, file, is_kept: false })
    }

    /// Leaves the note for the next router.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if !self.is_kept {
            // The process may no longer write to the folder; an empty note has no effect.
            drop(self.file.set_len(0));
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Opens a regular file and locks it, without waiting; `None` if another process has the lock.
fn open_locked(path: &Path, how: OFlags) -> io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | how;
    let file = File::from(open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let found = file.metadata()?;
    let is_trusted = geteuid().is_root() || found.uid() == geteuid().as_raw();
    if !found.is_file() || !is_trusted {
        return Err(io::Error::other("it is another user's, or no regular file"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::AGAIN) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the number of the calling thread's network namespace.
fn namespace() -> io::Result<u64> {
    std::fs::metadata("/proc/thread-self/ns/net").map(|file| file.ino())
}

/// Turns the offloads on again that killed routers have turned off in this network namespace, by their notes in this process's folder and
/// in those directly below it.
pub fn restore() -> Vec<Restored> {
    let folder = folder();
    let below = entries(&folder).into_iter().filter(|path| path.is_dir());
    let folders: Vec<PathBuf> = below.chain([folder.clone()]).collect();
    let notes = folders.iter().flat_map(|folder| entries(folder));
    let is_note = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        Restored::Failed(format!(
            "the note `{}` of a router that was killed: {error}",
            Printable(path.display())
        ))
    };
    notes
        .filter(is_note)
        .filter_map(|path| restore_one(&path).unwrap_or_else(|error| Some(failed(&path, &error))))
        .collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// `None` if there is nothing to do: the router lives, or the note is about another namespace or nothing.
fn restore_one(path: &Path) -> Result<Option<Restored>, SysError> {
    let failed = |error: io::Error| SysError::new("it cannot be read", error);
    let Some(file) = open_locked(path, OFlags::empty()).map_err(failed)? else { return Ok(None) };
    let mut text = String::new();
    (&file).take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    let note = Note { path: path.to_owned(), file, is_kept: false };
    let content: Content = match serde_json::from_str(&text) {
        Ok(content) => content,
        // A router was killed while it wrote, before it turned anything off; or it has emptied the note at its end.
        Err(error) if error.is_eof() => return Ok(None),
        Err(error) => {
            note.keep();
            return Err(failed(error.into()));
        }
    };
    if content.version != VERSION {
        note.keep();
        return Err(failed(io::Error::other(format!("its version is {}, not {VERSION}", content.version))));
    }
    if Some(content.namespace) != namespace().ok() {
        note.keep();
        return Ok(None);
    }
    let Some(name) = interface::InterfaceWatch::new(content.index)?.name() else { return Ok(None) };
    match Offloads::turn_on(&name, &content.turned_off) {
        Ok(names) if names.is_empty() => Ok(None),
        Ok(names) => Ok(Some(Restored::Done { interface: name, names })),
        Err(error) => {
            note.keep();
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_exists_while_its_offloads_are_off() {
        let folder = tempfile::tempdir().unwrap();
        let note = Note::write(&folder.path().join("new"), "lo", &["tx-checksumming"]).unwrap();
        let path = note.path.clone();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("\"version\":1") && text.contains("\"turned_off\":[\"tx-checksumming\"]"),
            "{text}"
        );
        assert!(restore_one(&path).unwrap().is_none() && path.exists(), "its router lives");
        drop(note);
        assert!(!path.exists());
    }

    #[test]
    fn notes_that_are_not_understood_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("offloads-1-1-1.json");
        let other = format!(
            "{{\"version\":2,\"namespace\":{},\"index\":1,\"interface\":\"lo\",\"turned_off\":[]}}",
            namespace().unwrap()
        );
        for (text, why) in [(other.as_str(), "its version is 2, not 1"), ("[]", "it cannot be read")] {
            std::fs::write(&path, text).unwrap();
            let error = restore_one(&path).unwrap_err().to_string();
            assert!(error.contains(why) && path.exists(), "{error}");
        }
        std::fs::write(&path, other.replace(":2,", ":1,").replace("\"namespace\":", "\"namespace\":9"))
            .unwrap();
        assert!(restore_one(&path).unwrap().is_none() && path.exists(), "it is about another namespace");
        for nothing in ["", "{\"version\":1,\"name"] {
            std::fs::write(&path, nothing).unwrap();
            assert!(restore_one(&path).unwrap().is_none() && !path.exists(), "{nothing:?}");
        }
    }
}
