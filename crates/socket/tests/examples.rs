//! The examples do what they say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An example, which cargo has built beside this test.
fn example(name: &str) -> Command {
    let tests = std::env::current_exe().expect("a test has a file");
    let built: PathBuf = tests.ancestors().nth(2).expect("it is in deps").join("examples").join(name);
    assert!(built.exists(), "{}: build it with `cargo build -p cutline-socket --examples`", built.display());
    Command::new(built)
}

/// A server that says where it is, and is ended with the test.
struct Server(Child, String);

impl Server {
    fn start(command: &mut Command, says: fn(&mut Child) -> Box<dyn Read + Send>) -> Self {
        let mut child = command.spawn().expect("the example runs");
        let (mut said, mut line) = (BufReader::new(says(&mut child)), String::new());
        said.read_line(&mut line).expect("it says where it is");
        // What else it says must have somewhere to go.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let (_, address) = line.trim().rsplit_once(' ').expect("an address");
        Self(child, address.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn files_are_fetched_as_they_are_by_qos_clients_and_plain_ones() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..300_000_u32).map(|i| ((i * 7) >> 3) as u8).collect();
    std::fs::write(folder.path().join("file"), &content).unwrap();
    let mut command = example("files");
    command.arg("serve").arg("127.0.0.1:0").arg(folder.path()).stderr(Stdio::piped());
    let server = Server::start(&mut command, |child| Box::new(child.stderr.take().unwrap()));

    let fetched = example("files").args(["fetch", &server.1, "file"]).output().unwrap();
    assert!(fetched.status.success(), "{fetched:?}");
    assert!(fetched.stdout == content);
    let said = String::from_utf8(fetched.stderr).unwrap();
    assert!(said.starts_with("300000 B") && said.trim().ends_with("peer is a QoS socket: true"), "{said}");
    for name in ["nosuch", "../file", "", "."] {
        let refused = example("files").args(["fetch", &server.1, name]).output().unwrap();
        assert!(!refused.status.success() && refused.stdout.is_empty(), "{name:?}");
    }

    let mut plain = TcpStream::connect(&server.1).unwrap();
    plain.write_all(b"file\n").unwrap();
    plain.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).unwrap();
    assert!(answer[..8] == 300_000_u64.to_be_bytes() && answer[8..] == content);
}

#[test]
fn a_call_is_heard_and_a_picture_seen() {
    for (name, [there, here], line) in [
        ("phone", ["answer", "call"], "packets in 0.5 s"),
        ("video", ["watch", "send"], "reported to have arrived"),
    ] {
        let mut command = example(name);
        command.args([there, "127.0.0.1:0"]).stdout(Stdio::piped());
        let server = Server::start(&mut command, |child| Box::new(child.stdout.take().unwrap()));
        let ran = example(name).args([here, &server.1, "2"]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let said = String::from_utf8(ran.stdout).unwrap();
        assert!(said.contains(line), "{name}: {said}");
    }
}
