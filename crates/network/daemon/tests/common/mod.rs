//! A network of namespaces with an agent in each.
//!
//! ```text
//!       10.1.1.0/24       10.1.2.0/24       10.1.4.0/24
//! a ---------------- r1 ------------- r2 ------------- b
//!                     \--------------- r3 ------------/
//!                       10.1.3.0/24       10.1.5.0/24
//! ```
//!
//! Packets from `a` go to 10.9.9.9, an address of `b` itself, by `r2`, until a test changes the route.

use cutline_flow::TrafficSpec;
use cutline_provision::protocol::{Reply, Request, Senders};
use cutline_provision::status::Status;
use cutline_provision::{DaemonClient, Flow, TransportProtocol};
use cutline_service::JsonLineError;
use cutline_sys::namespace::Namespace;
use cutline_sys::now;
use cutline_testbed::{may_make_namespaces, patiently};
use cutline_units::{Bytes, Duration, Rate};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub const NODES: [&str; 5] = ["a", "r1", "r2", "r3", "b"];
pub const A: &str = "10.1.1.1";
pub const B: &str = "10.9.9.9";

/// The end of a link: node, interface, address.
type End = (&'static str, &'static str, &'static str);

/// The ends of the links: node, interface, address, neighbour's node and interface.
const LINKS: [(End, End); 5] = [
    (("a", "eth0", "10.1.1.1/24"), ("r1", "west", "10.1.1.2/24")),
    (("r1", "east", "10.1.2.1/24"), ("r2", "west", "10.1.2.2/24")),
    (("r1", "south", "10.1.3.1/24"), ("r3", "west", "10.1.3.2/24")),
    (("r2", "east", "10.1.4.1/24"), ("b", "eth0", "10.1.4.2/24")),
    (("r3", "east", "10.1.5.1/24"), ("b", "eth1", "10.1.5.2/24")),
];

const ROUTES: [(&str, &str); 5] = [
    ("a", "route add default via 10.1.1.2"),
    (
        "r1",
        "route add 10.9.9.9 via 10.1.2.2\nroute add 10.1.4.0/24 via 10.1.2.2\nroute add 10.1.5.0/24 via 10.1.3.2",
    ),
    ("r2", "route add 10.9.9.9 via 10.1.4.2\nroute add 10.1.1.0/24 via 10.1.2.1"),
    ("r3", "route add 10.9.9.9 via 10.1.5.2\nroute add 10.1.1.0/24 via 10.1.3.1"),
    ("b", "address add 10.9.9.9/32 dev lo\nroute add default via 10.1.4.1"),
];

pub struct Net {
    pub namespaces: Vec<Namespace>,
    pub folder: TempDir,
    pub agents: Vec<Option<Child>>,
    /// Content of the files before their tables.
    pub root: &'static str,
    /// Content of the files beside the interfaces.
    pub rsvp: &'static str,
    /// Content about each interface.
    pub interface: String,
    pub rate: &'static str,
    /// The nodes whose agents control the traffic. All do at first.
    pub controlled: Vec<&'static str>,
    /// True if the files have an entry for each version of IP, with the same keys.
    pub both_versions: bool,
    /// Interfaces, by node and name, of which the files say this instead.
    pub others: BTreeMap<(&'static str, &'static str), String>,
}

impl Net {
    /// Makes the network; none if this process may not.
    pub fn new(label: &str, command: &str) -> Option<Self> {
        may_make_namespaces(command).then_some(())?;
        let namespaces: Vec<Namespace> =
            NODES.iter().map(|node| Namespace::create(&format!("{label}{node}")).unwrap()).collect();
        let this = Self {
            namespaces,
            folder: tempfile::tempdir().unwrap(),
            agents: NODES.iter().map(|_| None).collect(),
            root: "",
            rsvp: "refresh = '500 ms'",
            interface: String::new(),
            rate: "10 Mbit/s",
            controlled: NODES.to_vec(),
            both_versions: false,
            others: BTreeMap::new(),
        };
        for ((one, one_name, one_address), (other, other_name, other_address)) in LINKS {
            let peer = this.node(other).name().to_owned();
            let command = format!("link add {one_name} type veth peer name {other_name} netns {peer}");
            this.node(one).ip_batch(&command).unwrap();
            for (node, name, address) in [(one, one_name, one_address), (other, other_name, other_address)] {
                this.node(node)
                    .ip_batch(&format!("address add {address} dev {name}\nlink set {name} up"))
                    .unwrap();
            }
        }
        for (node, routes) in ROUTES {
            this.node(node).ip_batch(routes).unwrap();
        }
        for node in NODES {
            this.node(node)
                .within(|| {
                    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
                    std::fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "0").unwrap();
                })
                .unwrap();
        }
        Some(this)
    }

    pub fn at(node: &str) -> usize {
        NODES.iter().position(|other| *other == node).expect("a node of the network")
    }

    pub fn node(&self, node: &str) -> &Namespace {
        &self.namespaces[Self::at(node)]
    }

    pub fn socket(&self, node: &str) -> PathBuf {
        self.folder.path().join(format!("{node}.sock"))
    }

    /// Writes the file of a node's agent.
    pub fn describe(&self, node: &str) -> PathBuf {
        let (socket, root, rsvp) = (self.socket(node), self.root, self.rsvp);
        let mut text = format!("socket = '{}'\n{root}\n[rsvp]\n{rsvp}\n", socket.display());
        let control = if self.controlled.contains(&node) { "tc" } else { "none" };
        for (one, other) in LINKS {
            for (_, name, _) in [one, other].into_iter().filter(|(its, _, _)| *its == node) {
                let usual = || {
                    format!("rate = '{}'\nshare = 0.5\ncontrol = '{control}'\n{}", self.rate, self.interface)
                };
                let says = self.others.get(&(node, name)).cloned().unwrap_or_else(usual);
                write!(text, "[[interface]]\nname = '{name}'\n{says}\n").unwrap();
                if self.both_versions {
                    write!(text, "[[interface]]\nname = '{name}'\nversion = 6\n{says}\n").unwrap();
                }
            }
        }
        let path = self.folder.path().join(format!("{node}.toml"));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Starts a node's agent, and waits until it answers.
    pub fn start(&mut self, node: &str) {
        let file = self.describe(node);
        let child = Command::new("ip")
            .args(["netns", "exec", self.node(node).name(), env!("CARGO_BIN_EXE_cutlined"), "--config"])
            .arg(file)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        self.agents[Self::at(node)] = Some(child);
        let socket = self.socket(node);
        eventually("the agent answers", || DaemonClient::connect(&socket).is_ok());
    }

    pub fn start_all(&mut self) {
        for node in NODES {
            self.start(node);
        }
    }

    /// Ends a node's agent with a signal, and waits for it. `ip netns exec` has become the agent.
    pub fn end(&mut self, node: &str, signal: Signal) {
        let mut child = self.agents[Self::at(node)].take().expect("it runs");
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
    }

    /// Returns the process of a node's agent.
    pub fn process(&self, node: &str) -> Pid {
        Pid::from_child(self.agents[Self::at(node)].as_ref().expect("it runs"))
    }

    pub fn client(&self, node: &str) -> DaemonClient {
        patiently(|| DaemonClient::connect(&self.socket(node)), JsonLineError::is_late).unwrap()
    }

    pub fn status(&self, node: &str) -> Status {
        self.client(node).status(PATIENCE).unwrap()
    }

    /// Returns the reserved rate on an interface, bit/s.
    pub fn reserved(&self, node: &str, interface: &str) -> u64 {
        let status = self.status(node);
        let found = status.interfaces.iter().find(|its| its.name == interface).unwrap();
        found.reserved_bps.unwrap()
    }

    /// Sets up a reservation of 1 Mbit/s from `a` to `b`, which is confirmed. Returns the clients.
    pub fn set_up(&self, port: u16) -> (DaemonClient, DaemonClient) {
        let (mut sender, mut receiver) = (self.client("a"), self.client("b"));
        sender.send(&announce(1, port, 1_000_000)).unwrap();
        receiver.send(&reserve(2, port, 1_000_000)).unwrap();
        hear(&mut receiver, |reply| matches!(reply, Reply::Confirmed { id: 2, .. }));
        (sender, receiver)
    }

    /// The disciplines and classes of a node's interface, as `tc` shows them.
    pub fn tc(&self, node: &str, what: &str, interface: &str) -> String {
        let output = Command::new("tc")
            .args(["-n", self.node(node).name(), "-s", what, "show", "dev"])
            .args(interface.split(' '))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the number of classes of reservations.
    pub fn classes(&self, node: &str, interface: &str) -> usize {
        let fixed = ["c071:1", "c071:2", "c071:3"];
        let is_reservation = |line: &&str| {
            let class = line.strip_prefix("class htb ").and_then(|rest| rest.split(' ').next());
            class.is_some_and(|class| !fixed.contains(&class))
        };
        self.tc(node, "class", interface).lines().filter(is_reservation).count()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for child in self.agents.iter_mut().flatten() {
            let _ended_before = kill_process(Pid::from_child(child), Signal::KILL);
            drop(child.wait());
        }
    }
}

/// Time that a test waits for an event, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until something holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = now() + PATIENCE;
    while !holds() {
        assert!(now() < until, "{what}: it does not after {PATIENCE}");
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}

pub fn flow(port: u16) -> Flow {
    let address = |ip: &str, port: u16| SocketAddr::new(ip.parse().unwrap(), port);
    Flow { transport: TransportProtocol::Udp, source: address(A, port), destination: address(B, port) }
}

pub fn bucket(rate_bps: u64) -> TrafficSpec {
    TrafficSpec {
        rate: Rate::from_bps(rate_bps),
        bucket: Bytes::new(10_000),
        peak: Rate::from_bps(10 * rate_bps),
        min_policed: Bytes::new(100),
        max_packet: Bytes::new(1500),
    }
}

pub fn announce(id: u64, port: u16, rate_bps: u64) -> Request {
    Request::Announce { id, flow: flow(port), bucket: bucket(rate_bps) }
}

pub fn reserve(id: u64, port: u16, rate_bps: u64) -> Request {
    let Flow { transport, source, destination } = flow(port);
    let senders = Senders::Fixed { senders: vec![source] };
    Request::Reserve { id, transport, destination, senders, bucket: bucket(rate_bps), confirm: true }
}

/// Waits for a reply that a client gets, and returns it.
pub fn hear(client: &mut DaemonClient, mut wanted: impl FnMut(&Reply) -> bool) -> Reply {
    let until = now() + PATIENCE;
    let mut heard = Vec::new();
    loop {
        let left = until.saturating_since(now());
        match client.reply(left).unwrap() {
            Some(reply) if wanted(&reply) => return reply,
            Some(reply) => heard.push(reply),
            None => panic!("it has not come; heard: {heard:?}"),
        }
    }
}
