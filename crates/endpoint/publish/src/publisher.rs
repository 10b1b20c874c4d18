//! A process's connection to the monitor of its host.

use crate::request::{ManagerRequest, RequestLines};
use crate::{RowKind, VERSION};
use rustix::io::Errno;
use rustix::net::sockopt::socket_cookie;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Time between two searches for a monitor.
pub const SEARCH_EVERY: Duration = Duration::from_secs(2);
/// Time between two snapshots.
pub const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The most rows of a process. Further ones are not published.
pub const MOST_ROWS: usize = 50_000;

/// Connection to the monitor. No call waits, and none raises SIGPIPE, which would end a program in C.
#[derive(Debug)]
pub struct Publisher {
    /// The socket; `None` only while this is dropped.
    stream: Option<OwnedFd>,
    /// Identity of the socket. A program may close descriptors that are not its own, as daemons do, and open others under their numbers.
    cookie: u64,
    /// Output that the kernel has not taken yet.
    pending: Vec<u8>,
    /// The rows that the monitor has, by kind and number.
    rows: BTreeMap<(RowKind, u64), Published>,
    snapshot: u64,
}

/// A row that was sent.
#[derive(Clone, Copy, Debug)]
struct Published {
    /// Hash of its line.
    hash: u64,
    /// Number of the last snapshot with this row.
    snapshot: u64,
}

/// All rows of a process at one time. Rows that are neither put nor kept are gone when the snapshot ends.
#[derive(Debug)]
pub struct RowSnapshot<'p>(&'p mut Publisher);

impl Publisher {
    /// Connects to the monitor that listens at `path`, and names this program.
    ///
    /// # Errors
    /// When no process listens there, when it is too busy to accept at once, or this process may not connect.
    pub fn connect(path: &Path, program: &str) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&stream, &SocketAddrUnix::new(path)?)?;
        let cookie = socket_cookie(&stream)?;
        let mut publisher =
            Self { stream: Some(stream), cookie, pending: Vec::new(), rows: BTreeMap::new(), snapshot: 0 };
        publisher.line(&json!({ "hello": { "version": VERSION, "program": program } }));
        publisher.flush()?;
        Ok(publisher)
    }

    /// Publishes rows, a snapshot each second, until `pause` ends it. `put` puts the rows of a snapshot. `pause` waits for the time that it is
    /// given, or until the monitor sends something, and returns false at the end. `on_request` gets the requests of managers.
    ///
    /// # Errors
    /// When the monitor has gone, and those of `pause`.
    pub fn run(
        mut self,
        mut put: impl FnMut(&mut RowSnapshot<'_>),
        mut pause: impl FnMut(&mut Self, Duration) -> io::Result<bool>,
        mut on_request: impl FnMut(ManagerRequest),
    ) -> io::Result<()> {
        let (mut lines, mut bytes) = (RequestLines::default(), [0; 1024]);
        loop {
            if let Some(mut snapshot) = self.begin_snapshot()? {
                put(&mut snapshot);
                snapshot.end()?;
            }
            if !pause(&mut self, PUBLISH_EVERY)? {
                return Ok(());
            }
            loop {
                let length = self.receive(&mut bytes)?;
                if length == 0 {
                    break;
                }
                lines.add(&bytes[..length]).into_iter().for_each(&mut on_request);
            }
        }
    }

    /// Begins a snapshot; `None` while the monitor has not read the one before: its rows would be out of date when they are read.
    ///
    /// # Errors
    /// When the connection has ended. Then nothing more can be published over it.
    pub fn begin_snapshot(&mut self) -> io::Result<Option<RowSnapshot<'_>>> {
        self.check()?;
        if !self.flush()? {
            return Ok(None);
        }
        self.snapshot += 1;
        Ok(Some(RowSnapshot(self)))
    }

    /// Reads data from the monitor into `to`. Returns the number of bytes; 0 if there is nothing now.
    ///
    /// # Errors
    /// When the connection has ended.
    fn receive(&self, to: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        match recv(self, to, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((length, _)) => Ok(length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Checks that the descriptor is still this connection.
    fn check(&self) -> io::Result<()> {
        let is_ours = socket_cookie(self).is_ok_and(|cookie| cookie == self.cookie);
        if is_ours { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
    }

    fn line(&mut self, line: &impl Serialize) {
        serde_json::to_writer(&mut self.pending, line).expect("rows have text keys only");
        self.pending.push(b'\n');
    }

    /// Sends waiting data, as far as the kernel takes it. Returns whether all was sent; otherwise the descriptor becomes
    /// writable when the monitor has read some of it. Without waiting data it makes no system call.
    ///
    /// # Errors
    /// When data waits, and the connection has ended.
    pub fn flush(&mut self) -> io::Result<bool> {
        if self.pending.is_empty() {
            return Ok(true);
        }
        self.check()?;
        let mut sent = 0;
        while sent < self.pending.len() {
            match send(&*self, &self.pending[sent..], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(length) => sent += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        self.pending.drain(..sent);
        Ok(self.pending.is_empty())
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if self.check().is_err() {
            // The number belongs to another owner by now, who closes it.
            let _number = self.stream.take().map(IntoRawFd::into_raw_fd);
        }
    }
}

impl AsFd for Publisher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_ref().expect("it is there until the drop").as_fd()
    }
}

impl RowSnapshot<'_> {
    /// Puts a row of this kind under a number that no other row of the kind has. It is sent if it differs from the row of the last snapshot.
    pub fn put(&mut self, kind: RowKind, number: u64, row: &impl Serialize) {
        let publisher = &mut *self.0;
        let snapshot = publisher.snapshot;
        if publisher.rows.len() >= MOST_ROWS && !publisher.rows.contains_key(&(kind, number)) {
            return;
        }
        let from = publisher.pending.len();
        publisher.line(&Line(kind, row));
        let mut hasher = DefaultHasher::new();
        publisher.pending[from..].hash(&mut hasher);
        let published = Published { hash: hasher.finish(), snapshot };
        let before = publisher.rows.insert((kind, number), published);
        if before.is_some_and(|before| before.hash == published.hash) {
            publisher.pending.truncate(from);
        }
    }

    /// Keeps a row as the monitor has it. A row that it does not have stays unknown to it.
    pub fn keep(&mut self, kind: RowKind, number: u64) {
        if let Some(row) = self.0.rows.get_mut(&(kind, number)) {
            row.snapshot = self.0.snapshot;
        }
    }

    /// Ends the snapshot: rows that were neither put nor kept are reported as gone.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn end(self) -> io::Result<()> {
        let publisher = self.0;
        let snapshot = publisher.snapshot;
        let gone: Vec<_> =
            publisher.rows.iter().filter(|(_, row)| row.snapshot != snapshot).map(|(&of, _)| of).collect();
        for (kind, number) in gone {
            publisher.rows.remove(&(kind, number));
            publisher.line(&json!({ "gone": { "kind": kind, "number": number } }));
        }
        publisher.flush().map(drop)
    }
}

/// A row under the name of its kind.
struct Line<'r, R>(RowKind, &'r R);

impl<R: Serialize> Serialize for Line<'_, R> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([(self.0, self.1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SocketRow;
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn pair() -> (Publisher, BufReader<UnixStream>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("publish.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let publisher = Publisher::connect(&path, "test").unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        (publisher, BufReader::new(stream), folder)
    }

    fn lines(from: &mut BufReader<UnixStream>) -> Vec<serde_json::Value> {
        let mut found = Vec::new();
        loop {
            let mut line = String::new();
            match from.read_line(&mut line) {
                Ok(length) if length > 0 => found.push(serde_json::from_str(&line).unwrap()),
                _ => return found,
            }
        }
    }

    fn row(socket: u64, waits: u64) -> SocketRow {
        SocketRow { socket, waits, ..SocketRow::default() }
    }

    #[test]
    fn rows_that_have_changed_are_sent_and_those_that_are_left_out_are_gone() {
        let (mut publisher, mut monitor, _folder) = pair();
        let publish = |publisher: &mut Publisher, rows: &[SocketRow]| {
            let mut snapshot = publisher.begin_snapshot().unwrap().unwrap();
            for row in rows {
                snapshot.put(RowKind::Socket, row.socket, row);
            }
            snapshot.end().unwrap();
        };
        publish(&mut publisher, &[row(1, 0), row(2, 0)]);
        let first = lines(&mut monitor);
        assert_eq!(first.len(), 3, "{first:?}");
        assert_eq!(first[0]["hello"], json!({ "version": VERSION, "program": "test" }));
        let read: SocketRow = serde_json::from_value(first[2]["socket"].clone()).unwrap();
        assert_eq!(read, row(2, 0));
        publish(&mut publisher, &[row(1, 0), row(2, 5)]);
        let second = lines(&mut monitor);
        assert_eq!((second.len(), &second[0]["socket"]["waits"]), (1, &json!(5)));
        let mut snapshot = publisher.begin_snapshot().unwrap().unwrap();
        for number in [1, 2, 7] {
            snapshot.keep(RowKind::Socket, number);
        }
        snapshot.end().unwrap();
        assert_eq!(lines(&mut monitor), [json!(null); 0]);
        publish(&mut publisher, &[row(2, 5)]);
        assert_eq!(lines(&mut monitor), [json!({ "gone": { "kind": "socket", "number": 1 } })]);
    }

    #[test]
    fn a_monitor_that_does_not_read_costs_one_snapshot_of_memory() {
        let (mut publisher, mut monitor, _folder) = pair();
        let mut snapshots = 0;
        for waits in 0..1000 {
            let Some(mut snapshot) = publisher.begin_snapshot().unwrap() else { continue };
            snapshots += 1;
            for socket in 0..200 {
                snapshot.put(RowKind::Socket, socket, &row(socket, waits));
            }
            snapshot.end().unwrap();
            assert!(publisher.pending.len() < 200 * 1000, "{} bytes wait", publisher.pending.len());
        }
        assert!(snapshots < 100, "{snapshots} snapshots");
        // Rows arrive complete, and the next snapshot begins when they were read.
        let mut read = lines(&mut monitor).len();
        while publisher.begin_snapshot().unwrap().is_none() {
            read += lines(&mut monitor).len();
        }
        assert!(read > 1, "{read}");
    }

    #[test]
    fn a_monitor_that_has_gone_is_an_error_and_no_signal() {
        let (mut publisher, monitor, _folder) = pair();
        drop(monitor);
        let outcome = (0..2).try_for_each(|waits| {
            let mut snapshot = publisher.begin_snapshot()?.unwrap();
            snapshot.put(RowKind::Socket, 1, &row(1, waits));
            snapshot.end()
        });
        assert!(outcome.is_err());
    }

    #[test]
    fn nothing_is_written_to_a_file_that_has_got_the_number_of_the_connection() {
        let (mut publisher, monitor, _folder) = pair();
        let (theirs, mut other) = UnixStream::pair().unwrap();
        other.set_nonblocking(true).unwrap();
        // A program that closes all descriptors and then opens its own does the same.
        rustix::io::dup2(&theirs, publisher.stream.as_mut().unwrap()).unwrap();
        // Without waiting data the descriptor is not even looked at.
        assert!(publisher.flush().unwrap());
        assert_eq!(publisher.begin_snapshot().unwrap_err().kind(), io::ErrorKind::NotConnected);
        publisher.pending.push(b'\n');
        assert_eq!(publisher.flush().unwrap_err().kind(), io::ErrorKind::NotConnected);
        let number = publisher.as_fd().as_raw_fd();
        drop((publisher, monitor, theirs));
        // Neither written to nor closed.
        assert_eq!(other.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(std::fs::exists(format!("/proc/self/fd/{number}")).unwrap());
    }
}
