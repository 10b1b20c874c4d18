//! A watched link: the very code of any other served link, looked at from outside.
//!
//! A watched link has event kinds of its own, and what they lead to is here: it notes what is there before and
//! after the common code has run. That code has no question about watching in it, so where nothing is watched
//! it costs nothing.

use super::Simulation;
use crate::calendar::Handle;
use crate::route::EventKind;
use crate::watch::View;
use cutline_aqm::DropReason;
use cutline_units::Instant;

impl Simulation {
    /// A packet comes to the queue of a watched link; if the link is idle, its sending begins at once.
    #[cold]
    pub(super) fn enqueue_watched(&mut self, now: Instant, handle: Handle, link: usize) {
        let (was_busy, marked_before) =
            (self.queued_links[link].busy, self.queued_links[link].marked_in_interval());
        let seen = self.view(handle).seen();
        self.watch.arrives(now, link, handle, seen);
        self.enqueue(now, handle, link);
        let marked = self.queued_links[link].marked_in_interval() > marked_before;
        self.watch.has_arrived(handle, marked);
        if !was_busy && self.queued_links[link].busy {
            self.observe_departure(now, link, false);
        }
    }

    /// A watched link is free.
    #[cold]
    pub(super) fn serve_watched(&mut self, now: Instant, link: usize, event: Handle) {
        let marked_before = self.queued_links[link].marked_in_interval();
        self.serve(now, link, event);
        if self.queued_links[link].busy {
            let marked = self.queued_links[link].marked_in_interval() > marked_before;
            self.observe_departure(now, link, marked);
        }
    }

    /// A queue drops a packet: the one that comes, or one that it had stored.
    #[cold]
    pub(super) fn observe_drop(&mut self, now: Instant, handle: Handle, reason: DropReason) {
        let place = self.routes.at(self.calendar.payload(handle).position);
        if place.kind() == EventKind::Watched {
            let seen = self.view(handle).seen();
            self.watch.dropped(now, place.index(), handle, reason, seen);
        }
    }

    /// A packet's sending has begun. It may be further on its way by now, even dropped there; what a capture shows of
    /// it has not changed, for its place in the calendar is given to no other before this.
    fn observe_departure(&mut self, now: Instant, link: usize, marked: bool) {
        let handle = self.queued_links[link].sent_last;
        let seen = self.view(handle).seen();
        self.watch.departed(now, link, handle, marked, seen);
    }

    fn view(&self, handle: Handle) -> View<'_> {
        let packet = self.calendar.payload(handle);
        View {
            handle,
            packet,
            wide: &self.wide_headers,
            routes: &self.routes,
            sending: &self.sending,
            receiving: &self.receiving,
            agents: &self.agents,
        }
    }
}
