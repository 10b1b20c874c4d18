//! Routes, and the tags of events: what a packet comes to next.
//!
//! A stop is a word: four bits say what it is, 28 which one. A route is a run of stops that ends with the endpoint,
//! so following a packet is one load a hop, and the event that brings a packet to a stop has the stop itself for
//! its tag.

/// What a packet or an event comes to: the upper four bits of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A wire that all packets reach over one and the same link: they may be put through ahead of time.
    FoldedWire = 0,
    /// A wire that has to be entered by an event of the very moment.
    Wire = 1,
    /// A link with an AQM's queue.
    Served = 2,
    /// A data packet's end: a flow's receiver.
    Sink = 3,
    /// An acknowledgement's end: a flow's sender.
    Source = 4,
    /// A served link has sent its packet.
    LinkFree = 5,
    SourceTimer = 6,
    SinkTimer = 7,
    AppTimer = 8,
    /// An interval of the queues' series ends.
    Interval = 9,
    RateChange = 10,
    /// A served link whose packets are observed one by one.
    Watched = 11,
    /// A watched link has sent its packet.
    WatchedFree = 12,
    /// An agent: the end of a message, or its deadline.
    Agent = 13,
    /// The end of a packet that came from outside; see [`crate::outside`].
    Outside = 14,
    /// Not in use. With all sixteen values taken, the kind of a word is the word's upper bits and needs no comparison.
    Spare = 15,
}

/// A kind, and which one of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop(u32);

const KIND_SHIFT: u32 = 28;

impl Stop {
    pub(crate) fn new(kind: Kind, index: usize) -> Self {
        assert!(index < 1 << KIND_SHIFT, "a network has at most 2^28 links and flows");
        Self((kind as u32) << KIND_SHIFT | index as u32)
    }

    /// The stop of an event's tag.
    #[inline]
    pub(crate) const fn of_tag(tag: u32) -> Self {
        Self(tag)
    }

    /// The tag of an event that comes to this stop.
    #[inline]
    pub(crate) const fn tag(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) const fn kind(self) -> Kind {
        match self.0 >> KIND_SHIFT {
            0 => Kind::FoldedWire,
            1 => Kind::Wire,
            2 => Kind::Served,
            3 => Kind::Sink,
            4 => Kind::Source,
            5 => Kind::LinkFree,
            6 => Kind::SourceTimer,
            7 => Kind::SinkTimer,
            8 => Kind::AppTimer,
            9 => Kind::Interval,
            10 => Kind::RateChange,
            11 => Kind::Watched,
            12 => Kind::WatchedFree,
            13 => Kind::Agent,
            14 => Kind::Outside,
            _ => Kind::Spare,
        }
    }

    /// The question asked at every hop: the kind is 0, so it is one comparison.
    #[inline]
    pub(crate) const fn is_folded_wire(self) -> bool {
        self.0 >> KIND_SHIFT == Kind::FoldedWire as u32
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        (self.0 & ((1 << KIND_SHIFT) - 1)) as usize
    }
}

/// All routes, one after the other.
#[derive(Default)]
pub(crate) struct Routes {
    stops: Vec<Stop>,
}

impl Routes {
    pub(crate) fn with_capacity(stops: usize) -> Self {
        Self { stops: Vec::with_capacity(stops) }
    }

    /// Adds a route over these links to an endpoint, and answers where it begins.
    pub(crate) fn add(&mut self, links: impl Iterator<Item = Stop>, end: Stop) -> u32 {
        let start = self.stops.len();
        self.stops.extend(links);
        self.stops.push(end);
        u32::try_from(start).expect("all routes together have at most 2^32 hops")
    }

    #[inline]
    pub(crate) fn at(&self, position: u32) -> Stop {
        self.stops[position as usize]
    }

    /// The endpoint of the route that goes through `position`.
    pub(crate) fn end(&self, position: u32) -> Stop {
        let rest = self.stops[position as usize..].iter();
        let mut ends = rest
            .filter(|stop| matches!(stop.kind(), Kind::Sink | Kind::Source | Kind::Agent | Kind::Outside));
        *ends.next().expect("every route ends at an endpoint")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_keeps_what_it_was_made_of() {
        let kinds = [
            Kind::FoldedWire,
            Kind::Wire,
            Kind::Served,
            Kind::Sink,
            Kind::Source,
            Kind::LinkFree,
            Kind::SourceTimer,
            Kind::SinkTimer,
            Kind::AppTimer,
            Kind::Interval,
            Kind::RateChange,
            Kind::Watched,
            Kind::WatchedFree,
            Kind::Agent,
            Kind::Outside,
        ];
        for kind in kinds {
            let stop = Stop::of_tag(Stop::new(kind, 123_456_789).tag());
            assert_eq!((stop.kind(), stop.index()), (kind, 123_456_789));
        }
    }

    #[test]
    fn a_route_ends_at_its_own_endpoint() {
        let mut routes = Routes::default();
        let wire = |index| Stop::new(Kind::Wire, index);
        let first = routes.add([wire(0), wire(1)].into_iter(), Stop::new(Kind::Sink, 0));
        let second = routes.add([wire(2)].into_iter(), Stop::new(Kind::Source, 0));
        assert_eq!(routes.end(first + 1), Stop::new(Kind::Sink, 0));
        assert_eq!(routes.end(second), Stop::new(Kind::Source, 0));
        assert_eq!(routes.at(second), wire(2));
    }
}
