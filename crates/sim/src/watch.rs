//! Watching links packet by packet: what a capture on a router's interface would see, as plain values.
//!
//! A link is watched when [`Network::watch`](crate::Network::watch) says so. Whoever drives the simulation takes the
//! [`Observation`]s after each step with [`Simulation::take_observations`](crate::Simulation::take_observations), so
//! memory is bounded by what one step brings.
//!
//! It costs nothing where nothing is watched: a watched link is a stop of a kind of its own
//! ([`crate::route::EventKind`]), and what is noted is noted around the code that all links share.

use crate::agent::Message;
use crate::calendar::Handle;
use crate::engine::Agents;
use crate::flow::{Receiving, Sending};
use crate::network::LinkId;
use crate::packet::{Packet, WideHeaders};
use crate::route::{EventKind, Hop, Routes};
use cutline_aqm::{DropReason, Verdict};
use cutline_transport::endpoint::{DataHeader, ReplyHeader, WideHeader};
use cutline_units::{Duration, Ecn, Hint, Instant};

/// Something happened to a packet at a watched link.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// When.
    pub at: Instant,
    /// Where.
    pub link: LinkId,
    /// The packet's number at this link, by arrival: 1, 2, ...
    pub number: u64,
    /// What.
    pub event: Event,
    /// The packet as it was then: before the queue marks it when it arrives, and marked when it departs.
    pub packet: SeenPacket,
}

/// What can happen to a packet at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It came to the queue, which said this.
    Arrived(Verdict),
    /// Its sending began.
    Departed {
        /// Its sojourn time in the queue.
        waited: Duration,
        /// Whether this queue has marked it, when it came or now.
        marked: bool,
    },
    /// The queue had stored it and has thrown it away.
    Shed {
        /// How long it had waited.
        waited: Duration,
        /// Why.
        reason: DropReason,
    },
}

/// What a capture shows of a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenPacket {
    /// Its flow: an index into [`crate::Network::flows`]; `None` for a message between agents.
    pub flow: Option<u32>,
    /// Bytes on the wire, as simulated.
    pub size: u32,
    /// Its delay hint.
    pub hint: Hint,
    /// What it says of ECN.
    pub ecn: Ecn,
    /// Congestion experienced (RFC 3168).
    pub marked: bool,
    /// What the transport says.
    pub header: SeenHeader,
}

/// A packet's header.
#[derive(Clone, Debug, PartialEq)]
pub enum SeenHeader {
    /// A data packet's, on its way from the source to the sink.
    Data(DataHeader),
    /// That of what goes back: an acknowledgement, feedback.
    Reply(ReplyHeader),
    /// A message between agents.
    Message(Message),
}

/// What is remembered of watched links and of the packets in their queues.
#[derive(Default)]
pub(crate) struct Watch {
    on: bool,
    /// By the number of a served link; `None` where it is not watched.
    links: Vec<Option<Watched>>,
    /// By handle. Only as long as the greatest handle of a packet that came to a watched link.
    entries: Vec<Entry>,
    /// The packet that comes to a queue just now, and where among the observations its arrival is.
    arriving: Option<(Handle, usize)>,
    pub(crate) observations: Vec<Observation>,
}

/// A link that is watched.
struct Watched {
    link: LinkId,
    arrived: u64,
}

/// A packet that has come to a watched link.
#[derive(Clone, Copy, Default)]
struct Entry {
    at: Instant,
    number: u64,
    marked: bool,
}

/// All there is to know about a packet.
#[derive(Clone, Copy)]
pub(crate) struct View<'s> {
    pub(crate) handle: Handle,
    pub(crate) packet: &'s Packet,
    pub(crate) wide: &'s WideHeaders,
    pub(crate) routes: &'s Routes,
    pub(crate) sending: &'s [Sending],
    pub(crate) receiving: &'s [Receiving],
    pub(crate) agents: &'s Agents,
}

impl Watch {
    /// The next served link is this one, watched or not.
    pub(crate) fn add_link(&mut self, link: LinkId, watched: bool) {
        self.on |= watched;
        self.links.push(watched.then_some(Watched { link, arrived: 0 }));
    }

    /// Whether any link is watched.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// A packet comes to a queue, whose verdict is not known yet.
    pub(crate) fn arrives(&mut self, now: Instant, queued_link: usize, handle: Handle, packet: SeenPacket) {
        let watched = self.links[queued_link].as_mut().expect("only watched links' packets come here");
        watched.arrived += 1;
        let entry = Entry { at: now, number: watched.arrived, marked: false };
        if handle as usize >= self.entries.len() {
            self.entries.resize(handle as usize + 1, Entry::default());
        }
        self.entries[handle as usize] = entry;
        self.arriving = Some((handle, self.observations.len()));
        self.note(now, queued_link, handle, Event::Arrived(Verdict::Pass), packet);
    }

    /// The packet has come; the queue has marked it or not.
    pub(crate) fn has_arrived(&mut self, handle: Handle, marked: bool) {
        if let Some((_, place)) = self.arriving.take()
            && marked
        {
            self.entries[handle as usize].marked = true;
            self.observations[place].event = Event::Arrived(Verdict::Mark);
        }
    }

    /// A packet's sending has begun; its queue has marked it now or not.
    pub(crate) fn departed(
        &mut self,
        now: Instant,
        queued_link: usize,
        handle: Handle,
        marked: bool,
        packet: SeenPacket,
    ) {
        let entry = self.entries[handle as usize];
        let event = Event::Departed { waited: now - entry.at, marked: marked || entry.marked };
        self.note(now, queued_link, handle, event, packet);
    }

    /// A queue drops a packet: the one that comes to it, or one that it had stored.
    pub(crate) fn dropped(
        &mut self,
        now: Instant,
        queued_link: usize,
        handle: Handle,
        reason: DropReason,
        packet: SeenPacket,
    ) {
        if let Some((arriving, place)) = self.arriving
            && arriving == handle
        {
            self.observations[place].event = Event::Arrived(Verdict::Drop(reason));
            self.arriving = None;
            return;
        }
        let waited = now - self.entries[handle as usize].at;
        self.note(now, queued_link, handle, Event::Shed { waited, reason }, packet);
    }

    fn note(&mut self, at: Instant, queued_link: usize, handle: Handle, event: Event, packet: SeenPacket) {
        let link = self.links[queued_link].as_ref().expect("only watched links' packets come here").link;
        let number = self.entries[handle as usize].number;
        self.observations.push(Observation { at, link, number, event, packet });
    }
}

impl View<'_> {
    /// What a capture shows.
    pub(crate) fn seen(self) -> SeenPacket {
        let Packet { size, hint, ecn, marked, .. } = *self.packet;
        let end = self.routes.end(self.packet.position);
        debug_assert!(
            matches!(end.kind(), EventKind::Sink | EventKind::Source | EventKind::Agent),
            "a route ends at an endpoint"
        );
        SeenPacket {
            flow: (end.kind() != EventKind::Agent).then_some(end.index() as u32),
            size,
            hint,
            ecn,
            marked,
            header: self.header(end),
        }
    }

    fn header(self, end: Hop) -> SeenHeader {
        if end.kind() == EventKind::Agent {
            return SeenHeader::Message(self.agents.message(self.handle).clone());
        }
        let flow = end.index();
        match (self.packet.header, end.kind()) {
            (Some(packed), EventKind::Sink) => {
                SeenHeader::Data(self.receiving[flow].sink.data_header(packed))
            }
            (Some(packed), _) => SeenHeader::Reply(self.sending[flow].source.reply_header(packed)),
            (None, _) => match *self.wide.get(self.handle) {
                WideHeader::Data(header) => SeenHeader::Data(header),
                WideHeader::Reply(header) => SeenHeader::Reply(header),
            },
        }
    }
}
