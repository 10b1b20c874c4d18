//! A local socket (unix(7)) that answers requests: a client sends a line, and receives lines.
//!
//! ```text
//! bind    replaces the socket file of a process that has ended, and refuses that of a running one
//! serve   starts one thread that accepts clients, and one for each client
//! ```
//!
//! Each client has a thread, so a slow one delays no other. It is disconnected when it has not read a line within a second,
//! or has sent nothing for a minute. At most eight are connected at a time.
//!
//! The socket's file has the mode 0660: its owner and group may connect.

use crate::privileges::User;
use cutline_sys::SysError;
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::process::umask;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A bound socket, whose file is removed when this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file, so that no other file is removed.
    file: (u64, u64),
}

/// Answers a request: sends lines to the client by a function that fails when the client has gone or is too slow.
pub type Answer = dyn Fn(&str, &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> + Send + Sync;

/// The most clients that are connected at a time.
const MAX_CLIENTS: usize = 8;
/// How long a client may take to read a line.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a client may send nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest request, bytes.
const MAX_REQUEST: u64 = 200;

impl LocalSocket {
    /// Binds a socket to `path`, in a folder that exists. The socket file of a process that has ended is replaced.
    ///
    /// # Errors
    /// When another process listens there, when the file is no socket, or the process may not write to the folder.
    pub fn bind(path: &Path) -> Result<Self, SysError> {
        let failed =
            |error: io::Error| SysError::new(format!("socket `{}` cannot be opened", path.display()), error);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = File::open(folder).map_err(failed)?;
        // Two processes that start at the same time would replace each other's socket. The lock ends with the file.
        flock(&folder, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        clear(path).map_err(failed)?;
        let before = umask(Mode::RWXO | Mode::XUSR | Mode::XGRP);
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.map_err(failed)?;
        let file = identity(&std::fs::symlink_metadata(path).map_err(failed)?);
        Ok(Self { listener, path: path.to_owned(), file })
    }

    /// Changes the file's owner to a user and the user's group.
    ///
    /// # Errors
    /// When the process may not.
    pub fn set_owner(&self, user: &User) -> Result<(), SysError> {
        chown(&self.path, Some(user.id()), Some(user.group())).map_err(|error| {
            let failure = format!("the owner of socket `{}` cannot be changed", self.path.display());
            SysError::privileged(failure, "CAP_CHOWN", error)
        })
    }

    /// Starts threads that answer clients until the process ends.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn serve(&self, answer: Arc<Answer>) -> Result<(), SysError> {
        let failed = |error| SysError::new("the statistics' thread cannot be started", error);
        let listener = self.listener.try_clone().map_err(failed)?;
        let accept = move || accept(&listener, &answer);
        thread::Builder::new().name("statistics".to_owned()).spawn(accept).map_err(failed).map(drop)
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        let is_ours = std::fs::symlink_metadata(&self.path).is_ok_and(|file| identity(&file) == self.file);
        if is_ours {
            // The process may no longer write to the folder; the next one replaces the file.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Removes the socket file of a process that has ended.
fn clear(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(io::Error::other("the file there is not a socket"));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::other("another process serves it")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn accept(listener: &UnixListener, answer: &Arc<Answer>) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((client, _)) = listener.accept() else {
            // There may be no file descriptors left; later there may be some.
            thread::park_timeout(WRITE_TIMEOUT);
            continue;
        };
        if clients.load(Ordering::Relaxed) >= MAX_CLIENTS {
            // The client sees that the connection was closed.
            continue;
        }
        clients.fetch_add(1, Ordering::Relaxed);
        let (answer, count) = (Arc::clone(answer), Arc::clone(&clients));
        let serve = move || {
            // A client that has gone, or is too slow, ends its thread and nothing else.
            drop(attend(&client, &*answer));
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("client".to_owned()).spawn(serve).is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Answers one client until it closes.
fn attend(client: &UnixStream, answer: &Answer) -> io::Result<()> {
    client.set_write_timeout(Some(WRITE_TIMEOUT))?;
    client.set_read_timeout(Some(READ_TIMEOUT))?;
    let mut lines = BufReader::new(client);
    let mut writer = client;
    let mut say = |line: &str| writer.write_all(format!("{line}\n").as_bytes());
    loop {
        let mut request = String::new();
        (&mut lines).take(MAX_REQUEST).read_line(&mut request)?;
        if !request.ends_with('\n') {
            return Ok(());
        }
        answer(request.trim(), &mut say)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn place(label: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("cutline-local-{}-{label}", std::process::id()));
        drop(std::fs::remove_file(&path));
        path
    }

    fn echo() -> Arc<Answer> {
        Arc::new(|request, say| {
            if request == "flood" {
                loop {
                    say(&"x".repeat(10_000))?;
                }
            }
            say(&format!("<{request}>"))?;
            say("end")
        })
    }

    fn ask(client: &UnixStream, request: &str) -> Vec<String> {
        let mut writer = client;
        writeln!(writer, "{request}").unwrap();
        BufReader::new(client).lines().map(Result::unwrap).take(2).collect()
    }

    #[test]
    fn a_request_is_answered_by_lines() {
        let path = place("echo");
        let socket = LocalSocket::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        socket.serve(echo()).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&client, "one "), ["<one>", "end"]);
        assert_eq!(ask(&client, "two"), ["<two>", "end"]);
        drop(socket);
        assert!(!path.exists(), "its file goes with it");
    }

    /// Nine clients that read nothing: the ninth is disconnected at once, and when the others are there is room again.
    #[test]
    fn slow_clients_are_disconnected() {
        let path = place("slow");
        let socket = LocalSocket::bind(&path).unwrap();
        socket.serve(echo()).unwrap();
        let slow: Vec<UnixStream> = (0..MAX_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for mut client in &slow {
            client.write_all(b"flood\n").unwrap();
        }
        let mut ninth = UnixStream::connect(&path).unwrap();
        assert_eq!(ninth.read(&mut [0]).unwrap(), 0, "it was closed");
        let answered = (0..100).any(|_| {
            thread::park_timeout(Duration::from_millis(100));
            let mut client = UnixStream::connect(&path).unwrap();
            let mut line = String::new();
            let asked = client.write_all(b"hello\n");
            asked.is_ok() && BufReader::new(client).read_line(&mut line).is_ok() && line == "<hello>\n"
        });
        assert!(answered, "the slow ones have been disconnected");
    }

    #[test]
    fn only_the_file_of_an_ended_process_is_replaced() {
        let path = place("stale");
        let first = LocalSocket::bind(&path).unwrap();
        let error = LocalSocket::bind(&path).unwrap_err().to_string();
        assert!(error.ends_with("another process serves it"), "{error}");
        // As after a kill: the listener is closed, and the file is there.
        let stale = identity(&std::fs::symlink_metadata(&path).unwrap());
        let second = std::mem::ManuallyDrop::new(first);
        // The file descriptor is closed by shutting the socket down, which is all that a connecting client sees.
        rustix::net::shutdown(&second.listener, rustix::net::Shutdown::Both).unwrap();
        let third = LocalSocket::bind(&path).unwrap();
        assert_ne!(third.file, stale);
        drop(std::mem::ManuallyDrop::into_inner(second));
        assert!(path.exists(), "the first removes its own file only");
        drop(third);
        std::fs::write(&path, "a file").unwrap();
        let error = LocalSocket::bind(&path).unwrap_err().to_string();
        assert!(error.ends_with("the file there is not a socket"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert!(LocalSocket::bind(Path::new("/nosuch/r.sock")).is_err());
    }
}
