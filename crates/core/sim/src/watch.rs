//! Watching links packet by packet: packets as a capture on a router's interface shows them, as plain values.
//!
//! [`Network::watch`](crate::Network::watch) selects the links. After each step the caller takes the [`Observation`]s with
//! [`Simulation::take_observations`](crate::Simulation::take_observations), so memory is bounded by the observations of one
//! step.
//!
//! Links that are not watched have no extra cost: a watched link has a separate [`crate::route::EventKind`], and its
//! observations are made around the code that all links share.

use crate::agent::AgentMessage;
use crate::calendar::EventHandle;
use crate::flow::{Receiving, Sending};
use crate::id::LinkId;
use crate::messages::Messages;
use crate::packet::{Packet, WideHeaders};
use crate::route::{EventKind, Hop, Routes};
use cutline_aqm::{DropReason, Verdict};
use cutline_transport::endpoint::{DataHeader, ReplyHeader, WideHeader};
use cutline_units::{Duration, Ecn, Hint, Instant};

/// An event of a packet at a watched link.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Time of the event.
    pub at: Instant,
    /// The watched link.
    pub link: LinkId,
    /// The packet's number at this link, in the order of arrival: 1, 2, ...
    pub number: u64,
    /// Event of the packet.
    pub event: QueueEvent,
    /// The packet at that time. On arrival it does not yet have the queue's mark; at departure it has.
    pub packet: SeenPacket,
}

/// An event of a packet at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEvent {
    /// Arrived at the queue, with this verdict.
    Arrived(Verdict),
    /// The transmission of the packet started.
    Departed {
        /// Its sojourn time in the queue.
        waited: Duration,
        /// True if this queue marked it, at its arrival or at its departure.
        marked: bool,
    },
    /// The queue had stored it and dropped it.
    Shed {
        /// Time that it had waited.
        waited: Duration,
        /// The reason of the drop.
        reason: DropReason,
    },
}

/// A packet as a capture shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenPacket {
    /// Its flow: an index into [`crate::Network::flows`]; `None` for a message between agents.
    pub flow: Option<u32>,
    /// Bytes on the wire, as simulated.
    pub size: u32,
    /// Its delay hint.
    pub hint: Hint,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Congestion experienced (RFC 3168).
    pub marked: bool,
    /// The transport's header.
    pub header: SeenHeader,
}

/// A packet's header.
#[derive(Clone, Debug, PartialEq)]
pub enum SeenHeader {
    /// The header of a data packet, from the source to the sink.
    Data(DataHeader),
    /// The header of an acknowledgement or feedback, from the sink to the source.
    Reply(ReplyHeader),
    /// A message between agents.
    Message(AgentMessage),
}

/// The state of watched links and of the packets in their queues.
#[derive(Default)]
pub(crate) struct Watch {
    on: bool,
    /// State of queued links, by index; `None` for a link that is not watched.
    links: Vec<Option<Watched>>,
    /// State of packets, by handle. The vector ends at the greatest handle of a packet that arrived at a watched link.
    entries: Vec<Entry>,
    /// The packet that is arriving, and the index of its arrival in the observations.
    arriving: Option<(EventHandle, usize)>,
    pub(crate) observations: Vec<Observation>,
}

/// A link that is watched.
struct Watched {
    link: LinkId,
    arrived: u64,
}

/// A packet that has arrived at a watched link.
#[derive(Clone, Copy, Default)]
struct Entry {
    at: Instant,
    number: u64,
    marked: bool,
}

/// Everything that describes a packet.
#[derive(Clone, Copy)]
pub(crate) struct View<'s> {
    pub(crate) handle: EventHandle,
    pub(crate) packet: &'s Packet,
    pub(crate) wide: &'s WideHeaders,
    pub(crate) routes: &'s Routes,
    pub(crate) sending: &'s [Sending],
    pub(crate) receiving: &'s [Receiving],
    pub(crate) messages: &'s Messages,
}

impl Watch {
    /// Adds the next queued link, watched or not.
    pub(crate) fn add_link(&mut self, link: LinkId, watched: bool) {
        self.on |= watched;
        self.links.push(watched.then_some(Watched { link, arrived: 0 }));
    }

    /// Returns whether any link is watched.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Notes a packet that arrives at a queue, before the verdict is known.
    pub(crate) fn arrives(
        &mut self,
        now: Instant,
        queued_link: usize,
        handle: EventHandle,
        packet: SeenPacket,
    ) {
        let watched = self.links[queued_link].as_mut().expect("only watched links' packets come here");
        watched.arrived += 1;
        let entry = Entry { at: now, number: watched.arrived, marked: false };
        if handle as usize >= self.entries.len() {
            self.entries.resize(handle as usize + 1, Entry::default());
        }
        self.entries[handle as usize] = entry;
        self.arriving = Some((handle, self.observations.len()));
        self.note(now, queued_link, handle, QueueEvent::Arrived(Verdict::Pass), packet);
    }

    /// Completes an arrival: notes whether the queue marked the packet.
    pub(crate) fn has_arrived(&mut self, handle: EventHandle, marked: bool) {
        if let Some((_, place)) = self.arriving.take()
            && marked
        {
            self.entries[handle as usize].marked = true;
            self.observations[place].event = QueueEvent::Arrived(Verdict::Mark);
        }
    }

    /// Notes that a packet's transmission has started; `marked` is true if its queue marked it at departure.
    pub(crate) fn departed(
        &mut self,
        now: Instant,
        queued_link: usize,
        handle: EventHandle,
        marked: bool,
        packet: SeenPacket,
    ) {
        let entry = self.entries[handle as usize];
        let event = QueueEvent::Departed { waited: now - entry.at, marked: marked || entry.marked };
        self.note(now, queued_link, handle, event, packet);
    }

    /// Notes that a queue drops a packet: the one that is arriving, or one that it had stored.
    pub(crate) fn dropped(
        &mut self,
        now: Instant,
        queued_link: usize,
        handle: EventHandle,
        reason: DropReason,
        packet: SeenPacket,
    ) {
        if let Some((arriving, place)) = self.arriving
            && arriving == handle
        {
            self.observations[place].event = QueueEvent::Arrived(Verdict::Drop(reason));
            self.arriving = None;
            return;
        }
        let waited = now - self.entries[handle as usize].at;
        self.note(now, queued_link, handle, QueueEvent::Shed { waited, reason }, packet);
    }

    fn note(
        &mut self,
        at: Instant,
        queued_link: usize,
        handle: EventHandle,
        event: QueueEvent,
        packet: SeenPacket,
    ) {
        let link = self.links[queued_link].as_ref().expect("only watched links' packets come here").link;
        let number = self.entries[handle as usize].number;
        self.observations.push(Observation { at, link, number, event, packet });
    }
}

impl View<'_> {
    /// Returns the packet as a capture shows it.
    pub(crate) fn seen(self) -> SeenPacket {
        let packet = self.packet;
        let end = self.routes.end(packet.position);
        debug_assert!(
            matches!(end.kind(), EventKind::Sink | EventKind::Source | EventKind::Agent),
            "a route ends at an endpoint"
        );
        SeenPacket {
            flow: (end.kind() != EventKind::Agent).then_some(end.index() as u32),
            size: packet.size(),
            hint: packet.hint(),
            ecn: packet.ecn(),
            marked: packet.is_marked(),
            header: self.header(end),
        }
    }

    fn header(self, end: Hop) -> SeenHeader {
        if end.kind() == EventKind::Agent {
            return SeenHeader::Message(self.messages.get(self.handle).clone());
        }
        let flow = end.index();
        let packed = self.packet.header();
        if packed.is_wide() {
            return match *self.wide.get(self.handle) {
                WideHeader::Data(header) => SeenHeader::Data(header),
                WideHeader::Reply(header) => SeenHeader::Reply(header),
            };
        }
        match end.kind() {
            EventKind::Sink => SeenHeader::Data(self.receiving[flow].sink.data_header(packed)),
            _ => SeenHeader::Reply(self.sending[flow].source.reply_header(packed)),
        }
    }
}
