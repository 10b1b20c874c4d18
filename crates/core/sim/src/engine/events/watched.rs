//! Watched links: the code of all queued links, observed from outside.
//!
//! A watched link has separate event kinds. Their handlers are here: they note the state before and after the common code
//! has run. The common code does not test for watching, so links that are not watched have no extra cost.

use super::EventLoop;
use crate::calendar::EventHandle;
use crate::route::EventKind;
use crate::watch::View;
use cutline_aqm::DropReason;
use cutline_units::Instant;

impl EventLoop {
    /// Offers a packet to the queue of a watched link. If the link is idle, the transmission starts at once.
    #[cold]
    pub(super) fn enqueue_watched(&mut self, now: Instant, handle: EventHandle, link: usize) {
        let (was_busy, marked_before) =
            (self.parts.queued_links[link].busy, self.parts.queued_links[link].marked_in_interval());
        let seen = self.view(handle).seen();
        self.watch.arrives(now, link, handle, seen);
        self.enqueue(now, handle, link);
        let marked = self.parts.queued_links[link].marked_in_interval() > marked_before;
        self.watch.has_arrived(handle, marked);
        if !was_busy && self.parts.queued_links[link].has_started() {
            self.observe_departure(now, link, false);
        }
    }

    /// Starts the next transmission of a watched link that is free.
    #[cold]
    pub(super) fn serve_watched(&mut self, now: Instant, link: usize, event: EventHandle) {
        let marked_before = self.parts.queued_links[link].marked_in_interval();
        self.serve(now, link, event);
        if self.parts.queued_links[link].has_started() {
            let marked = self.parts.queued_links[link].marked_in_interval() > marked_before;
            self.observe_departure(now, link, marked);
        }
    }

    /// Observes that a queue drops a packet: the one that is arriving, or one that it had stored.
    #[cold]
    pub(super) fn observe_drop(&mut self, now: Instant, handle: EventHandle, reason: DropReason) {
        let place = self.parts.routes.at(self.calendar.payload(handle).position);
        if place.kind() == EventKind::Watched {
            let seen = self.view(handle).seen();
            self.watch.dropped(now, place.index(), handle, reason, seen);
        }
    }

    /// Observes that a packet's transmission has started. The packet may already be further along its route, or even be
    /// dropped there. Its record in a capture is unchanged, because its calendar entry is not reused before this call.
    fn observe_departure(&mut self, now: Instant, link: usize, marked: bool) {
        let handle = self.parts.queued_links[link].sent_last;
        let seen = self.view(handle).seen();
        self.watch.departed(now, link, handle, marked, seen);
    }

    fn view(&self, handle: EventHandle) -> View<'_> {
        let packet = self.calendar.payload(handle);
        View {
            handle,
            packet,
            wide: &self.wide_headers,
            routes: &self.parts.routes,
            sending: &self.parts.sending,
            receiving: &self.parts.receiving,
            messages: &self.agents.messages,
        }
    }
}
