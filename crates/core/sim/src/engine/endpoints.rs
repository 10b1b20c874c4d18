//! The endpoints of flows: the packets that they send, their applications and their timers.

use super::parts::Parts;
use crate::route::EventKind;
use cutline_transport::app::{Completion, TrafficSource as _};
use cutline_transport::endpoint::{Outgoing, PackedHeader};
use cutline_units::{Hint, Instant};

/// Interface of an engine to the endpoints of flows: it carries their packets and keeps their timers. The rest of the endpoints is
/// here, the same for every engine.
///
/// Each timer has at most one valid event; see [`LazyTimer`](cutline_transport::LazyTimer).
pub(super) trait Endpoints {
    /// Returns the flows and the network.
    fn parts(&mut self) -> &mut Parts;

    /// Puts a packet at the beginning of its route, now. Takes its header from [`Parts::wide_header`] if that is wide.
    fn emit(&mut self, now: Instant, position: u32, hint: Hint, outgoing: Outgoing<PackedHeader>);

    /// Schedules the timer of a flow, by the kind of its event.
    fn schedule_timer(&mut self, at: Instant, kind: EventKind, id: usize);

    /// Sends everything that the source may send now.
    #[inline(never)]
    fn pump(&mut self, now: Instant, id: usize) {
        self.pump_inline(now, id);
    }

    /// Does the same as [`Endpoints::pump`] where most packets are sent: at the arrival of a reply.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined, the flow is looked up once for a reply and the packets that it releases"
    )]
    fn pump_inline(&mut self, now: Instant, id: usize) {
        while let Some((route, hint, outgoing)) = self.parts().transmit(now, id) {
            self.emit(now, route, hint, outgoing);
        }
        self.arm_source(id);
    }

    /// Completes the arrival of a data packet that delivered so many bytes: sets the sink's timer, and notifies an application that
    /// waits for delivery.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "few instructions of a function with many arguments")]
    fn has_received(&mut self, now: Instant, id: usize, delivered: u64) {
        self.arm_sink(id);
        if delivered > 0 && self.parts().receiving[id].app_waits {
            self.notify_app(now, id);
        }
    }

    /// Notifies an application that waits for delivery.
    #[inline(never)]
    fn notify_app(&mut self, now: Instant, id: usize) {
        let parts = self.parts();
        let delivered = parts.receiving[id].sink.delivered();
        if let Some(Some(flow)) = parts.background.get_mut(id)
            && let Some(running) = &mut flow.running
            && let Some(Completion { latency, .. }) = running.app.on_delivered(now, delivered)
            && let Some(responses) = flow.rare.as_mut().and_then(|rare| rare.responses.as_mut())
            && parts.settings.window.contains(now)
        {
            responses.record(latency);
        }
        self.run_app(now, id);
    }

    /// Calls the application, which writes the data that is due.
    fn run_app(&mut self, now: Instant, id: usize) {
        let parts = self.parts();
        let Some(Some(flow)) = parts.background.get_mut(id) else { return };
        if now >= flow.stop {
            parts.sending[id].source.end_supply();
            return;
        }
        if let Some(running) = &mut flow.running {
            while let Some(write) = running.app.poll(now, &mut running.random) {
                parts.sending[id].source.write(write);
            }
            if running.app.deadline() == Instant::FAR_FUTURE && !parts.receiving[id].app_waits {
                // It has written all.
                flow.running = None;
            }
        }
        if flow.is_idle() {
            parts.forget_idle(id);
        }
        self.pump(now, id);
        self.arm_app(id);
    }

    /// Handles an event of a source's timer.
    fn source_timer(&mut self, now: Instant, id: usize) {
        let flow = &mut self.parts().sending[id];
        if flow.timer.take(now) {
            if flow.source.deadline() <= now {
                flow.source.on_deadline(now);
            }
            self.pump(now, id);
        }
    }

    /// Handles an event of a sink's timer.
    fn sink_timer(&mut self, now: Instant, id: usize) {
        let parts = self.parts();
        let flow = &mut parts.receiving[id];
        if !flow.timer.take(now) {
            return;
        }
        if flow.sink.deadline() <= now
            && let Some(reply) = flow.sink.on_deadline(now, &mut parts.wide_header)
        {
            let (route, hint) = (flow.route, flow.hint);
            self.emit(now, route, hint, reply);
        }
        self.arm_sink(id);
    }

    /// Handles an event of an application's timer.
    fn app_timer(&mut self, now: Instant, id: usize) {
        if let Some(Some(flow)) = self.parts().background.get_mut(id)
            && flow.timer.take(now)
        {
            self.run_app(now, id);
        }
    }

    /// Sets the timer of a source.
    #[inline]
    fn arm_source(&mut self, id: usize) {
        let flow = &mut self.parts().sending[id];
        if let Some(at) = flow.timer.set(flow.source.deadline()) {
            self.schedule_timer(at, EventKind::SourceTimer, id);
        }
    }

    /// Sets the timer of a sink.
    #[inline]
    fn arm_sink(&mut self, id: usize) {
        let flow = &mut self.parts().receiving[id];
        if let Some(at) = flow.timer.set(flow.sink.deadline()) {
            self.schedule_timer(at, EventKind::SinkTimer, id);
        }
    }

    /// Sets the timer of an application.
    fn arm_app(&mut self, id: usize) {
        let Some(Some(flow)) = self.parts().background.get_mut(id) else { return };
        let deadline = flow.deadline();
        if let Some(at) = flow.timer.set(deadline) {
            self.schedule_timer(at, EventKind::AppTimer, id);
        }
    }
}
