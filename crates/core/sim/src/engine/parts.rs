//! The parts of a network that both engines drive: routes, links and flows. An engine adds the order in which they work.

use super::SimulationSettings;
use crate::agent::FlowCounts;
use crate::deliveries::DeliveryClock;
use crate::fifo_link::{FifoClass, FifoLink, PacketSizes, Passage};
use crate::flow::{Background, Rare, Receiving, Sending};
use crate::id::LinkId;
use crate::impairment::Impairment;
use crate::measure::{
    DelayRecord, FlowInterval, FlowSeries, OwnDelays, QueueInterval, Received, RecordDelays,
};
use crate::network::{Distributions, FlowSpec, LinkSpec, Network, NetworkError};
use crate::packet::Packet;
use crate::queued_link::{Impaired, QueuedLink};
use crate::route::{EventKind, Hop, Routes};
use crate::transmitter::Transmitter;
use crate::waiting::WaitingPackets;
use cutline_aqm::{AqmSpec, Arrival, QueueSpec};
use cutline_transport::endpoint::{DataHeader, Outgoing, PackedHeader, WideHeader};
use cutline_units::{Duration, Ecn, Hint, Instant, Rate, Streams};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Routes, links and flows.
pub(crate) struct Parts {
    pub(crate) routes: Routes,
    pub(crate) fifo_links: Vec<FifoLink>,
    pub(super) fifo_classes: Vec<FifoClass>,
    /// The sizes of packets by which FIFO links count.
    pub(super) sizes: PacketSizes,
    /// The packets in the queues of FIFO links.
    pub(super) waiting: WaitingPackets,
    /// The number of packets that found the queue of a FIFO link full within the measuring window, by the link's place. Few links drop any.
    pub(super) fifo_drops: BTreeMap<usize, u64>,
    pub(crate) queued_links: Vec<QueuedLink>,
    /// The link of the network that each of `queued_links` is, in order. All other links are `fifo_links`, in order.
    queued: Vec<LinkId>,
    /// For each link of the network, the hop of routes over it; empty when no route is added any longer.
    pub(crate) links: Vec<Hop>,
    /// The three parts of each flow. The third one is `None` when it is idle, and its vector ends at the last one that is not.
    pub(crate) sending: Vec<Sending>,
    pub(crate) receiving: Vec<Receiving>,
    pub(crate) background: Vec<Option<Box<Background>>>,
    /// The series of each flow that keeps one. The vector ends at the last of them.
    pub(crate) series: Vec<Option<Box<FlowSeries>>>,
    /// Delays of each group.
    pub(super) delays: Vec<DelayRecord>,
    /// Delays of the flows with separate records, whose numbers follow those of the groups.
    pub(super) own_delays: Vec<OwnDelays>,
    /// All changes of rates: time, index into `queued_links`, new rate.
    pub(super) rate_changes: Vec<(Instant, usize, Rate)>,
    pub(crate) settings: SimulationSettings,
    pub(super) streams: Streams,
    /// Number of links crossed so far, by all packets.
    pub(crate) hops: u64,
    /// The header of the packet that an endpoint sends, if it is wide.
    pub(super) wide_header: Option<WideHeader>,
}

/// The end of a packet's path over FIFO links.
pub(super) enum Crossed {
    /// The packet reaches the next hop of its route.
    Arrives(Instant, Hop),
    /// A full queue dropped it.
    Dropped(Instant),
}

impl Parts {
    /// Sets up the links of a network at time zero. The engine adds the flows.
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub(super) fn new(network: &Network, settings: &SimulationSettings) -> Result<Self, NetworkError> {
        let flows = network.flows();
        let hops = flows.iter().map(|flow| flow.route.len() + flow.return_route.len() + 2).sum();
        let of_flows = flows.iter().filter(|flow| flow.distributions == Distributions::PerFlow).count();
        let mut parts = Self {
            routes: Routes::with_capacity(hops),
            fifo_links: Vec::with_capacity(
                network.link_ids().filter(|link| is_fifo_link(network, *link)).count(),
            ),
            fifo_classes: Vec::new(),
            sizes: PacketSizes::default(),
            waiting: WaitingPackets::default(),
            fifo_drops: BTreeMap::new(),
            queued_links: Vec::new(),
            queued: Vec::new(),
            links: Vec::with_capacity(network.links().len()),
            sending: Vec::with_capacity(flows.len()),
            receiving: Vec::with_capacity(flows.len()),
            background: Vec::with_capacity(flows.len()),
            series: Vec::new(),
            delays: vec![DelayRecord::default(); network.groups().len()],
            own_delays: Vec::with_capacity(of_flows),
            rate_changes: Vec::new(),
            settings: *settings,
            streams: Streams::new(settings.seed),
            hops: 0,
            wide_header: None,
        };
        parts.add_links(network)?;
        Ok(parts)
    }

    fn add_links(&mut self, network: &Network) -> Result<(), NetworkError> {
        let fed_by_one_link = network.fed_by_one_link();
        for (id, spec) in network.links().iter().enumerate() {
            let link = LinkId(id as u32);
            let watched = network.is_watched(link);
            let hop = if is_fifo_link(network, link) && !watched {
                let kind = if fed_by_one_link[id] { EventKind::FoldedFifoLink } else { EventKind::FifoLink };
                Hop::new(kind, self.add_fifo_link(spec))
            } else {
                let kind = if watched { EventKind::Watched } else { EventKind::QueuedLink };
                Hop::new(kind, self.add_queued_link(network, link)?)
            };
            self.links.push(hop);
        }
        Ok(())
    }

    fn add_fifo_link(&mut self, spec: &LinkSpec) -> usize {
        let (rate, delay, limit) = (spec.rate, spec.delay, spec.queue.limit);
        // Starts with the last one, because equal links of a network usually follow each other.
        let found = self.fifo_classes.iter().rposition(|class| class.is(rate, delay, limit));
        let class = found.unwrap_or_else(|| {
            self.fifo_classes.push(FifoClass::new(rate, delay, limit));
            self.fifo_classes.len() - 1
        });
        self.fifo_links.push(FifoLink::new(class as u32));
        self.fifo_links.len() - 1
    }

    fn add_queued_link(&mut self, network: &Network, id: LinkId) -> Result<usize, NetworkError> {
        let (spec, name) = (network.link(id), network.link_name(id));
        let index = self.queued_links.len();
        self.rate_changes.extend(spec.rate_changes.iter().map(|&(at, rate)| (at, index, rate)));
        let random = self.streams.stream(&name, "drop");
        let queue = spec.queue.build().map_err(|error| NetworkError::Queue { link: name, error })?;
        let SimulationSettings { window, .. } = self.settings;
        let watched = network.is_watched(id);
        let free = Hop::new(if watched { EventKind::WatchedFree } else { EventKind::LinkFree }, index);
        let transmitter = Transmitter::new(spec.rate, &spec.rate_changes);
        let mut queued_link =
            QueuedLink::new(queue, random, transmitter, spec.delay, window, spec.series, free);
        queued_link.deliveries =
            spec.deliveries.as_ref().map(|record| Box::new(DeliveryClock::new(Arc::clone(record), window)));
        queued_link.pass_on = spec.pass_on;
        queued_link.cells = network.cells(id).cloned();
        if let Some(params) = &spec.impairment {
            let link = network.link_name(id);
            let model = params.validate_unit(network.cells(id).is_some());
            let model = model.and_then(|()| Impairment::new(params, spec.delay, self.streams, &link));
            let model = model.map_err(|error| NetworkError::Impairment { link, error })?;
            queued_link.impairment = Some(Impaired::new(model, params.unit, network.cells(id)));
        }
        self.queued_links.push(queued_link);
        self.queued.push(id);
        Ok(index)
    }

    /// Adds a flow; `is_observed` if agents can see its arrivals.
    pub(super) fn add_flow(&mut self, spec: &FlowSpec, is_observed: bool) {
        let id = self.sending.len();
        let start = spec.start_with(self.streams);
        let random = self.streams.stream(&spec.name, "app");
        let route = self.add_data_route(spec, Hop::new(EventKind::Sink, id));
        let return_route = self.add_return_route(spec, Hop::new(EventKind::Source, id));
        let delays = self.delays_of(spec);
        self.sending.push(Sending::new(spec, start, route));
        self.receiving.push(Receiving::new(spec, return_route, delays));
        self.receiving[id].is_noted |= is_observed;
        let mut background = Background::new(spec, start, random);
        if is_observed {
            background.rare.get_or_insert_default().observed = Some(FlowCounts::default());
        }
        self.add_series(spec);
        self.background.push(Some(Box::new(background)));
    }

    /// Forgets the third part of a flow that [is idle](Background::is_idle).
    pub(super) fn forget_idle(&mut self, id: usize) {
        self.background[id] = None;
        while self.background.pop_if(|last| last.is_none()).is_some() {}
        if self.background.len() < self.background.capacity() / 4 {
            self.background.shrink_to_fit();
        }
    }

    /// Returns the state of a flow that few flows have, for a change of it.
    pub(super) fn rare_of(&mut self, id: usize) -> &mut Rare {
        if id >= self.background.len() {
            self.background.resize_with(id + 1, || None);
        }
        Background::rare_of(&mut self.background[id])
    }

    /// Adds the series of the flow whose background is added next, if it keeps one.
    pub(super) fn add_series(&mut self, spec: &FlowSpec) {
        if spec.series {
            self.series.resize_with(self.background.len(), || None);
            self.series.push(Some(Box::new(FlowSeries::new(self.settings.interval, spec.hint))));
        }
    }

    /// Returns the number of the record of a flow's delays.
    pub(super) fn delays_of(&mut self, spec: &FlowSpec) -> u32 {
        match spec.distributions {
            Distributions::PerGroup => spec.group.0,
            Distributions::PerFlow => {
                self.own_delays.push(OwnDelays::default());
                (self.delays.len() + self.own_delays.len()) as u32 - 1
            }
        }
    }

    /// Adds the route of a flow's data, from its host.
    pub(super) fn add_data_route(&mut self, spec: &FlowSpec, end: Hop) -> u32 {
        let start = self.add_route(&spec.route, end);
        if let Some(host) = spec.host {
            self.routes.name_host(start, true, host);
        }
        if let Some(tunnel) = spec.tunnel {
            self.routes.enter_tunnel(start, true, tunnel);
        }
        start
    }

    /// Adds the route of a flow's acknowledgements, to its host.
    pub(super) fn add_return_route(&mut self, spec: &FlowSpec, end: Hop) -> u32 {
        let start = self.add_route(&spec.return_route, end);
        if let Some(host) = spec.host {
            self.routes.name_host(start, false, host);
        }
        if let Some(tunnel) = spec.tunnel {
            self.routes.enter_tunnel(start, false, tunnel);
        }
        start
    }

    pub(super) fn add_route(&mut self, route: &[LinkId], end: Hop) -> u32 {
        self.routes.add(route.iter().map(|link| self.links[link.0 as usize]), end)
    }

    /// Sends a packet over a FIFO link, and over those behind it that may be folded.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "inlined, a packet in transit stays in registers")]
    pub(super) fn cross_fifo_links(
        &mut self,
        now: Instant,
        packet: &mut Packet,
        fifo_link: usize,
    ) -> Crossed {
        let (mut at, mut fifo_link) = (now, fifo_link);
        loop {
            let Some(arrives) = self.cross_fifo_link(at, packet, fifo_link) else {
                return Crossed::Dropped(at);
            };
            let next = self.routes.at(packet.position);
            if !next.is_folded_fifo_link() {
                return Crossed::Arrives(arrives, next);
            }
            (at, fifo_link) = (arrives, next.index());
        }
    }

    /// Sends a packet over a FIFO link. Returns its arrival at the next hop of its route; `None` if a full queue drops it.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as cross_fifo_links")]
    pub(super) fn cross_fifo_link(
        &mut self,
        now: Instant,
        packet: &mut Packet,
        fifo_link: usize,
    ) -> Option<Instant> {
        let (link, size) = (&mut self.fifo_links[fifo_link], packet.size());
        // A link with waiting packets has no valid class.
        let class = self.fifo_classes.get(link.class as usize);
        let passed = class.and_then(|class| link.pass(class, now, size, self.settings.window));
        let arrives = if let Some(arrives) = passed {
            arrives
        } else {
            let passage = self.offer_to_fifo_link(now, size, fifo_link)?;
            packet.queued += passage.waited;
            passage.arrives
        };
        packet.position += 1;
        self.hops += 1;
        Some(arrives)
    }

    /// Offers a packet to a FIFO link that does not just [pass](FifoLink::pass) it.
    // Out of line, and without the packet, which is not in memory.
    #[cold]
    #[inline(never)]
    fn offer_to_fifo_link(&mut self, now: Instant, size: u32, fifo_link: usize) -> Option<Passage> {
        let (link, window) = (&mut self.fifo_links[fifo_link], self.settings.window);
        if link.class as usize >= self.fifo_classes.len() {
            link.release_if_idle(&mut self.waiting, now, window);
        }
        let class = &mut self.fifo_classes[link.class_index()];
        let passage = link.offer(class, &mut self.waiting, &mut self.sizes, now, size, window);
        if passage.is_none() && window.contains(now) {
            *self.fifo_drops.entry(fifo_link).or_default() += 1;
        }
        passage
    }

    /// Returns the queue's view of a packet.
    #[inline]
    pub(super) fn arrival(&self, packet: &Packet) -> Arrival {
        Arrival {
            size: packet.size(),
            hint: packet.hint(),
            // Every flow has its own route, so all packets of a flow have the same position at a link.
            flow: self.routes.flow(packet.position),
            hosts: self.routes.hosts(packet.position),
            waited: packet.queued,
            ecn_capable: packet.ecn() != Ecn::NotEct,
            scalable: packet.ecn() == Ecn::Ect1,
        }
    }

    /// Reads and measures a data packet; `wide` returns its header if that is wide. Returns the reply, and the number of bytes
    /// delivered to the application by it.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "inlined, the reply stays in registers")]
    pub(super) fn read_data(
        &mut self,
        now: Instant,
        packet: &Packet,
        id: usize,
        wide: impl FnOnce() -> DataHeader,
    ) -> (Option<Outgoing<PackedHeader>>, u64) {
        let flow = &mut self.receiving[id];
        let receipt =
            flow.sink.on_data(now, packet.header(), packet.is_marked(), wide, &mut self.wide_header);
        let arrival = Received {
            queuing: packet.queued,
            one_way: now - receipt.sent_at,
            delivered: receipt.delivered,
            marked: packet.is_marked(),
        };
        if flow.is_noted {
            // A copy, so that only this path needs the arrival in memory.
            let noted = arrival;
            if let Some(Some(series)) = self.series.get_mut(id) {
                series.received(now, &noted, flow.record.ipdv(noted.one_way));
            }
            if let Some(Some(background)) = self.background.get_mut(id) {
                background.record_arrival(&noted);
            }
        }
        let (window, number) = (self.settings.window, flow.delays as usize);
        if let Some(delays) = self.delays.get_mut(number) {
            flow.record.received(now, window, &arrival, delays);
        } else {
            flow.record.received(now, window, &arrival, &mut self.own_delays[number - self.delays.len()]);
        }
        (receipt.reply, arrival.delivered)
    }

    /// Reads the memory for recording such delays in the record with this number.
    #[inline]
    pub(super) fn read_ahead_of_delays(&self, number: u32, queuing: Duration, one_way: Duration) -> u64 {
        match self.delays.get(number as usize) {
            Some(delays) => delays.read_ahead(queuing, one_way),
            None => self.own_delays[number as usize - self.delays.len()].read_ahead(queuing, one_way),
        }
    }

    /// Records a data packet that leaves its source.
    #[inline]
    pub(super) fn note_sent(&mut self, now: Instant, id: usize, size: u32) {
        let flow = &mut self.sending[id];
        flow.record.sent(now, self.settings.window, size);
        if flow.has_series {
            self.note_sent_in_series(now, id, size);
        }
    }

    fn note_sent_in_series(&mut self, now: Instant, id: usize, size: u32) {
        if let Some(Some(series)) = self.series.get_mut(id) {
            series.sent(now, size);
        }
    }

    /// Takes the next packet that a source may send now, and records it. Returns the position at which its route begins and its hint, too.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "inlined, the packet stays in registers")]
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        id: usize,
    ) -> Option<(u32, Hint, Outgoing<PackedHeader>)> {
        let flow = &mut self.sending[id];
        let outgoing = flow.source.transmit(now, &mut self.wide_header)?;
        flow.record.sent(now, self.settings.window, outgoing.size);
        let (route, hint) = (flow.route, flow.hint);
        if flow.has_series {
            self.note_sent_in_series(now, id, outgoing.size);
        }
        Some((route, hint, outgoing))
    }

    /// Counts a data packet that a flow has lost.
    pub(super) fn note_dropped(&mut self, at: Instant, flow: usize) {
        self.receiving[flow].record.dropped(at, self.settings.window);
        if let Some(Some(series)) = self.series.get_mut(flow) {
            series.dropped(at);
        }
    }

    /// Returns the measures so far of a flow in an interval; `None` if it keeps no series.
    pub(super) fn flow_interval(&self, flow: usize, number: usize) -> Option<FlowInterval> {
        self.series.get(flow)?.as_ref().map(|series| series.get(number))
    }

    /// Returns the measures of a link's queue in an interval that has ended; `None` for a link without a series.
    pub(super) fn queue_interval(&self, link: LinkId, number: usize) -> Option<QueueInterval> {
        let index = self.queued.binary_search(&link).ok()?;
        self.queued_links[index].interval(number)
    }

    /// Returns the links of the network, each by its place in `queued_links` or in `fifo_links`.
    pub(super) fn all_links(&self) -> impl Iterator<Item = Hop> + use<> {
        let count = self.queued_links.len() + self.fifo_links.len();
        let mut queued = self.queued.clone().into_iter().peekable();
        let mut passed = 0;
        (0..count).map(move |id| {
            if queued.next_if(|queued| queued.0 as usize == id).is_some() {
                passed += 1;
                Hop::new(EventKind::QueuedLink, passed - 1)
            } else {
                Hop::new(EventKind::FifoLink, id - passed)
            }
        })
    }
}

/// Returns whether a link has a plain drop-tail queue, a constant rate, no series, no change of hints, no cells and no
/// impairment, so that it can be simulated as a FIFO link.
pub(super) fn is_fifo_link(network: &Network, id: LinkId) -> bool {
    let link = network.link(id);
    network.cells(id).is_none()
        && is_drop_tail(&link.queue)
        && link.rate_changes.is_empty()
        && link.deliveries.is_none()
        && link.pass_on.is_none()
        && link.impairment.is_none()
        && !link.series
}

fn is_drop_tail(queue: &QueueSpec) -> bool {
    matches!(queue.aqm, AqmSpec::DropTail(_)) && queue.tsq.is_none()
}
