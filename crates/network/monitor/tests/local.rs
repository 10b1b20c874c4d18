//! Processes that publish, and readers of the local socket.

use crate::common::{Monitor, publish};
use cutline_monitor::{
    Collector, CollectorOptions, HostDocument, KernelQueueEntry, KernelQueueReader, KernelQueueReading,
    MonitorClient, MonitorClientError, PublicationLimits,
};
use cutline_publish::{RowKind, SocketRow};
use cutline_router_service::{QdiscDocument, Statistics};
use cutline_testbed::{in_time, skip, undisturbed};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A user with no other process, as services have that run under a user of their own.
const OTHER_USER: u32 = 64_321;
/// An ordinary user with no other process.
const ORDINARY_USER: u32 = 12_345;

#[test]
fn rows_come_change_and_go_with_their_process() {
    let monitor = Monitor::start();
    let mut video = monitor.publisher("video");
    publish(&mut video, 0..3);
    let document = monitor.wait_for(|document| document.sockets.len() == 3);
    let entry = &document.sockets[1];
    assert_eq!((entry.program.as_str(), entry.pid), ("video", std::process::id()));
    assert_eq!(entry.socket.peer, "192.0.2.1:1");
    publish(&mut video, 2..3);
    monitor.wait_for(|document| document.sockets.len() == 1);
    drop(video);
    monitor.wait_for(|document| document.sockets.is_empty() && document.publishers == 0);
}

/// A process that is killed may leave a copy with its connection. The rows are gone all the same, within a second.
#[test]
fn the_rows_of_a_killed_process_are_gone_although_its_child_keeps_the_connection() {
    undisturbed(|| {
        let monitor = Monitor::start();
        let script = "
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(b'{\"hello\":{\"version\":1,\"program\":\"python\"}}\\n{\"socket\":{\"socket\":7}}\\n')
child = os.fork()
if child == 0:
    sys.stdin.read(); os._exit(0)
print(child, flush=True)
time.sleep(600)";
        let mut process = Command::new("python3")
            .args(["-c", script])
            .arg(monitor.publish())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        monitor.wait_for(|document| document.sockets.iter().any(|entry| entry.socket.socket == 7));
        // The child lives until its input ends.
        let input = process.stdin.take();
        let since = Instant::now();
        process.kill().unwrap();
        process.wait().unwrap();
        monitor.wait_for(|document| document.sockets.is_empty());
        let gone = since.elapsed();
        drop(input);
        in_time!(gone < Duration::from_secs(1), "the rows were there for {gone:?}");
    });
}

#[test]
fn a_publisher_of_invalid_lines_is_disconnected_without_harm() {
    let monitor = Monitor::start();
    let mut video = monitor.publisher("video");
    publish(&mut video, 0..1);
    for nonsense in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &vec![0xff; 300_000],
        b"{\"hello\":{\"version\":99,\"program\":\"x\"}}\n",
    ] {
        let mut stream = UnixStream::connect(monitor.publish()).unwrap();
        // It may be closed before everything is written.
        let _closed = stream.write_all(nonsense);
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(ended.is_err() || rest.is_empty());
    }
    let document = monitor.wait_for(|document| document.publishers == 1);
    assert_eq!(document.sockets.len(), 1);
}

#[test]
fn every_reader_has_the_queues_in_the_kernel_once_they_are_added() {
    let readings = AtomicU64::new(0);
    let monitor = Monitor::with_kernel_queues(false, move || {
        let readings = readings.fetch_add(1, Ordering::Relaxed);
        let queue = QdiscDocument { interface: "eth0".to_owned(), ..QdiscDocument::default() };
        let entry = KernelQueueEntry { index: 2, queue: queue.into() };
        // It is added after the monitor's start, and removed later.
        let queues = if (1..5).contains(&readings) { vec![entry] } else { Vec::new() };
        KernelQueueReading { queues, problem: None }
    });
    let document = monitor.wait_for(|document| !document.kernel_queues.is_empty());
    assert_eq!((document.totals.kernel_queues, document.publishers, document.hidden_rows), (1, 0, 0));
    assert_eq!(document.kernel_queues[0].queue.interface, "eth0");
    monitor.wait_for(|document| document.kernel_queues.is_empty());
}

#[test]
fn a_reader_that_does_not_read_delays_no_other_one() {
    let monitor = Monitor::start();
    let mut video = monitor.publisher("video");
    publish(&mut video, 0..2000);
    monitor.wait_for(|document| document.sockets.len() == 2000);
    let slow: Vec<_> = (0..50)
        .map(|_| {
            let mut stream = UnixStream::connect(monitor.query()).unwrap();
            stream.write_all(b"host\nhost\nhost\n").unwrap();
            stream
        })
        .collect();
    monitor.wait_for(|document| document.sockets.len() == 2000);
    drop(slow);
}

/// Returns the programs that another user sees over the local socket, over HTTP, and in the metrics.
fn seen_by_another_user(monitor: &Monitor) -> [bool; 3] {
    let script = "
import socket, sys, urllib.request
get = lambda path: urllib.request.urlopen('http://' + sys.argv[2] + path).read().decode()
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'host\\n')
for text in [s.makefile().readline(), get('/api/host'), get('/metrics')]:
    print('video' in text)";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(monitor.query())
        .arg(monitor.serve().to_string())
        .current_dir("/")
        .uid(OTHER_USER)
        .gid(OTHER_USER)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let seen: Vec<bool> = text.lines().map(|line| line == "True").collect();
    seen.try_into().unwrap()
}

#[test]
fn another_user_sees_my_programs_only_where_that_is_allowed() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "only root can become another user",
            "sudo -E cargo test -p cutline-monitor --test all -- local::",
        );
    }
    for all_see_all in [false, true] {
        let monitor = Monitor::with(all_see_all);
        let mut video = monitor.publisher("video");
        publish(&mut video, 0..3);
        monitor.wait_for(|document| document.sockets.len() == 3);
        assert_eq!(seen_by_another_user(&monitor), [all_see_all; 3]);
    }
}

/// Publishes as another user, until its input ends: routers, programs and sockets, as many as possible, with the largest numbers.
const FLOOD: &str = "
import json, os, socket, sys
router, most = sys.argv[2], 2 ** 64 - 1
way = {'throughput_bps': most, 'violations_begun': most, 'violations': [{'measure': 'delay'}] * 16}
# A process has one router.
is_child = False
for number in range(40):
    if os.fork() == 0:
        is_child = True
        break
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(b'{\"hello\":{\"version\":1,\"program\":\"flood\"}}\\n')
if is_child:
    s.sendall(b'{\"router\":' + router.encode() + b'}\\n')
else:
    for number in range(3000):
        row = {'socket': number, 'local': 'x' * 4000, 'send': way, 'receive': way}
        s.sendall(json.dumps({'socket': row}).encode() + b'\\n')
        program = {'process': number, 'program': 'y' * 4000}
        s.sendall(json.dumps({'program': program}).encode() + b'\\n')
sys.stdin.read()
os._exit(0)";

/// Returns an answer over HTTP.
fn get(monitor_at: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(monitor_at).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {monitor_at}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn another_user_takes_no_places_of_root() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "only root can become another user",
            "sudo -E cargo test -p cutline-monitor --test all -- local::",
        );
    }
    let monitor = Monitor::start();
    let at = monitor.serve();
    let router = |name: &str| {
        let mut statistics = Statistics::default();
        name.clone_into(&mut statistics.forward.name);
        statistics
    };
    let mut flood = Command::new("python3")
        .args(["-c", FLOOD])
        .arg(monitor.publish())
        .arg(serde_json::to_string(&router(&"z".repeat(4000))).unwrap())
        .current_dir("/")
        .uid(ORDINARY_USER)
        .gid(ORDINARY_USER)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let of_flood = |document: &HostDocument| (document.sockets.len(), document.programs.len());
    monitor.wait_for(|document| of_flood(document) == (3000, 3000) && document.routers.len() == 40);
    // Root comes last.
    let mut video = monitor.publisher("video");
    let mut snapshot = video.begin_snapshot().unwrap().unwrap();
    snapshot.put(RowKind::Router, 0, &router("of root"));
    snapshot.put(RowKind::Socket, 7, &SocketRow { socket: 7, ..SocketRow::default() });
    snapshot.end().unwrap();
    while !video.flush().unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
    monitor.wait_for(|document| {
        let history = get(at, "/api/history");
        document.routers.len() == 41 && history.contains("of root") && history.matches("title").count() == 64
    });
    let page = get(at, "/api/host");
    assert!(page.contains("\"of root\"") && page.contains("\"video\""), "{page}");
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    let metrics = get(at, "/metrics");
    for line in [
        "cutline_router_sent_packets_total{pid=\"PID\",direction=\"forward\",link=\"of root\",queue=\"\"} 0",
        "cutline_program_sockets{program=\"video\"} 1",
        "cutline_monitor_unlisted_sockets 2001",
        "cutline_monitor_unlisted_programs 2000",
    ] {
        let line = line.replace("PID", &std::process::id().to_string());
        assert!(metrics.lines().any(|found| found == line), "no {line} in {} bytes", metrics.len());
    }
    let own = metrics.lines().filter(|line| line.starts_with("cutline_socket_waits_total{program=\"video\""));
    assert_eq!(own.count(), 1);
    drop(flood.stdin.take());
    flood.wait().unwrap();
}

#[test]
fn a_request_that_is_not_known_is_refused_in_words() {
    let monitor = Monitor::start();
    let mut stream = UnixStream::connect(monitor.query()).unwrap();
    stream.write_all(b"hosts\n").unwrap();
    let mut answer = [0; 200];
    let length = stream.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert_eq!(answer, "{\"error\":\"a request is `host`\",\"event\":\"error\"}\n");
}

#[test]
fn a_second_and_a_missing_monitor_are_reported() {
    let monitor = Monitor::start();
    let options = CollectorOptions {
        publish: monitor.publish(),
        query: monitor.query(),
        limits: PublicationLimits::DEFAULT,
        readers_see_all: false,
        kernel_queues: KernelQueueReader::default(),
    };
    assert!(Collector::open(&options).is_err());
    let (query, host) = (monitor.query(), monitor.host.clone());
    drop((monitor, host));
    let error = MonitorClient::connect(&query).unwrap_err();
    assert!(matches!(error, MonitorClientError::Away { .. }), "{error}");
    assert!(error.to_string().contains("sudo cutline monitor"), "{error}");
}
