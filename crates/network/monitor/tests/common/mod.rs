//! A monitor at work, for tests.

pub mod browser;

use cutline_monitor::{
    Collector, CollectorOptions, HostDocument, KernelQueueReader, KernelQueueReading, MonitorClient,
    MonitoredHost, PublicationLimits, WebOptions, WebServer,
};
use cutline_publish::{Publisher, RowKind, SocketRow};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The token of the web server.
pub const TOKEN: &str = "a-token-of-this-test";

/// Time that anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A monitor that collects in a thread until it is dropped.
pub struct Monitor {
    folder: tempfile::TempDir,
    pub host: Arc<MonitoredHost>,
    readers_see_all: bool,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    pub fn start() -> Self {
        Self::with(false)
    }

    /// Starts a monitor that shows every reader all rows if `readers_see_all`, otherwise those of the reader.
    pub fn with(readers_see_all: bool) -> Self {
        Self::with_kernel_queues(readers_see_all, KernelQueueReading::default)
    }

    /// Starts a monitor with these queues in the kernel.
    pub fn with_kernel_queues(
        readers_see_all: bool,
        read: impl Fn() -> KernelQueueReading + Send + Sync + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Other users come as far as the sockets.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let options = CollectorOptions {
            publish: folder.path().join("publish.sock"),
            query: folder.path().join("monitor.sock"),
            limits: PublicationLimits::DEFAULT,
            readers_see_all,
            kernel_queues: KernelQueueReader::new(read),
        };
        let mut collector = Collector::open(&options).unwrap();
        let (host, stop) = (collector.host(), Arc::new(AtomicBool::new(false)));
        let stops = Arc::clone(&stop);
        let thread = std::thread::spawn(move || collector.run(&[&stops]).unwrap());
        Self { folder, host, readers_see_all, stop, thread: Some(thread) }
    }

    pub fn publish(&self) -> PathBuf {
        self.folder.path().join("publish.sock")
    }

    pub fn query(&self) -> PathBuf {
        self.folder.path().join("monitor.sock")
    }

    pub fn publisher(&self, program: &str) -> Publisher {
        Publisher::connect(&self.publish(), program).unwrap()
    }

    /// Asks until the document is as it should be.
    pub fn wait_for(&self, is_it: impl Fn(&HostDocument) -> bool) -> HostDocument {
        // A test may take longer than a person waits. A request that is given up would only cost more.
        let longest = 5 * PATIENCE;
        let patience = cutline_units::Duration::from_secs(longest.as_secs());
        let mut client = MonitorClient::connect(&self.query()).unwrap().patience(patience);
        let end = Instant::now() + longest;
        loop {
            let document = client.host().unwrap();
            if is_it(&document) {
                return document;
            }
            let (publishers, sockets) = (document.publishers, document.sockets.len());
            assert!(Instant::now() < end, "{publishers} publishers, {sockets} sockets");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts the web server, at a port of its own.
    pub fn serve(&self) -> SocketAddr {
        let server = WebServer::bind(WebOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            token: Some(TOKEN.to_owned()),
            names: Vec::new(),
            readers_see_all: self.readers_see_all,
        });
        let server = server.unwrap();
        let address = server.address().unwrap();
        server.serve(Arc::clone(&self.host)).unwrap();
        address
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// Publishes these sockets, and no others.
pub fn publish(publisher: &mut Publisher, numbers: std::ops::Range<u64>) {
    let end = Instant::now() + PATIENCE;
    let mut snapshot = loop {
        if let Some(snapshot) = publisher.begin_snapshot().unwrap() {
            break snapshot;
        }
        assert!(Instant::now() < end, "the monitor does not read");
    };
    for socket in numbers {
        let row = SocketRow {
            socket,
            transport: "udp".into(),
            peer: format!("192.0.2.1:{socket}"),
            ..SocketRow::default()
        };
        snapshot.put(RowKind::Socket, socket, &row);
    }
    snapshot.end().unwrap();
    while !publisher.flush().unwrap() {
        assert!(Instant::now() < end, "the monitor does not read");
        std::thread::sleep(Duration::from_millis(1));
    }
}
