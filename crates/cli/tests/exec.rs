//! `cutline exec` over the loopback: a Python script, `http.server` and `curl`, which know nothing of it.
//!
//! The tests that capture packets need root, for a network namespace of their own. Without it they say so and pass:
//! `sudo -E cargo test -p cutline-cli --test exec`.

mod common;

use common::{may_make_namespaces, schema};
use cutline_sys::namespace::Namespace;
use cutline_sys::packet::{self, Ring};
use cutline_testbed::{in_time, skip, undisturbed};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The hint that most tests ask for, and its code point.
const HINT: &str = "6";
const DSCP: u8 = 23;

/// The library that Cargo has built for this test, beside it.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libcutline_preload.so")
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/sockets.py")
}

fn exec(options: &[&str], command: &[&str]) -> Command {
    let mut exec = Command::new(env!("CARGO_BIN_EXE_cutline"));
    exec.env("CUTLINE_EXEC_LIBRARY", library()).arg("exec").args(options).arg("--").args(command);
    exec.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    exec
}

/// Python and a script; `None`, which is said, where there is no Python or no `curl`.
fn python<'s>(script: &'s str, arguments: &[&'s str]) -> Option<Vec<&'s str>> {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success());
    if !has("python3") || !has("curl") {
        skip("python3 or curl is missing", "install both");
        return None;
    }
    Some([&["python3", script], arguments].concat())
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

// ---------------------------------------------------------------------------------------------------- on the wire

/// A packet of TCP or UDP that was captured.
#[derive(Clone, Copy, Debug)]
struct Captured {
    is_v6: bool,
    is_tcp: bool,
    dscp: u8,
    ports: [u16; 2],
    tcp_flags: u8,
    has_payload: bool,
}

const SYN: u8 = 2;
const FIN: u8 = 1;

impl Captured {
    /// Reads a frame of the loopback: an Ethernet header, IP without options, TCP or UDP.
    fn read(frame: &[u8]) -> Option<Self> {
        let (head, packet) = frame.split_at_checked(14)?;
        let half = |bytes: &[u8], at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let is_v6 = match half(head, 12)? {
            0x0800 => false,
            0x86dd => true,
            _ => return None,
        };
        let (traffic_class, protocol, segment) = if is_v6 {
            ((half(packet, 0)? >> 4) as u8, *packet.get(6)?, packet.get(40..)?)
        } else {
            (*packet.get(1)?, *packet.get(9)?, packet.get(usize::from(packet.first()? & 15) * 4..)?)
        };
        let is_tcp = match protocol {
            6 => true,
            17 => false,
            _ => return None,
        };
        let header = if is_tcp { usize::from(segment.get(12)? >> 4) * 4 } else { 8 };
        Some(Self {
            is_v6,
            is_tcp,
            dscp: traffic_class >> 2,
            ports: [half(segment, 0)?, half(segment, 2)?],
            tcp_flags: if is_tcp { *segment.get(13)? } else { 0 },
            has_payload: segment.len() > header,
        })
    }
}

/// Captures what a namespace's loopback carries.
struct Capture {
    socket: OwnedFd,
    ring: Ring,
}

impl Capture {
    fn start(namespace: &Namespace) -> Self {
        let begin = || {
            let socket = packet::open().unwrap();
            let ring = Ring::new(&socket, 300, 30_000).unwrap();
            packet::bind(&socket, 1).unwrap();
            Self { socket, ring }
        };
        namespace.within(begin).unwrap()
    }

    fn packets(mut self) -> Vec<Captured> {
        let mut packets = Vec::new();
        while self.ring.receive(|frame| packets.extend(Captured::read(frame.bytes))) {}
        assert_eq!(packet::take_drops(&self.socket).unwrap(), 0, "the ring has room for every packet");
        packets
    }
}

/// How many packets there are of each kind, each of which must be there, and the first that has another code point.
fn check_all(packets: &[Captured], dscp: u8) {
    let other: Vec<_> = packets.iter().filter(|packet| packet.dscp != dscp).collect();
    assert!(other.is_empty(), "{} of {} packets have another mark, first {:?}", other.len(), packets.len(), other[0]);
}

fn kinds(packets: &[Captured]) -> BTreeMap<(&'static str, bool), usize> {
    let mut kinds = BTreeMap::new();
    for packet in packets {
        let names = if packet.is_tcp {
            let flag = |flag, name| (packet.tcp_flags & flag != 0).then_some(name);
            vec![flag(SYN, "SYN"), flag(FIN, "FIN"), packet.has_payload.then_some("data")]
        } else {
            vec![Some("datagram")]
        };
        for name in names.into_iter().flatten() {
            *kinds.entry((name, packet.is_v6)).or_default() += 1;
        }
    }
    kinds
}

/// Runs exchanges in a namespace of their own. The packets on its loopback, and the document.
fn on_the_wire(label: &str, options: &[&str], exchanges: &[&str]) -> Option<(Vec<Captured>, Value)> {
    let script = script();
    let command = python(script.to_str().unwrap(), exchanges)?;
    if !may_make_namespaces() {
        return None;
    }
    let namespace = Namespace::create(label).unwrap();
    let capture = Capture::start(&namespace);
    let mut exec = exec(&[options, &["--quiet", "--json", "-"]].concat(), &command);
    let output = namespace.within(|| exec.output()).unwrap().unwrap();
    succeeded(&output);
    Some((capture.packets(), document(&output)))
}

#[test]
fn every_packet_of_both_ends_is_marked() {
    let exchanges = ["tcp", "udp", "web", "async", "children"];
    let Some((packets, document)) = on_the_wire("wire", &["--hint", HINT], &exchanges) else { return };
    check_all(&packets, DSCP);
    let kinds = kinds(&packets);
    for is_v6 in [false, true] {
        // Two connections, in the program and in a child, and two of the web; each has a SYN and a FIN of both ends. The
        // loopback shows each packet as it is sent and as it arrives.
        for (kind, least) in [("SYN", 24), ("FIN", 24), ("data", 24), ("datagram", 90)] {
            let count = kinds.get(&(kind, is_v6)).copied().unwrap_or(0);
            assert!(count >= least, "{count} packets of kind {kind}, IPv6 {is_v6}: {kinds:?}");
        }
    }
    let counted = &document["counted"];
    let sockets: u64 = ["tcp_sockets", "udp_sockets"].iter().map(|key| counted[key].as_u64().unwrap()).sum();
    assert_eq!((counted["marked"].as_u64(), &counted["refused"]), (Some(sockets), &0.into()), "{counted:#}");
}

#[test]
fn without_a_mark_packets_keep_those_of_the_program() {
    let Some((packets, _)) = on_the_wire("own", &["--rate", "1Gbit"], &["udp"]) else { return };
    let marked = packets.iter().filter(|packet| packet.dscp == 0xb9 >> 2).count();
    let plain = packets.iter().filter(|packet| packet.dscp == 0).count();
    // The mark of the socket holds for what has no control message.
    assert_eq!((packets.len(), marked > 0, plain > 0), (marked + plain, true, true));
}

/// A server that is marked answers a client that is not, and the other way round.
#[test]
fn one_marked_end_marks_its_own_packets() {
    const SERVER: &str = "
import socket, sys
server = socket.create_server(('::', 0), family=socket.AF_INET6, dualstack_ipv6=True)
print(server.getsockname()[1], flush=True)
for _ in range(4):
    accepted, _ = server.accept()
    while accepted.recv(65536): pass
    accepted.sendall(b'y' * 30000)
    accepted.close()
";
    const CLIENT: &str = "
import socket, sys
for host in ('127.0.0.1', '::1') * 2:
    client = socket.create_connection((host, int(sys.argv[1])))
    client.sendall(b'x' * 30000)
    client.shutdown(socket.SHUT_WR)
    while client.recv(65536): pass
    client.close()
";
    if python("", &[]).is_none() || !may_make_namespaces() {
        return;
    }
    for is_server_marked in [true, false] {
        let namespace = Namespace::create("one").unwrap();
        let capture = Capture::start(&namespace);
        let command = |is_marked: bool, arguments: &[&str]| {
            let mut command = if is_marked {
                exec(&["--hint", HINT, "--quiet"], arguments)
            } else {
                let mut plain = Command::new(arguments[0]);
                plain.args(&arguments[1..]).stdout(Stdio::piped());
                plain
            };
            namespace.within(|| command.spawn()).unwrap().unwrap()
        };
        let mut server = command(is_server_marked, &["python3", "-c", SERVER]);
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let mut client = command(!is_server_marked, &["python3", "-c", CLIENT, line.trim()]);
        assert!(client.wait().unwrap().success() && server.wait().unwrap().success());
        let port: u16 = line.trim().parse().unwrap();
        let packets = capture.packets();
        let (of_server, of_client): (Vec<Captured>, Vec<Captured>) =
            packets.iter().partition(|packet| packet.ports[0] == port);
        let marks = if is_server_marked { [DSCP, 0] } else { [0, DSCP] };
        for (packets, dscp) in [(of_server, marks[0]), (of_client, marks[1])] {
            check_all(&packets, dscp);
            for is_v6 in [false, true] {
                let syns = kinds(&packets).get(&("SYN", is_v6)).copied();
                assert_eq!(syns, Some(4), "each of two connections has a SYN, seen as it is sent and as it arrives");
            }
        }
    }
}

// -------------------------------------------------------------------------------------------------------- pacing

/// How long a script says that it has sent, seconds.
fn time_of(rate: &str, script: &str) -> Option<f64> {
    let command = python("-c", &[script])?;
    let output = exec(&["--rate", rate, "--quiet"], &command).output().unwrap();
    succeeded(&output);
    Some(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap())
}

/// The time at a quarter of the rate is four times as long.
fn is_paced(script: &str, [slow, fast]: [&str; 2]) {
    if time_of(fast, "print(0)").is_none() {
        return;
    }
    undisturbed(|| {
        let [slow, fast] = [slow, fast].map(|rate| time_of(rate, script).unwrap());
        in_time!((3.2..4.8).contains(&(slow / fast)), "{slow} s and {fast} s");
    });
}

#[test]
fn datagrams_keep_to_the_rate() {
    const SCRIPT: &str = "
import socket, time
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(('127.0.0.1', 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(receiver.getsockname())
start = time.monotonic()
for _ in range(60): sender.send(bytes(1000))
print(time.monotonic() - start)
";
    is_paced(SCRIPT, ["500kbit", "2Mbit"]);
}

#[test]
fn tcp_keeps_to_the_rate() {
    const SCRIPT: &str = "
import socket, threading, time
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
threading.Thread(target=lambda: client.sendall(bytes(1500000))).start()
received = 0
# The first window leaves at once.
while received < 500000: received += len(accepted.recv(65536))
start = time.monotonic()
while received < 1500000: received += len(accepted.recv(65536))
print(time.monotonic() - start)
";
    is_paced(SCRIPT, ["8Mbit", "32Mbit"]);
}

#[test]
fn datagrams_of_a_non_blocking_socket_are_counted_and_not_held_up() {
    const SCRIPT: &str = "
import socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(('127.0.0.1', 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setblocking(False)
for _ in range(10): sender.sendto(bytes(1000), receiver.getsockname())
";
    let Some(command) = python("-c", &[SCRIPT]) else { return };
    // At 8 bit/s a datagram takes a thousand seconds.
    let output = exec(&["--rate", "8bit", "--quiet", "--json", "-"], &command).output().unwrap();
    succeeded(&output);
    let counted = &document(&output)["counted"];
    assert_eq!([&counted["udp_messages"], &counted["udp_waits"]], [10, 0], "{counted:#}");
    assert_eq!(counted["udp_early"], 9, "the first one is in time: {counted:#}");
}

// ------------------------------------------------------------------------------------------------- as a command

#[test]
fn the_document_and_the_text_say_what_was_delivered() {
    let script = script();
    let Some(command) = python(script.to_str().unwrap(), &["tcp", "udp"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let options = ["--class", "video", "--rate", "100Mbit", "--json", file.to_str().unwrap()];
    let output = exec(&options, &command).output().unwrap();
    succeeded(&output);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("hint 6 (DSCP 23), at most 100000 kbit/s a socket by preload"), "{text}");
    assert!(text.contains("exit code 0") && text.contains("TCP    15 sockets"), "{text}");
    let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    schema::check("exec", &document);
    let counted = &document["counted"];
    // Three times two connections of 100 KB and 50 KB.
    assert_eq!(counted["tcp_sent_bytes"], 900_000);
    assert!((900_000..=900_012).contains(&counted["tcp_received_bytes"].as_u64().unwrap()), "{counted:#}");
    let datagrams = 3 * 22;
    assert_eq!(counted["udp_messages"], datagrams);
    let connections: Vec<&Value> = document["sockets"].as_array().unwrap().iter().collect();
    let clients = connections.iter().filter(|socket| socket["sent_bytes"] == 100_000);
    assert_eq!(clients.clone().count(), 6);
    assert!(clients.clone().all(|socket| socket["rtt_ms"].is_number() && socket["peer"].is_string()));
    // Two options a TCP client and a UDP sender set, three control messages and a batch of twelve.
    assert_eq!(counted["replaced"], 6 + 3 * (1 + 3 + 12));
}

#[test]
fn a_program_s_own_rate_and_mark_are_replaced_by_ours() {
    const SCRIPT: &str = "
import socket
sock = socket.socket()
def get(level, name): return sock.getsockopt(level, name)
sock.setsockopt(socket.SOL_SOCKET, 47, 5000)
assert get(socket.SOL_SOCKET, 47) == 5000, 'the lower rate holds'
sock.setsockopt(socket.SOL_SOCKET, 47, 10**9)
assert get(socket.SOL_SOCKET, 47) == 125000
sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0)
assert get(socket.IPPROTO_IP, socket.IP_TOS) == 23 << 2
assert get(socket.SOL_SOCKET, socket.SO_PRIORITY) == 6
udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 1)
assert udp.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 23 << 2 | 1
assert udp.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 23 << 2
unix = socket.socket(socket.AF_UNIX)
try: udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 256)
except OSError as error: assert error.errno == 22
else: assert False
";
    let Some(command) = python("-c", &[SCRIPT]) else { return };
    succeeded(&exec(&["--hint", HINT, "--rate", "1Mbit"], &command).output().unwrap());
}

#[test]
fn without_the_command_the_library_does_nothing() {
    let script = script();
    let Some(command) = python(script.to_str().unwrap(), &["tcp", "udp"]) else { return };
    for (settings, table) in [(None, None), (Some("nonsense"), None), (Some("v=1,dscp=23"), Some("/nonexistent"))] {
        let mut plain = Command::new(command[0]);
        plain.args(&command[1..]).env("LD_PRELOAD", library());
        plain.envs(settings.map(|value| ("CUTLINE_EXEC", value)));
        plain.envs(table.map(|value| ("CUTLINE_EXEC_TABLE", value)));
        succeeded(&plain.output().unwrap());
    }
}

#[test]
fn exit_codes_are_those_of_the_program_or_of_env() {
    let code = |options: &[&str], command: &[&str]| {
        let output = exec(options, command).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let quiet = ["--hint", HINT, "--quiet"];
    assert_eq!(code(&quiet, &["sh", "-c", "exit 7"]), (7, String::new()));
    assert_eq!(code(&quiet, &["true"]), (0, String::new()));
    assert_eq!(code(&quiet, &["sh", "-c", "kill -9 $$"]), (137, String::new()));
    assert_eq!(code(&quiet, &["/nonexistent/program"]).0, 127);
    assert_eq!(code(&quiet, &["/etc/passwd"]).0, 126);
    let (nothing, message) = code(&[], &["true"]);
    assert_eq!(nothing, 125);
    assert!(message.contains("--class, --hint, --dscp or --rate"), "{message}");
    for wrong in [["--hint", "17"], ["--class", "vidoe"], ["--dscp", "64"], ["--rate", "0kbit"]] {
        assert_eq!(code(&wrong, &["true"]).0, 2, "{wrong:?}");
    }
    let missing = exec(&quiet, &["true"]).env("CUTLINE_EXEC_LIBRARY", "/nonexistent.so").output().unwrap();
    assert_eq!(missing.status.code(), Some(125));
}

#[test]
fn arguments_input_and_output_are_the_program_s() {
    let mut command = exec(&["--hint", HINT, "--quiet"], &["sh", "-c", "cat; printf '%s' \"$0 $1\" >&2", "-x", "--y"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout, output.stderr), (b"hello".to_vec(), b"-x --y".to_vec()));
}

#[test]
fn signals_reach_the_program() {
    let wait = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = exec(&["--hint", HINT, "--quiet"], &["sh", "-c", wait]).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("caught\n", Some(3)));
}

/// `http.server` as it is, and `curl` as it is.
#[test]
fn a_web_server_and_curl_run_unchanged() {
    let script = "import http.server, os; os.chdir('/'); \
                  s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler); \
                  print(s.server_port, flush=True); s.handle_request()";
    let Some(command) = python("-c", &[script]) else { return };
    let mut server = exec(&["--class", "web", "--quiet"], &command).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
    let url = format!("http://127.0.0.1:{}/etc/passwd", port.trim());
    let client = exec(&["--class", "web", "--quiet"], &["curl", "-sSf", &url]).output().unwrap();
    succeeded(&client);
    assert_eq!(client.stdout, std::fs::read("/etc/passwd").unwrap());
    assert!(server.wait().unwrap().success());
}

/// A socket that a program was started with, as inetd does, is marked when it first sends.
#[test]
fn an_inherited_socket_is_marked() {
    let script = "import socket, os; s = socket.socket(fileno=0); s.sendall(b'x'); \
                  assert s.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 23 << 2";
    let Some(command) = python("-c", &[script]) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let mut exec = exec(&["--hint", HINT, "--quiet"], &command);
    let output = exec.stdin(std::os::fd::OwnedFd::from(accepted)).output().unwrap();
    drop(exec);
    succeeded(&output);
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"x");
}
