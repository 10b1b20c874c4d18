//! The receiving end: a TCP listener and a UDP socket on the same port, and their flows; or the sockets of flows that the other
//! end sends over paths that this end has opened.
//!
//! ```text
//! connections  flows over TCP
//! datagrams    flows over datagram transports
//! record       the measurements of a flow
//! ```
//!
//! The first packet or connection with a flow's number determines its source and transport. Packets and connections of
//! other sources with that number are *strangers*. So are those without the session's token, and those from another address
//! than that of the session's peer. The meter counts strangers, ignores their data and sends them nothing.

mod connections;
mod datagrams;
mod record;

use crate::TrafficError;
use crate::agenda::Deadlines;
use crate::rendezvous::Called;
use crate::report::{MeterReport, Window};
use crate::socket::{bind_both, local_address};
use connections::Connections;
use cutline_sys::datagrams::Inbox;
use cutline_sys::now;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_units::{Duration, Instant};
pub(crate) use datagrams::FrameMeter;
use datagrams::{DatagramFlows, MeterSocket};
use record::Record;
use rustix::fd::OwnedFd;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

/// The parameters of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterParams {
    /// The number of flows, at most 1,000,000. Flow numbers are below it.
    pub flows: u32,
    /// The measuring window.
    pub window: Window,
    /// The width of the intervals; `None` for no intervals.
    pub interval: Option<Duration>,
    /// The token that packets and connections must have.
    pub token: u64,
    /// The size of the UDP socket's buffer, bytes; `None` for 8 MiB. The kernel may give less.
    pub receive_buffer: Option<u32>,
    /// The only address that packets and connections may come from; `None` for any address.
    pub peer: Option<IpAddr>,
}

impl Default for MeterParams {
    fn default() -> Self {
        Self {
            flows: 1_000_000,
            window: Window::ALL,
            interval: None,
            token: 0,
            receive_buffer: None,
            peer: None,
        }
    }
}

/// The receiver of many flows.
#[derive(Debug)]
pub struct Meter {
    /// `None` if this end has opened all connections.
    listener: Option<OwnedFd>,
    datagrams: Vec<OwnedFd>,
    /// `None` if no flow sends frames.
    frames: Option<FrameMeter>,
    /// The connections that this end has opened, and their peer.
    connections: Vec<(OwnedFd, SocketAddr)>,
    address: SocketAddr,
    params: MeterParams,
}

/// The data of the run that each flow needs.
#[derive(Clone, Copy, Debug)]
struct Run {
    zero: Instant,
    params: MeterParams,
}

impl Run {
    fn record(&self, flow: u32) -> Record {
        Record::new(flow, self.params.window, self.params.interval)
    }

    /// Returns whether a packet or connection with this token and source belongs to the session.
    fn is_ours(&self, token: u64, from: SocketAddr) -> bool {
        token == self.params.token && self.is_peer(from)
    }

    /// Returns whether this is the address of the session's peer.
    fn is_peer(&self, from: SocketAddr) -> bool {
        self.params.peer.is_none_or(|peer| peer.to_canonical() == from.ip().to_canonical())
    }

    fn time(&self, at: Instant) -> Duration {
        at.saturating_since(self.zero)
    }
}

/// The reactor's numbers of the sockets. The numbers of connections follow those of the sockets for datagrams.
const LISTENER: u32 = 0;
const FIRST_DATAGRAMS: u32 = 1;
/// The longest delay that is recorded. A longer one comes from invalid time stamps.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

impl Meter {
    /// Binds both sockets to an address; with port 0 the kernel chooses a port that is free for both protocols. From
    /// then on the kernel accepts connections and datagrams, which [`Meter::run`] reads.
    ///
    /// # Errors
    /// Returns an error if the address is not available.
    pub fn bind(address: SocketAddr, params: MeterParams) -> Result<Self, TrafficError> {
        let failed = |error| TrafficError::system(format!("cannot listen on {address}"))(error);
        let (listener, datagrams) = bind_both(address, params.receive_buffer).map_err(failed)?;
        Inbox::prepare(&datagrams).map_err(failed)?;
        let address = local_address(&listener).map_err(failed)?;
        Ok(Self::new(listener, datagrams, address, params))
    }

    /// Returns a meter with sockets of [`Meter::bind`] or `rendezvous`, which have `address`.
    pub(crate) fn new(
        listener: OwnedFd,
        datagrams: OwnedFd,
        address: SocketAddr,
        params: MeterParams,
    ) -> Self {
        Self {
            listener: Some(listener),
            datagrams: vec![datagrams],
            frames: None,
            connections: Vec::new(),
            address,
            params,
        }
    }

    /// Returns a meter of flows that the peer sends over paths that this end has opened.
    pub(crate) fn of_called(called: Called, address: SocketAddr, params: MeterParams) -> Self {
        let Called { connections, datagrams } = called;
        Self { listener: None, datagrams, frames: None, connections, address, params }
    }

    /// Also receives frames.
    pub(crate) fn with_frames(mut self, frames: Option<FrameMeter>) -> Self {
        self.frames = frames;
        self
    }

    /// Returns the sockets of a meter that listens.
    pub(crate) fn into_sockets(mut self) -> Option<(OwnedFd, OwnedFd)> {
        self.listener.zip(self.datagrams.pop())
    }

    /// Returns the address and port on which the meter listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Receives until `until` has elapsed since `zero`, or until `stop` is set. `zero` may be in the future. A meter
    /// should run longer than the senders, by at least the path's delay.
    ///
    /// # Errors
    /// Returns an error if the sockets cannot be polled.
    pub fn run(self, zero: Instant, until: Duration, stop: &AtomicBool) -> Result<MeterReport, TrafficError> {
        let run = Run { zero, params: self.params };
        let reactor = Reactor::new().map_err(TrafficError::system("cannot create an epoll instance"))?;
        let waits = |error| TrafficError::system("cannot poll the meter's sockets")(error);
        if let Some(listener) = &self.listener {
            reactor.add(listener, LISTENER, EventFlags::IN).map_err(waits)?;
        }
        let udp = self.datagrams.into_iter().map(MeterSocket::Udp);
        let frames = self.frames.into_iter().map(|frames| MeterSocket::Direct(Box::new(frames)));
        let datagrams: Vec<_> = udp.chain(frames).collect();
        for (number, socket) in (FIRST_DATAGRAMS..).zip(&datagrams) {
            reactor.add(socket, number, EventFlags::IN).map_err(waits)?;
        }
        let first_connection = FIRST_DATAGRAMS + datagrams.len() as u32;
        let mut connections = Connections::new(run, first_connection);
        for (socket, peer) in self.connections {
            connections.add(socket, peer, &reactor);
        }
        let mut work = Work {
            connections,
            first_connection,
            datagrams: DatagramFlows::new(run, datagrams),
            listener: self.listener,
            deadlines: Deadlines::default(),
            reactor,
        };
        let end = zero.saturating_add(until);
        while !stop.load(Ordering::Relaxed) && now() < end {
            work.round(end)?;
        }
        Ok(work.finish())
    }
}

struct Work {
    connections: Connections,
    first_connection: u32,
    datagrams: DatagramFlows,
    listener: Option<OwnedFd>,
    deadlines: Deadlines,
    reactor: Reactor,
}

impl Work {
    fn round(&mut self, end: Instant) -> Result<(), TrafficError> {
        let due_by = now();
        while let Some(flow) = self.deadlines.pop(due_by) {
            self.datagrams.on_deadline(now(), flow);
            self.deadlines.arm(flow, self.datagrams.deadline(flow));
        }
        let ready = self.reactor.wait(self.deadlines.next().min(end));
        let ready = ready.map_err(|error| TrafficError::system("cannot poll the sockets")(error))?;
        let ready: Vec<_> = ready.collect();
        for (number, _) in ready {
            match (number.checked_sub(self.first_connection), &self.listener) {
                (Some(connection), _) => self.connections.read(connection),
                (None, Some(listener)) if number == LISTENER => {
                    self.connections.accept(listener, &self.reactor);
                }
                _ => self.datagrams.read((number - FIRST_DATAGRAMS) as usize, &mut self.deadlines),
            }
        }
        Ok(())
    }

    /// Reads the datagrams that have arrived already, and returns the report of all flows.
    fn finish(mut self) -> MeterReport {
        self.datagrams.read_all(&mut self.deadlines);
        let mut report = self.datagrams.finish();
        self.connections.finish(&mut report);
        report.flows.sort_by_key(|flow| flow.flow);
        report
    }
}
