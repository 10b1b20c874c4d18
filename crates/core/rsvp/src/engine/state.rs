//! State of a session (RFC 2209 section 1). The blocks have the RFC's names.

use super::keys::{NeighbourKey, PathKey, SessionId, UpKey};
use super::outputs::{Police, RouteKey};
use super::params::InterfaceId;
use super::timers::Slot;
use crate::admission::ReservationHandle;
use crate::intserv::{Adspec, Flowspec, Tspec};
use crate::object::{Hop, Opaque, Sender, Session, Style};
use cutline_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// All state of a session.
#[derive(Debug)]
pub(super) struct SessionState {
    pub id: SessionId,
    pub session: Session,
    /// Boxed, as are others below: a node of a map has room for eleven, and most sessions have one.
    pub paths: BTreeMap<PathKey, Box<Psb>>,
    pub reservations: Vec<Rsb>,
    pub controls: Vec<Tcsb>,
    pub blockades: BTreeMap<BlockadeKey, Bsb>,
    pub upstream: BTreeMap<UpKey, Box<Upstream>>,
    /// Reservation that the application of this node requests.
    pub request: Option<Reservation>,
    /// Flowspecs that it requests for single senders in style FF, instead of the common one.
    pub flowspecs: BTreeMap<Sender, Flowspec>,
    /// True if the application here requests events of the session.
    pub is_watched: bool,
    /// Time at which the first reservation expires.
    pub cleanup: Slot,
    /// Number of reservations of each neighbour that the budgets have counted.
    pub accounted: Vec<(NeighbourKey, usize)>,
    /// True if the budgets are to be updated after changes.
    pub is_to_account: bool,
}

/// Path state block: a sender.
#[derive(Debug)]
pub(super) struct Psb {
    /// Previous hop; `None` if the sender is an application of this node.
    pub from: Option<(InterfaceId, Hop)>,
    pub tspec: Tspec,
    pub adspec: Option<Adspec>,
    pub polices_entry: bool,
    pub has_gap: bool,
    pub ttl: u8,
    pub policy: Vec<Opaque>,
    pub passed_on: Vec<Opaque>,
    /// True if the path is not the one that routing uses (RFC 2209 section 1).
    pub is_local_only: bool,
    /// Key of the route query; `None` for an application of this node.
    pub route: Option<RouteKey>,
    pub outgoing: Vec<Outgoing>,
    pub expires: Instant,
    pub lifetime: Duration,
    pub cleanup: Slot,
    pub refresh: Slot,
    /// Number of early repetitions since the last change.
    pub early: u32,
    pub received: Option<Received>,
    pub entry: Entry,
}

/// A path's entry in the budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number; the older one is smaller. 0 for that of an application here.
    pub number: u64,
    /// True if something is reserved for it.
    pub is_confirmed: bool,
}

/// An interface that a path leaves by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outgoing {
    pub interface: InterfaceId,
    /// The next RSVP node, if routing or a reservation has shown it.
    pub next_hop: Option<IpAddr>,
    pub sent: Sent,
}

/// A message that has installed state at a neighbour.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sent {
    /// A hash of its content.
    pub hash: u64,
    /// Its number and the neighbour.
    pub id: Option<(u32, NeighbourKey)>,
    pub is_acknowledged: bool,
}

/// The number of the message that has installed state here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub neighbour: NeighbourKey,
    pub epoch: u32,
    pub id: u32,
}

/// Next hop of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NextHop {
    /// An application here.
    Application,
    /// A neighbour, by an interface.
    Neighbour(InterfaceId, IpAddr),
}

impl NextHop {
    /// The outgoing interface; `None` for an application.
    pub const fn interface(self) -> Option<InterfaceId> {
        match self {
            Self::Application => None,
            Self::Neighbour(interface, _) => Some(interface),
        }
    }
}

/// Reservation state block: the reservation of a next hop.
#[derive(Clone, Debug)]
pub(super) struct Rsb {
    pub next_hop: NextHop,
    /// The handle by which a neighbour knows its interface.
    pub handle: u32,
    pub style: Style,
    /// The senders, each with the time at which it ends; none in style WF.
    pub filters: BTreeMap<Sender, Instant>,
    /// Expiry in style WF.
    pub expires: Instant,
    pub flowspec: Flowspec,
    pub scope: Option<Vec<IpAddr>>,
    pub policy: Vec<Opaque>,
    pub passed_on: Vec<Opaque>,
    pub received: Option<Received>,
    pub lifetime: Duration,
}

impl Rsb {
    /// Returns whether it is for this sender.
    pub fn selects(&self, sender: &Sender) -> bool {
        self.style == Style::WildcardFilter || self.filters.contains_key(sender)
    }

    /// The time at which the first part of it ends.
    pub fn ends(&self) -> Instant {
        self.filters.values().copied().min().unwrap_or(self.expires)
    }
}

/// Traffic control state block: the reservation on an interface.
#[derive(Clone, Debug)]
pub(super) struct Tcsb {
    /// `None` towards an application here, for which nothing is controlled.
    pub interface: Option<InterfaceId>,
    pub handle: ReservationHandle,
    pub style: Style,
    pub filters: BTreeSet<Sender>,
    pub flowspec: Flowspec,
    /// The sum of the senders' buckets.
    pub path_tspec: Tspec,
    pub police: Police,
    pub confirm: Option<IpAddr>,
}

impl Tcsb {
    pub fn selects(&self, sender: &Sender) -> bool {
        self.style == Style::WildcardFilter || self.filters.contains(sender)
    }
}

/// Subject of blockade state (RFC 2205 section 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BlockadeKey {
    Sender(Sender),
    Hop(UpKey),
}

/// Blockade state block: the reservation that failed upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bsb {
    pub flowspec: Flowspec,
    pub until: Instant,
}

/// The last reservation at a neighbour towards the senders.
#[derive(Debug, Default)]
pub(super) struct Upstream {
    /// The neighbour's handle.
    pub handle: u32,
    pub style: Option<Style>,
    pub filters: BTreeSet<Sender>,
    pub sent: Sent,
    pub refresh: Slot,
    pub early: u32,
    /// The receiver that waits for a confirmation, until the neighbour has acknowledged that.
    pub confirm: Option<IpAddr>,
    /// True if the reservation lost its path and is restored when the path returns.
    pub waits_for_path: bool,
}

/// Reservation of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    /// The style.
    pub style: Style,
    /// The senders; none in style WF.
    pub senders: Vec<Sender>,
    /// Flowspec: for each sender in style FF, for all together otherwise.
    pub flowspec: Flowspec,
    /// True if the application requests a confirmation.
    pub confirm: bool,
}

impl SessionState {
    pub const fn new(id: SessionId, session: Session) -> Self {
        Self {
            id,
            session,
            paths: BTreeMap::new(),
            reservations: Vec::new(),
            controls: Vec::new(),
            blockades: BTreeMap::new(),
            upstream: BTreeMap::new(),
            request: None,
            flowspecs: BTreeMap::new(),
            is_watched: false,
            cleanup: Slot::EMPTY,
            accounted: Vec::new(),
            is_to_account: false,
        }
    }

    /// Stores the next RSVP node, which a reservation has revealed.
    pub fn learn_next_hop(&mut self, interface: InterfaceId, next_hop: IpAddr) {
        if self.session.is_multicast() {
            return;
        }
        for psb in self.paths.values_mut() {
            for out in
                psb.outgoing.iter_mut().filter(|out| out.interface == interface && out.next_hop.is_none())
            {
                out.next_hop = Some(next_hop);
            }
        }
    }

    /// Returns whether nothing is left that would need the session.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.reservations.is_empty() && self.request.is_none() && !self.is_watched
    }

    /// Returns the senders whose packets leave by an interface, or for `None` reach an application here, with their state.
    pub fn routed_to(&self, interface: Option<InterfaceId>) -> impl Iterator<Item = (&Sender, &Psb)> {
        self.paths
            .iter()
            .filter(move |(_, psb)| psb.leads_to(interface))
            .map(|((sender, _), psb)| (sender, &**psb))
    }

    /// Returns the neighbours towards the senders that a reservation selects.
    pub fn previous_hops(&self, selects: impl Fn(&Sender) -> bool) -> BTreeSet<UpKey> {
        let selected = self.paths.iter().filter(|((sender, _), _)| selects(sender));
        selected.filter_map(|(_, psb)| psb.from.map(|(interface, hop)| (interface, hop.address))).collect()
    }
}

impl Psb {
    /// Returns whether the packets leave by this interface, or for `None` may reach an application here.
    pub fn leads_to(&self, interface: Option<InterfaceId>) -> bool {
        match interface {
            None => self.from.is_some(),
            Some(interface) => {
                let is_back = self.from.is_some_and(|(from, _)| from == interface);
                !self.is_local_only && !is_back && self.outgoing.iter().any(|out| out.interface == interface)
            }
        }
    }

    pub fn up_key(&self) -> Option<UpKey> {
        self.from.map(|(interface, hop)| (interface, hop.address))
    }
}

impl Rsb {
    /// Restarts the lifetime of all parts of the reservation.
    pub fn prolong(&mut self, now: Instant) {
        let until = now.saturating_add(self.lifetime);
        self.filters.values_mut().for_each(|expires| *expires = until);
        self.expires = until;
    }
}
