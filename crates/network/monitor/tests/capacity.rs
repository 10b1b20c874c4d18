//! Ten processes of a thousand sockets each, whose rows all change each second: the cost of collecting them, and of reading them.

use crate::common::Monitor;
use cutline_publish::{
    DELAY_BOUNDS_MS, DirectionRow, LimitRow, Publisher, RowKind, SocketRow, SpreadRow, Turn,
};
use cutline_records::BucketCounts;
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

/// Returns a row of which everything is known in one direction, in a second.
fn row(socket: u64, second: u64) -> SocketRow {
    let ms = |base: f64| base + (socket * 7 + second) as f64 / 1e3;
    let spread = |base| SpreadRow {
        mean_ms: ms(base),
        p50_ms: Some(ms(base)),
        p90_ms: Some(ms(base * 2.0)),
        p99_ms: ms(base * 3.0),
        max_ms: ms(base * 4.0),
    };
    let limit = |measure: &str, best, worst| LimitRow {
        measure: measure.to_owned(),
        best,
        worst,
        best_measured: Some(ms(best)),
        worst_measured: Some(ms(best)),
        begun: 0,
    };
    let words = "min-rate = 40 messages/s, max-delay = 400 ms, jitter = 50 ms, loss = 1 %".to_owned();
    let receive = DirectionRow {
        offered: words.clone(),
        requested: words.clone(),
        effective: words,
        sent_messages: second * 50,
        sent_bytes: second * 50_000,
        received_messages: second * 50,
        received_bytes: second * 50_000,
        rate: Some(50.0),
        throughput_bps: Some(400_000 + second),
        loss_percent: Some(0.0),
        gap_ms: Some(ms(20.0)),
        last_delay: Some(spread(10.0)),
        last_jitter: Some(spread(2.0)),
        delay: Some(spread(10.0)),
        jitter: Some(spread(2.0)),
        delay_buckets_ms: Some(BucketCounts {
            bounds: DELAY_BOUNDS_MS.to_vec(),
            counts: vec![second; DELAY_BOUNDS_MS.len() + 1],
            sum: ms(500.0),
        }),
        limits: vec![
            limit("rate", 50.0, 40.0),
            limit("delay", 0.0, 400.0),
            limit("jitter", 0.0, 50.0),
            limit("loss", 0.0, 1.0),
        ],
        ..DirectionRow::default()
    };
    SocketRow {
        socket,
        transport: "udp".to_owned(),
        local: "192.0.2.1:5203".to_owned(),
        peer: format!("192.0.2.2:{socket}"),
        opened_unix_s: 1_700_000_000.5,
        state: "agreed".to_owned(),
        reservation: "none".to_owned(),
        rtt_ms: Some(ms(20.0)),
        receive,
        ..SocketRow::default()
    }
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
            let put = |turn: &mut Turn<'_>| {
                second += 1;
                for socket in 1..=SOCKETS {
                    turn.put(RowKind::Socket, socket, &row(socket, second));
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
#[ignore = "it takes a minute in release: cargo test --release -p cutline-monitor --test all -- capacity:: --ignored --nocapture"]
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
    let line = serde_json::to_string(&row(500, 100)).unwrap().len();
    let (before, _) = usage();
    std::thread::sleep(MEASURED);
    let (after, memory) = usage();
    let share = 100.0 * (after - before) / MEASURED.as_secs_f64();
    println!("rows of {line} B, all changed each second: {share:.0} % of a core, {memory:.0} MB");
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
