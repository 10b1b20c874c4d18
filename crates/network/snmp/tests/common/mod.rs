//! A host that is monitored and serves SNMP.

use cutline_monitor::{
    CollectorOptions, HostMonitor, KernelQueueReader, KernelQueueReading, MonitorOptions, MonitoredHost,
    PublicationLimits, Viewer,
};
use cutline_publish::testing::receiving_socket;
use cutline_publish::{DirectionRow, LimitRow, Publisher, RowKind, SocketRow, SpreadRow, ViolationRow};
use cutline_records::BucketCounts;
use cutline_snmp::{SnmpOptions, SnmpService};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time that anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Community that reads everything.
pub const COMMUNITY: &str = "secret community";

/// A host with a monitor, until it is dropped.
pub struct Host {
    pub folder: tempfile::TempDir,
    pub monitored: Arc<MonitoredHost>,
    _monitor: HostMonitor,
}

impl Host {
    pub fn start() -> Self {
        Self::with_kernel_queues(KernelQueueReading::default)
    }

    /// Starts a host with these queues in the kernel.
    pub fn with_kernel_queues(read: impl Fn() -> KernelQueueReading + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let collector = CollectorOptions {
            publish: folder.path().join("publish.sock"),
            query: folder.path().join("monitor.sock"),
            limits: PublicationLimits::DEFAULT,
            readers_see_all: false,
            kernel_queues: KernelQueueReader::new(read),
        };
        let monitor = HostMonitor::start(MonitorOptions { collector, web: None }).unwrap();
        Self { folder, monitored: Arc::clone(monitor.host()), _monitor: monitor }
    }

    pub fn publisher(&self, program: &str) -> Publisher {
        Publisher::connect(&self.folder.path().join("publish.sock"), program).unwrap()
    }

    /// Writes a file that only its owner may read.
    pub fn secret(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Returns the options in a file with these lines, at a free port of this host.
    pub fn options(&self, lines: &str) -> SnmpOptions {
        let state = self.folder.path().join("snmp.toml");
        let own = if lines.contains("listen") { "" } else { "listen = '127.0.0.1:0'\n" };
        let text = format!("{own}state = '{}'\n{lines}", state.display());
        SnmpOptions::parse(&text, "snmp.toml").unwrap()
    }

    /// Returns the options with a community that reads everything.
    pub fn open_options(&self) -> SnmpOptions {
        let file = self.secret("community", COMMUNITY);
        self.options(&format!("community-file = '{}'", file.display()))
    }

    pub fn serve(&self, options: &SnmpOptions) -> (SnmpService, Messages) {
        let messages = Messages::default();
        let said = messages.clone();
        let say = move |message| said.0.lock().unwrap().push(message);
        (SnmpService::start(options, Arc::clone(&self.monitored), say).unwrap(), messages)
    }

    /// Waits until the host has this number of violations.
    pub fn wait_for_violations(&self, violations: u64) {
        wait_until(|| self.monitored.registry().totals(Viewer::All).violations == violations);
    }

    /// Waits until the host has this number of sockets.
    pub fn wait_for_sockets(&self, sockets: u64) {
        wait_until(|| self.monitored.registry().totals(Viewer::All).sockets == sockets);
    }
}

/// Messages that a service has given.
#[derive(Clone, Default)]
pub struct Messages(Arc<Mutex<Vec<String>>>);

impl Messages {
    pub fn have(&self, part: &str) -> bool {
        self.count(part) > 0
    }

    pub fn count(&self, part: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|message| message.contains(part)).count()
    }

    pub fn forget(&self) {
        self.0.lock().unwrap().clear();
    }
}

pub fn wait_until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Publishes these rows, and no others.
pub fn publish(publisher: &mut Publisher, rows: &[SocketRow]) {
    let end = Instant::now() + PATIENCE;
    let mut snapshot = loop {
        if let Some(snapshot) = publisher.begin_snapshot().unwrap() {
            break snapshot;
        }
        assert!(Instant::now() < end, "the monitor does not read");
    };
    for row in rows {
        snapshot.put(RowKind::Socket, row.socket, row);
    }
    snapshot.end().unwrap();
    while !publisher.flush().unwrap() {
        assert!(Instant::now() < end, "the monitor does not read");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the row of a socket that receives within its limits.
pub fn row(socket: u64) -> SocketRow {
    let receive = DirectionRow {
        effective: "delay 20 ms..80 ms".to_owned(),
        received_messages: 5_000_000_000,
        throughput_bps: Some(1_500_000),
        loss_percent: Some(0.25),
        last_delay: Some(SpreadRow { mean_ms: 12.5, p99_ms: 31.25, max_ms: 40.0, ..SpreadRow::default() }),
        delay_buckets_ms: Some(BucketCounts { bounds: vec![1.0, 5.0], counts: vec![2, 1, 4], sum: 40.0 }),
        limits: vec![
            LimitRow { measure: "loss".to_owned(), best: 0.0, worst: 1.0, ..LimitRow::default() },
            LimitRow {
                measure: "delay".to_owned(),
                best: 20.0,
                worst: 80.0,
                worst_measured: Some(31.25),
                ..LimitRow::default()
            },
        ],
        ..DirectionRow::default()
    };
    SocketRow { receive, rtt_ms: None, ..receiving_socket(socket, 0) }
}

/// Returns the row of a socket whose delay violates its limit.
pub fn violated(socket: u64) -> SocketRow {
    let mut row = row(socket);
    row.receive.violations_begun = 1;
    row.receive.violations = vec![ViolationRow {
        measure: "delay".to_owned(),
        limit: 80.0,
        measured: 123.5,
        origin: "network".to_owned(),
        for_s: 2.0,
    }];
    row
}

/// Returns a name of CUTLINE-QOS-MIB below its objects.
pub fn object(below: &str) -> String {
    format!(".1.3.6.1.4.1.8072.9999.9999.2005.1.{below}")
}
