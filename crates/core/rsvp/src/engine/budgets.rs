//! Budgets: bounds of the state that neighbours may install, and the choice of the state that ends when there is no room.
//!
//! State of a neighbour is a path that it has announced, or a reservation that it has made. A neighbour, and all neighbours of an interface
//! together, have at most so much of it ([`EngineParams`](super::EngineParams)). A path is *confirmed* once something is reserved for it;
//! any host can announce a path, and few can confirm one, since a reservation comes from the receiver's side.
//!
//! Where there is no room, the oldest unconfirmed path ends: of the neighbour if that has too much, of the interface if that has too much, of the
//! interface that has the most if a session or the node is full. State at interfaces with keys is ended for a newcomer at one only, and comes
//! after that at interfaces without keys, whose confirmed paths end for an authenticated newcomer if there is nothing else. Paths that
//! applications here announce are never ended. The previous hop of a path that ends is notified by a `PathErr` message with code 12, the next hops by a
//! `PathTear` message, and those of a reservation that ends with it by a `ResvErr` message with code 12 before. If nothing can end, the newcomer is refused with code 23.

use super::Engine;
use super::keys::{NeighbourKey, PathKey, SessionId};
use super::origin::Origin;
use super::outputs::RsvpEvent;
use super::params::InterfaceId;
use super::state::{NextHop, SessionState};
use crate::message::{Descriptor, Path};
use crate::object::{ErrorSpec, Selector, Sender, Session, Style, code};
use cutline_units::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// The most paths that end for one newcomer.
const MOST_EVICTED: u32 = 1000;
/// The most paths to a host whose ports do not match their protocol. A path whose ports do ends all of them.
const MOST_IMPROPER: usize = 100;
/// The protocols whose packets begin with ports as those of UDP do: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// Owner of new state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newcomer {
    /// A neighbour at an interface without keys.
    Stranger,
    /// A neighbour whose message was authenticated.
    Authenticated,
    /// An application here.
    Local,
}

/// State installed by a neighbour, or by the neighbours of an interface. Paths are named by their numbers,
/// the oldest first.
#[derive(Debug, Default)]
struct Ledger {
    unconfirmed: BTreeSet<u64>,
    confirmed: BTreeSet<u64>,
    reservations: usize,
}

impl Ledger {
    fn states(&self) -> usize {
        self.unconfirmed.len() + self.confirmed.len() + self.reservations
    }

    fn is_empty(&self) -> bool {
        self.states() == 0
    }

    fn put(&mut self, number: u64, is_confirmed: bool) {
        let paths = if is_confirmed { &mut self.confirmed } else { &mut self.unconfirmed };
        paths.insert(number);
    }

    fn take(&mut self, number: u64, is_confirmed: bool) {
        let paths = if is_confirmed { &mut self.confirmed } else { &mut self.unconfirmed };
        paths.remove(&number);
    }
}

/// All that neighbours have installed.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    neighbours: BTreeMap<NeighbourKey, Ledger>,
    interfaces: BTreeMap<InterfaceId, Ledger>,
    paths: BTreeMap<u64, (SessionId, PathKey)>,
    last: u64,
}

impl Budgets {
    /// Returns the number of states.
    pub fn states(&self) -> usize {
        debug_assert_eq!(
            self.neighbours.values().map(Ledger::states).sum::<usize>(),
            self.interfaces.values().map(Ledger::states).sum::<usize>()
        );
        self.interfaces.values().map(Ledger::states).sum()
    }

    /// Runs a function on the ledgers of a neighbour and of its interface.
    fn with(&mut self, owner: NeighbourKey, change: impl Fn(&mut Ledger)) {
        let neighbour = self.neighbours.entry(owner).or_default();
        change(neighbour);
        if neighbour.is_empty() {
            self.neighbours.remove(&owner);
        }
        let interface = self.interfaces.entry(owner.0).or_default();
        change(interface);
        if interface.is_empty() {
            self.interfaces.remove(&owner.0);
        }
    }

    /// Notes a new path, and returns its number.
    pub fn add_path(&mut self, owner: NeighbourKey, path: (SessionId, PathKey)) -> u64 {
        self.last += 1;
        let number = self.last;
        self.paths.insert(number, path);
        self.with(owner, |ledger| ledger.put(number, false));
        number
    }

    /// Notes that a path has another previous hop.
    pub fn move_path(&mut self, number: u64, is_confirmed: bool, (old, new): (NeighbourKey, NeighbourKey)) {
        if old != new {
            self.with(old, |ledger| ledger.take(number, is_confirmed));
            self.with(new, |ledger| ledger.put(number, is_confirmed));
        }
    }

    /// Notes that something is reserved for a path, or no longer.
    fn confirm_path(&mut self, number: u64, is_confirmed: bool, owner: NeighbourKey) {
        self.with(owner, |ledger| {
            ledger.take(number, !is_confirmed);
            ledger.put(number, is_confirmed);
        });
    }

    /// Notes the end of a path.
    pub fn remove_path(&mut self, number: u64, is_confirmed: bool, owner: NeighbourKey) {
        self.paths.remove(&number);
        self.with(owner, |ledger| ledger.take(number, is_confirmed));
    }

    fn count_reservations(&mut self, owner: NeighbourKey, before: usize, now: usize) {
        if before != now {
            self.with(owner, |ledger| ledger.reservations = ledger.reservations - before + now);
        }
    }

    fn states_of(&self, neighbour: NeighbourKey) -> usize {
        self.neighbours.get(&neighbour).map_or(0, Ledger::states)
    }

    fn states_at(&self, interface: InterfaceId) -> usize {
        self.interfaces.get(&interface).map_or(0, Ledger::states)
    }

    fn oldest_of(&self, neighbour: NeighbourKey) -> Option<u64> {
        self.neighbours.get(&neighbour)?.unconfirmed.first().copied()
    }

    fn oldest_at(&self, interface: InterfaceId) -> Option<u64> {
        self.interfaces.get(&interface)?.unconfirmed.first().copied()
    }

    /// Returns the oldest path of the interface that has the most, of those interfaces.
    fn oldest_of_most(
        &self,
        is_one: impl Fn(InterfaceId) -> bool,
        paths: impl Fn(&Ledger) -> &BTreeSet<u64>,
    ) -> Option<u64> {
        let each = self.interfaces.iter().filter(|(id, _)| is_one(**id)).map(|(_, ledger)| paths(ledger));
        each.max_by_key(|paths| paths.len())?.first().copied()
    }
}

impl Engine {
    /// Returns the rank of a message's sender.
    pub(super) fn rank(origin: &Origin) -> Newcomer {
        if origin.key.is_some() { Newcomer::Authenticated } else { Newcomer::Stranger }
    }

    /// Makes room for a new path of a neighbour, and ends conflicting paths that it outranks.
    ///
    /// # Errors
    /// The code and the value of the error with which it is refused.
    pub(super) fn make_room_for_path(
        &mut self,
        now: Instant,
        origin: &Origin,
        path: &Path,
    ) -> Result<(), (u8, u16)> {
        self.settle_conflicts(now, origin, path)?;
        let (newcomer, owner) = (Self::rank(origin), (origin.interface, path.hop.address));
        let none = Err((code::RSVP_SYSTEM, code::NO_ROOM));
        if self.budgets.states_of(owner) >= self.params.most_per_neighbour as usize {
            let Some(oldest) = self.budgets.oldest_of(owner) else { return none };
            self.evict(now, oldest);
        }
        let at = owner.0;
        let unconfirmed = self.budgets.interfaces.get(&at).map_or(0, |ledger| ledger.unconfirmed.len());
        if self.budgets.states_at(at) >= self.params.most_per_interface as usize
            || unconfirmed >= self.params.most_unconfirmed as usize
        {
            let Some(oldest) = self.budgets.oldest_at(at) else { return none };
            self.evict(now, oldest);
        }
        if let Some(id) = self.by_session.get(&path.session).copied() {
            if !self.make_room_in_session(now, id, newcomer) {
                return none;
            }
        } else if !self.make_room_for_session(now, newcomer) {
            return none;
        }
        Ok(())
    }

    /// Returns whether a neighbour may make another reservation.
    pub(super) fn has_room_for_reservation(&self, next_hop: NextHop) -> bool {
        let NextHop::Neighbour(interface, address) = next_hop else { return true };
        self.budgets.states_of((interface, address)) < self.params.most_per_neighbour as usize
            && self.budgets.states_at(interface) < self.params.most_per_interface as usize
    }

    /// Ends paths until there may be another session. Returns whether there may.
    pub(super) fn make_room_for_session(&mut self, now: Instant, newcomer: Newcomer) -> bool {
        for _ in 0..MOST_EVICTED {
            if self.sessions.len() < self.params.most_sessions as usize {
                return true;
            }
            let is_open = |id: InterfaceId| !self.is_keyed(id);
            let (budgets, any) = (&self.budgets, |_| true);
            let victim = budgets.oldest_of_most(is_open, |ledger| &ledger.unconfirmed);
            let victim = victim.or_else(|| match newcomer {
                Newcomer::Stranger => None,
                Newcomer::Local => budgets.oldest_of_most(any, |ledger| &ledger.unconfirmed),
                Newcomer::Authenticated => budgets
                    .oldest_of_most(is_open, |ledger| &ledger.confirmed)
                    .or_else(|| budgets.oldest_of_most(any, |ledger| &ledger.unconfirmed)),
            });
            let Some(victim) = victim else { break };
            self.evict(now, victim);
        }
        self.sessions.len() < self.params.most_sessions as usize
    }

    /// Ends a path of a session if it has as many as it may have. Returns whether there may be another one.
    pub(super) fn make_room_in_session(&mut self, now: Instant, id: SessionId, newcomer: Newcomer) -> bool {
        let Some(s) = self.sessions.get(&id) else { return true };
        if s.paths.len() < self.params.most_per_session as usize {
            return true;
        }
        // The interface that has the most of a kind comes first, and of its paths the oldest.
        let oldest_of = |is_keyed: bool, is_confirmed: bool| {
            let mut by_interface: BTreeMap<InterfaceId, (usize, u64)> = BTreeMap::new();
            for psb in s.paths.values().filter(|psb| psb.entry.is_confirmed == is_confirmed) {
                let Some((interface, _)) = psb.up_key().filter(|its| self.is_keyed(its.0) == is_keyed) else {
                    continue;
                };
                let (count, oldest) = by_interface.entry(interface).or_insert((0, u64::MAX));
                (*count, *oldest) = (*count + 1, (*oldest).min(psb.entry.number));
            }
            by_interface.into_values().max_by_key(|(count, _)| *count).map(|(_, oldest)| oldest)
        };
        let victim = oldest_of(false, false).or_else(|| match newcomer {
            Newcomer::Stranger => None,
            Newcomer::Local => oldest_of(true, false),
            Newcomer::Authenticated => oldest_of(false, true).or_else(|| oldest_of(true, false)),
        });
        victim.is_some_and(|victim| self.evict(now, victim))
    }

    /// RFC 2205 section 3.2: destination ports, and the source ports of a sender, are all zero or none is. Of two that conflict, the one that is
    /// as its protocol wants it stays, unless the other one is confirmed; so a path for port 0 does not keep all sessions of a host away.
    fn settle_conflicts(&mut self, now: Instant, origin: &Origin, path: &Path) -> Result<(), (u8, u16)> {
        let Path { session, sender, .. } = path;
        let has_ports = WITH_PORTS.contains(&session.protocol);
        let is_proper = has_ports == (session.port != 0);
        if !is_proper {
            let proper = Session { port: u16::from(has_ports), ..*session };
            self.make_room_among_improper(now, origin, &proper)?;
        }
        self.settle(now, origin, (self.port_conflicts(session), is_proper), code::CONFLICTING_PORTS)?;
        let has_port = !matches!(sender.selector, Selector::Port(0));
        let is_proper = has_port == (session.port != 0);
        let conflicts = self.sender_port_conflicts(session, sender);
        self.settle(now, origin, (conflicts, is_proper), code::CONFLICTING_SENDER_PORTS)
    }

    /// Ends the oldest unconfirmed path that conflicts with the sessions that a protocol has to a host, if there are too many.
    fn make_room_among_improper(
        &mut self,
        now: Instant,
        origin: &Origin,
        proper: &Session,
    ) -> Result<(), (u8, u16)> {
        let improper = self.port_conflicts(proper);
        if improper.len() < MOST_IMPROPER {
            return Ok(());
        }
        let is_stranger = Self::rank(origin) == Newcomer::Stranger;
        let may_end = |(id, key): &(SessionId, PathKey)| {
            let psb = self.sessions.get(id)?.paths.get(key)?;
            let (interface, _) = psb.up_key()?;
            let is_protected = psb.entry.is_confirmed || (is_stranger && self.is_keyed(interface));
            (!is_protected).then_some(psb.entry.number)
        };
        let oldest = improper.iter().filter_map(may_end).min().ok_or((code::CONFLICTING_PORTS, 0))?;
        self.evict(now, oldest);
        Ok(())
    }

    fn settle(
        &mut self,
        now: Instant,
        origin: &Origin,
        (conflicts, is_proper): (Vec<(SessionId, PathKey)>, bool),
        code: u8,
    ) -> Result<(), (u8, u16)> {
        let newcomer = Self::rank(origin);
        if conflicts.len() > MOST_EVICTED as usize {
            return Err((code, 0));
        }
        let yields = |(id, key): &(SessionId, PathKey)| {
            let psb = self.sessions.get(id).and_then(|s| s.paths.get(key));
            let (psb, from) = psb.and_then(|psb| Some((psb, psb.up_key()?)))?;
            let is_keyed = self.is_keyed(from.0);
            let is_outranked = !is_keyed && newcomer == Newcomer::Authenticated;
            let is_weaker =
                is_proper && !psb.entry.is_confirmed && !(is_keyed && newcomer == Newcomer::Stranger);
            (is_outranked || is_weaker).then_some(psb.entry.number)
        };
        let victims: Option<Vec<u64>> = conflicts.iter().map(yields).collect();
        for victim in victims.ok_or((code, 0))? {
            self.evict(now, victim);
        }
        Ok(())
    }

    /// Returns the paths of sessions with the same destination whose ports are zero if those of this session are not, and the reverse.
    fn port_conflicts(&self, session: &Session) -> Vec<(SessionId, PathKey)> {
        let Session { destination, protocol, port } = *session;
        let at = |port| Session { destination, protocol, port };
        let others = if port == 0 { at(1)..=at(u16::MAX) } else { at(0)..=at(0) };
        let states = self.by_session.range(others).filter_map(|(_, id)| self.sessions.get(id));
        states.flat_map(|s| s.paths.keys().map(|key| (s.id, *key))).take(MOST_EVICTED as usize + 1).collect()
    }

    /// Returns the paths of a session from the same host whose source port is zero if that of this one is not, and the reverse.
    fn sender_port_conflicts(&self, session: &Session, sender: &Sender) -> Vec<(SessionId, PathKey)> {
        let s = self.by_session.get(session).and_then(|id| self.sessions.get(id));
        let (Some(s), Selector::Port(port)) = (s, sender.selector) else { return Vec::new() };
        let same_host = s.paths.keys().filter(|(other, _)| other.address == sender.address);
        let is_other = |other: &Sender| match other.selector {
            Selector::Port(other) => other != port && (other == 0 || port == 0),
            Selector::FlowLabel(_) => false,
        };
        same_host.filter(|(other, _)| is_other(other)).map(|key| (s.id, *key)).collect()
    }

    /// Ends a path of a neighbour, and notifies the nodes before and after this one. Returns whether there was one.
    fn evict(&mut self, now: Instant, number: u64) -> bool {
        let Some((id, key)) = self.budgets.paths.get(&number).copied() else { return false };
        self.stats.evicted += 1;
        self.in_session(id, |this, s| {
            if let Some((psb, (interface, hop))) = s.paths.get(&key).and_then(|psb| Some((psb, psb.from?))) {
                let path = (s.session, key.0, psb.tspec);
                this.send_path_error(now, interface, hop.address, path, (code::PREEMPTED, 0));
            }
            // Before the end of the path: an error about a session without a path is not believed.
            this.report_preempted(now, s, key);
            this.tear_downstream(now, s, key);
            this.remove_path(s, key);
        });
        true
    }

    /// Notifies the owners of reservations that end with a path: those for its sender that nothing else routes to them.
    fn report_preempted(&mut self, now: Instant, s: &SessionState, key: PathKey) {
        let Some(psb) = s.paths.get(&key) else { return };
        for rsb in &s.reservations {
            let interface = rsb.next_hop.interface();
            let is_wild = rsb.style == Style::WildcardFilter;
            let is_its = is_wild || rsb.filters.contains_key(&key.0);
            let routed = s.routed_to(interface).filter(|(sender, _)| is_wild || **sender == key.0).count();
            if is_its && psb.leads_to(interface) && routed == 1 {
                let filters = if is_wild { Vec::new() } else { vec![key.0] };
                let flow = Descriptor { flowspec: Some(rsb.flowspec), filters };
                let (owner, failure) = ((rsb.next_hop, rsb.handle), (code::PREEMPTED, 0));
                self.report_failure(now, s, owner, rsb.style, failure, false, Some(flow));
            }
        }
    }

    /// Makes the ledgers follow a session whose reservations or paths have changed.
    pub(super) fn account(&mut self, s: &mut SessionState) {
        let mut reservations: BTreeMap<NeighbourKey, usize> = BTreeMap::new();
        for rsb in &s.reservations {
            if let NextHop::Neighbour(interface, address) = rsb.next_hop {
                *reservations.entry((interface, address)).or_default() += 1;
            }
        }
        for (owner, before) in &s.accounted {
            if !reservations.contains_key(owner) {
                self.budgets.count_reservations(*owner, *before, 0);
            }
        }
        for (owner, count) in &reservations {
            let before = s.accounted.iter().find(|(its, _)| its == owner).map_or(0, |(_, before)| *before);
            self.budgets.count_reservations(*owner, before, *count);
        }
        s.accounted = reservations.into_iter().collect();
        // Senders by the interfaces at which something is reserved for them; style WF reserves for all.
        let mut selected: BTreeMap<Option<InterfaceId>, Option<BTreeSet<Sender>>> = BTreeMap::new();
        for rsb in &s.reservations {
            let senders = selected.entry(rsb.next_hop.interface()).or_insert_with(|| Some(BTreeSet::new()));
            if rsb.filters.is_empty() {
                *senders = None;
            } else if let Some(senders) = senders {
                senders.extend(rsb.filters.keys().copied());
            }
        }
        for ((sender, _), psb) in &mut s.paths {
            let Some(owner) = psb.up_key() else { continue };
            let is_confirmed = selected.iter().any(|(interface, senders)| {
                psb.leads_to(*interface) && senders.as_ref().is_none_or(|senders| senders.contains(sender))
            });
            if is_confirmed != psb.entry.is_confirmed {
                psb.entry.is_confirmed = is_confirmed;
                self.budgets.confirm_path(psb.entry.number, is_confirmed, owner);
            }
        }
    }

    /// Reports to an application here that a sender for which it requests a reservation is refused at this node.
    pub(super) fn tell_refused(&mut self, session: Session, sender: Sender, error: ErrorSpec) {
        let s = self.by_session.get(&session).and_then(|id| self.sessions.get(id));
        let request = s.and_then(|s| s.request.as_ref()).filter(|request| request.senders.contains(&sender));
        if let Some(style) = request.map(|request| request.style) {
            self.event(RsvpEvent::ResvError { session, error, style, flowspec: None, senders: vec![sender] });
        }
    }
}
