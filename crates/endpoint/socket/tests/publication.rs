//! Publication of a process to the monitor of its host. The process is this program again, in which one test does the work
//! ([`a_process_with_sockets`]), since the environment names the monitor.

use cutline_publish::{ManagerRequest, SocketRow, VARIABLE};
use cutline_socket::{Preset, QosOptions, QosUdpListener, QosUdpSocket};
use cutline_testbed::{in_time, undisturbed};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Variable that makes a process of this program do the work.
const WORK: &str = "CUTLINE_TEST_PUBLICATION";

/// The monitor's end of a publisher.
struct Monitor {
    lines: BufReader<UnixStream>,
}

impl Monitor {
    fn accept(listener: &UnixListener) -> Self {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { lines: BufReader::new(stream) }
    }

    /// The next line; `None` if the process has gone.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.lines.read_line(&mut line).unwrap();
        (length > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The next row for which this holds.
    fn row_with(&mut self, mut is_it: impl FnMut(&SocketRow) -> bool) -> SocketRow {
        while let Some(line) = self.next() {
            let Some(row) = line.get("socket") else { continue };
            let row = serde_json::from_value(row.clone()).unwrap();
            if is_it(&row) {
                return row;
            }
        }
        panic!("the process has ended without such a row");
    }
}

fn start(work: &str, socket: &std::path::Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "publication::a_process_with_sockets", "--nocapture"]).env(WORK, work);
    command.env(VARIABLE, socket).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

/// Sends messages until its input ends.
#[test]
fn a_process_with_sockets() {
    let Ok(work) = std::env::var(WORK) else { return };
    // An end that demands nothing takes what the other one demands.
    let receives = if work == "managed" {
        QosOptions::default()
    } else {
        QosOptions::receiving(Preset::Video.specification())
    };
    let listener = QosUdpListener::bind("127.0.0.1:0", &receives);
    let listener = listener.unwrap();
    let options = QosOptions::sending(Preset::Video.specification());
    let options = options.publish(work != "private").managed(work == "managed");
    let to = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (receiver, _) = listener.accept().unwrap();
        let mut message = [0; 2000];
        while receiver.recv(&mut message).is_ok() {}
    });
    // A pair over which nothing is sent.
    let quiet = (work == "quiet").then(|| {
        let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
        let to = listener.local_addr().unwrap();
        let accepted = std::thread::spawn(move || listener.accept().unwrap().0);
        (QosUdpSocket::connect(to, &QosOptions::default()).unwrap(), accepted.join().unwrap())
    });
    let sender = QosUdpSocket::connect(to, &options).unwrap();
    std::thread::spawn(|| {
        // The end of its input ends the process without a word, as a crash does.
        let _ended = std::io::stdin().read_line(&mut String::new());
        std::process::abort();
    });
    loop {
        sender.send(&[0; 1000]).unwrap();
        std::hint::black_box(&quiet);
    }
}

#[test]
fn a_manager_weakens_a_limit_where_the_owner_allows_it() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("publish.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut process = start("managed", &socket);
    let mut monitor = Monitor::accept(&listener);
    let rate = |row: &SocketRow| {
        let limit = row.send.limits.iter().find(|limit| limit.measure == "rate");
        limit.map(|limit| limit.worst)
    };
    let row = monitor.row_with(|row| row.managed && row.state == "agreed" && rate(row).is_some());
    let (number, least) = (row.socket, rate(&row).unwrap());
    let other = monitor.row_with(|row| row.socket != number);
    assert!(!other.managed, "the peer has not allowed it");
    let mut ask = |request: ManagerRequest| {
        std::io::Write::write_all(monitor.lines.get_mut(), request.line().as_bytes()).unwrap();
    };
    let limit = |socket, measure: &str, worst| ManagerRequest::Limit {
        socket,
        receive: false,
        measure: measure.to_owned(),
        worst,
    };
    // What demands more, has no limit, or is not allowed is ignored.
    ask(limit(number, "rate", least * 2.0));
    ask(limit(number, "nonsense", 1.0));
    ask(limit(other.socket, "rate", 1.0));
    ask(limit(number, "rate", least / 2.0));
    let changed = monitor.row_with(|row| row.socket == number && rate(row) != Some(least));
    assert_eq!(rate(&changed), Some(least / 2.0));
    let mut ask = |request: ManagerRequest| {
        std::io::Write::write_all(monitor.lines.get_mut(), request.line().as_bytes()).unwrap();
    };
    ask(ManagerRequest::Renegotiate { socket: number });
    let back = monitor.row_with(|row| row.socket == number && rate(row) != Some(least / 2.0));
    assert_eq!(rate(&back), Some(least));
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn both_ends_publish_what_they_have_agreed_on_and_what_is_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("publish.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut process = start("both", &socket);
    let mut monitor = Monitor::accept(&listener);
    assert_eq!(monitor.next().unwrap()["hello"]["version"], cutline_publish::VERSION);
    // Delays are counted from the time on at which the clocks are compared.
    let received = monitor.row_with(|row| {
        let counted = matches!(&row.receive.delay_buckets_ms, Some(buckets) if buckets.count() > 60);
        counted && row.receive.delay.is_some()
    });
    assert_eq!((received.transport.as_str(), received.state.as_str()), ("udp", "agreed"));
    assert!(received.receive.effective.contains("max-delay = 400 ms"), "{received:?}");
    assert_eq!(received.receive.offered, received.receive.requested);
    let delay = received.receive.delay.as_ref().unwrap();
    assert!(delay.mean_ms <= delay.max_ms && delay.max_ms < 60_000.0, "{delay:?}");
    let counted = received.receive.delay_buckets_ms.as_ref().unwrap().count();
    assert!(counted <= received.receive.received_messages, "{received:?}");
    let measures: Vec<_> = received.receive.limits.iter().map(|limit| limit.measure.as_str()).collect();
    assert!(measures.contains(&"rate") && measures.contains(&"loss"), "{measures:?}");
    let sent = monitor.row_with(|row| row.send.sent_messages > 60 && row.send.received_messages > 0);
    assert_eq!((&sent.local, &sent.peer), (&received.peer, &received.local));
    assert!(sent.hint.is_some() && sent.opened_unix_s > 1.7e9, "{sent:?}");
    drop(process.stdin.take());
    process.wait().unwrap();
}

/// The kernel closes the connection of a process that crashes, and the monitor drops its rows then.
#[test]
fn the_connection_of_a_process_that_crashes_ends_within_a_second() {
    undisturbed(|| {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("publish.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut process = start("both", &socket);
        let mut monitor = Monitor::accept(&listener);
        monitor.row_with(|row| row.send.sent_messages > 0);
        let since = Instant::now();
        drop(process.stdin.take());
        while monitor.next().is_some() {}
        let ended = since.elapsed();
        process.wait().unwrap();
        in_time!(ended < Duration::from_secs(1), "it lasted for {ended:?}");
    });
}

/// A socket without messages costs next to nothing: its row is made when it has agreed, and then seldom.
#[test]
fn a_socket_without_messages_has_few_rows() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("publish.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut process = start("quiet", &socket);
    let mut monitor = Monitor::accept(&listener);
    let (mut busy, mut quiet) = (0, std::collections::BTreeMap::new());
    monitor.row_with(|row| {
        if row.send.sent_messages > 0 {
            busy += 1;
        } else if row.receive.received_messages == 0 {
            quiet.entry(row.socket).or_insert_with(Vec::new).push(row.state.clone());
        }
        busy == 12
    });
    drop(process.stdin.take());
    process.wait().unwrap();
    let agreed = quiet.values().filter(|states| states.last().is_some_and(|state| state == "agreed"));
    assert_eq!(agreed.count(), 2, "{quiet:?}");
    assert!(quiet.values().all(|states| states.len() <= 5), "{quiet:?}");
}

#[test]
fn a_socket_that_is_private_is_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("publish.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut process = start("private", &socket);
    let mut monitor = Monitor::accept(&listener);
    let mut rows = 0;
    monitor.row_with(|row| {
        assert_eq!(row.send.sent_messages, 0, "the sender's row: {row:?}");
        rows += 1;
        rows == 3
    });
    drop(process.stdin.take());
    process.wait().unwrap();
}

/// A monitor that starts later, or again, is found.
#[test]
fn a_returning_monitor_is_published_to_again() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("publish.sock");
    let mut process = start("both", &socket);
    for _ in 0..2 {
        let listener = UnixListener::bind(&socket).unwrap();
        let mut monitor = Monitor::accept(&listener);
        monitor.row_with(|row| row.send.sent_messages > 0);
        drop((monitor, listener));
        std::fs::remove_file(&socket).unwrap();
    }
    drop(process.stdin.take());
    process.wait().unwrap();
}
