//! The event loop: pops events from the calendar, and simulates every network.
//!
//! ```text
//! setup      flows, agents and the first events
//! forward    forwards packets from link to link
//! watched    links whose packets are observed
//! external   endpoints that are not simulated
//! agents     programs at nodes that send each other messages
//! ```

mod agents;
mod external;
mod forward;
mod setup;
mod watched;

use self::agents::Agents;
use super::endpoints::Endpoints;
use super::parts::Parts;
use crate::calendar::{Calendar, EventHandle};
use crate::external::External;
use crate::outcome::{SimulationOutcome, Work};
use crate::packet::{Packet, WideHeaders};
use crate::route::{EventKind, Hop};
use crate::watch::{Observation, Watch};
use cutline_transport::endpoint::{Outgoing, PackedHeader};
use cutline_units::{Hint, Instant};

/// A simulation that takes one event after the other from a calendar.
pub(super) struct EventLoop {
    calendar: Calendar<Packet>,
    /// Headers too long for their packets.
    wide_headers: WideHeaders,
    parts: Parts,
    watch: Watch,
    external: External,
    agents: Agents,
}

impl EventLoop {
    pub(super) fn advance(&mut self, until: Instant) {
        let until = until.min(Instant::ZERO + self.parts.settings.duration);
        self.external.clock = self.external.clock.max(until);
        while let Some((now, handle, tag)) = self.calendar.pop(until) {
            let hop = Hop::from_tag(tag);
            let index = hop.index();
            match hop.kind() {
                EventKind::FoldedFifoLink | EventKind::FifoLink => self.cross_fifo_links(now, handle, index),
                EventKind::QueuedLink => self.enqueue(now, handle, index),
                EventKind::Sink => self.reach_sink(now, handle, index),
                EventKind::Source => self.reach_source(now, handle, index),
                EventKind::LinkFree => self.serve(now, index, handle),
                EventKind::SourceTimer => {
                    self.calendar.release(handle);
                    self.source_timer(now, index);
                }
                EventKind::SinkTimer => {
                    self.calendar.release(handle);
                    self.sink_timer(now, index);
                }
                EventKind::AppTimer => {
                    self.calendar.release(handle);
                    self.app_timer(now, index);
                }
                EventKind::Interval => self.interval(now, handle),
                EventKind::RateChange => self.change_rate(now, handle, index),
                EventKind::Watched => self.enqueue_watched(now, handle, index),
                EventKind::WatchedFree => self.serve_watched(now, index, handle),
                EventKind::Agent => self.reach_agent(now, handle, index),
                EventKind::External => self.leave(now, handle, index),
                EventKind::Lost => self.lose(now, handle, index),
            }
        }
    }

    pub(super) fn take_observations(&mut self) -> impl Iterator<Item = Observation> + '_ {
        self.watch.observations.drain(..)
    }

    pub(super) const fn time(&self) -> Instant {
        self.external.clock
    }

    pub(super) const fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(super) fn finish(self) -> SimulationOutcome {
        let (events, undeliverable) = (self.calendar.popped(), self.agents.undeliverable);
        self.into_parts().settle(Work { events, undeliverable, ..Work::default() })
    }

    /// Returns the parts, without the memory of packets.
    fn into_parts(self) -> Parts {
        self.parts
    }

    /// Handles an acknowledgement or feedback that reaches the source.
    #[inline]
    fn reach_source(&mut self, now: Instant, handle: EventHandle, flow: usize) {
        let header = self.calendar.payload(handle).header();
        let wide = &self.wide_headers;
        self.parts.sending[flow].source.on_reply(now, header, || wide.reply(handle));
        self.calendar.release(handle);
        self.pump(now, flow);
    }

    /// Handles a data packet that reaches the sink. The reply is sent in the same calendar entry.
    #[inline]
    fn reach_sink(&mut self, now: Instant, handle: EventHandle, id: usize) {
        let packet = self.calendar.payload(handle);
        let wide = &self.wide_headers;
        let (reply, delivered) = self.parts.read_data(now, packet, id, || wide.data(handle));
        let flow = &self.parts.receiving[id];
        let (route, hint) = (flow.route, flow.hint);
        match reply {
            Some(reply) => self.emit_as(handle, now, route, hint, reply),
            None => self.calendar.release(handle),
        }
        self.has_received(now, id, delivered);
    }

    /// Puts a packet into a calendar entry, and to the beginning of its route.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined, a packet is built where it will lie; else it is copied twice"
    )]
    fn emit_as(
        &mut self,
        handle: EventHandle,
        now: Instant,
        position: u32,
        hint: Hint,
        outgoing: Outgoing<PackedHeader>,
    ) {
        let Outgoing { size, ecn, header } = outgoing;
        if header.is_wide() {
            let wide = self.parts.wide_header.take().expect("the endpoint has put it there");
            self.wide_headers.put(handle, wide);
        }
        self.send(now, handle, Packet::new(header, size, position, hint, ecn));
    }

    /// Writes a packet into its calendar entry, and puts it at the beginning of its route.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as emit_as")]
    fn send(&mut self, now: Instant, handle: EventHandle, packet: Packet) {
        let position = packet.position;
        *self.calendar.payload_mut(handle) = packet;
        self.enter(now, handle, position);
    }
}

impl Endpoints for EventLoop {
    #[inline]
    fn parts(&mut self) -> &mut Parts {
        &mut self.parts
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as emit_as")]
    fn emit(&mut self, now: Instant, position: u32, hint: Hint, outgoing: Outgoing<PackedHeader>) {
        let handle = self.calendar.allocate();
        self.emit_as(handle, now, position, hint, outgoing);
    }

    #[cold]
    fn schedule_timer(&mut self, at: Instant, kind: EventKind, id: usize) {
        self.schedule_event(at, Hop::new(kind, id));
    }
}

impl EventLoop {
    /// Schedules an event without a packet.
    fn schedule_event(&mut self, at: Instant, hop: Hop) {
        let handle = self.calendar.allocate();
        // Its rank, should an agent's message arrive at the same time: a timer has no position.
        self.calendar.payload_mut(handle).position = 0;
        self.calendar.schedule(at, handle, hop.tag());
    }
}
