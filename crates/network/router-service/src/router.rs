//! A router between two interfaces of this machine.

use crate::autorate::OpenAutorate;
use crate::claims::Claim;
use crate::configuration::summary;
use crate::error::ServiceError;
use crate::local_socket::LocalSocket;
use crate::metrics::Endpoint;
use crate::offload_notes::{self, Note, Restored, restore};
use crate::privileges::{Keep, User, drop_privileges};
use crate::publication;
use crate::reload::{Reloader, params};
use crate::requirements::StartRequirements;
use crate::reservations::{Registrar, reservation_channel};
use crate::service::{Listener, Service};
use crate::session::reception;
use crate::snapshots::StatsSnapshots;
use crate::spec::{DirectionSpec, ProcessSpec, RouterSpec};
use crate::statistics::Statistics;
use crate::usual_socket;
use cutline_ports::{AnyPort, InterfacePort as _, PortKind};
use cutline_router::{DuplexShaper, Shaper, ShaperParams};
use cutline_service::SdNotify;
use cutline_sys::{Offloads, SysError, interface, now, signal};
use cutline_units::{Duration, Streams};
use rustix::process::Signal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A router whose interfaces are open, and which has dropped the privileges that it no longer needs.
pub struct Router {
    spec: Arc<RouterSpec>,
    seed: u64,
    duplex: DuplexShaper,
    /// Kept because dropping it removes its file.
    socket: Option<LocalSocket>,
    snapshots: Arc<StatsSnapshots>,
    registrar: Option<Registrar>,
    autorate: Option<OpenAutorate>,
    reloader: Option<Reloader>,
    ports: [AnyPort; 2],
    _claims: Vec<Claim>,
    notices: Vec<String>,
    /// The last field, so that the offloads are restored after the ports are closed.
    _offloads: Vec<FixedOffloads>,
}

/// Offloads that were turned off at an interface, and the note about them. Both end together.
struct FixedOffloads {
    off: Option<Offloads>,
    note: Option<Note>,
}

impl Drop for FixedOffloads {
    fn drop(&mut self) {
        let is_restored = self.off.take().is_none_or(|off| off.restore().is_ok());
        if let Some(note) = self.note.take().filter(|_| !is_restored) {
            note.keep();
        }
    }
}

/// The statistics of a router, for other threads.
#[derive(Clone, Debug)]
pub struct StatisticsSource(Arc<StatsSnapshots>);

impl StatisticsSource {
    /// Returns the statistics; `None` if the router does not answer in time, or has ended.
    pub fn get(&self) -> Option<Statistics> {
        self.0.statistics()
    }
}

/// Names of the random streams. They never change, so that a seed gives the same random numbers in every version.
const FORWARD_STREAM: &str = "router.forward";
const REVERSE_STREAM: &str = "router.reverse";

/// Duration of a router's run, and interval of its statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The duration of the run; `None` runs until the router is stopped.
    pub duration: Option<Duration>,
    /// The interval between reports; `None` reports at the end only.
    pub interval: Option<Duration>,
}

/// Unpredictable seed: queues draw from it the salts that keep senders from choosing the flows that theirs collide with. It
/// fits the file's `seed`.
fn random_seed() -> Result<u64, SysError> {
    let bytes = cutline_sys::random().map_err(|error| SysError::new("cannot get random numbers", error))?;
    Ok(u64::from_ne_bytes(bytes) >> 1)
}

impl Router {
    /// Opens the interfaces and the socket, and drops privileges: those of this thread and of all threads that it starts
    /// later. Requests at the socket are answered once the router runs.
    ///
    /// # Errors
    /// When something is not available. Then everything is as before, except for the privileges.
    pub fn open(spec: RouterSpec) -> Result<Self, ServiceError> {
        let process = &spec.process;
        let seed = process.seed.map_or_else(random_seed, Ok)?;
        let mut notices: Vec<String> = restore().into_iter().map(notice).collect();
        let StartRequirements { obstacles, notices: of_start, user } = StartRequirements::check(&spec);
        if let Some(obstacle) = obstacles.into_iter().next() {
            return Err(obstacle);
        }
        notices.extend(of_start);
        let claims = claims(&spec)?;
        // Before the ports: changing them may restart a card, and AF_XDP requires them off.
        let offloads = offloads(&spec, &mut notices)?;
        let ports = AnyPort::open_pair([&spec.input, &spec.output])?;
        let spec = spec.at_interfaces(ports.each_ref().map(AnyPort::largest_packet));
        let process = &spec.process;
        let duplex = duplex(&spec, &ports, Streams::new(seed))?;
        let socket = socket(process, user.as_ref())?;
        let autorate = spec.autorate.as_ref().map(OpenAutorate::open).transpose()?;
        let endpoint = process.metrics.map(Endpoint::bind).transpose()?;
        drop_privileges(Keep { net_admin: process.fix_offloads }, user.as_ref())?;
        let spec = Arc::new(spec);
        let snapshots = Arc::new(StatsSnapshots::new(Arc::clone(&spec)));
        let registrar =
            socket.as_ref().map(|socket| answer(socket, &spec, &snapshots)).transpose()?.flatten();
        if let Some(endpoint) = endpoint {
            endpoint.serve(Arc::clone(&snapshots))?;
        }
        publication::start(Arc::clone(&snapshots))?;
        let reloader = None;
        Ok(Self {
            spec,
            seed,
            duplex,
            socket,
            snapshots,
            registrar,
            autorate,
            reloader,
            ports,
            _claims: claims,
            notices,
            _offloads: offloads,
        })
    }

    /// Reloads the file at `path` on SIGHUP, which otherwise ends the process. The router must have been opened with the
    /// content of this file.
    ///
    /// # Errors
    /// When the signal cannot be caught.
    pub fn reload_from(&mut self, path: &Path) -> Result<(), ServiceError> {
        self.reloader = Some(Reloader::new(path, Arc::clone(&self.spec))?);
        Ok(())
    }

    /// Returns a summary of both directions in one line.
    pub fn summary(&self) -> String {
        summary(&self.spec)
    }

    /// Returns the source of its statistics, for other threads.
    pub fn statistics(&self) -> StatisticsSource {
        StatisticsSource(Arc::clone(&self.snapshots))
    }

    /// Returns the seed of the queues' random numbers.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the notices about its start for the user, a line each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns the names of its interfaces and the kinds of their ports. The kind of an `AF_XDP` port is known only after it
    /// was opened.
    ///
    /// # Errors
    /// When an interface has been removed.
    pub fn interfaces(&mut self) -> Result<Vec<(String, PortKind)>, ServiceError> {
        let kind = |port: &mut AnyPort| Ok((port.name().to_owned(), port.stats()?.kind));
        self.ports.iter_mut().map(kind).collect()
    }

    /// Runs until `stop` is set or the duration is over. The statistics are reported even if an interface has been removed.
    ///
    /// # Errors
    /// When an interface has been removed.
    pub fn run(
        mut self,
        schedule: Schedule,
        stop: &AtomicBool,
        listener: &mut dyn Listener,
    ) -> Result<(), ServiceError> {
        let Schedule { duration, interval } = schedule;
        // Output to a file that outgrows its limit (setrlimit(2), RLIMIT_FSIZE) fails, and does not end the process.
        signal::flag(Signal::XFSZ).map_err(|error| SysError::new("SIGXFSZ cannot be caught", error))?;
        let manager = SdNotify::from_environment();
        let autorate = self.autorate.map(|autorate| autorate.start(&self.spec, now())).transpose()?;
        let mut service = Service::new(&self.spec, duration, interval, &manager, stop, listener)
            .with_reloader(self.reloader)
            .with_snapshots(self.snapshots, self.socket.as_ref())
            .with_registrar(self.registrar)
            .with_autorate(autorate);
        manager.ready(&summary(&self.spec));
        let spin = self.spec.process.spin.unwrap_or_default();
        let ended = cutline_ports::run(&mut self.duplex, &mut self.ports, spin, stop, &mut service);
        manager.stopping();
        service.finish(&self.duplex, &mut self.ports);
        Ok(ended?)
    }
}

fn duplex(
    spec: &RouterSpec,
    [input, output]: &[AnyPort; 2],
    streams: Streams,
) -> Result<DuplexShaper, ServiceError> {
    Ok(DuplexShaper {
        forward: shaper(&spec.process, &spec.forward, output, streams, FORWARD_STREAM)?,
        reverse: shaper(&spec.process, &spec.reverse, input, streams, REVERSE_STREAM)?,
    })
}

fn shaper(
    process: &ProcessSpec,
    spec: &DirectionSpec,
    outgoing: &AnyPort,
    streams: Streams,
    stream: &str,
) -> Result<Shaper, ServiceError> {
    let base = ShaperParams {
        memory: process.memory_each(),
        reservations: process.reservations.unwrap_or_default(),
        largest_frame: outgoing.largest_frame(),
        largest_packet: outgoing.largest_packet(),
        salt: streams.stream(stream, "salt").uniform().to_bits(),
        ..ShaperParams::new(spec.queue.clone())
    };
    Ok(Shaper::new(params(&base, spec), streams.stream(stream, "drop"))?)
}

fn socket(process: &ProcessSpec, user: Option<&User>) -> Result<Option<LocalSocket>, SysError> {
    let socket = match &process.socket {
        Some(path) => Some(LocalSocket::bind(path)?),
        None => usual_socket::bind(),
    };
    if let Some((socket, user)) = socket.as_ref().zip(user) {
        socket.set_owner(user)?;
    }
    Ok(socket)
}

/// Answers clients from the snapshots. Returns the registrar if they may reserve.
fn answer(
    socket: &LocalSocket,
    spec: &RouterSpec,
    snapshots: &Arc<StatsSnapshots>,
) -> Result<Option<Registrar>, SysError> {
    let (handler, registrar) = spec.process.reservations.map(|_| reservation_channel()).unzip();
    socket.serve(&reception(Arc::clone(snapshots), handler))?;
    Ok(registrar)
}

fn claims(spec: &RouterSpec) -> Result<Vec<Claim>, ServiceError> {
    let claim = |name: &String| {
        let name = AnyPort::interface_of(name);
        Claim::take(name, interface::index(name)?)
    };
    [&spec.input, &spec.output].into_iter().map(claim).collect()
}

fn offloads(spec: &RouterSpec, notices: &mut Vec<String>) -> Result<Vec<FixedOffloads>, SysError> {
    let mut fixed = Vec::new();
    for name in [&spec.input, &spec.output].into_iter().filter(|_| spec.process.fix_offloads) {
        let mut note = None;
        let mut write = |interface: &str, names: &[&'static str]| {
            match Note::write(&offload_notes::folder(), interface, names) {
                Ok(written) => note = Some(written),
                Err(error) => notices.push(format!(
                    "{interface}: {} will stay off if this process is killed, because no note of it can be written to {}: \
                     {error}",
                    names.join(", "),
                    offload_notes::folder().display()
                )),
            }
        };
        let off = AnyPort::turn_offloads_off(name, &mut write)?;
        fixed.push(FixedOffloads { off, note });
    }
    Ok(fixed)
}

fn notice(restored: Restored) -> String {
    match restored {
        Restored::Done { interface, names } => {
            format!("{interface}: {} turned on again, which a killed router had turned off", names.join(", "))
        }
        Restored::Failed(why) => format!("{why}: run `cutline router restore` as root"),
    }
}
