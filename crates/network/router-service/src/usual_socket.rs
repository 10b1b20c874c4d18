//! The socket of a router for which no path was chosen, and the sockets of all routers that run: so `cutline router stats` needs no path.

use crate::local_socket::LocalSocket;
use crate::offload_notes::folder;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Prefix of the names of these sockets; the number of the process follows.
const START: &str = "router-";
const END: &str = "sock";

/// Binds the usual socket of this process, and removes those of killed ones. `None` where this process may not write: then the router runs
/// without, as none was requested.
pub fn bind() -> Option<LocalSocket> {
    let folder = folder();
    fs::create_dir_all(&folder).ok()?;
    for path in sockets(&folder).into_iter().filter(|path| is_usual(path) && is_dead(path)) {
        drop(fs::remove_file(path.with_extension("sock.lock")));
        drop(fs::remove_file(path));
    }
    LocalSocket::bind(&folder.join(format!("{START}{}.{END}", std::process::id()))).ok()
}

/// The sockets at which a router answers, in the folder of routers and in those of their units.
pub fn running() -> Vec<PathBuf> {
    let folder = folder();
    let mut found = sockets(&folder);
    let folders = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    found.extend(folders.filter(|path| path.is_dir()).flat_map(|path| sockets(&path)));
    found.retain(|path| UnixStream::connect(path).is_ok());
    found.sort();
    found
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.map(|entry| entry.path()).filter(|path| path.extension() == Some(OsStr::new(END))).collect()
}

fn is_usual(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(START))
}

/// Returns whether no process listens there any longer.
fn is_dead(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}
