//! The examples, each with both of its ends.

use cutline_signal::monitor::MonitorParams;
use cutline_socket::{QosOptions, QosTcpStream};
use cutline_testbed::KilledChild;
use cutline_units::Duration;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program of an example, which Cargo builds with the tests.
fn program(name: &str) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../examples/sockets/rust/{name}.rs"));
    let lines = fs::read_to_string(&source).unwrap().lines().count();
    assert!(lines < 100, "{name}.rs has {lines} lines; an example has less than 100");
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().join(format!("../examples/socket-{name}"));
    assert!(program.exists(), "no {}: cargo build --examples -p cutline-socket", program.display());
    program
}

/// Starts an end that listens.
fn start(name: &str, words: &[&str]) -> KilledChild {
    let mut command = Command::new(program(name));
    KilledChild(command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Returns the address of an end from its first line, and the rest of its output.
fn address<R: Read>(said: Option<R>) -> (String, BufReader<R>) {
    let mut said = BufReader::new(said.unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    let port = first.trim().strip_prefix("port ").unwrap_or_else(|| panic!("no port: {first:?}"));
    (format!("127.0.0.1:{port}"), said)
}

/// Runs an end to its end: its output and its errors.
fn run(name: &str, words: &[&str]) -> (Vec<u8>, String) {
    let output = Command::new(program(name)).args(words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name} {words:?}: {errors}");
    (output.stdout, errors)
}

#[test]
fn video_is_sent_and_received() {
    let mut receiver = start("video", &["receive", "127.0.0.1:0"]);
    let (to, mut said) = address(receiver.0.stdout.take());
    let (sent, _) = run("video", &["send", &to, "1.5"]);
    assert!(String::from_utf8_lossy(&sent).contains("both ends agree"));
    let mut received = String::new();
    said.read_to_string(&mut received).unwrap();
    assert!(received.contains("received: ") && received.contains(" 0 lost"), "{received}");
}

#[test]
fn files_are_served_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let content = "a line of a file\n".repeat(50_000);
    fs::write(folder.path().join("lines.txt"), &content).unwrap();
    let mut server = start("files", &["serve", "127.0.0.1:0", folder.path().to_str().unwrap()]);
    let (to, _said) = address(server.0.stdout.take());
    let (got, errors) = run("files", &["get", &to, "lines.txt"]);
    assert!(got == content.as_bytes(), "{} bytes: {errors}", got.len());
    assert_eq!(run("files", &["get", &to, "../lines.txt"]).0, b"no such file\n");
}

#[test]
fn a_file_is_served_whole_to_a_slow_reader_that_reports() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("large"), vec![7; 3_000_000]).unwrap();
    let mut server = start("files", &["serve", "127.0.0.1:0", folder.path().to_str().unwrap()]);
    let (to, _said) = address(server.0.stdout.take());
    let monitor = MonitorParams { interval: Duration::from_millis(20), ..MonitorParams::default() };
    let mut stream = QosTcpStream::connect(to, &QosOptions::default().monitor(monitor)).unwrap();
    stream.write_all(b"large\n").unwrap();
    let (mut got, mut piece) = (0, vec![0; 1 << 16]);
    for reads in 0.. {
        if reads < 40 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        match stream.read(&mut piece).unwrap_or_else(|error| panic!("{error} after {got} bytes")) {
            0 => break,
            read => got += read,
        }
    }
    assert_eq!(got, 3_000_000);
}

#[test]
fn a_telephone_is_heard_at_both_ends() {
    let mut answers = start("phone", &["answer", "127.0.0.1:0", "1"]);
    let (to, _said) = address(answers.0.stderr.take());
    let (heard, errors) = run("phone", &["call", &to, "1"]);
    assert!(errors.contains("both ends agree") && errors.contains("heard 50 messages, 0 lost"), "{errors}");
    let mut there = Vec::new();
    answers.0.stdout.take().unwrap().read_to_end(&mut there).unwrap();
    assert_eq!((heard.len(), there.len()), (8000, 8000));
}
