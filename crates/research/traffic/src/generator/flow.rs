//! A flow at its sender. The application decides on the data, and the carrier writes it to the socket.

use super::connection::Connection;
use super::datagrams::Datagrams;
use super::{Run, TURN};
use crate::plan::{FlowPlan, FlowTransport, PlanDirection, frame_params};
use crate::report::SenderReport;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_transport::app::{App, TrafficSource as _, Write};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Instant, RandomStream, Streams};
use rustix::fd::OwnedFd;

#[derive(Debug)]
pub(super) struct Flow {
    plan: FlowPlan,
    run: Run,
    /// The connected socket that the peer has opened, until the flow starts.
    adopted: Option<OwnedFd>,
    app: App,
    random: RandomStream,
    start: Instant,
    /// The time at which the application stops.
    stop: Instant,
    stopped: bool,
    /// The time of the application's last write. No arrival can be earlier.
    wrote: Instant,
    carrier: Carrier,
    report: SenderReport,
}

#[derive(Debug)]
enum Carrier {
    /// The flow has not started.
    Waiting,
    Connection(Box<Connection>),
    Datagrams(Box<Datagrams>),
    /// The flow has failed.
    Failed,
}

impl Flow {
    pub(super) fn new(plan: FlowPlan, streams: Streams, run: Run, adopted: Option<OwnedFd>) -> Self {
        let start = run.zero.saturating_add(plan.start);
        let mut random = streams.stream(&plan.name, "app");
        Self {
            app: plan.app.start(start, &mut random),
            random,
            start,
            stop: plan.stop.map_or(Instant::FAR_FUTURE, |stop| run.zero.saturating_add(stop)),
            stopped: false,
            wrote: start,
            carrier: Carrier::Waiting,
            report: SenderReport { flow: plan.id, name: plan.name.clone(), ..SenderReport::default() },
            plan,
            run,
            adopted,
        }
    }

    /// Returns the time of the flow's next action.
    pub(super) fn deadline(&self) -> Instant {
        let carrier = match &self.carrier {
            Carrier::Waiting => return self.start,
            Carrier::Failed => return Instant::FAR_FUTURE,
            Carrier::Connection(connection) => connection.deadline(),
            Carrier::Datagrams(datagrams) => datagrams.deadline(),
        };
        let app = if self.is_blocked() { Instant::FAR_FUTURE } else { self.app.deadline() };
        if self.stopped { carrier } else { carrier.min(app).min(self.stop) }
    }

    /// Returns whether the application waits until its last message has left the process, as one that writes to a blocking
    /// socket.
    fn is_blocked(&self) -> bool {
        self.run.settings.waits
            && match &self.carrier {
                Carrier::Connection(connection) => connection.is_blocked(),
                Carrier::Datagrams(datagrams) => datagrams.is_blocked(),
                Carrier::Waiting | Carrier::Failed => false,
            }
    }

    /// Returns whether the flow has failed and sends nothing more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.carrier, Carrier::Failed)
    }

    /// Runs the flow's timers at `now`. The call may be too early.
    pub(super) fn wake(&mut self, now: Instant, reactor: &Reactor, number: u32) {
        if matches!(self.carrier, Carrier::Waiting) {
            if now < self.start {
                return;
            }
            self.begin(reactor, number);
        }
        if let Carrier::Datagrams(datagrams) = &mut self.carrier {
            datagrams.on_deadline(now);
        }
        self.run_app(now);
        self.pump(now);
    }

    /// Handles an event of the flow's socket.
    pub(super) fn ready(&mut self, now: Instant, flags: EventFlags) {
        let done = match &mut self.carrier {
            Carrier::Connection(connection) => connection.ready(flags),
            Carrier::Datagrams(datagrams) => datagrams.ready(now, &self.run).map(|()| None),
            Carrier::Waiting | Carrier::Failed => return,
        };
        match done {
            Ok(None) => {}
            Ok(Some(note)) => {
                // The clock offset has an error. The arrival is not before the write and not after the present.
                let arrived = self.run.settings.clock.ours(note.at).clamp(self.wrote.min(now), now);
                self.delivered(arrived, note.delivered);
                self.run_app(now);
            }
            Err(error) => return self.fail(error),
        }
        self.pump(now);
    }

    /// Ends the flow. The kernel closes a connection after it has sent the buffered data.
    pub(super) fn end(&mut self) {
        match &mut self.carrier {
            Carrier::Connection(connection) => connection.finish(&mut self.report),
            Carrier::Datagrams(datagrams) => datagrams.finish(&mut self.report),
            Carrier::Waiting | Carrier::Failed => {}
        }
    }

    /// Measures, after the end, the data that has left the kernel's buffer. Returns true if some is still there.
    pub(super) fn drain(&mut self) -> bool {
        match &mut self.carrier {
            Carrier::Connection(connection) => connection.drain(&self.run, &mut self.report),
            Carrier::Datagrams(_) | Carrier::Waiting | Carrier::Failed => false,
        }
    }

    /// Returns the report.
    pub(super) fn into_report(self) -> SenderReport {
        self.report
    }

    fn begin(&mut self, reactor: &Reactor, number: u32) {
        let socket = self.adopted.take();
        if socket.is_none() && self.plan.direction == PlanDirection::Reverse {
            return self.fail("the peer has opened no path for it".to_owned());
        }
        let settings = &self.run.settings;
        let datagrams = |params: &TransportParams, socket| {
            let opened =
                Datagrams::open(&self.plan, params, socket, (settings, self.start), (reactor, number));
            opened.map(|datagrams| Carrier::Datagrams(Box::new(datagrams)))
        };
        let carrier = match &self.plan.transport {
            FlowTransport::Tcp(options) => {
                Connection::open(&self.plan, options, socket, settings, (reactor, number))
                    .map(|connection| Carrier::Connection(Box::new(connection)))
            }
            FlowTransport::Datagrams(params) => datagrams(params, socket),
            FlowTransport::Direct { largest } => datagrams(&frame_params(*largest), None),
        };
        match carrier {
            Ok(carrier) => self.carrier = carrier,
            Err(error) => self.fail(error),
        }
    }

    /// Calls the application for all writes that are due.
    fn run_app(&mut self, now: Instant) {
        if now >= self.stop && !self.stopped {
            self.stopped = true;
            match &mut self.carrier {
                Carrier::Connection(connection) => connection.end_supply(),
                Carrier::Datagrams(datagrams) => datagrams.end_supply(),
                Carrier::Waiting | Carrier::Failed => {}
            }
        }
        for _ in 0..TURN {
            if self.stopped {
                break;
            }
            if self.is_blocked() {
                break;
            }
            let due = self.app.deadline();
            let Some(write) = self.app.poll(now, &mut self.random) else { break };
            if !self.plan.app.needs_reliability() {
                self.report.lateness.record(now.saturating_since(due));
            }
            self.wrote = now;
            self.report.messages += u64::from(matches!(write, Write::Bytes(_)));
            self.write(write, now);
            if self.run.settings.waits {
                self.pump(now);
            }
        }
    }

    fn write(&mut self, write: Write, now: Instant) {
        let taken = match &mut self.carrier {
            Carrier::Connection(connection) => {
                connection.write(write, now, self.plan.app.needs_reliability())
            }
            Carrier::Datagrams(datagrams) => datagrams.write(write),
            Carrier::Waiting | Carrier::Failed => true,
        };
        if let (false, Write::Bytes(bytes)) = (taken, write) {
            self.report.refused_bytes += bytes;
        }
    }

    fn delivered(&mut self, arrived: Instant, total: u64) {
        let in_window = self.run.settings.window.contains(arrived.saturating_since(self.run.zero));
        if let Some(completion) = self.app.on_delivered(arrived, total).filter(|_| in_window) {
            self.report.responses.record(completion.latency);
        }
    }

    /// Writes as much as the socket takes.
    fn pump(&mut self, now: Instant) {
        let done = match &mut self.carrier {
            Carrier::Connection(connection) => connection.pump(&self.run, &mut self.report),
            Carrier::Datagrams(datagrams) => datagrams.pump(now, &self.run, &mut self.report),
            Carrier::Waiting | Carrier::Failed => Ok(()),
        };
        if let Err(error) = done {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: String) {
        self.report.error.get_or_insert(error);
        match std::mem::replace(&mut self.carrier, Carrier::Failed) {
            Carrier::Connection(mut connection) => connection.finish(&mut self.report),
            Carrier::Datagrams(mut datagrams) => datagrams.finish(&mut self.report),
            Carrier::Waiting | Carrier::Failed => {}
        }
    }
}
