//! Attacks on a router at work, one after the other, each while numbered datagrams cross: those must all be accounted for.
//!
//! ```text
//! sudo -E make attack                                # 10 s for each attack, or ATTACK_TIME=...
//! sudo -E cargo test -p cutline-cli --test attacks   # the short form: less than 30 s
//! ```
//!
//! The router's stdout is a pipe that nobody reads, and its stderr a full disk, all the time. An attack is a line of
//! [`ATTACKS`]: its name, what it does, what becomes of datagrams meanwhile, and a function. After each attack, datagrams cross
//! in both directions, and the router's counters add up. docs/internals/robustness.md says what is promised.
//!
//! Needs root; without it the test says so and passes.

mod common;

use common::{Hosts, Lab, Router, assert_sums, packets};
use cutline_ports::PacketPort;
use cutline_router::Port;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write as _};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What is done to a router.
struct Attack {
    name: &'static str,
    what: &'static str,
    /// What becomes of datagrams that cross meanwhile.
    datagrams: Datagrams,
    run: fn(&mut Bed, Duration),
}

/// What becomes of datagrams during an attack. None ever comes twice or is overtaken.
#[derive(Clone, Copy, PartialEq)]
enum Datagrams {
    /// All come.
    AllCome,
    /// Those that do not come are counted, by the router or by the interfaces.
    AreCounted,
    /// There is no router for a while.
    MayBeLost,
}

use Datagrams::{AllCome, AreCounted, MayBeLost};

const ATTACKS: [Attack; 14] = [
    attack("garbage", "frames that lie about what is in them", AreCounted, garbage),
    attack("short frames", "the shortest frames as fast as they are taken", AreCounted, |bed, time| {
        bed.flood(time, 60);
    }),
    attack("long frames", "the longest frames as fast as they are taken", AreCounted, |bed, time| {
        bed.flood(time, 1514);
    }),
    attack("link flaps", "an interface goes down and up", AreCounted, flap),
    attack("MTU", "the MTU of an interface changes", AreCounted, change_mtu),
    attack("reloads", "files that are broken, huge or strange, and queues exchanged", AllCome, reload),
    attack("SIGHUP", "hundreds of them, and none of another kind", AllCome, hang_up),
    attack("clients", "clients that ask nonsense, do not read, or say nothing", AllCome, connect),
    attack("descriptors", "no further descriptor may be opened", AllCome, few_descriptors),
    attack("memory", "no further memory may be had, in a flood", AreCounted, little_memory),
    attack("missing files", "the file and the socket are removed", AllCome, remove_files),
    attack("SIGSTOP", "the process is stopped and goes on", AreCounted, stop),
    attack("kill -9", "the process is killed, and the next one starts", MayBeLost, kill),
    attack("removal", "an interface is removed", MayBeLost, remove_interface),
];

const fn attack(
    name: &'static str,
    what: &'static str,
    datagrams: Datagrams,
    run: fn(&mut Bed, Duration),
) -> Attack {
    Attack { name, what, datagrams, run }
}

/// The time for each attack.
fn time_for_each() -> Duration {
    let seconds = std::env::var("CUTLINE_ATTACK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(0.5))
}

#[test]
fn the_router_forwards_whatever_else_fails() {
    let Some(mut bed) = Bed::new() else { return };
    for attack in &ATTACKS {
        bed.withstand(attack);
    }
}

/// The router that is attacked.
struct Bed {
    lab: Option<Lab>,
    home: TempDir,
}

const QUEUE: &str = "{ aqm = \"fq-codel\", limit = \"1000 packets\" }";

impl Bed {
    fn new() -> Option<Self> {
        let hosts = Hosts::new("at")?;
        let mut bed = Self { lab: None, home: tempfile::tempdir().unwrap() };
        bed.start(hosts);
        Some(bed)
    }

    /// Starts a router between the hosts, which nobody hears.
    fn start(&mut self, hosts: Hosts) {
        self.describe("100 Mbit/s", QUEUE);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(["router", "--json", "--stats", "10ms", "--config"]).arg(self.path("r.toml"));
        command.env("RUNTIME_DIRECTORY", self.home.path()).stdout(Stdio::piped()).stderr(full);
        let router = Router::launch(&hosts.middle, &mut command);
        self.lab = Some(hosts.with(router));
        assert!(self.lab().is_crossed(false, 4000), "the router works");
    }

    fn lab(&mut self) -> &mut Lab {
        self.lab.as_mut().expect("there is one between attacks")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn describe(&self, rate: &str, queue: &str) {
        let text = format!(
            "in = \"p0\"\nout = \"p1\"\nsocket = \"{}\"\n[forward]\nrate = {rate:?}\nqueue = {queue}\n\
             [reverse]\nrate = \"50 Mbit/s\"\nqueue = {queue}\n",
            self.path("s.sock").display()
        );
        drop(std::fs::remove_file(self.path("r.toml")));
        std::fs::write(self.path("r.toml"), text).unwrap();
    }

    /// Asks the router; `None` if it does not answer.
    fn ask(&self, request: &str) -> Option<Value> {
        let mut stream = UnixStream::connect(self.path("s.sock")).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        writeln!(stream, "{request}").ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    fn process(&mut self) -> Option<Pid> {
        Pid::from_raw(self.lab().router.id() as i32)
    }

    /// A packet socket of the first host.
    fn source(&mut self) -> PacketPort {
        self.lab().a.within(|| PacketPort::open("a0").unwrap()).unwrap()
    }

    /// Sends frames of this length as fast as they are taken.
    fn flood(&mut self, time: Duration, length: usize) {
        let mut source = self.source();
        let frame = frame(&[0x88, 0xb5], length);
        let until = Instant::now() + time;
        while Instant::now() < until {
            send(&mut source, &[&frame[..]; 64]);
        }
    }

    /// Attacks it while datagrams cross.
    fn withstand(&mut self, attack: &Attack) {
        let Attack { name, what, datagrams, run } = attack;
        let began = Instant::now();
        let before = self.lost();
        let [from, to] = self.lab().sockets(false, 4001);
        let stop = Arc::new(AtomicBool::new(false));
        let (source, sink) = (send_numbers(from, Arc::clone(&stop)), receive_numbers(to, Arc::clone(&stop)));
        run(self, time_for_each());
        stop.store(true, Ordering::Relaxed);
        let (sent, numbers) = (source.join().unwrap(), sink.join().unwrap());
        let missing = u64::from(sent) - numbers.len() as u64;
        println!(
            "{name}: {what}: {missing} of {sent} datagrams lost, {:.1} s",
            began.elapsed().as_secs_f64()
        );
        assert!(numbers.is_sorted_by(|a, b| a < b), "{name}: none comes twice or is overtaken");
        assert!(self.lab().router.is_running(), "{name}: it runs");
        assert!(self.lab().is_crossed(false, 4002), "{name}: datagrams cross afterwards");
        let lost = self.lost() - if *datagrams == MayBeLost { 0 } else { before };
        match datagrams {
            AllCome => assert_eq!(missing, 0, "{name}: of {sent}"),
            AreCounted => assert!(missing <= lost, "{name}: {missing} of {sent} missing, {lost} counted"),
            MayBeLost => assert!(u64::from(sent) > missing, "{name}: some come before or afterwards"),
        }
        let statistics = self.ask("stats").expect("it answers");
        assert_sums(&statistics, "forward");
        assert_sums(&statistics, "reverse");
    }

    /// What the router and the interfaces around it have counted as lost.
    fn lost(&mut self) -> u64 {
        let statistics = self.ask("stats").expect("it answers");
        let dropped = statistics["forward"]["dropped"].as_object().expect("there are reasons");
        let by_router: u64 = dropped.values().map(|counted| packets(counted, "/packets")).sum();
        let lab = self.lab();
        let by_kernel = [(&lab.a, "a0"), (&lab.middle, "p1")].map(|(host, name)| {
            let read = || {
                let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
                let is_it = |line: &&str| line.trim().starts_with(&format!("{name}:"));
                let line = table.lines().find(is_it).unwrap().to_owned();
                line.split_whitespace().nth(12 - 1).unwrap().parse::<u64>().unwrap()
            };
            host.within(read).unwrap()
        });
        by_router + packets(&statistics, "/ports/0/missed_packets") + by_kernel.iter().sum::<u64>()
    }
}

/// Sends a datagram each 2 ms until it is stopped; answers how many.
fn send_numbers(socket: UdpSocket, stop: Arc<AtomicBool>) -> JoinHandle<u32> {
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

/// Receives until nothing comes any more after the end; answers the numbers.
fn receive_numbers(socket: UdpSocket, stop: Arc<AtomicBool>) -> JoinHandle<Vec<u32>> {
    set_socket_recv_buffer_size_force(&socket, 8 << 20).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    spawn(move || {
        let (mut numbers, mut buffer) = (Vec::new(), [0; 4]);
        loop {
            let is_over = stop.load(Ordering::Relaxed);
            match socket.recv(&mut buffer) {
                Ok(4) => numbers.push(u32::from_be_bytes(buffer)),
                Err(_) if is_over => return numbers,
                Ok(_) | Err(_) => {}
            }
        }
    })
}

/// A frame to the second host's network, with these bytes behind its addresses.
fn frame(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], bytes].concat();
    frame.resize(length.max(12 + bytes.len()), 0);
    frame
}

/// Offers frames, once each.
fn send(port: &mut PacketPort, frames: &[&[u8]]) {
    let mut settled = 0;
    while settled < frames.len() {
        let mut rest = frames[settled..].iter().copied();
        port.send(&mut rest, &mut |_| settled += 1).unwrap();
    }
}

/// Runs `each` again and again, with a number, until the time is over.
fn repeat(time: Duration, mut each: impl FnMut(usize)) {
    let until = Instant::now() + time;
    let mut round = 0;
    while Instant::now() < until {
        each(round);
        round += 1;
    }
}

/// Heads of frames, of which each promises more than there is, or something else.
const HEADS: [&[u8]; 14] = [
    &[],
    &[0x08],
    // IPv4: cut off, with a long header, with options and the length of another, a fragment that begins nowhere.
    &[0x08, 0x00, 0x45],
    &[0x08, 0x00, 0x4f, 0x03, 0xff, 0xff],
    &[
        0x08, 0x00, 0x46, 0x01, 0x00, 0x14, 0, 0, 0x3f, 0xff, 64, 6, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2, 7, 255,
        0, 0,
    ],
    &[0x08, 0x00, 0x45, 0x03, 0x00, 0x1c, 0, 1, 0x20, 0x01, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2],
    &[0x08, 0x00, 0x41, 0x00, 0x00, 0x00],
    // IPv6: cut off, extension headers without an end, a fragment, a payload that is not there.
    &[0x86, 0xdd, 0x60],
    &[0x86, 0xdd, 0x6f, 0xff, 0xff, 0xff, 0, 200, 0, 64],
    &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 44, 64],
    // Tags within tags, and PPPoE around nothing.
    &[0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 2, 0x08, 0x00, 0x45],
    &[0x81, 0x00, 0, 1, 0x81, 0x00, 0, 2, 0x81, 0x00, 0, 3, 0x81, 0x00],
    &[0x88, 0xa8, 0, 1, 0x88, 0xa8, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0xff, 0xff, 0],
    &[0x88, 0x64, 0x11, 0, 0, 1, 0xff, 0xff, 0x00, 0x21, 0x45],
];

fn garbage(bed: &mut Bed, time: Duration) {
    let mut source = bed.source();
    repeat(time, |round| {
        let frames: Vec<_> =
            HEADS.iter().zip(0..).map(|(head, place)| frame(head, (round * 7 + place * 31) % 1514)).collect();
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        send(&mut source, &frames);
    });
}

fn flap(bed: &mut Bed, time: Duration) {
    repeat(time, |round| {
        let state = if round % 2 == 0 { "down" } else { "up" };
        bed.lab().middle.ip(&["link", "set", "p1", state]).unwrap();
        sleep(Duration::from_millis(60));
    });
    bed.lab().middle.ip(&["link", "set", "p1", "up"]).unwrap();
}

fn change_mtu(bed: &mut Bed, time: Duration) {
    repeat(time, |round| {
        let mtu = [68, 9000, 576, 1500][round % 4].to_string();
        bed.lab().middle.ip(&["link", "set", "p1", "mtu", &mtu]).unwrap();
        sleep(Duration::from_millis(60));
    });
    bed.lab().middle.ip(&["link", "set", "p1", "mtu", "1500"]).unwrap();
}

fn reload(bed: &mut Bed, time: Duration) {
    let file = bed.path("r.toml");
    repeat(time, |round| {
        match round % 8 {
            0 => bed.describe("1 bit/s", QUEUE),
            1 => bed.describe("90 Mbit/s", "{ aqm = \"codel\", limit = \"900 packets\", target = \"1 s\" }"),
            2 => std::fs::write(&file, "[[[").unwrap(),
            3 => std::fs::write(&file, vec![b'['; 2 << 20]).unwrap(),
            4 => std::fs::write(&file, "a = 1\n".repeat(20_000)).unwrap(),
            5 => bed.describe("80 Mbit/s", "{ aqm = \"drop-tail\", limit = \"800 packets\" }"),
            6 => {
                std::fs::remove_file(&file).unwrap();
                assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
            }
            _ => bed.describe("100 Mbit/s", QUEUE),
        }
        bed.lab().router.signal(Signal::HUP);
        sleep(Duration::from_millis(70));
    });
    bed.describe("100 Mbit/s", QUEUE);
    assert!(hup_is_taken(bed), "a good file is taken afterwards");
}

/// Whether a reload is taken within seconds. One that is being read may be refused first.
fn hup_is_taken(bed: &mut Bed) -> bool {
    let done = |bed: &Bed| bed.ask("reload status").map_or(0, |status| packets(&status, "/reload/done"));
    let before = done(bed);
    (0..50).any(|_| {
        bed.lab().router.signal(Signal::HUP);
        sleep(Duration::from_millis(150));
        done(bed) > before
    })
}

fn hang_up(bed: &mut Bed, time: Duration) {
    repeat(time, |_| {
        bed.lab().router.signal(Signal::HUP);
        sleep(Duration::from_millis(1));
    });
    assert!(hup_is_taken(bed));
}

/// Clients of every kind, more than are served.
fn connect(bed: &mut Bed, time: Duration) {
    let mut clients = Vec::new();
    repeat(time, |round| {
        let Ok(mut client) = UnixStream::connect(bed.path("s.sock")) else { return };
        client.set_nonblocking(true).unwrap();
        let request: &[u8] = match round % 4 {
            0 => b"",
            1 => b"watch 100 ms\n",
            2 => &[0xff; 500],
            _ => b"stats\nconfig\nreload status\nnonsense\n",
        };
        // It may have been refused already.
        let _refused = client.write_all(request);
        clients.push(client);
        if clients.len() > 30 {
            clients.clear();
        }
        sleep(Duration::from_millis(5));
    });
    drop(clients);
    // The seats are free again when their threads have noticed.
    assert!((0..50).any(|_| {
        sleep(Duration::from_millis(100));
        bed.ask("stats").is_some_and(|answer| answer["event"] == "stats")
    }));
}

fn few_descriptors(bed: &mut Bed, time: Duration) {
    let process = bed.process();
    // Fewer than it has; ppoll(2) takes no more descriptors than this.
    let none = Rlimit { current: Some(4), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(process, Resource::Nofile, none).unwrap();
    let clients: Vec<_> = (0..8).map(|_| UnixStream::connect(bed.path("s.sock"))).collect();
    repeat(time.max(Duration::from_millis(700)), |_| {
        bed.lab().router.signal(Signal::HUP);
        sleep(Duration::from_millis(100));
    });
    drop(clients);
    prlimit(process, Resource::Nofile, before).unwrap();
    // The thread that accepts tries again each second.
    assert!((0..50).any(|_| {
        sleep(Duration::from_millis(100));
        bed.ask("stats").is_some_and(|answer| answer["event"] == "stats")
    }));
}

fn little_memory(bed: &mut Bed, time: Duration) {
    bed.describe("1 Mbit/s", "{ aqm = \"drop-tail\", limit = \"1000000 packets\" }");
    assert!(hup_is_taken(bed));
    let process = bed.process();
    let size = std::fs::read_to_string(format!("/proc/{}/statm", bed.lab().router.id())).unwrap();
    let pages: u64 = size.split_whitespace().next().unwrap().parse().unwrap();
    let none = Rlimit { current: Some(pages * 4096 + (8 << 20)), maximum: getrlimit(Resource::As).maximum };
    let before = prlimit(process, Resource::As, none).unwrap();
    let dropped = |bed: &Bed| packets(&bed.ask("stats").unwrap(), "/forward/dropped/memory/packets");
    let dropped_before = dropped(bed);
    bed.flood(time, 60);
    // A busy machine may send few frames in this time.
    let is_short = (0..20).any(|_| {
        bed.flood(Duration::from_millis(100), 60);
        dropped(bed) > dropped_before
    });
    assert!(is_short, "frames are dropped for want of memory");
    prlimit(process, Resource::As, before).unwrap();
    bed.describe("100 Mbit/s", QUEUE);
    assert!(hup_is_taken(bed));
}

fn remove_files(bed: &mut Bed, time: Duration) {
    let aside = bed.path("aside");
    std::fs::rename(bed.path("s.sock"), &aside).unwrap();
    std::fs::remove_file(bed.path("r.toml")).unwrap();
    repeat(time, |_| {
        bed.lab().router.signal(Signal::HUP);
        sleep(Duration::from_millis(100));
    });
    std::fs::rename(&aside, bed.path("s.sock")).unwrap();
    bed.describe("100 Mbit/s", QUEUE);
    assert!(hup_is_taken(bed));
}

fn stop(bed: &mut Bed, time: Duration) {
    repeat(time, |_| {
        bed.lab().router.signal(Signal::STOP);
        sleep(Duration::from_millis(150));
        bed.lab().router.signal(Signal::CONT);
        sleep(Duration::from_millis(50));
    });
}

fn kill(bed: &mut Bed, time: Duration) {
    repeat(time, |_| {
        let mut lab = bed.lab.take().expect("it is there");
        lab.router.kill();
        bed.start(lab.without_router());
        sleep(Duration::from_millis(100));
    });
}

fn remove_interface(bed: &mut Bed, _: Duration) {
    let mut lab = bed.lab.take().expect("it is there");
    lab.middle.ip(&["link", "delete", "p1"]).unwrap();
    assert_eq!(lab.router.exit_code(), Some(1), "it says what it has counted, and ends");
    let hosts = lab.without_router();
    hosts.join_b();
    // The new interface has another address.
    hosts.a.ip(&["neighbour", "flush", "dev", "a0"]).unwrap();
    bed.start(hosts);
    sleep(Duration::from_millis(300));
}
