//! Cost of the publication of QoS sockets to the monitor of their host: CPU time of a process that publishes, beside one that does not.
//!
//! ```text
//! cargo bench -p cutline-socket --bench publication
//! ```
//!
//! A process with a hundred pairs of datagram sockets sends 50 messages a second over each pair, so that every row changes each second;
//! then it closes all pairs but one, and sends as fast as it can. This is done by processes of their own, with and without publication
//! by turns, and what they publish is read and forgotten by this one. The difference of the first kind is the cost of a row, of which
//! there is one for each socket and second; a message costs nothing more, since rows are made from counters that every socket has.

use cutline_socket::{Pacing, QosOptions, QosUdpListener, QosUdpSocket};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Pairs of sockets in the first kind of load.
const PAIRS: usize = 100;
/// Time between two messages of a pair.
const EVERY: Duration = Duration::from_millis(20);
/// Time of a measurement.
const TIME: Duration = Duration::from_secs(10);
/// Time before it, in which the process finds the monitor.
const WARM: Duration = Duration::from_secs(4);
const TURNS: usize = 5;
const SIZE: usize = 1000;

/// Returns how long this process has run, all threads together.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn pair(listener: &QosUdpListener) -> [QosUdpSocket; 2] {
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        let options = QosOptions::default().pacing(Pacing::Count);
        [QosUdpSocket::connect(to, &options).unwrap(), accepted.join().unwrap()]
    })
}

fn exchange([from, to]: &[QosUdpSocket; 2], message: &mut [u8]) {
    assert_eq!(from.send(message).unwrap(), SIZE);
    assert_eq!(to.recv(message).unwrap(), SIZE);
}

/// Exchanges messages until a time. Returns how many.
fn load(pairs: &[[QosUdpSocket; 2]], is_paced: bool, until: Instant) -> u64 {
    let (begun, mut message, mut rounds) = (now(), [7; SIZE], 0);
    while now() < until {
        for pair in pairs {
            exchange(pair, &mut message);
        }
        rounds += 1;
        if is_paced {
            let due = begun + EVERY * rounds;
            thread::sleep(std::time::Duration::from_nanos(due.saturating_since(now()).as_nanos()));
        }
    }
    rounds * pairs.len() as u64
}

/// The process that is measured: prints its CPU time in both kinds of load, and the messages, of each.
fn child() {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let mut pairs: Vec<_> = (0..PAIRS).map(|_| pair(&listener)).collect();
    load(&pairs, true, now() + WARM);
    for (count, is_paced) in [(PAIRS, true), (1, false)] {
        pairs.truncate(count);
        let before = cpu_time();
        let messages = load(&pairs, is_paced, now() + TIME);
        println!("{} {messages}", (cpu_time() - before).as_nanos());
    }
}

/// Reads and forgets what programs publish. Returns the number of bytes.
fn monitor(at: &Path) -> Arc<AtomicU64> {
    let listener = UnixListener::bind(at).unwrap();
    let read = Arc::new(AtomicU64::new(0));
    let of_thread = Arc::clone(&read);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let (mut from, mut line) = (BufReader::new(connection.unwrap()), Vec::new());
            while let Ok(1..) = from.read_until(b'\n', &mut line) {
                of_thread.fetch_add(line.len() as u64, Ordering::Relaxed);
                line.clear();
            }
        }
    });
    read
}

/// Returns the CPU time, ns, and the messages of both kinds of load of a process that publishes to this path.
fn measured(publish: &str) -> [(f64, f64); 2] {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("child")
        .env("CUTLINE_PUBLISH", publish)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    [(numbers[0], numbers[1]), (numbers[2], numbers[3])]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    if std::env::args().any(|argument| argument == "child") {
        return child();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("publish.sock");
    let read = monitor(&path);
    let turns: Vec<_> = (0..TURNS).map(|_| [measured(path.to_str().unwrap()), measured("off")]).collect();
    let each = |kind: usize, program: usize| {
        median(turns.iter().map(|turn| turn[program][kind].0 / turn[program][kind].1).collect())
    };
    println!("CPU time of a message, sent and received, all threads of the process; median of {TURNS} turns");
    for (kind, name) in [(0, "100 pairs, 50 messages/s each"), (1, "a pair at full rate")] {
        let [published, private] = [0, 1].map(|program| each(kind, program));
        let share = 100.0 * (published - private) / private;
        println!("{name:<36} published {published:>8.0} ns  not {private:>8.0} ns  {share:+.2} %");
    }
    // Each end of a pair has a row.
    let rate = 1e9 / EVERY.as_nanos() as f64;
    let row = (each(0, 0) - each(0, 1)) * rate / 2.0;
    let enough = row / (each(0, 1) / 2.0 * 0.01);
    let seconds = TURNS as f64 * (WARM + TIME).as_secs_f64();
    let bytes = read.load(Ordering::Relaxed) as f64 / (2.0 * PAIRS as f64 * seconds);
    println!("a row costs {:.1} us: 1 % of a socket with {enough:.0} messages/s", row / 1e3);
    println!("{bytes:.0} B/s for a socket");
}
