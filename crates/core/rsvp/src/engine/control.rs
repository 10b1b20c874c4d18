//! Traffic control state: reservations on interfaces, and admission (RFC 2209: UPDATE TRAFFIC CONTROL).

use super::Engine;
use super::outputs::Police;
use super::outputs::{Control, EngineOutput, ReservedFlow, RsvpEvent};
use super::params::InterfaceId;
use super::state::{NextHop, SessionState, Tcsb};
use super::upstream::Cause;
use crate::admission::ReservationHandle;
use crate::intserv::{Flowspec, Tspec};
use crate::message::{Body, Message};
use crate::object::{Sender, Session, Style, code};
use cutline_units::Instant;
use std::collections::BTreeSet;

/// Reason for the failure of a reservation: code and value of the error.
pub(super) type Failure = (u8, u16);

/// Requirements of a set of reservations on an interface.
struct Needed {
    flowspec: Flowspec,
    filters: BTreeSet<Sender>,
    path_tspec: Tspec,
    police: Police,
}

impl Engine {
    /// Updates the reserved traffic of an interface from the reservations and the paths. `filter` is the sender in style FF.
    /// Returns whether something has changed that the nodes towards the senders should know.
    ///
    /// If admission control refuses more, the previous reservation stays.
    pub(super) fn update_control(
        &mut self,
        s: &mut SessionState,
        interface: Option<InterfaceId>,
        style: Style,
        filter: Option<Sender>,
    ) -> Result<bool, Failure> {
        s.is_to_account = true;
        let needed = needed(s, interface, style, filter)?;
        let is_it = |control: &Tcsb| {
            control.interface == interface
                && control.style == style
                && filter.is_none_or(|filter| control.filters.contains(&filter))
        };
        let existing = s.controls.iter().position(is_it);
        let changed = match (needed, existing) {
            (None, None) => false,
            (None, Some(at)) => {
                let control = s.controls.swap_remove(at);
                self.release(&control);
                true
            }
            (Some(needed), None) => {
                let handle = ReservationHandle(self.next_handle);
                self.next_handle += 1;
                let Needed { flowspec, filters, path_tspec, police } = needed;
                let control =
                    Tcsb { interface, handle, style, filters, flowspec, path_tspec, police, confirm: None };
                self.admit(&control)?;
                self.by_handle.insert(handle, s.id);
                self.control(&control, s.session, Control::Add);
                s.controls.push(control);
                true
            }
            (Some(needed), Some(at)) => self.modify(s.session, &mut s.controls[at], needed)?,
        };
        if changed && (s.is_watched || s.paths.values().any(|psb| psb.from.is_none())) && interface.is_some()
        {
            let control = s.controls.iter().find(|control| is_it(control));
            let (flowspec, senders) = match control {
                Some(control) => (Some(control.flowspec), control.filters.iter().copied().collect()),
                None => (None, filter.into_iter().collect()),
            };
            self.event(RsvpEvent::Reserved { session: s.session, style, senders, flowspec });
        }
        Ok(changed)
    }

    fn modify(&mut self, session: Session, control: &mut Tcsb, needed: Needed) -> Result<bool, Failure> {
        let Needed { flowspec, filters, path_tspec, police } = needed;
        let is_other = flowspec != control.flowspec || path_tspec != control.path_tspec;
        if is_other || police != control.police {
            let changed = Tcsb { flowspec, path_tspec, police, ..control.clone() };
            self.admit(&changed)?;
            self.control(&changed, session, Control::Modify);
            *control = changed;
        }
        if filters == control.filters {
            return Ok(is_other);
        }
        let old = std::mem::replace(&mut control.filters, filters);
        if let Some(interface) = control.interface.filter(|interface| self.controls_traffic(*interface)) {
            let handle = control.handle;
            let gone = old.difference(&control.filters);
            let gone = gone.map(|&sender| Control::RemoveFilter { interface, handle, session, sender });
            let added = control.filters.difference(&old);
            let added = added.map(|&sender| Control::AddFilter { interface, handle, session, sender });
            self.outputs.extend(gone.chain(added).map(EngineOutput::Control));
        }
        Ok(true)
    }

    fn controls_traffic(&self, interface: InterfaceId) -> bool {
        self.interfaces.get(&interface).is_some_and(|place| place.share.is_some())
    }

    /// Requests admission.
    fn admit(&mut self, control: &Tcsb) -> Result<(), Failure> {
        let place = control.interface.and_then(|interface| self.interfaces.get_mut(&interface));
        let Some(share) = place.and_then(|place| place.share.as_mut()) else { return Ok(()) };
        let Flowspec::ControlledLoad(tspec) = &control.flowspec else {
            return Err((code::TRAFFIC_CONTROL, code::SERVICE_UNSUPPORTED));
        };
        share
            .admit(control.handle, &tspec.installed(&control.path_tspec))
            .map_err(|refusal| (code::ADMISSION, refusal.value()))
    }

    fn control(&mut self, control: &Tcsb, session: Session, make: impl FnOnce(ReservedFlow) -> Control) {
        let Some(interface) = control.interface.filter(|interface| self.controls_traffic(*interface)) else {
            return;
        };
        let flow = ReservedFlow {
            interface,
            handle: control.handle,
            session,
            style: control.style,
            senders: control.filters.iter().copied().collect(),
            tspec: control.flowspec.tspec().installed(&control.path_tspec),
            police: control.police,
        };
        self.outputs.push_back(EngineOutput::Control(make(flow)));
    }

    fn release(&mut self, control: &Tcsb) {
        self.by_handle.remove(&control.handle);
        let Some(interface) = control.interface else { return };
        let Some(share) = self.interfaces.get_mut(&interface).and_then(|place| place.share.as_mut()) else {
            return;
        };
        share.release(control.handle);
        self.outputs.push_back(EngineOutput::Control(Control::Delete { interface, handle: control.handle }));
    }

    /// Ends reservations that no sender routes to any longer (RFC 2205 section 3.1.5). No node is notified.
    pub(super) fn prune(&mut self, s: &mut SessionState) {
        let reservations = std::mem::take(&mut s.reservations);
        for mut rsb in reservations {
            let interface = rsb.next_hop.interface();
            rsb.filters.retain(|sender, _| s.routed_to(interface).any(|(other, _)| other == sender));
            let is_needed = match rsb.style {
                Style::WildcardFilter => s.routed_to(interface).next().is_some(),
                _ => !rsb.filters.is_empty(),
            };
            if is_needed {
                s.reservations.push(rsb);
            } else {
                self.uninstall_resv(s, &mut rsb);
            }
        }
        self.update_controls(s);
    }

    /// Updates all that is reserved for a session after reservations or paths have become fewer. Returns whether something has
    /// changed.
    pub(super) fn update_controls(&mut self, s: &mut SessionState) -> bool {
        s.is_to_account = true;
        let places = s.controls.iter().map(|control| {
            let filter = control.filters.first().copied().filter(|_| control.style == Style::FixedFilter);
            (control.interface, control.style, filter)
        });
        let places: Vec<_> = places.collect();
        let mut has_changed = false;
        for (interface, style, filter) in places {
            match self.update_control(s, interface, style, filter) {
                Ok(changed) => has_changed |= changed,
                // Less is always admitted, but a minimum packet size may fall with a larger request: the present one stays.
                Err(_) => self.stats.not_admitted += 1,
            }
        }
        has_changed
    }

    /// Takes a reservation away that traffic control cannot install or keep, or has given to another session (RFC 2205 section
    /// 3.11.2). The receivers are notified. Pending outputs about the session's reservations are withdrawn, so a reservation that
    /// cannot be installed was neither confirmed nor made upstream, if its owner reports the failure before it takes other outputs.
    pub fn revoke(&mut self, now: Instant, handle: ReservationHandle, is_preempted: bool) {
        let failure = if is_preempted { (code::PREEMPTED, 0) } else { (code::SYSTEM, 0) };
        let Some(id) = self.by_handle.get(&handle).copied() else { return };
        self.in_session(id, |this, s| {
            let Some(control) = s.controls.iter().find(|control| control.handle == handle).cloned() else {
                return;
            };
            this.take_back(s);
            let is_its = |rsb: &super::state::Rsb| {
                rsb.next_hop.interface() == control.interface
                    && rsb.style == control.style
                    && (rsb.style == Style::WildcardFilter
                        || rsb.filters.keys().any(|sender| control.filters.contains(sender)))
            };
            let (revoked, kept) = std::mem::take(&mut s.reservations).into_iter().partition(is_its);
            s.reservations = kept;
            for mut rsb in revoked {
                this.uninstall_resv(s, &mut rsb);
                this.resv_error(now, s, &rsb, failure, false);
            }
            this.update_controls(s);
            for hop in s.previous_hops(|sender| control.selects(sender)) {
                this.refresh_upstream(now, s, hop, Cause::Changed);
            }
        });
    }
}

impl Engine {
    /// Withdraws pending outputs about a session's reservations: to the nodes towards the senders, to receivers, to applications here.
    fn take_back(&mut self, s: &mut SessionState) {
        let is_its = |bytes: &[u8]| match Message::decode(bytes).map(|message| message.body) {
            Ok(Body::Resv(resv)) => resv.session == s.session,
            Ok(Body::ResvConf(confirmation)) => confirmation.session == s.session,
            _ => false,
        };
        self.outputs.retain(|output| match output {
            EngineOutput::Send(datagram) => !is_its(&datagram.bytes),
            EngineOutput::Event(
                RsvpEvent::Confirmed { session, .. } | RsvpEvent::Reserved { session, .. },
            ) => *session != s.session,
            _ => true,
        });
        // The upstream reservation is then sent, whatever was there before.
        s.upstream.values_mut().for_each(|upstream| upstream.sent.hash = 0);
    }
}

/// Computes the needs of an interface's reservations; none without reservations.
fn needed(
    s: &SessionState,
    interface: Option<InterfaceId>,
    style: Style,
    filter: Option<Sender>,
) -> Result<Option<Needed>, Failure> {
    let mut flowspec: Option<Flowspec> = None;
    let mut filters = BTreeSet::new();
    let its = s.reservations.iter().filter(|rsb| {
        rsb.next_hop.interface() == interface
            && rsb.style == style
            && filter.is_none_or(|filter| rsb.filters.contains_key(&filter))
    });
    for rsb in its {
        let merged = flowspec.map_or(Some(rsb.flowspec), |so_far| so_far.merge(&rsb.flowspec));
        flowspec = Some(merged.ok_or((code::TRAFFIC_CONTROL, code::SERVICE_CONFLICT))?);
        filters.extend(rsb.filters.keys().copied());
    }
    if let Some(filter) = filter {
        filters.retain(|sender| *sender == filter);
    }
    let selects = |sender: &Sender| style == Style::WildcardFilter || filters.contains(sender);
    let mut senders =
        s.routed_to(interface).filter(|(sender, _)| selects(sender)).map(|(_, psb)| psb).peekable();
    let (Some(flowspec), Some(first)) = (flowspec, senders.peek()) else { return Ok(None) };
    let mut path_tspec = first.tspec;
    let mut police = Police::default();
    for (at, psb) in senders.enumerate() {
        police.entry |= psb.polices_entry;
        police.merge |= at > 0;
        if at > 0 {
            path_tspec = path_tspec.sum(&psb.tspec);
        }
    }
    // RFC 2205 section 3.8: less is reserved here than on another branch.
    let other = |rsb: &&super::state::Rsb| {
        rsb.next_hop != NextHop::Application
            && rsb.next_hop.interface() != interface
            && (style == Style::WildcardFilter || rsb.filters.keys().any(&selects))
    };
    police.branch = s.reservations.iter().filter(other).any(|rsb| !flowspec.covers(&rsb.flowspec));
    Ok(Some(Needed { flowspec, filters, path_tspec, police }))
}
