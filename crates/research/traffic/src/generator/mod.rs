//! The sending end: all flows of one thread.
//!
//! ```text
//! ceiling     the largest rate of all datagrams together
//! flow        an application and its carrier
//! connection  the carrier over TCP
//! datagrams   the carrier over a datagram transport
//! shaper      rate control of datagrams below the application
//! ```
//!
//! The loop wakes the flows that are due, writes to the sockets that are ready, and sleeps until the next deadline or
//! event. The error of a flow is in its report; the other flows continue.

mod ceiling;
mod connection;
mod datagrams;
mod flow;
mod shaper;

use crate::agenda::Deadlines;
use crate::plan::{DatagramOptions, FlowPlan, FlowTransport, PlanError};
use crate::report::{SenderReport, Window, interval_at};
use crate::{TrafficError, report};
use ceiling::Ceiling;
use cutline_signal::clock::ClockOffset;
use cutline_sys::now;
use cutline_sys::reactor::Reactor;
use cutline_units::{Duration, Instant, Rate, Streams};
use flow::Flow;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of messages that an application writes, or packets that a transport with an adaptive rate sends, before
/// other flows have their turn. A flow that is behind continues in the next round. So an overloaded machine still
/// checks its sockets and the clock.
const TURN: usize = 64;

/// The sender of many flows.
#[derive(Debug)]
pub struct Generator {
    plans: Vec<FlowPlan>,
    streams: Streams,
    settings: Settings,
    /// The connected sockets of flows whose paths the peer has opened.
    adopted: BTreeMap<u32, OwnedFd>,
    /// The largest rate of all datagrams together.
    most: Option<Rate>,
    /// Time for which waits in buffers are measured after the end of sending.
    drain: Duration,
}

/// The settings of all flows.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    clock: ClockOffset,
    window: Window,
    interval: Option<Duration>,
    token: u64,
    /// Interval between checks of the data in a TCP connection's buffer in the kernel; `None` for never.
    ask: Option<Duration>,
    datagrams: DatagramOptions,
    /// True if an application writes only when its last message has left the process.
    waits: bool,
}

/// The data of the run that each flow needs.
#[derive(Clone, Debug)]
struct Run {
    zero: Instant,
    settings: Settings,
    ceiling: Rc<Ceiling>,
}

impl Run {
    /// Counts payload that the kernel has accepted.
    fn sent(&self, report: &mut SenderReport, now: Instant, bytes: u64, packets: u64) {
        let at = now.saturating_since(self.zero);
        report.bytes += bytes;
        report.packets += packets;
        if self.settings.window.contains(at) {
            report.window_bytes += bytes;
            report.window_packets += packets;
        }
        if let Some(interval) = interval_at(&mut report.intervals, self.settings.interval, at) {
            let report::SentInterval { bytes: so_far, packets: packets_so_far } = interval;
            *so_far += bytes;
            *packets_so_far += packets;
        }
    }
}

impl Generator {
    /// Returns a generator of flows. Each flow has a separate stream of random numbers, which depends on its name and
    /// on `app`, as in the simulator.
    ///
    /// # Errors
    /// Returns an error if a plan is invalid, or if two flows have the same number.
    pub fn new(plans: Vec<FlowPlan>, streams: Streams) -> Result<Self, TrafficError> {
        let mut ids = BTreeSet::new();
        for plan in &plans {
            plan.validate()?;
            if !ids.insert(plan.id) {
                return Err(plan.refuse("id", plan.id, "must be unique".to_owned()).into());
            }
        }
        Ok(Self {
            plans,
            streams,
            settings: Settings::default(),
            adopted: BTreeMap::new(),
            most: None,
            drain: Duration::ZERO,
        })
    }

    /// Sets the offset of the meter's clock. Time stamps are in the meter's clock.
    pub fn with_clock(mut self, clock: ClockOffset) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Sets the token that the meter expects ([`crate::MeterParams::token`]).
    pub fn with_token(mut self, token: u64) -> Self {
        self.settings.token = token;
        self
    }

    /// Sets the measuring window. The default is the whole run.
    pub fn with_window(mut self, window: Window) -> Self {
        self.settings.window = window;
        self
    }

    /// Keeps counters for each interval of this width.
    pub fn with_intervals(mut self, width: Duration) -> Self {
        self.settings.interval = Some(width);
        self
    }

    /// Measures how long the messages of TCP flows wait in this end's buffers ([`SenderReport::buffer_wait`]). The kernel is queried
    /// every 5 ms for each flow with such messages, more rarely if there are more than 20 flows. After the end of sending
    /// [`Generator::run`] takes up to `drain` longer to measure the data that the kernel still has.
    pub fn with_buffer_waits(mut self, drain: Duration) -> Self {
        self.drain = drain;
        let shares = (self.plans.len() as u64).div_ceil(20).max(1);
        self.settings.ask = Some(Duration::from_millis(5 * shares));
        self
    }

    /// Sets the options of the flows over datagrams whose paths this end opens.
    pub fn with_datagram_options(mut self, options: DatagramOptions) -> Self {
        self.settings.datagrams = options;
        self
    }

    /// Lets each application wait until its last message has left the process, as with blocking sockets. An application whose rate
    /// is above that of the host sends as fast as the socket takes its messages.
    pub fn with_blocking_writes(mut self) -> Self {
        self.settings.waits = true;
        self
    }

    /// Sends flows over connected sockets that the peer has opened, by the flows' numbers. The sockets do not block.
    pub(crate) fn with_sockets(mut self, sockets: BTreeMap<u32, OwnedFd>) -> Self {
        self.adopted = sockets;
        self
    }

    /// Sends no more than this payload rate in the datagrams of all flows together. Excess datagrams are refused and
    /// counted. TCP has no such limit.
    pub(crate) fn with_ceiling(mut self, most: Rate) -> Self {
        self.most = Some(most);
        self
    }

    /// Sends until `until` has elapsed since `zero`, until `stop` is set, or until all flows have failed. `zero` may be
    /// in the future. Returns a report for each flow in the order of the plans.
    ///
    /// # Errors
    /// Returns an error if sockets cannot be polled, or if a TCP flow needs ECN and the kernel does not request it.
    pub fn run(
        mut self,
        zero: Instant,
        until: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<SenderReport>, TrafficError> {
        // The end that opens a connection decides on ECN.
        check_ecn(self.plans.iter().filter(|plan| !self.adopted.contains_key(&plan.id)))?;
        let run = Run { zero, settings: self.settings, ceiling: Rc::new(Ceiling::new(self.most)) };
        let flow = |plan: FlowPlan| {
            let socket = self.adopted.remove(&plan.id);
            Flow::new(plan, self.streams, run.clone(), socket)
        };
        let mut work = Work {
            flows: self.plans.into_iter().map(flow).collect(),
            deadlines: Deadlines::default(),
            reactor: Reactor::new().map_err(TrafficError::system("cannot create an epoll instance"))?,
        };
        (0..work.flows.len() as u32).for_each(|flow| work.arm(flow));
        let end = zero.saturating_add(until);
        while !stop.load(Ordering::Relaxed) && now() < end && !work.is_over() {
            work.round(end)?;
        }
        work.flows.iter_mut().for_each(Flow::end);
        if let Some(time) = self.settings.ask {
            work.drain(time, now().saturating_add(self.drain), stop)?;
        }
        Ok(work.flows.into_iter().map(Flow::into_report).collect())
    }
}

struct Work {
    flows: Vec<Flow>,
    deadlines: Deadlines,
    reactor: Reactor,
}

impl Work {
    /// Wakes the flows that are due, and then handles the events of the sockets.
    fn round(&mut self, end: Instant) -> Result<(), TrafficError> {
        let due_by = now();
        let mut again = Vec::new();
        while let Some(flow) = self.deadlines.pop(due_by) {
            let now = now();
            if now >= end {
                return Ok(());
            }
            self.flows[flow as usize].wake(now, &self.reactor, flow);
            again.push(flow);
        }
        for flow in again {
            self.arm(flow);
        }
        let ready = self.reactor.wait(self.deadlines.next().min(end));
        let ready = ready.map_err(|error| TrafficError::system("cannot poll the sockets")(error))?;
        let ready: Vec<_> = ready.collect();
        for (flow, flags) in ready {
            self.flows[flow as usize].ready(now(), flags);
            self.arm(flow);
        }
        Ok(())
    }

    /// Checks the kernel's buffers every `time`, until they are empty, `end` or `stop`.
    fn drain(&mut self, time: Duration, end: Instant, stop: &AtomicBool) -> Result<(), TrafficError> {
        while !stop.load(Ordering::Relaxed) && now() < end {
            let waiting = self.flows.iter_mut().map(Flow::drain).filter(|waits| *waits).count();
            if waiting == 0 {
                break;
            }
            let next = now().saturating_add(time);
            while now() < next {
                // Messages of the peer after the end are ignored.
                let ready = self.reactor.wait(next);
                ready.map_err(|error| TrafficError::system("cannot poll the sockets")(error))?.for_each(drop);
            }
        }
        Ok(())
    }

    fn arm(&mut self, flow: u32) {
        self.deadlines.arm(flow, self.flows[flow as usize].deadline());
    }

    /// Returns whether all flows have failed.
    fn is_over(&self) -> bool {
        self.flows.iter().all(Flow::is_over)
    }
}

/// Checks that the network namespace requests ECN if a TCP flow needs it. A socket has no such option.
pub(crate) fn check_ecn<'p>(mut plans: impl Iterator<Item = &'p FlowPlan>) -> Result<(), PlanError> {
    const SETTING: &str = "/proc/sys/net/ipv4/tcp_ecn";
    let Some(plan) = plans.find(|plan| plan.ecn && matches!(plan.transport, FlowTransport::Tcp(_))) else {
        return Ok(());
    };
    let is = std::fs::read_to_string(SETTING).unwrap_or_default();
    // Modes from 3 on also request it, together with Accurate ECN.
    if is.trim().parse::<u32>().is_ok_and(|mode| mode == 1 || mode >= 3) {
        return Ok(());
    }
    let allowed = format!("with TCP it needs net.ipv4.tcp_ecn = 1, which is {:?}", is.trim());
    Err(plan.refuse("ecn", true, allowed))
}
