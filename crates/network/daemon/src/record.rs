//! Record of the interfaces at which this process may have traffic control: a file beside its socket, `SOCKET.interfaces`, with a name in each
//! line.
//!
//! A process that is killed leaves its disciplines in the kernel. The next one may have another file, without these interfaces or without the
//! resource manager. It removes the leftovers at all interfaces of the record that its own file does not name.

use cutline_netlink::{Interface, sweep};
use cutline_service::regular_file;
use cutline_text::Printable;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Record of interfaces. Its file is removed when this is dropped, after everything that has installed traffic control.
#[derive(Debug)]
pub struct InterfaceRecord {
    path: PathBuf,
    /// Interfaces of this process.
    own: BTreeSet<String>,
    /// Interfaces at which an earlier process may have left something.
    left: BTreeSet<String>,
}

impl InterfaceRecord {
    /// Removes the leftovers of an earlier process with this socket, except at interfaces of `own`, and writes the record of this process. The
    /// caller holds the socket, so that no other process has the record. Problems and removals are added to `notices`.
    pub fn open(socket: &Path, own: BTreeSet<String>, notices: &mut Vec<String>) -> Self {
        let mut path = socket.as_os_str().to_owned();
        path.push(".interfaces");
        let path = PathBuf::from(path);
        let left = read(&path).unwrap_or_else(|why| {
            notices.push(format!(
                "`{}` cannot be read, and traffic control of an earlier cutlined may be left at the interfaces in it: {why}",
                Printable(path.display())
            ));
            BTreeSet::new()
        });
        let mut this = Self { path, own, left };
        this.remove_leftovers(notices);
        this.write(notices);
        this
    }

    fn remove_leftovers(&mut self, notices: &mut Vec<String>) {
        let own = &self.own;
        self.left.retain(|name| own.contains(name) || !is_removed(name, notices));
    }

    /// Notes that the leftovers at the interfaces of this process are removed: this process has installed its own there.
    pub fn note_start(&mut self) {
        let own = &self.own;
        self.left.retain(|name| !own.contains(name));
    }

    /// Adds interfaces. Those that are no longer in the file stay in the record.
    pub fn add(&mut self, names: BTreeSet<String>, notices: &mut Vec<String>) {
        let before = self.own.len();
        self.own.extend(names);
        if self.own.len() > before {
            self.write(notices);
        }
    }

    /// Writes the file, or removes it if there is nothing to write.
    fn write(&self, notices: &mut Vec<String>) {
        let text: String = self.own.union(&self.left).flat_map(|name| [name.as_str(), "\n"]).collect();
        let written = if text.is_empty() {
            match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        } else {
            let mut temporary = self.path.as_os_str().to_owned();
            temporary.push(".new");
            cutline_files::write_whole(&self.path, Path::new(&temporary), text.as_bytes())
        };
        if let Err(error) = written {
            notices.push(format!(
                "`{}` cannot be written, so a start after a kill removes leftovers only at interfaces of its own file: {error}",
                Printable(self.path.display())
            ));
        }
    }
}

impl Drop for InterfaceRecord {
    fn drop(&mut self) {
        self.own.clear();
        // The log has ended.
        self.write(&mut Vec::new());
    }
}

/// Reads the names in a record. A record that is missing has none.
fn read(path: &Path) -> Result<BTreeSet<String>, String> {
    if !path.exists() {
        return Ok(BTreeSet::new());
    }
    Ok(regular_file::read(path)?.lines().map(str::to_owned).collect())
}

/// Removes the leftovers at an interface. Returns false if they could not be removed.
fn is_removed(name: &str, notices: &mut Vec<String>) -> bool {
    // With an interface that has gone, its traffic control has gone.
    let Ok(interface) = Interface::named(name) else { return true };
    match sweep(&interface) {
        Ok(false) => true,
        Ok(true) => {
            notices.push(format!(
                "interface `{name}`: the traffic control that an earlier cutlined had left is removed"
            ));
            true
        }
        Err(error) => {
            notices.push(format!(
                "interface `{name}`: the traffic control that an earlier cutlined has left cannot be removed: {error}"
            ));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_record_has_the_interfaces_of_a_process_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, file) = (folder.path().join("c.sock"), folder.path().join("c.sock.interfaces"));
        let text = || std::fs::read_to_string(&file).unwrap();
        let mut notices = Vec::new();
        let mut record = InterfaceRecord::open(&socket, names(&["no1", "no2"]), &mut notices);
        assert_eq!(text(), "no1\nno2\n");
        record.add(names(&["no2", "no3"]), &mut notices);
        assert_eq!(text(), "no1\nno2\nno3\n");
        drop(record);
        assert!(!file.exists());
        // A host with a monitor alone has no file.
        drop(InterfaceRecord::open(&socket, BTreeSet::new(), &mut notices));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(notices, [""; 0]);
    }

    #[test]
    fn a_start_that_fails_keeps_the_interfaces_of_the_killed_process() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, file) = (folder.path().join("c.sock"), folder.path().join("c.sock.interfaces"));
        let text = || std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, "no1\nno2\n").unwrap();
        let mut notices = Vec::new();
        // `no1` does not exist, so nothing is left there.
        let record = InterfaceRecord::open(&socket, names(&["no2", "no3"]), &mut notices);
        assert_eq!(text(), "no2\nno3\n");
        drop(record);
        assert_eq!(text(), "no2\n");
        let mut record = InterfaceRecord::open(&socket, names(&["no2", "no3"]), &mut notices);
        record.note_start();
        drop(record);
        assert!(!file.exists());
        assert_eq!(notices, [""; 0]);
    }

    #[test]
    fn a_file_of_another_kind_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.sock.interfaces");
        std::fs::create_dir(&file).unwrap();
        let mut notices = Vec::new();
        drop(InterfaceRecord::open(&folder.path().join("c.sock"), names(&["no1"]), &mut notices));
        let [first, second] = &notices[..] else { panic!("{notices:?}") };
        assert!(first.contains("cannot be read") && first.contains("it is a folder"), "{first}");
        assert!(second.contains("cannot be written"), "{second}");
    }
}
