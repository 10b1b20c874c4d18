//! Collection of the published rows, and answers to clients of the local socket: one thread that never waits for a client.

use crate::host::MonitoredHost;
use crate::kernel_queues::KernelQueueReader;
use crate::registry::{Process, PublicationLimits, PublishedLine, PublisherId, Viewer, of_all_users};
use crate::shared::SharedDocuments;
use cutline_publish::LONGEST_LINE;
use cutline_service::{
    AcceptedStream, Accepter, ClientNumber, LineBuffer, LineServer, LineServerOptions, SocketFile,
};
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_sys::{PeerProcess, SysError, now};
use cutline_text::Printable;
use cutline_units::Duration;
use rustix::process::{PidfdFlags, pidfd_open};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
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
    accepter: Accepter,
    readers: LineServer<Reader>,
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

/// State of a reader.
#[derive(Debug)]
struct Reader {
    uid: u32,
    viewer: Viewer,
}

/// The numbers of descriptors: the two listeners, publishers from here on, readers from there on: two numbers each.
const PUBLISH: u32 = 0;
const QUERY: u32 = 1;
const PUBLISHERS: u32 = 2;
const READERS: u32 = 3 << 30;

/// The most bytes of answers that wait for readers of root, and for all other ones. A further request is refused.
const MOST_WAITING: usize = 256 << 20;
/// The most bytes of answers that wait for readers of a user other than root, before one more.
const MOST_WAITING_OF_USER: usize = 64 << 20;
/// The most readers at a time. A quarter of the places is for root.
const MOST_READERS: usize = 256;
/// Limits of the readers.
const READER_LIMITS: LineServerOptions = LineServerOptions {
    clients: MOST_READERS,
    clients_of_users: of_all_users(MOST_READERS),
    clients_of_user: 32,
    longest_line: 1024,
    lines_of_user: None,
    waiting: 1 << 20,
    waiting_of_all: 16 << 20,
    ends_with_process: false,
};
/// The most connections that are accepted before anything else is done.
const MOST_ACCEPTED: usize = 64;
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
            accepter: Accepter::default(),
            readers: LineServer::new(READERS, READER_LIMITS, refusal),
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
            let deadline = if self.readers.has_work() { now() } else { second };
            let ready: Vec<(u32, EventFlags)> = reactor.wait(deadline).map_err(failed)?.collect();
            for (number, flags) in ready {
                match number {
                    PUBLISH => self.accept_publishers(&reactor),
                    QUERY => self.accept_readers(&reactor),
                    READERS.. => {
                        if let Some(gone) = self.readers.ready(number, flags) {
                            self.readers.remove(gone);
                        }
                    }
                    _ => self.publisher_ready(number - PUBLISHERS, &reactor),
                }
            }
            self.serve_readers();
            for gone in self.readers.flush(&reactor) {
                self.readers.remove(gone);
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
        for _ in 0..MOST_ACCEPTED {
            // A publisher without a descriptor tries again by itself.
            let stream = match self.accepter.accept(self.publish.listener()) {
                None => return,
                Some(AcceptedStream::Stream(stream)) if stream.set_nonblocking(true).is_ok() => stream,
                Some(AcceptedStream::Stream(_) | AcceptedStream::Excess(_)) => continue,
            };
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

    fn accept_readers(&mut self, reactor: &Reactor) {
        let viewer = |uid| if self.readers_see_all { Viewer::All } else { Viewer::of_user(uid) };
        self.readers.accept(self.query.listener(), reactor, |process| {
            Ok(Reader { uid: process.user, viewer: viewer(process.user) })
        });
    }

    /// Answers a request of each reader that has one.
    fn serve_readers(&mut self) {
        for _ in 0..MOST_READERS {
            let Some(number) = self.readers.next_client() else { return };
            if let Some(line) = self.readers.request(number, |line, _| Ok(line.to_vec())) {
                self.answer(number, &line);
            }
        }
    }

    /// Answers a reader's request.
    fn answer(&mut self, number: ClientNumber, request: &[u8]) {
        let Some(Reader { uid, viewer }) = self.readers.client(number) else { return };
        let (uid, viewer) = (*uid, *viewer);
        let refused = match request {
            b"host" if self.is_too_much_waiting(uid) => {
                "too much waits for readers that do not read: try again later"
            }
            b"host" => {
                let document = self.documents.get(viewer, now, || document(&self.host, viewer));
                return self.readers.send_shared(number, document);
            }
            _ => "a request is `host`",
        };
        self.readers.send(number, &refusal(refused));
    }

    /// Returns whether no further answer may wait for readers of a user.
    fn is_too_much_waiting(&self, uid: u32) -> bool {
        let is_root = uid == 0;
        self.readers.shared_waiting(|of| (of == 0) == is_root) > MOST_WAITING
            || !is_root && self.readers.shared_waiting(|of| of == uid) > MOST_WAITING_OF_USER
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

/// Returns the line of an error.
fn refusal(why: &str) -> String {
    format!("{}\n", json!({ "event": "error", "error": why }))
}

/// Returns the process at the other end of a connection, as the kernel states it, with the number 0 if it has none in this PID namespace.
fn peer(stream: &UnixStream) -> Option<Process> {
    let peer = PeerProcess::of(stream).ok()?;
    Some(Process { pid: peer.pid.map_or(0, |pid| pid.as_raw_pid().cast_unsigned()), uid: peer.user })
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
