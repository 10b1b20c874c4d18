//! DRR, deficit round robin: flows, or hints, are served in turn, by bytes; the usual approximation of weighted fair queueing.
//!
//! Source: M. Shreedhar, G. Varghese, "Efficient fair queueing using deficit round robin", SIGCOMM 1995, figure 2;
//! buffer stealing: section 3.4 there, after P. McKenney, "Stochastic fairness queueing", INFOCOM 1990.
//!
//! ```text
//! the first active queue's turn:  deficit += quantum weight
//!   while its head is no larger than the deficit: send it, deficit -= size
//!   empty: deficit = 0, and it is no longer active; else to the end of the active ones
//! ```
//!
//! **Weights** belong to hints. A queue has the weight of the packet that makes it active. By hint, with a class for each
//! hint, this is weighted fair queueing between the hints; by flow, it is weighted fair queueing between the flows, each
//! with the weight of its hint. Queues that are never empty share the link in proportion to their weights, within a
//! quantum and a packet each (`shares_follow_the_weights`).
//!
//! Worked numbers: with a quantum of 500 B, packets of 200 B leave by 2, 3, 2, 3 a round (deficits 500, 600, 500,
//! ...), as in the paper's example (`deficits_carry_over`).
//!
//! A full queue sheds the head of the longest list, in bytes, to store the newcomer. There is no early drop, and nothing is
//! marked.
//!
//! # Validation
//!
//! - The paper's example: `deficits_carry_over`; large packets: `a_packet_larger_than_a_quantum_saves_up`.
//! - Shares of queues that are never empty, by flow and by hint, to the round: `shares_follow_the_weights`.
//! - Buffer stealing: `a_full_queue_drops_from_the_longest_flow`.

use crate::buckets::FlowHash;
use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::strict_priority::{LEVELS, class_of};
use crate::{Arrival, Departure, Discipline, DropReason, Limit, Queue, Verdict};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Instant, RandomStream, Rate};
use std::collections::VecDeque;

/// Unit of separation: flows or classes of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum DrrClassifier {
    /// A flow, as far as hashing keeps it apart.
    Flow,
    /// A class of hints.
    Hint,
}

/// Parameters of DRR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct DrrParams {
    /// Unit of separation: each flow or each class of hints has a queue.
    #[param(default = DrrClassifier::Flow, source = "Shreedhar and Varghese 1995")]
    pub by: DrrClassifier,
    /// Bytes that a turn adds to a queue's deficit.
    #[param(
        default = 1500,
        range = (1, 1_000_000),
        unit = "B",
        source = "Shreedhar and Varghese 1995 section 3: at least the largest packet"
    )]
    pub quantum: u64,
    /// Number of queues into which flows are hashed.
    #[param(default = 1024, range = (1, 65_536), source = "as FQ-CoDel's")]
    pub queues: u64,
    /// Number of classes into which hints are divided.
    #[param(default = LEVELS as u64, range = (1, LEVELS as u64), source = "ours: one for each hint of 4 bits")]
    pub classes: u64,
    /// Weight of each hint from 1 to 16: number of quanta in a turn of its class.
    #[param(default = None, range = (1, 1000), source = "off: every queue has the same weight")]
    pub weights: Option<[u64; LEVELS]>,
}

/// One of the queues that take turns.
#[derive(Clone, Copy, Debug)]
struct Member {
    list: List,
    deficit: u64,
    /// Bytes that each turn adds to the deficit.
    quantum: u64,
    /// True if the queue is in the round robin.
    active: bool,
}

/// Deficit round robin.
#[derive(Clone, Debug)]
pub struct Drr<P> {
    by: DrrClassifier,
    /// Bytes that a turn adds to the deficit of a queue, by hint.
    quanta: [u64; LEVELS],
    hash: FlowHash,
    members: Vec<Member>,
    active: VecDeque<u32>,
    /// True if the first active queue has had its quantum in this turn.
    in_turn: bool,
    pool: Pool<P>,
    core: QueueCore<P>,
}

impl Member {
    const EMPTY: Self = Self { list: List::EMPTY, deficit: 0, quantum: 0, active: false };
}

impl<P: Copy> Discipline for Drr<P> {
    type Params = DrrParams;
    const NAME: &'static str = "drr";
    const TITLE: &'static str = "Deficit round robin";
    const SOURCE: &'static str = "Shreedhar, Varghese, SIGCOMM 1995";

    fn build(params: &DrrParams, limit: Limit, ecn: bool, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let members = match params.by {
            DrrClassifier::Flow => params.queues,
            DrrClassifier::Hint => params.classes,
        } as usize;
        Ok(Self {
            by: params.by,
            quanta: params.weights.unwrap_or([1; LEVELS]).map(|weight| params.quantum * weight),
            hash: FlowHash::new(params.queues as u32),
            members: vec![Member::EMPTY; members],
            active: VecDeque::with_capacity(members),
            in_turn: false,
            pool: Pool::new(),
            core: QueueCore::new(limit, ecn),
        })
    }
}

impl<P: Copy> Drr<P> {
    #[inline]
    fn member_of(&mut self, arrival: Arrival, random: &mut RandomStream) -> usize {
        match self.by {
            DrrClassifier::Flow => self.hash.bucket(arrival.flow, random),
            DrrClassifier::Hint => class_of(arrival.hint, self.members.len()),
        }
    }

    /// Ends the turn of the first active queue.
    fn end_turn(&mut self) {
        self.in_turn = false;
        let Some(index) = self.active.pop_front() else { return };
        let member = &mut self.members[index as usize];
        if member.list.is_empty() {
            (member.deficit, member.active) = (0, false);
        } else {
            self.active.push_back(index);
        }
    }

    /// Sheds from the head of the longest list until the limit holds. An emptied list stays active until its turn.
    #[cold]
    fn make_room(&mut self) {
        while !self.core.limit.holds(self.core.backlog) {
            let longest = self.members.iter_mut().max_by_key(|member| member.list.backlog.bytes);
            let member = longest.expect("there is at least one member");
            if let Some(held) = self.pool.pop(&mut member.list) {
                self.core.count_shed(held, DropReason::Overflow);
            }
        }
    }
}

impl<P: Copy> Queue<P> for Drr<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        let (index, size) = (self.member_of(arrival, random), arrival.size);
        let member = &mut self.members[index];
        if !std::mem::replace(&mut member.active, true) {
            member.quantum = self.quanta[arrival.hint.lane().min(LEVELS - 1)];
            self.active.push_back(index as u32);
        }
        self.pool.push(&mut member.list, Held { packet, size, arrived: now, may_mark: false });
        let verdict = self.core.count_arrival(Verdict::Pass, size);
        if !self.core.limit.holds(self.core.backlog) {
            self.make_room();
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant) -> Option<Departure<P>> {
        loop {
            let index = *self.active.front()?;
            let member = &mut self.members[index as usize];
            if !std::mem::replace(&mut self.in_turn, true) {
                member.deficit += member.quantum;
            }
            if self.pool.head(&member.list).is_some_and(|held| u64::from(held.size) <= member.deficit) {
                let held = self.pool.pop(&mut member.list)?;
                member.deficit -= u64::from(held.size);
                if member.list.is_empty() {
                    self.end_turn();
                }
                return Some(self.core.count_departure(held.leave(false)));
            }
            self.end_turn();
        }
    }

    forward_to_core!(P);

    fn reset(&mut self, _now: Instant, discard: &mut dyn FnMut(P)) {
        for member in &mut self.members {
            self.pool.drain(&mut member.list, |held| self.core.count_flushed(held, discard));
            *member = Member::EMPTY;
        }
        self.active.clear();
        self.in_turn = false;
        self.hash.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Hint, Streams};

    fn drr(params: DrrParams, limit: u32) -> Drr<u32> {
        Drr::build(&params, Limit::Packets(limit), false, Rate::from_mbps(8)).unwrap()
    }

    /// Packets are called by their flow, which is their level too.
    fn arrive(drr: &mut Drr<u32>, flow: u32, size: u32) {
        let mut random = Streams::new(1).stream("queue", "drop");
        let arrival = Arrival { flow, ..Arrival::new(size, Hint::from_level(flow as u16)) };
        drr.enqueue(Instant::ZERO, arrival, flow, &mut random);
    }

    fn order(drr: &mut Drr<u32>) -> Vec<u32> {
        std::iter::from_fn(|| drr.dequeue(Instant::ZERO)).map(|departure| departure.packet).collect()
    }

    #[test]
    fn deficits_carry_over() {
        let mut drr = drr(DrrParams { quantum: 500, ..DrrParams::default() }, 100);
        (0..10).for_each(|_| arrive(&mut drr, 1, 200));
        (0..4).for_each(|_| arrive(&mut drr, 2, 500));
        assert_eq!(order(&mut drr), [1, 1, 2, 1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 2]);
    }

    #[test]
    fn a_packet_larger_than_a_quantum_saves_up() {
        let mut drr = drr(DrrParams { quantum: 500, ..DrrParams::default() }, 100);
        (0..2).for_each(|_| arrive(&mut drr, 1, 1400));
        (0..4).for_each(|_| arrive(&mut drr, 2, 500));
        assert_eq!(order(&mut drr), [2, 2, 1, 2, 2, 1]);
    }

    #[test]
    fn an_idle_queue_saves_nothing() {
        let mut drr = drr(DrrParams::default(), 100);
        arrive(&mut drr, 1, 100);
        assert_eq!(order(&mut drr), [1]);
        assert!(drr.active.is_empty() && drr.members.iter().all(|member| member.deficit == 0));
    }

    #[test]
    fn hints_take_turns_at_any_rates_of_their_flows() {
        let mut drr = drr(DrrParams { by: DrrClassifier::Hint, classes: 2, ..DrrParams::default() }, 100);
        for flow in [9, 10, 11, 12, 1, 8] {
            arrive(&mut drr, flow, 1500);
        }
        assert_eq!(order(&mut drr), [9, 1, 10, 8, 11, 12]);
    }

    /// Returns the bytes that each of the flows 1 to 3 has sent after `packets` packets; all are always
    /// backlogged.
    fn shares(by: DrrClassifier, weights: [u64; LEVELS], packets: usize) -> [u64; 3] {
        let sizes = [1500, 400, 1000];
        let mut drr = drr(DrrParams { by, weights: Some(weights), ..DrrParams::default() }, 1000);
        for (flow, size) in (1..).zip(sizes) {
            (0..20).for_each(|_| arrive(&mut drr, flow, size));
        }
        let mut sent = [0; 3];
        for _ in 0..packets {
            let departure = drr.dequeue(Instant::ZERO).expect("all of them wait");
            sent[departure.packet as usize - 1] += u64::from(departure.size);
            arrive(&mut drr, departure.packet, departure.size);
        }
        sent
    }

    #[test]
    fn shares_follow_the_weights() {
        let mut weights = [1; LEVELS];
        (weights[0], weights[1], weights[2]) = (4, 2, 7);
        for by in [DrrClassifier::Flow, DrrClassifier::Hint] {
            let sent = shares(by, weights, 20_000);
            // Shreedhar and Varghese, section 4: per quantum of its turn, they differ by a turn and a packet.
            let rounds = [sent[0] / (4 * 1500), sent[1] / (2 * 1500), sent[2] / (7 * 1500)];
            assert!(rounds[0] > 900 && rounds.iter().all(|n| n.abs_diff(rounds[0]) <= 1), "{rounds:?}");
        }
        let sent = shares(DrrClassifier::Flow, [5; LEVELS], 20_000);
        assert!(sent.iter().all(|bytes| bytes.abs_diff(sent[0]) <= 5 * 1500 + 1500), "{sent:?}");
    }

    #[test]
    fn a_queue_has_the_weight_of_the_packet_that_makes_it_active() {
        let mut weights = [1; LEVELS];
        weights[1] = 2;
        let mut drr = drr(DrrParams { weights: Some(weights), ..DrrParams::default() }, 100);
        (0..4).for_each(|_| arrive(&mut drr, 1, 1500));
        (0..4).for_each(|_| arrive(&mut drr, 2, 1500));
        assert_eq!(order(&mut drr), [1, 2, 2, 1, 2, 2, 1, 1]);
    }

    #[test]
    fn a_full_queue_drops_from_the_longest_flow() {
        let mut drr = drr(DrrParams::default(), 4);
        (0..4).for_each(|_| arrive(&mut drr, 1, 1000));
        arrive(&mut drr, 2, 1000);
        assert_eq!(drr.shed().map(|shed| shed.packet), Some(1));
        assert_eq!(order(&mut drr), [1, 2, 1, 1]);
    }
}
