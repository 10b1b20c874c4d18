//! A local socket (unix(7)) that answers requests: a client sends a line, and receives lines.
//!
//! ```text
//! bind    replaces the socket file of a process that has ended, and refuses that of a running one
//! serve   starts one thread that accepts clients, and one for each client
//! ```
//!
//! Each client has a thread, so a slow one delays no other. It is disconnected when it has not read a line within a second,
//! or has not sent a line for a minute, unless it holds reservations. At most eight are connected at a time, and fewer where the process may open few
//! descriptors: [`RESERVED`] of them are left for the rest of it. A client that is one too many is told so.
//!
//! While a process has the socket, it holds a lock on a file beside it, `PATH.lock`, which its owner alone may open.
//!
//! The socket's file has the mode 0660: its owner and group may connect.

use crate::privileges::User;
use crate::statistics::Refusal;
use cutline_sys::{SysError, now};
use cutline_text::Printable;
use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Resource, geteuid, getrlimit, umask};
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A bound socket, whose file is removed when this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    listener: UnixListener,
    /// Kept because dropping it ends the lock.
    _lock: Lock,
    /// How many clients were refused.
    refused: Arc<AtomicU64>,
    path: PathBuf,
    /// Device and inode of the file, so that no other file is removed.
    file: (u64, u64),
}

/// Sends a line to a client. Fails when the client has gone or is too slow.
pub type Say<'a> = &'a mut dyn FnMut(&str) -> io::Result<()>;

/// What answers one client. It is dropped when the client's connection has ended.
pub trait Session: Send {
    /// Answers a request by lines. An error ends the connection.
    fn answer(&mut self, request: &str, say: Say<'_>) -> io::Result<()>;

    /// Returns whether the client has something for as long as it is connected. Then it may be silent.
    fn is_holding(&self) -> bool {
        false
    }
}

/// Returns a session for a new client.
pub type Reception = dyn Fn() -> Box<dyn Session> + Send + Sync;

/// The most clients that are connected at a time.
const MAX_CLIENTS: usize = 8;
/// How long a client may take to read a line.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a client may send nothing.
const READ_TIMEOUT: cutline_units::Duration = cutline_units::Duration::from_secs(60);
/// The descriptors that are left for the rest of the process: output, signals, a file that is read, a client that is refused.
const RESERVED: u64 = 8;
/// The stack of a client's thread, bytes. A document takes some ten kilobytes, most of them not here.
const STACK: usize = 256 * 1024;
/// The longest request, bytes: a reservation with as many filters as a request may have.
pub const MAX_REQUEST: usize = 4096;

impl LocalSocket {
    /// Binds a socket to `path`, in a folder that exists. The socket file of a process that has ended is replaced.
    ///
    /// # Errors
    /// When another process listens there, when the file is no socket, or the process may not write to the folder.
    pub fn bind(path: &Path) -> Result<Self, SysError> {
        let failed = |error: io::Error| {
            SysError::new(format!("socket `{}` cannot be opened", Printable(path.display())), error)
        };
        // Two processes that start at the same time would replace each other's socket.
        let lock = Lock::take(path).map_err(failed)?;
        clear(path).map_err(failed)?;
        let before = umask(Mode::RWXO | Mode::XUSR | Mode::XGRP);
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.map_err(failed)?;
        let file = identity(&std::fs::symlink_metadata(path).map_err(failed)?);
        Ok(Self { listener, _lock: lock, refused: Arc::default(), path: path.to_owned(), file })
    }

    /// Returns the counter of clients that were refused.
    pub fn refused(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.refused)
    }

    /// Changes the owner of the socket's file to a user and the user's group.
    ///
    /// # Errors
    /// When the process may not.
    pub fn set_owner(&self, user: &User) -> Result<(), SysError> {
        chown(&self.path, Some(user.id()), Some(user.group())).map_err(|error| {
            let failure =
                format!("the owner of socket `{}` cannot be changed", Printable(self.path.display()));
            SysError::privileged(failure, "CAP_CHOWN", error)
        })
    }

    /// Starts threads that answer clients until the process ends.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn serve(&self, reception: Arc<Reception>) -> Result<(), SysError> {
        let failed = |error| SysError::new("the statistics' thread cannot be started", error);
        let listener = self.listener.try_clone().map_err(failed)?;
        let (seats, refused) = (seats(), self.refused());
        let accept = move || accept(&listener, seats, &refused, &reception);
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
    // A process that does not accept must not keep this one waiting.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::AGAIN) => Err(served()),
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path),
        Err(errno) => Err(errno.into()),
    }
}

fn served() -> io::Error {
    io::Error::other("another process serves it")
}

/// A lock that ends with the process, on a file that its owner alone may open.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock of the socket at `path`, without waiting.
    fn take(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        // A process that ends removes its file, perhaps between our opening and locking it.
        for _ in 0..100 {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|errno| {
                io::Error::other(format!(
                    "its lock `{}`: {}",
                    Printable(path.display()),
                    io::Error::from(errno)
                ))
            })?);
            let found = file.metadata()?;
            let is_ours = found.uid() == geteuid().as_raw();
            // Root takes over what an unprivileged router has left.
            if !found.is_file() || !(is_ours || geteuid().is_root()) {
                let why = "is another user's, or no regular file: remove it";
                return Err(io::Error::other(format!("its lock `{}` {why}", Printable(path.display()))));
            }
            if is_ours {
                fchmod(&file, Mode::RUSR | Mode::WUSR)?;
            }
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::AGAIN) => return Err(served()),
                Err(errno) => return Err(errno.into()),
            }
            if std::fs::symlink_metadata(&path).is_ok_and(|there| identity(&there) == identity(&found)) {
                return Ok(Self { path, file });
            }
        }
        Err(served())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let ours = self.file.metadata().map(|file| identity(&file)).ok();
        if std::fs::symlink_metadata(&self.path).ok().map(|file| identity(&file)) == ours {
            // The process may no longer write to the folder; the next one takes the file over.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Returns how many clients may be connected at a time.
fn seats() -> usize {
    let open =
        std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1) as u64);
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    most.saturating_sub(open + RESERVED).min(MAX_CLIENTS as u64) as usize
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn accept(listener: &UnixListener, seats: usize, refused: &AtomicU64, reception: &Arc<Reception>) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((client, _)) = listener.accept() else {
            // There may be no file descriptors left; later there may be some.
            thread::park_timeout(WRITE_TIMEOUT);
            continue;
        };
        if clients.load(Ordering::Relaxed) >= seats {
            refuse(&client, seats);
            refused.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        clients.fetch_add(1, Ordering::Relaxed);
        let (reception, count) = (Arc::clone(reception), Arc::clone(&clients));
        let serve = move || {
            // A client that has gone, or is too slow, ends its thread and nothing else.
            drop(attend(&client, &mut *reception()));
            count.fetch_sub(1, Ordering::Relaxed);
        };
        let thread = thread::Builder::new().name("client".to_owned()).stack_size(STACK);
        if thread.spawn(serve).is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Tells a client that it is one too many. What it does not read at once, it does not get.
fn refuse(mut client: &UnixStream, seats: usize) {
    let refusal = Refusal::new(&format!(
        "{seats} clients are connected, which are all that it serves: ask again later"
    ));
    drop(client.set_nonblocking(true));
    drop(client.write_all(format!("{}\n", refusal.json()).as_bytes()));
}

/// Answers one client until it closes.
fn attend(client: &UnixStream, session: &mut dyn Session) -> io::Result<()> {
    client.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut lines = BufReader::new(client);
    let mut writer = client;
    let mut say = |line: &str| writer.write_all(format!("{line}\n").as_bytes());
    while let Some(request) = request(&mut lines, session.is_holding())? {
        session.answer(request.trim(), &mut say)?;
    }
    Ok(())
}

/// Reads a line, which must be there in time, however the client sends it. `None` when it has gone, or sends no request. A client
/// that may be silent is waited for until it sends the first byte.
fn request(lines: &mut BufReader<&UnixStream>, may_be_silent: bool) -> io::Result<Option<String>> {
    if may_be_silent {
        lines.get_ref().set_read_timeout(None)?;
        lines.fill_buf()?;
    }
    let end = now() + READ_TIMEOUT;
    let mut request = Vec::new();
    while request.len() < MAX_REQUEST && request.last() != Some(&b'\n') {
        let left = end.saturating_since(now()).as_nanos();
        if left == 0 {
            return Ok(None);
        }
        lines.get_ref().set_read_timeout(Some(Duration::from_nanos(left)))?;
        let received = lines.fill_buf()?;
        let line = received.iter().position(|&byte| byte == b'\n').map_or(received.len(), |at| at + 1);
        let taken = line.min(MAX_REQUEST - request.len());
        if taken == 0 {
            return Ok(None);
        }
        request.extend_from_slice(&received[..taken]);
        lines.consume(taken);
    }
    let is_whole = request.last() == Some(&b'\n');
    Ok(String::from_utf8(request).ok().filter(|_| is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;

    fn place(label: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("cutline-local-{}-{label}", std::process::id()));
        drop(std::fs::remove_file(&path));
        path
    }

    /// Repeats what is said to it.
    struct Echo;

    impl Session for Echo {
        fn answer(&mut self, request: &str, say: Say<'_>) -> io::Result<()> {
            if request == "flood" {
                loop {
                    say(&"x".repeat(10_000))?;
                }
            }
            say(&format!("<{request}>"))?;
            say("end")
        }
    }

    fn echo() -> Arc<Reception> {
        Arc::new(|| Box::new(Echo))
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
        let lock = PathBuf::from(format!("{}.lock", path.display()));
        assert!(!path.exists() && !lock.exists(), "its files go with it");
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
        let mut told = String::new();
        UnixStream::connect(&path).unwrap().read_to_string(&mut told).unwrap();
        assert!(told.contains("8 clients are connected") && told.ends_with("ask again later\"}\n"), "{told}");
        assert_eq!(socket.refused().load(Ordering::Relaxed), 1);
        let answered = (0..100).any(|_| {
            thread::park_timeout(Duration::from_millis(100));
            let mut client = UnixStream::connect(&path).unwrap();
            let mut line = String::new();
            let asked = client.write_all(b"hello\n");
            asked.is_ok() && BufReader::new(client).read_line(&mut line).is_ok() && line == "<hello>\n"
        });
        assert!(answered, "the slow ones have been disconnected");
    }

    /// A client that sends a byte now and then holds its seat no longer than one that sends none.
    #[test]
    fn a_request_is_a_line_of_bounded_length() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut lines = BufReader::new(&near);
        (&far).write_all(b"one\ntwo").unwrap();
        assert_eq!(request(&mut lines, false).unwrap().as_deref(), Some("one\n"));
        (&far).write_all(b" more\n").unwrap();
        assert_eq!(request(&mut lines, false).unwrap().as_deref(), Some("two more\n"));
        (&far).write_all(&[b'x'; MAX_REQUEST + 1]).unwrap();
        assert_eq!(request(&mut lines, false).unwrap(), None);
        drop(far);
        assert_eq!(request(&mut lines, false).unwrap(), None);
    }

    #[test]
    fn only_the_file_of_an_ended_process_is_replaced() {
        let path = place("stale");
        let lock = PathBuf::from(format!("{}.lock", path.display()));
        let first = LocalSocket::bind(&path).unwrap();
        let refused = || LocalSocket::bind(&path).unwrap_err().to_string();
        assert!(refused().ends_with("another process serves it"), "{}", refused());
        // As after a kill: the listener and the lock are closed, and the files are there.
        let stale = first.file;
        std::fs::remove_file(&lock).unwrap();
        assert!(refused().ends_with("another process serves it"), "it answers: {}", refused());
        rustix::net::shutdown(&first.listener, rustix::net::Shutdown::Both).unwrap();
        let second = LocalSocket::bind(&path).unwrap();
        assert_ne!(second.file, stale);
        drop(first);
        assert!(path.exists() && lock.exists(), "the first removes its own files only");
        drop(second);
        std::fs::write(&path, "a file").unwrap();
        assert!(refused().ends_with("the file there is not a socket"), "{}", refused());
        std::fs::remove_file(&path).unwrap();
        assert!(LocalSocket::bind(Path::new("/nosuch/r.sock")).is_err());
    }

    /// A lock that another process may hold for ever is no reason to wait.
    #[test]
    fn nobody_waits_for_a_lock() {
        let path = place("lock");
        let lock = PathBuf::from(format!("{}.lock", path.display()));
        let file = File::create(&lock).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        let error = LocalSocket::bind(&path).unwrap_err().to_string();
        assert!(error.ends_with("another process serves it"), "{error}");
        drop(file);
        let socket = LocalSocket::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
        drop(socket);
        std::os::unix::fs::symlink("/dev/null", &lock).unwrap();
        let error = LocalSocket::bind(&path).unwrap_err().to_string();
        assert!(error.contains("its lock"), "{error}");
        std::fs::remove_file(&lock).unwrap();
    }
}
