//! Programs in C against the library.

use crate::c;

use cutline_testbed::{KilledChild, skip};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

fn echo(into: &Path) -> std::path::PathBuf {
    c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/echo.c"), into)
}

#[test]
fn a_program_in_c_has_streams_datagrams_events_a_mib_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(c::run(&echo(folder.path()), &[]), "all is well\n");
}

#[test]
fn signals_and_the_connect_timeout_end_calls_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    let program = c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wait.c"), folder.path());
    assert_eq!(c::run(&program, &[]), "all is well\n");
}

#[test]
fn valgrind_finds_no_fault() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip("there is no valgrind", "apt-get install valgrind");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = echo(folder.path());
    let arguments = [
        "--quiet",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
        "--error-exitcode=9",
    ];
    let output = c::command("valgrind").args(arguments).arg(&program).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}\n{errors}", output.status);
}

/// An example's program.
fn example(name: &str, into: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../examples/sockets/c/{name}.c"));
    let lines = fs::read_to_string(&source).unwrap().lines().count();
    assert!(lines < 100, "{name}.c has {lines} lines; an example has less than 100");
    c::build(&source, into)
}

/// A program that listens, and says first at which port. It ends with its test.
struct Server(KilledChild);

impl Server {
    fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut command = c::command(program);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(KilledChild(command.spawn().unwrap()))
    }

    /// Returns the port from the first line of the program's output, and the rest of the output.
    fn port_on_output(&mut self) -> (String, impl Read + use<>) {
        let mut output = BufReader::new(self.0.stdout.take().unwrap());
        (address(&mut output), output)
    }

    /// Returns the port from the first line of the program's errors. Further lines are read and forgotten.
    fn port_on_errors(&mut self) -> String {
        let mut errors = BufReader::new(self.0.stderr.take().unwrap());
        let address = address(&mut errors);
        thread::spawn(move || errors.read_to_end(&mut Vec::new()));
        address
    }
}

fn address(output: &mut impl BufRead) -> String {
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    let port = first.trim().strip_prefix("port ").unwrap_or_else(|| panic!("no port: {first:?}"));
    format!("127.0.0.1:{port}")
}

#[test]
fn the_video_example_sends_and_receives() {
    let folder = tempfile::tempdir().unwrap();
    let program = example("video", folder.path());
    let mut receiver = Server::start(&program, &["receive", "127.0.0.1:0"]);
    let (address, mut printed) = receiver.port_on_output();
    let sent = c::run(&program, &["send", &address, "1.5"]);
    assert!(sent.contains("both ends agree") && sent.contains("sent: "), "{sent}");
    let mut received = String::new();
    printed.read_to_string(&mut received).unwrap();
    assert!(received.contains("received: ") && received.contains(" 0 lost"), "{received}");
    assert!(receiver.0.wait().unwrap().success());
}

#[test]
fn the_file_example_serves_files_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let program = example("files", folder.path());
    let content: String = (0..50_000).map(|line| line.to_string() + "\n").collect();
    fs::write(folder.path().join("lines.txt"), &content).unwrap();
    let mut server = Server::start(&program, &["serve", "127.0.0.1:0", folder.path().to_str().unwrap()]);
    let (address, _printed) = server.port_on_output();
    assert!(c::run(&program, &["get", &address, "lines.txt"]) == content, "the file is not what came");
    assert_eq!(c::run(&program, &["get", &address, "../lines.txt"]), "no such file\n");
    // A plain client sees a plain server.
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.write_all(b"lines.txt\n").unwrap();
    let mut got = String::new();
    plain.read_to_string(&mut got).unwrap();
    assert!(got == content, "a plain client got {} bytes", got.len());
}

#[test]
fn the_telephone_example_is_heard_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let program = example("phone", folder.path());
    let mut answers = Server::start(&program, &["answer", "127.0.0.1:0", "1"]);
    let address = answers.port_on_errors();
    let output = c::command(&program).args(["call", &address, "1"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("both ends agree"), "{said}");
    let mut heard = Vec::new();
    answers.0.stdout.take().unwrap().read_to_end(&mut heard).unwrap();
    for heard in [heard, output.stdout] {
        assert_eq!(heard.len(), 8000, "a second of samples");
        assert!(heard.contains(&187) && heard.contains(&69), "it is the tone");
    }
    assert!(answers.0.wait().unwrap().success());
}
