//! The accounts of flows: by number, user, client and lease, and the sums of their charges.

use super::flow::Flow;
use super::ledger::{Ledger, add, subtract};
use super::sharing::Sharers;
use super::{AllocationCause, FlowRequest, ResourceManager};

impl ResourceManager {
    pub(super) fn insert(&mut self, flow: Flow, committed: u64) -> usize {
        let (id, user, client, lease) = (flow.id, flow.request.user, flow.request.client, flow.lease);
        let slot = self.flows.insert(flow);
        self.by_id.insert(id, slot);
        self.users.entry(user).or_default().flows += 1;
        self.clients.entry(client).or_default().insert(id);
        self.leases.insert((lease, id));
        self.count(slot, committed);
        self.set_real_time(slot, AllocationCause::Request);
        self.note(slot);
        self.share_anew(AllocationCause::Share);
        slot
    }

    /// Takes a flow away.
    pub(super) fn remove(&mut self, slot: usize) -> Flow {
        self.uncount(slot);
        let flow = self.flows.remove(slot);
        let (id, FlowRequest { user, client, .. }) = (flow.id, flow.request);
        self.by_id.remove(&id);
        self.leases.remove(&(flow.lease, id));
        if let Some(flows) = self.clients.get_mut(&client) {
            flows.remove(&id);
            if flows.is_empty() {
                self.clients.remove(&client);
            }
        }
        let owner = self.users.get_mut(&user).expect("a flow's user is there");
        owner.flows -= 1;
        if owner.flows == 0 {
            self.users.remove(&user);
        }
        self.share_anew(AllocationCause::Share);
        flow
    }

    /// Adds a flow to the accounts, with a promise, and a time-shared one to those that share.
    pub(super) fn count(&mut self, slot: usize, committed: u64) {
        self.add_charges(slot, committed);
        let flow = &self.flows[slot];
        if !flow.is_real_time() {
            self.sharers.insert(flow, slot);
        }
    }

    /// Adds a flow to the accounts, with a promise.
    fn add_charges(&mut self, slot: usize, committed: u64) {
        let flow = &mut self.flows[slot];
        flow.committed = committed;
        let flow = &self.flows[slot];
        let user = self.users.get_mut(&flow.request.user).expect("a flow's user is there");
        user.committed.resize(self.ledger.bounds.len(), 0);
        add(&mut self.ledger.committed, flow.charges(committed));
        add(&mut user.committed, flow.charges(committed));
        if flow.is_real_time() {
            add(&mut self.ledger.real_time, flow.charges(flow.limited(committed)));
            if committed < flow.request.desired.as_bps() {
                self.below.insert(self.lowering_key(flow));
            }
        } else {
            add(&mut self.ledger.minima, flow.charges(flow.minimum()));
            add(&mut self.ledger.wanted, flow.charges(flow.most()));
        }
    }

    /// Takes a flow out of the accounts.
    pub(super) fn uncount(&mut self, slot: usize) {
        let flow = &self.flows[slot];
        let user = self.users.get_mut(&flow.request.user).expect("a flow's user is there");
        subtract(&mut self.ledger.committed, flow.charges(flow.committed));
        subtract(&mut user.committed, flow.charges(flow.committed));
        if flow.is_real_time() {
            subtract(&mut self.ledger.real_time, flow.charges(flow.limited(flow.committed)));
            let key = self.lowering_key(flow);
            self.below.remove(&key);
        } else {
            subtract(&mut self.ledger.minima, flow.charges(flow.minimum()));
            subtract(&mut self.ledger.wanted, flow.charges(flow.most()));
            self.sharers.remove(flow, slot);
        }
    }

    /// Recounts all flows for other capacities.
    pub(super) fn recount(&mut self) {
        let used = self.flows.iter().filter_map(|(_, flow)| flow.request.interface).collect();
        self.ledger = Ledger::new(&self.params, &self.capacities, &used);
        self.below.clear();
        for user in self.users.values_mut() {
            user.committed.clear();
        }
        for slot in self.by_id.values().copied().collect::<Vec<_>>() {
            let flow = &mut self.flows[slot];
            flow.places = self.ledger.places(&flow.request).expect("every interface in use has a place");
            // The places of the old accounts mean other resources.
            flow.limited_by = None;
            let committed = flow.committed;
            self.add_charges(slot, committed);
        }
        self.sharers = Sharers::of(&self.flows);
    }
}
