//! A router between two hosts: network namespaces, joined by virtual pairs through a third in which it runs.
//!
//! ```text
//! host a        middle         host b
//! a0 ══════ p0  router  p1 ══════ b0
//! ```
//!
//! Needs root; without it the tests say so and pass.

#![allow(dead_code, reason = "each test binary uses a part")]

pub mod call;
pub mod exec;
pub mod home;
pub mod place;
pub mod schema;

use cutline_sys::namespace::Namespace;
use cutline_sys::{Offloads, now};
use cutline_testbed::{KilledChild, wait_for_own_addresses};
use cutline_units::Instant;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// Command for the tests that need root.
pub const COMMAND: &str = "sudo -E cargo test -p cutline-cli";

/// Returns the command with these arguments, and with its outputs as pipes.
pub fn cutline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// An Ethernet frame of `length` bytes of a type for local experiments (IEEE 802: 88B5).
pub fn frame(length: usize) -> Vec<u8> {
    let mut frame = vec![7; length];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}

/// The namespaces and the router at work. The router is dropped before the namespaces.
pub struct Lab {
    pub router: Router,
    pub a: Namespace,
    pub b: Namespace,
    pub middle: Namespace,
}

/// A running router, killed unless it has ended.
pub struct Router {
    process: KilledChild,
    /// Its stderr, where that is a pipe.
    errors: Option<BufReader<ChildStderr>>,
}

impl Router {
    /// A router between p0 and p1, described by options.
    pub fn start(middle: &Namespace, options: &[&str]) -> Self {
        Self::start_between(middle, ["p0", "p1"], options)
    }

    /// A router between two interfaces, described by options.
    pub fn start_between(middle: &Namespace, [input, output]: [&str; 2], options: &[&str]) -> Self {
        Self::spawn(middle, &[&["--in", input, "--out", output], options].concat(), &[])
    }

    /// A router that is started with these arguments and variables.
    pub fn spawn(middle: &Namespace, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(["router", "--json"]).args(arguments);
        command.env("RUNTIME_DIRECTORY", env!("CARGO_TARGET_TMPDIR")).envs(environment.iter().copied());
        let mut router = Self::launch(middle, command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let line = router.error_line();
        assert!(line.starts_with("routing "), "{line}");
        router
    }

    /// A router that is started by this command. Returns before it works.
    pub fn launch(middle: &Namespace, command: &mut Command) -> Self {
        let mut process = KilledChild(middle.within(|| command.spawn()).unwrap().unwrap());
        let errors = process.stderr.take().map(BufReader::new);
        Self { process, errors }
    }

    /// The next line of its stderr, which is waited for.
    pub fn error_line(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.errors.as_mut().unwrap().read_line(&mut line).unwrap();
            // Tests take queues on purpose that the router warns of.
            if !line.contains("while transfers fill the link, packets without a hint wait about") {
                return line;
            }
        }
    }

    /// Returns the number of the process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the state of the process as the kernel names it, such as `S (sleeping)`; `Z (zombie)` has ended.
    pub fn state(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.map_or("it is gone", str::trim).to_owned()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Ends the process by a signal. Returns its exit code and the last line of its output.
    pub fn end(&mut self) -> (Option<i32>, Value) {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits until it has ended of itself; answers the same.
    pub fn ended(&mut self) -> (Option<i32>, Value) {
        let mut text = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let last = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        (self.process.wait().unwrap().code(), last)
    }

    /// Ends the process by a signal. Returns its exit code; it must exit within seconds, also with unread output.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.exit_code()
    }

    /// Returns the exit code, if the process ends within a minute.
    pub fn exit_code(&mut self) -> Option<i32> {
        for _ in 0..600 {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            // Polls.
            sleep(Duration::from_millis(100));
        }
        panic!("it does not end");
    }

    /// Closes its stdout at our end, if it is a pipe.
    pub fn close_output(&mut self) {
        drop(self.process.stdout.take());
    }

    /// Returns whether the process runs.
    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// Returns the messages since its start.
    pub fn messages(&mut self) -> String {
        let mut text = String::new();
        self.errors.as_mut().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Returns its resident memory, bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Leaves it as much address space as it has, and this many bytes more. Returns the limit that it had.
    pub fn bound_memory(&self, more: u64) -> Rlimit {
        let size = std::fs::read_to_string(format!("/proc/{}/statm", self.id())).unwrap();
        let pages: u64 = size.split_whitespace().next().unwrap().parse().unwrap();
        let limit = Rlimit { current: Some(pages * 4096 + more), maximum: getrlimit(Resource::As).maximum };
        prlimit(Pid::from_raw(self.id() as i32), Resource::As, limit).unwrap()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Lab {
    /// `None` where this machine does not permit it.
    pub fn new(label: &str, options: &[&str]) -> Option<Self> {
        let hosts = Hosts::new(label)?;
        let router = Router::start(&hosts.middle, options);
        Some(hosts.with(router))
    }

    /// The namespaces without the router, which is killed if it runs.
    pub fn without_router(self) -> Hosts {
        let Self { router, a, b, middle } = self;
        drop(router);
        Hosts { a, b, middle }
    }

    /// Sockets at both ends, connected to each other.
    pub fn sockets(&self, v6: bool, port: u16) -> [UdpSocket; 2] {
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

    /// Returns whether datagrams come across, both ways, on a machine that may be busy. The first ones may be
    /// lost until the hosts know each other.
    pub fn is_crossed(&self, v6: bool, port: u16) -> bool {
        self.is_crossed_within(Duration::from_secs(90), v6, port)
    }

    /// Returns whether no datagram comes across within some seconds.
    pub fn is_apart(&self, v6: bool, port: u16) -> bool {
        !self.is_crossed_within(Duration::from_secs(3), v6, port)
    }

    fn is_crossed_within(&self, time: Duration, v6: bool, port: u16) -> bool {
        let [a, b] = self.sockets(v6, port);
        [(&a, &b), (&b, &a)].into_iter().all(|(from, to)| {
            let begin = std::time::Instant::now();
            let mut buffer = [0; 100];
            loop {
                // A host that does not know the other one yet refuses at once.
                let sent = from.send(b"hello").inspect_err(|_| sleep(Duration::from_millis(10)));
                let received = to.recv(&mut buffer);
                if received.as_ref().is_ok_and(|length| &buffer[..*length] == b"hello") {
                    return true;
                }
                if begin.elapsed() >= time {
                    let way = [from.local_addr(), to.local_addr()];
                    let router = self.router.state();
                    eprintln!(
                        "nothing crosses within {time:?}: {way:?}, sent {sent:?}, received {received:?}, router: {router}"
                    );
                    return false;
                }
            }
        })
    }
}

/// Returns whether this machine lets us make namespaces; if not, prints the reason and the remedy.
pub fn may_make_namespaces() -> bool {
    cutline_testbed::may_make_namespaces(COMMAND)
}

/// Three new namespaces; `None` where this machine does not permit it.
pub fn namespaces(label: &str) -> Option<[Namespace; 3]> {
    let made = || ["a", "b", "m"].map(|host| Namespace::create(&format!("{label}{host}")).unwrap());
    may_make_namespaces().then(made)
}

/// The namespaces without a router.
pub struct Hosts {
    pub a: Namespace,
    pub b: Namespace,
    pub middle: Namespace,
}

impl Hosts {
    /// `None` where this machine does not permit it.
    pub fn new(label: &str) -> Option<Self> {
        let [a, b, middle] = namespaces(label)?;
        let hosts = Self { a, b, middle };
        hosts.join_a();
        hosts.join_b();
        Some(hosts)
    }

    /// Joins the first host, again if its link was removed.
    pub fn join_a(&self) {
        self.join(&self.a, "a0", "p0", "1");
    }

    /// Joins the second host, again if its link was removed.
    pub fn join_b(&self) {
        self.join(&self.b, "b0", "p1", "2");
    }

    fn join(&self, host: &Namespace, end: &str, port: &str, number: &str) {
        let middle = &self.middle;
        host.ip(&["link", "add", end, "type", "veth", "peer", "name", port, "netns", middle.name()]).unwrap();
        host.ip(&["address", "add", &format!("10.9.0.{number}/24"), "dev", end]).unwrap();
        host.ip(&["address", "add", &format!("fd09::{number}/64"), "dev", end, "nodad"]).unwrap();
        host.ip(&["link", "set", end, "up"]).unwrap();
        middle.ip(&["link", "set", port, "up"]).unwrap();
        wait_for_own_addresses(host, &[&format!("fd09::{number}")]);
        host.within(|| Offloads::turn_off(end).unwrap().keep()).unwrap();
    }

    /// A router goes between them.
    pub fn with(self, router: Router) -> Lab {
        let Self { a, b, middle } = self;
        Lab { router, a, b, middle }
    }
}

/// Sends by TCP from a to b, and the bytes that b has read back to a.
pub fn echo([a, b]: [&Namespace; 2], address: &str, bytes: &[u8]) -> Vec<u8> {
    let listener = b.within(|| TcpListener::bind(address).unwrap()).unwrap();
    let timeout = Some(Duration::from_secs(90));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(timeout).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let mut stream = a.within(|| TcpStream::connect(address).unwrap()).unwrap();
        stream.set_read_timeout(timeout).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        back
    })
}

/// Arrivals, with their delays on the way.
pub struct Arrivals {
    pub bytes: u64,
    pub first: Instant,
    pub last: Instant,
    pub delays_ms: Vec<f64>,
}

impl Arrivals {
    pub fn median_delay_ms(&mut self) -> f64 {
        self.delays_ms.sort_by(f64::total_cmp);
        self.delays_ms[self.delays_ms.len() / 2]
    }
}

/// Sends datagrams that say when they left, for this time.
pub fn send(socket: UdpSocket, size: usize, every: Duration, for_long: Duration) -> JoinHandle<()> {
    send_while(socket, size, every, move |elapsed| elapsed < for_long)
}

/// Sends datagrams that say when they left, while the condition for the time since the first one holds.
pub fn send_while(
    socket: UdpSocket,
    size: usize,
    every: Duration,
    goes_on: impl Fn(Duration) -> bool + Send + 'static,
) -> JoinHandle<()> {
    spawn(move || {
        let mut payload = vec![0; size];
        let (start, mut next) = (std::time::Instant::now(), Duration::ZERO);
        while goes_on(start.elapsed()) {
            // Late datagrams are sent at once, so that the rate holds on a busy machine.
            sleep(next.saturating_sub(start.elapsed()));
            next += every;
            payload[..8].copy_from_slice(&now().as_nanos().to_be_bytes());
            let _lost = socket.send(&payload);
        }
    })
}

/// A thread that receives.
pub struct Receiving {
    all_sent: Arc<AtomicBool>,
    thread: JoinHandle<Arrivals>,
}

impl Receiving {
    /// Returns the arrivals, when nothing more arrives. By the time of this call, all is sent.
    pub fn join(self) -> std::thread::Result<Arrivals> {
        self.all_sent.store(true, Ordering::Relaxed);
        self.thread.join()
    }
}

/// Receives until all is sent, however long the sender or the router has no turn, and nothing more arrives.
pub fn receive(socket: UdpSocket) -> Receiving {
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let all_sent = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&all_sent);
    let thread = spawn(move || {
        let mut arrivals = Arrivals { bytes: 0, first: now(), last: now(), delays_ms: Vec::new() };
        let mut buffer = [0; 2000];
        loop {
            let was_all_sent = is_over.load(Ordering::Relaxed);
            let length = match socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(_) if was_all_sent => return arrivals,
                Err(_) => continue,
            };
            let (at, sent) = (now(), u64::from_be_bytes(*buffer.first_chunk().unwrap()));
            if arrivals.bytes == 0 {
                arrivals.first = at;
            }
            // IPv4 and UDP headers.
            arrivals.bytes += length as u64 + 28;
            arrivals.last = at;
            arrivals.delays_ms.push((at - Instant::from_nanos(sent)).as_millis_f64());
        }
    });
    Receiving { all_sent, thread }
}

/// Sends so many numbered datagrams in bursts of 20, 20 ms apart.
pub fn send_bursts(socket: UdpSocket, count: u32) -> JoinHandle<()> {
    spawn(move || {
        for number in 0..count {
            if number % 20 == 0 {
                sleep(Duration::from_millis(20));
            }
            send_number(&socket, number);
        }
    })
}

fn send_number(socket: &UdpSocket, number: u32) {
    let mut payload = [0; 1000];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    socket.send(&payload).unwrap();
}

/// The received numbers, until the last one of so many arrives, or nothing does.
pub fn receive_numbers(socket: UdpSocket, count: u32) -> JoinHandle<Vec<u32>> {
    // The receiver may be kept waiting for longer than its usual buffer lasts.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 8 << 20).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    spawn(move || {
        let (mut numbers, mut buffer) = (Vec::new(), [0; 2000]);
        while numbers.last() != Some(&(count - 1)) && socket.recv(&mut buffer).is_ok() {
            numbers.push(u32::from_be_bytes(*buffer.first_chunk().unwrap()));
        }
        numbers
    })
}

/// A router is stopped while datagrams come, so that many are due when it continues, more than a port sends with one call:
/// each crosses once, in its turn.
pub fn assert_a_backlog_crosses([from, to]: [UdpSocket; 2], router: &mut Router) {
    const DATAGRAMS: u32 = 300;
    let numbers = receive_numbers(to, DATAGRAMS);
    router.signal(Signal::STOP);
    (0..DATAGRAMS).for_each(|number| send_number(&from, number));
    router.signal(Signal::CONT);
    let numbers = numbers.join().unwrap();
    assert!(
        numbers.iter().copied().eq(0..DATAGRAMS),
        "of {DATAGRAMS} datagrams these came: {numbers:?}; the router counted {:#}",
        router.end().1
    );
}

pub fn packets(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} is in {document}"))
}

/// received = sent + dropped + queued.
pub fn assert_sums(document: &Value, direction: &str) {
    let at = |path: &str| packets(document, &format!("/{direction}/{path}"));
    let losses = ["early", "overflow", "oversize", "runt", "unsent", "memory"];
    let dropped: u64 = losses.iter().map(|loss| at(&format!("dropped/{loss}/packets"))).sum();
    assert_eq!(at("received/packets"), at("sent/packets") + dropped + at("queued_packets"), "{document}");
}
