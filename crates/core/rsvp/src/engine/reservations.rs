//! Reservation state: Resv and `ResvTear` messages, and the reservations of applications here (RFC 2209: RESV, RTEAR).

use super::control::Failure;
use super::keys::UpKey;
use super::neighbours::{Installed, Order};
use super::params::InterfaceId;
use super::paths::check_senders;
use super::state::{NextHop, Reservation, Rsb, SessionState};
use super::timers::{Slot, Timer};
use super::upstream::Cause;
use super::{CallError, Engine};
use crate::intserv::Flowspec;
use crate::message::{Descriptor, Resv, ResvTear};
use crate::object::{MessageId, Opaque, Sender, Session, Style, code};
use cutline_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// A Resv message, and the circumstances of its arrival.
pub(super) struct ArrivedResv {
    pub id: Option<MessageId>,
    pub passed_on: Vec<Opaque>,
    pub resv: Resv,
}

impl Engine {
    /// Reserves for an application here (RFC 2205 section 3.11.1: RESERVE). It takes effect for each sender as soon as its path is there,
    /// and again after that was lost.
    ///
    /// # Errors
    /// When a value is not allowed, or there are too many sessions.
    pub fn reserve(&mut self, now: Instant, session: Session, wanted: Reservation) -> Result<(), CallError> {
        self.reserve_each(now, session, wanted, BTreeMap::new())
    }

    /// As [`Engine::reserve`], in style FF with other flowspecs for some of the senders.
    ///
    /// # Errors
    /// When a value is not allowed, or there are too many sessions.
    pub fn reserve_each(
        &mut self,
        now: Instant,
        session: Session,
        wanted: Reservation,
        flowspecs: BTreeMap<Sender, Flowspec>,
    ) -> Result<(), CallError> {
        for flowspec in flowspecs.values() {
            flowspec.tspec().validate()?;
        }
        wanted.flowspec.tspec().validate()?;
        check_senders(&session, &wanted.senders)?;
        let found = wanted.senders.len();
        let senders = |allowed| Err(CallError::Senders { found, allowed });
        let most = self.params.most_per_session;
        match wanted.style {
            Style::WildcardFilter if found > 0 => return senders("none with WF"),
            Style::FixedFilter | Style::SharedExplicit if found == 0 => {
                return senders("at least one with FF and SE");
            }
            Style::Other(vector) => return Err(CallError::Style(vector)),
            _ if found > most as usize => return Err(CallError::Full { what: "senders", most }),
            _ => {}
        }
        let most = self.params.most_sessions;
        let id = self.local_session_id(now, session).ok_or(CallError::Full { what: "sessions", most })?;
        self.in_session(id, |this, s| {
            if s.request.as_ref().is_some_and(|old| old.style != wanted.style) {
                this.drop_request(now, s);
            }
            if wanted.style == Style::FixedFilter {
                let is_gone = |rsb: &Rsb| {
                    let is_wanted = |sender| wanted.senders.contains(sender);
                    rsb.next_hop == NextHop::Application && !rsb.filters.keys().all(is_wanted)
                };
                this.remove_reservations(s, is_gone);
                this.after_removal(now, s, |sender| !wanted.senders.contains(sender));
            }
            s.flowspecs = flowspecs;
            s.request = Some(wanted);
            this.apply_request(now, s);
        });
        Ok(())
    }

    /// Ends the reservation of an application here. Nothing happens if there is none.
    pub fn release_reservation(&mut self, now: Instant, session: Session) {
        let Some(id) = self.by_session.get(&session).copied() else { return };
        self.in_session(id, |this, s| this.drop_request(now, s));
    }

    /// Starts or stops reporting the senders and the reservations of a session as events.
    ///
    /// # Errors
    /// When there are too many sessions.
    pub fn watch(&mut self, now: Instant, session: Session, is_watched: bool) -> Result<(), CallError> {
        if !is_watched && !self.by_session.contains_key(&session) {
            return Ok(());
        }
        let most = self.params.most_sessions;
        let id = self.local_session_id(now, session).ok_or(CallError::Full { what: "sessions", most })?;
        self.in_session(id, |_, s| s.is_watched = is_watched);
        Ok(())
    }

    fn drop_request(&mut self, now: Instant, s: &mut SessionState) {
        let Some(request) = s.request.take() else { return };
        s.flowspecs.clear();
        s.reservations.retain(|rsb| rsb.next_hop != NextHop::Application);
        self.after_removal(now, s, |sender| {
            request.style == Style::WildcardFilter || request.senders.contains(sender)
        });
    }

    /// Makes the reservation of the application here, for the senders whose paths are there.
    pub(super) fn apply_request(&mut self, now: Instant, s: &mut SessionState) {
        let Some(request) = s.request.clone() else { return };
        let there: BTreeSet<Sender> = s.routed_to(None).map(|(sender, _)| *sender).collect();
        let senders: Vec<Sender> =
            request.senders.iter().copied().filter(|sender| there.contains(sender)).collect();
        let wanted: Vec<Vec<Sender>> = match request.style {
            _ if there.is_empty() => Vec::new(),
            Style::WildcardFilter => vec![Vec::new()],
            Style::FixedFilter => senders.into_iter().map(|sender| vec![sender]).collect(),
            _ if senders.is_empty() => Vec::new(),
            _ => vec![senders],
        };
        let mut hops: BTreeSet<UpKey> = BTreeSet::new();
        for senders in wanted {
            let selects = |sender: &Sender| senders.is_empty() || senders.contains(sender);
            let confirm =
                s.previous_hops(selects).first().and_then(|(interface, _)| self.address_of(*interface));
            let special = senders.first().and_then(|sender| s.flowspecs.get(sender));
            let special = special.copied().filter(|_| request.style == Style::FixedFilter);
            let flowspec = Some(special.unwrap_or(request.flowspec));
            let asked = Asked {
                next_hop: NextHop::Application,
                handle: 0,
                style: request.style,
                descriptor: Descriptor { flowspec, filters: senders.clone() },
                scope: None,
                confirm: confirm.filter(|_| request.confirm),
                policy: Vec::new(),
                passed_on: Vec::new(),
                lifetime: Duration::MAX,
            };
            match self.install_reservation(now, s, asked) {
                Ok(true) => hops.extend(s.previous_hops(selects)),
                Ok(false) => {}
                Err((failure, descriptor)) => {
                    self.report_failure(
                        now,
                        s,
                        (NextHop::Application, 0),
                        request.style,
                        failure,
                        false,
                        Some(descriptor),
                    );
                }
            }
        }
        for hop in hops {
            self.refresh_upstream(now, s, hop, Cause::Changed);
        }
    }

    /// Handles a Resv message.
    pub(super) fn on_resv(&mut self, now: Instant, arrived: ArrivedResv) {
        let interface = InterfaceId(arrived.resv.hop.handle);
        if !self.interfaces.contains_key(&interface) {
            self.stats.misplaced += 1;
            return;
        }
        let id = self.by_session.get(&arrived.resv.session).copied();
        let has_path = |id: &u64| self.sessions.get(id).is_some_and(|s| !s.paths.is_empty());
        if let Some(id) = id.filter(has_path) {
            self.in_session(id, |this, s| this.on_session_resv(now, s, interface, arrived));
            return;
        }
        let resv = &arrived.resv;
        self.acknowledge(now, (interface, resv.hop.address), arrived.id);
        let to = (NextHop::Neighbour(interface, resv.hop.address), resv.hop.handle);
        for descriptor in &resv.flows {
            self.report_stray(now, resv, to, (code::NO_PATH, 0), Some(descriptor.clone()));
        }
    }

    fn on_session_resv(
        &mut self,
        now: Instant,
        s: &mut SessionState,
        interface: InterfaceId,
        arrived: ArrivedResv,
    ) {
        let ArrivedResv { id, passed_on, resv } = arrived;
        let neighbour = (interface, resv.hop.address);
        let next_hop = NextHop::Neighbour(interface, resv.hop.address);
        let to = (next_hop, resv.hop.handle);
        let fail = |this: &mut Self, s: &SessionState, failure, descriptor| {
            this.acknowledge(now, neighbour, id);
            this.report_failure(now, s, to, resv.style, failure, false, descriptor);
        };
        if let Style::Other(_) = resv.style {
            fail(self, s, (code::UNKNOWN_STYLE, 0), resv.flows.first().cloned());
            return;
        }
        let other = s.reservations.iter().find(|rsb| rsb.style != resv.style && rsb.next_hop != next_hop);
        if let Some(other) = other {
            let vector = other.style.vector() as u16;
            fail(self, s, (code::CONFLICTING_STYLE, vector), resv.flows.first().cloned());
            return;
        }
        s.learn_next_hop(interface, resv.hop.address);
        let theirs = s.reservations.iter().filter(|rsb| rsb.next_hop == next_hop);
        let orders: Vec<Order> = theirs.map(|rsb| Self::order(rsb.received, neighbour, id)).collect();
        if orders.contains(&Order::Old) {
            self.stats.out_of_order += 1;
            return;
        }
        self.acknowledge(now, neighbour, id);
        // A message with the number of the state here and other contents repairs the state. A confirmation was requested with the first.
        let is_repeated = orders.contains(&Order::Same);
        let mut hops = BTreeSet::new();
        if s.reservations.iter().any(|rsb| rsb.next_hop == next_hop && rsb.style != resv.style) {
            hops.extend(s.previous_hops(|_| true));
            self.remove_reservations(s, |rsb| rsb.next_hop == next_hop);
            self.update_controls(s);
        }
        let lifetime = self.params.lifetime_of(resv.refresh);
        for named in &resv.flows {
            let mut descriptor = named.clone();
            descriptor
                .filters
                .retain(|sender| s.routed_to(Some(interface)).any(|(other, _)| other == sender));
            let is_known = match resv.style {
                Style::WildcardFilter => s.routed_to(Some(interface)).next().is_some(),
                _ => !descriptor.filters.is_empty(),
            };
            if !is_known {
                self.report_failure(now, s, to, resv.style, (code::NO_SENDER, 0), false, Some(named.clone()));
                continue;
            }
            let filters = descriptor.filters.clone();
            let selects = |sender: &Sender| filters.is_empty() || filters.contains(sender);
            let asked = Asked {
                next_hop,
                handle: resv.hop.handle,
                style: resv.style,
                descriptor,
                scope: resv.scope.clone(),
                confirm: resv.confirm.filter(|_| !is_repeated),
                policy: resv.policy.clone(),
                passed_on: passed_on.clone(),
                lifetime,
            };
            let at = |s: &SessionState| {
                s.reservations.iter().position(|rsb| {
                    rsb.next_hop == next_hop && (filters.is_empty() || rsb.filters.contains_key(&filters[0]))
                })
            };
            match self.install_reservation(now, s, asked) {
                Ok(changed) => {
                    if changed {
                        hops.extend(s.previous_hops(selects));
                    }
                    if let Some(at) = at(s) {
                        let mut received = s.reservations[at].received.take();
                        self.install(&mut received, neighbour, id, Installed::Resv(s.id, next_hop));
                        s.reservations[at].received = received;
                    }
                }
                Err((failure, descriptor)) => {
                    let in_place = at(s);
                    if let Some(at) = in_place {
                        // A summary does not refresh failed state: the whole message comes again.
                        let mut received = s.reservations[at].received.take();
                        self.uninstall(&mut received, Installed::Resv(s.id, next_hop));
                    }
                    let is_in_place = in_place.is_some() && failure.0 == code::ADMISSION;
                    self.report_failure(now, s, to, resv.style, failure, is_in_place, Some(descriptor));
                }
            }
        }
        for hop in hops {
            self.refresh_upstream(now, s, hop, Cause::Changed);
        }
        self.confirm_at_sender(now, s);
    }

    /// Installs or changes a reservation. Returns whether to notify the nodes towards the senders. If it fails, the previous reservation
    /// stays.
    fn install_reservation(
        &mut self,
        now: Instant,
        s: &mut SessionState,
        asked: Asked,
    ) -> Result<bool, (Failure, Descriptor)> {
        let Asked { next_hop, handle, style, descriptor, scope, confirm, policy, passed_on, lifetime } =
            asked;
        let interface = next_hop.interface();
        let filter = descriptor.filters.first().copied().filter(|_| style == Style::FixedFilter);
        let Some(flowspec) = descriptor.flowspec else {
            return Err(((code::TRAFFIC_CONTROL, code::BAD_FLOWSPEC), descriptor));
        };
        if next_hop == NextHop::Application && s.reservations.iter().any(|rsb| rsb.style != style) {
            return Err(((code::CONFLICTING_STYLE, 0), descriptor));
        }
        let is_it = |rsb: &Rsb| {
            rsb.next_hop == next_hop && filter.is_none_or(|filter| rsb.filters.contains_key(&filter))
        };
        let until = now.saturating_add(lifetime);
        let filters = descriptor.filters.iter().map(|sender| (*sender, until));
        let (at, before) = match s.reservations.iter().position(is_it) {
            Some(at) => {
                let rsb = &mut s.reservations[at];
                let before = rsb.clone();
                rsb.filters.extend(filters);
                if style == Style::SharedExplicit && next_hop == NextHop::Application {
                    rsb.filters.retain(|sender, _| descriptor.filters.contains(sender));
                }
                (rsb.flowspec, rsb.scope, rsb.policy, rsb.passed_on) = (flowspec, scope, policy, passed_on);
                (rsb.expires, rsb.lifetime, rsb.handle) = (until, lifetime, handle);
                (at, Some(before))
            }
            None if s.reservations.len() >= self.params.most_per_session as usize
                || !self.has_room_for_reservation(next_hop) =>
            {
                self.stats.full += 1;
                return Err(((code::RSVP_SYSTEM, code::NO_ROOM), descriptor));
            }
            None => {
                let rsb = Rsb {
                    next_hop,
                    handle,
                    style,
                    filters: filters.collect(),
                    expires: until,
                    flowspec,
                    scope,
                    policy,
                    passed_on,
                    received: None,
                    lifetime,
                };
                s.reservations.push(rsb);
                (s.reservations.len() - 1, None)
            }
        };
        self.arm_cleanup(s, until);
        let is_same = before.as_ref().is_some_and(|before| before.asks_the_same(&s.reservations[at]));
        // An application's confirmation is requested once.
        let confirm = confirm.filter(|_| next_hop != NextHop::Application || before.is_none());
        if is_same && confirm.is_none() {
            return Ok(false);
        }
        let changed = match self.update_control(s, interface, style, filter) {
            Ok(changed) => changed,
            Err(failure) => {
                self.stats.not_admitted += u64::from(failure.0 == code::ADMISSION);
                match before {
                    Some(before) => {
                        let kept = before.filters.into_iter().map(|(sender, until)| {
                            (sender, s.reservations[at].filters.get(&sender).copied().unwrap_or(until))
                        });
                        let kept = kept.collect();
                        let rsb = &mut s.reservations[at];
                        (rsb.filters, rsb.flowspec) = (kept, before.flowspec);
                        (rsb.scope, rsb.policy, rsb.passed_on) =
                            (before.scope, before.policy, before.passed_on);
                    }
                    None => {
                        s.reservations.swap_remove(at);
                    }
                }
                return Err((failure, descriptor));
            }
        };
        let has_confirm = confirm.is_some_and(|receiver| self.confirm_or_forward(now, s, at, receiver));
        // RFC 2209: a message that does not change traffic control may still change the forwarded message.
        Ok(changed || has_confirm || !is_same)
    }

    /// Handles a `ResvTear` message.
    pub(super) fn on_resv_tear(&mut self, now: Instant, id: Option<MessageId>, tear: &ResvTear) {
        let interface = InterfaceId(tear.hop.handle);
        let next_hop = NextHop::Neighbour(interface, tear.hop.address);
        let Some(session) = self.by_session.get(&tear.session).copied() else {
            self.stats.without_state += 1;
            return;
        };
        self.in_session(session, |this, s| {
            let theirs = |rsb: &Rsb| rsb.next_hop == next_hop && rsb.style == tear.style;
            if !s.reservations.iter().any(theirs) {
                this.stats.without_state += 1;
                return;
            }
            let neighbour = (interface, tear.hop.address);
            let is_old = |rsb: &Rsb| theirs(rsb) && Self::order(rsb.received, neighbour, id) == Order::Old;
            if s.reservations.iter().any(is_old) {
                this.stats.out_of_order += 1;
                return;
            }
            let named: BTreeSet<Sender> =
                tear.flows.iter().flat_map(|flow| flow.filters.iter().copied()).collect();
            let is_wildcard = tear.style == Style::WildcardFilter;
            for rsb in s.reservations.iter_mut().filter(|rsb| theirs(rsb)) {
                rsb.filters.retain(|sender, _| !named.contains(sender));
            }
            this.remove_reservations(s, |rsb| theirs(rsb) && (is_wildcard || rsb.filters.is_empty()));
            this.after_removal(now, s, |sender| is_wildcard || named.contains(sender));
        });
    }

    /// Ends the reservations without a refresh.
    pub(super) fn resv_cleanup_due(&mut self, now: Instant, s: &mut SessionState) {
        s.cleanup = Slot::EMPTY;
        let mut ended: BTreeSet<Sender> = BTreeSet::new();
        for rsb in &mut s.reservations {
            let over = rsb.filters.iter().filter(|(_, until)| **until <= now).map(|(sender, _)| *sender);
            ended.extend(over);
            rsb.filters.retain(|_, until| *until > now);
        }
        let count = s.reservations.len();
        let is_over = |rsb: &Rsb| match rsb.style {
            Style::WildcardFilter => rsb.expires <= now,
            _ => rsb.filters.is_empty(),
        };
        self.remove_reservations(s, is_over);
        let has_wildcard = s.reservations.len() < count && ended.is_empty();
        if s.reservations.len() < count || !ended.is_empty() {
            self.stats.expired += 1;
            self.after_removal(now, s, |sender| has_wildcard || ended.contains(sender));
        }
        if let Some(at) = s.reservations.iter().map(Rsb::ends).min() {
            self.arm_cleanup(s, at);
        }
    }

    fn arm_cleanup(&mut self, s: &mut SessionState, at: Instant) {
        if at < Instant::FAR_FUTURE && s.cleanup.at().is_none_or(|set| at < set) {
            self.timers.set(&mut s.cleanup, at, Timer::ResvCleanup(s.id));
        }
    }

    fn remove_reservations(&mut self, s: &mut SessionState, is_gone: impl Fn(&Rsb) -> bool) {
        let (gone, kept): (Vec<Rsb>, Vec<Rsb>) =
            std::mem::take(&mut s.reservations).into_iter().partition(is_gone);
        s.is_to_account = true;
        s.reservations = kept;
        for mut rsb in gone {
            self.uninstall_resv(s, &mut rsb);
        }
    }

    /// Forgets the number of the message that installed a reservation, if no other reservation has it.
    pub(super) fn uninstall_resv(&mut self, s: &SessionState, rsb: &mut Rsb) {
        if !s.reservations.iter().any(|other| other.received == rsb.received) {
            self.uninstall(&mut rsb.received, Installed::Resv(s.id, rsb.next_hop));
        }
    }

    /// Traffic control and the nodes towards these senders follow the reservations that are left.
    fn after_removal(&mut self, now: Instant, s: &mut SessionState, selects: impl Fn(&Sender) -> bool) {
        let hops = s.previous_hops(selects);
        self.update_controls(s);
        for hop in hops {
            self.refresh_upstream(now, s, hop, Cause::Changed);
        }
    }
}

/// Request of a next hop.
struct Asked {
    next_hop: NextHop,
    handle: u32,
    style: Style,
    descriptor: Descriptor,
    scope: Option<Vec<std::net::IpAddr>>,
    confirm: Option<std::net::IpAddr>,
    policy: Vec<Opaque>,
    passed_on: Vec<Opaque>,
    lifetime: Duration,
}

impl Rsb {
    /// Returns whether both requests are equal.
    fn asks_the_same(&self, other: &Self) -> bool {
        self.flowspec == other.flowspec
            && self.scope == other.scope
            && self.policy == other.policy
            && self.passed_on == other.passed_on
            && self.filters.keys().eq(other.filters.keys())
    }
}
