//! A call through two gateways and a router, watched by a monitor:
//!
//! ```text
//! host a                     middle         host b
//! call ─ near gateway ═ a0 ══ p0 router p1 ══ b0 ═ far gateway ─ screen
//! ```
//!
//! The call has 50 datagrams a second, with a limit of 100 ms and of 2 % loss.

use super::{Hosts, Lab, Router, send_while};
use cutline_sys::namespace::Namespace;
use cutline_testbed::KilledChild;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Time that an event may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The network with a monitor, a router that publishes, and a call through both gateways.
pub struct Bed {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    _monitor: KilledChild,
    _near: KilledChild,
    far: KilledChild,
    pub lab: Lab,
    pub folder: tempfile::TempDir,
}

/// Differences from a bed without a fault before the call begins.
pub struct Plan<'p> {
    pub label: &'p str,
    /// Arguments of the monitor.
    pub monitor: &'p [&'p str],
    /// Arguments of the router.
    pub router: &'p [&'p str],
    /// Arguments of the near gateway.
    pub near: &'p [&'p str],
    /// Arguments of the far gateway.
    pub far: &'p [&'p str],
    /// Port to which the near gateway connects, at this host; none for the far gateway itself.
    pub through: Option<u16>,
}

/// A bed without a fault.
pub const PLAN: Plan<'static> = Plan {
    label: "e",
    monitor: &[],
    router: &["--rate", "5Mbit"],
    near: &["--hint", "3"],
    far: &[],
    through: None,
};

impl Bed {
    pub fn new(plan: &Plan<'_>) -> Option<Self> {
        let hosts = Hosts::new(plan.label)?;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let publish = path("publish.sock");
        let sockets = ["--publish-socket", &publish, "--socket", &path("monitor.sock")];
        let mut monitor =
            command(&publish, &[&["monitor", "--listen", "off"][..], &sockets, plan.monitor].concat());
        let monitor = until_line(monitor.spawn().unwrap(), "programs publish to");
        let arguments = [&["--in", "p0", "--out", "p1"][..], plan.router].concat();
        let router = Router::spawn(&hosts.middle, &arguments, &[("CUTLINE_PUBLISH", &publish)]);
        let lab = hosts.with(router);
        assert!(lab.is_crossed(false, 4999), "the hosts know each other");
        let far = ["gateway", "far", "--udp", "10.9.0.2:6000=127.0.0.1:5001"];
        let far = started(&lab.b, command(&publish, &[&far[..], plan.far].concat()), "udp ");
        let to = plan.through.map_or("10.9.0.2:6000".to_owned(), |port| format!("127.0.0.1:{port}"));
        let route = format!("127.0.0.1:5000={to}");
        let near =
            ["gateway", "near", "--udp", &route, "--set", "send.max-delay=100ms", "--set", "send.loss=2"];
        let near = started(&lab.a, command(&publish, &[&near[..], plan.near].concat()), "udp ");
        let bed = Self {
            threads: Vec::new(),
            stop: Arc::default(),
            _monitor: monitor,
            _near: near,
            far,
            lab,
            folder,
        };
        Some(bed)
    }

    /// Begins the call, and waits until both ends have agreed and have measured for a while.
    pub fn call(&mut self) {
        let screen = self.lab.b.within(|| UdpSocket::bind("127.0.0.1:5001").unwrap()).unwrap();
        screen.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        self.work(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                let _none = screen.recv(&mut [0; 2000]);
            }
        });
        let source = self.lab.a.within(|| UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        source.connect("127.0.0.1:5000").unwrap();
        self.send(source, 200, Duration::from_millis(20));
        let end = Instant::now() + PATIENCE;
        let is_measured = |document: &Value| {
            document["sockets"].as_array().is_some_and(|sockets| {
                sockets.len() == 2 && sockets.iter().all(|socket| socket["state"] == "agreed")
            }) && document["routers"].as_array().is_some_and(|routers| routers.len() == 1)
        };
        loop {
            let document = self.ask(&["top", "--once", "--json"]);
            if is_measured(&document) {
                break;
            }
            assert!(Instant::now() < end, "{document:#}");
            // Polls.
            sleep(Duration::from_millis(200));
        }
        // Some intervals of the call alone.
        sleep(Duration::from_secs(2));
    }

    /// Ends the call and all loads.
    pub fn quiet(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Ends the far gateway in order.
    pub fn end_far(&mut self) {
        kill_process(Pid::from_child(&self.far.0), Signal::TERM).unwrap();
        self.far.0.wait().unwrap();
    }

    pub fn work(&mut self, work: impl FnOnce(&AtomicBool) + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(spawn(move || work(&stop)));
    }

    pub fn send(&mut self, socket: UdpSocket, size: usize, every: Duration) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(send_while(socket, size, every, move |_| !stop.load(Ordering::Relaxed)));
    }

    /// Datagrams of 1000 B from a to b, one each so often. They are not read, and the kernel drops those that do not fit.
    pub fn flood(&mut self, port: u16, every: Duration) {
        let [source, sink] = self.lab.sockets(false, port);
        self.send(source, 972, every);
        self.work(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                let _none = sink.recv(&mut [0; 2000]);
            }
        });
    }

    /// A video from a to b: 25 pictures a second, of 4 datagrams of 1000 B each, and of 16 once a second.
    pub fn video(&mut self, port: u16) {
        let [source, sink] = self.lab.sockets(false, port);
        self.work(move |stop| {
            let (start, mut pictures) = (Instant::now(), 0);
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..if pictures % 25 == 0 { 16 } else { 4 } {
                    let _lost = source.send(&[0; 972]);
                }
                pictures += 1;
                sleep((Duration::from_millis(40) * pictures).saturating_sub(start.elapsed()));
            }
        });
        self.work(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                let _none = sink.recv(&mut [0; 2000]);
            }
        });
    }

    /// Flows of datagrams from another host beside a: 50 datagrams of 1000 B a second each.
    pub fn many(&mut self, host: &'static str, flows: u16) {
        let open = |number| UdpSocket::bind((host, 7000 + number)).unwrap();
        let sockets: Vec<UdpSocket> = self.lab.a.within(|| (0..flows).map(open).collect()).unwrap();
        let sink = self.lab.b.within(|| UdpSocket::bind("10.9.0.2:7000").unwrap()).unwrap();
        for socket in &sockets {
            socket.connect("10.9.0.2:7000").unwrap();
        }
        self.work(move |stop| {
            let _sink = sink;
            let (start, mut rounds) = (Instant::now(), 0);
            while !stop.load(Ordering::Relaxed) {
                for socket in &sockets {
                    let _lost = socket.send(&[0; 972]);
                }
                rounds += 1;
                sleep((Duration::from_millis(20) * rounds).saturating_sub(start.elapsed()));
            }
        });
    }

    /// A transfer by TCP from a to b that never ends.
    pub fn transfer(&mut self, port: u16) {
        let at: SocketAddr = format!("10.9.0.2:{port}").parse().unwrap();
        let listener = self.lab.b.within(|| TcpListener::bind(at).unwrap()).unwrap();
        let stream = self.lab.a.within(|| connected("10.9.0.1:0".parse().unwrap(), at)).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let (mut read, _) = listener.accept().unwrap();
        read.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        self.work(move |stop| {
            let mut buffer = vec![0; 65536];
            while !stop.load(Ordering::Relaxed) {
                let _none = read.read(&mut buffer);
            }
        });
        self.work(move |stop| {
            let (mut stream, bytes) = (stream, vec![7; 65536]);
            while !stop.load(Ordering::Relaxed) {
                let _full = stream.write(&bytes);
            }
        });
    }

    /// The answer of a command to the monitor, run in the namespace of the router.
    pub fn ask(&self, arguments: &[&str]) -> Value {
        let socket = self.folder.path().join("monitor.sock");
        let arguments = [arguments, &["--socket", socket.to_str().unwrap()]].concat();
        let mut command = command("off", &arguments);
        let output = self.lab.middle.within(|| command.output().unwrap()).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.quiet();
    }
}

pub fn command(publish: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
    command.args(arguments).env("CUTLINE_PUBLISH", publish);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn started(host: &Namespace, mut command: Command, line: &str) -> KilledChild {
    until_line(host.within(|| command.spawn().unwrap()).unwrap(), line)
}

/// Reads messages up to one with this text; further ones are read and forgotten.
pub fn until_line(mut process: Child, text: &str) -> KilledChild {
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let process = KilledChild(process);
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains(text))), "it has ended without `{text}`");
    spawn(move || lines.count());
    process
}

pub fn connected(from: SocketAddr, to: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &from).unwrap();
    connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// Runs a program in a namespace; false if it is missing or fails.
pub fn run(host: &Namespace, program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    host.within(|| command.status().is_ok_and(|status| status.success())).unwrap()
}

/// Makes an interface slow: frames that it cannot send wait, or are dropped.
pub fn slow(host: &Namespace, interface: &str, tbf: &[&str]) {
    let arguments = [&["qdisc", "add", "dev", interface, "root", "tbf"][..], tbf].concat();
    assert!(run(host, "tc", &arguments), "tc {arguments:?}");
}
