//! The way of a packet from link to link.

use super::Simulation;
use crate::calendar::Handle;
use crate::outside::{Fate, OutsideEnd};
use crate::route::{Kind, Stop};
use crate::served::Started;
use cutline_aqm::{Arrival, DropReason, Verdict};
use cutline_units::{Ecn, Instant};

impl Simulation {
    /// A packet comes, now, to the link at the beginning of its route.
    #[inline]
    pub(super) fn enter(&mut self, now: Instant, handle: Handle, route: u32) {
        let stop = self.routes.at(route);
        match stop.kind() {
            Kind::Wire | Kind::FoldedWire => self.cross_wires(now, handle, stop.index()),
            Kind::Served => self.enqueue(now, handle, stop.index()),
            Kind::Watched => self.enqueue_watched(now, handle, stop.index()),
            _ => unreachable!("a route begins with a link"),
        }
    }

    /// Puts a packet through a wire, and through those behind it that may be folded.
    #[inline]
    pub(super) fn cross_wires(&mut self, now: Instant, handle: Handle, wire: usize) {
        let packet = self.calendar.payload_mut(handle);
        let (mut at, mut wire) = (now, wire);
        loop {
            let link = &mut self.wires[wire];
            let class = &mut self.wire_classes[link.class as usize];
            let Some(passage) = link.offer(class, at, packet.size, self.settings.window) else {
                self.drop_packet(at, handle);
                return;
            };
            packet.queued += passage.waited;
            packet.position += 1;
            self.hops += 1;
            at = passage.arrives;
            let next = self.routes.at(packet.position);
            if !next.is_folded_wire() {
                self.calendar.schedule(at, handle, next.tag());
                return;
            }
            wire = next.index();
        }
    }

    /// A packet comes to the queue of a served link.
    #[inline]
    pub(super) fn enqueue(&mut self, now: Instant, handle: Handle, link: usize) {
        let served = &mut self.served[link];
        let packet = self.calendar.payload_mut(handle);
        let arrival = Arrival {
            size: packet.size,
            hint: packet.hint,
            // Every flow has a route of its own, so the packets of one come to a link at the same position.
            flow: packet.position,
            ecn_capable: packet.ecn != Ecn::NotEct,
            scalable: packet.ecn == Ecn::Ect1,
        };
        match served.arrive(now, arrival, handle) {
            Verdict::Drop(reason) => self.drop_at_queue(now, handle, reason),
            verdict => {
                packet.marked |= verdict == Verdict::Mark;
                if !served.busy {
                    let event = self.calendar.allocate();
                    self.serve(now, link, event);
                }
            }
        }
        self.drop_shed(now, link);
    }

    /// Drops what a queue had kept and has thrown away since.
    #[inline]
    fn drop_shed(&mut self, now: Instant, link: usize) {
        while let Some((handle, reason)) = self.served[link].shed(now) {
            self.drop_at_queue(now, handle, reason);
        }
    }

    /// A served link is free: begins to send its next packet; `event` is the handle of the link's own event.
    #[inline]
    pub(super) fn serve(&mut self, now: Instant, link: usize, event: Handle) {
        let started = self.served[link].start_next(now);
        self.drop_shed(now, link);
        let Some(Started { handle, waited, marked, free, departs, arrives }) = started else {
            self.calendar.release(event);
            return;
        };
        self.calendar.schedule(departs, event, free.tag());
        let packet = self.calendar.payload_mut(handle);
        packet.queued += waited;
        packet.marked |= marked;
        if let Some(budget) = self.served[link].pass_on {
            packet.hint = budget.after(packet.hint, waited);
        }
        packet.position += 1;
        self.hops += 1;
        let next = self.routes.at(packet.position);
        if next.is_folded_wire() {
            self.cross_wires(arrives, handle, next.index());
        } else {
            self.calendar.schedule(arrives, handle, next.tag());
        }
    }

    #[cold]
    fn drop_at_queue(&mut self, now: Instant, handle: Handle, reason: DropReason) {
        if self.watch.is_on() {
            self.observe_drop(now, handle, reason);
        }
        self.drop_packet(now, handle);
    }

    #[cold]
    fn drop_packet(&mut self, at: Instant, handle: Handle) {
        let end = self.routes.end(self.calendar.payload(handle).position);
        if end.kind() == Kind::Sink {
            self.note_dropped(at, end.index());
        } else if end.kind() == Kind::Outside {
            let end = OutsideEnd::of_index(end.index());
            if end.is_data {
                self.note_dropped(at, end.flow);
            }
            self.outside.leave(at, handle, Fate::Dropped);
        } else if end.kind() == Kind::Agent {
            self.agents.forget(handle);
        }
        self.calendar.release(handle);
    }

    /// A flow has lost a data packet.
    fn note_dropped(&mut self, at: Instant, flow: usize) {
        self.receiving[flow].record.dropped(at, self.settings.window);
        if let Some(series) = &mut self.background[flow].series {
            series.dropped(at);
        }
    }

    /// An interval of the queues' series ends.
    pub(super) fn interval(&mut self, now: Instant, handle: Handle) {
        for served in &mut self.served {
            served.close_interval(now);
        }
        self.calendar.schedule(now + self.settings.interval, handle, Stop::new(Kind::Interval, 0).tag());
    }

    pub(super) fn change_rate(&mut self, now: Instant, handle: Handle, change: usize) {
        let (link, rate) = self.rate_changes[change];
        self.served[link].set_rate(now, rate);
        self.calendar.release(handle);
    }
}
