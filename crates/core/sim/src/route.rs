//! Routes and event tags: the next hop of a packet.
//!
//! A [`Hop`] is one word: four bits for its [`EventKind`] and 28 bits for an index. A route is a sequence of hops that ends
//! with the endpoint, so following a packet takes one load per hop. The hop is also the tag of the event that brings a
//! packet to it.

/// The kind of an event and of a hop: the upper four bits of its word.
///
/// Events of the same time are handled in the order of these numbers, and those of the same kind by index: an interval ends, then
/// rates change, then links become free, then packets arrive, and then timers expire. So a packet that arrives when another one has
/// left does not wait, as in a folded FIFO link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A FIFO link that all packets reach over the same link, so they may cross it ahead of time.
    FoldedFifoLink = 0,
    /// An interval of the queues' series ends.
    Interval = 1,
    RateChange = 2,
    /// A queued link has transmitted its packet.
    LinkFree = 3,
    /// A watched link has transmitted its packet.
    WatchedFree = 4,
    /// A packet is lost on the wire of a queued link.
    Lost = 5,
    /// A link with the queue of an AQM.
    QueuedLink = 6,
    /// A queued link whose packets are observed one by one.
    Watched = 7,
    /// A FIFO link that packets must enter by an event at their arrival time.
    FifoLink = 8,
    /// The receiver of a flow, where its data packets end.
    Sink = 9,
    /// The sender of a flow, where its acknowledgements end.
    Source = 10,
    /// An external endpoint, where an injected packet ends; see [`crate::external`].
    External = 11,
    SinkTimer = 12,
    SourceTimer = 13,
    AppTimer = 14,
    /// An agent: a message arrives, or its deadline is due. With all sixteen values taken, the kind is the upper bits of the word,
    /// and needs no comparison.
    Agent = 15,
}

/// A step of a route or the target of an event: a kind and an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop(u32);

const KIND_SHIFT: u32 = 28;

impl Hop {
    pub(crate) fn new(kind: EventKind, index: usize) -> Self {
        assert!(index < 1 << KIND_SHIFT, "a network has at most 2^28 links and flows");
        Self((kind as u32) << KIND_SHIFT | index as u32)
    }

    /// Returns the hop that an event's tag encodes.
    #[inline]
    pub(crate) const fn from_tag(tag: u32) -> Self {
        Self(tag)
    }

    /// Returns the tag of an event at this hop.
    #[inline]
    pub(crate) const fn tag(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) const fn kind(self) -> EventKind {
        match self.0 >> KIND_SHIFT {
            0 => EventKind::FoldedFifoLink,
            1 => EventKind::Interval,
            2 => EventKind::RateChange,
            3 => EventKind::LinkFree,
            4 => EventKind::WatchedFree,
            5 => EventKind::Lost,
            6 => EventKind::QueuedLink,
            7 => EventKind::Watched,
            8 => EventKind::FifoLink,
            9 => EventKind::Sink,
            10 => EventKind::Source,
            11 => EventKind::External,
            12 => EventKind::SinkTimer,
            13 => EventKind::SourceTimer,
            14 => EventKind::AppTimer,
            _ => EventKind::Agent,
        }
    }

    /// Returns whether this is a folded FIFO link. Asked at every hop: the kind is 0, so it takes one comparison.
    #[inline]
    pub(crate) const fn is_folded_fifo_link(self) -> bool {
        self.0 >> KIND_SHIFT == EventKind::FoldedFifoLink as u32
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        (self.0 & ((1 << KIND_SHIFT) - 1)) as usize
    }
}

/// All routes, one after the other.
#[derive(Default)]
pub(crate) struct Routes {
    hops: Vec<Hop>,
    /// For each hop the hosts of its route, from the first route on that names them; those of the hops before are not named.
    hosts: Vec<[u32; 2]>,
    /// For each hop the flow that a queue sees, up to the last route in a tunnel; behind it, and without tunnels, the hop's own number.
    flows: Vec<u32>,
}

/// Hosts that a route does not name have the numbers of its hops, which are below this one.
const NAMED_HOSTS: u32 = 1 << 31;

/// The first named host that is an end of a tunnel.
const TUNNEL_ENDS: u32 = 1 << 30;

/// Flows that are in no tunnel have the numbers of their hops, which are below this one.
const TUNNELS: u32 = 1 << 31;

impl Routes {
    pub(crate) fn with_capacity(hops: usize) -> Self {
        Self { hops: Vec::with_capacity(hops), ..Self::default() }
    }

    /// Adds a route over these links to an endpoint. Returns the position at which it begins.
    pub(crate) fn add(&mut self, links: impl Iterator<Item = Hop>, end: Hop) -> u32 {
        let start = self.hops.len();
        self.hops.extend(links);
        self.hops.push(end);
        u32::try_from(start).expect("all routes together have at most 2^32 hops")
    }

    /// Names the host at an end of the route that begins at `start` and was added last: the first, or the other one.
    pub(crate) fn name_host(&mut self, start: u32, is_first: bool, host: u32) {
        (self.hosts.len() as u32..self.hops.len() as u32).for_each(|hop| self.hosts.push([hop; 2]));
        for hosts in &mut self.hosts[start as usize..] {
            hosts[usize::from(!is_first)] = NAMED_HOSTS + host;
        }
    }

    /// The hosts of the route that contains `position`; without names, numbers that no other route has at this hop.
    #[inline]
    pub(crate) fn hosts(&self, position: u32) -> [u32; 2] {
        self.hosts.get(position as usize).copied().unwrap_or([position; 2])
    }

    /// Puts the route that begins at `start` and was added last into a tunnel, whose first end is that of the data if `is_data`.
    /// Queues see the routes of a tunnel as one flow between two hosts.
    pub(crate) fn enter_tunnel(&mut self, start: u32, is_data: bool, tunnel: u32) {
        (self.flows.len() as u32..self.hops.len() as u32).for_each(|hop| self.flows.push(hop));
        self.flows[start as usize..].fill(TUNNELS + tunnel);
        let first = TUNNEL_ENDS + 2 * tunnel;
        self.name_host(start, is_data, first);
        self.name_host(start, !is_data, first + 1);
    }

    /// The flow that a queue sees at `position`; without a tunnel, a number that no other route has at this hop.
    #[inline]
    pub(crate) fn flow(&self, position: u32) -> u32 {
        self.flows.get(position as usize).copied().unwrap_or(position)
    }

    #[inline]
    pub(crate) fn at(&self, position: u32) -> Hop {
        self.hops[position as usize]
    }

    /// Returns the endpoint of the route that contains `position`.
    pub(crate) fn end(&self, position: u32) -> Hop {
        let rest = self.hops[position as usize..].iter();
        let mut ends = rest.filter(|hop| {
            matches!(hop.kind(), EventKind::Sink | EventKind::Source | EventKind::Agent | EventKind::External)
        });
        *ends.next().expect("every route ends at an endpoint")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_keeps_its_kind_and_index() {
        let kinds = [
            EventKind::FoldedFifoLink,
            EventKind::FifoLink,
            EventKind::QueuedLink,
            EventKind::Sink,
            EventKind::Source,
            EventKind::LinkFree,
            EventKind::SourceTimer,
            EventKind::SinkTimer,
            EventKind::AppTimer,
            EventKind::Interval,
            EventKind::RateChange,
            EventKind::Watched,
            EventKind::WatchedFree,
            EventKind::Agent,
            EventKind::External,
            EventKind::Lost,
        ];
        for kind in kinds {
            let hop = Hop::from_tag(Hop::new(kind, 123_456_789).tag());
            assert_eq!((hop.kind(), hop.index()), (kind, 123_456_789));
        }
    }

    #[test]
    fn routes_share_the_hosts_that_are_named() {
        let mut routes = Routes::default();
        let add = |routes: &mut Routes, host: Option<u32>| {
            let start =
                routes.add([Hop::new(EventKind::FifoLink, 0)].into_iter(), Hop::new(EventKind::Sink, 0));
            if let Some(host) = host {
                routes.name_host(start, true, host);
            }
            start
        };
        let starts = [None, Some(7), Some(7), None].map(|host| add(&mut routes, host));
        let hosts = starts.map(|start| routes.hosts(start));
        assert_eq!(hosts[1][0], hosts[2][0]);
        assert_ne!(hosts[1][1], hosts[2][1]);
        assert_eq!((hosts[0], hosts[3]), ([starts[0]; 2], [starts[3]; 2]));
    }

    #[test]
    fn routes_in_a_tunnel_are_one_flow_between_its_ends() {
        let mut routes = Routes::default();
        let add = |routes: &mut Routes| {
            routes.add([Hop::new(EventKind::FifoLink, 0)].into_iter(), Hop::new(EventKind::Sink, 0))
        };
        let before = add(&mut routes);
        let inside = [true, true, false].map(|is_data| {
            let start = add(&mut routes);
            routes.enter_tunnel(start, is_data, 3);
            start
        });
        let other = add(&mut routes);
        routes.enter_tunnel(other, true, 4);
        let behind = add(&mut routes);
        assert_eq!([before, behind].map(|start| routes.flow(start)), [before, behind]);
        assert_eq!([before, behind].map(|start| routes.hosts(start)), [[before; 2], [behind; 2]]);
        assert!(inside.iter().all(|start| routes.flow(*start) == routes.flow(inside[0])));
        assert_ne!(routes.flow(other), routes.flow(inside[0]));
        let [data, more, replies] = inside.map(|start| routes.hosts(start));
        assert_eq!((data, replies), (more, [data[1], data[0]]));
        assert!(!data.contains(&routes.hosts(other)[0]));
    }

    #[test]
    fn a_route_ends_at_its_own_endpoint() {
        let mut routes = Routes::default();
        let fifo_link = |index| Hop::new(EventKind::FifoLink, index);
        let first = routes.add([fifo_link(0), fifo_link(1)].into_iter(), Hop::new(EventKind::Sink, 0));
        let second = routes.add([fifo_link(2)].into_iter(), Hop::new(EventKind::Source, 0));
        assert_eq!(routes.end(first + 1), Hop::new(EventKind::Sink, 0));
        assert_eq!(routes.end(second), Hop::new(EventKind::Source, 0));
        assert_eq!(routes.at(second), fifo_link(2));
    }
}
