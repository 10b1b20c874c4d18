//! `cutline gateway` from the command line, over the loopback.

use crate::common::schema;

use cutline_testbed::KilledChild;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{ChildStderr, Command, Output, Stdio};
use std::time::Duration;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
    command.arg("gateway").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running gateway, killed unless it has ended.
struct Running {
    process: KilledChild,
    errors: BufReader<ChildStderr>,
    /// Addresses at which it listens, in the order of the routes.
    addresses: Vec<SocketAddr>,
}

impl Running {
    fn start(arguments: &[&str], routes: usize) -> Self {
        let mut process = KilledChild(command(arguments).spawn().unwrap());
        let errors = BufReader::new(process.stderr.take().unwrap());
        let mut this = Self { process, errors, addresses: Vec::new() };
        for _ in 0..routes {
            // "tcp 127.0.0.1:6000 goes to host:80"
            let line = this.error_line();
            let address = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
            this.addresses.push(address.unwrap_or_else(|| panic!("{line}")));
        }
        this
    }

    fn error_line(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).unwrap();
        line
    }

    /// Reads its messages up to one with a text. It may write others before, such as about a slow machine.
    fn says(&mut self, text: &str) {
        let mut all = String::new();
        loop {
            let line = self.error_line();
            assert!(!line.is_empty(), "{text:?} is not in {all}");
            all += &line;
            if line.contains(text) {
                return;
            }
        }
    }

    /// Ends it as Ctrl-C does. Returns the exit code and the output.
    fn end(mut self) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.process), Signal::INT).unwrap();
        let mut text = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (self.process.wait().unwrap().code(), text)
    }
}

fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command(arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn streams_and_datagrams_cross_and_are_documented_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let screen = UdpSocket::bind("127.0.0.1:0").unwrap();
    screen.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let tcp = format!("0={}", server.local_addr().unwrap());
    let udp = format!("0={}", screen.local_addr().unwrap());
    let record = path("far.jsonl");
    let far = Running::start(&["far", "--tcp", &tcp, "--udp", &udp, "--json", "--record", &record], 2);
    let [tcp, udp] = [far.addresses[0], far.addresses[1]].map(|address| format!("0={address}"));
    let spec = path("spec.toml");
    std::fs::write(&spec, "[send]\nsize = '1280 B'\ncoerce = true\n").unwrap();
    let near_options = ["near", "--tcp", &tcp, "--udp", &udp, "--spec", &spec, "--hint", "6"];
    let near = Running::start(&near_options, 2);

    let answers = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut request = Vec::new();
        stream.read_to_end(&mut request).unwrap();
        stream.write_all(&request).unwrap();
    });
    let mut client = TcpStream::connect(near.addresses[0]).unwrap();
    let request: Vec<u8> = (0..300_000_u32).map(|at| ((at * 7) >> 3) as u8).collect();
    client.write_all(&request).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    answers.join().unwrap();
    assert!(answer == request, "{} bytes", answer.len());

    let program = UdpSocket::bind("127.0.0.1:0").unwrap();
    program.connect(near.addresses[1]).unwrap();
    let mut buffer = [0; 2000];
    for number in 0..40 {
        program.send(&[number; 1280]).unwrap();
        assert_eq!((screen.recv(&mut buffer).unwrap(), buffer[0]), (1280, number));
        std::thread::sleep(Duration::from_millis(40));
    }
    // A gateway that ends resets its connections, so the near one prints first.
    let (code, text) = near.end();
    assert_eq!(code, Some(0));
    assert!(
        text.contains("both directions have ended") && text.contains("the gateway was stopped"),
        "{text}"
    );
    let (code, text) = far.end();
    assert_eq!(code, Some(0));
    let document: Value = serde_json::from_str(&text).unwrap();
    schema::check("gateway", &document);
    let of_datagrams = |route: &Value| route["transport"] == "udp";
    let route = document["routes"].as_array().unwrap().iter().find(|route| of_datagrams(route)).unwrap();
    assert_eq!((&route["totals"]["received_messages"], &route["totals"]["lost"]), (&40.into(), &0.into()));
    let lines: Vec<Value> = std::fs::read_to_string(Path::new(&record))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut kinds = BTreeSet::new();
    for line in &lines {
        if kinds.insert(line["kind"].as_str().unwrap()) {
            schema::check("gateway-record", line);
        }
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["close", "message", "open", "received", "sent", "start"]
    );
}

#[test]
fn errors_name_the_allowed_values() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("spec.toml");
    std::fs::write(&spec, "[send]\nmax-delay = 3\n").unwrap();
    let spec = spec.to_str().unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().port();
    let in_use = format!("{taken}=host:80");
    for (arguments, code, expected) in [
        (&["near"][..], 2, "--tcp <LISTEN=HOST:PORT>"),
        (&["middle", "--tcp", "1=host:2"], 2, "near, far"),
        (&["near", "--tcp", "1"], 2, "expected LISTEN=HOST:PORT"),
        (&["near", "--udp", "1=host"], 2, "expected HOST:PORT"),
        (&["near", "--tcp", "0=host:80", "--set", "send.loss=200"], 2, "from 0 to 100"),
        (&["near", "--tcp", "0=host:80", "--set", "service=atm"], 2, "\"mark\", \"local\", \"rsvp\""),
        (
            &["near", "--tcp", "0=host:80", "--set", "ack-path=best-effort"],
            2,
            "key \"ack-path\": value best-effort is not allowed: expected it to be absent unless service is set",
        ),
        (&["near", "--tcp", "0=host:80", "--set", "peer=plain"], 2, "the peer of a gateway is a gateway"),
        (&["near", "--tcp", "0=host:80", "--spec", spec], 2, "expected a duration"),
        (&["near", "--tcp", "0=host:80", "--spec", "/nowhere"], 2, "--spec /nowhere: cannot be read"),
        (&["near", "--tcp", &in_use], 1, "Address already in use"),
        (&["near", "--tcp", "0=host:80", "--record", spec], 1, "--force replaces it"),
        (&["far", "--tcp", "0=host:80", "--key-file", "/nowhere"], 2, "key file /nowhere"),
    ] {
        let (found, text) = fails(arguments);
        assert!(found == Some(code) && text.contains(expected), "{arguments:?}: {found:?} {text}");
    }
    drop(held);
}

#[test]
fn both_gateways_report_a_refusing_server_and_the_far_one_warns_without_a_key() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut far = Running::start(&["far", "--tcp", &format!("0.0.0.0:0={nobody}")], 1);
    assert!(far.error_line().starts_with("warning: every host that can reach this gateway"));
    let to = format!("0=127.0.0.1:{}", far.addresses[0].port());
    let mut near = Running::start(&["near", "--tcp", &to], 1);
    let mut client = TcpStream::connect(near.addresses[0]).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let error = client.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    far.says(&format!("the server {nobody} cannot be reached"));
    near.says("the server refuses connections");
}
