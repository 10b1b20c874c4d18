//! The agents of the nodes: `cutlined`'s ([`cutline_daemon`]), a thread in each namespace, which applications ask for reservations by RSVP.
//!
//! What they reserve is a class of the links' shapers, so that links have the same rates and queues with and without signalling.

use super::network::Nodes;
use crate::LabError;
use crate::run::joined_anywhere;
use cutline_daemon::config::{ControlKind, InterfaceSpec};
use cutline_daemon::installer::{Counted, InstallError, Installer};
use cutline_daemon::{Agent, Config};
use cutline_netlink::{ClassId, Filter, Reservation, Shaper};
use cutline_provision::Access;
use cutline_rsvp::admission::{Handle, ShareParams};
use cutline_rsvp::encapsulation::Encapsulation;
use cutline_rsvp::engine::{Control, EngineParams, Flow};
use cutline_rsvp::intserv::Tspec;
use cutline_rsvp::object::{Selector, Sender, Session};
use cutline_sys::ip_socket::Version;
use cutline_units::{Bytes, Duration, Rate};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// A shaper that an agent and the laboratory share.
pub type Shared = Arc<Mutex<Shaper>>;

/// An agent's interface: its name, the rate of its link, and what installs the shaper, once the agent has looked at the interface.
pub struct Place<'p> {
    pub interface: String,
    pub rate: Rate,
    pub install: Box<dyn FnOnce() -> Result<Shared, LabError> + Send + 'p>,
}

/// What can be reserved of a link: as much as without agents, and the bucket of DIRM, which is three images (a second of the line).
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
    /// When there is no place for their sockets.
    pub fn new() -> Result<Self, LabError> {
        let failed = |source| LabError::File { path: std::env::temp_dir(), source };
        let folder = tempfile::Builder::new().prefix("cutline-").tempdir().map_err(failed)?;
        Ok(Self { stop: Arc::default(), threads: Vec::new(), folder })
    }

    /// How the applications of a node reach its agent.
    pub fn access(&self, node: &str) -> Access {
        Access { socket: self.folder.path().join(format!("{node}.sock")) }
    }

    /// Starts the agent of a node. Returns the shapers of its interfaces, in the order of `places`.
    ///
    /// # Errors
    /// When it cannot open its sockets, or a shaper cannot be installed.
    pub fn start(
        &mut self,
        nodes: &Nodes,
        node: &str,
        places: Vec<Place<'_>>,
    ) -> Result<Vec<Shared>, LabError> {
        let socket = self.access(node).socket;
        let spec = |place: &Place<'_>| InterfaceSpec {
            name: place.interface.clone(),
            version: Version::V4,
            rate: place.rate,
            share: share(),
            // The agent has traffic control of its own at first, which the shaper replaces.
            control: ControlKind::Tc,
            replace: false,
            encapsulation: Encapsulation::Raw,
            keys: None,
        };
        let config = Config {
            socket: socket.clone(),
            group: None,
            params: EngineParams::default(),
            interfaces: places.iter().map(spec).collect(),
        };
        let stop = Arc::clone(&self.stop);
        let start = || {
            let mut agent =
                Agent::open(config).map_err(|error| LabError::Agent { error: error.to_string() })?;
            let mut shapers = Vec::new();
            for place in places {
                let shaper = (place.install)()?;
                agent = agent.with_installer(&place.interface, Box::new(Classes::new(&shaper)));
                shapers.push(shaper);
            }
            // The thread stays in this namespace.
            let thread = std::thread::spawn(move || {
                // What it cannot do shows as a reservation that fails.
                let _ended = agent.run(&[&stop], None, |_| {});
            });
            Ok::<_, LabError>((shapers, thread))
        };
        let (shapers, thread) = nodes.get(node).within(start)??;
        self.threads.push((socket, thread));
        Ok(shapers)
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

/// The classes that an agent has in the shaper of an interface.
#[derive(Debug)]
struct Classes {
    shaper: Shared,
    classes: BTreeMap<Handle, ClassId>,
}

impl Classes {
    fn new(shaper: &Shared) -> Self {
        Self { shaper: Arc::clone(shaper), classes: BTreeMap::new() }
    }

    fn class(&self, handle: Handle) -> Result<ClassId, InstallError> {
        self.classes.get(&handle).copied().ok_or(InstallError::Unknown)
    }
}

impl Installer for Classes {
    fn apply(&mut self, control: &Control) -> Result<(), InstallError> {
        let shaper = Arc::clone(&self.shaper);
        let mut shaper = shaper.lock().unwrap_or_else(PoisonError::into_inner);
        match control {
            Control::Add(flow) => {
                let class = shaper.add(&reservation(&flow.tspec), &filters(flow))?;
                self.classes.insert(flow.handle, class);
            }
            Control::Modify(flow) => shaper.change(self.class(flow.handle)?, &reservation(&flow.tspec))?,
            Control::AddFilter { handle, session, sender, .. } => {
                shaper.add_filter(self.class(*handle)?, &filter(session, Some(sender)))?;
            }
            Control::RemoveFilter { handle, session, sender, .. } => {
                shaper.remove_filter(self.class(*handle)?, &filter(session, Some(sender)))?;
            }
            Control::Delete { handle, .. } => {
                // One that could not be installed is deleted, too.
                if let Some(class) = self.classes.remove(handle) {
                    shaper.remove(class)?;
                }
            }
        }
        Ok(())
    }

    fn counters(&mut self) -> BTreeMap<Handle, Counted> {
        let mut shaper = self.shaper.lock().unwrap_or_else(PoisonError::into_inner);
        let all = shaper.counters().unwrap_or_default();
        let counted = |(handle, class): (&Handle, &ClassId)| {
            let of = all.get(class)?;
            let (packets, dropped) = (of.packets.into(), of.drops.into());
            Some((*handle, Counted { packets, bytes: of.bytes, dropped }))
        };
        self.classes.iter().filter_map(counted).collect()
    }
}

/// The bucket as traffic control has it. It lets at least one packet through.
fn reservation(tspec: &Tspec) -> Reservation {
    let bits = (f64::from(tspec.rate) * 8.0).ceil() as u64;
    Reservation {
        rate: Rate::from_bps(bits.max(8)),
        bucket: Bytes::new((tspec.bucket.ceil() as u64).max(tspec.max_packet.into())),
        min_unit: Bytes::new(tspec.min_unit.into()),
        max_packet: Bytes::new(tspec.max_packet.into()),
    }
}

fn filters(flow: &Flow) -> Vec<Filter> {
    if flow.senders.is_empty() {
        return vec![filter(&flow.session, None)];
    }
    flow.senders.iter().map(|sender| filter(&flow.session, Some(sender))).collect()
}

/// The packets of a session, from one sender or from all. A port of 0 is that of a protocol without ports.
fn filter(session: &Session, sender: Option<&Sender>) -> Filter {
    let port = |port: u16| Some(port).filter(|port| *port > 0);
    let selector = sender.map(|sender| sender.selector);
    Filter {
        protocol: Some(session.protocol).filter(|protocol| *protocol > 0),
        destination_port: port(session.port),
        source: sender.map(|sender| sender.address),
        source_port: if let Some(Selector::Port(number)) = selector { port(number) } else { None },
        ..Filter::to(session.destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routed::Signalling;
    use crate::routed::control::Control as LinkControl;
    use crate::routed::network::Map;
    use crate::routed::tests::{TESTBED, scenario};
    use cutline_provision::{Demand, Flow as AskedFlow, Transport, open};
    use cutline_sys::SysError;
    use cutline_sys::namespace::Namespace;
    use cutline_testbed::skip;
    use cutline_translate::TokenBucket;
    use cutline_units::Instant;
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
            for wire in wires {
                let ended = &ended;
                scope.spawn(move || wire.run(Instant::ZERO, ended));
            }
            let address = |node: &str, port: u16| SocketAddr::from((map.address(node), port));
            let flow = AskedFlow {
                transport: Transport::Udp,
                source: address("ws1", 4000),
                destination: address("ws0", 5002),
            };
            let bucket = TokenBucket {
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
