//! A stream that is closed, or whose process ends, delivers accepted data to a slow reader that reports often.

use cutline_signal::monitor::MonitorParams;
use cutline_socket::Peer;
use cutline_testbed::slow_loopback;
use cutline_tokio::{QosOptions, QosTcpListener, QosTcpStream};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

/// Environment variable of a process that sends and ends: address, bytes, peer, way of ending.
const TASK: &str = "CUTLINE_TEST_OF_LEAVING";
/// More bytes than the kernel queues at both ends.
const LARGE: usize = 8_000_000;

/// Options of an end that reports often. The peer has a minute to answer: a thread of a busy machine may have no turn for seconds.
fn talkative() -> QosOptions {
    let interval = cutline_units::Duration::from_millis(20);
    let options = QosOptions::default().detection(Duration::from_secs(60));
    options.monitor(MonitorParams { interval, ..MonitorParams::default() })
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Not a test of its own: the work of the process that [`sending`] starts.
#[test]
fn a_process_that_ends() {
    let Ok(task) = std::env::var(TASK) else { return };
    let words: Vec<&str> = task.split(' ').collect();
    let [to, size, peer, how] = words[..] else { panic!("{TASK}={task}") };
    let options = if peer == "plain" { talkative().peer(Peer::Plain) } else { talkative() };
    let runtime = runtime();
    let stream = runtime.block_on(async {
        let mut stream = QosTcpStream::connect(to, &options).await.unwrap();
        stream.write_all(&vec![7; size.parse().unwrap()]).await.unwrap();
        match how {
            "shut-down" => stream.shutdown().await.unwrap(),
            // Reports of the peer arrive, and nothing reads them.
            "idle" => sleep(Duration::from_millis(300)).await,
            _ => {}
        }
        stream
    });
    let _open = ["open", "shut-down"].contains(&how).then_some(stream);
    if how == "runtime" {
        // The program returns from its main function.
        return;
    }
    std::process::exit(0);
}

/// Starts another process that sends and ends.
fn sending(to: SocketAddr, size: usize, peer: &str, how: &str) -> JoinHandle<()> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "leave::a_process_that_ends"]).env(TASK, format!("{to} {size} {peer} {how}"));
    let how = how.to_owned();
    std::thread::spawn(move || {
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{how}: {}", String::from_utf8_lossy(&output.stdout));
    })
}

/// Reads all, slowly at first. Returns the number of bytes.
async fn read_slowly(mut stream: impl AsyncRead + Unpin, how: &str) -> usize {
    let (mut all, mut piece) = (0, vec![0; 1 << 16]);
    for reads in 0.. {
        if reads < 40 {
            sleep(Duration::from_millis(20)).await;
        }
        match stream.read(&mut piece).await.unwrap_or_else(|error| panic!("{how}: {error} after {all} bytes"))
        {
            0 => break,
            read => all += read,
        }
    }
    all
}

/// Has other processes send so many bytes and end in each of these ways. All must arrive.
fn delivers(ways: &[&str], sizes: &[usize]) {
    runtime().block_on(async {
        let listener = QosTcpListener::bind("127.0.0.1:0", &talkative()).await.unwrap();
        let to = listener.local_addr().unwrap();
        for &how in ways {
            for &size in sizes {
                let process = sending(to, size, "detect", how);
                let (stream, _) = listener.accept().await.unwrap();
                assert_eq!(read_slowly(stream, how).await, size, "{how}");
                process.join().unwrap();
            }
        }
    });
}

#[test]
fn a_process_that_ends_delivers_the_accepted_data_of_its_streams() {
    delivers(&["open", "dropped", "idle", "runtime", "shut-down"], &[1, LARGE]);
    delivers(&["open", "dropped"], &[64_000_000]);
}

#[test]
fn over_a_slow_link_a_process_that_ends_delivers_accepted_data() {
    let Some(namespace) = slow_loopback("slowtokio", "sudo -E cargo test -p cutline-tokio leave::") else {
        return;
    };
    namespace.within(|| delivers(&["open", "dropped", "shut-down"], &[1, 3_000_000])).unwrap();
}

/// With a plain socket at the other end, too. Its data, which the process does not read, arrives before the process ends: it
/// can write [`LARGE`] bytes only once the peer reads.
#[test]
fn a_plain_peer_receives_the_accepted_data_of_a_process_that_ends() {
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        for how in ["open", "dropped", "shut-down"] {
            for (size, unread) in [(1, 0), (LARGE, 1000)] {
                let process = sending(to, size, "plain", how);
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(&vec![7; unread]).await.unwrap();
                assert_eq!(read_slowly(stream, how).await, size, "{how}");
                process.join().unwrap();
            }
        }
    });
}
