//! The four queues, the order in which they are served, and the places of flows in them.
//!
//! Sparse packets are served first. A dummy in the quick queue takes the place of each, and the flow has no other sparse
//! packet until the dummy and all of its packets have left. The other queues have credits in bytes. If all that have
//! packets are out of credit, each gets its number of flows, doubled until one of them may send.

use crate::Backlog;
use crate::pool::{Held, List, Pool};
use cutline_units::Instant;

/// One of the four queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Packets of flows without another packet here.
    Sparse,
    /// Flows with short queues.
    Quick,
    /// Flows that respond to CE and to drops.
    Bulk,
    /// Flows that do not respond.
    Hog,
}

/// The queues with a share of the link, in the order of service.
const SHARED: [Class; 3] = [Class::Quick, Class::Bulk, Class::Hog];
/// The most doublings of credits: one flow gets more than the largest packet.
const DOUBLINGS: u32 = 32;

impl Class {
    /// Returns the queue of a flow that was directed here, for its effective sojourn time. The targets are those of SCE and
    /// of CE. A flow goes up below a target, and down beyond twice a target.
    fn directed(self, sojourn: f64, (sce, ce): (f64, f64)) -> Self {
        let mut class = self;
        if class == Self::Hog && sojourn < ce {
            class = Self::Bulk;
        }
        if class == Self::Bulk && sojourn < sce {
            class = Self::Quick;
        }
        if class == Self::Quick && sojourn > 2.0 * sce {
            class = Self::Bulk;
        }
        if class == Self::Bulk && sojourn > 2.0 * ce {
            class = Self::Hog;
        }
        class
    }
}

/// A packet, or a dummy, which is none.
#[derive(Clone, Copy, Debug)]
struct Entry<P> {
    flow: u32,
    is_scalable: bool,
    packet: Option<P>,
}

/// A packet that has left its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken<P> {
    pub(super) class: Class,
    pub(super) flow: u32,
    pub(super) is_scalable: bool,
    pub(super) held: Held<P>,
}

/// A queue.
#[derive(Clone, Copy, Debug)]
struct Member {
    list: List,
    /// Packets without dummies.
    waiting: Backlog,
    /// Flows that have packets here.
    flows: u32,
    /// Bytes that may be sent. Below 0 the queue is blocked.
    credit: i64,
    /// Sojourn time of the last packet that left, less the jitter, s.
    sojourn: f64,
}

impl Member {
    const EMPTY: Self = Self {
        list: List::EMPTY,
        waiting: Backlog { packets: 0, bytes: 0 },
        flows: 0,
        credit: 0,
        sojourn: 0.0,
    };

    fn has_packets(&self) -> bool {
        self.waiting.packets > 0
    }

    /// Returns the credit after an addition of the number of flows, doubled so many times.
    fn renewed(&self, doublings: u32) -> i64 {
        self.credit + (i64::from(self.flows) << doublings)
    }
}

/// Places of a flow.
#[derive(Clone, Copy, Debug)]
struct Occupant {
    /// Packets in each queue, without dummies.
    waiting: [Backlog; 4],
    has_dummy: bool,
    /// Queue of the packets that are not sparse.
    direction: Class,
}

impl Occupant {
    const ABSENT: Self =
        Self { waiting: [Backlog { packets: 0, bytes: 0 }; 4], has_dummy: false, direction: Class::Quick };

    fn has_packets(&self) -> bool {
        self.waiting.iter().any(|backlog| backlog.packets > 0)
    }
}

/// The four queues.
#[derive(Clone, Debug)]
pub(super) struct Tetra<P> {
    members: [Member; 4],
    flows: Vec<Occupant>,
    pool: Pool<Entry<P>>,
}

impl<P: Copy> Tetra<P> {
    /// Empty queues for so many flows.
    pub(super) fn new(flows: usize) -> Self {
        Self { members: [Member::EMPTY; 4], flows: vec![Occupant::ABSENT; flows], pool: Pool::new() }
    }

    /// Stores a packet: in the sparse queue if its flow has nothing here, else in the queue to which the flow is directed.
    pub(super) fn push(&mut self, flow: u32, is_scalable: bool, held: Held<P>) {
        let occupant = &mut self.flows[flow as usize];
        let is_sparse = !occupant.has_packets() && !occupant.has_dummy;
        let class = if is_sparse { Class::Sparse } else { occupant.direction };
        if is_sparse {
            occupant.has_dummy = true;
            self.store(Class::Quick, 0, held.arrived, Entry { flow, is_scalable, packet: None }, false);
        }
        let packet = Some(held.packet);
        self.store(class, held.size, held.arrived, Entry { flow, is_scalable, packet }, held.may_mark);
    }

    fn store(&mut self, class: Class, size: u32, arrived: Instant, entry: Entry<P>, may_mark: bool) {
        let member = &mut self.members[class as usize];
        if entry.packet.is_some() {
            let own = &mut self.flows[entry.flow as usize].waiting[class as usize];
            member.flows += u32::from(own.packets == 0);
            own.add(size);
            member.waiting.add(size);
        }
        self.pool.push(&mut member.list, Held { packet: entry, size, arrived, may_mark });
    }

    /// Takes the next packet.
    pub(super) fn take(&mut self) -> Option<Taken<P>> {
        if let Some(sparse) = self.pop(Class::Sparse) {
            return Some(sparse);
        }
        self.renew_credits();
        SHARED.into_iter().find_map(|class| {
            let may_send = self.members[class as usize].credit >= 0;
            if may_send { self.pop(class) } else { None }
        })
    }

    /// Takes the first packet of a queue, and the dummies in front of it.
    fn pop(&mut self, class: Class) -> Option<Taken<P>> {
        let member = &mut self.members[class as usize];
        while let Some(held) = self.pool.pop(&mut member.list) {
            let Entry { flow, is_scalable, packet } = held.packet;
            let occupant = &mut self.flows[flow as usize];
            let Some(packet) = packet else {
                occupant.has_dummy = false;
                continue;
            };
            let own = &mut occupant.waiting[class as usize];
            own.remove(held.size);
            member.flows -= u32::from(own.packets == 0);
            member.waiting.remove(held.size);
            if class != Class::Sparse {
                member.credit -= i64::from(held.size);
            }
            let Held { size, arrived, may_mark, .. } = held;
            return Some(Taken { class, flow, is_scalable, held: Held { packet, size, arrived, may_mark } });
        }
        None
    }

    /// Begins a round if all queues with packets are blocked. The others keep neither debt nor credit.
    fn renew_credits(&mut self) {
        let shared = &mut self.members[Class::Quick as usize..];
        let mut with_packets = shared.iter().filter(|member| member.has_packets()).peekable();
        if with_packets.peek().is_none() || with_packets.any(|member| member.credit >= 0) {
            return;
        }
        let unblocks = |doublings: &u32| {
            shared.iter().any(|member| member.has_packets() && member.renewed(*doublings) >= 0)
        };
        let doublings = (0..DOUBLINGS).find(unblocks).unwrap_or(DOUBLINGS);
        for member in shared {
            member.credit = if member.has_packets() { member.renewed(doublings) } else { 0 };
        }
    }

    /// Removes the dummies, when no packet waits.
    pub(super) fn forget_dummies(&mut self) {
        debug_assert!(self.members.iter().all(|member| !member.has_packets()), "packets would be lost");
        let quick = &mut self.members[Class::Quick as usize].list;
        self.pool.drain(quick, |held| self.flows[held.packet.flow as usize].has_dummy = false);
    }

    /// Returns whether a flow has packets here.
    pub(super) fn has_packets(&self, flow: u32) -> bool {
        self.flows[flow as usize].has_packets()
    }

    /// Records the sojourn time of a packet that has left a queue, s.
    pub(super) fn record_sojourn(&mut self, class: Class, sojourn: f64) {
        self.members[class as usize].sojourn = sojourn;
    }

    /// Returns the effective sojourn time of a flow, s: in each queue the sojourn time, times the flow's bytes over those of a
    /// fair share.
    pub(super) fn effective_sojourn(&self, flow: u32) -> f64 {
        let own = &self.flows[flow as usize].waiting;
        let of = |class: Class| {
            let (member, bytes) = (&self.members[class as usize], own[class as usize].bytes);
            if bytes == 0 {
                return 0.0;
            }
            member.sojourn * bytes as f64 * f64::from(member.flows) / member.waiting.bytes as f64
        };
        SHARED.into_iter().map(of).sum()
    }

    /// Chooses the queue of the flow's next packets by its effective sojourn time and the targets of SCE and CE, s.
    pub(super) fn direct(&mut self, flow: u32, sojourn: f64, targets: (f64, f64)) {
        let direction = &mut self.flows[flow as usize].direction;
        *direction = direction.directed(sojourn, targets);
    }

    /// Hands every packet to `each`, and forgets all flows.
    pub(super) fn reset(&mut self, mut each: impl FnMut(Held<P>)) {
        for member in &mut self.members {
            self.pool.drain(&mut member.list, |held| {
                let Held { size, arrived, may_mark, .. } = held;
                if let Some(packet) = held.packet.packet {
                    each(Held { packet, size, arrived, may_mark });
                }
            });
            *member = Member::EMPTY;
        }
        self.flows.fill(Occupant::ABSENT);
    }

    /// Number of flows that are directed to a queue.
    #[cfg(test)]
    pub(super) fn directed_to(&self, class: Class) -> usize {
        self.flows.iter().filter(|flow| flow.direction == class).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: (f64, f64) = (0.005, 0.025);

    /// Queues whose flows 0 and so on are directed to these queues.
    fn queues(directions: &[Class]) -> Tetra<u32> {
        let mut queues = Tetra::new(directions.len());
        for (flow, direction) in queues.flows.iter_mut().zip(directions) {
            flow.direction = *direction;
        }
        queues
    }

    fn arrive(queues: &mut Tetra<u32>, flow: u32, packets: u32) {
        for packet in 0..packets {
            queues.push(flow, false, Held { packet, size: 1000, arrived: Instant::ZERO, may_mark: false });
        }
    }

    fn next(queues: &mut Tetra<u32>) -> (Class, u32) {
        let taken = queues.take().expect("a packet waits");
        (taken.class, taken.flow)
    }

    #[test]
    fn sparse_packets_are_first_and_a_flow_has_one_until_its_dummy_has_left() {
        let mut queues = queues(&[Class::Bulk, Class::Quick]);
        arrive(&mut queues, 0, 3);
        assert_eq!(next(&mut queues), (Class::Sparse, 0));
        arrive(&mut queues, 1, 1);
        assert_eq!(next(&mut queues), (Class::Sparse, 1), "before the packets of flow 0");
        // The dummy of flow 1 is in the quick queue, and its packet is behind it.
        arrive(&mut queues, 1, 1);
        assert_eq!(next(&mut queues), (Class::Quick, 1));
        arrive(&mut queues, 1, 1);
        assert_eq!(next(&mut queues), (Class::Sparse, 1), "the dummy has left");
        assert_eq!([0; 2].map(|_| next(&mut queues)), [(Class::Bulk, 0); 2]);
        assert!(queues.take().is_none());
    }

    #[test]
    fn dummies_of_an_empty_queue_can_be_forgotten() {
        let mut queues = queues(&[Class::Quick]);
        arrive(&mut queues, 0, 1);
        assert_eq!(next(&mut queues), (Class::Sparse, 0));
        queues.forget_dummies();
        arrive(&mut queues, 0, 1);
        assert_eq!(next(&mut queues), (Class::Sparse, 0));
    }

    #[test]
    fn queues_get_bytes_in_proportion_to_their_flows() {
        let mut queues = queues(&[Class::Bulk, Class::Bulk, Class::Bulk, Class::Hog]);
        (0..4).for_each(|flow| arrive(&mut queues, flow, 300));
        (0..4).for_each(|flow| assert_eq!(next(&mut queues), (Class::Sparse, flow)));
        let bulk = (0..400).filter(|_| next(&mut queues).0 == Class::Bulk).count();
        assert!((297..=303).contains(&bulk), "{bulk} of 400");
    }

    #[test]
    fn effective_sojourn_is_the_wait_times_the_part_of_a_fair_share() {
        let mut queues = queues(&[Class::Bulk, Class::Bulk]);
        arrive(&mut queues, 0, 31);
        arrive(&mut queues, 1, 11);
        (0..2).for_each(|flow| assert_eq!(next(&mut queues), (Class::Sparse, flow)));
        queues.record_sojourn(Class::Bulk, 0.04);
        // A fair share is 20 packets of 40: 40 ms x 30 / 20 and x 10 / 20.
        let found = [0, 1].map(|flow| queues.effective_sojourn(flow));
        for (found, expected) in found.into_iter().zip([0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
    }

    #[test]
    fn flows_change_their_queue_with_hysteresis() {
        let expected = [
            (Class::Quick, 0.0099, Class::Quick),
            (Class::Quick, 0.0101, Class::Bulk),
            (Class::Bulk, 0.0051, Class::Bulk),
            (Class::Bulk, 0.0049, Class::Quick),
            (Class::Bulk, 0.0499, Class::Bulk),
            (Class::Bulk, 0.0501, Class::Hog),
            (Class::Hog, 0.0251, Class::Hog),
            (Class::Hog, 0.0249, Class::Bulk),
            (Class::Hog, 0.0, Class::Quick),
            (Class::Quick, 0.0501, Class::Hog),
        ];
        for (from, sojourn, to) in expected {
            assert_eq!(from.directed(sojourn, TARGETS), to, "{from:?} at {sojourn} s");
        }
    }
}
