//! The test bed: two hosts and a machine between them, which forwards by the kernel, by the router, or not at all.
//!
//! ```text
//! host a          middle            host b
//! a0 ════════ p0  forwards  p1 ════════ b0
//! ```
//!
//! Frames are sent and received by packet sockets, so that no transport affects the measurements. Host b has no
//! address; its kernel drops received frames at once.

use cutline_ports::{PacketPort, PortError};
use cutline_sys::SysError;
use cutline_sys::namespace::{Namespace, sweep};
use cutline_sys::thread::{Scheduling, set_realtime};
use cutline_testbed::KilledChild;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Carrier of frames from `p0` to `p1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// None: the middle machine drops them where the others take them up.
    Nobody,
    /// The kernel's IPv4 forwarding.
    Kernel,
    /// `cutline router`.
    Router,
}

/// The namespaces.
pub struct Bed {
    a: Namespace,
    b: Namespace,
    middle: Namespace,
}

/// A router at work; killed when it is dropped.
pub struct Router(KilledChild);

/// An unassigned unicast address: the host ignores frames to it.
pub const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
/// The address of `p0`.
pub const GATEWAY: [u8; 6] = [2, 0, 0, 0, 0, 0x10];

impl Bed {
    pub fn new() -> Result<Self, SysError> {
        sweep()?;
        let [a, b, middle] = ["a", "b", "m"].map(|host| Namespace::create(&format!("bench{host}")));
        let bed = Self { a: a?, b: b?, middle: middle? };
        let Self { a, b, middle } = &bed;
        for host in [a, b, middle] {
            // Neighbour and router discovery would be counted with the load.
            write(host, "ipv6/conf/all/disable_ipv6", "1")?;
            write(host, "ipv6/conf/default/disable_ipv6", "1")?;
        }
        for (host, end, port) in [(a, "a0", "p0"), (b, "b0", "p1")] {
            host.ip(&["link", "add", end, "type", "veth", "peer", "name", port, "netns", middle.name()])?;
            host.ip(&["link", "set", end, "up"])?;
        }
        middle.ip(&["link", "set", "p0", "address", "02:00:00:00:00:10"])?;
        for (port, address) in [("p0", "10.8.1.1/24"), ("p1", "10.8.2.1/24")] {
            middle.ip(&["address", "add", address, "dev", port])?;
            middle.ip(&["link", "set", port, "up"])?;
        }
        let neighbour = ["neighbour", "add", "10.8.2.2", "lladdr", "02:00:00:00:00:99", "dev", "p1"];
        middle.ip(&neighbour)?;
        write(middle, "ipv4/conf/all/rp_filter", "0")?;
        Ok(bed)
    }

    /// Sets whether the kernel forwards.
    pub fn forward(&self, is_on: bool) -> Result<(), SysError> {
        write(&self.middle, "ipv4/ip_forward", if is_on { "1" } else { "0" })
    }

    pub fn source(&self) -> Result<PacketPort, PortError> {
        self.a.within(|| PacketPort::open("a0"))?
    }

    pub fn sink(&self) -> Result<PacketPort, PortError> {
        self.b.within(|| PacketPort::open("b0"))?
    }

    /// Frames that have left by `p1`.
    pub fn carried(&self) -> Result<u64, SysError> {
        self.middle.within(|| {
            let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
            let line = table.lines().find_map(|line| line.trim().strip_prefix("p1:"));
            // After eight columns of received traffic come the bytes sent.
            line.and_then(|line| line.split_whitespace().nth(9)?.parse().ok()).unwrap_or(0)
        })
    }

    /// Starts `cutline router` with these options, and waits until it works.
    pub fn router(&self, options: &[&str]) -> Result<Router, SysError> {
        let start = || {
            // The router inherits both from the thread that starts it.
            pin(ROUTERS_CORE);
            // A thread of this kind that never sleeps would be stopped by the kernel for 50 ms of every second.
            if !options.contains(&"--spin") {
                assert_eq!(set_realtime(), Scheduling::Realtime, "root may have priority");
            }
            Command::new(env!("CARGO_BIN_EXE_cutline"))
                // An end of its own, should the bench be killed.
                .args(["router", "--in", "p0", "--out", "p1", "--json", "--duration", "60s"])
                .args(options)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("cargo has built the command")
        };
        let mut child = self.middle.within(start)?;
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        drop(stderr.read_line(&mut line));
        assert!(line.starts_with("routing"), "the router has not started: {line}");
        child.stderr = Some(stderr.into_inner());
        Ok(Router(KilledChild(child)))
    }
}

impl Router {
    pub fn process(&self) -> u32 {
        self.0.id()
    }

    /// Ends the process. Returns its counters.
    pub fn end(mut self) -> Value {
        // Taken frames must have left, or they would be counted as queued.
        sleep(Duration::from_millis(20));
        let asked = kill_process(Pid::from_child(&self.0), Signal::TERM);
        assert!(asked.is_ok(), "the router has ended of itself");
        let mut text = String::new();
        drop(self.0.stdout.take().expect("it is piped").read_to_string(&mut text));
        drop(self.0.wait());
        serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default()
    }
}

/// Core on which load is made and received.
pub const LOADS_CORE: usize = 0;
/// Core of the router: a router that woke up on the load's core would stop it for every frame.
const ROUTERS_CORE: usize = 1;

/// Keeps this thread and its children on a core, where there are several.
pub fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // With a single core, or fewer to choose from, they share what there is.
    let _shared = sched_setaffinity(None, &cores);
}

/// Sets a switch of the network under /proc/sys/net.
fn write(host: &Namespace, switch: &str, value: &str) -> Result<(), SysError> {
    let path = format!("/proc/sys/net/{switch}");
    // A kernel without IPv6 has none of its switches, and needs none.
    host.within(|| std::fs::write(&path, value)).map(drop)
}

/// CPU time of a process with one thread that works, ns.
pub fn cpu_nanos(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

/// CPU time of the kernel's threads that do deferred work of senders, ns.
pub fn softirq_nanos() -> u64 {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_softirq = |process: &u32| {
        std::fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.starts_with("ksoftirqd/"))
    };
    numbers.filter(is_softirq).map(cpu_nanos).sum()
}
