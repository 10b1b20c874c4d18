//! Changes of the rates of flows, and the events that their clients are to be notified by.

use super::flow::{Flow, Notice};
use super::{AllocationCause, AllocationEvent, FlowId, ResourceManager};

impl ResourceManager {
    pub(super) fn revoke(&mut self, slot: usize, cause: AllocationCause) {
        let flow = self.remove(slot);
        self.revoked.push_back(AllocationEvent::Revoked {
            flow: flow.id,
            client: flow.request.client,
            cause,
        });
    }

    /// Lets a real-time flow use its promise, up to its limit.
    pub(super) fn set_real_time(&mut self, slot: usize, cause: AllocationCause) {
        let flow = &self.flows[slot];
        if flow.is_real_time() {
            self.grant(slot, flow.limited(flow.committed), cause);
        }
    }

    pub(super) fn grant(&mut self, slot: usize, bps: u64, cause: AllocationCause) {
        let flow = &mut self.flows[slot];
        if flow.granted != bps {
            (flow.granted, flow.cause) = (bps, cause);
            self.note(slot);
        }
    }

    /// Notes whether there is something to notify a flow of.
    pub(super) fn note(&mut self, slot: usize) {
        let Flow { id, granted, reported, notice: before, .. } = self.flows[slot];
        let notice = match reported {
            Some(reported) if granted < reported => Notice::Fall,
            Some(reported) if granted == reported => Notice::None,
            _ => Notice::Rise,
        };
        if notice == before {
            return;
        }
        self.forget_notice(id, before);
        match notice {
            Notice::Fall => self.falls.insert(id),
            Notice::Rise => self.rises.insert(id),
            Notice::None => false,
        };
        self.flows[slot].notice = notice;
    }

    pub(super) fn forget_notice(&mut self, id: FlowId, notice: Notice) {
        match notice {
            Notice::Fall => self.falls.remove(&id),
            Notice::Rise => self.rises.remove(&id),
            Notice::None => false,
        };
    }
}
