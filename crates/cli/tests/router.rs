//! The router between two hosts: network namespaces, joined by virtual pairs through a third in which it runs.
//!
//! ```text
//! host a        middle         host b
//! a0 ══════ p0  router  p1 ══════ b0
//! ```
//!
//! Needs root; without it the tests say so and pass: `sudo -E cargo test -p cutline-cli --test router`.

use cutline_linux::namespace::{Namespace, sweep};
use cutline_linux::{LinuxError, Offloads, PacketPort, now};
use cutline_router::Port;
use cutline_units::Instant;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

const COMMAND: &str = "sudo -E cargo test -p cutline-cli --test router";

/// The namespaces and the router at work. The router goes first, then the namespaces.
struct Lab {
    router: Router,
    a: Namespace,
    b: Namespace,
    middle: Namespace,
}

/// A running router, killed if nobody has ended it.
struct Router(Child);

impl Router {
    fn start(middle: &Namespace, options: &[&str]) -> Self {
        let start = || {
            Command::new(env!("CARGO_BIN_EXE_cutline"))
                .args(["router", "--in", "p0", "--out", "p1", "--json"])
                .args(options)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        };
        let mut router = Self(middle.within(start).unwrap().unwrap());
        let mut line = String::new();
        BufReader::new(router.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("routing p0 -> p1"), "{line}");
        router
    }

    /// Asks it to end; answers its exit code and the last line that it printed.
    fn end(&mut self) -> (Option<i32>, Value) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let last = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        (self.0.wait().unwrap().code(), last)
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Lab {
    /// `None` where this machine does not let us.
    fn new(label: &str, options: &[&str]) -> Option<Self> {
        let skip = |why: &str| eprintln!("skipped: {why}; run: {COMMAND}");
        if !geteuid().is_root() {
            skip("network namespaces need root");
            return None;
        }
        sweep().unwrap();
        let [a, b, middle] = match ["a", "b", "m"].map(|host| Namespace::create(&format!("{label}{host}"))) {
            [Ok(a), Ok(b), Ok(middle)] => [a, b, middle],
            [Err(LinuxError::Ip { message, .. }), ..] if message.contains("not permitted") => {
                skip(&message);
                return None;
            }
            other => panic!("{other:?}"),
        };
        for (host, end, port, number) in [(&a, "a0", "p0", "1"), (&b, "b0", "p1", "2")] {
            host.ip(&["link", "add", end, "type", "veth", "peer", "name", port, "netns", middle.name()])
                .unwrap();
            host.ip(&["address", "add", &format!("10.9.0.{number}/24"), "dev", end]).unwrap();
            host.ip(&["address", "add", &format!("fd09::{number}/64"), "dev", end, "nodad"]).unwrap();
            host.ip(&["link", "set", end, "up"]).unwrap();
            middle.ip(&["link", "set", port, "up"]).unwrap();
            host.within(|| Offloads::turn_off(end).unwrap().keep()).unwrap();
        }
        Some(Self { router: Router::start(&middle, options), a, b, middle })
    }

    /// Sockets at both ends, connected to each other.
    fn sockets(&self, v6: bool, port: u16) -> [UdpSocket; 2] {
        let address = |number: u8| {
            if v6 { format!("[fd09::{number}]:{port}") } else { format!("10.9.0.{number}:{port}") }
        };
        let open =
            |host: &Namespace, own: u8| host.within(|| UdpSocket::bind(address(own)).unwrap()).unwrap();
        let sockets = [open(&self.a, 1), open(&self.b, 2)];
        sockets[0].connect(address(2)).unwrap();
        sockets[1].connect(address(1)).unwrap();
        for socket in &sockets {
            socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        }
        sockets
    }

    /// Whether datagrams come across, both ways. The first ones may be lost until the hosts know each other.
    fn is_crossed(&self, v6: bool, port: u16) -> bool {
        let [a, b] = self.sockets(v6, port);
        [(&a, &b), (&b, &a)].into_iter().all(|(from, to)| {
            let mut buffer = [0; 100];
            (0..10).any(|_| {
                from.send(b"hello").is_ok() && to.recv(&mut buffer).is_ok_and(|n| &buffer[..n] == b"hello")
            })
        })
    }
}

/// What came, with its delay on the way.
struct Arrivals {
    bytes: u64,
    first: Instant,
    last: Instant,
    delays_ms: Vec<f64>,
}

impl Arrivals {
    fn median_delay_ms(&mut self) -> f64 {
        self.delays_ms.sort_by(f64::total_cmp);
        self.delays_ms[self.delays_ms.len() / 2]
    }
}

/// Sends datagrams that say when they left.
fn send(socket: UdpSocket, size: usize, every: Duration, for_long: Duration) -> JoinHandle<()> {
    spawn(move || {
        let mut payload = vec![0; size];
        let (start, mut next) = (std::time::Instant::now(), Duration::ZERO);
        while start.elapsed() < for_long {
            // What is late is sent at once, so that the rate holds on a busy machine.
            sleep(next.saturating_sub(start.elapsed()));
            next += every;
            payload[..8].copy_from_slice(&now().as_nanos().to_be_bytes());
            let _lost = socket.send(&payload);
        }
    })
}

/// Receives until nothing comes any more.
fn receive(socket: UdpSocket) -> JoinHandle<Arrivals> {
    spawn(move || {
        let mut arrivals = Arrivals { bytes: 0, first: now(), last: now(), delays_ms: Vec::new() };
        let mut buffer = [0; 2000];
        while let Ok(length) = socket.recv(&mut buffer) {
            let (at, sent) = (now(), u64::from_be_bytes(*buffer.first_chunk().unwrap()));
            if arrivals.bytes == 0 {
                arrivals.first = at;
            }
            // IPv4 and UDP headers.
            arrivals.bytes += length as u64 + 28;
            arrivals.last = at;
            arrivals.delays_ms.push((at - Instant::from_nanos(sent)).as_millis_f64());
        }
        arrivals
    })
}

fn packets(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} is in {document}"))
}

/// received = sent + dropped + queued.
fn assert_sums(document: &Value, direction: &str) {
    let at = |path: &str| packets(document, &format!("/{direction}/{path}"));
    let losses = ["early", "overflow", "oversize", "runt", "unsent"];
    let dropped: u64 = losses.iter().map(|loss| at(&format!("dropped/{loss}/packets"))).sum();
    assert_eq!(at("received/packets"), at("sent/packets") + dropped + at("queued_packets"), "{document}");
}

#[test]
fn frames_cross_and_a_killed_router_leaves_nothing() {
    let Some(mut lab) = Lab::new("x", &["--rate", "100Mbit", "--tsq"]) else { return };
    assert!(lab.is_crossed(false, 5001), "IPv4");
    assert!(lab.is_crossed(true, 5002), "IPv6");
    vlan_tags_cross(&lab);
    lab.middle.ip(&["link", "set", "p1", "down"]).unwrap();
    sleep(Duration::from_millis(100));
    lab.middle.ip(&["link", "set", "p1", "up"]).unwrap();
    assert!(lab.is_crossed(false, 5003), "after an interface was down");
    let (code, end) = lab.router.end();
    assert_eq!((code, &end["event"]), (Some(0), &Value::from("end")));
    assert_sums(&end, "forth");
    assert_sums(&end, "back");
    assert!(packets(&end, "/forth/not_ip/packets") > 0, "ARP passes as well: {end}");

    lab.router = Router::start(&lab.middle, &["--rate", "100Mbit"]);
    lab.router.kill();
    assert!(!lab.is_crossed(false, 5004), "nothing but the router joins the hosts");
    lab.router = Router::start(&lab.middle, &["--rate", "100Mbit"]);
    assert!(lab.is_crossed(false, 5005), "a router after the killed one");
}

/// The very bytes, tag included, both ways.
fn vlan_tags_cross(lab: &Lab) {
    let open = |host: &Namespace, name: &str| host.within(|| PacketPort::open(name).unwrap()).unwrap();
    let (mut a, mut b) = (open(&lab.a, "a0"), open(&lab.b, "b0"));
    let tagged = [&[2; 12][..], &[0x81, 0x00, 0x20, 0x64, 0x88, 0xb5], &[7; 60]].concat();
    a.send(&mut [&tagged[..]].into_iter(), &mut |sent| assert!(sent)).unwrap();
    let mut found = false;
    for _ in 0..50 {
        b.receive(now(), &mut |_, frame| found |= frame == tagged).unwrap();
        if found {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("the tagged frame has not come");
}

/// 12 Mbit/s of unmarked packets and 100 hinted ones a second come to a link of 8 Mbit/s, whose queue holds them all: a
/// full queue would drop newcomers whatever their hint.
#[test]
fn the_rate_is_kept_and_hinted_packets_wait_less() {
    const RATE: f64 = 8e6;
    let options = ["--rate", "8Mbit", "--overhead", "ip", "--aqm", "drop-tail", "--limit", "3 MB", "--tsq"];
    let Some(mut lab) = Lab::new("r", &options) else { return };
    assert!(lab.is_crossed(false, 5001), "the hosts know each other");
    let [unmarked, unmarked_sink] = lab.sockets(false, 5002);
    let [hinted, hinted_sink] = lab.sockets(false, 5003);
    // hint-1: 000011, and no ECN.
    rustix::net::sockopt::set_ip_tos(&hinted, 0b0000_1100).unwrap();
    let sinks = [receive(unmarked_sink), receive(hinted_sink)];
    let long = Duration::from_millis(1500);
    let sources = [
        send(unmarked, 972, Duration::from_micros(667), long),
        send(hinted, 172, Duration::from_millis(10), long),
    ];
    for source in sources {
        source.join().unwrap();
    }
    let [mut unmarked, mut hinted] = sinks.map(|sink| sink.join().unwrap());
    let (_, end) = lab.router.end();
    assert_sums(&end, "forth");

    let seconds = (unmarked.last - unmarked.first).as_secs_f64();
    let ratio = (unmarked.bytes + hinted.bytes) as f64 * 8.0 / seconds / RATE;
    // Two packets more than the interval holds, at most, and what a stopped machine gives up, at least.
    assert!((0.85..1.02).contains(&ratio), "{ratio} of the rate; {end}");
    let (slow, fast) = (unmarked.median_delay_ms(), hinted.median_delay_ms());
    assert!(hinted.delays_ms.len() > 50, "most hinted packets come: {}", hinted.delays_ms.len());
    assert!(fast < slow / 2.0, "hinted {fast} ms, unmarked {slow} ms");
}

#[test]
fn what_a_killed_process_left_behind_is_swept() {
    if !geteuid().is_root() {
        eprintln!("skipped: network namespaces need root; run: {COMMAND}");
        return;
    }
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let name = format!("cutline-{}-left", gone.id());
    if !Command::new("ip").args(["netns", "add", &name]).status().unwrap().success() {
        eprintln!("skipped: network namespaces cannot be made here; run: {COMMAND}");
        return;
    }
    // Another test that starts at the same time may have been first.
    sweep().unwrap();
    assert!(!std::path::Path::new("/run/netns").join(&name).exists());
}

#[test]
fn what_is_wrong_is_told_before_anything_is_touched() {
    let refused = |options: &[&str], what: &str| {
        let arguments = [&["router", "--in", "lo", "--rate", "8Mbit"], options].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_cutline")).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(what), "{message}");
    };
    refused(&["--out", "lo"], "both `lo`");
    refused(&["--out", "nosuch0", "--aqm", "fq-codl"], "did you mean fq-codel?");
    refused(&["--out", "nosuch0", "--overhead", "atm"], "pppoe-atm");
    refused(&["--out", "nosuch0", "--hint", "EF=17"], "a delay hint lies in 1..16");
}
