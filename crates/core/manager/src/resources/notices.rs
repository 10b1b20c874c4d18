//! Changes of the rates of flows, and the events that their clients are to be notified by.

use super::flow::{Flow, Notice};
use super::{AllocationCause, AllocationEvent, FlowId, ResourceManager};
use slab::Slab;
use std::cmp::Reverse;

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
        self.flows[slot].notice = notice;
        match notice {
            Notice::Fall => self.falls.push(&self.flows, id, slot),
            Notice::Rise => self.rises.push(&self.flows, id, slot),
            Notice::None => {}
        }
    }

    /// Takes the next flow that is to be notified: those of which rates fall come first, oldest first.
    pub(super) fn next_notice(&mut self) -> Option<usize> {
        self.falls.pop(&self.flows).or_else(|| self.rises.pop(&self.flows))
    }
}

/// Flows that are to be notified of the same kind of change, oldest first.
///
/// A flow that need not be notified after all stays in the queue until its turn comes, and then is left out, because
/// many flows may change at once and few of them change twice.
#[derive(Clone, Debug)]
pub(super) struct NoticeQueue {
    notice: Notice,
    /// Numbers and places of flows; the next one is the last, if they are sorted.
    flows: Vec<(FlowId, usize)>,
    is_sorted: bool,
    /// The length at which flows that need not be notified after all are removed.
    most: usize,
}

/// Length up to which a queue is not cleaned up.
const LEAST_CLEANED: usize = 64;

impl NoticeQueue {
    pub const fn new(notice: Notice) -> Self {
        Self { notice, flows: Vec::new(), is_sorted: true, most: LEAST_CLEANED }
    }

    fn push(&mut self, flows: &Slab<Flow>, id: FlowId, slot: usize) {
        if self.flows.len() >= self.most {
            self.flows.sort_unstable();
            self.flows.dedup();
            let notice = self.notice;
            self.flows.retain(|queued| is_waiting(flows, *queued, notice));
            self.most = LEAST_CLEANED.max(2 * self.flows.len());
        }
        self.flows.push((id, slot));
        self.is_sorted = false;
    }

    fn pop(&mut self, flows: &Slab<Flow>) -> Option<usize> {
        if !self.is_sorted {
            self.flows.sort_unstable_by_key(|queued| Reverse(*queued));
            self.is_sorted = true;
        }
        while let Some(queued) = self.flows.pop() {
            if is_waiting(flows, queued, self.notice) {
                return Some(queued.1);
            }
        }
        None
    }
}

/// Returns whether a flow of a queue is there and to be notified. Its place may be that of a later flow.
fn is_waiting(flows: &Slab<Flow>, (id, slot): (FlowId, usize), notice: Notice) -> bool {
    flows.get(slot).is_some_and(|flow| flow.id == id && flow.notice == notice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{
        Capacities, CarrierKind, ClientKey, CpuShare, FlowRequest, ResourceParams, SchedulingClass, UserId,
    };
    use cutline_units::{Instant, Rate};

    const CLIENT: ClientKey = ClientKey(1);

    /// A manager with flows of 4 Mbit/s for which there is room, and which were notified.
    fn manager<const FLOWS: usize>() -> (ResourceManager, [FlowId; FLOWS]) {
        let capacities = Capacities { combined: Some(Rate::from_mbps(100)), ..Capacities::default() };
        let mut manager = ResourceManager::new(ResourceParams::default(), capacities).unwrap();
        let flows = [(); FLOWS].map(|()| request(&mut manager));
        while manager.poll().is_some() {}
        (manager, flows)
    }

    fn request(manager: &mut ResourceManager) -> FlowId {
        let request = FlowRequest {
            user: UserId(1),
            client: CLIENT,
            class: SchedulingClass::TimeShared,
            carrier: CarrierKind::Datagrams,
            interface: None,
            is_reserved: false,
            desired: Rate::from_mbps(4),
            minimum: Rate::ZERO,
            cpu: CpuShare::ZERO,
            priority: 0,
            weight: 1,
        };
        manager.request(Instant::ZERO, request).unwrap().flow().unwrap()
    }

    /// Limits a flow, and lets the manager compute its rate.
    fn limit(manager: &mut ResourceManager, flow: FlowId, mbps: u64) {
        assert!(manager.set_limit(flow, Some(Rate::from_mbps(mbps))));
        assert_eq!(manager.granted(flow), Some(Rate::from_mbps(mbps)));
    }

    #[test]
    fn falls_come_first_and_then_the_oldest_flow() {
        let (mut manager, [one, two, three, four]) = manager();
        for (flow, mbps) in [(one, 1), (two, 1), (one, 1)] {
            limit(&mut manager, flow, mbps);
        }
        while manager.poll().is_some() {}
        for (flow, mbps) in [(four, 1), (two, 2), (one, 2), (three, 1), (three, 2)] {
            limit(&mut manager, flow, mbps);
        }
        let order: Vec<FlowId> = std::iter::from_fn(|| manager.poll()).map(|event| event.flow()).collect();
        assert_eq!(order, [three, four, one, two]);
    }

    #[test]
    fn a_flow_that_has_its_rate_again_is_not_notified_and_takes_no_room_in_the_queue() {
        let (mut manager, [flow, other]) = manager();
        for _ in 0..10 * LEAST_CLEANED {
            limit(&mut manager, flow, 1);
            limit(&mut manager, flow, 4);
        }
        assert!(manager.falls.flows.len() <= LEAST_CLEANED, "{} are queued", manager.falls.flows.len());
        limit(&mut manager, other, 1);
        assert_eq!(manager.poll().map(|event| event.flow()), Some(other));
        assert_eq!(manager.poll(), None);
    }

    #[test]
    fn a_flow_in_the_place_of_one_that_has_ended_is_notified_once() {
        let (mut manager, [flow]) = manager();
        limit(&mut manager, flow, 1);
        assert!(manager.release(CLIENT, flow));
        let next = request(&mut manager);
        let granted = AllocationEvent::Granted { flow: next, rate: Rate::from_mbps(4) };
        assert_eq!((manager.poll(), manager.poll()), (Some(granted), None));
    }
}
