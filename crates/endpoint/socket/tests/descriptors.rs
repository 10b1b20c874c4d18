//! A process that has no free descriptor.

use cutline_socket::{QosDirectListener, QosDirectSocket, QosOptions, QosTcpListener, QosUdpListener};
use cutline_sys::packet::open_without_headers;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env::{current_exe, var};
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Kind of connection that [`a_process_whose_descriptors_run_out`] accepts.
const TASK: &str = "CUTLINE_TEST_DESCRIPTORS";
const EMFILE: i32 = 24;

/// Takes all descriptors that the process may have.
fn fillers(socket: &impl AsFd) -> Vec<OwnedFd> {
    let limit = Rlimit { current: Some(256), maximum: getrlimit(Resource::Nofile).maximum };
    setrlimit(Resource::Nofile, limit).unwrap();
    std::iter::from_fn(|| socket.as_fd().try_clone_to_owned().ok()).collect()
}

/// Accepts a connection that comes, without a free descriptor at first.
fn accept_late<T>(socket: &impl AsFd, mut accept: impl FnMut() -> io::Result<T>) -> T {
    let fillers = fillers(socket);
    let begin = Instant::now();
    let mut next = || loop {
        match accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no connection comes");
        thread::sleep(Duration::from_millis(1));
    };
    for _ in 0..2 {
        assert_eq!(next().err().and_then(|error| error.raw_os_error()), Some(EMFILE));
    }
    drop(fillers);
    next().unwrap()
}

/// Not a test of its own: the process that [`a_connection_waits_for_a_free_descriptor`] starts.
#[test]
fn a_process_whose_descriptors_run_out() {
    let Ok(kind) = var(TASK) else { return };
    let options = QosOptions::default();
    match &kind[..] {
        "tcp" => {
            let listener = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
            listener.set_nonblocking(true).unwrap();
            let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_, from) = accept_late(&listener, || listener.accept());
            assert_eq!(from, ours.local_addr().unwrap());
        }
        "udp" => {
            let listener = QosUdpListener::bind("127.0.0.1:0", &options).unwrap();
            listener.set_nonblocking(true).unwrap();
            let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
            ours.send_to(b"first", listener.local_addr().unwrap()).unwrap();
            let (theirs, from) = accept_late(&listener, || listener.accept());
            assert_eq!(from, ours.local_addr().unwrap());
            theirs.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            assert_eq!(theirs.recv(&mut [0; 10]).unwrap(), 5);
        }
        "direct" => {
            let listener = QosDirectListener::bind("lo", 0, &options).unwrap();
            listener.set_nonblocking(true).unwrap();
            let mut connecting =
                QosDirectSocket::connecting(listener.local_addr().unwrap(), &options).unwrap();
            let mut ours = None;
            let (theirs, _) = accept_late(&listener, || {
                ours = ours.take().or_else(|| connecting.advance());
                listener.accept()
            });
            let ours = ours.unwrap_or_else(|| connecting.finish()).unwrap();
            assert!(ours.has_qos_peer() && theirs.has_qos_peer());
        }
        kind => panic!("{TASK}={kind}"),
    }
}

#[test]
fn a_connection_waits_for_a_free_descriptor() {
    let may_have_frames = open_without_headers()
        .map_err(|error| cutline_testbed::skip(error, "run the tests of cutline-socket as root"))
        .is_ok();
    for kind in ["tcp", "udp", "direct"] {
        if kind == "direct" && !may_have_frames {
            continue;
        }
        let mut command = Command::new(current_exe().unwrap());
        command.args(["--exact", "descriptors::a_process_whose_descriptors_run_out"]).env(TASK, kind);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
