//! Lowering and revocation of flows when capacities shrink, and raises when there is room again.

use super::{AllocationCause, Flow, FlowId, LoweringKey, LoweringOrder, ResourceManager, UserId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl ResourceManager {
    /// Place of a flow in the order in which flows are lowered.
    pub(super) fn lowering_key(&self, flow: &Flow) -> LoweringKey {
        let rank = match self.params.order {
            LoweringOrder::Priority => u64::from(flow.request.priority),
            // The share of the rate that it cannot lose, in 2^-20.
            LoweringOrder::LargestSlack => {
                ((flow.minimum() << 16) / flow.request.desired.as_bps()).min(1 << 16)
            }
            LoweringOrder::Newest => 0,
        };
        (rank, Reverse(flow.id))
    }

    /// Makes promises fit, after capacities have changed.
    pub(super) fn degrade(&mut self) {
        for place in 0..self.ledger.bounds.len() {
            let Some(committable) = self.ledger.bounds[place].committable else { continue };
            if self.ledger.committed[place] <= committable {
                continue;
            }
            let order = self.users_of(place);
            for slot in &order {
                let over = self.over_user_bound(self.flows[*slot].request.user, place);
                self.lower(*slot, place, over);
            }
            for slot in &order {
                let over = self.ledger.committed[place].saturating_sub(committable);
                self.lower(*slot, place, over);
            }
            self.revoke_beyond(place);
        }
    }

    /// Revokes flows until promises fit the whole capacity: first those of users that hold more than their part, then
    /// time-shared ones of equal rank.
    fn revoke_beyond(&mut self, place: usize) {
        let Some(capacity) = self.ledger.bounds[place].capacity else { return };
        while self.ledger.committed[place] > capacity {
            let mut over: BTreeMap<UserId, bool> = BTreeMap::new();
            for user in self.users.keys() {
                over.insert(*user, self.over_user_bound(*user, place) > 0);
            }
            let key = |slot: &usize| {
                let flow = &self.flows[*slot];
                let (rank, age) = self.lowering_key(flow);
                (!over[&flow.request.user], rank, !flow.is_real_time(), age)
            };
            // Flows of users that hold too much are revoked until these hold no more than their part; then `over` has changed.
            let mut victims = self.users_of(place);
            victims.retain(|slot| self.flows[*slot].charge(place, self.flows[*slot].committed) > 0);
            victims.sort_by_cached_key(key);
            let has_over = victims.first().is_some_and(|slot| over[&self.flows[*slot].request.user]);
            assert!(!victims.is_empty(), "promises are those of flows");
            for slot in victims {
                let user = self.flows[slot].request.user;
                let is_next = !has_over || (over[&user] && self.over_user_bound(user, place) > 0);
                if self.ledger.committed[place] <= capacity || !is_next {
                    break;
                }
                self.revoke(slot, AllocationCause::Capacity);
                self.stats.revoked += 1;
            }
        }
    }

    /// The amount of a resource that a user holds beyond its part.
    fn over_user_bound(&self, user: UserId, place: usize) -> u64 {
        let held = self.users.get(&user).and_then(|user| user.committed.get(place)).copied().unwrap_or(0);
        self.user_bound(user, place).map_or(0, |bound| held.saturating_sub(bound))
    }

    /// The flows that use a resource, in the order in which they are lowered.
    fn users_of(&self, place: usize) -> Vec<usize> {
        let mut flows: Vec<(LoweringKey, usize)> = (self.flows.iter())
            .filter(|(_, flow)| flow.charges(1).any(|(used, _)| used == place))
            .map(|(slot, flow)| (self.lowering_key(flow), slot))
            .collect();
        flows.sort_unstable();
        flows.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Lowers a real-time flow by as much as it takes to free an amount, at most to its minimum.
    fn lower(&mut self, slot: usize, place: usize, amount: u64) {
        let flow = &self.flows[slot];
        if amount == 0 || !flow.is_real_time() || flow.committed <= flow.minimum() {
            return;
        }
        let charge = flow.charge(place, flow.committed).saturating_sub(amount);
        let committed = flow.bps_with(place, charge).clamp(flow.minimum(), flow.committed);
        self.promise(slot, committed, AllocationCause::Capacity);
    }

    /// Distributes freed resources: real-time flows with less than they desire come first, in the reverse order of lowering.
    pub(super) fn freed(&mut self, cause: AllocationCause) {
        self.share_anew(cause);
        let waiting: Vec<FlowId> = self.below.iter().rev().map(|(_, Reverse(id))| *id).collect();
        for id in waiting {
            let slot = self.by_id[&id];
            let had = self.flows[slot].committed;
            let desired = self.flows[slot].request.desired.as_bps();
            let least = (had as f64 * (1.0 + self.params.raise_step)).ceil().min(desired as f64) as u64;
            let most = self.promisable(slot);
            if most > had && most >= least {
                self.promise(slot, most, cause);
            }
        }
    }

    /// The highest promise that a real-time flow can get, bit/s; not less than it has.
    fn promisable(&self, slot: usize) -> u64 {
        let flow = &self.flows[slot];
        let mut most = flow.request.desired.as_bps();
        for (place, has) in flow.charges(flow.committed) {
            let Some((left, _)) = self.uncommitted(flow.request.user, place) else { continue };
            most = most.min(flow.bps_with(place, has + left));
        }
        most.max(flow.committed)
    }

    fn promise(&mut self, slot: usize, committed: u64, cause: AllocationCause) {
        self.uncount(slot);
        self.count(slot, committed);
        self.set_real_time(slot, cause);
        self.share_anew(cause);
    }
}
