//! A local socket (unix(7)) that answers requests: a client sends a line, and receives lines.
//!
//! ```text
//! bind    replaces the socket file of a process that has ended, and refuses that of a running one
//! serve   starts one thread that accepts clients, and one for each client that there may be
//! ```
//!
//! Each client has a thread, so a slow one delays no other. All threads are started at the beginning: a thread that is started where no
//! memory is left ends the process, because its first steps cannot fail in another way.
//!
//! A client is disconnected when it has not read a line within a second,
//! or has not sent a line for a minute, unless it holds reservations. At most eight are connected at a time, and fewer where the process may open few
//! descriptors: [`RESERVED`] of them are left for the rest of it. [`OWN_SEATS`] are for root and the router's own user. A client beyond a limit gets
//! an error.
//!
//! The socket's file is a [`SocketFile`].

use crate::privileges::User;
use crate::replies::ErrorReply;
use cutline_service::{LineBuffer, SocketFile};
use cutline_sys::reactor::wait_for_hangup;
use cutline_sys::{PeerProcess, SysError, lock, now};
use rustix::process::{Resource, geteuid, getrlimit};
use std::io::{self, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A bound socket, whose file is removed when this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    file: SocketFile,
    /// Number of clients that were refused.
    refused: Arc<AtomicU64>,
}

/// A client that is answered.
pub trait RouterClient {
    /// Sends a line.
    ///
    /// # Errors
    /// When the client has gone or is too slow.
    fn say(&mut self, line: &str) -> io::Result<()>;

    /// Waits until another answer is due.
    ///
    /// # Errors
    /// As soon as the client has gone.
    fn wait(&mut self, time: cutline_units::Duration) -> io::Result<()>;
}

/// Session of one client. It is dropped when the client's connection has ended.
pub trait LocalSession: Send {
    /// Answers a request by lines. An error ends the connection.
    fn answer(&mut self, request: &str, client: &mut dyn RouterClient) -> io::Result<()>;

    /// Returns true if the client holds something while it is connected. Then it may be silent.
    fn is_holding(&self) -> bool {
        false
    }
}

/// Returns a session for a new client.
pub type Reception = dyn Fn() -> Box<dyn LocalSession> + Send + Sync;

/// The most clients that are connected at a time.
const MAX_CLIENTS: usize = 8;
/// Seats that other users than root and the one of the router leave free, so that they keep neither an operator nor `cutlined` away.
const OWN_SEATS: usize = 2;
/// Time that a client may take to read a line.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for which a client may send nothing.
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
        Ok(Self { file: SocketFile::bind(path)?, refused: Arc::default() })
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
        self.file.set_owner(Some(user.id()), Some(user.group()))
    }

    /// Starts threads that answer clients until the process ends.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn serve(&self, reception: &Arc<Reception>) -> Result<(), SysError> {
        let failed = |error| SysError::new("the statistics' thread cannot be started", error);
        let listener = self.file.listener().try_clone().map_err(failed)?;
        let (seats, refused) = (seats(), self.refused());
        let clients = Arc::new(Clients::default());
        let (sender, receiver) = sync_channel(seats);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..seats {
            let (clients, receiver, reception) = (clients.clone(), receiver.clone(), Arc::clone(reception));
            let serve = move || serve(&receiver, &clients, &*reception);
            let thread = thread::Builder::new().name("client".to_owned()).stack_size(STACK);
            thread.spawn(serve).map_err(failed)?;
        }
        let accept = move || accept(&listener, &clients, &sender, (seats, &refused));
        thread::Builder::new().name("statistics".to_owned()).spawn(accept).map_err(failed).map(drop)
    }
}

/// Returns the number of clients that may be connected at a time.
fn seats() -> usize {
    let open =
        std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1) as u64);
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    most.saturating_sub(open + RESERVED).min(MAX_CLIENTS as u64) as usize
}

/// Numbers of connected clients.
#[derive(Debug, Default)]
struct Clients {
    all: AtomicUsize,
    /// Clients of other users than root and the one of the router.
    others: AtomicUsize,
}

impl Clients {
    /// Counts a client, unless there are too many. One thread calls it.
    fn enter(&self, is_other: bool, seats: usize) -> Result<(), String> {
        let seats_of_others = seats.saturating_sub(OWN_SEATS).max(1);
        if self.all.load(Ordering::Relaxed) >= seats {
            return Err(seats.to_string());
        }
        if is_other && self.others.load(Ordering::Relaxed) >= seats_of_others {
            return Err(format!("{seats_of_others} of other users"));
        }
        self.all.fetch_add(1, Ordering::Relaxed);
        self.others.fetch_add(usize::from(is_other), Ordering::Relaxed);
        Ok(())
    }

    fn leave(&self, is_other: bool) {
        self.others.fetch_sub(usize::from(is_other), Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns whether a client is of another user than root and the one of this process.
fn is_of_other(client: &UnixStream) -> bool {
    !PeerProcess::of(client).is_ok_and(|peer| peer.user == 0 || peer.user == geteuid().as_raw())
}

/// Accepts clients and gives each to one of the waiting threads.
fn accept(
    listener: &UnixListener,
    clients: &Clients,
    sender: &SyncSender<(UnixStream, bool)>,
    (seats, refused): (usize, &AtomicU64),
) {
    loop {
        let Ok((client, _)) = listener.accept() else {
            // There may be no file descriptors left; later there may be some.
            thread::park_timeout(WRITE_TIMEOUT);
            continue;
        };
        let is_other = is_of_other(&client);
        if let Err(limit) = clients.enter(is_other, seats) {
            refuse(&client, &limit);
            refused.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        // There is a thread and room for each seat.
        drop(sender.try_send((client, is_other)));
    }
}

/// Answers one client after the other.
fn serve(receiver: &Mutex<Receiver<(UnixStream, bool)>>, clients: &Clients, reception: &Reception) {
    loop {
        let Ok((client, is_other)) = lock(receiver).recv() else { return };
        // A client that has gone, or is too slow, ends its session and nothing else, and so does a panic, which has been printed.
        let attended = catch_unwind(AssertUnwindSafe(|| attend(&client, &mut *reception())));
        drop(attended);
        drop(client);
        clients.leave(is_other);
    }
}

/// Sends a client above a limit its error. The part that it does not read at once is lost.
fn refuse(mut client: &UnixStream, limit: &str) {
    let refusal = ErrorReply::new(&format!("client limit reached ({limit}): try again later"));
    drop(client.set_nonblocking(true));
    drop(client.write_all(format!("{}\n", refusal.json()).as_bytes()));
}

/// Answers one client until it closes.
fn attend(client: &UnixStream, session: &mut dyn LocalSession) -> io::Result<()> {
    client.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut lines = LineBuffer::new(MAX_REQUEST);
    while let Some(request) = request(client, &mut lines, session.is_holding())? {
        session.answer(request.trim(), &mut Connection(client))?;
    }
    Ok(())
}

/// A client by its socket.
struct Connection<'s>(&'s UnixStream);

impl RouterClient for Connection<'_> {
    fn say(&mut self, line: &str) -> io::Result<()> {
        self.0.write_all(format!("{line}\n").as_bytes())
    }

    fn wait(&mut self, time: cutline_units::Duration) -> io::Result<()> {
        if wait_for_hangup(self.0, time)? { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

/// Reads a line, which must be there in time, however the client sends it. `None` when it has gone, or sends no request. A client
/// that may be silent is waited for until it sends the first byte.
fn request(client: &UnixStream, lines: &mut LineBuffer, may_be_silent: bool) -> io::Result<Option<String>> {
    let mut end = (!may_be_silent || !lines.is_empty()).then(|| now() + READ_TIMEOUT);
    let mut is_whole = lines.has_line();
    while is_whole == Ok(false) {
        let left = end.map(|end| Duration::from_nanos(end.saturating_since(now()).as_nanos()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        client.set_read_timeout(left)?;
        if lines.read_from(client)? == 0 {
            return Ok(None);
        }
        end = end.or_else(|| Some(now() + READ_TIMEOUT));
        is_whole = lines.has_line();
    }
    let line = lines.take().ok().flatten();
    Ok(line.and_then(|line| std::str::from_utf8(line).ok()).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::Uid;
    use rustix::thread::set_thread_res_uid;
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    fn place(label: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("cutline-local-{}-{label}", std::process::id()));
        drop(std::fs::remove_file(&path));
        path
    }

    /// Echoes each request.
    struct Echo;

    impl LocalSession for Echo {
        fn answer(&mut self, request: &str, client: &mut dyn RouterClient) -> io::Result<()> {
            match request {
                "flood" => loop {
                    client.say(&"x".repeat(10_000))?;
                },
                "wait" => client.wait(cutline_units::Duration::from_secs(3600))?,
                _ => client.say(&format!("<{request}>"))?,
            }
            client.say("end")
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
        socket.serve(&echo()).unwrap();
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
        socket.serve(&echo()).unwrap();
        let slow: Vec<UnixStream> = (0..MAX_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for mut client in &slow {
            client.write_all(b"flood\n").unwrap();
        }
        let mut told = String::new();
        UnixStream::connect(&path).unwrap().read_to_string(&mut told).unwrap();
        assert!(
            told.contains("client limit reached (8)") && told.ends_with("try again later\"}\n"),
            "{told}"
        );
        assert_eq!(socket.refused().load(Ordering::Relaxed), 1);
        let answered = (0..900).any(|_| {
            thread::park_timeout(Duration::from_millis(100));
            let mut client = UnixStream::connect(&path).unwrap();
            let mut line = String::new();
            let asked = client.write_all(b"hello\n");
            asked.is_ok() && BufReader::new(client).read_line(&mut line).is_ok() && line == "<hello>\n"
        });
        assert!(answered, "the slow ones have been disconnected");
    }

    fn greeted(mut client: &UnixStream) -> String {
        client.write_all(b"hello\n").unwrap();
        let mut line = String::new();
        BufReader::new(client).read_line(&mut line).unwrap();
        line
    }

    /// A user who takes all seats that there are for users leaves those of root free.
    #[test]
    fn other_users_leave_connections_for_root() {
        if !geteuid().is_root() {
            eprintln!("not run: only root can connect as another user");
            return;
        }
        let path = place("users");
        let socket = LocalSocket::bind(&path).unwrap();
        socket.serve(&echo()).unwrap();
        // The users' threads keep their group, which is that of the file.
        let connect = |user: u32, count: usize| -> Vec<UnixStream> {
            let path = path.clone();
            let become_user = move || {
                let user = Uid::from_raw(user);
                set_thread_res_uid(user, user, user).unwrap();
                (0..count).map(|_| UnixStream::connect(&path).unwrap()).collect()
            };
            thread::spawn(become_user).join().unwrap()
        };
        let others = connect(65_534, MAX_CLIENTS - OWN_SEATS);
        assert!(others.iter().all(|client| greeted(client) == "<hello>\n"));
        let mut told = String::new();
        connect(65_533, 1).remove(0).read_to_string(&mut told).unwrap();
        assert!(told.contains("client limit reached (6 of other users): try again later"), "{told}");
        let own = connect(0, OWN_SEATS);
        assert!(own.iter().all(|client| greeted(client) == "<hello>\n"));
        assert_eq!(socket.refused().load(Ordering::Relaxed), 1);
    }

    /// Clients that wait for something an hour away and go: their seats are free at once.
    #[test]
    fn a_client_that_disconnects_frees_its_connection() {
        let path = place("gone");
        let socket = LocalSocket::bind(&path).unwrap();
        socket.serve(&echo()).unwrap();
        for _ in 0..3 * MAX_CLIENTS {
            let until = now() + READ_TIMEOUT;
            loop {
                let mut client = UnixStream::connect(&path).unwrap();
                let mut line = String::new();
                let asked = client.write_all(b"hello\nwait\n");
                if asked.is_ok()
                    && BufReader::new(&client).read_line(&mut line).is_ok()
                    && line == "<hello>\n"
                {
                    break;
                }
                assert!(now() < until, "it is refused: {line}");
                thread::park_timeout(Duration::from_millis(10));
            }
        }
        // One that waits is there although it says something.
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"more\n").unwrap();
        assert!(Connection(&near).wait(cutline_units::Duration::from_millis(20)).is_ok());
        drop(far);
        assert!(Connection(&near).wait(cutline_units::Duration::from_secs(3600)).is_err());
    }

    /// A client that sends a byte now and then holds its seat no longer than one that sends none.
    #[test]
    fn a_request_is_a_line_of_bounded_length() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut lines = LineBuffer::new(MAX_REQUEST);
        (&far).write_all(b"one\ntwo").unwrap();
        assert_eq!(request(&near, &mut lines, false).unwrap().as_deref(), Some("one"));
        (&far).write_all(b" more\n").unwrap();
        assert_eq!(request(&near, &mut lines, false).unwrap().as_deref(), Some("two more"));
        (&far).write_all(&[b'x'; MAX_REQUEST + 1]).unwrap();
        assert_eq!(request(&near, &mut lines, false).unwrap(), None);
        drop(far);
        assert_eq!(request(&near, &mut lines, false).unwrap(), None);
    }
}
