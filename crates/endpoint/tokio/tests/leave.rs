//! A process that ends delivers what its streams have accepted, to a slow reader that reports often.

use cutline_signal::monitor::MonitorParams;
use cutline_tokio::{QosOptions, QosTcpListener, QosTcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::sleep;

/// Environment variable of a process that sends and ends: address, way of ending.
const TASK: &str = "CUTLINE_TEST_OF_LEAVING";
/// More than the kernel queues at both ends.
const SIZE: usize = 8_000_000;

/// Options of an end that reports often. The peer has a minute to answer: a thread of a busy machine may have no turn for seconds.
fn talkative() -> QosOptions {
    let interval = cutline_units::Duration::from_millis(20);
    let options = QosOptions::default().detection(Duration::from_secs(60));
    options.monitor(MonitorParams { interval, ..MonitorParams::default() })
}

/// Not a test of its own: the work of the process that the next one starts.
#[test]
fn a_process_that_ends() {
    let Ok(task) = std::env::var(TASK) else { return };
    let (to, how) = task.split_once(' ').expect("an address and a way of ending");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let mut stream = QosTcpStream::connect(to, &talkative()).await.unwrap();
        stream.write_all(&vec![7; SIZE]).await.unwrap();
        if how == "shut-down" {
            stream.shutdown().await.unwrap();
        }
        stream
    });
    let _open = (how != "dropped").then_some(stream);
    std::process::exit(0);
}

#[tokio::test]
async fn a_process_that_ends_delivers_the_accepted_data_of_its_streams() {
    for how in ["open", "dropped", "shut-down"] {
        let listener = QosTcpListener::bind("127.0.0.1:0", &talkative()).await.unwrap();
        let to = listener.local_addr().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "leave::a_process_that_ends"]).env(TASK, format!("{to} {how}"));
        let process = std::thread::spawn(move || command.stdin(Stdio::null()).output().unwrap());
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut all, mut piece) = (0, vec![0; 1 << 16]);
        for reads in 0.. {
            if reads < 40 {
                sleep(Duration::from_millis(20)).await;
            }
            let read = stream.read(&mut piece).await;
            match read.unwrap_or_else(|error| panic!("{how}: {error} after {all} bytes")) {
                0 => break,
                read => all += read,
            }
        }
        assert_eq!(all, SIZE, "{how}");
        let output = process.join().unwrap();
        assert!(output.status.success(), "{how}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
