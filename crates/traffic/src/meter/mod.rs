//! The receiving end: a TCP listener and a UDP socket on the same port, and what comes to them.
//!
//! ```text
//! connections  flows over TCP
//! datagrams    flows over our datagram transports
//! record       what is measured of a flow
//! ```
//!
//! A flow is what its first packet or connection says it is, and only from there: others that use its number are
//! strangers, which are counted and not listened to.

mod connections;
mod datagrams;
mod record;

use crate::TrafficError;
use crate::agenda::Deadlines;
use crate::clock;
use crate::report::{MeterReport, Window};
use crate::socket::{bind_both, local_address};
use connections::Connections;
use cutline_sys::datagrams::Inbox;
use cutline_sys::now;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_units::{Duration, Instant};
use datagrams::DatagramFlows;
use record::Record;
use rustix::fd::OwnedFd;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is set for a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterParams {
    /// How many flows there are: their numbers are below this. At most 1,000,000.
    pub flows: u32,
    /// Where distributions, and the counts of a window, are kept.
    pub window: Window,
    /// Keeps what came by intervals of this width.
    pub interval: Option<Duration>,
}

impl Default for MeterParams {
    fn default() -> Self {
        Self { flows: 1_000_000, window: Window::ALL, interval: None }
    }
}

/// Receives flows.
#[derive(Debug)]
pub struct Meter {
    listener: OwnedFd,
    datagrams: OwnedFd,
    address: SocketAddr,
    params: MeterParams,
}

/// What is common to a run's flows.
#[derive(Clone, Copy, Debug)]
struct Run {
    zero: Instant,
    params: MeterParams,
}

impl Run {
    fn record(&self, flow: u32) -> Record {
        Record::new(flow, self.params.window, self.params.interval)
    }

    fn time(&self, at: Instant) -> Duration {
        at.saturating_since(self.zero)
    }
}

/// The numbers of the sockets that are waited for; those of connections follow.
const LISTENER: u32 = 0;
const DATAGRAMS: u32 = 1;
const FIRST_CONNECTION: u32 = 2;
/// No delay is believed to be longer: it comes of stamps that make no sense.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

impl Meter {
    /// Takes an address; with port 0 one that is free for both protocols. From then on the kernel takes connections and
    /// datagrams, which [`Meter::run`] reads.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn bind(address: SocketAddr, params: MeterParams) -> Result<Self, TrafficError> {
        let failed = |error| TrafficError::system(format!("{address} cannot be listened at"))(error);
        let (listener, datagrams) = bind_both(address).map_err(failed)?;
        Inbox::prepare(&datagrams).map_err(failed)?;
        let address = local_address(&listener).map_err(failed)?;
        Ok(Self { listener, datagrams, address, params })
    }

    /// The address and port that it listens at.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Receives until `until`, counted from `zero`, which may lie ahead; or until `stop` is set. It should end later than
    /// the senders do, by what a packet takes.
    ///
    /// # Errors
    /// When sockets cannot be waited for.
    pub fn run(self, zero: Instant, until: Duration, stop: &AtomicBool) -> Result<MeterReport, TrafficError> {
        let run = Run { zero, params: self.params };
        let reactor = Reactor::new().map_err(TrafficError::system("sockets cannot be waited for"))?;
        let waits = |error| TrafficError::system("the meter's sockets cannot be waited for")(error);
        reactor.add(&self.listener, LISTENER, EventFlags::IN).map_err(waits)?;
        reactor.add(&self.datagrams, DATAGRAMS, EventFlags::IN).map_err(waits)?;
        let mut work = Work {
            connections: Connections::new(run),
            datagrams: DatagramFlows::new(run, self.datagrams),
            listener: self.listener,
            deadlines: Deadlines::default(),
            reactor,
        };
        let end = clock::at(zero, until);
        while !stop.load(Ordering::Relaxed) && now() < end {
            work.round(end)?;
        }
        Ok(work.finish())
    }
}

struct Work {
    connections: Connections,
    datagrams: DatagramFlows,
    listener: OwnedFd,
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
        let ready = ready.map_err(|error| TrafficError::system("waiting for sockets failed")(error))?;
        let ready: Vec<_> = ready.collect();
        for (number, _) in ready {
            match number {
                LISTENER => self.connections.accept(&self.listener, &self.reactor),
                DATAGRAMS => self.datagrams.read(&mut self.deadlines),
                connection => self.connections.read(connection - FIRST_CONNECTION),
            }
        }
        Ok(())
    }

    /// Reads what has come already, and puts both kinds of flow together.
    fn finish(mut self) -> MeterReport {
        self.datagrams.read(&mut self.deadlines);
        let mut report = self.datagrams.finish();
        self.connections.finish(&mut report);
        report.flows.sort_by_key(|flow| flow.flow);
        report
    }
}
