//! Services whose output is not read: they serve, and SIGTERM ends them.

use cutline_testbed::outputs::{full_pipe, terminated};
use cutline_testbed::{KilledChild, free_address};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A process that is killed unless it has ended.
struct Running(KilledChild);

impl Running {
    fn start(arguments: &[&str], stdout: Stdio, stderr: Stdio) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        Self(KilledChild(command.spawn().unwrap()))
    }

    fn ends(&mut self) -> Option<i32> {
        terminated(&mut self.0).expect("SIGTERM ends it").code()
    }
}

fn free_port() -> u16 {
    free_address().port()
}

/// Connects as soon as there is a listener.
fn connected(port: u16) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Senders one after the other are served by a receiver whose stdout, and whose stderr, is full.
#[test]
fn a_receiver_serves_while_its_output_is_unread() {
    for json in [&[][..], &["--json"]] {
        let port = free_port().to_string();
        let ((_out, stdout), (_err, stderr)) = (full_pipe(), full_pipe());
        let arguments = [&["tg", "receive", "--listen", &port][..], json].concat();
        let mut receiver = Running::start(&arguments, stdout.into(), stderr.into());
        drop(connected(port.parse().unwrap()));
        for _ in 0..3 {
            let sender = ["tg", "send", &format!("127.0.0.1:{port}"), "--duration", "200ms"];
            let mut sender = Running::start(&sender, Stdio::null(), Stdio::inherit());
            assert!(sender.0.wait().unwrap().success());
        }
        assert_eq!(receiver.ends(), Some(0));
    }
}

/// A receiver's whole output is there for a reader that comes late, however long that takes.
#[test]
fn a_late_reader_gets_everything() {
    let port = free_port().to_string();
    let (mut reader, stdout) = full_pipe();
    let arguments = ["tg", "receive", "--once", "--json", "--listen", &port];
    let mut receiver = Running::start(&arguments, stdout.into(), Stdio::null());
    drop(connected(port.parse().unwrap()));
    let sender = ["tg", "send", &format!("127.0.0.1:{port}"), "--duration", "200ms"];
    assert!(Running::start(&sender, Stdio::null(), Stdio::inherit()).0.wait().unwrap().success());
    // Nothing may happen in this time, in which its output is not read.
    std::thread::sleep(Duration::from_secs(4));
    assert!(receiver.0.try_wait().unwrap().is_none(), "it waits for its reader");
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let line = text.trim_start_matches('x');
    let document: serde_json::Value = serde_json::from_str(line).unwrap();
    assert!(document["flows"].as_array().is_some_and(|flows| !flows.is_empty()), "{line}");
    assert!(receiver.0.wait().unwrap().success());
}

/// Strangers at a gateway, each of whom is reported, keep no honest connection away.
#[test]
fn a_gateway_relays_while_its_output_is_unread() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (far_port, near_port) = (free_port(), free_port());
    let far = format!("{far_port}={}", server.local_addr().unwrap());
    let near = format!("{near_port}=127.0.0.1:{far_port}");
    let ((_out, stdout), (_err, stderr)) = (full_pipe(), full_pipe());
    let far = ["gateway", "far", "--tcp", &far];
    let mut far = Running::start(&far, stdout.into(), stderr.into());
    let ((_out, stdout), (_err, stderr)) = (full_pipe(), full_pipe());
    let near = ["gateway", "near", "--tcp", &near];
    let mut near = Running::start(&near, stdout.into(), stderr.into());
    for _ in 0..150 {
        let _refused = connected(far_port).write_all(b"GET / HTTP/1.0\r\n\r\n");
    }
    let mut client = connected(near_port);
    client.write_all(b"x").unwrap();
    let (mut accepted, _) = server.accept().unwrap();
    let mut byte = [0];
    accepted.read_exact(&mut byte).unwrap();
    assert_eq!(byte, *b"x");
    assert_eq!((near.ends(), far.ends()), (Some(0), Some(0)));
}

/// A recording without a reader ends, and the gateway reports it; its traffic continues.
#[test]
fn a_gateway_relays_while_its_recording_is_unread() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("record");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // It is open at both ends, and full.
    let mut both = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    both.write_all(&vec![b'x'; 65_536]).unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free_port();
    let route = format!("{port}={}", server.local_addr().unwrap());
    let record = pipe.to_str().unwrap();
    let arguments = ["gateway", "near", "--tcp", &route, "--record", record, "--force"];
    let mut gateway = Running::start(&arguments, Stdio::null(), Stdio::piped());
    drop(connected(port));
    // Nothing may happen in this time, in which its record is not read.
    std::thread::sleep(Duration::from_secs(1));
    let mut errors = gateway.0.stderr.take().unwrap();
    assert_eq!(gateway.ends(), Some(1));
    let mut said = String::new();
    errors.read_to_string(&mut said).unwrap();
    assert!(said.contains("record was not written whole"), "{said}");
}

/// A monitor answers although its messages are not read.
#[test]
fn a_monitor_serves_while_its_output_is_unread() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (port, publish, query) = (free_port(), path("publish.sock"), path("monitor.sock"));
    let listen = format!("127.0.0.1:{port}");
    let ((_out, stdout), (_err, stderr)) = (full_pipe(), full_pipe());
    let arguments = ["monitor", "--listen", &listen, "--publish-socket", &publish, "--socket", &query];
    let mut monitor = Running::start(&arguments, stdout.into(), stderr.into());
    let mut page = connected(port);
    write!(page, "GET /metrics HTTP/1.1\r\nHost: {listen}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(monitor.ends(), Some(0));
}
