//! The sending end: all flows of one thread.
//!
//! ```text
//! flow        an application, and what carries it
//! connection  over TCP
//! datagrams   over one of our datagram transports
//! ```
//!
//! The loop asks whoever is due, lets sockets that can take more take it, and sleeps until the next of either. A flow
//! that fails says so in its report, and the others go on.

mod connection;
mod datagrams;
mod flow;

use crate::agenda::Deadlines;
use crate::clock::{self, ClockOffset};
use crate::plan::{FlowPlan, PlanError, Transport};
use crate::report::{SenderReport, Window, interval_at};
use crate::{TrafficError, report};
use cutline_sys::now;
use cutline_sys::reactor::Reactor;
use cutline_units::{Duration, Instant, Streams};
use flow::Flow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many messages an application writes, or packets a transport that adapts its rate sends, before other flows have their turn. Who is behind goes on
/// in the next round, so that a machine that cannot keep up still looks at its sockets and the clock.
const TURN: usize = 64;

/// Sends flows.
#[derive(Clone, Debug)]
pub struct Generator {
    plans: Vec<FlowPlan>,
    streams: Streams,
    settings: Settings,
}

/// What is set for all flows.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    clock: ClockOffset,
    window: Window,
    interval: Option<Duration>,
}

/// What a flow at work has to know of the run.
#[derive(Clone, Copy, Debug)]
struct Run {
    zero: Instant,
    settings: Settings,
}

impl Run {
    /// Notes payload that the kernel has taken.
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
    /// A generator of flows, each with random numbers of its own: the stream of its name for `app`, as in the simulator.
    ///
    /// # Errors
    /// When a flow cannot be as it is planned, or two have the same number.
    pub fn new(plans: Vec<FlowPlan>, streams: Streams) -> Result<Self, TrafficError> {
        let mut ids = BTreeSet::new();
        for plan in &plans {
            plan.validate()?;
            if !ids.insert(plan.id) {
                return Err(plan.refuse("id", plan.id, "a number of its own".to_owned()).into());
            }
        }
        Ok(Self { plans, streams, settings: Settings::default() })
    }

    /// Stamps with the meter's clock, which is so far from ours.
    pub fn with_clock(mut self, clock: ClockOffset) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Keeps distributions, and the counts of a window, in this part of the run; default: all of it.
    pub fn with_window(mut self, window: Window) -> Self {
        self.settings.window = window;
        self
    }

    /// Keeps what was sent by intervals of this width.
    pub fn with_intervals(mut self, width: Duration) -> Self {
        self.settings.interval = Some(width);
        self
    }

    /// Sends until `until`, counted from `zero`, which may lie ahead; or until `stop` is set; or until no flow is left. A
    /// report for each flow in the order of the plans.
    ///
    /// # Errors
    /// When sockets cannot be waited for, or a flow asks for ECN and the kernel does not.
    pub fn run(
        self,
        zero: Instant,
        until: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<SenderReport>, TrafficError> {
        check_ecn(&self.plans)?;
        let run = Run { zero, settings: self.settings };
        let flow = |plan| Flow::new(plan, self.streams, run);
        let mut work = Work {
            flows: self.plans.into_iter().map(flow).collect(),
            deadlines: Deadlines::default(),
            reactor: Reactor::new().map_err(TrafficError::system("sockets cannot be waited for"))?,
        };
        (0..work.flows.len() as u32).for_each(|flow| work.arm(flow));
        let end = clock::at(zero, until);
        while !stop.load(Ordering::Relaxed) && now() < end && !work.is_over() {
            work.round(end)?;
        }
        Ok(work.flows.into_iter().map(Flow::finish).collect())
    }
}

struct Work {
    flows: Vec<Flow>,
    deadlines: Deadlines,
    reactor: Reactor,
}

impl Work {
    /// Whoever is due, and then whoever can take more.
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
        let ready = ready.map_err(|error| TrafficError::system("waiting for sockets failed")(error))?;
        let ready: Vec<_> = ready.collect();
        for (flow, flags) in ready {
            self.flows[flow as usize].ready(now(), flags);
            self.arm(flow);
        }
        Ok(())
    }

    fn arm(&mut self, flow: u32) {
        self.deadlines.arm(flow, self.flows[flow as usize].deadline());
    }

    /// Whether no flow will ever send again. Looked at once a round, and it ends at the first that will.
    fn is_over(&self) -> bool {
        self.flows.iter().all(Flow::is_over)
    }
}

/// ECN of TCP is the network namespace's, not a socket's.
fn check_ecn(plans: &[FlowPlan]) -> Result<(), PlanError> {
    const SETTING: &str = "/proc/sys/net/ipv4/tcp_ecn";
    let Some(plan) = plans.iter().find(|plan| plan.ecn && matches!(plan.transport, Transport::Tcp(_))) else {
        return Ok(());
    };
    let is = std::fs::read_to_string(SETTING).unwrap_or_default();
    // 3 and above ask for it, too, and for Accurate ECN besides.
    if is.trim().parse::<u32>().is_ok_and(|mode| mode == 1 || mode >= 3) {
        return Ok(());
    }
    let allowed = format!("for TCP only where net.ipv4.tcp_ecn is 1, and it is {:?}", is.trim());
    Err(plan.refuse("ecn", true, allowed))
}
