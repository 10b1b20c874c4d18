//! The nodes of a scenario's graph as network namespaces, its links as wires between them, and the kernel's routes.
//!
//! ```text
//! ws1 ──┐                        ┌── ws0      each link has a network 10.0.N.0/24 of its own
//!       r1 ═══ serial line ═══ r0             a node with more than one link forwards
//! pc1 ──┘                        └── pc0
//! ```
//!
//! Each end of a link is a virtual pair, from the node to a namespace with all wires.
//!
//! The first node of a link in the file has the address 10.0.N.1 there, the second 10.0.N.2. A node is known to applications by
//! its address at its first link. Routes lead over the fewest links.

use super::wire::{Line, Wire};
use crate::LabError;
use cutline_scenario::Scenario;
use cutline_scenario::spec::{GraphLinkSpec, GraphSpec, Topology};
use cutline_sys::Offloads;
use cutline_sys::namespace::Namespace;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicU32, Ordering};

/// The most links in both directions: each has a network of its own.
const MOST_PAIRS: usize = 250;
/// The longest name of a node: that of the interface towards it has three characters more, and an interface's has 15 at most.
const LONGEST_NAME: usize = 12;

/// Kernel parameters of every node's namespace. TCP is that of the kernel, with the congestion control that
/// the testbed's systems had.
const PARAMETERS: [(&str, &str); 8] = [
    ("net.ipv4.tcp_congestion_control", "reno"),
    ("net.ipv4.tcp_timestamps", "0"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.send_redirects", "0"),
    ("net.ipv6.conf.all.disable_ipv6", "1"),
    ("net.ipv6.conf.default.disable_ipv6", "1"),
];

/// Plan of the network: the addresses, and the next hops.
#[derive(Clone, Debug)]
pub struct Map {
    nodes: Vec<String>,
    /// The two ends of each pair of links, by their index in `nodes`.
    pairs: Vec<[usize; 2]>,
}

/// The ends of a flow.
#[derive(Clone, Debug)]
pub struct Ends {
    /// The nodes.
    pub from: String,
    pub to: String,
    /// The nodes of the gateways, between which there is a reservation; `None` without gateways.
    pub gateways: [String; 2],
    /// Addresses of the reservation: of the flow, or of the connection between its gateways. Port 0 is any port.
    pub source: SocketAddrV4,
    pub sink: SocketAddrV4,
    /// Address at which a program that sends over gateways listens.
    pub program: SocketAddr,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attachment {
    pair: usize,
    peer: usize,
    own: Ipv4Addr,
    of_peer: Ipv4Addr,
}

impl Map {
    /// Plans the network of a scenario.
    ///
    /// # Errors
    /// When the laboratory with routers cannot have it.
    pub fn new(scenario: &Scenario) -> Result<Self, LabError> {
        let refuse = |place: String, what, instead| Err(LabError::NoRouters { place, what, instead });
        let Topology::Graph(graph) = &scenario.topology else {
            return refuse("dumbbell".to_owned(), "a dumbbell", "use [[node]] and [[link]]");
        };
        if let Some(node) = graph.nodes.iter().find(|node| node.name.len() > LONGEST_NAME) {
            return refuse(
                format!("node {}", node.name),
                "a name of more than 12 characters",
                "use a shorter one",
            );
        }
        for link in &graph.links {
            let refuse = |what, instead| refuse(format!("link {}", link.name), what, instead);
            if !link.rate_changes.is_empty() {
                return refuse("a rate that changes", "leave rate-changes and rate-trace out");
            } else if link.impairment.is_some() {
                return refuse(
                    "an impairment",
                    "leave impairment out, or use `cutline lab run` or `cutline run`",
                );
            } else if link.aal5.is_some() {
                return refuse("cells of ATM", "leave aal5 out, or use `cutline lab run` or `cutline run`");
            } else if !is_drop_tail(link) {
                return refuse(
                    "a queue other than drop-tail with a limit in bytes",
                    "set queue = { aqm = \"drop-tail\", limit = \"116 KB\" }",
                );
            } else if !has_reverse(graph, link) {
                return refuse("one direction only", "leave both-ways out");
            }
        }
        let nodes: Vec<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
        let index =
            |name: &str| nodes.iter().position(|node| node == name).expect("links join nodes of the graph");
        let mut pairs: Vec<[usize; 2]> = Vec::new();
        for link in &graph.links {
            let ends = [index(&link.from), index(&link.to)];
            if !pairs.contains(&[ends[1], ends[0]]) {
                pairs.push(ends);
            }
        }
        if pairs.len() > MOST_PAIRS {
            return refuse("link".to_owned(), "more than 250 links", "use fewer");
        }
        Ok(Self { nodes, pairs })
    }

    /// The address by which applications know a node.
    pub fn address(&self, node: &str) -> Ipv4Addr {
        let attachment = self.attachments(self.index(node)).next();
        attachment.expect("a flow's node has a link").own
    }

    /// The name of a node's interface towards another.
    pub fn interface(towards: &str) -> String {
        format!("to-{towards}")
    }

    /// The addresses of both ends of a link, that of `from` first.
    #[cfg(test)]
    fn ends(&self, from: &str, to: &str) -> Option<[Ipv4Addr; 2]> {
        let to = self.index(to);
        self.attachments(self.index(from)).find(|at| at.peer == to).map(|at| [at.own, at.of_peer])
    }

    fn index(&self, node: &str) -> usize {
        self.nodes.iter().position(|other| other == node).expect("a flow's nodes are those of the graph")
    }

    fn attachments(&self, node: usize) -> impl Iterator<Item = Attachment> + '_ {
        let at = move |(pair, ends): (usize, &[usize; 2])| {
            let end = ends.iter().position(|end| *end == node)?;
            let address = |end: usize| Ipv4Addr::new(10, 0, pair as u8 + 1, end as u8 + 1);
            Some(Attachment { pair, peer: ends[1 - end], own: address(end), of_peer: address(1 - end) })
        };
        self.pairs.iter().enumerate().filter_map(at)
    }

    /// The networks to which a node has no link, with the address of the next node on the route. A network is at the nearer of
    /// its two nodes.
    fn routes(&self, node: usize) -> Vec<(usize, Ipv4Addr)> {
        let own: BTreeSet<usize> = self.attachments(node).map(|at| at.pair).collect();
        let mut next: BTreeMap<usize, Ipv4Addr> = BTreeMap::new();
        let mut found: BTreeMap<usize, Ipv4Addr> = BTreeMap::new();
        let mut edge = VecDeque::from([node]);
        while let Some(at) = edge.pop_front() {
            for attachment in self.attachments(at) {
                let via = next.get(&at).copied().unwrap_or(attachment.of_peer);
                if at != node && !own.contains(&attachment.pair) {
                    found.entry(attachment.pair).or_insert(via);
                }
                if attachment.peer != node && !next.contains_key(&attachment.peer) {
                    next.insert(attachment.peer, via);
                    edge.push_back(attachment.peer);
                }
            }
        }
        found.into_iter().collect()
    }

    /// Returns the commands of `ip` for a node whose interfaces exist.
    fn configuration(&self, node: usize) -> String {
        let mut lines = String::new();
        for Attachment { peer, own, .. } in self.attachments(node) {
            let interface = Self::interface(&self.nodes[peer]);
            writeln!(lines, "address add {own}/24 dev {interface}\nlink set {interface} up")
                .expect("a string takes whatever is written");
        }
        for (pair, via) in self.routes(node) {
            writeln!(lines, "route add 10.0.{}.0/24 via {via}", pair + 1)
                .expect("a string takes whatever is written");
        }
        lines
    }
}

fn is_drop_tail(link: &GraphLinkSpec) -> bool {
    let queue = &link.queue;
    queue.aqm.name() == "drop-tail"
        && queue.tsq.is_none()
        && matches!(queue.limit, cutline_aqm::Limit::Bytes(_))
}

fn has_reverse(graph: &GraphSpec, link: &GraphLinkSpec) -> bool {
    graph.links.iter().any(|other| (&other.from, &other.to) == (&link.to, &link.from))
}

/// The nodes of a run; they are removed when this is dropped.
#[derive(Debug)]
pub struct Nodes {
    /// By name.
    namespaces: BTreeMap<String, Namespace>,
    /// The nodes to which each node has a link.
    neighbours: BTreeMap<String, Vec<String>>,
    /// Namespace of the wires between the nodes.
    wires: Namespace,
}

/// Name of the interface at an end of a wire: 0 or 1.
fn wire(pair: usize, end: usize) -> String {
    format!("wire{pair}-{end}")
}

impl Nodes {
    /// Makes them, with addresses, routes and forwarding.
    ///
    /// # Errors
    /// When the process lacks the privileges.
    pub fn create(map: &Map) -> Result<Self, LabError> {
        static RUNS: AtomicU32 = AtomicU32::new(1);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let mut namespaces = BTreeMap::new();
        for (number, name) in map.nodes.iter().enumerate() {
            namespaces.insert(name.clone(), Namespace::create(&format!("routed{run}n{number}"))?);
        }
        let of = |(number, name): (usize, &String)| {
            let towards = map.attachments(number).map(|at| map.nodes[at.peer].clone());
            (name.clone(), towards.collect())
        };
        let neighbours = map.nodes.iter().enumerate().map(of).collect();
        let nodes = Self { namespaces, neighbours, wires: Namespace::create(&format!("routed{run}wires"))? };
        nodes.wires.set("net.ipv6.conf.all.disable_ipv6", "1")?;
        nodes.wires.set("net.ipv6.conf.default.disable_ipv6", "1")?;
        let mut lines = String::new();
        for (pair, ends) in map.pairs.iter().enumerate() {
            for (end, node) in ends.iter().enumerate() {
                let (here, there) = (wire(pair, end), Map::interface(&map.nodes[ends[1 - end]]));
                let node = nodes.get(&map.nodes[*node]).name();
                writeln!(
                    lines,
                    "link add {here} type veth peer name {there} netns {node}\nlink set {here} up"
                )
                .expect("a string takes whatever is written");
            }
        }
        nodes.wires.ip_batch_towards(&nodes.namespaces.values().collect::<Vec<_>>(), &lines)?;
        for (number, name) in map.nodes.iter().enumerate() {
            nodes.configure(map, number, name)?;
        }
        Ok(nodes)
    }

    /// Checks that the namespaces have their names still.
    ///
    /// # Errors
    /// When a namespace has been removed.
    pub fn check(&self) -> Result<(), LabError> {
        Ok(self.namespaces.values().chain([&self.wires]).try_for_each(Namespace::check)?)
    }

    /// The namespace of a node.
    pub fn get(&self, node: &str) -> &Namespace {
        &self.namespaces[node]
    }

    /// The nodes to which a node has a link.
    pub fn neighbours(&self, node: &str) -> &[String] {
        &self.neighbours[node]
    }

    /// Opens the wires of all pairs of links.
    ///
    /// # Errors
    /// When an interface cannot be opened.
    pub fn wires(&self, map: &Map, graph: &GraphSpec) -> Result<Vec<Wire>, LabError> {
        let line = |from: usize, to: usize| {
            let (from, to) = (&map.nodes[from], &map.nodes[to]);
            let link = graph.links.iter().find(|link| (&link.from, &link.to) == (from, to));
            let link = link.expect("a pair of links has both directions");
            Line::new(link.rate, link.delay)
        };
        let open = |(pair, [one, other]): (usize, &[usize; 2])| {
            let (names, lines) = ([wire(pair, 0), wire(pair, 1)], [line(*one, *other), line(*other, *one)]);
            self.wires.within(|| Wire::open([&names[0], &names[1]], lines))?
        };
        map.pairs.iter().enumerate().map(open).collect()
    }

    fn configure(&self, map: &Map, number: usize, name: &str) -> Result<(), LabError> {
        let namespace = self.get(name);
        let forwards = map.attachments(number).nth(1).is_some();
        for (parameter, value) in PARAMETERS {
            namespace.set(parameter, value)?;
        }
        if forwards {
            namespace.set("net.ipv4.ip_forward", "1")?;
        }
        namespace.ip_batch(&map.configuration(number))?;
        // Packets have their real sizes on the links.
        let interfaces: Vec<String> =
            map.attachments(number).map(|at| Map::interface(&map.nodes[at.peer])).collect();
        let turn_off = || interfaces.iter().try_for_each(|name| Offloads::turn_off(name).map(Offloads::keep));
        namespace.within(turn_off)??;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routed::tests::{TESTBED, scenario};

    #[test]
    fn each_link_has_a_network_and_each_node_routes_to_all_others() {
        let map = Map::new(&scenario(TESTBED)).unwrap();
        assert_eq!(map.nodes, ["ws1", "ws0", "r1", "r0"]);
        let address = |node| map.address(node).to_string();
        assert_eq!([address("ws1"), address("ws0")], ["10.0.1.1", "10.0.3.2"]);
        assert_eq!(map.ends("r1", "r0").unwrap().map(|end| end.to_string()), ["10.0.2.1", "10.0.2.2"]);
        let routes = map.configuration(map.index("ws1"));
        assert_eq!(
            routes,
            "address add 10.0.1.1/24 dev to-r1\nlink set to-r1 up\n\
             route add 10.0.2.0/24 via 10.0.1.2\nroute add 10.0.3.0/24 via 10.0.1.2\n"
        );
        assert!(map.configuration(map.index("r1")).ends_with("route add 10.0.3.0/24 via 10.0.2.2\n"));
    }

    #[test]
    fn networks_beyond_the_kernels_routers_are_refused() {
        for (was, is, why) in [
            ("delay = '0 s'", "delay = '0 s'\nboth-ways = false", "one direction only"),
            ("'116 KB'", "'100 packets'", "a limit in bytes"),
            ("aqm = 'drop-tail'", "aqm = 'pi'", "other than drop-tail"),
            ("ws0", "workstation-zero", "a name of more than 12 characters"),
        ] {
            let error = Map::new(&scenario(&TESTBED.replace(was, is))).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
