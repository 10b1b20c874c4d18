//! Forwarding of packets from link to link.

use super::Simulation;
use crate::calendar::EventHandle;
use crate::external::{ExternalEndpoint, PacketOutcome};
use crate::queued_link::Started;
use crate::route::{EventKind, Hop};
use cutline_aqm::{Arrival, DropReason, Verdict};
use cutline_units::{Ecn, Instant};

impl Simulation {
    /// Puts a packet into the link at the beginning of its route, at `now`.
    #[inline]
    pub(super) fn enter(&mut self, now: Instant, handle: EventHandle, route: u32) {
        let hop = self.routes.at(route);
        match hop.kind() {
            EventKind::FifoLink | EventKind::FoldedFifoLink => {
                self.cross_fifo_links(now, handle, hop.index());
            }
            EventKind::QueuedLink => self.enqueue(now, handle, hop.index()),
            EventKind::Watched => self.enqueue_watched(now, handle, hop.index()),
            _ => unreachable!("a route begins with a link"),
        }
    }

    /// Sends a packet over a FIFO link, and over those behind it that may be folded.
    #[inline]
    pub(super) fn cross_fifo_links(&mut self, now: Instant, handle: EventHandle, fifo_link: usize) {
        let packet = self.calendar.payload_mut(handle);
        let (mut at, mut fifo_link) = (now, fifo_link);
        loop {
            let link = &mut self.fifo_links[fifo_link];
            let class = &mut self.fifo_classes[link.class as usize];
            let Some(passage) = link.offer(class, at, packet.size, self.settings.window) else {
                self.drop_packet(at, handle);
                return;
            };
            packet.queued += passage.waited;
            packet.position += 1;
            self.hops += 1;
            at = passage.arrives;
            let next = self.routes.at(packet.position);
            if !next.is_folded_fifo_link() {
                self.calendar.schedule(at, handle, next.tag());
                return;
            }
            fifo_link = next.index();
        }
    }

    /// Offers a packet to the queue of a queued link.
    #[inline]
    pub(super) fn enqueue(&mut self, now: Instant, handle: EventHandle, link: usize) {
        let queued_link = &mut self.queued_links[link];
        let packet = self.calendar.payload_mut(handle);
        let arrival = Arrival {
            size: packet.size,
            hint: packet.hint,
            // Every flow has its own route, so all packets of a flow have the same position at a link.
            flow: packet.position,
            hosts: self.routes.hosts(packet.position),
            waited: packet.queued,
            ecn_capable: packet.ecn != Ecn::NotEct,
            scalable: packet.ecn == Ecn::Ect1,
        };
        match queued_link.arrive(now, arrival, handle) {
            Verdict::Drop(reason) => self.drop_at_queue(now, handle, reason),
            verdict => {
                packet.marked |= verdict == Verdict::Mark;
                if !queued_link.busy {
                    let event = self.calendar.allocate();
                    self.serve(now, link, event);
                }
            }
        }
        self.drop_shed(now, link);
    }

    /// Drops the packets that a queue had stored and has shed since.
    #[inline]
    fn drop_shed(&mut self, now: Instant, link: usize) {
        while let Some((handle, reason)) = self.queued_links[link].shed(now) {
            self.drop_at_queue(now, handle, reason);
        }
    }

    /// Starts the next transmission of a queued link that is free; `event` is the handle of the link's own event.
    #[inline]
    pub(super) fn serve(&mut self, now: Instant, link: usize, event: EventHandle) {
        if self.queued_links[link].deliveries.is_some() && self.wait_for_delivery(now, link, event) {
            return;
        }
        let started = self.queued_links[link].start_next(now);
        self.drop_shed(now, link);
        let Some(Started { handle, waited, marked, free, departs, arrives }) = started else {
            self.calendar.release(event);
            return;
        };
        self.calendar.schedule(departs, event, free.tag());
        let packet = self.calendar.payload_mut(handle);
        packet.queued += waited;
        packet.marked |= marked;
        if let Some(budget) = self.queued_links[link].pass_on {
            packet.hint = budget.after(packet.hint, waited);
        }
        packet.position += 1;
        self.hops += 1;
        let next = self.routes.at(packet.position);
        if self.queued_links[link].impairment.is_some() {
            self.cross_impaired_wire(departs, handle, link, next);
        } else if next.is_folded_fifo_link() {
            self.cross_fifo_links(arrives, handle, next.index());
        } else {
            self.calendar.schedule(arrives, handle, next.tag());
        }
    }

    /// Schedules the link's own event for the next delivery, or releases it if nothing waits. Returns false if a delivery is open now.
    #[cold]
    fn wait_for_delivery(&mut self, now: Instant, link: usize, event: EventHandle) -> bool {
        match self.queued_links[link].next_delivery(now) {
            None => self.calendar.release(event),
            Some(at) if at > now => self.calendar.schedule(at, event, self.queued_links[link].free.tag()),
            Some(_) => return false,
        }
        true
    }

    /// Sends a packet over a wire with an impairment. A lost packet ends when its last bit has left.
    #[cold]
    fn cross_impaired_wire(&mut self, departs: Instant, handle: EventHandle, link: usize, next: Hop) {
        let (window, size) = (self.settings.window, self.calendar.payload(handle).size);
        let impaired = self.queued_links[link].impairment.as_mut().expect("the caller has seen it");
        match impaired.send(departs, size, window) {
            None => self.calendar.schedule(departs, handle, Hop::new(EventKind::Lost, link).tag()),
            Some(arrives) if next.is_folded_fifo_link() => {
                self.cross_fifo_links(arrives, handle, next.index());
            }
            Some(arrives) => self.calendar.schedule(arrives, handle, next.tag()),
        }
    }

    /// Ends a packet that was lost on the wire of a link.
    #[cold]
    pub(super) fn lose(&mut self, now: Instant, handle: EventHandle, link: usize) {
        let impaired = self.queued_links[link].impairment.as_mut().expect("only such links lose packets");
        impaired.counts.lost += u64::from(self.settings.window.contains(now));
        self.drop_packet(now, handle);
    }

    #[cold]
    fn drop_at_queue(&mut self, now: Instant, handle: EventHandle, reason: DropReason) {
        if self.watch.is_on() {
            self.observe_drop(now, handle, reason);
        }
        self.drop_packet(now, handle);
    }

    #[cold]
    fn drop_packet(&mut self, at: Instant, handle: EventHandle) {
        let end = self.routes.end(self.calendar.payload(handle).position);
        if end.kind() == EventKind::Sink {
            self.note_dropped(at, end.index());
        } else if end.kind() == EventKind::External {
            let end = ExternalEndpoint::from_index(end.index());
            if end.is_data {
                self.note_dropped(at, end.flow);
            }
            self.external.finish(at, handle, PacketOutcome::Dropped);
        } else if end.kind() == EventKind::Agent {
            self.agents.messages.drop_packet(handle);
        }
        self.calendar.release(handle);
    }

    /// Counts a data packet that a flow has lost.
    fn note_dropped(&mut self, at: Instant, flow: usize) {
        self.receiving[flow].record.dropped(at, self.settings.window);
        if let Some(series) = &mut self.background[flow].series {
            series.dropped(at);
        }
    }

    /// Closes an interval of the queues' series.
    pub(super) fn interval(&mut self, now: Instant, handle: EventHandle) {
        for queued_link in &mut self.queued_links {
            queued_link.close_interval(now);
        }
        self.calendar.schedule(now + self.settings.interval, handle, Hop::new(EventKind::Interval, 0).tag());
    }

    pub(super) fn change_rate(&mut self, now: Instant, handle: EventHandle, change: usize) {
        let (link, rate) = self.rate_changes[change];
        self.queued_links[link].set_rate(now, rate);
        self.calendar.release(handle);
    }
}
