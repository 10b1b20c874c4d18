//! The hosts of a run: three network namespaces, joined by virtual pairs.
//!
//! ```text
//! sources                network               sinks
//! host ══════ sources    links    sinks ══════ host
//! 10.1.a.b                                     10.2.a.b     flow number 256 a + b - 1
//! ```
//!
//! Every flow has an address of its own at either end, so that a route can have the settings of its connections. All
//! sources share a namespace and so do all sinks: a node of the scenario is a place in the network and not a kernel.
//! There is no address resolution: each host knows the other's hardware address as its gateway's.

use crate::connections::{Connections, largest_payload};
use crate::reader::{FIRST_PORT, LONGEST_HEADERS, QOS_PORT, SINK_PORT};
use crate::tuning::{self, Stack};
use crate::{LabError, NetworkSide};
use cutline_sim::FlowSpec;
use cutline_sys::Offloads;
use cutline_sys::namespace::Namespace;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU32, Ordering};

/// The namespaces of a run; they are removed when this is dropped.
pub struct Hosts {
    /// Namespace of the sources.
    pub sources: Namespace,
    /// Namespace of the sinks.
    pub sinks: Namespace,
    /// Between them.
    pub network: Namespace,
}

impl Hosts {
    /// Checks that the namespaces have their names still, so that the measurements are of this network.
    ///
    /// # Errors
    /// When a namespace has been removed.
    pub fn check(&self) -> Result<(), LabError> {
        let Self { sources, sinks, network } = self;
        Ok([sources, sinks, network].into_iter().try_for_each(Namespace::check)?)
    }
}

/// The interfaces of the network, towards the sources and towards the sinks.
pub const INTERFACES: [&str; 2] = ["sources", "sinks"];
/// The interface of a host.
const HOST: &str = "host";
/// The most flows: ports from [`FIRST_PORT`] on.
pub const MAX_FLOWS: usize = 40_000;
/// The largest packet, bytes: the size for which rings are made.
const LARGEST_PACKET: u32 = 9_000;

/// Checks that there can be hosts for these flows.
///
/// # Errors
/// When two flows need different hosts, or one has packets that are too large.
pub fn check(flows: &[FlowSpec], connections: &Connections) -> Result<(), LabError> {
    mtu(flows, connections)?;
    tuning::parameters(flows, Stack::Stock)?;
    Ok(())
}

impl Hosts {
    /// Makes them for these flows.
    ///
    /// # Errors
    /// When the process lacks the privileges, or a flow needs an unavailable feature.
    pub fn create(flows: &[FlowSpec], connections: &Connections, stack: Stack) -> Result<Self, LabError> {
        static RUNS: AtomicU32 = AtomicU32::new(1);
        let parameters = tuning::parameters(flows, stack)?;
        let mtu = mtu(flows, connections)?;
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let create = |label: &str| Namespace::create(&format!("lab{run}{label}"));
        let hosts = Self { sources: create("s")?, sinks: create("d")?, network: create("n")? };
        for side in [NetworkSide::Sources, NetworkSide::Sinks] {
            let host = hosts.host(side);
            hosts.join(side, mtu)?;
            for (name, value) in &parameters {
                host.set(name, value)?;
            }
            host.ip_batch(&addresses_and_routes(side, flows))?;
            host.within(|| Offloads::turn_off(HOST).map(Offloads::keep))??;
        }
        hosts.network.set("net.ipv6.conf.all.disable_ipv6", "1")?;
        Ok(hosts)
    }

    /// The host of a side.
    pub fn host(&self, side: NetworkSide) -> &Namespace {
        match side {
            NetworkSide::Sources => &self.sources,
            NetworkSide::Sinks => &self.sinks,
        }
    }

    /// Joins a host to the network.
    fn join(&self, side: NetworkSide, mtu: u32) -> Result<(), LabError> {
        let (interface, host, address) = (INTERFACES[side as usize], self.host(side), hardware(side));
        let lines = format!(
            "link add {interface} mtu {mtu} type veth peer name {HOST} mtu {mtu} address {address} netns {}\n\
             link set {interface} up\n",
            host.name()
        );
        Ok(self.network.ip_batch_towards(&[host], &lines)?)
    }
}

/// Returns the address of a flow's source.
pub fn source(flow: usize) -> SocketAddrV4 {
    SocketAddrV4::new(address(NetworkSide::Sources, flow), FIRST_PORT + flow as u16)
}

/// Returns the address of a flow's sink.
pub fn sink(flow: usize) -> SocketAddrV4 {
    SocketAddrV4::new(address(NetworkSide::Sinks, flow), SINK_PORT)
}

/// Returns the address of a flow's sink if it is a QoS connection.
pub fn qos_sink(flow: usize) -> SocketAddrV4 {
    SocketAddrV4::new(address(NetworkSide::Sinks, flow), QOS_PORT)
}

/// The address of a flow's end.
pub fn address(side: NetworkSide, flow: usize) -> Ipv4Addr {
    let net = match side {
        NetworkSide::Sources => 1,
        NetworkSide::Sinks => 2,
    };
    let number = flow + 1;
    Ipv4Addr::new(10, net, (number >> 8) as u8, (number & 0xff) as u8)
}

/// The hardware address of a host: locally administered.
const fn hardware(side: NetworkSide) -> &'static str {
    match side {
        NetworkSide::Sources => "02:00:00:00:00:01",
        NetworkSide::Sinks => "02:00:00:00:00:02",
    }
}

/// Returns the commands of `ip` for a host.
fn addresses_and_routes(side: NetworkSide, flows: &[FlowSpec]) -> String {
    const GATEWAY: &str = "10.255.0.1";
    let mut lines = format!(
        "link set {HOST} up\nroute add {GATEWAY}/32 dev {HOST} scope link\n\
         neigh add {GATEWAY} lladdr {} dev {HOST} nud permanent\n",
        hardware(side.other())
    );
    for (number, flow) in flows.iter().enumerate() {
        let (own, other) = (address(side, number), address(side.other(), number));
        let attributes = match side {
            NetworkSide::Sources => tuning::forward_route(flow),
            NetworkSide::Sinks => tuning::reverse_route(flow),
        };
        writeln!(
            lines,
            "address add {own}/32 dev {HOST}\nroute add {other}/32 via {GATEWAY} dev {HOST} src {own}{attributes}"
        )
        .expect("a string takes whatever is written");
    }
    lines
}

/// Returns the size that the interfaces must carry whole.
fn mtu(flows: &[FlowSpec], connections: &Connections) -> Result<u32, LabError> {
    let payload = |(number, flow): (usize, &FlowSpec)| {
        connections.get(&number).map_or_else(|| flow.transport.largest_payload(), largest_payload)
    };
    let largest =
        flows.iter().enumerate().map(|flow| (payload(flow), flow.1)).max_by_key(|(payload, _)| *payload);
    let Some((payload, flow)) = largest else { return Ok(1500) };
    let needed = payload + LONGEST_HEADERS;
    if needed > LARGEST_PACKET {
        return Err(LabError::TooLarge {
            flow: flow.name.clone(),
            payload,
            largest: LARGEST_PACKET - LONGEST_HEADERS,
        });
    }
    Ok(needed.max(1500))
}
