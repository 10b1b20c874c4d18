//! The router that is attacked, and numbered datagrams that cross it meanwhile.

use super::common::{Hosts, Lab, Router, assert_sums, packets};
use super::plan::{Assault, Attack, Tally, Victim};
use cutline_ports::PacketPort;
use cutline_router::Port;
use cutline_sys::namespace::Namespace;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time that the router may take for an answer, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Fate of datagrams during an attack. None ever comes twice or is overtaken.
#[derive(Clone, Copy, PartialEq)]
pub enum Datagrams {
    /// All come.
    AllCome,
    /// Lost datagrams are counted, by the router or by the hosts.
    AreCounted,
    /// No router for a while, or no way to it.
    MayBeLost,
}

/// A router between two hosts. Its stdout is not read, and its stderr is a full disk.
pub struct Bed {
    /// Laboratory; `Some` between attacks.
    pub lab: Option<Lab>,
    home: TempDir,
    ports: [&'static str; 2],
}

pub const QUEUE: &str = "{ aqm = \"fq-codel\", limit = \"1000 packets\" }";

impl Bed {
    /// `None` where this machine does not let us.
    pub fn new(label: &str, ports: [&'static str; 2]) -> Option<Self> {
        let hosts = Hosts::new(label)?;
        let mut bed = Self { lab: None, home: tempfile::tempdir().unwrap(), ports };
        bed.start(hosts);
        Some(bed)
    }

    /// Starts a router between the hosts.
    pub fn start(&mut self, hosts: Hosts) {
        acquaint(&hosts.a, &hosts.b);
        self.describe("100 Mbit/s", QUEUE);
        let router = self.launch(&hosts);
        self.lab = Some(hosts.with(router));
        assert!(self.lab().is_crossed(false, 4000), "the router works");
    }

    /// Starts a router, whether or not it will work.
    pub fn launch(&self, hosts: &Hosts) -> Router {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(["router", "--json", "--stats", "10ms", "--config"]).arg(self.path("r.toml"));
        // The arenas of glibc's threads would hold memory in reserve, where there is to be none.
        command.env("MALLOC_ARENA_MAX", "1");
        command.env("RUNTIME_DIRECTORY", self.home.path()).stdout(Stdio::piped()).stderr(full);
        Router::launch(&hosts.middle, &mut command)
    }

    pub fn lab(&mut self) -> &mut Lab {
        self.lab.as_mut().expect("there is one between attacks")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes the router's file.
    pub fn describe(&self, rate: &str, queue: &str) {
        let [input, output] = self.ports;
        let text = format!(
            "in = {input:?}\nout = {output:?}\nfix-offloads = true\nsocket = \"{}\"\n[forward]\nrate = {rate:?}\n\
             queue = {queue}\n[reverse]\nrate = \"50 Mbit/s\"\nqueue = {queue}\n",
            self.path("s.sock").display()
        );
        drop(std::fs::remove_file(self.path("r.toml")));
        std::fs::write(self.path("r.toml"), text).unwrap();
    }

    /// Returns the router's answer to a request; `None` if it does not answer.
    pub fn ask(&self, request: &str) -> Option<Value> {
        let mut stream = UnixStream::connect(self.path("s.sock")).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        writeln!(stream, "{request}").ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    pub fn process(&mut self) -> Option<Pid> {
        Pid::from_raw(self.lab().router.id() as i32)
    }

    /// Returns whether a reload is taken. One that is being read may be refused first.
    pub fn hup_is_taken(&mut self) -> bool {
        let done = |bed: &Self| bed.ask("reload status").map(|status| packets(&status, "/reload/done"));
        let Some(before) = in_the_end(|| done(self)) else { return false };
        let taken = in_the_end(|| {
            self.lab().router.signal(Signal::HUP);
            // A busy machine needs its time for each reload.
            (0..20).find_map(|_| {
                // Polls.
                sleep(Duration::from_millis(100));
                done(self).filter(|&count| count > before)
            })
        });
        taken.is_some()
    }

    /// Returns whether the router answers again.
    pub fn answers(&self) -> bool {
        let answer = || self.ask("stats").filter(|answer| answer["event"] == "stats");
        in_the_end(answer).is_some()
    }

    /// A packet socket of the first host.
    pub fn source(&mut self) -> PacketPort {
        self.lab().a.within(|| PacketPort::open("a0").unwrap()).unwrap()
    }

    /// Sends frames of this length as fast as they are taken.
    pub fn flood(&mut self, assault: &mut Assault, length: usize) {
        let mut source = self.source();
        let mut frame = vec![0; length];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        assault.repeat(|_| send(&mut source, &[&frame[..]; 64]));
    }

    /// Returns the losses that the router, the interfaces around it and the receiver have counted.
    fn lost(&mut self) -> u64 {
        let statistics = self.ask("stats").expect("it answers");
        let dropped = statistics["forward"]["dropped"].as_object().expect("there are reasons");
        let by_router: u64 = dropped.values().map(|counted| packets(counted, "/packets")).sum();
        let of_port = |what: &str| packets(&statistics, &format!("/ports/0/{what}"));
        let by_port = of_port("missed_packets") + of_port("truncated/packets");
        let lab = self.lab();
        let interfaces = [(&lab.a, "a0"), (&lab.middle, "p0"), (&lab.middle, "p1"), (&lab.b, "b0")];
        let by_interfaces: u64 =
            interfaces.map(|(host, name)| host.within(|| dropped_at(name)).unwrap()).iter().sum();
        by_router + by_port + by_interfaces + lab.b.within(wrong_checksums).unwrap()
    }
}

/// Repeats a request until it is answered, on a machine that may be busy; `None` after [`PATIENCE`].
fn in_the_end<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() > until {
            return answer;
        }
        sleep(Duration::from_millis(50));
    }
}

impl Victim for Bed {
    type Promise = Datagrams;

    fn withstand(&mut self, attack: &Attack<Self>, assault: &mut Assault) {
        let lab = self.lab();
        acquaint(&lab.a, &lab.b);
        let before = self.lost();
        let [from, to] = self.lab().sockets(false, 4001);
        let stop = Stop(Arc::new(AtomicBool::new(false)));
        let (source, sink) = (send_numbers(from, &stop), receive_numbers(to, &stop));
        (attack.run)(self, assault);
        drop(stop);
        let (sent, mut numbers) = (source.join().unwrap(), sink.join().unwrap());
        let missing = u64::from(sent) - numbers.len() as u64;
        let mut tally = Tally { sent: u64::from(sent), missing, counted: 0 };
        assault.datagrams = Some(tally);
        // A host whose neighbour's address was forgotten, because an interface went down, may itself send frames that have waited for the address
        // behind what comes later.
        if attack.promise == Datagrams::MayBeLost {
            numbers.sort_unstable();
        }
        let disorder = numbers.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(disorder, None, "none comes twice or is overtaken");
        assert!(self.lab().router.is_running(), "it runs");
        assert!(self.lab().is_crossed(false, 4002), "datagrams cross afterwards");
        // Another router, or other interfaces, begin at 0.
        tally.counted =
            self.lost().saturating_sub(if attack.promise == Datagrams::MayBeLost { 0 } else { before });
        assault.datagrams = Some(tally);
        match attack.promise {
            Datagrams::AllCome => assert_eq!(missing, 0, "of {sent}"),
            Datagrams::AreCounted => {
                assert!(missing <= tally.counted, "{missing} of {sent} missing, {} counted", tally.counted);
            }
            Datagrams::MayBeLost => assert!(u64::from(sent) > missing, "some come before or afterwards"),
        }
        let statistics = self.ask("stats").expect("it answers");
        assert_sums(&statistics, "forward");
        assert_sums(&statistics, "reverse");
    }
}

/// Tells two hosts each other's addresses. While a host looks for an address, it drops or reorders its packets.
fn acquaint(a: &Namespace, b: &Namespace) {
    for (host, name, number) in [(a, "a0", "1"), (b, "b0", "2")] {
        host.ip(&["link", "set", name, "address", &format!("02:09:00:00:00:0{number}")]).unwrap();
    }
    for (host, name, number) in [(a, "a0", "2"), (b, "b0", "1")] {
        let (to, address) = (format!("10.9.0.{number}"), format!("02:09:00:00:00:0{number}"));
        let permanent = ["lladdr", &address, "dev", name, "nud", "permanent"];
        host.ip(&[&["neighbour", "replace", &to], &permanent[..]].concat()).unwrap();
    }
}

/// Returns the drops of an interface of this namespace, both ways.
fn dropped_at(name: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}:"))).unwrap();
    let counters: Vec<u64> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
    counters[3] + counters[11]
}

/// Datagrams that came to this namespace with a wrong checksum.
fn wrong_checksums() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = table.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split_whitespace().position(|name| name == "InCsumErrors").unwrap();
    values.split_whitespace().nth(place).unwrap().parse().unwrap()
}

/// Stops the datagrams when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends a datagram each 2 ms until it is stopped. Returns their number.
fn send_numbers(socket: UdpSocket, stop: &Stop) -> JoinHandle<u32> {
    let stop = Arc::clone(&stop.0);
    spawn(move || {
        let mut number = 0_u32;
        while !stop.load(Ordering::Relaxed) {
            // What the host itself refuses has not been sent.
            if socket.send(&number.to_be_bytes()).is_ok() {
                number += 1;
            }
            sleep(Duration::from_millis(2));
        }
        number
    })
}

/// Receives until the silence after the end; answers the numbers.
fn receive_numbers(socket: UdpSocket, stop: &Stop) -> JoinHandle<Vec<u32>> {
    set_socket_recv_buffer_size_force(&socket, 8 << 20).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let stop = Arc::clone(&stop.0);
    spawn(move || {
        let (mut numbers, mut buffer, mut silence) = (Vec::new(), [0; 4], 0);
        while silence < 6 {
            let is_over = stop.load(Ordering::Relaxed);
            let received = socket.recv(&mut buffer);
            silence = if is_over && received.is_err() { silence + 1 } else { 0 };
            if received.is_ok_and(|length| length == 4) {
                numbers.push(u32::from_be_bytes(buffer));
            }
        }
        numbers
    })
}

/// Offers frames, once each.
pub fn send(port: &mut PacketPort, frames: &[&[u8]]) {
    let mut settled = 0;
    while settled < frames.len() {
        let mut rest = frames[settled..].iter().copied();
        port.send(&mut rest, &mut |_| settled += 1).unwrap();
    }
}
