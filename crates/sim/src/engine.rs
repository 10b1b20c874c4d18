//! The engine: pops events, moves packets, drives the endpoints.
//!
//! A packet of a flow with private access links takes five events through a dumbbell: it comes to the bottleneck's
//! queue, the bottleneck has sent it, it reaches the sink; the acknowledgement comes to the return queue, and
//! reaches the source. The wires between are folded into arithmetic (see [`crate::wire`]) where that is exact: the
//! packet enters from an event of this moment, or the wire is fed by one other link alone, so that packets come
//! to it in the order in which they are folded.

use crate::calendar::{Calendar, Handle};
use crate::endpoint::{Outgoing, Sink, Source};
use crate::measure::{DelayRecord, FlowRecord, Histogram, Received, Window};
use crate::network::{Distributions, FlowSpec, LinkId, LinkSpec, Network, NetworkError};
use crate::outcome::{BacklogOutcome, FlowOutcome, LinkOutcome, Outcome, Work};
use crate::packet::Packet;
use crate::served::{Served, Started};
use crate::wire::{LinkCounts, Wire};
use cutline_aqm::{AqmSpec, Arrival, QueueSpec, Verdict};
use cutline_transport::app::{App, Completion};
use cutline_units::{Duration, Hint, Instant, RandomStream, Rate, Serializer, Streams};

/// How to run a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Every random stream is derived from it.
    pub seed: u64,
    /// The run ends here.
    pub duration: Duration,
    /// The part of the run that is measured.
    pub window: Window,
    /// The width of the interval series.
    pub interval: Duration,
}

/// Simulates a network from time zero to its end.
///
/// # Errors
/// When a queue cannot be built.
pub fn run(network: &Network, settings: &Settings) -> Result<Outcome, NetworkError> {
    let mut simulation = Simulation::new(network, settings)?;
    simulation.advance(Instant::ZERO + settings.duration);
    Ok(simulation.finish())
}

/// A network under way. Advance it to its end in as many steps as you like; then take the outcome.
pub struct Simulation {
    calendar: Calendar,
    /// Beside the calendar's slab: the packet of a handle.
    packets: Vec<Packet>,
    links: Vec<Link>,
    /// All routes, one after the other.
    routes: Vec<u32>,
    flows: Vec<Flow>,
    delays: Vec<DelayRecord>,
    groups: usize,
    rate_changes: Vec<(u32, Rate)>,
    settings: Settings,
    work: Work,
}

struct Link {
    kind: LinkKind,
    /// A wire that all packets reach over one and the same link: they may be put through ahead of time.
    foldable: bool,
}

enum LinkKind {
    Wire(Wire),
    Served(Box<Served>),
}

struct Flow {
    source: Source,
    sink: Sink,
    app: App,
    random: RandomStream,
    /// Response times, of an application that waits for delivery.
    responses: Option<Box<Histogram>>,
    record: FlowRecord,
    /// Where its delays are recorded.
    delays: u32,
    route: Route,
    return_route: Route,
    hint: Hint,
    stop: Instant,
    /// When the earliest event of each timer is due; [`Instant::FAR_FUTURE`] without one.
    armed: [Instant; 3],
}

/// A part of [`Simulation::routes`].
#[derive(Clone, Copy)]
struct Route {
    start: u32,
    hops: u8,
}

/// What an event is: the upper four bits of its tag. The lower 28 are the link, flow or rate change it is about.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    /// A packet comes to the link at its hop.
    Arrive = 0,
    /// A packet reaches the end of its route.
    Deliver = 1,
    /// A served link has sent its packet.
    LinkFree = 2,
    SourceTimer = 3,
    SinkTimer = 4,
    AppTimer = 5,
    /// An interval of the queues' series ends.
    Interval = 6,
    RateChange = 7,
}

const KINDS: [Kind; 8] = [
    Kind::Arrive,
    Kind::Deliver,
    Kind::LinkFree,
    Kind::SourceTimer,
    Kind::SinkTimer,
    Kind::AppTimer,
    Kind::Interval,
    Kind::RateChange,
];
const KIND_SHIFT: u32 = 28;

const fn tag(kind: Kind, about: u32) -> u32 {
    (kind as u32) << KIND_SHIFT | about
}

/// A flow's timers, and their places in [`Flow::armed`].
#[derive(Clone, Copy)]
enum Timer {
    Source = 0,
    Sink = 1,
    App = 2,
}

impl Timer {
    const fn kind(self) -> Kind {
        match self {
            Self::Source => Kind::SourceTimer,
            Self::Sink => Kind::SinkTimer,
            Self::App => Kind::AppTimer,
        }
    }
}

impl Simulation {
    /// Sets up a network at time zero.
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub fn new(network: &Network, settings: &Settings) -> Result<Self, NetworkError> {
        let streams = Streams::new(settings.seed);
        let mut simulation = Self {
            calendar: Calendar::new(),
            packets: Vec::new(),
            links: Vec::with_capacity(network.links().len()),
            routes: Vec::new(),
            flows: Vec::with_capacity(network.flows().len()),
            delays: vec![DelayRecord::default(); network.groups().len()],
            groups: network.groups().len(),
            rate_changes: Vec::new(),
            settings: *settings,
            work: Work::default(),
        };
        simulation.add_links(network, streams)?;
        for spec in network.flows() {
            simulation.add_flow(spec, streams);
        }
        Ok(simulation)
    }

    /// Handles every event up to and including `until`, but none beyond the settings' duration.
    pub fn advance(&mut self, until: Instant) {
        let until = until.min(Instant::ZERO + self.settings.duration);
        while let Some((now, handle, tag)) = self.calendar.pop(until) {
            self.work.events += 1;
            let about = tag & ((1 << KIND_SHIFT) - 1);
            match KINDS[(tag >> KIND_SHIFT) as usize & 7] {
                Kind::Arrive => self.enter(now, handle),
                Kind::Deliver => self.deliver(now, handle),
                Kind::LinkFree => self.link_free(now, handle, about),
                Kind::SourceTimer => self.source_timer(now, handle, about),
                Kind::SinkTimer => self.sink_timer(now, handle, about),
                Kind::AppTimer => self.app_timer(now, handle, about),
                Kind::Interval => self.interval(now, handle),
                Kind::RateChange => self.change_rate(now, handle, about),
            }
        }
    }

    /// Ends the run and hands out what was measured.
    pub fn finish(mut self) -> Outcome {
        let end = Instant::ZERO + self.settings.duration;
        let window = self.settings.window;
        let links = self.links.iter_mut().map(|link| link.finish(end, window)).collect();
        let mut delays = self.delays.into_iter();
        let groups = delays.by_ref().take(self.groups).collect();
        let own_delays: Vec<DelayRecord> = delays.collect();
        let mut work = Work { simulated: self.settings.duration, ..self.work };
        let flows: Vec<FlowOutcome> = self
            .flows
            .into_iter()
            .map(|flow| {
                let own = (flow.delays as usize).checked_sub(self.groups);
                flow.finish(end, own.map(|index| own_delays[index].clone()))
            })
            .collect();
        for totals in flows.iter().map(|flow| flow.record.totals) {
            work.data_packets += totals.sent;
            work.under_way += totals.sent - totals.received - totals.dropped;
        }
        Outcome { flows, groups, links, work }
    }
}

/// Setting up.
impl Simulation {
    fn add_links(&mut self, network: &Network, streams: Streams) -> Result<(), NetworkError> {
        let fed_by_one_link = network.fed_by_one_link();
        for (id, spec) in network.links().iter().enumerate() {
            let wire = is_drop_tail(&spec.queue) && spec.rate_changes.is_empty() && !spec.series;
            let kind = if wire { self.wire(spec) } else { self.served(network, LinkId(id as u32), streams)? };
            self.links.push(Link { kind, foldable: wire && fed_by_one_link[id] });
        }
        if self.links.iter().any(|link| matches!(&link.kind, LinkKind::Served(served) if served.has_series()))
        {
            let handle = self.new_handle();
            self.calendar.schedule(Instant::ZERO + self.settings.interval, handle, tag(Kind::Interval, 0));
        }
        Ok(())
    }

    fn wire(&self, spec: &LinkSpec) -> LinkKind {
        LinkKind::Wire(Wire::new(Serializer::new(spec.rate), spec.delay, spec.queue.limit))
    }

    fn served(&mut self, network: &Network, id: LinkId, streams: Streams) -> Result<LinkKind, NetworkError> {
        let (spec, name) = (network.link(id), network.link_name(id));
        for &(at, rate) in &spec.rate_changes {
            let handle = self.new_handle();
            self.calendar.schedule(at, handle, tag(Kind::RateChange, self.rate_changes.len() as u32));
            self.rate_changes.push((id.0, rate));
        }
        let random = streams.stream(&name, "drop");
        let queue = spec.queue.build().map_err(|error| NetworkError::Queue { link: name, error })?;
        let Settings { window, .. } = self.settings;
        Ok(LinkKind::Served(Box::new(Served::new(queue, random, spec.rate, spec.delay, window, spec.series))))
    }

    fn add_flow(&mut self, spec: &FlowSpec, streams: Streams) {
        let id = self.flows.len() as u32;
        let (first, last) = spec.start;
        let share = if first == last { 0.0 } else { streams.stream(&spec.name, "start").uniform() };
        let start = first + last.saturating_since(first).mul_f64(share);
        let delays = match spec.distributions {
            Distributions::PerGroup => spec.group.0,
            Distributions::PerFlow => {
                self.delays.push(DelayRecord::default());
                self.delays.len() as u32 - 1
            }
        };
        let mut random = streams.stream(&spec.name, "app");
        let flow = Flow {
            source: Source::new(&spec.transport, start),
            sink: Sink::new(&spec.transport),
            app: spec.app.start(start, &mut random),
            random,
            responses: spec.app.needs_reliability().then(Box::default),
            record: FlowRecord::new(spec.series.then_some(self.settings.interval)),
            delays,
            route: self.add_route(&spec.route),
            return_route: self.add_route(&spec.return_route),
            hint: spec.hint,
            stop: spec.stop,
            armed: [Instant::FAR_FUTURE; 3],
        };
        self.flows.push(flow);
        self.arm(id, Timer::App);
    }

    fn add_route(&mut self, route: &[LinkId]) -> Route {
        let hops = u8::try_from(route.len()).expect("a route crosses at most 255 links");
        let start = self.routes.len() as u32;
        self.routes.extend(route.iter().map(|link| link.0));
        Route { start, hops }
    }
}

/// The way of a packet.
impl Simulation {
    /// A fresh handle, with a place for its packet.
    #[inline]
    fn new_handle(&mut self) -> Handle {
        let handle = self.calendar.allocate();
        if handle as usize >= self.packets.len() {
            self.packets.push(Packet::BLANK);
        }
        handle
    }

    /// Puts a packet of a flow at the beginning of its route, now.
    #[inline]
    fn emit(&mut self, now: Instant, handle: Handle, flow: u32, outgoing: Outgoing, returning: bool) {
        let Outgoing { size, ecn_capable, header } = outgoing;
        self.packets[handle as usize] = Packet {
            flow,
            size,
            hint: self.flows[flow as usize].hint,
            hop: 0,
            returning,
            ecn_capable,
            marked: false,
            queued: Duration::ZERO,
            sent_at: now,
            header,
        };
        self.enter(now, handle);
    }

    /// The link at a packet's hop; `None` at the end of its route.
    #[inline]
    fn next_link(&self, packet: &Packet) -> Option<u32> {
        let flow = &self.flows[packet.flow as usize];
        let route = if packet.returning { flow.return_route } else { flow.route };
        (packet.hop < route.hops).then(|| self.routes[route.start as usize + packet.hop as usize])
    }

    /// A packet comes, now, to the link at its hop.
    #[inline]
    fn enter(&mut self, now: Instant, handle: Handle) {
        let packet = &self.packets[handle as usize];
        let link =
            self.next_link(packet).expect("a packet at the end of its route is delivered, not forwarded");
        if let LinkKind::Wire(_) = self.links[link as usize].kind {
            self.cross_wires(now, handle, link);
        } else {
            self.enqueue(now, handle, link);
        }
    }

    /// Puts a packet through the wire at its hop, and through those behind it that may be folded.
    #[inline]
    fn cross_wires(&mut self, now: Instant, handle: Handle, link: u32) {
        let mut at = now;
        let mut link = link;
        loop {
            let LinkKind::Wire(wire) = &mut self.links[link as usize].kind else {
                unreachable!("folding needs a wire")
            };
            let packet = &mut self.packets[handle as usize];
            let Some(passage) = wire.offer(at, packet.size, self.settings.window) else {
                self.drop_packet(at, handle);
                return;
            };
            packet.queued += passage.waited;
            match self.arrive_at_next(passage.arrives, handle) {
                Some(next) => (at, link) = (passage.arrives, next),
                None => return,
            }
        }
    }

    /// A packet will be at the end of the link at its hop at `at`: schedules what comes then, unless the next link
    /// is a wire that may be crossed at once: then that is the answer.
    #[inline]
    fn arrive_at_next(&mut self, at: Instant, handle: Handle) -> Option<u32> {
        self.work.hops += 1;
        self.packets[handle as usize].hop += 1;
        match self.next_link(&self.packets[handle as usize]) {
            Some(link) if self.links[link as usize].foldable => Some(link),
            Some(_) => {
                self.calendar.schedule(at, handle, tag(Kind::Arrive, 0));
                None
            }
            None => {
                self.calendar.schedule(at, handle, tag(Kind::Deliver, 0));
                None
            }
        }
    }

    #[inline]
    fn enqueue(&mut self, now: Instant, handle: Handle, link: u32) {
        let LinkKind::Served(served) = &mut self.links[link as usize].kind else {
            unreachable!("wires do not queue")
        };
        let packet = &mut self.packets[handle as usize];
        let arrival = Arrival { size: packet.size, hint: packet.hint, ecn_capable: packet.ecn_capable };
        match served.arrive(now, arrival, handle) {
            Verdict::Drop(_) => self.drop_packet(now, handle),
            verdict => {
                packet.marked |= verdict == Verdict::Mark;
                if !served.busy {
                    let free = self.new_handle();
                    self.serve(now, link, free);
                }
            }
        }
    }

    #[inline]
    fn link_free(&mut self, now: Instant, handle: Handle, link: u32) {
        self.serve(now, link, handle);
    }

    /// A served link is free: begins to send its next packet; `free` is the handle of the link's own event.
    #[inline]
    fn serve(&mut self, now: Instant, link: u32, free: Handle) {
        let LinkKind::Served(served) = &mut self.links[link as usize].kind else {
            unreachable!("wires are not served")
        };
        let Some(Started { handle, waited, departs, arrives }) = served.start_next(now) else {
            self.calendar.release(free);
            return;
        };
        self.calendar.schedule(departs, free, tag(Kind::LinkFree, link));
        self.packets[handle as usize].queued += waited;
        if let Some(next) = self.arrive_at_next(arrives, handle) {
            self.cross_wires(arrives, handle, next);
        }
    }

    fn drop_packet(&mut self, now: Instant, handle: Handle) {
        let packet = &self.packets[handle as usize];
        if !packet.returning {
            self.flows[packet.flow as usize].record.dropped(now, self.settings.window);
        }
        self.calendar.release(handle);
    }
}

/// The endpoints.
impl Simulation {
    #[inline]
    fn deliver(&mut self, now: Instant, handle: Handle) {
        let packet = self.packets[handle as usize];
        if packet.returning {
            self.calendar.release(handle);
            self.flows[packet.flow as usize].source.receive(now, &packet.header);
            self.pump(now, packet.flow);
        } else {
            self.receive(now, handle, &packet);
        }
    }

    /// A data packet reaches the sink; what goes back leaves in the same slab entry.
    #[inline]
    fn receive(&mut self, now: Instant, handle: Handle, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let before = flow.sink.delivered();
        let reply = flow.sink.receive(now, &packet.header, packet.marked);
        let delivered = flow.sink.delivered() - before;
        let arrival = Received {
            queuing: packet.queued,
            one_way: now - packet.sent_at,
            delivered,
            marked: packet.marked,
        };
        flow.record.received(now, self.settings.window, &arrival, &mut self.delays[flow.delays as usize]);
        let waiting = flow.responses.is_some();
        match reply {
            Some(reply) => self.emit(now, handle, packet.flow, reply, true),
            None => self.calendar.release(handle),
        }
        self.arm(packet.flow, Timer::Sink);
        if waiting && delivered > 0 {
            self.tell_app(now, packet.flow);
        }
    }

    /// Lets the source send what it may.
    #[inline]
    fn pump(&mut self, now: Instant, flow: u32) {
        while let Some(outgoing) = self.flows[flow as usize].source.transmit(now) {
            self.flows[flow as usize].record.sent(now, self.settings.window, outgoing.size);
            let handle = self.new_handle();
            self.emit(now, handle, flow, outgoing, false);
        }
        self.arm(flow, Timer::Source);
    }

    /// Tells an application that waits for delivery how far it has come.
    fn tell_app(&mut self, now: Instant, id: u32) {
        let flow = &mut self.flows[id as usize];
        if let Some(Completion { latency, .. }) = flow.app.on_delivered(now, flow.sink.delivered())
            && let Some(responses) = &mut flow.responses
            && self.settings.window.contains(now)
        {
            responses.record(latency);
        }
        self.run_app(now, id);
    }

    /// Lets the application write what is due.
    fn run_app(&mut self, now: Instant, id: u32) {
        let flow = &mut self.flows[id as usize];
        if now >= flow.stop {
            return;
        }
        while let Some(write) = flow.app.poll(now, &mut flow.random) {
            flow.source.write(write);
        }
        self.pump(now, id);
        self.arm(id, Timer::App);
    }

    fn source_timer(&mut self, now: Instant, handle: Handle, id: u32) {
        if self.fired(now, handle, id, Timer::Source) {
            let source = &mut self.flows[id as usize].source;
            if source.deadline() <= now {
                source.on_deadline(now);
            }
            self.pump(now, id);
        }
    }

    fn sink_timer(&mut self, now: Instant, handle: Handle, id: u32) {
        if !self.fired(now, handle, id, Timer::Sink) {
            return;
        }
        let sink = &mut self.flows[id as usize].sink;
        if sink.deadline() <= now
            && let Some(reply) = sink.on_deadline(now)
        {
            let handle = self.new_handle();
            self.emit(now, handle, id, reply, true);
        }
        self.arm(id, Timer::Sink);
    }

    fn app_timer(&mut self, now: Instant, handle: Handle, id: u32) {
        if self.fired(now, handle, id, Timer::App) {
            self.run_app(now, id);
        }
    }

    /// A timer's event came up. False when an earlier one has taken its place since: then it means nothing.
    #[inline]
    fn fired(&mut self, now: Instant, handle: Handle, flow: u32, timer: Timer) -> bool {
        self.calendar.release(handle);
        let armed = &mut self.flows[flow as usize].armed[timer as usize];
        let current = *armed == now;
        if current {
            *armed = Instant::FAR_FUTURE;
        }
        current
    }

    /// Sees to it that an event comes no later than the timer's deadline. A deadline that moved later costs
    /// nothing: the event finds it not due, and is scheduled again.
    #[inline]
    fn arm(&mut self, flow: u32, timer: Timer) {
        let owner = &mut self.flows[flow as usize];
        let deadline = match timer {
            Timer::Source => owner.source.deadline(),
            Timer::Sink => owner.sink.deadline(),
            Timer::App => owner.app.deadline(),
        };
        if deadline < owner.armed[timer as usize] {
            owner.armed[timer as usize] = deadline;
            let handle = self.new_handle();
            self.calendar.schedule(deadline, handle, tag(timer.kind(), flow));
        }
    }

    fn interval(&mut self, now: Instant, handle: Handle) {
        for link in &mut self.links {
            if let LinkKind::Served(served) = &mut link.kind {
                served.close_interval(now);
            }
        }
        self.calendar.schedule(now + self.settings.interval, handle, tag(Kind::Interval, 0));
    }

    fn change_rate(&mut self, now: Instant, handle: Handle, change: u32) {
        let (link, rate) = self.rate_changes[change as usize];
        if let LinkKind::Served(served) = &mut self.links[link as usize].kind {
            served.set_rate(now, rate);
        }
        self.calendar.release(handle);
    }
}

/// Whether a queue is first in, first out with a limit and nothing else.
fn is_drop_tail(queue: &QueueSpec) -> bool {
    matches!(queue.aqm, AqmSpec::DropTail(_)) && queue.tsq.is_none()
}

impl Link {
    fn finish(&mut self, end: Instant, window: Window) -> LinkOutcome {
        match &mut self.kind {
            LinkKind::Wire(wire) => finish_wire(wire, end, window),
            LinkKind::Served(served) => finish_served(served, end, window),
        }
    }
}

fn finish_wire(wire: &mut Wire, end: Instant, window: Window) -> LinkOutcome {
    let counts = wire.counts;
    let queue = wire.finish(end);
    let mut waits = queue.map_or_else(Histogram::default, |queue| queue.waits.clone());
    // A wire does not record the packets that found it free.
    waits.record_zeros(counts.sent.saturating_sub(waits.count()) as u32);
    LinkOutcome {
        counts,
        utilisation: utilisation(&counts, window),
        backlog: queue.map_or_else(BacklogOutcome::default, |queue| (&queue.meter).into()),
        waits,
        probability: None,
        series: None,
    }
}

fn finish_served(served: &mut Served, end: Instant, window: Window) -> LinkOutcome {
    served.finish(end);
    LinkOutcome {
        counts: served.counts,
        utilisation: utilisation(&served.counts, window),
        backlog: (&served.meter).into(),
        waits: std::mem::take(&mut served.waits),
        probability: served.probability.mean_and_deviation(),
        series: served.take_series(),
    }
}

fn utilisation(counts: &LinkCounts, window: Window) -> f64 {
    counts.busy.as_secs_f64() / window.length().as_secs_f64()
}

impl Flow {
    fn finish(self, end: Instant, delays: Option<DelayRecord>) -> FlowOutcome {
        let mut record = self.record;
        FlowOutcome {
            series: record.series.take().map(|series| series.finish(end)),
            record,
            delays,
            transport: self.source.counts(),
            responses: self.responses.map(|responses| *responses),
        }
    }
}
