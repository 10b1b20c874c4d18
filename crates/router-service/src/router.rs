//! A router between two interfaces of this machine.

use crate::board::Board;
use crate::configuration::summary;
use crate::error::ServiceError;
use crate::local_socket::LocalSocket;
use crate::privileges::{Keep, User, drop_privileges};
use crate::reload::{Reloader, params};
use crate::sd_notify::SdNotify;
use crate::service::{Listener, Service};
use crate::spec::{DirectionSpec, ProcessSpec, RouterSpec};
use cutline_ports::{AnyPort, InterfacePort as _, PortKind};
use cutline_router::{DuplexShaper, Shaper, ShaperParams};
use cutline_sys::{Offloads, SysError, now};
use cutline_units::{Duration, Streams};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A router whose interfaces are open, and which has dropped the privileges that it no longer needs.
pub struct Router {
    spec: Arc<RouterSpec>,
    seed: u64,
    duplex: DuplexShaper,
    /// Kept because dropping it removes its file.
    _socket: Option<LocalSocket>,
    board: Option<Arc<Board>>,
    reloader: Option<Reloader>,
    ports: [AnyPort; 2],
    /// The last field, so that the offloads are restored after the ports are closed.
    _offloads: Vec<Offloads>,
}

/// Names of the random streams. They never change, so that a seed gives the same random numbers in every version.
const FORWARD_STREAM: &str = "router.forth";
const REVERSE_STREAM: &str = "router.back";

/// How long a router runs, and how often it reports its statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The duration of the run; `None` runs until the router is stopped.
    pub duration: Option<Duration>,
    /// The interval between reports; `None` reports at the end only.
    pub interval: Option<Duration>,
}

impl Router {
    /// Opens the interfaces and the socket, and drops privileges: those of this thread and of all threads that it starts
    /// later. Requests at the socket are answered once the router runs.
    ///
    /// # Errors
    /// When something is not available. Then everything is as before, except for the privileges.
    pub fn open(spec: RouterSpec) -> Result<Self, ServiceError> {
        let process = &spec.process;
        let seed = process.seed.unwrap_or_else(|| now().as_nanos());
        let user = process.user.as_deref().map(User::find).transpose()?;
        // Before the ports: changing them may restart a card, and AF_XDP wants them off.
        let offloads = offloads(&spec)?;
        let ports = AnyPort::open_pair([&spec.input, &spec.output])?;
        let duplex = duplex(&spec, &ports, Streams::new(seed))?;
        let socket = socket(process, user.as_ref())?;
        drop_privileges(Keep { net_admin: process.fix_offloads }, user.as_ref())?;
        let spec = Arc::new(spec);
        let board = socket.as_ref().map(|socket| open_board(socket, &spec)).transpose()?;
        let reloader = None;
        Ok(Self { spec, seed, duplex, _socket: socket, board, reloader, ports, _offloads: offloads })
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

    /// Returns the seed of the queues' random numbers.
    pub const fn seed(&self) -> u64 {
        self.seed
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
        let manager = SdNotify::from_environment();
        let mut service = Service::new(&self.spec, duration, interval, &manager, stop, listener)
            .with_reloader(self.reloader)
            .with_board(self.board);
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
        forward: shaper(&spec.forward, output, streams, FORWARD_STREAM)?,
        reverse: shaper(&spec.reverse, input, streams, REVERSE_STREAM)?,
    })
}

fn shaper(
    spec: &DirectionSpec,
    outgoing: &AnyPort,
    streams: Streams,
    stream: &str,
) -> Result<Shaper, ServiceError> {
    let base = ShaperParams {
        largest_frame: outgoing.largest_frame(),
        salt: streams.stream(stream, "salt").uniform().to_bits(),
        ..ShaperParams::new(spec.queue.clone())
    };
    Ok(Shaper::new(params(&base, spec), streams.stream(stream, "drop"))?)
}

fn socket(process: &ProcessSpec, user: Option<&User>) -> Result<Option<LocalSocket>, SysError> {
    let Some(path) = &process.socket else { return Ok(None) };
    let socket = LocalSocket::bind(path)?;
    if let Some(user) = user {
        socket.set_owner(user)?;
    }
    Ok(Some(socket))
}

fn open_board(socket: &LocalSocket, spec: &Arc<RouterSpec>) -> Result<Arc<Board>, SysError> {
    let board = Arc::new(Board::new(Arc::clone(spec)));
    socket.serve(Arc::clone(&board).answer())?;
    Ok(board)
}

fn offloads(spec: &RouterSpec) -> Result<Vec<Offloads>, SysError> {
    if !spec.process.fix_offloads {
        return Ok(Vec::new());
    }
    let off = [&spec.input, &spec.output].map(|name| AnyPort::turn_offloads_off(name));
    off.into_iter().filter_map(Result::transpose).collect()
}
