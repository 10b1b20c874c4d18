//! The stages of the sources and of the sinks.
//!
//! They are two stages, unless something at a sink acts at its source at once, or a source and a sink send over the same first link.
//! Then they are one, which merges the arrivals at both.

use super::Stages;
use super::ahead::BLOCK;
use super::inbox::Parcel;
use crate::engine::endpoints::Endpoints;
use crate::engine::parts::Parts;
use crate::packet::Packet;
use crate::route::{EventKind, Hop};
use cutline_transport::endpoint::{Outgoing, PackedHeader};
use cutline_units::{Ecn, Hint, Instant};

/// Returns the packets of a window from `next` on, as far as a block goes.
fn block(window: &[Parcel], next: usize) -> &[Parcel] {
    &window[next..window.len().min(next + BLOCK)]
}

impl Stages {
    /// Handles the replies that reach the sources up to and including `until`, and the timers of sources and applications.
    pub(super) fn run_sources(&mut self, until: Instant) {
        let (replies, first) = self.inboxes.replies.take();
        let mut next = first;
        while let Some(reply) = replies.get(next)
            && reply.at <= until
        {
            if self.reads_ahead && (next - first).is_multiple_of(BLOCK) {
                self.parts.read_ahead_of_replies(block(&replies, next));
            }
            while self.timers.next() < reply.at {
                self.expire();
            }
            self.reach_source(reply);
            next += 1;
        }
        while self.timers.next() <= until {
            self.expire();
        }
        self.events += (next - first) as u64;
        self.inboxes.replies.put_back(replies, next);
    }

    /// Handles the data that reaches the sinks up to and including `until`, and their timers.
    pub(super) fn run_sinks(&mut self, until: Instant) {
        let (data, first) = self.inboxes.data.take();
        let mut next = first;
        while let Some(parcel) = data.get(next)
            && parcel.at <= until
        {
            if self.reads_ahead && (next - first).is_multiple_of(BLOCK) {
                self.parts.read_ahead_of_data(block(&data, next));
            }
            while self.sink_timers.next() < parcel.at {
                self.expire_at_sink();
            }
            self.reach_sink(parcel);
            next += 1;
        }
        while self.sink_timers.next() <= until {
            self.expire_at_sink();
        }
        self.events += (next - first) as u64;
        self.inboxes.data.put_back(data, next);
    }

    /// Handles everything at sources and sinks up to and including `until`.
    pub(super) fn run_ends(&mut self, until: Instant) {
        let ((data, first_data), (replies, first_reply)) =
            (self.inboxes.data.take(), self.inboxes.replies.take());
        let (mut next_data, mut next_reply) = (first_data, first_reply);
        let at = |parcel: Option<&Parcel>| parcel.map_or(Instant::FAR_FUTURE, |parcel| parcel.at);
        loop {
            let (parcel, reply) = (data.get(next_data), replies.get(next_reply));
            let (data_at, reply_at, timer_at) = (at(parcel), at(reply), self.timers.next());
            let now = data_at.min(reply_at).min(timer_at);
            if now > until {
                break;
            }
            // The order of the kinds of events.
            match (parcel, reply) {
                (Some(parcel), _) if data_at == now => {
                    if self.reads_ahead && (next_data - first_data).is_multiple_of(BLOCK) {
                        self.parts.read_ahead_of_data(block(&data, next_data));
                    }
                    self.reach_sink(parcel);
                    next_data += 1;
                }
                (_, Some(reply)) if reply_at == now => {
                    if self.reads_ahead && (next_reply - first_reply).is_multiple_of(BLOCK) {
                        self.parts.read_ahead_of_replies(block(&replies, next_reply));
                    }
                    self.reach_source(reply);
                    next_reply += 1;
                }
                _ => self.expire(),
            }
        }
        self.events += (next_data - first_data + next_reply - first_reply) as u64;
        self.inboxes.data.put_back(data, next_data);
        self.inboxes.replies.put_back(replies, next_reply);
    }

    #[inline]
    fn reach_source(&mut self, parcel: &Parcel) {
        let (now, packet) = (parcel.at, &parcel.packet);
        let flow = self.parts.routes.at(packet.position).index();
        let headers = &mut self.headers;
        let wide = || headers.take_reply(packet.header());
        self.parts.sending[flow].source.on_reply(now, packet.header(), wide);
        self.pump_inline(now, flow);
    }

    #[inline]
    fn reach_sink(&mut self, parcel: &Parcel) {
        let packet = &parcel.packet;
        let flow = &self.parts.receiving[self.parts.routes.at(packet.position).index()];
        if flow.sink.takes_in_order(packet.header(), packet.is_marked()) {
            self.read_data(parcel);
        } else {
            self.read_any_data(parcel);
        }
    }

    /// Handles a data packet that reaches the sink, of any kind.
    // The compiler makes two functions of `read_data`: in `reach_sink` only for packets in order, whose results stay in registers.
    #[inline(never)]
    fn read_any_data(&mut self, parcel: &Parcel) {
        self.read_data(parcel);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as read_any_data")]
    fn read_data(&mut self, parcel: &Parcel) {
        let (now, packet) = (parcel.at, &parcel.packet);
        let id = self.parts.routes.at(packet.position).index();
        let headers = &mut self.headers;
        let (reply, delivered) = self.parts.read_data(now, packet, id, || headers.take_data(packet.header()));
        if let Some(reply) = reply {
            let flow = &self.parts.receiving[id];
            let (route, hint) = (flow.route, flow.hint);
            self.emit(now, route, hint, reply);
        }
        self.has_received(now, id, delivered);
    }

    /// Sends a packet over the first links of its route.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Inbox::push")]
    fn send(&mut self, now: Instant, packet: Packet) {
        let first = self.parts.routes.at(packet.position);
        self.cross_fifo_links(now, first.index(), packet);
    }

    /// Stores the wide header of the packet that an endpoint sends, and sends the packet.
    // Without the packed header, so that the one of most packets is not in memory.
    #[cold]
    #[inline(never)]
    fn send_with_wide_header(&mut self, now: Instant, size: u32, position: u32, hint: Hint, ecn: Ecn) {
        let wide = self.parts.wide_header.take().expect("the endpoint has put it there");
        let header = self.headers.put(wide);
        self.send(now, Packet::new(header, size, position, hint, ecn));
    }

    /// Handles the next timer of the stage of the sources.
    fn expire(&mut self) {
        let Some((at, tag)) = self.timers.pop() else { return };
        self.events += 1;
        let timer = Hop::from_tag(tag);
        match timer.kind() {
            EventKind::SourceTimer => self.source_timer(at, timer.index()),
            EventKind::SinkTimer => self.sink_timer(at, timer.index()),
            _ => self.app_timer(at, timer.index()),
        }
    }

    /// Handles the next timer of the stage of the sinks.
    fn expire_at_sink(&mut self) {
        let Some((at, tag)) = self.sink_timers.pop() else { return };
        self.events += 1;
        self.sink_timer(at, Hop::from_tag(tag).index());
    }
}

impl Endpoints for Stages {
    #[inline]
    fn parts(&mut self) -> &mut Parts {
        &mut self.parts
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Inbox::push")]
    fn emit(&mut self, now: Instant, position: u32, hint: Hint, outgoing: Outgoing<PackedHeader>) {
        let Outgoing { size, ecn, header } = outgoing;
        if header.is_wide() {
            self.send_with_wide_header(now, size, position, hint, ecn);
        } else {
            self.send(now, Packet::new(header, size, position, hint, ecn));
        }
    }

    #[cold]
    fn schedule_timer(&mut self, at: Instant, kind: EventKind, id: usize) {
        let timers = if kind == EventKind::SinkTimer && !self.ends_together {
            &mut self.sink_timers
        } else {
            &mut self.timers
        };
        timers.push(at, Hop::new(kind, id).tag());
    }
}
