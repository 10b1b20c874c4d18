//! Forwarding of packets from link to link.

use super::EventLoop;
use crate::calendar::EventHandle;
use crate::engine::parts::Crossed;
use crate::external::{ExternalEndpoint, PacketOutcome};
use crate::queued_link::Started;
use crate::route::{EventKind, Hop};
use cutline_aqm::{DropReason, Verdict};
use cutline_units::Instant;

impl EventLoop {
    /// Puts a packet into the link at the beginning of its route, at `now`.
    #[inline]
    pub(super) fn enter(&mut self, now: Instant, handle: EventHandle, route: u32) {
        let hop = self.parts.routes.at(route);
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
        match self.parts.cross_fifo_links(now, packet, fifo_link) {
            Crossed::Arrives(at, next) => self.calendar.schedule(at, handle, next.tag()),
            Crossed::Dropped(at) => self.drop_packet(at, handle),
        }
    }

    /// Offers a packet to the queue of a queued link.
    #[inline]
    pub(super) fn enqueue(&mut self, now: Instant, handle: EventHandle, link: usize) {
        let packet = self.calendar.payload_mut(handle);
        let arrival = self.parts.arrival(packet);
        let queued_link = &mut self.parts.queued_links[link];
        match queued_link.arrive(now, arrival, handle) {
            Verdict::Drop(reason) => self.drop_at_queue(now, handle, reason),
            verdict => {
                packet.mark_if(verdict == Verdict::Mark);
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
        while let Some((handle, reason)) = self.parts.queued_links[link].shed(now) {
            self.drop_at_queue(now, handle, reason);
        }
    }

    /// Starts the next transmission of a queued link that is free; `event` is the handle of the link's own event.
    #[inline]
    pub(super) fn serve(&mut self, now: Instant, link: usize, event: EventHandle) {
        if self.parts.queued_links[link].deliveries.is_some() && self.wait_for_delivery(now, link, event) {
            return;
        }
        let started = self.parts.queued_links[link].start_next(now);
        self.drop_shed(now, link);
        let Some(Started { handle, waited, marked, free, departs, arrives }) = started else {
            self.calendar.release(event);
            return;
        };
        self.calendar.schedule(departs, event, free.tag());
        let packet = self.calendar.payload_mut(handle);
        *packet = packet.transmitted(waited, marked, self.parts.queued_links[link].pass_on);
        self.parts.hops += 1;
        let next = self.parts.routes.at(packet.position);
        if self.parts.queued_links[link].impairment.is_some() {
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
        match self.parts.queued_links[link].next_delivery(now) {
            None => self.calendar.release(event),
            Some(at) if at > now => {
                self.calendar.schedule(at, event, self.parts.queued_links[link].free.tag());
            }
            Some(_) => return false,
        }
        true
    }

    /// Sends a packet over a wire with an impairment. A lost packet ends when its last bit has left.
    #[cold]
    fn cross_impaired_wire(&mut self, departs: Instant, handle: EventHandle, link: usize, next: Hop) {
        let (window, size) = (self.parts.settings.window, self.calendar.payload(handle).size());
        let impaired = self.parts.queued_links[link].impairment.as_mut().expect("the caller has seen it");
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
        let impaired =
            self.parts.queued_links[link].impairment.as_mut().expect("only such links lose packets");
        impaired.counts.lost += u64::from(self.parts.settings.window.contains(now));
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
        let end = self.parts.routes.end(self.calendar.payload(handle).position);
        if end.kind() == EventKind::Sink {
            self.parts.note_dropped(at, end.index());
        } else if end.kind() == EventKind::External {
            let end = ExternalEndpoint::from_index(end.index());
            if end.is_data {
                self.parts.note_dropped(at, end.flow);
            }
            self.external.finish(at, handle, PacketOutcome::Dropped);
        } else if end.kind() == EventKind::Agent {
            self.agents.messages.drop_packet(handle);
        }
        self.calendar.release(handle);
    }

    /// Closes an interval of the queues' series.
    pub(super) fn interval(&mut self, now: Instant, handle: EventHandle) {
        for queued_link in &mut self.parts.queued_links {
            queued_link.close_interval(now);
        }
        self.calendar.schedule(
            now + self.parts.settings.interval,
            handle,
            Hop::new(EventKind::Interval, 0).tag(),
        );
    }

    pub(super) fn change_rate(&mut self, now: Instant, handle: EventHandle, change: usize) {
        let (_, link, rate) = self.parts.rate_changes[change];
        self.parts.queued_links[link].set_rate(now, rate);
        self.calendar.release(handle);
    }
}
