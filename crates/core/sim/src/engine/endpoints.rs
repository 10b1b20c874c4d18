//! The endpoints of flows: packets that arrive there, packets that they send, and their timers.

use super::Simulation;
use crate::calendar::EventHandle;
use crate::measure::Received;
use crate::packet::Packet;
use crate::route::{EventKind, Hop};
use cutline_transport::app::{Completion, TrafficSource as _};
use cutline_transport::endpoint::{Header, Outgoing};
use cutline_units::{Duration, Hint, Instant};

impl Simulation {
    /// Handles an acknowledgement or feedback that reaches the source.
    #[inline]
    pub(super) fn reach_source(&mut self, now: Instant, handle: EventHandle, flow: usize) {
        let header = self.calendar.payload(handle).header;
        let wide = &self.wide_headers;
        self.sending[flow].source.on_reply(now, header, || wide.reply(handle));
        self.calendar.release(handle);
        self.pump(now, flow);
    }

    /// Handles a data packet that reaches the sink. The reply is sent in the same calendar entry.
    #[inline]
    pub(super) fn reach_sink(&mut self, now: Instant, handle: EventHandle, id: usize) {
        let (reply, delivered) = self.read_data(now, handle, id);
        let flow = &self.receiving[id];
        let (route, hint, notifies_app) = (flow.route, flow.hint, flow.app_waits && delivered > 0);
        match reply {
            Some(reply) => self.emit(now, handle, route, hint, reply),
            None => self.calendar.release(handle),
        }
        self.arm_sink(id);
        if notifies_app {
            self.notify_app(now, id);
        }
    }

    /// Reads and measures a data packet. Returns the reply, and the number of bytes delivered to the application by it.
    #[inline]
    pub(super) fn read_data(
        &mut self,
        now: Instant,
        handle: EventHandle,
        id: usize,
    ) -> (Option<Outgoing<Header>>, u64) {
        let flow = &mut self.receiving[id];
        let packet = self.calendar.payload(handle);
        let before = flow.sink.delivered();
        let wide = &self.wide_headers;
        let receipt = flow.sink.on_data(now, packet.header, packet.marked, || wide.data(handle));
        let arrival = Received {
            queuing: packet.queued,
            one_way: now - receipt.sent_at,
            delivered: flow.sink.delivered() - before,
            marked: packet.marked,
        };
        if flow.is_noted {
            self.background[id].record_arrival(now, &arrival, flow.record.ipdv(arrival.one_way));
        }
        flow.record.received(now, self.settings.window, &arrival, &mut self.delays[flow.delays as usize]);
        (receipt.reply, arrival.delivered)
    }

    /// Records a data packet that leaves its source.
    #[inline]
    pub(super) fn note_sent(&mut self, now: Instant, id: usize, size: u32) {
        let flow = &mut self.sending[id];
        flow.record.sent(now, self.settings.window, size);
        if flow.has_series
            && let Some(series) = &mut self.background[id].series
        {
            series.sent(now, size);
        }
    }

    /// Puts a packet at the beginning of its route, now.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined, a packet is built where it will lie; else it is copied twice"
    )]
    pub(super) fn emit(
        &mut self,
        now: Instant,
        handle: EventHandle,
        position: u32,
        hint: Hint,
        outgoing: Outgoing<Header>,
    ) {
        let Outgoing { size, ecn, header } = outgoing;
        if let Some(wide) = header.wide {
            self.wide_headers.put(handle, wide);
        }
        let header = header.packed;
        self.send(
            now,
            handle,
            Packet { queued: Duration::ZERO, header, size, position, hint, ecn, marked: false },
        );
    }

    /// Writes a packet into its calendar entry, and puts it at the beginning of its route.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as emit")]
    pub(super) fn send(&mut self, now: Instant, handle: EventHandle, packet: Packet) {
        let position = packet.position;
        *self.calendar.payload_mut(handle) = packet;
        self.enter(now, handle, position);
    }

    /// Sends everything that the source may send now.
    #[inline]
    fn pump(&mut self, now: Instant, id: usize) {
        loop {
            let flow = &mut self.sending[id];
            let Some(outgoing) = flow.source.transmit(now) else { break };
            self.note_sent(now, id, outgoing.size);
            let flow = &self.sending[id];
            let (route, hint) = (flow.route, flow.hint);
            let handle = self.calendar.allocate();
            self.emit(now, handle, route, hint, outgoing);
        }
        self.arm_source(id);
    }

    /// Notifies an application that waits for delivery.
    fn notify_app(&mut self, now: Instant, id: usize) {
        let flow = &mut self.background[id];
        let delivered = self.receiving[id].sink.delivered();
        if let Some(Completion { latency, .. }) = flow.app.on_delivered(now, delivered)
            && let Some(responses) = &mut flow.responses
            && self.settings.window.contains(now)
        {
            responses.record(latency);
        }
        self.run_app(now, id);
    }

    /// Calls the application, which writes the data that is due.
    fn run_app(&mut self, now: Instant, id: usize) {
        let flow = &mut self.background[id];
        if now >= flow.stop {
            self.sending[id].source.end_supply();
            return;
        }
        while let Some(write) = flow.app.poll(now, &mut flow.random) {
            self.sending[id].source.write(write);
        }
        self.pump(now, id);
        self.arm_app(id);
    }
}

/// Timers. Each has at most one valid event; see [`LazyTimer`](cutline_transport::LazyTimer).
impl Simulation {
    pub(super) fn source_timer(&mut self, now: Instant, handle: EventHandle, id: usize) {
        self.calendar.release(handle);
        let flow = &mut self.sending[id];
        if flow.timer.take(now) {
            if flow.source.deadline() <= now {
                flow.source.on_deadline(now);
            }
            self.pump(now, id);
        }
    }

    pub(super) fn sink_timer(&mut self, now: Instant, handle: EventHandle, id: usize) {
        self.calendar.release(handle);
        let flow = &mut self.receiving[id];
        if !flow.timer.take(now) {
            return;
        }
        if flow.sink.deadline() <= now
            && let Some(reply) = flow.sink.on_deadline(now)
        {
            let (route, hint) = (flow.route, flow.hint);
            let handle = self.calendar.allocate();
            self.emit(now, handle, route, hint, reply);
        }
        self.arm_sink(id);
    }

    pub(super) fn app_timer(&mut self, now: Instant, handle: EventHandle, id: usize) {
        self.calendar.release(handle);
        if self.background[id].timer.take(now) {
            self.run_app(now, id);
        }
    }

    #[inline]
    fn arm_source(&mut self, id: usize) {
        let flow = &mut self.sending[id];
        if let Some(at) = flow.timer.set(flow.source.deadline()) {
            self.schedule_timer(at, EventKind::SourceTimer, id);
        }
    }

    #[inline]
    fn arm_sink(&mut self, id: usize) {
        let flow = &mut self.receiving[id];
        if let Some(at) = flow.timer.set(flow.sink.deadline()) {
            self.schedule_timer(at, EventKind::SinkTimer, id);
        }
    }

    pub(super) fn arm_app(&mut self, id: usize) {
        let flow = &mut self.background[id];
        if let Some(at) = flow.timer.set(flow.app.deadline().min(flow.stop)) {
            self.schedule_timer(at, EventKind::AppTimer, id);
        }
    }

    #[cold]
    pub(super) fn schedule_timer(&mut self, at: Instant, kind: EventKind, id: usize) {
        let handle = self.calendar.allocate();
        // Its rank, should an agent's message arrive at the same time: a timer has no position.
        self.calendar.payload_mut(handle).position = 0;
        self.calendar.schedule(at, handle, Hop::new(kind, id).tag());
    }
}
