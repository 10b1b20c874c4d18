//! `cutline exec` over the loopback: a Python script, `http.server` and `curl`, which know nothing of it.
//!
//! The tests that capture packets need root, for a network namespace of their own. Without it they say so and pass:
//! `sudo -E cargo test -p cutline-cli exec::`.

use crate::common::exec::{compiled, document, exec, library, succeeded};
use crate::common::{may_make_namespaces, schema};
use cutline_sys::namespace::Namespace;
use cutline_testbed::capture::{Capture, Captured, check_all, has_all_kinds, kinds};
use cutline_testbed::{in_time, skip, undisturbed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The hint that most tests ask for, and its code point.
const HINT: &str = "6";
const DSCP: u8 = 23;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/sockets.py")
}

/// Python and a script; `None`, which is said, where there is no Python or no `curl`.
fn python<'s>(script: &'s str, arguments: &[&'s str]) -> Option<Vec<&'s str>> {
    let has =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success());
    if !has("python3") || !has("curl") {
        skip("python3 or curl is missing", "install both");
        return None;
    }
    Some([&["python3", script], arguments].concat())
}

// ---------------------------------------------------------------------------------------------------- on the wire

/// Runs exchanges of the script in a namespace of their own. The packets on its loopback, and the document.
fn on_the_wire(label: &str, options: &[&str], exchanges: &[&str]) -> Option<(Vec<Captured>, Value)> {
    let script = script();
    let command = python(script.to_str().unwrap(), exchanges)?;
    may_make_namespaces().then(|| captured(label, options, &command))
}

/// Runs a program in a namespace of its own. The packets on its loopback, and the document.
fn captured(label: &str, options: &[&str], command: &[&str]) -> (Vec<Captured>, Value) {
    let namespace = Namespace::create(label).unwrap();
    let capture = Capture::start(&namespace);
    let mut exec = exec(&[options, &["--quiet", "--json", "-"]].concat(), command);
    let output = namespace.within(|| exec.output()).unwrap().unwrap();
    succeeded(&output);
    (capture.packets(), document(&output))
}

/// Every exchange of the script.
const EXCHANGES: [&str; 5] = ["tcp", "udp", "web", "async", "children"];
/// Least number of packets of each kind in those exchanges, of either protocol: two connections, in the
/// program and in a child, and two of the web. Each has a SYN and a FIN of both ends. The loopback shows each
/// packet as it is sent and as it arrives.
const LEAST: [(&str, usize); 4] = [("SYN", 24), ("FIN", 24), ("data", 24), ("datagram", 90)];

#[test]
fn every_packet_of_both_ends_is_marked() {
    let Some((packets, document)) = on_the_wire("wire", &["--hint", HINT], &EXCHANGES) else { return };
    check_all(&packets, DSCP);
    has_all_kinds(&packets, LEAST);
    let counted = &document["counted"];
    let sockets: u64 = ["tcp_sockets", "udp_sockets"].iter().map(|key| counted[key].as_u64().unwrap()).sum();
    assert_eq!((counted["marked"].as_u64(), &counted["refused"]), (Some(sockets), &0.into()), "{counted:#}");
}

#[test]
fn a_control_group_marks_every_packet_of_both_ends() {
    let options = ["--hint", HINT, "--by", "cgroup"];
    let Some((packets, document)) = on_the_wire("group", &options, &EXCHANGES) else { return };
    check_all(&packets, DSCP);
    has_all_kinds(&packets, LEAST);
    assert_eq!((&document["by"], &document["counted"]), (&"cgroup".into(), &Value::Null));
    schema::check("exec", &document);
}

/// TCP over IPv4 and IPv6, and a datagram, without a dynamic linker.
const STATIC: &str = r"
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static int exchange(struct sockaddr *a, socklen_t length) {
    char buffer[4096] = {0};
    int server = socket(a->sa_family, SOCK_STREAM, 0), client = socket(a->sa_family, SOCK_STREAM, 0);
    if (bind(server, a, length) || listen(server, 1) || getsockname(server, a, &length)) return 1;
    if (connect(client, a, length)) return 2;
    int accepted = accept(server, 0, 0);
    if (write(client, buffer, 4096) != 4096 || write(accepted, buffer, 100) != 100) return 3;
    int got = 0;
    while (got < 4096) got += read(accepted, buffer, 4096);
    close(accepted);
    while (read(client, buffer, 4096) > 0) {}
    close(client);
    int to = socket(a->sa_family, SOCK_DGRAM, 0), from = socket(a->sa_family, SOCK_DGRAM, 0);
    if (bind(to, a, length) || getsockname(to, a, &length)) return 4;
    return sendto(from, buffer, 10, 0, a, length) == 10 && read(to, buffer, 10) == 10 ? 0 : 5;
}
int main(void) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int code = exchange((struct sockaddr *)&v4, sizeof v4);
    return code ? code : exchange((struct sockaddr *)&v6, sizeof v6);
}
";

/// Marks of the packets of each program of [`STATIC`] and [`GO`].
fn marks_without_libc(label: &str, program: &Path) {
    if !may_make_namespaces() {
        return;
    }
    let (packets, document) = captured(label, &["--hint", HINT], &[program.to_str().unwrap()]);
    check_all(&packets, DSCP);
    has_all_kinds(&packets, [("SYN", 4), ("FIN", 4), ("data", 4), ("datagram", 2)]);
    assert_eq!(document["by"], "cgroup", "{}", document["because"]);
}

#[test]
fn a_static_program_is_marked_by_a_control_group() {
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["static.c", "static"].map(|name| folder.path().join(name));
    std::fs::write(&source, STATIC).unwrap();
    if compiled(Command::new("cc").args(["-static", "-o"]).args([&program, &source]), "a C compiler") {
        marks_without_libc("static", &program);
    }
}

/// The same in Go, whose servers listen on one socket for IPv4 and IPv6.
const GO: &str = r#"
package main

import (
	"io"
	"net"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	server, err := net.Listen("tcp", ":0")
	check(err)
	_, port, _ := net.SplitHostPort(server.Addr().String())
	to, err := net.ListenPacket("udp", ":0")
	check(err)
	_, datagrams, _ := net.SplitHostPort(to.LocalAddr().String())
	for _, host := range []string{"127.0.0.1", "::1"} {
		client, err := net.Dial("tcp", net.JoinHostPort(host, port))
		check(err)
		accepted, err := server.Accept()
		check(err)
		_, err = client.Write(make([]byte, 4096))
		check(err)
		_, err = io.ReadFull(accepted, make([]byte, 4096))
		check(err)
		_, err = accepted.Write(make([]byte, 100))
		check(err)
		accepted.Close()
		io.ReadAll(client)
		client.Close()
		from, err := net.Dial("udp", net.JoinHostPort(host, datagrams))
		check(err)
		_, err = from.Write(make([]byte, 10))
		check(err)
		_, _, err = to.ReadFrom(make([]byte, 100))
		check(err)
	}
}
"#;

#[test]
fn a_go_program_is_marked_by_a_control_group() {
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["main.go", "program"].map(|name| folder.path().join(name));
    std::fs::write(&source, GO).unwrap();
    let mut build = Command::new("go");
    build.args(["build", "-o"]).args([&program, &source]).current_dir(folder.path()).env("CGO_ENABLED", "0");
    if compiled(&mut build, "Go") {
        marks_without_libc("go", &program);
    }
}

/// A program that answers each line of its input with a datagram to itself, over a socket that was there before and over a new one.
const ANSWERS: &str = "
import socket, sys
def pair():
    receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    receiver.bind(('::1', 0))
    sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    return sender, receiver
before = pair()
print('ready', flush=True)
for line in sys.stdin:
    for sender, receiver in before, pair():
        sender.sendto(b'x', receiver.getsockname())
        receiver.recv(10)
    print('sent', flush=True)
";

/// Marks a program that runs already by `options`, which get its number, then stops marking it. The code points of the
/// datagrams of its old and its new socket, before, meanwhile and after.
fn marks_of_running(label: &str, options: impl Fn(u32) -> Vec<String>) -> Option<[[u8; 2]; 3]> {
    let command = python("-c", &[ANSWERS])?;
    if !may_make_namespaces() {
        return None;
    }
    let namespace = Namespace::create(label).unwrap();
    let mut program = Command::new(command[0]);
    program.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = namespace.within(|| program.spawn()).unwrap().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let mut input = program.stdin.take().unwrap();
    let mut marks = || {
        let capture = Capture::start(&namespace);
        input.write_all(b"\n").unwrap();
        lines.read_line(&mut String::new()).unwrap();
        // Each datagram twice, as it is sent and as it arrives.
        let marks: Vec<u8> = capture.packets().iter().map(|packet| packet.dscp).collect();
        assert_eq!((marks.len(), marks[0], marks[2]), (4, marks[1], marks[3]));
        [marks[0], marks[2]]
    };
    let before = marks();
    let options = options(program.id());
    let mut exec = Command::new(env!("CARGO_BIN_EXE_cutline"));
    exec.args(["exec", "--hint", HINT]).args(options).stderr(Stdio::piped());
    let mut exec = namespace.within(|| exec.spawn()).unwrap().unwrap();
    let mut said = String::new();
    let mut errors = BufReader::new(exec.stderr.take().unwrap());
    errors.read_line(&mut said).unwrap();
    assert!(said.contains("open sockets marked"), "{said}");
    let meanwhile = marks();
    kill_process(Pid::from_child(&exec), Signal::TERM).unwrap();
    assert!(exec.wait().unwrap().success());
    let after = marks();
    drop(input);
    assert!(program.wait().unwrap().success());
    Some([before, meanwhile, after])
}

#[test]
fn a_process_that_runs_is_marked() {
    let Some(marks) = marks_of_running("pid", |pid| vec!["--pid".into(), pid.to_string()]) else { return };
    // A socket that was open keeps its mark.
    assert_eq!(marks, [[0, 0], [DSCP, DSCP], [DSCP, 0]]);
}

#[test]
fn a_group_that_exists_is_marked() {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount =
        mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    let Some(mount) = mount else { return skip("no cgroup2 file system is mounted", "mount one") };
    let group = Path::new(mount).join(format!("cutline-test-{}", std::process::id()));
    let marks = marks_of_running("group2", |pid| {
        std::fs::create_dir(&group).unwrap();
        std::fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
        vec!["--cgroup".into(), group.file_name().unwrap().to_str().unwrap().into()]
    });
    if let Some(marks) = marks {
        std::fs::remove_dir(&group).unwrap();
        assert_eq!(marks, [[0, 0], [DSCP, DSCP], [DSCP, 0]]);
    }
}

#[test]
fn a_missing_process_or_group_is_refused() {
    let code = |options: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_cutline")).args(["exec", "--hint", HINT]).args(options).output();
        output.unwrap().status.code()
    };
    assert_eq!(code(&["--pid", "0"]), Some(125));
    assert_eq!(code(&["--pid", "2147483647"]), Some(125));
    assert_eq!(code(&["--cgroup", "no/such/group"]), Some(125));
    assert_eq!(code(&["--cgroup", "/etc"]), Some(125));
    assert_eq!(code(&["--pid", "1", "--", "true"]), Some(2));
    assert_eq!(code(&[]), Some(2), "neither a program nor anything that runs");
}

#[test]
fn a_drop_in_for_systemd_is_printed() {
    let print = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command
            .env("CUTLINE_EXEC_LIBRARY", library())
            .args(["exec", "--hint", HINT, "--systemd"])
            .args(options);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = print(&["nginx.service"]);
    assert!(code == Some(0) && text.contains("\nEnvironment=CUTLINE_EXEC=v=1,dscp=23,"), "{text}");
    let (code, text) = print(&["nginx", "--by", "cgroup", "--rate", "1Mbit"]);
    assert!(
        code == Some(0)
            && text.contains("exec --dscp 23 --rate 1000000bit --cgroup system.slice/nginx.service"),
        "{text}"
    );
    assert_eq!(print(&["a/b"]).0, Some(125));
}

/// A run that was killed leaves a folder, which the next one removes; its programs have gone with it.
#[test]
fn nothing_is_left_of_control_groups() {
    if !may_make_namespaces() {
        return;
    }
    let namespace = Namespace::create("left").unwrap();
    let run = |command: &[&str]| {
        let mut exec = exec(&["--hint", HINT, "--by", "cgroup", "--quiet"], command);
        namespace.within(|| exec.spawn()).unwrap().unwrap()
    };
    let group = |pid: u32| {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount =
            mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap().split(' ').nth(4).unwrap();
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
        Path::new(mount).join(own).join(format!("cutline-exec-{pid}"))
    };
    let mut killed = run(&["sh", "-c", "echo ready; exec sleep 60"]);
    let mut line = String::new();
    BufReader::new(killed.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let left = group(killed.id());
    assert!(left.is_dir());
    // Another test's run may sweep it as soon as it is empty.
    let processes = || std::fs::read_to_string(left.join("cgroup.procs")).unwrap_or_default();
    let own = killed.id().to_string();
    killed.kill().unwrap();
    killed.wait().unwrap();
    for child in processes().lines().filter(|&pid| pid != own) {
        kill_process(Pid::from_raw(child.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    while !processes().is_empty() {
        std::thread::yield_now();
    }
    let mut next = run(&["true"]);
    let own = group(next.id());
    assert!(next.wait().unwrap().success());
    assert!(!left.exists() && !own.exists());
}

#[test]
fn without_a_mark_packets_keep_those_of_the_program() {
    let Some((packets, _)) = on_the_wire("own", &["--rate", "1Gbit"], &["udp"]) else { return };
    let marked = packets.iter().filter(|packet| packet.dscp == 0xb9 >> 2).count();
    let plain = packets.iter().filter(|packet| packet.dscp == 0).count();
    // The mark of the socket holds for datagrams without a control message.
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
                assert_eq!(
                    syns,
                    Some(4),
                    "each of two connections has a SYN, seen as it is sent and as it arrives"
                );
            }
        }
    }
}

// -------------------------------------------------------------------------------------------------------- pacing

/// Returns the time for which a script reports that it has sent, seconds.
fn time_of(rate: &str, by: &str, script: &str) -> Option<f64> {
    let command = python("-c", &[script])?;
    let mut exec = exec(&["--rate", rate, "--by", by, "--quiet"], &command);
    let output = if by == "cgroup" {
        let namespace = may_make_namespaces().then(|| Namespace::create("rate").unwrap())?;
        namespace.within(|| exec.output()).unwrap().unwrap()
    } else {
        exec.output().unwrap()
    };
    succeeded(&output);
    Some(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap())
}

/// The time at a quarter of the rate is four times as long.
fn is_paced(script: &str, by: &str, [slow, fast]: [&str; 2]) {
    if time_of(fast, by, "print(0)").is_none() {
        return;
    }
    undisturbed(|| {
        let [slow, fast] = [slow, fast].map(|rate| time_of(rate, by, script).unwrap());
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
    is_paced(SCRIPT, "preload", ["500kbit", "2Mbit"]);
}

/// A transfer over TCP.
const TRANSFER: &str = "
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

#[test]
fn tcp_keeps_to_the_rate() {
    is_paced(TRANSFER, "preload", ["8Mbit", "32Mbit"]);
}

#[test]
fn a_control_group_keeps_tcp_to_the_rate() {
    is_paced(TRANSFER, "cgroup", ["8Mbit", "32Mbit"]);
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

/// The longest segment of the loopback interface, bytes.
const LONGEST_SEGMENT: u64 = 65_536;

#[test]
fn the_document_and_the_text_have_the_delivered_traffic() {
    let script = script();
    let Some(command) = python(script.to_str().unwrap(), &["tcp", "udp"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let options = ["--class", "video", "--rate", "100Mbit", "--json", file.to_str().unwrap()];
    let output = exec(&options, &command).output().unwrap();
    succeeded(&output);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("hint 9 (DSCP 35), at most 100000 kbit/s per socket by preload"), "{text}");
    assert!(text.contains("exit code 0") && text.contains("TCP    15 sockets"), "{text}");
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    schema::check("exec", &document);
    let counted = &document["counted"];
    // Three times two connections of 100 KB and 50 KB. A busy machine makes TCP retransmit, also over the loopback interface.
    let sent = counted["tcp_sent_bytes"].as_u64().unwrap();
    let again = counted["tcp_retransmissions"].as_u64().unwrap() * LONGEST_SEGMENT;
    assert!((900_000..=900_000 + again).contains(&sent), "{counted:#}");
    assert!((900_000..=900_012).contains(&counted["tcp_received_bytes"].as_u64().unwrap()), "{counted:#}");
    let datagrams = 3 * 22;
    assert_eq!(counted["udp_messages"], datagrams);
    let connections: Vec<&Value> = document["sockets"].as_array().unwrap().iter().collect();
    let clients = connections.iter().filter(|socket| socket["sent_bytes"].as_u64() >= Some(100_000));
    assert_eq!(clients.clone().count(), 6);
    assert!(clients.clone().all(|socket| socket["rtt_ms"].is_number() && socket["peer"].is_string()));
    // Two options a TCP client and a UDP sender set, three control messages and a batch of twelve.
    assert_eq!(counted["replaced"], 6 + 3 * (1 + 3 + 12));

    // The next run does not replace it unasked, and says so before the program runs.
    let before = std::fs::read(&file).unwrap();
    let refused = exec(&options, &command).output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), refused.stdout.is_empty()), (Some(125), true), "{text}");
    assert!(text.contains("exists and is kept; --force replaces it"), "{text}");
    assert!(std::fs::read(&file).unwrap() == before);
    succeeded(&exec(&[&options[..], &["--force"]].concat(), &command).output().unwrap());
    assert!(std::fs::read(&file).unwrap() != before);
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
    for (settings, table) in
        [(None, None), (Some("nonsense"), None), (Some("v=1,dscp=23"), Some("/nonexistent"))]
    {
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
    let mut command =
        exec(&["--hint", HINT, "--quiet"], &["sh", "-c", "cat; printf '%s' \"$0 $1\" >&2", "-x", "--y"]);
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

/// A thread that is cancelled while it waits in a call of ours: libc unwinds its stack through the library, which must let it.
#[test]
fn a_thread_can_be_cancelled_in_a_call() {
    const SOURCE: &str = r"
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
static sem_t ready;
static int cleaned;
static void clean(void *unused) { cleaned = 1; }
static void *waits(void *unused) {
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (listen(server, 1)) return 0;
    pthread_cleanup_push(clean, 0);
    sem_post(&ready);
    accept(server, 0, 0);
    pthread_cleanup_pop(0);
    return 0;
}
int main(void) {
    pthread_t thread;
    void *result;
    sem_init(&ready, 0, 0);
    pthread_create(&thread, 0, waits, 0);
    sem_wait(&ready);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return !(cleaned && result == PTHREAD_CANCELED);
}
";
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["cancel.c", "cancel"].map(|name| folder.path().join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let mut build = Command::new("cc");
    if compiled(build.args(["-pthread", "-o"]).args([&program, &source]), "a C compiler") {
        succeeded(&exec(&["--hint", HINT, "--quiet"], &[program.to_str().unwrap()]).output().unwrap());
    }
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
