//! The network between the hosts: the simulator's own links, in real time, with the hosts' frames.
//!
//! A frame that arrives is injected into the simulation at the kernel's time stamp. From then on the simulation determines
//! its path: queues, verdicts and departures have their exact times, however late this thread wakes up. Only the last step,
//! sending the frame to the host at its end, is delayed by a late wake-up. This departure error is measured
//! ([`crate::timing::TimingMeasures`]).

use crate::frames::Frames;
use crate::reader::FrameReader;
use crate::timing::TimingMeasures;
use crate::{LabError, NetworkSide};
use cutline_ports::{InterfacePort as _, PacketPort, PortError, wait};
use cutline_router::Port;
use cutline_sim::{
    FinishedPacket, Network, PacketOutcome, Simulation, SimulationOutcome, SimulationSettings,
};
use cutline_sys::now;
use cutline_sys::thread::{cpu_time, set_realtime};
use cutline_units::{DscpPool2, Duration, Hint, HintCodec, Instant};
use cutline_wire::{Headers, set_ce, set_dscp};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// The running links between the hosts of the sources and those of the sinks.
pub struct Links {
    simulation: Simulation,
    reader: FrameReader,
    frames: Frames,
    /// The ports towards the sources and towards the sinks.
    ports: [PacketPort; 2],
    /// The frames that are due at each port.
    outboxes: [VecDeque<Leaving>; 2],
    /// By the frame's number: the port by which it leaves, and the hint with which it arrived.
    journeys: Vec<(NetworkSide, Hint)>,
    /// Frames that have just arrived, with their times.
    arrivals: Vec<(Instant, NetworkSide, u32)>,
    zero: Instant,
    duration: Duration,
    timing: TimingMeasures,
    /// The flows that are QoS connections.
    connections: Vec<usize>,
}

/// Measurements of the links.
pub struct Crossed {
    /// The outcome of the simulation of which the links are.
    pub outcome: SimulationOutcome,
    /// The timing of the run.
    pub timing: TimingMeasures,
    /// For each QoS connection, how many packets of its source have had which hint.
    pub hints: BTreeMap<usize, BTreeMap<Hint, u64>>,
}

/// A frame that is to leave.
struct Leaving {
    frame: u32,
    due: Instant,
}

/// The time after which frames that a port did not accept are offered again.
const RETRY: Duration = Duration::from_micros(100);

impl Links {
    /// Creates idle links on interfaces in the namespace of the calling thread.
    ///
    /// # Errors
    /// When the network cannot be built or an interface is not available.
    pub fn new(
        network: &Network,
        settings: &SimulationSettings,
        interfaces: [&str; 2],
        connections: Vec<usize>,
    ) -> Result<Self, LabError> {
        let [sources, sinks] = interfaces.map(PacketPort::open);
        Ok(Self {
            simulation: Simulation::new(network, settings)?,
            reader: FrameReader::new(network.flows()),
            frames: Frames::default(),
            ports: [sources?, sinks?],
            outboxes: Default::default(),
            journeys: Vec::new(),
            arrivals: Vec::new(),
            zero: Instant::ZERO,
            duration: settings.duration,
            timing: TimingMeasures::default(),
            connections,
        })
    }

    /// Carries all packets between two hosts, too, as those of the flow with this index. `hint` is that of packets whose code point is
    /// 0, if they are to have another than anywhere.
    pub fn with_host_pair(mut self, flow: usize, hosts: [Ipv4Addr; 2], hint: Option<Hint>) -> Self {
        self.reader = self.reader.with_host_pair(flow, hosts, hint);
        self
    }

    /// Runs from `zero` to the scenario's end, or until `ended` returns true. Returns the measurements.
    ///
    /// # Errors
    /// When an interface has failed.
    pub fn run(mut self, zero: Instant, ended: &(dyn Fn() -> bool + Sync)) -> Result<Crossed, LabError> {
        set_realtime();
        self.zero = zero;
        let end = zero + self.duration;
        let cpu_before = cpu_time();
        while !ended() {
            let now = now();
            if now >= end {
                break;
            }
            let received = self.round(now)?;
            if received == 0 {
                let stuck = self.outboxes.iter().any(|outbox| !outbox.is_empty());
                let retry = if stuck { now + RETRY } else { end };
                let next = self.next_event().min(retry);
                wait(&self.ports, next, Duration::ZERO)?;
            }
        }
        self.timing.cpu = cpu_time().saturating_sub(cpu_before);
        for port in &mut self.ports {
            let stats = port.stats()?;
            self.timing.missed += stats.missed + stats.truncated.packets;
        }
        self.simulation.advance(Instant::ZERO + self.duration);
        let hints = self.connections.iter().map(|flow| (*flow, self.reader.hints_of(*flow))).collect();
        Ok(Crossed { outcome: self.simulation.finish(), timing: self.timing, hints })
    }

    fn next_event(&mut self) -> Instant {
        let next = self.simulation.next_event();
        if next == Instant::FAR_FUTURE { next } else { self.zero + next.saturating_since(Instant::ZERO) }
    }

    /// Receives the frames that have arrived and sends those that are due. Returns the number of frames received.
    fn round(&mut self, now: Instant) -> Result<usize, LabError> {
        self.receive(now)?;
        let count = self.arrivals.len();
        self.arrivals.sort_by_key(|&(at, ..)| at);
        for (at, side, frame) in std::mem::take(&mut self.arrivals) {
            self.timing.frames += 1;
            self.timing.reading.record(now.saturating_since(at));
            self.inject(at, side, frame);
        }
        self.simulation.advance(self.simulated(now));
        self.take_out();
        for side in [NetworkSide::Sources, NetworkSide::Sinks] {
            self.send(side)?;
        }
        Ok(count)
    }

    fn receive(&mut self, now: Instant) -> Result<(), PortError> {
        let Self { ports, frames, arrivals, .. } = self;
        for (port, side) in ports.iter_mut().zip([NetworkSide::Sources, NetworkSide::Sinks]) {
            port.receive(now, &mut |at, frame| arrivals.push((at, side, frames.store(frame))))?;
        }
        Ok(())
    }

    /// Injects a frame into the network. Frames that belong to no flow are discarded.
    fn inject(&mut self, at: Instant, side: NetworkSide, frame: u32) {
        let Some(injected) = self.reader.read(side, self.frames.get(frame), frame) else {
            self.timing.strangers += 1;
            self.frames.release(frame);
            return;
        };
        let index = frame as usize;
        if index >= self.journeys.len() {
            self.journeys.resize(index + 1, (side, injected.hint));
        }
        self.journeys[index] = (side.other(), injected.hint);
        self.simulation.inject(self.simulated(at), injected);
    }

    /// Converts a time to simulated time. Times before the scenario's beginning become its beginning.
    fn simulated(&self, at: Instant) -> Instant {
        Instant::ZERO + at.saturating_since(self.zero)
    }

    /// Moves the frames that have crossed the network to the outboxes, with the marks of the queues.
    fn take_out(&mut self) {
        let Self { simulation, frames, journeys, outboxes, zero, .. } = self;
        for FinishedPacket { at, key, outcome } in simulation.take_finished() {
            let PacketOutcome::Arrived { marked, hint } = outcome else {
                frames.release(key);
                continue;
            };
            let (side, hint_before) = journeys[key as usize];
            rewrite(frames.get_mut(key), marked, (hint != hint_before).then_some(hint));
            let due = *zero + at.saturating_since(Instant::ZERO);
            outboxes[side as usize].push_back(Leaving { frame: key, due });
        }
    }

    fn send(&mut self, side: NetworkSide) -> Result<(), PortError> {
        let Self { ports, outboxes, frames, timing, .. } = self;
        let outbox = &mut outboxes[side as usize];
        if outbox.is_empty() {
            return Ok(());
        }
        let mut handled = 0;
        let mut bytes = outbox.iter().map(|leaving| frames.get(leaving.frame));
        ports[side as usize].send(&mut bytes, &mut |sent| {
            handled += 1;
            timing.unsent += u64::from(!sent);
        })?;
        let gone = now();
        for leaving in outbox.drain(..handled) {
            timing.departure.record(gone.saturating_since(leaving.due));
            frames.release(leaving.frame);
        }
        Ok(())
    }
}

/// Sets the mark and the hint that a packet received in the network.
fn rewrite(frame: &mut [u8], marked: bool, hint: Option<Hint>) {
    if !marked && hint.is_none() {
        return;
    }
    let Some(mut ip) = Headers::parse(frame, 0).ip else { return };
    if marked {
        set_ce(frame, &mut ip);
    }
    if let Some(dscp) = hint.and_then(|hint| DscpPool2.encode(hint)) {
        set_dscp(frame, &mut ip, dscp);
    }
}
