//! Ten processes of a thousand sockets each, whose rows all change each second: the cost of collecting them, and of reading them.

use crate::common::Monitor;
use cutline_monitor::PublicationLimits;
use cutline_publish::testing::receiving_socket;
use cutline_publish::{Publisher, RowKind, RowSnapshot};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Variable with the path that the process of the publishers publishes to.
const PATH: &str = "CUTLINE_CAPACITY_PATH";
const PROCESSES: u64 = 10;
const SOCKETS: u64 = 1000;
/// Time over which the processor is measured.
const MEASURED: Duration = Duration::from_secs(20);

/// Processor time of this process, s, and its memory, MB.
fn usage() -> (f64, f64) {
    let fields = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = fields.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    (ticks / 100.0, fields[21].parse::<f64>().unwrap() * 4096.0 / 1e6)
}

/// The process of the publishers, until its input ends.
#[test]
#[ignore = "it is a part of the other test here"]
fn publishes() {
    let Some(path) = std::env::var_os(PATH) else { return };
    for process in 0..PROCESSES {
        let publisher = Publisher::connect(Path::new(&path), &format!("program {process}")).unwrap();
        std::thread::spawn(move || {
            let mut second = 0;
            let put = |snapshot: &mut RowSnapshot<'_>| {
                second += 1;
                for socket in 1..=SOCKETS {
                    snapshot.put(RowKind::Socket, socket, &receiving_socket(socket, second));
                }
            };
            let pause = |publisher: &mut Publisher, time| {
                let until = Instant::now() + time;
                while !publisher.flush()? || Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(true)
            };
            publisher.run(put, pause, drop)
        });
    }
    let _end = std::io::stdin().read(&mut [0]);
}

fn read(at: SocketAddr, path: &str) -> usize {
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap()
}

#[test]
#[ignore = "it takes a minute in release: cargo test --release -p cutline-monitor --test all -- capacity::ten --ignored --nocapture"]
fn ten_thousand_sockets_are_collected_and_read() {
    let monitor = Monitor::start();
    let at = monitor.serve();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["capacity::publishes", "--exact", "--ignored"])
        .env(PATH, monitor.publish())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    monitor.wait_for(|document| document.sockets.len() == (PROCESSES * SOCKETS) as usize);
    // What reading the document took is given back.
    let line = serde_json::to_string(&receiving_socket(500, 100)).unwrap().len();
    // Each new row of a socket has 50 messages more.
    let rows =
        || monitor.host.registry().sockets().map(|(_, row)| row.receive.sent_messages / 50).sum::<u64>();
    let (rows_before, (before, _)) = (rows(), usage());
    std::thread::sleep(MEASURED);
    let (rows_after, (after, memory)) = (rows(), usage());
    let [share, rate] =
        [100.0 * (after - before), (rows_after - rows_before) as f64].map(|sum| sum / MEASURED.as_secs_f64());
    println!("{rate:.0} rows of {line} B a second: {share:.0} % of a core, {memory:.0} MB");
    for path in ["/metrics", "/api/host"] {
        let since = Instant::now();
        let bytes = read(at, path);
        println!("{path}: {:.1} MB in {:.2} s", bytes as f64 / 1e6, since.elapsed().as_secs_f64());
        assert!(bytes > 100_000);
    }
    let since = Instant::now();
    monitor.wait_for(|document| document.publishers == PROCESSES);
    println!("the document of all sockets, read and parsed: {:.2} s", since.elapsed().as_secs_f64());
    drop(process.stdin.take());
    process.wait().unwrap();
}

/// Descriptors of a publisher: its connection twice, and its process.
const OF_PUBLISHER: usize = 3;
/// Readers of the local socket and over HTTP.
const READERS: usize = 256 + 2048;
/// Clients of `cutlined`, and of its resource manager, these with their processes.
const CLIENTS: usize = 4096 + 2 * 4096;

/// A user with many connections takes no descriptor that another part of the service needs.
#[test]
fn the_units_allow_the_descriptors_of_all_limits() {
    let monitor = OF_PUBLISHER * PublicationLimits::DEFAULT.publishers + READERS;
    for (unit, needed) in [("cutline-monitor.service", monitor), ("cutlined.service", monitor + CLIENTS)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging").join(unit);
        let text = std::fs::read_to_string(path).unwrap();
        let limit = text.lines().find_map(|line| line.strip_prefix("LimitNOFILE="));
        let limit: usize = limit.unwrap().parse().unwrap();
        assert!(limit > needed, "{unit}: {limit} descriptors, {needed} are needed");
    }
}
