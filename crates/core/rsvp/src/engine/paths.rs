//! Path state: Path and `PathTear` messages, senders here, routes (RFC 2209: PATH, PTEAR, PATH REFRESH, ROUTE CHANGE, PATH LOCAL REPAIR).

use super::keys::PathKey;
use super::neighbours::{Installed, Installs, Order, Target};
use super::origin::Origin;
use super::outputs::{EngineOutput, Route, RouteKey, RoutedFlow, RsvpEvent};
use super::params::InterfaceId;
use super::state::{Entry, Outgoing, Psb, Sent, SessionState};
use super::timers::{Slot, Timer};
use super::upstream::Cause;
use super::{CallError, Engine, Newcomer, RouteEntry};
use crate::intserv::{Adspec, Tspec};
use crate::message::{Body, Message, Path, PathTear};
use crate::object::{Hop, MessageId, Opaque, Selector, Sender, Session, Style, code};
use cutline_units::Instant;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A Path message, and the circumstances of its arrival.
pub(super) struct ArrivedPath {
    pub origin: Origin,
    /// The TTL of its IP header, and that in its own.
    pub ttl: (u8, u8),
    pub id: Option<MessageId>,
    pub passed_on: Vec<Opaque>,
    pub path: Path,
}

/// Traffic that an application of this node sends.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalSender {
    /// The address and the port that it sends from.
    pub sender: Sender,
    /// Its traffic.
    pub tspec: Tspec,
    /// The outgoing interface.
    pub interface: InterfaceId,
    /// The next RSVP node, if it is known.
    pub next_hop: Option<IpAddr>,
    /// True if the path's offer is to be reported to receivers.
    pub advertise: bool,
}

impl Engine {
    /// Announces the traffic of an application here, or a change of it (RFC 2205 section 3.11.1: SENDER).
    ///
    /// # Errors
    /// When a value is not allowed, or there are too many sessions or senders.
    pub fn send_path(
        &mut self,
        now: Instant,
        session: Session,
        local: &LocalSender,
    ) -> Result<(), CallError> {
        let LocalSender { sender, tspec, interface, next_hop, advertise } = *local;
        tspec.validate()?;
        check_sender(&session, &sender)?;
        let place = self.interfaces.get(&interface).ok_or(CallError::Interface(interface.0))?;
        let polices_entry = place.share.is_none();
        let adspec = advertise.then(|| Adspec::new(place.config.mtu));
        let most = self.params.most_sessions;
        let id = self.local_session_id(now, session).ok_or(CallError::Full { what: "sessions", most })?;
        let most = self.params.most_per_session;
        let is_there = self.sessions.get(&id).is_some_and(|s| s.paths.contains_key(&(sender, None)));
        if !is_there && !self.make_room_in_session(now, id, Newcomer::Local) {
            self.stats.full += 1;
            self.in_session(id, |_, _| {});
            return Err(CallError::Full { what: "senders", most });
        }
        // The session may have ended with the removed path.
        let id = self.session_id(session);
        self.in_session(id, |this, s| {
            let key = (sender, None);
            let psb = Psb {
                from: None,
                tspec,
                adspec,
                polices_entry,
                has_gap: false,
                ttl: this.params.ttl.saturating_add(1),
                policy: Vec::new(),
                passed_on: Vec::new(),
                is_local_only: false,
                route: None,
                outgoing: vec![Outgoing { interface, next_hop, sent: Sent::default() }],
                expires: Instant::FAR_FUTURE,
                lifetime: cutline_units::Duration::ZERO,
                cleanup: Slot::EMPTY,
                refresh: Slot::EMPTY,
                early: 0,
                received: None,
                entry: Entry::default(),
            };
            if let Some(mut old) = s.paths.insert(key, Box::new(psb)) {
                this.timers.cancel(&mut old.refresh);
                old.outgoing.iter_mut().for_each(|out| this.forget(&mut out.sent));
            }
            this.send_paths(now, s, key);
            this.path_changed(now, s, &sender);
        });
        Ok(())
    }

    /// Withdraws the announcement of an application here. Nothing happens if there is none.
    pub fn end_path(&mut self, now: Instant, session: Session, sender: Sender) {
        let Some(id) = self.by_session.get(&session).copied() else { return };
        self.in_session(id, |this, s| {
            let key = (sender, None);
            if s.paths.get(&key).is_some_and(|psb| psb.from.is_none()) {
                this.tear_downstream(now, s, key);
                this.remove_path(s, key);
            }
        });
    }

    /// Handles a Path message.
    pub(super) fn on_path(&mut self, now: Instant, arrived: ArrivedPath) {
        let (path, interface) = (&arrived.path, arrived.origin.interface);
        let key = (path.sender, path.session.is_multicast().then_some(interface));
        let s = self.by_session.get(&path.session).and_then(|id| self.sessions.get(id));
        let is_new = s.is_none_or(|s| !s.paths.contains_key(&key));
        if is_new && let Err((code, value)) = self.make_room_for_path(now, &arrived.origin, path) {
            self.stats.full += u64::from(code == code::RSVP_SYSTEM);
            self.path_error(now, interface, path, code, value);
            return;
        }
        let id = self.session_id(path.session);
        self.in_session(id, |this, s| this.on_session_path(now, s, arrived));
    }

    fn on_session_path(&mut self, now: Instant, s: &mut SessionState, arrived: ArrivedPath) {
        let ArrivedPath { origin, ttl: (ttl, header_ttl), id, passed_on, path } = arrived;
        let interface = origin.interface;
        let key = (path.sender, s.session.is_multicast().then_some(interface));
        let neighbour = (interface, path.hop.address);
        let is_new = !s.paths.contains_key(&key);
        if let Some(psb) = s.paths.get_mut(&key) {
            if psb.from.is_none() {
                // Our own sender's message has come back.
                self.stats.misplaced += 1;
                return;
            }
            if let Some((old, _)) = psb.from
                && self.is_keyed(old)
                && !self.speaks_for(&origin, old)
            {
                // It would move a path of an authenticated neighbour.
                self.stats.misplaced += 1;
                return;
            }
            match Self::order(psb.received, neighbour, id) {
                Order::Old => {
                    self.stats.out_of_order += 1;
                    return;
                }
                // A message with the number of the state here and other contents repairs the state (RFC 2961 section 5.5).
                Order::Same | Order::New => {}
            }
        }
        let lifetime = self.params.lifetime_of(path.refresh);
        let from = Some((interface, path.hop));
        let fresh = Psb {
            from,
            tspec: path.tspec,
            adspec: path.adspec,
            polices_entry: path.polices_entry,
            has_gap: ttl != header_ttl,
            ttl,
            policy: path.policy,
            passed_on,
            is_local_only: s.session.is_multicast(),
            route: None,
            outgoing: Vec::new(),
            expires: now + lifetime,
            lifetime,
            cleanup: Slot::EMPTY,
            refresh: Slot::EMPTY,
            early: 0,
            received: None,
            entry: Entry::default(),
        };
        let psb = s.paths.entry(key).or_insert_with(|| Box::new(fresh.blank()));
        let has_moved = psb.from != from;
        let is_other = is_new || has_moved || !psb.says_the_same(&fresh);
        let old_hop = psb.up_key().filter(|_| has_moved && !is_new);
        if is_new {
            psb.entry.number = self.budgets.add_path(neighbour, (s.id, key));
        } else if let Some(old) = old_hop {
            self.budgets.move_path(psb.entry.number, psb.entry.is_confirmed, (old, neighbour));
        }
        psb.take(fresh);
        if is_new {
            self.timers.set(&mut psb.cleanup, psb.expires, Timer::PathCleanup(s.id, key));
        }
        let mut received = psb.received.take();
        self.install(&mut received, neighbour, id, Installed::Path(s.id, key));
        if let Some(psb) = s.paths.get_mut(&key) {
            psb.received = received;
        }
        self.acknowledge(now, neighbour, id);
        if let Some(old) = old_hop {
            self.leave_hop(s, old, &path.sender);
        }
        // Where packets go may depend on where they come from.
        if is_new || has_moved {
            self.ask_route(now, s, key);
        }
        if !is_other {
            self.path_is_back(now, s, neighbour);
            return;
        }
        if s.is_watched || s.request.is_some() {
            let Psb { tspec, adspec, .. } = &*s.paths[&key];
            let event = RsvpEvent::Path {
                session: s.session,
                sender: path.sender,
                tspec: *tspec,
                adspec: adspec.clone(),
            };
            self.event(event);
        }
        // A new path is sent where its route is.
        if !is_new {
            self.send_paths(now, s, key);
        }
        self.path_changed(now, s, &path.sender);
        self.refresh_upstream(now, s, neighbour, Cause::Changed);
        self.path_is_back(now, s, neighbour);
    }

    /// Reservations follow the paths: the request of the application here, and the reservation for a changed sender.
    fn path_changed(&mut self, now: Instant, s: &mut SessionState, sender: &Sender) {
        self.apply_request(now, s);
        let concerned = s.controls.iter().filter(|control| control.selects(sender));
        let concerned: Vec<_> = concerned
            .map(|control| (control.interface, control.style, control.filters.first().copied()))
            .collect();
        for (interface, style, first) in concerned {
            let filter = first.filter(|_| style == Style::FixedFilter);
            // A larger sum of senders that is not admitted leaves the present state.
            if self.update_control(s, interface, style, filter).is_err() {
                self.stats.not_admitted += 1;
            }
        }
    }

    /// A neighbour that has lost the path has it again: it gets the reservation at once.
    fn path_is_back(&mut self, now: Instant, s: &mut SessionState, key: (InterfaceId, IpAddr)) {
        if let Some(upstream) = s.upstream.get_mut(&key).filter(|upstream| upstream.waits_for_path) {
            upstream.waits_for_path = false;
            self.send_resv_again(now, s, key);
        }
    }

    /// Removes the reservations at a hop that is no longer a previous hop, unless other senders come from there.
    fn leave_hop(&mut self, s: &mut SessionState, hop: (InterfaceId, IpAddr), sender: &Sender) {
        let is_needed = s.paths.values().any(|psb| psb.up_key() == Some(hop));
        if let Some(upstream) = s.upstream.get_mut(&hop) {
            upstream.filters.remove(sender);
        }
        if !is_needed && let Some(mut upstream) = s.upstream.remove(&hop) {
            self.timers.cancel(&mut upstream.refresh);
            self.forget(&mut upstream.sent);
        }
    }

    /// Handles a `PathTear` message.
    pub(super) fn on_path_tear(
        &mut self,
        now: Instant,
        origin: &Origin,
        id: Option<MessageId>,
        tear: &PathTear,
    ) {
        let Some(session) = self.by_session.get(&tear.session).copied() else {
            self.stats.without_state += 1;
            return;
        };
        let key = (tear.sender, tear.session.is_multicast().then_some(origin.interface));
        self.in_session(session, |this, s| {
            // RFC 2205 section 3.1.5: it must come from the previous hop that the state has.
            let psb = s.paths.get(&key).filter(|psb| psb.from.is_some_and(|(_, hop)| hop == tear.hop));
            let Some((psb, neighbour)) = psb.and_then(|psb| Some((psb, psb.up_key()?))) else {
                this.stats.without_state += 1;
                return;
            };
            if !this.speaks_for(origin, neighbour.0) {
                this.stats.misplaced += 1;
                return;
            }
            if Self::order(psb.received, neighbour, id) == Order::Old {
                this.stats.out_of_order += 1;
                return;
            }
            this.tear_downstream(now, s, key);
            this.remove_path(s, key);
        });
    }

    /// Reports the end of a sender to the nodes after this one.
    pub(super) fn tear_downstream(&mut self, now: Instant, s: &SessionState, key: PathKey) {
        let Some(psb) = s.paths.get(&key).filter(|psb| !psb.is_local_only) else { return };
        let ttl = psb.ttl.saturating_sub(1);
        if ttl == 0 {
            self.stats.ttl_ended += 1;
            return;
        }
        for Outgoing { interface, next_hop, .. } in psb.outgoing.clone() {
            let Some(address) = self.address_of(interface) else { continue };
            let hop = Hop { address, handle: interface.0 };
            let tear = PathTear { session: s.session, hop, sender: key.0, tspec: Some(psb.tspec) };
            let mut message = Message::new(ttl, Body::PathTear(tear));
            message.passed_on.clone_from(&psb.passed_on);
            let next_hop = next_hop.filter(|_| !s.session.is_multicast());
            let target = Target::Session(key.0.address, s.session, next_hop);
            match next_hop {
                Some(next_hop) => self.transmit_reliably(now, interface, next_hop, target, message),
                None => self.transmit(now, interface, target, message),
            }
        }
    }

    /// Ends path state and the reservations that need it (RFC 2205 section 3.1.5). The nodes before and after are not notified.
    pub(super) fn remove_path(&mut self, s: &mut SessionState, key: PathKey) {
        let Some(mut psb) = s.paths.remove(&key) else { return };
        for slot in [&mut psb.cleanup, &mut psb.refresh] {
            self.timers.cancel(slot);
        }
        psb.outgoing.iter_mut().for_each(|out| self.forget(&mut out.sent));
        self.uninstall(&mut psb.received, Installed::Path(s.id, key));
        if let Some(hop) = psb.up_key() {
            self.budgets.remove_path(psb.entry.number, psb.entry.is_confirmed, hop);
            self.leave_hop(s, hop, &key.0);
        }
        self.release_route(s, psb.route);
        self.prune(s);
        if s.is_watched || s.request.is_some() {
            self.event(RsvpEvent::PathEnded { session: s.session, sender: key.0 });
        }
    }

    /// A path without a refresh ends, and the nodes after this one are notified.
    pub(super) fn path_cleanup_due(&mut self, now: Instant, s: &mut SessionState, key: PathKey) {
        let Some(psb) = s.paths.get_mut(&key) else { return };
        if psb.expires > now {
            let at = psb.expires;
            self.timers.set(&mut psb.cleanup, at, Timer::PathCleanup(s.id, key));
            return;
        }
        self.stats.expired += 1;
        self.tear_downstream(now, s, key);
        self.remove_path(s, key);
    }

    pub(super) fn path_refresh_due(&mut self, now: Instant, s: &mut SessionState, key: PathKey) {
        if let Some(psb) = s.paths.get_mut(&key) {
            psb.refresh = Slot::EMPTY;
            self.refresh_path(now, s, key);
        }
    }

    fn refresh_path(&mut self, now: Instant, s: &mut SessionState, key: PathKey) {
        let Some(psb) = s.paths.get(&key) else { return };
        let outgoing: Vec<_> = psb.outgoing.iter().map(|out| out.interface).collect();
        for interface in outgoing {
            self.send_path_on(now, s, key, interface);
        }
        self.arm_next_path_refresh(now, s, key);
    }

    /// Sends new or changed path state.
    fn send_paths(&mut self, now: Instant, s: &mut SessionState, key: PathKey) {
        if let Some(psb) = s.paths.get_mut(&key) {
            psb.early = 0;
        }
        self.refresh_path(now, s, key);
    }

    /// Sends a Path message by an interface (RFC 2209: PATH REFRESH).
    pub(super) fn send_path_on(&mut self, now: Instant, s: &mut SessionState, key: PathKey, by: InterfaceId) {
        let Some(psb) = s.paths.get_mut(&key).filter(|psb| !psb.is_local_only) else { return };
        let ttl = psb.ttl.saturating_sub(1);
        if ttl == 0 {
            self.stats.ttl_ended += 1;
            return;
        }
        let Some(place) = self.interfaces.get(&by) else { return };
        let character = place.character();
        let hop = Hop { address: place.config.address, handle: by.0 };
        let path = Path {
            session: s.session,
            polices_entry: psb.polices_entry && place.share.is_none(),
            hop,
            refresh: self.params.refresh,
            policy: psb.policy.clone(),
            sender: key.0,
            tspec: psb.tspec,
            adspec: psb.adspec.as_ref().map(|adspec| adspec.compose(&character, psb.has_gap)),
        };
        let mut message = Message::new(ttl, Body::Path(path));
        message.passed_on.clone_from(&psb.passed_on);
        let hash = message.content_hash();
        let Some(out) = psb.outgoing.iter_mut().find(|out| out.interface == by) else { return };
        let next_hop = out.next_hop.filter(|_| !s.session.is_multicast());
        let neighbour = next_hop.map(|address| (by, address));
        let mut sent = std::mem::take(&mut out.sent);
        message.id = self.number(now, neighbour, &mut sent, (hash, false), Installs::Path(s.id, key, by));
        out.sent = sent;
        self.transmit(now, by, Target::Session(key.0.address, s.session, next_hop), message);
    }

    /// Sets the next refresh: early for new state, rare for state that summaries refresh.
    fn arm_next_path_refresh(&mut self, now: Instant, s: &mut SessionState, key: PathKey) {
        let period = self.jittered();
        let Some(psb) = s.paths.get_mut(&key) else { return };
        let is_numbered = psb.outgoing.iter().all(|out| out.sent.id.is_some());
        let after = if psb.early < self.params.early_refreshes && !is_numbered {
            psb.early += 1;
            self.params.rapid_retransmission * (1 << (psb.early - 1))
        } else {
            period
        };
        if psb.outgoing.is_empty() {
            self.timers.cancel(&mut psb.refresh);
        } else if psb.is_summarised() {
            self.arm_path_refresh(now, s, key);
        } else {
            self.timers.set(&mut psb.refresh, now + after.min(period), Timer::PathRefresh(s.id, key));
        }
    }

    /// Resets the next refresh, after an acknowledgement or because summaries have ended.
    pub(super) fn arm_path_refresh(&mut self, now: Instant, s: &mut SessionState, key: PathKey) {
        let period = self.jittered();
        let Some(psb) = s.paths.get_mut(&key) else { return };
        let periods = if psb.is_summarised() { self.params.whole_refresh } else { 1 };
        self.timers.set(&mut psb.refresh, now + period * u64::from(periods), Timer::PathRefresh(s.id, key));
    }

    fn route_key(session: &Session, sender: &Sender, incoming: InterfaceId) -> RouteKey {
        if session.is_multicast() {
            return RouteKey { source: Some(sender.address), ..RouteKey::to(session.destination) };
        }
        let port = match sender.selector {
            Selector::Port(port) => port,
            Selector::FlowLabel(_) => 0,
        };
        let (source, protocol, ports) = (sender.address, session.protocol, (port, session.port));
        let flow = Some(RoutedFlow { source, protocol, ports, incoming });
        RouteKey { flow, ..RouteKey::to(session.destination) }
    }

    /// Takes the route that is known, or requests it.
    fn ask_route(&mut self, now: Instant, s: &mut SessionState, path: PathKey) {
        let session = s.session;
        let Some(psb) = s.paths.get_mut(&path) else { return };
        let Some((incoming, _)) = psb.from else { return };
        let key = Self::route_key(&session, &path.0, incoming);
        let before = psb.route.replace(key);
        if before == Some(key) {
            return;
        }
        self.release_route(s, before);
        if !self.routes.contains_key(&key) {
            self.outputs.push_back(EngineOutput::AskRoute(key));
        }
        let entry = self.routes.entry(key).or_default();
        entry.sessions.insert(s.id);
        if let Some(route) = entry.route.clone() {
            self.apply_route(now, s, &key, &route);
        }
    }

    /// Releases a route that no path of the session uses any longer.
    fn release_route(&mut self, s: &SessionState, route: Option<RouteKey>) {
        let Some(key) = route.filter(|key| s.paths.values().all(|psb| psb.route != Some(*key))) else {
            return;
        };
        if let Some(entry) = self.routes.get_mut(&key) {
            entry.sessions.remove(&s.id);
            if entry.sessions.is_empty() && entry.waiting.is_empty() {
                self.routes.remove(&key);
                self.outputs.push_back(EngineOutput::ForgetRoute(key));
            }
        }
    }

    /// Sets the route of packets: the answer to [`EngineOutput::AskRoute`], and later changes.
    pub fn set_route(&mut self, now: Instant, key: RouteKey, route: &Route) {
        let Some(entry) = self.routes.get_mut(&key) else { return };
        entry.route = Some(route.clone());
        let sessions: BTreeSet<_> = entry.sessions.clone();
        let waiting = std::mem::take(&mut entry.waiting);
        for confirmation in waiting {
            self.forward_confirmation(now, route, key.destination, confirmation);
        }
        if sessions.is_empty() {
            self.routes.remove(&key);
            self.outputs.push_back(EngineOutput::ForgetRoute(key));
        }
        for id in sessions {
            self.in_session(id, |this, s| this.apply_route(now, s, &key, route));
        }
    }

    /// Returns the entry of a route, which is requested if it is not known.
    pub(super) fn route_entry(&mut self, key: RouteKey) -> &mut RouteEntry {
        if !self.routes.contains_key(&key) {
            self.outputs.push_back(EngineOutput::AskRoute(key));
        }
        self.routes.entry(key).or_default()
    }

    fn apply_route(&mut self, now: Instant, s: &mut SessionState, key: &RouteKey, route: &Route) {
        let is_multicast = s.session.is_multicast();
        let paths: Vec<PathKey> =
            s.paths.keys().copied().filter(|path| s.paths[path].route == Some(*key)).collect();
        let mut has_changed = false;
        for path in paths {
            let Some(psb) = s.paths.get_mut(&path).filter(|psb| psb.from.is_some()) else { continue };
            let incoming = psb.from.map(|(interface, _)| interface);
            // RFC 2209, PATH MESSAGE ARRIVES: of several paths of a sender to a group, the one that routing uses is forwarded.
            psb.is_local_only = is_multicast && route.incoming != incoming;
            let leaves = route
                .outgoing
                .iter()
                .filter(|(interface, _)| !psb.is_local_only && Some(*interface) != incoming);
            let wanted: Vec<(InterfaceId, Option<IpAddr>)> = leaves.copied().collect();
            let is_first = psb.outgoing.is_empty();
            let mut old = std::mem::take(&mut psb.outgoing);
            let outgoing = wanted.into_iter().map(|(interface, next_hop)| {
                let same = old.iter().position(|out| {
                    out.interface == interface
                        && (next_hop.is_none() || out.next_hop.is_none() || out.next_hop == next_hop)
                });
                match same.map(|at| old.swap_remove(at)) {
                    Some(kept) => (Outgoing { next_hop: next_hop.or(kept.next_hop), ..kept }, false),
                    None => (Outgoing { interface, next_hop, sent: Sent::default() }, true),
                }
            });
            let (outgoing, added): (Vec<_>, Vec<bool>) = outgoing.unzip();
            psb.outgoing = outgoing;
            has_changed |= !old.is_empty();
            for out in &mut old {
                self.forget(&mut out.sent);
            }
            if added.contains(&true) {
                psb.early = 0;
                // RFC 2205 section 3.6: routing may not have settled yet.
                let after = if is_first { cutline_units::Duration::ZERO } else { self.params.local_repair };
                let at = now + after;
                if after.is_zero() {
                    self.send_paths(now, s, path);
                } else {
                    self.timers.set(&mut psb.refresh, at, Timer::PathRefresh(s.id, path));
                }
            }
        }
        if has_changed {
            self.prune(s);
            self.postpone_upstream_refresh(now, s);
        }
        s.is_to_account = true;
        self.apply_request(now, s);
    }
}

impl Engine {
    /// Postpones the refreshes of the reservations towards the senders by the time of local repair (RFC 2205 section 3.6). A refresh
    /// recomputes the reservation towards a sender; until then it stays, because the sender may return by the new route.
    fn postpone_upstream_refresh(&mut self, now: Instant, s: &mut SessionState) {
        let at = now + self.params.local_repair + self.jittered();
        for (key, upstream) in &mut s.upstream {
            self.timers.set(&mut upstream.refresh, at, Timer::ResvRefresh(s.id, *key));
        }
    }
}

/// A sender's address is of the session's version of IP, and it has a port only if the session has one.
fn check_sender(session: &Session, sender: &Sender) -> Result<(), CallError> {
    let is_same = session.destination.is_ipv4() == sender.address.is_ipv4();
    let has_port = !matches!(sender.selector, Selector::Port(0));
    let is_host = !sender.address.is_unspecified() && !sender.address.is_multicast();
    let is_label_of_v6 = sender.address.is_ipv6() || matches!(sender.selector, Selector::Port(_));
    if is_same && is_host && is_label_of_v6 && (session.port != 0 || !has_port) {
        Ok(())
    } else {
        Err(CallError::Sender(sender.address))
    }
}

pub(super) fn check_senders(session: &Session, senders: &[Sender]) -> Result<(), CallError> {
    senders.iter().try_for_each(|sender| check_sender(session, sender))
}

impl Psb {
    /// Nothing but summaries refresh it.
    fn is_summarised(&self) -> bool {
        !self.outgoing.is_empty() && self.outgoing.iter().all(|out| out.sent.is_acknowledged)
    }

    /// The block that a first message fills.
    fn blank(&self) -> Self {
        Self {
            policy: Vec::new(),
            passed_on: Vec::new(),
            adspec: None,
            outgoing: Vec::new(),
            received: None,
            ..*self
        }
    }

    /// Returns whether the nodes after this one receive the same messages from both.
    fn says_the_same(&self, other: &Self) -> bool {
        self.tspec == other.tspec
            && self.adspec == other.adspec
            && self.polices_entry == other.polices_entry
            && self.has_gap == other.has_gap
            && self.ttl == other.ttl
            && self.policy == other.policy
            && self.passed_on == other.passed_on
    }

    /// Takes the contents of a message, and keeps the additions of this node.
    fn take(&mut self, fresh: Self) {
        self.from = fresh.from;
        self.tspec = fresh.tspec;
        self.adspec = fresh.adspec;
        self.polices_entry = fresh.polices_entry;
        self.has_gap = fresh.has_gap;
        self.ttl = fresh.ttl;
        self.policy = fresh.policy;
        self.passed_on = fresh.passed_on;
        self.expires = fresh.expires;
        self.lifetime = fresh.lifetime;
    }
}
