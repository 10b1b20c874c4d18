//! QoS sockets with shares of their hosts, and the hosts' resource managers (QUANTA section 5): each flow of the scenario with a
//! specification is one, over UDP or TCP.

use super::network::{Map, Nodes};
use crate::LabError;
use crate::connections::{Arrived, Course, GLANCE, Placement, Sent, accepted, is_temporary, system};
use cutline_daemon::{DaemonConfig, start_manager};
use cutline_manager_service::ManagerService;
use cutline_quality::spec::Specification;
use cutline_scenario::spec::FlowGroupSpec;
use cutline_sim::FlowSpec;
use cutline_sim::qos::Passage;
use cutline_socket::{
    AllocationOptions, Marking, Peer, QosError, QosOptions, QosTcpListener, QosTcpStream, SchedulingClass,
};
use cutline_sys::now;
use cutline_sys::reactor::wait;
use cutline_transport::app::Params;
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Duration, Instant, Streams};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddrV4;
use std::path::PathBuf;
use tempfile::TempDir;

/// Allocation among the flows with a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// None: each sends at its own rate.
    Unmanaged,
    /// By the manager of the flow's host, which knows that the path has this rate.
    Allocated {
        /// The rate of the host's interface in the manager's file, kbit/s.
        path_kbps: u32,
    },
    /// By the manager of the flow's host, which lowers flows when their delivery gets worse, and does not know the rate of the path.
    Feedback,
}

/// A flow whose lowest rate is at least this part of its highest is in the real-time class.
const FIXED: f64 = 0.9;
/// Importance of real-time and of time-shared flows.
const PRIORITIES: [u8; 2] = [9, 3];
/// Room for the longest block of a stream, bytes.
const LONGEST_BLOCK: u64 = 1 << 20;
/// Time after which a sender that has fallen behind does not catch up.
const BEHIND: Duration = Duration::from_millis(100);

/// The resource managers, by the node of the host. They end when this is dropped.
#[derive(Default)]
pub struct HostManagers(BTreeMap<String, HostManager>);

struct HostManager {
    socket: PathBuf,
    _service: ManagerService,
    _folder: TempDir,
}

impl HostManagers {
    /// Starts the managers of hosts, in their namespaces.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start(shares: Shares, nodes: &Nodes, hosts: BTreeSet<&String>) -> Result<Self, LabError> {
        if shares == Shares::Unmanaged {
            return Ok(Self::default());
        }
        let failed = |source| LabError::File { path: std::env::temp_dir(), source };
        let start = |host: &String| {
            let folder = tempfile::Builder::new().prefix("cutline-").tempdir().map_err(failed)?;
            let file = |name: &str| folder.path().join(name);
            let interfaces = nodes.interfaces(host);
            let text = text(shares, [&file("manager.sock"), &file("manager.state")], &interfaces);
            let refused = |error: String| LabError::Agent { error };
            let config =
                DaemonConfig::parse(&text, "manager.toml").map_err(|errors| refused(errors.to_string()))?;
            let spec = config.manager.expect("the text has the table");
            let started = nodes.get(host).within(|| start_manager(&spec, |_| {}))?;
            let service = started.map_err(|error| refused(error.to_string()))?;
            let manager = HostManager { socket: file("manager.sock"), _service: service, _folder: folder };
            Ok((host.clone(), manager))
        };
        hosts.into_iter().map(start).collect::<Result<_, LabError>>().map(Self)
    }

    /// Returns the share of a flow from a host: real time if its rate may be lowered a little at most, otherwise time-shared. `None` without a manager.
    pub fn share(&self, host: &str, send: &Specification) -> Option<AllocationOptions> {
        let manager = self.0.get(host)?;
        let is_fixed = send.min_rate.zip(send.max_rate).is_some_and(|(min, max)| min >= FIXED * max);
        let (class, priority) = if is_fixed {
            (SchedulingClass::RealTime, PRIORITIES[0])
        } else {
            (SchedulingClass::TimeShared, PRIORITIES[1])
        };
        Some(AllocationOptions::new(class).priority(priority).socket(&manager.socket))
    }
}

/// Returns the file of `cutlined`. One user has all flows here, and may hold all promises.
fn text(shares: Shares, [socket, state]: [&PathBuf; 2], interfaces: &[String]) -> String {
    let base = format!(
        "[manager]\nsocket = {:?}\nstate = {:?}\n[manager.resources]\nuser-share = 1.0\n",
        socket.display().to_string(),
        state.display().to_string(),
    );
    match shares {
        Shares::Unmanaged => base,
        Shares::Allocated { path_kbps } => {
            let interface = |name: &String| {
                format!("[[manager.interface]]\nname = {name:?}\nrate = \"{path_kbps} kbit/s\"\n")
            };
            base + &interfaces.iter().map(interface).collect::<String>()
        }
        Shares::Feedback => base + "[[manager.path]]\nnumber = 1\ndestinations = [\"10.0.0.0/8\"]\n",
    }
}

impl Nodes {
    /// Returns the names of the interfaces of a node.
    fn interfaces(&self, node: &str) -> Vec<String> {
        self.neighbours(node).iter().map(|towards| Map::interface(towards)).collect()
    }
}

/// A flow over TCP that is a QoS stream: an application that writes blocks at a constant rate.
#[derive(Clone, Debug)]
pub struct ManagedStream {
    name: String,
    send: Specification,
    /// Size of a block, B.
    block: usize,
    start: Instant,
    stop: Instant,
}

impl ManagedStream {
    /// Returns the stream of a flow with a specification over TCP; `None` for others.
    ///
    /// # Errors
    /// When its blocks are those of no application of a constant rate.
    pub fn of(flow: &FlowSpec, group: &FlowGroupSpec, streams: Streams) -> Result<Option<Self>, LabError> {
        let Some(qos) = group.qos.as_ref().filter(|_| matches!(flow.transport, TransportParams::Tcp(_)))
        else {
            return Ok(None);
        };
        let send = qos.specification.send.clone();
        let Params::Cbr(app) = &flow.app else {
            return Err(refused(flow, "a share of a stream of a varying rate", "use kind = \"cbr\""));
        };
        if send.size != Some(app.size) || !(8..=LONGEST_BLOCK).contains(&app.size.get()) {
            return Err(refused(
                flow,
                "a specification for other blocks than the application's",
                "set send.size to its size, 8 B to 1 MiB",
            ));
        }
        Ok(Some(Self {
            name: flow.name.clone(),
            send,
            block: app.size.get() as usize,
            start: flow.start_with(streams),
            stop: flow.stop,
        }))
    }

    /// Returns the stream as one of the whole run.
    pub fn throughout(self) -> Self {
        Self { start: Instant::ZERO, stop: Instant::FAR_FUTURE, ..self }
    }

    /// Specification of the sending end.
    pub const fn specification(&self) -> &Specification {
        &self.send
    }

    /// Listens, in the namespace of the calling thread.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn listen(&self, at: SocketAddrV4) -> Result<QosTcpListener, LabError> {
        let options = QosOptions::default().peer(Peer::Speaks).marking(Marking::None).publish(false);
        let listener = QosTcpListener::bind(at, &options).map_err(self.failed())?;
        listener.set_nonblocking(true).map_err(|error| self.failed()(system("cannot listen")(error)))?;
        Ok(listener)
    }

    fn failed(&self) -> impl Fn(QosError) -> LabError {
        let flow = self.name.clone();
        move |error| LabError::Connection { flow: flow.clone(), error: Box::new(error) }
    }

    /// Takes blocks until the sender has closed the stream.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn take(&self, listener: &QosTcpListener, course: Course<'_>) -> Result<Arrived, LabError> {
        let failed = |error| self.failed()(system("cannot receive")(error));
        let mut arrived = Arrived::default();
        let Some((mut stream, _)) = accepted(listener, || listener.accept(), course).map_err(failed)? else {
            return Ok(arrived);
        };
        stream.set_nonblocking(false).map_err(failed)?;
        stream.set_read_timeout(Some(crate::connections::standard(GLANCE))).map_err(failed)?;
        let (mut block, mut filled) = (vec![0; self.block], 0);
        // A sender that is blocked goes on after the end.
        let give_up = course.end + Duration::from_secs(10);
        while now() < give_up {
            match stream.read(&mut block[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if is_temporary(error.kind()) => continue,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => return Err(failed(error)),
            }
            if filled == block.len() {
                let number = block.first_chunk().map(|number| u64::from_be_bytes(*number));
                arrived.messages.extend(number.map(|number| (number, now())));
                filled = 0;
            }
        }
        Ok(arrived)
    }

    /// Writes blocks at the rate of the application until the end of the flow.
    ///
    /// # Errors
    /// When the connection cannot be made, or breaks.
    pub fn write(&self, place: &Placement, course: Course<'_>) -> Result<Sent, LabError> {
        let failed = |error| self.failed()(system("cannot send")(error));
        let (mut sent, begin) = (Sent::default(), course.real(self.start));
        let stop = if self.stop == Instant::FAR_FUTURE {
            course.end
        } else {
            course.real(self.stop).min(course.end)
        };
        let wait_until = |time: Instant| {
            while !course.is_over() && now() < time {
                wait(&mut [], time.saturating_since(now()).min(GLANCE))?;
            }
            Ok::<_, io::Error>(())
        };
        wait_until(begin).map_err(failed)?;
        if course.is_over() {
            return Ok(sent);
        }
        let options =
            QosOptions::sending(self.send.clone()).peer(Peer::Speaks).marking(Marking::None).publish(false);
        let options = place.share.iter().fold(options, |options, share| options.allocation(share.clone()));
        let mut stream = QosTcpStream::connect(place.sink, &options).map_err(self.failed())?;
        let rate = place.most.unwrap_or(f64::INFINITY).min(self.send.max_rate.unwrap_or(f64::INFINITY));
        let interval = Duration::from_secs_f64(rate.recip());
        let (mut block, mut next) = (vec![0; self.block], now());
        while next < stop && !course.is_over() {
            // A blocked write delays the next one, which is no evidence about the machine.
            let is_ahead = now() < next;
            wait_until(next).map_err(failed)?;
            let made = now();
            if is_ahead {
                sent.lateness.record(made.saturating_since(next));
            }
            block[..8].copy_from_slice(&(sent.messages.len() as u64).to_be_bytes());
            stream.write_all(&block).map_err(failed)?;
            let made = course.simulated(made);
            // The delay includes the time in which the write was blocked.
            sent.messages.push(Passage { made, sent: made, arrived: None, bytes: self.block as u32 });
            next = next.saturating_add(interval);
            if now().saturating_since(next) > BEHIND {
                next = now();
            }
        }
        Ok(sent)
    }
}

fn refused(flow: &FlowSpec, what: &'static str, instead: &'static str) -> LabError {
    LabError::NoRouters { place: format!("flow {}", flow.name), what, instead }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_manager_service::ManagedInterface;
    use cutline_units::Rate;
    use std::path::Path;

    #[test]
    fn managers_know_the_path_or_learn_of_it() {
        let files = [PathBuf::from("/run/a.sock"), PathBuf::from("/run/a.state")];
        let of = |shares| {
            let text = text(shares, [&files[0], &files[1]], &["to-r1".to_owned()]);
            DaemonConfig::parse(&text, "manager.toml")
                .unwrap_or_else(|errors| panic!("{errors}"))
                .manager
                .unwrap()
        };
        let allocated = of(Shares::Allocated { path_kbps: 95_000 });
        assert_eq!(allocated.socket, Path::new("/run/a.sock"));
        let to_r1 =
            ManagedInterface { name: "to-r1".to_owned(), rate: Rate::from_mbps(95), has_classes: false };
        assert_eq!(allocated.interfaces, [to_r1]);
        let feedback = of(Shares::Feedback);
        assert!(feedback.interfaces.is_empty() && feedback.paths.len() == 1);
    }

    #[test]
    fn without_a_manager_no_flow_has_a_share() {
        assert!(HostManagers::default().share("ws1", &Specification::default()).is_none());
    }
}
