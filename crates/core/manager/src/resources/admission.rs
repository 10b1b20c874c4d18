//! The decision on a request: the promise that can be made, the shortage that limits it, and the answer.

use super::flow::Flow;
use super::ledger::Places;
use super::{AdmissionAnswer, FlowRequest, ResourceKind, ResourceManager, Shortage, ShortageScope, UserId};
use cutline_params::ParameterError;
use cutline_units::Rate;

impl ResourceManager {
    pub(super) fn check(&self, request: &FlowRequest) -> Result<Places, ParameterError> {
        request.validate()?;
        let index = request.interface.filter(|index| !self.capacities.interfaces.contains_key(index));
        if let Some(index) = index {
            let known: Vec<_> = self.capacities.interfaces.keys().map(ToString::to_string).collect();
            let known = if known.is_empty() {
                "off: no interface is managed".to_owned()
            } else {
                format!("one of {}", known.join(", "))
            };
            return Err(ParameterError::new("interface", index, known));
        }
        Ok(self.ledger.places(request).expect("the interface has a place"))
    }

    pub(super) fn flow_budget(&self, user: UserId) -> Option<Shortage> {
        let (all, own) = (self.by_id.len() as u64, self.users.get(&user).map_or(0, |user| user.flows));
        let shortage = |scope| Shortage { resource: ResourceKind::Flows, scope, needed: 1, left: 0 };
        if all >= u64::from(self.params.most_flows) {
            return Some(shortage(ShortageScope::Host));
        }
        (own >= self.params.most_flows_per_user).then(|| shortage(ShortageScope::User))
    }

    /// The part of a resource that a user may hold for certain; `None` is everything.
    pub(super) fn user_bound(&self, user: UserId, place: usize) -> Option<u64> {
        let share = self.policy(user).share.unwrap_or(self.params.user_share);
        self.ledger.bounds[place].committable.map(|committable| (committable as f64 * share) as u64)
    }

    /// The amount of a resource that can still be promised to a user, and the party that limits it; `None` is everything.
    pub(super) fn uncommitted(&self, user: UserId, place: usize) -> Option<(u64, ShortageScope)> {
        let host = self.ledger.bounds[place].committable?.saturating_sub(self.ledger.committed[place]);
        let held = self.users.get(&user).and_then(|user| user.committed.get(place)).copied().unwrap_or(0);
        let own = self.user_bound(user, place)?.saturating_sub(held);
        Some(if own < host { (own, ShortageScope::User) } else { (host, ShortageScope::Host) })
    }

    /// The promise that can be made to a flow, which holds none now: its desired rate, or less with the reason. An
    /// error gives the shortage for its minimum.
    pub(super) fn fit(&self, flow: &Flow) -> Result<(u64, Option<Shortage>), Shortage> {
        let wanted = if flow.is_real_time() { flow.request.desired.as_bps() } else { flow.minimum() };
        let mut fit = wanted;
        let mut limit = None;
        for (place, _) in flow.charges(wanted) {
            let Some((left, scope)) = self.uncommitted(flow.request.user, place) else { continue };
            let most = flow.bps_with(place, left);
            if most < fit {
                (fit, limit) = (most, Some((place, scope, left)));
            }
        }
        let Some((place, scope, left)) = limit else { return Ok((fit, None)) };
        let resource = self.ledger.kind(place);
        let shortage = |bps| Shortage { resource, scope, needed: flow.charge(place, bps), left };
        if fit < flow.minimum() { Err(shortage(flow.minimum())) } else { Ok((fit, Some(shortage(wanted)))) }
    }

    /// Answers a request that has been admitted.
    pub(super) fn answer(&mut self, slot: usize, shortage: Option<Shortage>) -> AdmissionAnswer {
        self.settle_for(slot);
        let flow = &self.flows[slot];
        let (id, rate, desired) = (flow.id, Rate::from_bps(flow.granted), flow.request.desired);
        let shared = || {
            let place = flow.limited_by?;
            let (needed, left) = (flow.charge(place, desired.as_bps()), flow.charge(place, flow.granted));
            Some(Shortage { resource: self.ledger.kind(place), scope: ShortageScope::Host, needed, left })
        };
        let shortage = if flow.is_real_time() { shortage } else { shared() };
        match shortage {
            Some(shortage) => AdmissionAnswer::Reduced { flow: id, rate, shortage },
            None => AdmissionAnswer::Admitted { flow: id },
        }
    }
}
