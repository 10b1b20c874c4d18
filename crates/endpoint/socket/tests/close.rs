//! A stream that is closed delivers accepted data, although reports of the peer were not read, or come later.

use cutline_quality::spec::{Preset, Specification};
use cutline_signal::monitor::MonitorParams;
use cutline_socket::{Peer, QosOptions, QosTcpListener, QosTcpStream};
use cutline_testbed::slow_loopback;
use cutline_units::Duration;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time;

/// Environment variable of a process that sends and exits: address, bytes, way of closing.
const TASK: &str = "CUTLINE_TEST_OF_CLOSING";
/// Time that a test waits for an event.
const PATIENCE: time::Duration = time::Duration::from_secs(120);

fn file() -> Specification {
    Preset::File.specification()
}

/// Options of an end that reports often, so that reports come while the peer closes.
fn talkative(options: QosOptions) -> QosOptions {
    let interval = Duration::from_millis(20);
    // The peer has a minute to answer: a thread of a busy machine may have no turn for seconds.
    let options = options.detection(time::Duration::from_secs(60));
    options.monitor(MonitorParams { interval, ..MonitorParams::default() })
}

/// Way of closing a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// Dropped at once.
    Drop,
    /// Dropped after a while in which reports have come.
    AfterIdle,
    /// One direction, and then dropped.
    WriteThenDrop,
    /// Both directions, and then dropped.
    BothThenDrop,
    /// Both directions, and left open.
    Both,
    /// Left as it is.
    Open,
}

/// Numbers that tell whether bytes are missing, doubled or exchanged.
fn content(size: usize) -> Vec<u8> {
    (0..size).map(|place| (place * 31 + place / 251) as u8).collect()
}

/// Reads all, slowly at first so that much waits at the peer. Returns the received data, or the error at the end.
fn read_slowly(mut stream: impl Read, rest: time::Duration) -> Result<Vec<u8>, String> {
    let (mut all, mut piece, mut pauses) = (Vec::new(), vec![0; 1 << 16], 40);
    loop {
        if pauses > 0 {
            thread::sleep(rest);
            pauses -= 1;
        }
        match stream.read(&mut piece) {
            Ok(0) => return Ok(all),
            Ok(read) => all.extend_from_slice(&piece[..read]),
            Err(error) => return Err(format!("{error} after {} bytes", all.len())),
        }
    }
}

/// Writes so many bytes and closes. Returns the stream if it is left open.
fn send(to: SocketAddr, size: usize, closing: Closing, options: &QosOptions) -> Option<QosTcpStream> {
    let mut stream = QosTcpStream::connect(to, options).unwrap();
    stream.write_all(&content(size)).unwrap();
    match closing {
        Closing::Drop | Closing::Open => {}
        // The idle time before the close.
        Closing::AfterIdle => thread::sleep(time::Duration::from_millis(300)),
        Closing::WriteThenDrop => stream.shutdown(Shutdown::Write).unwrap(),
        Closing::BothThenDrop | Closing::Both => stream.shutdown(Shutdown::Both).unwrap(),
    }
    matches!(closing, Closing::Both | Closing::Open).then_some(stream)
}

/// Returns the data that a slow reader gets from an end that closes.
fn delivered_by(send: impl FnOnce(SocketAddr)) -> Result<Vec<u8>, String> {
    let listener = QosTcpListener::bind("127.0.0.1:0", &talkative(QosOptions::receiving(file()))).unwrap();
    let to = listener.local_addr().unwrap();
    let (done, outcome) = channel();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let _gone = done.send(read_slowly(stream, time::Duration::from_millis(20)));
    });
    send(to);
    outcome.recv_timeout(PATIENCE).map_err(|_| "the reader waits for ever".to_owned())?
}

/// Returns the data that a slow reader gets from an end that sends `size` bytes and closes.
fn delivered(size: usize, closing: Closing, peer: Peer) -> Result<Vec<u8>, String> {
    let options = talkative(QosOptions::sending(file()).peer(peer));
    let mut open = None;
    delivered_by(|to| open = send(to, size, closing, &options))
}

#[track_caller]
fn is_whole(size: usize, closing: Closing, peer: Peer) {
    match delivered(size, closing, peer) {
        Ok(got) => {
            assert!(got == content(size), "{closing:?} of {size} B, {peer:?}: {} B have come", got.len());
        }
        Err(error) => panic!("{closing:?} of {size} B, {peer:?}: {error}"),
    }
}

const SIZES: [usize; 5] = [1, 100_000, 3_000_000, 8_000_000, 64_000_000];

#[test]
fn a_stream_that_is_dropped_delivers_all() {
    for size in SIZES {
        is_whole(size, Closing::Drop, Peer::Detect);
    }
}

#[test]
fn a_stream_that_is_dropped_after_reports_have_come_delivers_all() {
    for size in SIZES {
        is_whole(size, Closing::AfterIdle, Peer::Speaks);
    }
}

#[test]
fn a_stream_that_is_shut_down_delivers_all() {
    for closing in [Closing::WriteThenDrop, Closing::BothThenDrop, Closing::Both] {
        for size in [1, 3_000_000, 8_000_000] {
            is_whole(size, closing, Peer::Detect);
        }
    }
}

#[test]
fn with_a_plain_socket_at_the_other_end_a_stream_that_is_dropped_delivers_all() {
    for (peer, closing) in [(Peer::Plain, Closing::Drop), (Peer::Detect, Closing::BothThenDrop)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let (done, outcome) = channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // What the application at the peer never reads.
            stream.write_all(&vec![7; 100_000]).unwrap();
            let _gone = done.send(read_slowly(stream, time::Duration::from_millis(20)));
        });
        send(to, 8_000_000, closing, &QosOptions::sending(file()).peer(peer));
        let got = outcome.recv_timeout(PATIENCE).expect("the reader waits for ever");
        assert!(got.as_deref() == Ok(&content(8_000_000)[..]), "{peer:?}: {:?}", got.map(|got| got.len()));
    }
}

#[test]
fn over_a_slow_link_a_stream_delivers_all_however_it_ends() {
    let Some(namespace) = slow_loopback("slowclose", "sudo -E cargo test -p cutline-socket close::") else {
        return;
    };
    namespace
        .within(|| {
            for (size, closing) in
                [(1, Closing::Drop), (3_000_000, Closing::Drop), (3_000_000, Closing::Both)]
            {
                is_whole(size, closing, Peer::Detect);
            }
            is_whole(3_000_000, Closing::AfterIdle, Peer::Speaks);
            for how in ["open", "closed"] {
                let got = delivered_by(|to| exiting(to, 3_000_000, how));
                assert_eq!(got.map(|got| got == content(3_000_000)), Ok(true), "{how}");
            }
        })
        .unwrap();
}

/// Not a test of its own: the work of the process that [`exiting`] starts.
#[test]
fn a_process_that_exits() {
    let Ok(task) = std::env::var(TASK) else { return };
    let words: Vec<&str> = task.split(' ').collect();
    let [to, size, how] = words[..] else { panic!("{TASK}={task}") };
    let (to, size) = (to.parse().unwrap(), size.parse().unwrap());
    let closing = match how {
        "open" => Closing::Open,
        "closed" => Closing::Drop,
        "shut-down" => Closing::Both,
        _ => panic!("{TASK}={task}"),
    };
    let _open = send(to, size, closing, &talkative(QosOptions::sending(file())));
    std::process::exit(0);
}

/// Has another process send so many bytes and exit.
fn exiting(to: SocketAddr, size: usize, how: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command =
        command.args(["--exact", "close::a_process_that_exits"]).env(TASK, format!("{to} {size} {how}"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{how}: {}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_process_that_exits_delivers_the_accepted_data_of_its_streams() {
    for how in ["open", "closed", "shut-down"] {
        for size in [1, 3_000_000, 8_000_000] {
            match delivered_by(|to| exiting(to, size, how)) {
                Ok(got) => assert!(got == content(size), "{how}, {size} B: {} B have come", got.len()),
                Err(error) => panic!("{how}, {size} B: {error}"),
            }
        }
    }
}

#[test]
fn a_call_that_reads_returns_when_its_stream_is_shut_down() {
    let listener = QosTcpListener::bind("127.0.0.1:0", &talkative(QosOptions::default())).unwrap();
    let to = listener.local_addr().unwrap();
    for how in [Shutdown::Read, Shutdown::Both] {
        let connecting =
            thread::spawn(move || QosTcpStream::connect(to, &talkative(QosOptions::default())).unwrap());
        let (theirs, _) = listener.accept().unwrap();
        assert!(theirs.has_qos_peer().unwrap());
        let ours = connecting.join().unwrap();
        let (done, outcome) = channel();
        let mut reads = ours.clone();
        thread::spawn(move || done.send(reads.read(&mut [0; 100]).map_err(|error| error.to_string())));
        thread::sleep(time::Duration::from_millis(50));
        ours.shutdown(how).unwrap();
        assert_eq!(outcome.recv_timeout(PATIENCE), Ok(Ok(0)), "{how:?}");
        assert_eq!((&ours).read(&mut [0; 100]).unwrap(), 0);
        let expected = if how == Shutdown::Read { Ok(2) } else { Err(std::io::ErrorKind::BrokenPipe) };
        assert_eq!((&ours).write(b"on").map_err(|error| error.kind()), expected);
    }
}

#[test]
fn an_end_that_does_not_go_on_is_given_up_after_the_linger_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let linger = time::Duration::from_millis(100);
    let options = QosOptions::sending(file()).peer(Peer::Plain).linger(linger);
    let stream = QosTcpStream::connect(to, &options).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    let zeros = vec![0; 65_536];
    while (&stream).write(&zeros).is_ok() {}
    // Sockets connected to that port that a process has: others have no inode.
    let has_descriptor = || {
        let table = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        let port = format!(":{:04X}", to.port());
        let fields = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        fields.filter(|fields| fields[2].ends_with(&port) && fields[9] != "0").count()
    };
    assert_eq!(has_descriptor(), 1);
    drop(stream);
    let until = time::Instant::now() + PATIENCE;
    while has_descriptor() > 0 {
        assert!(time::Instant::now() < until, "the descriptor stays for ever");
        thread::sleep(time::Duration::from_millis(10));
    }
    drop(theirs);
}
