//! A process with a single free descriptor: an accepted connection needs two.

use cutline_tokio::{QosOptions, QosTcpListener, QosUdpListener};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env::{current_exe, var};
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::time::timeout;

/// Kind of connection that [`a_process_with_one_free_descriptor`] accepts.
const TASK: &str = "CUTLINE_TEST_DESCRIPTORS";
const EMFILE: i32 = 24;
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes all descriptors that the process may have but one.
fn fillers(socket: &impl AsFd) -> Vec<OwnedFd> {
    let limit = Rlimit { current: Some(256), maximum: getrlimit(Resource::Nofile).maximum };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut all: Vec<_> = std::iter::from_fn(|| socket.as_fd().try_clone_to_owned().ok()).collect();
    drop(all.pop());
    all
}

fn is_full<T>(outcome: io::Result<T>) -> bool {
    outcome.err().and_then(|error| error.raw_os_error()) == Some(EMFILE)
}

/// Not a test of its own: the process that [`a_connection_waits_for_two_free_descriptors`] starts.
#[tokio::test]
async fn a_process_with_one_free_descriptor() {
    let Ok(kind) = var(TASK) else { return };
    let options = QosOptions::default();
    if kind == "tcp" {
        let listener = QosTcpListener::bind("127.0.0.1:0", &options).await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let fillers = fillers(&listener);
        assert!(is_full(timeout(PATIENCE, listener.accept()).await.unwrap()));
        drop(fillers);
        let (_, from) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        assert_eq!(from, ours.local_addr().unwrap());
    } else {
        let listener = QosUdpListener::bind("127.0.0.1:0", &options).await.unwrap();
        let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
        ours.send_to(b"first", listener.local_addr().unwrap()).unwrap();
        let fillers = fillers(&listener);
        assert!(is_full(timeout(PATIENCE, listener.accept()).await.unwrap()));
        drop(fillers);
        let (_, from) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        assert_eq!(from, ours.local_addr().unwrap());
    }
}

#[test]
fn a_connection_waits_for_two_free_descriptors() {
    for kind in ["tcp", "udp"] {
        let mut command = Command::new(current_exe().unwrap());
        command.args(["--exact", "descriptors::a_process_with_one_free_descriptor"]).env(TASK, kind);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
