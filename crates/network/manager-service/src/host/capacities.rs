//! Capacities of the host, and the flows whose rates reservations of RSVP hold.

use super::ManagedHost;
use crate::config::ManagedInterface;
use crate::reserved::{ReservedRates, selector};
use crate::store::FlowPlace;
use cutline_allocation::protocol::FlowNeed;
use cutline_manager::resources::{
    Capacities, FlowId, InterfaceCapacity, InterfaceIndex, ResourceKind, Shortage, ShortageScope,
};
use cutline_params::ParameterError;
use cutline_sys::{SysError, interface};
use cutline_units::Rate;
use std::collections::{BTreeMap, BTreeSet};

impl ManagedHost {
    /// Takes the rates that reservations of RSVP hold.
    pub fn set_reserved(&mut self, reserved: ReservedRates) {
        self.reserved = reserved;
        self.update_capacities();
    }

    pub(super) fn update_capacities(&mut self) {
        if let Err(error) = self.set_capacities() {
            self.notices.push(format!("the capacities stay as they are: {error}"));
        }
    }

    /// Sets the capacities, of the present interfaces, without RSVP's reservations.
    pub(super) fn set_capacities(&mut self) -> Result<(), ParameterError> {
        let mut capacities = self.spec.capacities.clone();
        let mut missing = BTreeSet::new();
        let before: BTreeMap<String, InterfaceIndex> =
            std::mem::take(&mut self.interfaces).into_iter().map(|(index, name)| (name, index)).collect();
        for ManagedInterface { name, rate, .. } in &self.spec.interfaces {
            let index = match interface::index(name) {
                Ok(index) => Some(InterfaceIndex(index)),
                Err(SysError::NoInterface { .. }) => None,
                // Without a free descriptor, for example, nothing is known. The number stays.
                Err(_) => before.get(name).copied(),
            };
            let Some(index) = index else {
                missing.insert(name.clone());
                continue;
            };
            let reserved = self.reserved.interfaces.get(name).copied().unwrap_or_default();
            capacities.interfaces.insert(index, InterfaceCapacity { rate: *rate, reserved });
            self.interfaces.insert(index, name.clone());
        }
        self.report_missing(missing);
        self.charge(capacities, None)
    }

    /// Reports the interfaces that are missing since the last time, and those that were missing and are there.
    fn report_missing(&mut self, missing: BTreeSet<String>) {
        for name in missing.difference(&self.missing) {
            self.notices.push(format!(
                "interface `{name}` is not there: its rate limits nothing until the interface exists"
            ));
        }
        for name in self.interfaces.values().filter(|name| self.missing.contains(*name)) {
            self.notices.push(format!("interface `{name}` is there now: its rate is a limit"));
        }
        self.missing = missing;
    }

    /// Sets capacities, and charges their interfaces for the flows whose rates no reservation holds. A flow that changes has another
    /// desired rate.
    pub(super) fn charge(
        &mut self,
        capacities: Capacities,
        changing: Option<(FlowId, Rate)>,
    ) -> Result<(), ParameterError> {
        let held = self.held_flows(changing);
        let resources = self.manager.resources();
        let is_reserved = |flow: &FlowId| resources.flow(*flow).is_some_and(|its| its.is_reserved);
        let is_as_before = self.places.keys().all(|flow| is_reserved(flow) == held.contains(flow));
        if !is_as_before || capacities != *resources.capacities() {
            self.manager.set_reserved(capacities, &held)?;
            // Promises may be lower.
            self.is_stale = true;
        }
        Ok(())
    }

    /// Returns the flows whose desired rates are held by reservations, each by one of its own.
    fn held_flows(&self, changing: Option<(FlowId, Rate)>) -> BTreeSet<FlowId> {
        let mut held = BTreeSet::new();
        if self.reserved.flows.is_empty() {
            return held;
        }
        let mut used = BTreeSet::new();
        for (flow, place) in &self.places {
            let Some(request) = self.manager.resources().flow(*flow) else { continue };
            let Some((index, interface)) =
                request.interface.and_then(|index| self.interfaces.get_key_value(&index))
            else {
                continue;
            };
            let desired =
                changing.filter(|(changed, _)| changed == flow).map_or(request.desired, |(_, rate)| rate);
            let packets = selector(request.carrier, place.source, place.destination);
            if self.reserved.hold(interface, &packets, desired) && used.insert((*index, packets)) {
                held.insert(*flow);
            }
        }
        held
    }

    /// Returns whether a reservation holds the desired rate of a new flow, and of no other flow.
    pub(super) fn is_held(&self, interface: InterfaceIndex, need: &FlowNeed, desired: Rate) -> bool {
        let Some(name) = self.interfaces.get(&interface) else { return false };
        let packets = selector(need.carrier, need.source, need.destination);
        let is_other = |(flow, place): (&FlowId, &FlowPlace)| {
            (place.source, place.destination) == (need.source, need.destination)
                && self.manager.resources().flow(*flow).is_some_and(|its| its.is_reserved)
        };
        self.reserved.hold(name, &packets, desired) && !self.places.iter().any(is_other)
    }

    /// Returns the shortage at the interface of a flow whose reservation does not hold another desired rate. Without it the charge for the flow
    /// would lower others.
    pub(super) fn shortage_without_reservation(
        &mut self,
        flow: FlowId,
        desired: Rate,
        minimum: Rate,
    ) -> Option<Shortage> {
        if self.held_flows(Some((flow, desired))).contains(&flow) {
            return None;
        }
        let found = self.manager.allocation(flow)?;
        let index = found.request.interface?;
        let resources = self.manager.resources();
        let InterfaceCapacity { rate, reserved } = *resources.capacities().interfaces.get(&index)?;
        let resource = ResourceKind::Interface(index);
        let promisable = (rate.as_bps() as f64 * resources.params().committed_share) as u64;
        let left = promisable.saturating_sub(reserved.as_bps()).saturating_sub(resources.committed(resource));
        let needed = found.promised.max(minimum).as_bps();
        (needed > left).then_some(Shortage { resource, scope: ShortageScope::Host, needed, left })
    }
}
