//! Reports of receivers to what changes their senders' hints. Only flows whose hint adapts come here.

use super::Simulation;
use crate::adaptive::REPORT_BYTES;
use crate::calendar::Handle;
use crate::packet::{Beside, Packet};
use crate::route::{Kind, Stop};
use cutline_units::Instant;

impl Simulation {
    /// A receiver's report is due: it leaves, and the timer is set anew.
    #[cold]
    pub(super) fn send_report(&mut self, now: Instant, timer: Handle, id: usize) {
        let reporter =
            self.background[id].reporter.as_ref().expect("only a flow that reports has this timer");
        let (route, next) = (reporter.route, now + reporter.every);
        let report = Beside::Report(reporter.report(now));
        let handle = self.calendar.allocate();
        self.wide_headers.put(handle, report);
        let hint = self.receiving[id].hint;
        self.send(now, handle, Packet { size: REPORT_BYTES, position: route, hint, ..Packet::NONE });
        self.calendar.schedule(next, timer, Stop::new(Kind::ReportDue, id).tag());
    }

    /// A report reaches the sender: its packets have the hint that comes of it from now on, and so have acknowledgements (a
    /// receiver would follow a one-way delay later, with the first packet that has it).
    #[cold]
    pub(super) fn take_report(&mut self, now: Instant, handle: Handle, id: usize) {
        let Beside::Report(report) = *self.wide_headers.get(handle) else {
            unreachable!("only reports take this route")
        };
        self.calendar.release(handle);
        let (sending, flow) = (&mut self.sending[id], &mut self.background[id]);
        let control = flow.control.as_mut().expect("only a flow that adapts is reported to");
        let hint = control.on_report(now, &report, sending.record.total());
        sending.hint = hint;
        self.receiving[id].hint = hint;
        if let Some(series) = &mut flow.series {
            series.adapted(now, hint, control.centre());
        }
    }
}
