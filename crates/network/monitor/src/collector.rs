//! Collection of the published rows, and answers to clients of the local socket: one thread that never waits for a client.

use crate::host::MonitoredHost;
use crate::kernel_queues::KernelQueueReader;
use crate::registry::{Process, PublicationLimits, PublishedLine, PublisherId, Viewer, of_all_users};
use crate::shared::SharedDocuments;
use cutline_publish::LONGEST_LINE;
use cutline_service::{LineBuffer, SocketFile};
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_sys::{SysError, now};
use cutline_text::Printable;
use cutline_units::Duration;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of a collector.
#[derive(Clone, Debug)]
pub struct CollectorOptions {
    /// Path of the socket to which processes publish. Every user may write to it.
    pub publish: PathBuf,
    /// Path of the socket that answers readers. Every user may read the rows of its own processes.
    pub query: PathBuf,
    /// Limits of publications by processes.
    pub limits: PublicationLimits,
    /// True if every user of this host sees the rows of all users.
    pub readers_see_all: bool,
    /// Reader of the queues in the kernel, which is called once a second.
    pub kernel_queues: KernelQueueReader,
}

/// Reason why a monitor cannot work.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// Readers of other hosts would see everything.
    #[error("listen = {0}: other hosts can reach it, so it needs a token: --token-file FILE")]
    NeedsToken(std::net::SocketAddr),
    /// The system has refused something.
    #[error(transparent)]
    System(#[from] SysError),
}

/// The collector of a host.
#[derive(Debug)]
pub struct Collector {
    host: Arc<MonitoredHost>,
    publish: SocketFile,
    query: SocketFile,
    readers_see_all: bool,
    kernel_queues: KernelQueueReader,
    publishers: BTreeMap<PublisherId, Publisher>,
    clients: BTreeMap<u32, Client>,
    next_client: u32,
    documents: SharedDocuments,
}

/// A process that publishes.
#[derive(Debug)]
struct Publisher {
    stream: UnixStream,
    lines: LineBuffer,
    /// The process. A copy of it by fork can keep the connection open when it has ended.
    _process: Option<OwnedFd>,
    /// Bytes read since the last second began.
    read: usize,
    /// True while it is not read, because it has sent too much.
    is_paused: bool,
}

/// Reason why a publisher is forgotten.
enum Ending {
    /// The end of its process or of its connection.
    Gone,
    /// A line that the protocol does not allow.
    Malformed,
}

/// A reader.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    lines: LineBuffer,
    uid: u32,
    viewer: Viewer,
    outgoing: Arc<[u8]>,
    sent: usize,
}

/// The numbers of descriptors: the two listeners, clients from here on, publishers from there on: two numbers each.
const PUBLISH: u32 = 0;
const QUERY: u32 = 1;
const CLIENTS: u32 = 2;
const PUBLISHERS: u32 = 1 << 20;

/// The most readers at a time. A quarter of the places is for root.
const MOST_CLIENTS: usize = 256;
/// The most readers of a user other than root.
const MOST_CLIENTS_OF_USER: usize = 32;
/// The most bytes of answers that wait for readers of root, and for all other ones. A further request is refused.
const MOST_WAITING: usize = 256 << 20;
/// The most bytes of answers that wait for readers of a user other than root, before one more.
const MOST_WAITING_OF_USER: usize = 64 << 20;
/// The most connections that are accepted before anything else is done.
const MOST_ACCEPTED: usize = 64;
/// The longest request, bytes.
const LONGEST_REQUEST: usize = 1024;
/// Number of reads of a publisher before it is another one's turn.
const READS: usize = 16;
/// The most bytes of a publisher in a second. It is not read for the rest of that second.
const MOST_BYTES: usize = 64 << 20;
/// Interval at which budgets are renewed.
const SECOND: Duration = Duration::from_secs(1);

impl Collector {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When another monitor runs, or this process may not open them.
    pub fn open(options: &CollectorOptions) -> Result<Self, MonitorError> {
        let open = |path: &PathBuf| -> Result<SocketFile, MonitorError> {
            make_folder(path)?;
            let socket = SocketFile::bind(path)?;
            socket.allow_everyone()?;
            let failed = |error| SysError::new("the socket cannot be set not to wait", error);
            socket.listener().set_nonblocking(true).map_err(failed)?;
            Ok(socket)
        };
        Ok(Self {
            host: Arc::new(MonitoredHost::new(options.limits)),
            publish: open(&options.publish)?,
            query: open(&options.query)?,
            readers_see_all: options.readers_see_all,
            kernel_queues: options.kernel_queues.clone(),
            publishers: BTreeMap::new(),
            clients: BTreeMap::new(),
            next_client: 0,
            documents: SharedDocuments::default(),
        })
    }

    /// Returns the state of the host, which other threads may read.
    pub fn host(&self) -> Arc<MonitoredHost> {
        Arc::clone(&self.host)
    }

    /// Collects and answers until one of `stops` is set.
    ///
    /// # Errors
    /// When descriptors cannot be waited for.
    pub fn run(&mut self, stops: &[&AtomicBool]) -> Result<(), MonitorError> {
        let failed = |error| SysError::new("descriptors cannot be waited for", error);
        let mut reactor = Reactor::new().map_err(failed)?;
        reactor.add(self.publish.listener(), PUBLISH, EventFlags::IN).map_err(failed)?;
        reactor.add(self.query.listener(), QUERY, EventFlags::IN).map_err(failed)?;
        let mut second = now();
        while !stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            let ready: Vec<u32> = reactor.wait(second).map_err(failed)?.map(|(number, _)| number).collect();
            for number in ready {
                match number {
                    PUBLISH => self.accept_publishers(&reactor),
                    QUERY => self.accept_clients(&reactor),
                    PUBLISHERS.. => self.publisher_ready(number - PUBLISHERS, &reactor),
                    _ => self.client_ready(number - CLIENTS, &reactor),
                }
            }
            let at = now();
            if at >= second {
                second = at + SECOND;
                self.renew_budgets(&reactor);
                self.documents.forget_old(at);
                // Readers do not wait while the kernel is read.
                let reading = self.kernel_queues.read();
                self.host.registry().set_kernel_queues(reading);
                self.host.note_second();
            }
        }
        Ok(())
    }

    fn accept_publishers(&mut self, reactor: &Reactor) {
        for stream in accepted(self.publish.listener()) {
            let Some(process) = peer(&stream) else { continue };
            let Ok(id) = self.host.registry().open(process) else { continue };
            let pid = rustix::process::Pid::from_raw(process.pid.cast_signed());
            let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            let number = PUBLISHERS + 2 * id;
            let is_added = reactor.add(&stream, number, EventFlags::IN).is_ok()
                && handle
                    .as_ref()
                    .is_none_or(|handle| reactor.add(handle, number + 1, EventFlags::IN).is_ok());
            if !is_added {
                self.host.registry().close(id);
                continue;
            }
            if let Ok(stream) = stream.try_clone() {
                self.host.add_publisher(id, stream);
            }
            let lines = LineBuffer::new(LONGEST_LINE);
            let publisher = Publisher { stream, lines, _process: handle, read: 0, is_paused: false };
            self.publishers.insert(id, publisher);
        }
    }

    /// Handles a publisher whose connection has something, or whose process has ended.
    fn publisher_ready(&mut self, number: u32, reactor: &Reactor) {
        let (id, has_ended) = (number / 2, number % 2 == 1);
        let Some(publisher) = self.publishers.get_mut(&id) else { return };
        let outcome = if has_ended { Err(Ending::Gone) } else { publisher.read(id, &self.host) };
        if let Err(ending) = outcome {
            self.publishers.remove(&id);
            self.host.remove_publisher(id);
            match ending {
                Ending::Gone => self.host.registry().close(id),
                Ending::Malformed => self.host.registry().close_malformed(id),
            }
        } else if publisher.read > MOST_BYTES && !publisher.is_paused {
            publisher.is_paused = true;
            let _unchanged = reactor.change(&publisher.stream, PUBLISHERS + 2 * id, EventFlags::empty());
        }
    }

    fn renew_budgets(&mut self, reactor: &Reactor) {
        for (id, publisher) in &mut self.publishers {
            publisher.read = 0;
            if std::mem::take(&mut publisher.is_paused) {
                let _unchanged = reactor.change(&publisher.stream, PUBLISHERS + 2 * id, EventFlags::IN);
            }
        }
    }

    fn accept_clients(&mut self, reactor: &Reactor) {
        for stream in accepted(self.query.listener()) {
            let Some(process) = peer(&stream) else { continue };
            let viewer = if self.readers_see_all { Viewer::All } else { Viewer::of_user(process.uid) };
            let of_user = self.clients.values().filter(|client| client.uid == process.uid).count();
            let of_users = self.clients.values().filter(|client| client.uid != 0).count();
            let is_full = self.clients.len() >= MOST_CLIENTS
                || process.uid != 0
                    && (of_user >= MOST_CLIENTS_OF_USER || of_users >= of_all_users(MOST_CLIENTS));
            if is_full {
                let _gone = (&stream).write_all(refusal("too many readers: try again later").as_bytes());
                continue;
            }
            while self.clients.contains_key(&self.next_client) {
                self.next_client = (self.next_client + 1) % (PUBLISHERS - CLIENTS);
            }
            if reactor.add(&stream, CLIENTS + self.next_client, EventFlags::IN).is_ok() {
                let lines = LineBuffer::new(LONGEST_REQUEST);
                let client =
                    Client { stream, lines, uid: process.uid, viewer, outgoing: Arc::default(), sent: 0 };
                self.clients.insert(self.next_client, client);
            }
        }
    }

    fn client_ready(&mut self, id: u32, reactor: &Reactor) {
        let Some(mut client) = self.clients.remove(&id) else { return };
        if self.serve(&mut client).is_err() {
            return;
        }
        // It is read again when it has read its answer.
        let waits = if client.outgoing.is_empty() { EventFlags::IN } else { EventFlags::OUT };
        if reactor.change(&client.stream, CLIENTS + id, waits).is_ok() {
            self.clients.insert(id, client);
        }
    }

    /// Answers a reader's request.
    ///
    /// # Errors
    /// When it has gone.
    fn serve(&mut self, client: &mut Client) -> io::Result<()> {
        if !client.flush()? {
            return Ok(());
        }
        match client.lines.read_from(&client.stream) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if is_later(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        while client.outgoing.is_empty() {
            let line = client.lines.take().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            let Some(line) = line else { break };
            let answer = match line {
                b"host" if self.is_too_much_waiting(client.uid) => {
                    refusal("too much waits for readers that do not read: try again later")
                        .into_bytes()
                        .into()
                }
                b"host" => self.documents.get(client.viewer, now, || document(&self.host, client.viewer)),
                _ => refusal("a request is `host`").into_bytes().into(),
            };
            client.outgoing = answer;
            client.flush()?;
        }
        Ok(())
    }

    /// Returns whether no further answer may wait for readers of a user.
    fn is_too_much_waiting(&self, uid: u32) -> bool {
        let is_root = uid == 0;
        self.waiting(|of| (of == 0) == is_root) > MOST_WAITING
            || !is_root && self.waiting(|of| of == uid) > MOST_WAITING_OF_USER
    }

    /// Returns the bytes that wait for readers of these users. An answer that several wait for counts once.
    fn waiting(&self, is_one: impl Fn(u32) -> bool) -> usize {
        let those = self.clients.values().filter(|client| is_one(client.uid));
        let answers: BTreeSet<(*const u8, usize)> =
            those.map(|client| (client.outgoing.as_ptr(), client.outgoing.len())).collect();
        answers.into_iter().map(|(_, length)| length).sum()
    }
}

/// Returns the document of a host for a reader, as a line.
fn document(host: &MonitoredHost, viewer: Viewer) -> Arc<[u8]> {
    let document = host.document(viewer);
    let mut line = serde_json::to_vec(&document).expect("the document has text keys only");
    line.push(b'\n');
    line.into()
}

/// Makes the folder of a socket, if there is none: that below /run is gone after each start of the machine.
fn make_folder(path: &Path) -> Result<(), SysError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
    else {
        return Ok(());
    };
    let failed =
        |error| SysError::new(format!("folder `{}` cannot be made", Printable(folder.display())), error);
    DirBuilder::new().mode(0o755).create(folder).map_err(failed)
}

fn refusal(why: &str) -> String {
    format!("{}\n", json!({ "event": "error", "error": why }))
}

/// Returns the connections that have come.
fn accepted(listener: &UnixListener) -> Vec<UnixStream> {
    let streams = std::iter::from_fn(|| listener.accept().ok().map(|(stream, _)| stream));
    streams.take(MOST_ACCEPTED).filter(|stream| stream.set_nonblocking(true).is_ok()).collect()
}

/// Returns the process at the other end of a connection, as the kernel states it.
fn peer(stream: &UnixStream) -> Option<Process> {
    let peer = socket_peercred(stream).ok()?;
    Some(Process { pid: peer.pid.as_raw_nonzero().get().cast_unsigned(), uid: peer.uid.as_raw() })
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Publisher {
    /// Reads some of the received data.
    ///
    /// # Errors
    /// When the connection has ended, or something else was sent than the protocol allows.
    fn read(&mut self, id: PublisherId, host: &MonitoredHost) -> Result<(), Ending> {
        for _ in 0..READS {
            match self.lines.read_from(&self.stream) {
                Ok(length) if length > 0 => self.read = self.read.saturating_add(length),
                Err(error) if is_later(&error) => return Ok(()),
                Ok(_) | Err(_) => return Err(Ending::Gone),
            }
            while let Some(line) = self.lines.take().map_err(|_| Ending::Malformed)? {
                // Readers do not wait while a line is parsed.
                let line = PublishedLine::parse(line).map_err(|_| Ending::Malformed)?;
                host.registry().take(id, line).map_err(|_| Ending::Malformed)?;
            }
        }
        Ok(())
    }
}

impl Client {
    /// Sends pending data without waiting. Returns whether all was sent.
    ///
    /// # Errors
    /// When the reader has gone.
    fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.outgoing.len() {
            match self.stream.write(&self.outgoing[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => self.sent += length,
                Err(error) if is_later(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        (self.outgoing, self.sent) = (Arc::default(), 0);
        Ok(true)
    }
}
