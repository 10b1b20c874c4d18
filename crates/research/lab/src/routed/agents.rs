//! The agents of the nodes: `cutlined`'s ([`cutline_daemon`]), a thread in each namespace, from which applications request reservations by RSVP.
//!
//! A reservation is a class of the links' shapers, so that links have the same rates and queues with and without signalling.

use super::network::Nodes;
use crate::LabError;
use crate::threads::joined_anywhere;
use cutline_daemon::config::{InstallerKind, InterfaceSpec};
use cutline_daemon::installer::TrafficControl;
use cutline_daemon::{CustomInstallers, Daemon, DaemonConfig, Installer};
use cutline_netlink::HtbShaper;
use cutline_provision::Access;
use cutline_rsvp::admission::ShareParams;
use cutline_rsvp::encapsulation::Encapsulation;
use cutline_rsvp::engine::EngineParams;
use cutline_units::{Duration, IpVersion, Rate};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// A shaper that an agent and the laboratory share.
pub type Shared = Arc<Mutex<HtbShaper>>;

/// An agent's interface: its name, the rate of its link, and the shaper that is there.
pub struct AgentInterface {
    pub name: String,
    pub rate: Rate,
    pub shaper: Shared,
}

/// Returns the reservable share of a link: as much as without agents, and the bucket of DIRM, which is three
/// images (a second of the line).
fn share() -> ShareParams {
    ShareParams { share: 0.98, burst: Duration::from_secs(2), overhead: 14 }
}

/// The agents, which end when this is dropped.
#[derive(Debug)]
pub struct Agents {
    stop: Arc<AtomicBool>,
    threads: Vec<(PathBuf, JoinHandle<()>)>,
    folder: TempDir,
}

impl Agents {
    /// No agents yet.
    ///
    /// # Errors
    /// When there is no folder for their sockets.
    pub fn new() -> Result<Self, LabError> {
        let failed = |source| LabError::File { path: std::env::temp_dir(), source };
        let folder = tempfile::Builder::new().prefix("cutline-").tempdir().map_err(failed)?;
        Ok(Self { stop: Arc::default(), threads: Vec::new(), folder })
    }

    /// Returns the access of a node's applications to its agent.
    pub fn access(&self, node: &str) -> Access {
        Access { socket: self.folder.path().join(format!("{node}.sock")) }
    }

    /// Starts the agent of a node.
    ///
    /// # Errors
    /// When it cannot open its sockets.
    pub fn start(
        &mut self,
        nodes: &Nodes,
        node: &str,
        interfaces: &[AgentInterface],
    ) -> Result<(), LabError> {
        let socket = self.access(node).socket;
        let spec = |interface: &AgentInterface| InterfaceSpec {
            name: interface.name.clone(),
            version: IpVersion::V4,
            rate: interface.rate,
            share: share(),
            control: InstallerKind::TC,
            encapsulation: Encapsulation::Raw,
            keys: None,
        };
        let config = DaemonConfig {
            socket: socket.clone(),
            group: None,
            route_mark: 0,
            params: EngineParams::default(),
            interfaces: interfaces.iter().map(spec).collect(),
            monitor: None,
            manager: None,
        };
        let stop = Arc::clone(&self.stop);
        let classes = |interface: &AgentInterface| -> Box<dyn Installer> {
            Box::new(TrafficControl::of(Arc::clone(&interface.shaper)))
        };
        let custom: CustomInstallers =
            interfaces.iter().map(|interface| (interface.name.clone(), classes(interface))).collect();
        let start = || {
            let mut agent = Daemon::open_with(config, custom)
                .map_err(|error| LabError::Agent { error: error.to_string() })?;
            // The thread stays in this namespace.
            let thread = std::thread::spawn(move || {
                // A failure shows as a reservation that fails.
                let _ended = agent.run(&[&stop], None);
            });
            Ok::<_, LabError>(thread)
        };
        let thread = nodes.get(node).within(start)??;
        self.threads.push((socket, thread));
        Ok(())
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for (socket, thread) in self.threads.drain(..) {
            // A connection wakes it up.
            let _awake = UnixStream::connect(socket);
            joined_anywhere(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routed::Signalling;
    use crate::routed::control::LinkShapers as LinkControl;
    use crate::routed::network::Map;
    use crate::routed::tests::{TESTBED, scenario};
    use cutline_flow::TrafficSpec;
    use cutline_provision::{Demand, Flow as AskedFlow, TransportProtocol, open};
    use cutline_sys::SysError;
    use cutline_sys::namespace::Namespace;
    use cutline_sys::thread::SetOnPanic;
    use cutline_testbed::skip;
    use cutline_units::{Bytes, Instant};
    use std::net::SocketAddr;

    #[test]
    fn agents_reserve_along_the_path_and_what_ends_is_removed() {
        match Namespace::create("mayreserve") {
            Ok(_) => {}
            Err(error @ (SysError::NotPermitted { .. } | SysError::Ip { .. })) => {
                return skip(error, "sudo -E cargo test -p cutline-lab");
            }
            Err(error) => panic!("{error}"),
        }
        let scenario = scenario(TESTBED);
        let (map, graph) = (Map::new(&scenario).unwrap(), scenario.graph());
        let nodes = Nodes::create(&map).unwrap();
        let control = LinkControl::install(&nodes, &graph, Signalling::Rsvp).unwrap();
        let wires = nodes.wires(&map, &graph).unwrap();
        let stop = AtomicBool::new(false);
        let ended = || stop.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            let _stop = SetOnPanic(&stop);
            for wire in wires {
                let ended = &ended;
                scope.spawn(move || wire.run(Instant::ZERO, ended));
            }
            let address = |node: &str, port: u16| SocketAddr::from((map.address(node), port));
            let flow = AskedFlow {
                transport: TransportProtocol::Udp,
                source: address("ws1", 4000),
                destination: address("ws0", 5002),
            };
            let bucket = TrafficSpec {
                rate: Rate::from_kbps(900),
                bucket: Bytes::new(20_000),
                peak: Rate::from_kbps(1100),
                min_policed: Bytes::new(1300),
                max_packet: Bytes::new(1400),
            };
            let ask = |node: &str, demand: Demand| {
                open("rsvp", &control.access(node).unwrap()).unwrap().request(&demand).unwrap()
            };
            let mut sender = ask("ws1", Demand::sending(flow, bucket));
            let mut receiver = ask("ws0", Demand::receiving(flow, bucket));
            let seconds = Duration::from_secs(5);
            let outcome = (receiver.wait(seconds), sender.wait(seconds));
            let reserved = control.reserved();
            drop((sender, receiver));
            stop.store(true, Ordering::Relaxed);
            assert!(outcome.0.is_ok() && outcome.1.is_ok(), "{outcome:?}");
            // From ws1 to r1, r1 to r0 and r0 to ws0; each way is a link.
            let on: Vec<&str> = graph
                .links
                .iter()
                .zip(&reserved)
                .filter(|(_, rate)| **rate > Rate::ZERO)
                .map(|(link, _)| &*link.name)
                .collect();
            assert_eq!(on, ["ws1->r1", "r1->r0", "r0->ws0"]);
        });
    }
}
