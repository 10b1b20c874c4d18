//! Reservations at the nodes towards the senders: merging, blockade, scopes, confirmations (RFC 2209: RESV
//! REFRESH).

use super::keys::UpKey;
use super::neighbours::{Installs, Target};
use super::origin::Origin;
use super::outputs::{Route, RouteKey, RsvpEvent};
use super::params::InterfaceId;
use super::state::{BlockadeKey, NextHop, Psb, SessionState, Tcsb, Upstream};
use super::timers::{Slot, Timer};
use super::{Engine, WaitingConfirmation};
use crate::intserv::Flowspec;
use crate::message::{Body, Descriptor, Message, Resv, ResvConf, ResvTear};
use crate::object::{ErrorSpec, Hop, Opaque, Sender, Session, Style, code};
use cutline_units::Instant;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The most confirmations that wait for a route.
const MOST_WAITING: usize = 100;

/// Reason why a reservation is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Something may have changed: it is sent if it has.
    Changed,
    /// Periodic refresh.
    Refresh,
    /// A larger one has failed: a smaller one is sent, if there is one.
    AfterError,
}

/// Reservation at a previous hop.
struct Merged {
    style: Style,
    flows: Vec<Descriptor>,
    scope: Option<Vec<IpAddr>>,
    confirm: Option<IpAddr>,
    policy: Vec<Opaque>,
    passed_on: Vec<Opaque>,
}

impl Engine {
    /// Sends the reservation to a previous hop, or its end.
    pub(super) fn refresh_upstream(&mut self, now: Instant, s: &mut SessionState, key: UpKey, cause: Cause) {
        let Ok(merged) = self.merge(now, s, key, cause) else { return };
        let hop_handle = s
            .paths
            .values()
            .filter_map(|psb| psb.from)
            .find(|(interface, hop)| (*interface, hop.address) == key);
        let (Some(address), Some((_, previous))) = (self.address_of(key.0), hop_handle) else { return };
        // RFC 2205 section 3.3: the neighbour's own handle comes back to it.
        let hop = Hop { address, handle: previous.handle };
        let Some(merged) = merged else {
            if let Some(mut upstream) = s.upstream.remove(&key) {
                self.timers.cancel(&mut upstream.refresh);
                let filters = std::mem::take(&mut upstream.filters);
                self.tear_upstream(now, s.session, key, hop, (upstream.style, filters));
                self.forget(&mut upstream.sent);
            }
            return;
        };
        let filters: BTreeSet<Sender> =
            merged.flows.iter().flat_map(|flow| flow.filters.iter().copied()).collect();
        let upstream = s.upstream.entry(key).or_default();
        let has_style = upstream.style == Some(merged.style);
        let gone: BTreeSet<Sender> = if has_style {
            upstream.filters.difference(&filters).copied().collect()
        } else {
            BTreeSet::new()
        };
        let is_wanted = merged.confirm.is_some();
        let waiting =
            upstream.confirm.filter(|_| upstream.sent.id.is_some() && !upstream.sent.is_acknowledged);
        let confirm = merged.confirm.or(waiting);
        let resv = Resv {
            session: s.session,
            hop,
            refresh: self.params.refresh,
            confirm: None,
            scope: merged.scope,
            policy: merged.policy,
            style: merged.style,
            flows: merged.flows,
        };
        let mut message = Message::new(self.params.ttl, Body::Resv(resv));
        message.passed_on = merged.passed_on;
        let hash = message.content_hash();
        let is_new = upstream.sent.hash != hash || !has_style;
        (upstream.style, upstream.filters, upstream.handle, upstream.confirm) =
            (Some(merged.style), filters, previous.handle, confirm);
        if !gone.is_empty() {
            self.tear_upstream(now, s.session, key, hop, (Some(message_style(&message)), gone));
        }
        if cause != Cause::Refresh && !is_new && !is_wanted {
            return;
        }
        if let Body::Resv(resv) = &mut message.body {
            resv.confirm = confirm;
        }
        if is_new || is_wanted {
            upstream.early = 0;
        }
        let mut sent = std::mem::take(&mut upstream.sent);
        message.id = self.number(now, Some(key), &mut sent, (hash, is_wanted), Installs::Resv(s.id, key));
        if let Some(upstream) = s.upstream.get_mut(&key) {
            upstream.sent = sent;
        }
        self.transmit(now, key.0, Target::Neighbour(key.1), message);
        self.arm_next_resv_refresh(now, s, key);
    }

    /// Reports the end of reservations to a previous hop.
    fn tear_upstream(
        &mut self,
        now: Instant,
        session: Session,
        key: UpKey,
        hop: Hop,
        (style, filters): (Option<Style>, BTreeSet<Sender>),
    ) {
        let flows: Vec<Descriptor> = match style {
            None => return,
            Some(Style::WildcardFilter) => vec![Descriptor { flowspec: None, filters: Vec::new() }],
            Some(_) if filters.is_empty() => return,
            Some(Style::FixedFilter) => filters
                .into_iter()
                .map(|sender| Descriptor { flowspec: None, filters: vec![sender] })
                .collect(),
            Some(_) => vec![Descriptor { flowspec: None, filters: filters.into_iter().collect() }],
        };
        let Some(style) = style else { return };
        let message = Message::new(self.params.ttl, Body::ResvTear(ResvTear { session, hop, style, flows }));
        self.transmit_reliably(now, key.0, key.1, Target::Neighbour(key.1), message);
    }

    pub(super) fn resv_refresh_due(&mut self, now: Instant, s: &mut SessionState, key: UpKey) {
        if let Some(upstream) = s.upstream.get_mut(&key) {
            upstream.refresh = Slot::EMPTY;
            self.refresh_upstream(now, s, key, Cause::Refresh);
        }
    }

    /// Sends a reservation again that has got lost, or that the neighbour has.
    pub(super) fn send_resv_again(&mut self, now: Instant, s: &mut SessionState, key: UpKey) {
        if s.upstream.contains_key(&key) {
            self.refresh_upstream(now, s, key, Cause::Refresh);
        }
    }

    fn arm_next_resv_refresh(&mut self, now: Instant, s: &mut SessionState, key: UpKey) {
        let period = self.jittered();
        let Some(upstream) = s.upstream.get_mut(&key) else { return };
        let after = if upstream.early < self.params.early_refreshes && upstream.sent.id.is_none() {
            upstream.early += 1;
            self.params.rapid_retransmission * (1 << (upstream.early - 1))
        } else {
            period
        };
        if upstream.sent.is_acknowledged {
            self.arm_resv_refresh(now, s, key);
        } else {
            self.timers.set(&mut upstream.refresh, now + after.min(period), Timer::ResvRefresh(s.id, key));
        }
    }

    /// Resets the next refresh, after an acknowledgement or because summaries have ended.
    pub(super) fn arm_resv_refresh(&mut self, now: Instant, s: &mut SessionState, key: UpKey) {
        let period = self.jittered();
        // A blockade that ends lets a larger reservation be tried, so it is computed again soon.
        let is_blockaded = !s.blockades.is_empty();
        let Some(upstream) = s.upstream.get_mut(&key) else { return };
        let is_summarised = upstream.sent.is_acknowledged && !is_blockaded;
        let periods = if is_summarised { self.params.whole_refresh } else { 1 };
        self.timers.set(
            &mut upstream.refresh,
            now + period * u64::from(periods),
            Timer::ResvRefresh(s.id, key),
        );
    }

    /// Merges the reservations for the senders behind a previous hop; `Ok(None)` if there are none.
    ///
    /// # Errors
    /// When only failed reservations are left, and the merge was requested because of a failure.
    fn merge(
        &mut self,
        now: Instant,
        s: &mut SessionState,
        key: UpKey,
        cause: Cause,
    ) -> Result<Option<Merged>, ()> {
        s.blockades.retain(|_, blockade| now < blockade.until);
        let Some(style) = s.reservations.first().map(|rsb| rsb.style) else { return Ok(None) };
        let senders: Vec<Sender> = s
            .paths
            .iter()
            .filter(|(_, psb)| psb.up_key() == Some(key))
            .map(|((sender, _), _)| *sender)
            .collect();
        let hops: BTreeSet<UpKey> = s.paths.values().filter_map(|psb| psb.up_key()).collect();
        let needs_scope = style == Style::WildcardFilter && s.session.is_multicast() && hops.len() > 1;
        let mut flows: Vec<Descriptor> = Vec::new();
        let mut shared: Option<Flowspec> = None;
        let mut filters: Vec<Sender> = Vec::new();
        let mut scope: BTreeSet<IpAddr> = BTreeSet::new();
        let mut confirm = None;
        for sender in &senders {
            let leads = |control: &Tcsb| {
                control.selects(sender)
                    && s.paths.iter().any(|((other, _), psb)| {
                        other == sender && psb.up_key() == Some(key) && psb.leads_to(control.interface)
                    })
            };
            let matching: Vec<usize> = (0..s.controls.len()).filter(|at| leads(&s.controls[*at])).collect();
            if matching.is_empty() {
                continue;
            }
            let blockade = match style {
                Style::WildcardFilter => BlockadeKey::Hop(key),
                _ => BlockadeKey::Sender(*sender),
            };
            let failed = s.blockades.get(&blockade).map(|blockade| blockade.flowspec);
            let is_free = |at: &usize| failed.is_none_or(|failed| failed.exceeds(&s.controls[*at].flowspec));
            let free: Vec<usize> = matching.iter().copied().filter(is_free).collect();
            let all = |places: &[usize], merge: fn(&Flowspec, &Flowspec) -> Option<Flowspec>| {
                places.iter().map(|at| s.controls[*at].flowspec).reduce(|a, b| merge(&a, &b).unwrap_or(a))
            };
            let merged = if !free.is_empty() {
                let merged = all(&free, Flowspec::merge);
                self.take_confirmation(now, s, &free, &mut confirm);
                merged
            } else if cause == Cause::AfterError {
                return Err(());
            } else {
                // RFC 2205 section 3.5: if all are blockaded, the least that they have in common.
                let merged = all(&matching, Flowspec::min);
                for at in &matching {
                    s.controls[*at].confirm = None;
                }
                merged
            };
            let Some(merged) = merged else { continue };
            if needs_scope && scope_names(s, sender) {
                scope.insert(sender.address);
            }
            if style == Style::FixedFilter {
                flows.push(Descriptor { flowspec: Some(merged), filters: vec![*sender] });
            } else {
                shared = Some(shared.map_or(merged, |so_far| so_far.merge(&merged).unwrap_or(so_far)));
                if style == Style::SharedExplicit {
                    filters.push(*sender);
                }
            }
        }
        if style != Style::FixedFilter
            && let Some(flowspec) = shared
        {
            flows.push(Descriptor { flowspec: Some(flowspec), filters });
        }
        if flows.is_empty() || needs_scope && scope.is_empty() {
            return Ok(None);
        }
        let unique = |all: &dyn Fn(&super::state::Rsb) -> Vec<Opaque>| -> Vec<Opaque> {
            let objects: BTreeSet<Opaque> = s.reservations.iter().flat_map(all).collect();
            let mut left = self.params.most_opaque as usize;
            let fits = |object: &Opaque| {
                let rest = left.checked_sub(object.content.len());
                left = rest.unwrap_or(left);
                rest.is_some()
            };
            objects.into_iter().filter(fits).collect()
        };
        // RFC 2205 section 3.10: the union of the objects that the reservations carry.
        let passed_on = unique(&|rsb| rsb.passed_on.clone());
        let policy = unique(&|rsb| rsb.policy.clone());
        let scope = needs_scope.then(|| scope.into_iter().collect());
        Ok(Some(Merged { style, flows, scope, confirm, policy, passed_on }))
    }

    /// Of the requested confirmations, that of the largest reservation is forwarded, and the others are given here.
    fn take_confirmation(
        &mut self,
        now: Instant,
        s: &mut SessionState,
        places: &[usize],
        confirm: &mut Option<IpAddr>,
    ) {
        for &at in places {
            let Some(receiver) = s.controls[at].confirm.take() else { continue };
            let own = s.controls[at].flowspec;
            let is_largest =
                places.iter().all(|&other| other == at || own.exceeds(&s.controls[other].flowspec));
            if is_largest && confirm.is_none() {
                *confirm = Some(receiver);
            } else {
                let control = s.controls[at].clone();
                self.confirm(now, s.session, &control, receiver);
            }
        }
    }

    /// Confirms a reservation here if its request is already met, or forwards the request. Returns whether it is forwarded.
    pub(super) fn confirm_or_forward(
        &mut self,
        now: Instant,
        s: &mut SessionState,
        at: usize,
        receiver: IpAddr,
    ) -> bool {
        let rsb = &s.reservations[at];
        let interface = rsb.next_hop.interface();
        let filter = rsb.filters.keys().next().copied().filter(|_| rsb.style == Style::FixedFilter);
        let same_place = |other: &super::state::Rsb| {
            other.next_hop.interface() == interface
                && filter.is_none_or(|filter| other.filters.contains_key(&filter))
        };
        let mut others =
            s.reservations.iter().enumerate().filter(|(other, rsb)| *other != at && same_place(rsb));
        let is_biggest = others.all(|(_, other)| rsb.flowspec.exceeds(&other.flowspec));
        let its = |control: &&mut Tcsb| {
            control.interface == interface && filter.is_none_or(|filter| control.filters.contains(&filter))
        };
        let Some(control) = s.controls.iter_mut().find(its) else { return false };
        if is_biggest {
            control.confirm = Some(receiver);
            return true;
        }
        let control = control.clone();
        self.confirm(now, s.session, &control, receiver);
        false
    }

    /// At the sender's node a reservation has come to its end: it is confirmed.
    pub(super) fn confirm_at_sender(&mut self, now: Instant, s: &mut SessionState) {
        for at in 0..s.controls.len() {
            let Some(interface) = s.controls[at].interface else { continue };
            let ends_here = s
                .routed_to(Some(interface))
                .any(|(sender, psb)| psb.from.is_none() && s.controls[at].selects(sender));
            if ends_here && let Some(receiver) = s.controls[at].confirm.take() {
                let control = s.controls[at].clone();
                self.confirm(now, s.session, &control, receiver);
            }
        }
    }

    /// Sends a confirmation.
    fn confirm(&mut self, now: Instant, session: Session, control: &Tcsb, receiver: IpAddr) {
        let any = || self.interfaces.values().next().map(|place| place.config.address);
        let Some(node) = control.interface.and_then(|interface| self.address_of(interface)).or_else(any)
        else {
            return;
        };
        let error =
            ErrorSpec { node, in_place: false, not_guilty: false, code: code::CONFIRMATION, value: 0 };
        let filters: Vec<Sender> = control.filters.iter().copied().collect();
        let flowspec = Some(control.flowspec);
        let flows = vec![Descriptor { flowspec, filters }];
        let confirmation = ResvConf { session, error, receiver, style: control.style, flows };
        let message = Message::new(self.params.ttl, Body::ResvConf(confirmation));
        match control.interface {
            Some(interface) => self.transmit(now, interface, Target::Host(receiver), message),
            None => self.on_confirmation(now, None, message),
        }
    }

    /// Handles a confirmation: it is for an application here, or is forwarded (RFC 2209: RESV CONFIRM ARRIVES). `origin` is `None` for one that
    /// this node gives.
    pub(super) fn on_confirmation(&mut self, now: Instant, origin: Option<&Origin>, message: Message) {
        let Body::ResvConf(confirmation) = &message.body else { return };
        let receiver = confirmation.receiver;
        if origin.is_some_and(|origin| !self.may_confirm(origin, confirmation)) {
            self.stats.misplaced += 1;
            return;
        }
        let is_proven =
            origin.is_none_or(|origin| origin.key.is_some()) || self.has_path(&confirmation.session);
        if self.owns(receiver) {
            let senders = confirmation.flows.iter().flat_map(|flow| flow.filters.iter().copied()).collect();
            let ResvConf { session, error, style, .. } = *confirmation;
            self.event(RsvpEvent::Confirmed { session, node: error.node, style, senders });
            return;
        }
        let entry = self.route_entry(RouteKey::to(receiver));
        let waiting = WaitingConfirmation { message, is_proven };
        match entry.route.clone() {
            Some(route) => self.forward_confirmation(now, &route, receiver, waiting),
            None if entry.waiting.len() < MOST_WAITING => entry.waiting.push(waiting),
            None => self.stats.full += 1,
        }
    }

    /// Returns whether a confirmation is believed: it was authenticated, or it came by an interface by which a path of the session comes, and
    /// with it the paths of the senders that it names. A node without the session passes one on to a link without keys, because the
    /// receiver's route may differ from the path of a group.
    fn may_confirm(&self, origin: &Origin, confirmation: &ResvConf) -> bool {
        if origin.key.is_some() {
            return true;
        }
        let s = self.by_session.get(&confirmation.session).and_then(|id| self.sessions.get(id));
        let Some(s) = s.filter(|s| !s.paths.is_empty()) else { return !self.owns(confirmation.receiver) };
        let comes_there = |psb: &Psb| psb.from.is_some_and(|(interface, _)| interface == origin.interface);
        let is_along_its_path = |named: &Sender| {
            let mut its = s.paths.iter().filter(|((sender, _), _)| sender == named).peekable();
            its.peek().is_none() || its.any(|(_, psb)| comes_there(psb))
        };
        let mut named = confirmation.flows.iter().flat_map(|flow| &flow.filters);
        s.paths.values().any(|psb| comes_there(psb)) && named.all(is_along_its_path)
    }

    /// Returns whether a session has a path here.
    fn has_path(&self, session: &Session) -> bool {
        let s = self.by_session.get(session).and_then(|id| self.sessions.get(id));
        s.is_some_and(|s| !s.paths.is_empty())
    }

    /// Passes a confirmation on. By an interface with keys it would be signed, so an unproven one does not leave there.
    pub(super) fn forward_confirmation(
        &mut self,
        now: Instant,
        route: &Route,
        receiver: IpAddr,
        WaitingConfirmation { message, is_proven }: WaitingConfirmation,
    ) {
        let Some((interface, _)) = route.outgoing.first() else {
            self.stats.without_state += 1;
            return;
        };
        if !is_proven && self.is_keyed(*interface) {
            self.stats.misplaced += 1;
            return;
        }
        let Some(ttl) = message.ttl.checked_sub(1).filter(|ttl| *ttl > 0) else {
            self.stats.ttl_ended += 1;
            return;
        };
        let message = Message { passed_on: message.passed_on, ..Message::new(ttl, message.body) };
        self.transmit(now, *interface, Target::Host(receiver), message);
    }
}

/// Returns whether a reservation of style WF is for this sender, by the scopes of the reserving hosts (RFC 2205
/// section 3.4).
fn scope_names(s: &SessionState, sender: &Sender) -> bool {
    s.reservations.iter().any(|rsb| {
        let leads = |interface: Option<InterfaceId>| s.routed_to(interface).any(|(other, _)| other == sender);
        let is_there = rsb.next_hop == NextHop::Application || leads(rsb.next_hop.interface());
        is_there && rsb.scope.as_ref().is_none_or(|scope| scope.contains(&sender.address))
    })
}

fn message_style(message: &Message) -> Style {
    match &message.body {
        Body::Resv(resv) => resv.style,
        _ => Style::WildcardFilter,
    }
}

impl Upstream {
    /// Forgets the reservation that the neighbour has lost.
    pub fn lose(&mut self) {
        self.waits_for_path = true;
    }
}
