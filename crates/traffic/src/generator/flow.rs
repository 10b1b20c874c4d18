//! A flow at its sender: the application says what it writes, the carrier takes it to the socket.

use super::connection::Connection;
use super::datagrams::Datagrams;
use super::{Run, TURN};
use crate::clock::at;
use crate::plan::{FlowPlan, Transport};
use crate::report::SenderReport;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_transport::app::{App, TrafficSource as _, Write};
use cutline_units::{Instant, RandomStream, Streams};

#[derive(Debug)]
pub(super) struct Flow {
    plan: FlowPlan,
    run: Run,
    app: App,
    random: RandomStream,
    start: Instant,
    /// When the application stops; far in the future once it has.
    stop: Instant,
    stopped: bool,
    /// When the application wrote last: nothing arrives before that.
    wrote: Instant,
    carrier: Carrier,
    report: SenderReport,
}

#[derive(Debug)]
enum Carrier {
    /// It has not started.
    Waiting,
    Connection(Box<Connection>),
    Datagrams(Box<Datagrams>),
    /// It has failed.
    Failed,
}

impl Flow {
    pub(super) fn new(plan: FlowPlan, streams: Streams, run: Run) -> Self {
        let start = at(run.zero, plan.start);
        let mut random = streams.stream(&plan.name, "app");
        Self {
            app: plan.app.start(start, &mut random),
            random,
            start,
            stop: plan.stop.map_or(Instant::FAR_FUTURE, |stop| at(run.zero, stop)),
            stopped: false,
            wrote: start,
            carrier: Carrier::Waiting,
            report: SenderReport { flow: plan.id, name: plan.name.clone(), ..SenderReport::default() },
            plan,
            run,
        }
    }

    /// When it next has something to do.
    pub(super) fn deadline(&self) -> Instant {
        let carrier = match &self.carrier {
            Carrier::Waiting => return self.start,
            Carrier::Failed => return Instant::FAR_FUTURE,
            Carrier::Connection(connection) => connection.deadline(),
            Carrier::Datagrams(datagrams) => datagrams.deadline(),
        };
        if self.stopped { carrier } else { carrier.min(self.app.deadline()).min(self.stop) }
    }

    /// Whether it has failed.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.carrier, Carrier::Failed)
    }

    /// Its deadline may have come.
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

    /// Its socket can take or has brought something.
    pub(super) fn ready(&mut self, now: Instant, flags: EventFlags) {
        let done = match &mut self.carrier {
            Carrier::Connection(connection) => connection.ready(flags),
            Carrier::Datagrams(datagrams) => datagrams.ready(now, &self.run).map(|()| None),
            Carrier::Waiting | Carrier::Failed => return,
        };
        match done {
            Ok(None) => {}
            Ok(Some(note)) => {
                // Two clocks may disagree by their error: nothing has arrived before it was written, nor after now.
                let arrived = self.run.settings.clock.ours(note.at).clamp(self.wrote.min(now), now);
                self.delivered(arrived, note.delivered);
                self.run_app(now);
            }
            Err(error) => return self.fail(error),
        }
        self.pump(now);
    }

    /// What there is to report; the connection is closed when its data are out.
    pub(super) fn finish(mut self) -> SenderReport {
        match &mut self.carrier {
            Carrier::Connection(connection) => connection.finish(&mut self.report),
            Carrier::Datagrams(datagrams) => datagrams.finish(&mut self.report),
            Carrier::Waiting | Carrier::Failed => {}
        }
        self.report
    }

    fn begin(&mut self, reactor: &Reactor, number: u32) {
        let carrier = match &self.plan.transport {
            Transport::Tcp(options) => Connection::open(&self.plan, options, reactor, number)
                .map(|connection| Carrier::Connection(Box::new(connection))),
            Transport::Datagrams(params) => Datagrams::open(&self.plan, params, self.start, reactor, number)
                .map(|datagrams| Carrier::Datagrams(Box::new(datagrams))),
        };
        match carrier {
            Ok(carrier) => self.carrier = carrier,
            Err(error) => self.fail(error),
        }
    }

    /// Lets the application write what is due.
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
            let due = self.app.deadline();
            let Some(write) = self.app.poll(now, &mut self.random) else { break };
            if !self.plan.app.needs_reliability() {
                self.report.lateness.record(now.saturating_since(due));
            }
            self.wrote = now;
            self.report.messages += u64::from(matches!(write, Write::Bytes(_)));
            self.write(write, now);
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

    /// Hands over what the socket takes.
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
