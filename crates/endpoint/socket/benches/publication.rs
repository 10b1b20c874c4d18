//! Cost of the publication of QoS sockets to the monitor of their host: CPU time of a process that publishes, beside one that does not.
//!
//! ```text
//! cargo bench -p cutline-socket --bench publication
//! ```
//!
//! A process with a hundred pairs of datagram sockets sends messages over each pair at several rates, then none at all; then it closes
//! all pairs but one, and sends as fast as it can. Separate processes do this in turns: one with publication, and two without it, whose
//! difference is the noise of the measurement. This process reads and discards the rows. The kernel counts the CPU time of the thread that
//! publishes by itself, so its cost is known where the difference of two processes is lost in the noise. A message costs nothing more,
//! since rows are made from counters that every socket has.

use cutline_socket::{Pacing, QosOptions, QosUdpListener, QosUdpSocket};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Pairs of sockets, unless the load is that of a single one.
const PAIRS: usize = 100;
/// Kinds of load, and the time between two messages of a pair; `None` of a single pair at its full rate.
const KINDS: [(&str, Option<Duration>); 5] = [
    ("100 pairs, 100 messages/s each", Some(Duration::from_millis(10))),
    ("100 pairs, 50 messages/s each", Some(Duration::from_millis(20))),
    ("100 pairs, 5 messages/s each", Some(Duration::from_millis(200))),
    ("100 pairs without messages", Some(Duration::from_secs(3600))),
    ("a pair at full rate", None),
];
/// Time of a measurement.
const TIME: Duration = Duration::from_secs(10);
/// Time before it, in which the process finds the monitor.
const WARM: Duration = Duration::from_secs(4);
const TURNS: usize = 5;
const SIZE: usize = 1000;

/// Returns the running time of this process, all threads together.
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

/// Exchanges messages until a time, one each `every`, or as many as possible. Returns their number.
fn load(pairs: &[[QosUdpSocket; 2]], every: Option<Duration>, until: Instant) -> u64 {
    let (begun, mut message, mut rounds) = (now(), [7; SIZE], 0);
    while now() < until {
        for pair in pairs {
            exchange(pair, &mut message);
        }
        rounds += 1;
        if let Some(every) = every {
            let due = (begun + every * rounds).min(until);
            thread::sleep(std::time::Duration::from_nanos(due.saturating_since(now()).as_nanos()));
        }
    }
    rounds * pairs.len() as u64
}

/// Name of the thread that publishes.
const PUBLISHER: &str = "cutline-publish";

/// Returns the running time of the thread that publishes, ns, and the number of switches to it; zeros without one, and on a kernel that does
/// not count them.
fn publisher_thread() -> [u64; 2] {
    let is_it =
        |task: &Path| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == PUBLISHER);
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let numbers = tasks.filter(|task| is_it(task)).find_map(|task| {
        let text = fs::read_to_string(task.join("schedstat")).ok()?;
        let numbers: Vec<u64> = text.split_whitespace().map_while(|number| number.parse().ok()).collect();
        // The second number is the time for which it has waited for a processor.
        <[u64; 3]>::try_from(numbers).ok()
    });
    numbers.map_or([0; 2], |[run, _, switches]| [run, switches])
}

/// The process that is measured: prints, for each kind of load, its CPU time, ns, that of the thread that publishes, how often that was
/// switched to, and the messages.
fn child() {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let mut pairs: Vec<_> = (0..PAIRS).map(|_| pair(&listener)).collect();
    load(&pairs, KINDS[0].1, now() + WARM);
    for (_, every) in KINDS {
        pairs.truncate(if every.is_some() { PAIRS } else { 1 });
        let (before, [run_before, switches_before]) = (cpu_time(), publisher_thread());
        let messages = load(&pairs, every, now() + TIME);
        let (after, [run, switches]) = (cpu_time(), publisher_thread());
        println!(
            "{} {} {} {messages}",
            (after - before).as_nanos(),
            run - run_before,
            switches - switches_before
        );
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

/// Use of the processor by a process in a kind of load.
#[derive(Clone, Copy, Debug)]
struct Use {
    /// CPU time of all threads, ns.
    cpu: f64,
    /// CPU time of the thread that publishes, ns.
    publisher: f64,
    /// Number of times that this thread was switched to.
    switches: f64,
    messages: f64,
}

/// Returns the use of the processor in each kind of load by a process that publishes to this path.
fn measured(publish: &str) -> Vec<Use> {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("child")
        .env("CUTLINE_PUBLISH", publish)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let (loads, _) = numbers.as_chunks::<4>();
    let of = |&[cpu, publisher, switches, messages]: &[f64; 4]| Use { cpu, publisher, switches, messages };
    loads.iter().map(of).collect()
}

/// Returns the middle value, or the larger of two.
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
    // The two without publication differ by what no publication explains.
    let paths = [path.to_str().unwrap(), "off", "off"];
    let turns: Vec<[Vec<Use>; 3]> = (0..TURNS).map(|_| paths.map(measured)).collect();
    println!("CPU time of a pair and second, all threads of the process; median of {TURNS} turns");
    for (kind, (name, every)) in KINDS.iter().enumerate() {
        let pairs = if every.is_some() { PAIRS as f64 } else { 1.0 };
        let of = |turn: &[Vec<Use>; 3], program: usize, what: fn(&Use) -> f64| {
            let load = &turn[program][kind];
            // At full rate the number of messages is another one in each turn.
            let share = if every.is_some() { 1.0 } else { turn[1][kind].messages / load.messages };
            what(load) * share / pairs / TIME.as_secs_f64() / 1e3
        };
        let each = |program: usize, what: fn(&Use) -> f64| {
            median(turns.iter().map(|turn| of(turn, program, what)).collect())
        };
        let cpu = |load: &Use| load.cpu;
        let [published, private] = [0, 1].map(|program| each(program, cpu));
        let difference = published - private;
        let share = 100.0 * difference / private;
        println!(
            "{name:<32} published {published:>9.1} us  not {private:>9.1} us  {difference:+.1} us  {share:+.2} %"
        );
        let noise = median(turns.iter().map(|turn| (of(turn, 1, cpu) - of(turn, 2, cpu)).abs()).collect());
        let thread = each(0, |load| load.publisher);
        let switches = median(turns.iter().map(|turn| turn[0][kind].switches / TIME.as_secs_f64()).collect());
        println!(
            "    the thread that publishes takes {thread:.1} us of it and is switched to {switches:.1} times a second; \
             two processes without it differ by {noise:.1} us"
        );
    }
    let seconds = TURNS as f64 * (WARM.as_secs_f64() + KINDS.len() as f64 * TIME.as_secs_f64());
    println!("{:.0} B/s of a process", read.load(Ordering::Relaxed) as f64 / seconds);
}
