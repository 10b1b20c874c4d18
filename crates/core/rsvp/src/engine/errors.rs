//! Errors: `PathErr` and `ResvErr` messages, made here and passed on, and blockade state (RFC 2209: PERR, RERR).

use super::Engine;
use super::control::Failure;
use super::keys::UpKey;
use super::neighbours::Target;
use super::origin::Origin;
use super::outputs::RsvpEvent;
use super::params::InterfaceId;
use super::state::{BlockadeKey, Bsb, NextHop, Rsb, SessionState};
use super::upstream::Cause;
use crate::intserv::Tspec;
use crate::message::{Body, Descriptor, Message, MessageType, Path, PathErr, RejectedMessage, Resv, ResvErr};
use crate::object::{ErrorSpec, Hop, Opaque, Sender, Session, Style, class, code};
use cutline_units::Instant;
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Engine {
    /// Answers a Path message with an error.
    pub(super) fn path_error(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        path: &Path,
        code: u8,
        value: u16,
    ) {
        if let Some(node) = self.address_of(interface) {
            let error = ErrorSpec { node, in_place: false, not_guilty: false, code, value };
            self.tell_refused(path.session, path.sender, error);
        }
        let about = (path.session, path.sender, path.tspec);
        self.send_path_error(now, interface, path.hop.address, about, (code, value));
    }

    /// Reports to a previous hop that a path is refused, or has ended.
    pub(super) fn send_path_error(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        hop: IpAddr,
        (session, sender, tspec): (Session, Sender, Tspec),
        (code, value): Failure,
    ) {
        let Some(node) = self.address_of(interface) else { return };
        let error = ErrorSpec { node, in_place: false, not_guilty: false, code, value };
        let error = PathErr { session, error, policy: Vec::new(), sender, tspec: Some(tspec) };
        let message = Message::new(self.params.ttl, Body::PathErr(error));
        self.transmit(now, interface, Target::Neighbour(hop), message);
    }

    /// Answers a message that is not understood.
    pub(super) fn refuse(&mut self, now: Instant, interface: InterfaceId, refused: &RejectedMessage) {
        let Some(node) = self.address_of(interface) else { return };
        let RejectedMessage { code, value, kind, session, hop, sender, style, .. } = *refused;
        let error = ErrorSpec { node, in_place: false, not_guilty: false, code, value };
        let own = Hop { address: node, handle: hop.handle };
        let body = match (kind, session, sender, style) {
            (MessageType::Path, Some(session), Some(sender), _) => {
                Body::PathErr(PathErr { session, error, policy: Vec::new(), sender, tspec: None })
            }
            (MessageType::Resv, Some(session), _, Some(style)) => Body::ResvErr(ResvErr {
                session,
                hop: own,
                error,
                scope: None,
                policy: Vec::new(),
                style,
                flow: None,
            }),
            (MessageType::Path, ..) => {
                Body::Unread(MessageType::PathErr, error_about(&refused.named, None, error))
            }
            (MessageType::Resv, ..) => {
                Body::Unread(MessageType::ResvErr, error_about(&refused.named, Some(own), error))
            }
            _ => return,
        };
        self.transmit(now, interface, Target::Neighbour(hop.address), Message::new(self.params.ttl, body));
    }

    /// Passes an error on to the sender, if it came back by an interface by which the path leaves.
    pub(super) fn on_path_error(&mut self, now: Instant, origin: &Origin, error: PathErr, message: &Message) {
        let id = self.by_session.get(&error.session);
        let s = id.and_then(|id| self.sessions.get(id));
        let psb = s.and_then(|s| {
            s.paths.iter().find(|((sender, _), psb)| *sender == error.sender && !psb.is_local_only)
        });
        let leaves_there =
            |psb: &super::state::Psb| psb.outgoing.iter().any(|out| self.speaks_for(origin, out.interface));
        if psb.is_some_and(|(_, psb)| !leaves_there(psb)) {
            self.stats.misplaced += 1;
            return;
        }
        match psb.map(|(_, psb)| psb.from) {
            None => self.stats.without_state += 1,
            Some(None) => {
                self.event(RsvpEvent::PathError {
                    session: error.session,
                    error: error.error,
                    sender: error.sender,
                });
            }
            Some(Some((interface, hop))) => {
                let passed_on = message.passed_on.clone();
                let message = Message { passed_on, ..Message::new(self.params.ttl, Body::PathErr(error)) };
                self.transmit_reliably(now, interface, hop.address, Target::Neighbour(hop.address), message);
            }
        }
    }

    /// Reports a failed reservation to a next hop, or an application here.
    #[expect(clippy::too_many_arguments, reason = "each is a field of the message")]
    pub(super) fn report_failure(
        &mut self,
        now: Instant,
        s: &SessionState,
        (next_hop, handle): (NextHop, u32),
        style: Style,
        (code, value): Failure,
        in_place: bool,
        flow: Option<Descriptor>,
    ) {
        let scope =
            s.reservations.iter().find(|rsb| rsb.next_hop == next_hop).and_then(|rsb| rsb.scope.clone());
        self.send_failure(now, (s.session, scope), (next_hop, handle), style, (code, value, in_place), flow);
    }

    /// The same about a session that is not known here.
    pub(super) fn report_stray(
        &mut self,
        now: Instant,
        resv: &Resv,
        to: (NextHop, u32),
        (code, value): Failure,
        flow: Option<Descriptor>,
    ) {
        self.send_failure(
            now,
            (resv.session, resv.scope.clone()),
            to,
            resv.style,
            (code, value, false),
            flow,
        );
    }

    fn send_failure(
        &mut self,
        now: Instant,
        (session, scope): (Session, Option<Vec<IpAddr>>),
        (next_hop, handle): (NextHop, u32),
        style: Style,
        (code, value, in_place): (u8, u16, bool),
        flow: Option<Descriptor>,
    ) {
        let any = || self.interfaces.values().next().map(|place| place.config.address);
        let Some(node) = next_hop.interface().map_or_else(any, |interface| self.address_of(interface)) else {
            return;
        };
        let error = ErrorSpec { node, in_place, not_guilty: false, code, value };
        match next_hop {
            NextHop::Application => {
                let (flowspec, senders) =
                    flow.map_or((None, Vec::new()), |flow| (flow.flowspec, flow.filters));
                self.event(RsvpEvent::ResvError { session, error, style, flowspec, senders });
            }
            NextHop::Neighbour(interface, address) => {
                let hop = Hop { address: node, handle };
                let error = ResvErr { session, hop, error, scope, policy: Vec::new(), style, flow };
                let message = Message::new(self.params.ttl, Body::ResvErr(error));
                self.transmit_reliably(now, interface, address, Target::Neighbour(address), message);
            }
        }
    }

    /// Reports the end of a reservation to its owner.
    pub(super) fn resv_error(
        &mut self,
        now: Instant,
        s: &SessionState,
        rsb: &Rsb,
        failure: Failure,
        in_place: bool,
    ) {
        let flow =
            Descriptor { flowspec: Some(rsb.flowspec), filters: rsb.filters.keys().copied().collect() };
        self.report_failure(now, s, (rsb.next_hop, rsb.handle), rsb.style, failure, in_place, Some(flow));
    }

    /// Handles a `ResvErr` message: larger reservations are blockaded, and the affected receivers are notified. It must come from a previous hop at which
    /// this node has reserved.
    pub(super) fn on_resv_error(&mut self, now: Instant, origin: &Origin, error: &ResvErr) {
        let id = self.by_session.get(&error.session).copied();
        let has_path = |id: &u64| self.sessions.get(id).is_some_and(|s| !s.paths.is_empty());
        let Some(id) = id.filter(has_path) else {
            self.stats.without_state += 1;
            return;
        };
        self.in_session(id, |this, s| {
            let answers = |key: &UpKey| key.1 == error.hop.address && this.speaks_for(origin, key.0);
            match s.upstream.keys().copied().find(answers) {
                Some(key) => this.on_session_resv_error(now, s, key, error),
                None => this.stats.misplaced += 1,
            }
        });
    }

    fn on_session_resv_error(&mut self, now: Instant, s: &mut SessionState, key: UpKey, error: &ResvErr) {
        let interface = key.0;
        if matches!(error.error.code, code::NO_PATH | code::NO_SENDER)
            && let Some(upstream) = s.upstream.get_mut(&key)
        {
            upstream.lose();
        }
        let failed = error.flow.as_ref().and_then(|flow| flow.flowspec);
        let filters = error.flow.as_ref().map_or(&[][..], |flow| &flow.filters);
        let is_admission = error.error.code == code::ADMISSION;
        let paths = s.paths.iter().filter(|(_, psb)| psb.up_key() == Some(key));
        let theirs: BTreeSet<Sender> = paths.map(|((sender, _), _)| *sender).collect();
        let from_there = |sender: &Sender| theirs.contains(sender);
        if let Some(flowspec) = failed.filter(|_| is_admission) {
            let until = now + self.params.refresh.mul_f64(self.params.blockade);
            let keys: Vec<BlockadeKey> = match error.style {
                Style::WildcardFilter => vec![BlockadeKey::Hop(key)],
                _ => filters
                    .iter()
                    .filter(|sender| from_there(sender))
                    .map(|sender| BlockadeKey::Sender(*sender))
                    .collect(),
            };
            s.blockades.extend(keys.into_iter().map(|key| (key, Bsb { flowspec, until })));
            self.refresh_upstream(now, s, key, Cause::AfterError);
            // Acknowledged state is not refreshed by summaries while a reservation is blockaded.
            self.arm_resv_refresh(now, s, key);
        }
        let is_concerned = |rsb: &&Rsb| {
            rsb.next_hop.interface() != Some(interface)
                && rsb.style == error.style
                && theirs.iter().any(|sender| {
                    rsb.selects(sender)
                        && (rsb.style == Style::WildcardFilter
                            || filters.is_empty()
                            || filters.contains(sender))
                })
        };
        let concerned: Vec<Rsb> = s.reservations.iter().filter(is_concerned).cloned().collect();
        for rsb in concerned {
            let is_smaller = failed.is_some_and(|failed| failed.exceeds(&rsb.flowspec));
            // RFC 2205 section 3.5: the previous reservation stays, so a smaller request loses nothing.
            if is_admission && error.error.in_place && is_smaller {
                continue;
            }
            let senders: Vec<Sender> = rsb
                .filters
                .keys()
                .copied()
                .filter(|sender| filters.contains(sender) && from_there(sender))
                .collect();
            match rsb.next_hop {
                NextHop::Application => {
                    let spec = ErrorSpec { not_guilty: is_smaller, ..error.error };
                    let (session, style) = (s.session, rsb.style);
                    self.event(RsvpEvent::ResvError {
                        session,
                        error: spec,
                        style,
                        flowspec: failed,
                        senders,
                    });
                }
                NextHop::Neighbour(out, address) => {
                    self.forward_resv_error(now, s, (out, address), (&rsb, senders), error);
                }
            }
        }
    }

    fn forward_resv_error(
        &mut self,
        now: Instant,
        s: &SessionState,
        (out, address): (InterfaceId, IpAddr),
        (rsb, senders): (&Rsb, Vec<Sender>),
        error: &ResvErr,
    ) {
        let Some(own) = self.address_of(out) else { return };
        // RFC 2205 section 3.4: only the senders that route there.
        let routes = |source: &IpAddr| s.routed_to(Some(out)).any(|(sender, _)| sender.address == *source);
        let scope = error
            .scope
            .as_ref()
            .map(|scope| scope.iter().copied().filter(|source| routes(source)).collect::<Vec<_>>());
        if scope.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        let flow = error.flow.as_ref().map(|flow| Descriptor { flowspec: flow.flowspec, filters: senders });
        let hop = Hop { address: own, handle: rsb.handle };
        let body = ResvErr { hop, scope, flow, ..error.clone() };
        let message = Message::new(self.params.ttl, Body::ResvErr(body));
        self.transmit_reliably(now, out, address, Target::Neighbour(address), message);
    }
}

/// Returns the objects of an error about a session or a sender of a type that is not known (RFC 2205 sections 3.1.7, 3.1.8 and 3.10).
fn error_about(named: &[Opaque], hop: Option<Hop>, error: ErrorSpec) -> Vec<Opaque> {
    let (session, others): (Vec<&Opaque>, Vec<&Opaque>) =
        named.iter().partition(|object| object.class == class::SESSION);
    let own = hop.map(Hop::object).into_iter().chain([error.object()]);
    session.into_iter().cloned().chain(own).chain(others.into_iter().cloned()).collect()
}
