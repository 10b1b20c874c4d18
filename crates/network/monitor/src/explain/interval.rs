//! Differences of two documents: links, and directions of sockets.

use super::{HostEvidence, InterfaceEvidence};
use crate::document::{HostDocument, KernelQueueEntry, RouterEntry, SocketEntry};
use cutline_publish::{DirectionRow, ViolationRow};
use cutline_router::Loss;
use cutline_router_service::{
    DirectionInterval, DirectionStatistics, FlowStatistics, Interface, PacketCount, Statistics,
};
use std::net::{IpAddr, SocketAddr};

/// Loss from which delivery is bad if nothing limits it: that of the doctor's probes (`Thresholds::loss` of `cutline-doctor`).
pub const BAD_LOSS: f64 = 0.03;
/// The fewest losses in an interval that count as evidence: 10 of 300 have a relative standard error of a third.
pub const FEW_LOSSES: u64 = 10;

/// An interval of a host.
pub struct Interval<'e> {
    pub after: &'e HostDocument,
    pub seconds: f64,
    pub interfaces: &'e [InterfaceEvidence],
    pub links: Vec<LinkInterval<'e>>,
    pub delivered: Vec<Delivered<'e>>,
}

/// A link in an interval, with its interfaces and flows: a direction of a router, or a queue in the kernel.
pub struct LinkInterval<'e> {
    /// Path of the direction in the document.
    pub path: String,
    /// True for a queue in the kernel. It counts neither flows nor what arrives at an interface, and only packets that leave the host pass it.
    pub is_kernel: bool,
    /// Path of the interface at which frames arrive; empty of a queue in the kernel.
    pub input_path: String,
    pub input: Counted,
    /// Name of the interface at which frames arrive; empty if the statistics have none.
    pub input_name: &'e str,
    /// Name of the interface at which frames leave.
    pub output_name: &'e str,
    pub direction: DirectionInterval<'e>,
    /// Dropped by the queue.
    pub dropped: u64,
    /// Mean wait in the queue, ms; `None` if no frame has left.
    pub mean_wait_ms: Option<f64>,
    pub flows: Vec<LinkFlowInterval<'e>>,
}

/// Counters of an interface in an interval, packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    pub missed: u64,
    pub truncated: u64,
    pub without_checksum: u64,
}

/// A flow of a router in an interval.
#[derive(Clone, Copy, Debug)]
pub struct LinkFlowInterval<'e> {
    /// State at the end.
    pub after: &'e FlowStatistics,
    /// State at the beginning; `None` if it was not listed then.
    pub before: Option<&'e FlowStatistics>,
    /// Frames that arrived.
    pub received: PacketCount,
    /// Frames that the queue dropped.
    pub dropped: u64,
    /// Frames that were marked with congestion experienced.
    pub marked: u64,
    /// Mean wait of the frames that left the queue; `None` if none has.
    pub mean_wait_ms: Option<f64>,
}

/// A direction of a socket in an interval.
pub struct Delivered<'e> {
    pub entry: &'e SocketEntry,
    pub before: &'e SocketEntry,
    pub is_send: bool,
    /// Path of the direction in the document.
    pub path: String,
    pub row: &'e DirectionRow,
    pub sent: u64,
    pub received: u64,
    pub lost: u64,
}

const fn since(after: u64, before: u64) -> u64 {
    after.saturating_sub(before)
}

impl<'e> Interval<'e> {
    pub fn new(evidence: &HostEvidence<'e>) -> Self {
        let HostEvidence { before, after, interfaces } = *evidence;
        let routers = after.routers.iter().enumerate();
        let links = routers.filter_map(|(place, entry)| {
            let was = before.routers.iter().find(|was| was.pid == entry.pid)?;
            Some(router_links(place, was, entry))
        });
        let kernel_queues = after.kernel_queues.iter().enumerate().filter_map(|(place, entry)| {
            let is_same = |was: &&KernelQueueEntry| was.queue.interface == entry.queue.interface;
            LinkInterval::of_kernel(place, before.kernel_queues.iter().find(is_same)?, entry)
        });
        let sockets = after.sockets.iter().enumerate();
        let delivered = sockets.filter_map(|(place, entry)| {
            let is_same =
                |was: &&SocketEntry| was.pid == entry.pid && was.socket.socket == entry.socket.socket;
            let was = before.sockets.iter().find(is_same)?;
            Some([true, false].map(|is_send| Delivered::new(place, was, entry, is_send)))
        });
        Self {
            after,
            seconds: after.at_unix_s - before.at_unix_s,
            interfaces,
            links: links.flatten().flatten().chain(kernel_queues).collect(),
            delivered: delivered.flatten().collect(),
        }
    }

    /// Returns the directions of sockets with bad delivery.
    pub fn bad(&self) -> impl Iterator<Item = &Delivered<'e>> {
        self.delivered.iter().filter(|delivered| delivered.is_bad())
    }

    /// Returns the direction of a router that a direction of a socket passes, with the flow there.
    pub fn link_of(&self, delivered: &Delivered<'e>) -> Option<(&LinkInterval<'e>, &LinkFlowInterval<'e>)> {
        self.links.iter().find_map(|link| Some((link, link.flow_of(delivered)?)))
    }

    /// Returns the links that a direction of a socket may pass if no router lists its flow: what a socket of this host receives has not left
    /// the host, so it has not passed a queue in the kernel.
    pub fn possible_links(&self, delivered: &Delivered<'_>) -> impl Iterator<Item = &LinkInterval<'e>> {
        let is_send = delivered.is_send;
        self.links.iter().filter(move |link| is_send || !link.is_kernel)
    }

    /// Returns a probe's result about an interface.
    pub fn interface(&self, name: &str) -> Option<&'e InterfaceEvidence> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }
}

/// Returns the directions of a router; none if it was restarted, or its statistics are the same.
fn router_links<'e>(
    place: usize,
    before: &'e RouterEntry,
    after: &'e RouterEntry,
) -> Option<[LinkInterval<'e>; 2]> {
    let (before, after): (&Statistics, &Statistics) = (&before.router, &after.router);
    let [forward, reverse] = DirectionInterval::both(before, after)?;
    Some([(forward, "forward", [0, 1]), (reverse, "reverse", [1, 0])].map(
        |(direction, name, [input, output])| {
            let interface = |of: &'e Statistics, place: usize| of.interfaces.get(place);
            let name_of = |place| interface(after, place).map_or("", |interface| interface.name.as_str());
            LinkInterval {
                input_path: format!("routers[{place}].router.ports[{input}]"),
                input: Counted::between(interface(before, input), interface(after, input)),
                input_name: name_of(input),
                output_name: name_of(output),
                flows: direction
                    .after()
                    .flows
                    .iter()
                    .map(|flow| LinkFlowInterval::new(direction.before(), flow))
                    .collect(),
                ..LinkInterval::new(format!("routers[{place}].router.{name}"), direction)
            }
        },
    ))
}

impl Counted {
    fn between(before: Option<&Interface>, after: Option<&Interface>) -> Self {
        let (Some(before), Some(after)) = (before, after) else { return Self::default() };
        Self {
            missed: since(after.missed_packets, before.missed_packets),
            truncated: since(after.truncated.packets, before.truncated.packets),
            without_checksum: since(after.without_checksum.packets, before.without_checksum.packets),
        }
    }
}

impl<'e> LinkInterval<'e> {
    /// Returns a link of which neither interfaces nor flows are known.
    fn new(path: String, direction: DirectionInterval<'e>) -> Self {
        Self {
            path,
            is_kernel: false,
            input_path: String::new(),
            input: Counted::default(),
            input_name: "",
            output_name: "",
            direction,
            dropped: direction.lost(Loss::Early).saturating_add(direction.lost(Loss::Overflow)),
            mean_wait_ms: direction.waits().mean_ms(),
            flows: Vec::new(),
        }
    }

    /// Returns a queue in the kernel; `None` if it was added again, or both statistics are of one time.
    fn of_kernel(place: usize, before: &'e KernelQueueEntry, after: &'e KernelQueueEntry) -> Option<Self> {
        let (before, after) = (&before.queue, &after.queue);
        let seconds = after.elapsed_s - before.elapsed_s;
        let direction = DirectionInterval::new(&before.statistics, &after.statistics, seconds)?;
        let path = format!("kernel_queues[{place}].statistics");
        Some(Self { is_kernel: true, output_name: &after.interface, ..Self::new(path, direction) })
    }

    /// Returns the place of the queue in a sentence.
    pub const fn place(&self) -> &'static str {
        if self.is_kernel { "the kernel" } else { "the router" }
    }

    /// Returns the number of packets that were refused by the outgoing interface.
    pub fn unsent(&self) -> u64 {
        self.direction.lost(Loss::Unsent)
    }

    /// Returns the number of sent packets.
    pub fn sent_packets(&self) -> u64 {
        self.direction.counted(|of| of.sent).packets
    }

    /// Returns the flow of a direction of a socket.
    pub fn flow_of(&self, delivered: &Delivered<'_>) -> Option<&LinkFlowInterval<'e>> {
        let socket = &delivered.entry.socket;
        let ends = [parsed(&socket.local)?, parsed(&socket.peer)?];
        let [from, to] = if delivered.is_send { ends } else { [ends[1], ends[0]] };
        let protocol = if socket.transport == "tcp" { 6 } else { 17 };
        self.flows.iter().find(|flow| {
            let of = flow.after;
            of.protocol == protocol
                && (ip(&of.source), of.source_port) == (Some(from.ip()), Some(from.port()))
                && (ip(&of.destination), of.destination_port) == (Some(to.ip()), Some(to.port()))
        })
    }
}

fn ip(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

/// Returns an address with a port; a zone does not matter.
fn parsed(text: &str) -> Option<SocketAddr> {
    let without_zone = match (text.find('%'), text.find(']')) {
        (Some(zone), Some(end)) if zone < end => format!("{}{}", &text[..zone], &text[end..]),
        _ => text.to_owned(),
    };
    let address: SocketAddr = without_zone.parse().ok()?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

impl<'e> LinkFlowInterval<'e> {
    /// Compares a flow of a link with the link's state at the beginning.
    pub fn new(before: &'e DirectionStatistics, after: &'e FlowStatistics) -> Self {
        let key = |flow: &'e FlowStatistics| {
            (&flow.source, flow.source_port, &flow.destination, flow.destination_port, flow.protocol)
        };
        let was = before.flows.iter().find(|flow| key(flow) == key(after));
        // The counters of a flow that was listed again have restarted.
        let was = was.filter(|was| was.received.packets <= after.received.packets);
        let of = |count: fn(&FlowStatistics) -> u64| since(count(after), was.map_or(0, count));
        let received =
            PacketCount { packets: of(|flow| flow.received.packets), bytes: of(|flow| flow.received.bytes) };
        let departed = of(|flow| flow.departed.packets);
        let waited = |flow: &FlowStatistics| flow.departed.packets as f64 * flow.mean_wait_ms;
        let waited = (waited(after) - was.map_or(0.0, waited)).max(0.0);
        Self {
            after,
            before: was,
            received,
            dropped: of(|flow| flow.dropped.packets),
            marked: of(|flow| flow.marked.packets),
            mean_wait_ms: (departed > 0).then(|| waited / departed as f64),
        }
    }

    /// Returns the share of its packets that the queue dropped.
    pub fn loss(&self) -> f64 {
        self.dropped as f64 / self.received.packets.max(1) as f64
    }
}

impl<'e> Delivered<'e> {
    fn new(place: usize, before: &'e SocketEntry, entry: &'e SocketEntry, is_send: bool) -> Self {
        let of = |entry: &'e SocketEntry| if is_send { &entry.socket.send } else { &entry.socket.receive };
        let (was, row) = (of(before), of(entry));
        let side = if is_send { "send" } else { "receive" };
        Self {
            entry,
            before,
            is_send,
            path: format!("sockets[{place}].{side}"),
            row,
            sent: since(row.sent_messages, was.sent_messages),
            received: since(row.received_messages, was.received_messages),
            lost: since(row.lost_messages, was.lost_messages),
        }
    }

    /// Returns the share of the messages that were lost.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.lost.saturating_add(self.received).max(1) as f64
    }

    /// Returns whether a limit is violated, or losses are many and nothing limits them.
    pub fn is_bad(&self) -> bool {
        !self.row.violations.is_empty() || self.loses_much()
    }

    /// Returns whether much is lost, and no limit allows this.
    pub fn loses_much(&self) -> bool {
        let is_limited = self.row.limits.iter().any(|limit| limit.measure == "loss");
        !is_limited && self.lost >= FEW_LOSSES && self.loss() >= BAD_LOSS
    }

    /// Returns the violations with an origin.
    pub fn violations(&self, origin: &str) -> impl Iterator<Item = &'e ViolationRow> {
        self.row.violations.iter().filter(move |violation| violation.origin == origin)
    }

    /// Returns a violation of one of these measures whose origin is the network.
    pub fn violation_of(&self, measures: &[&str]) -> Option<&'e ViolationRow> {
        self.violations("network").find(|violation| measures.contains(&violation.measure.as_str()))
    }

    /// Returns the limit of a measure.
    pub fn limit(&self, measure: &str) -> Option<f64> {
        self.row.limits.iter().find(|limit| limit.measure == measure).map(|limit| limit.worst)
    }
}
