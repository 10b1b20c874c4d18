//! FQ-PIE: a PIE queue for every flow, served in turn; new flows are served first.
//!
//! Source: Linux's `fq_pie`, after M. Ramakrishnan, G. Cantarella, M. Tahiliani, "FQ-PIE queue discipline in the Linux kernel", IEEE LCN
//! Symposium 2019; PIE by RFC 8033, the turns by RFC 8290 section 4. Linux's behaviour is the default, as in `pie.rs`.
//!
//! ```text
//! arrival:    bucket = hash(flow, perturbation); its PIE decides, by the delay and backlog of the bucket alone
//! departure:  the bucket whose turn it is, as in FQ-CoDel
//! too full:   the newcomer is dropped
//! ```
//!
//! Drops are at arrival and by probability, so a bucket that grows fast is late to react; but a packet that has waited is never
//! dropped. Each bucket's probability is that of its own delay: a flow that keeps its queue short is never hit.
//!
//! Differences from Linux: the limit is that of the queue's description (Linux: 10240 packets), there is none on memory (Linux: 32 MB),
//! and a bucket's updates are taken when it is used next, which gives the same probabilities.
//!
//! # Validation
//!
//! - Each flow has a PIE: `a_flow_that_keeps_short_is_not_hit`.
//! - Turns: `flows_get_the_same_bytes`, and the tests of FQ-CoDel, which has the same ones (`turns.rs`).
//! - Against Linux's own, in a virtual machine: `docs/validation/linux.md`.

use crate::buckets::FlowHash;
use crate::pie::PieParams;
use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::turns::Turns;
use crate::{
    Aqm as _, Arrival, Backlog, Departure, Discipline, DropProbability, DropReason, Limit, Pie, Queue,
    QueueStats, Verdict,
};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Instant, RandomStream, Rate};

/// Parameters of FQ-PIE.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct FqPieParams {
    /// PIE's own, for each flow.
    #[group]
    pub pie: PieParams,
    /// Bytes that a flow may send in its turn.
    #[param(default = 1514, range = (1, 1_000_000), unit = "B", source = "Linux: the MTU and the Ethernet header")]
    pub quantum: u64,
    /// The number of buckets that flows are hashed into.
    #[param(default = 1024, range = (1, 65_536), source = "Linux")]
    pub flows: u64,
}

/// The flows of one hash.
#[derive(Clone, Debug)]
struct Bucket {
    list: List,
    law: Pie,
}

/// FQ-PIE.
#[derive(Clone, Debug)]
pub struct FqPie<P> {
    hash: FlowHash,
    buckets: Vec<Bucket>,
    turns: Turns,
    pool: Pool<P>,
    core: QueueCore<P>,
}

impl<P: Copy> Discipline for FqPie<P> {
    type Params = FqPieParams;
    const NAME: &'static str = "fq-pie";
    const TITLE: &'static str = "FQ-PIE";
    const SOURCE: &'static str = "Ramakrishnan, Cantarella, Tahiliani 2019; RFC 8033, RFC 8290";

    fn build(params: &FqPieParams, limit: Limit, ecn: bool, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let flows = params.flows as usize;
        let bucket = Bucket { list: List::EMPTY, law: Pie::build(&params.pie, rate)? };
        Ok(Self {
            hash: FlowHash::new(params.flows as u32),
            buckets: vec![bucket; flows],
            turns: Turns::new(flows, params.quantum, true),
            pool: Pool::new(),
            core: QueueCore::new(limit, ecn),
        })
    }
}

impl<P: Copy> Queue<P> for FqPie<P> {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        let Arrival { size, ecn_capable, flow, .. } = arrival;
        let index = self.hash.bucket(flow, random);
        let Bucket { list, law } = &mut self.buckets[index];
        law.advance(now, list.backlog);
        let p = law.arrive(now, arrival, list.backlog);
        let verdict = if self.core.admits(size) {
            let hit = random.chance(p);
            Verdict::from_hit(hit, hit && self.core.ecn && ecn_capable && law.may_mark())
        } else {
            Verdict::Drop(DropReason::Overflow)
        };
        law.judged(now, arrival, verdict);
        if !matches!(verdict, Verdict::Drop(_)) {
            self.pool.push(list, Held { packet, size, arrived: now, may_mark: false });
            self.turns.arrived(index);
        }
        self.core.count_arrival(verdict, size)
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        loop {
            let next = self.turns.next()?;
            let Bucket { list, law } = &mut self.buckets[next.flow as usize];
            law.advance(now, list.backlog);
            if let Some(held) = self.pool.pop(list) {
                law.departed(now, held.size, held.arrived, list.backlog);
                self.turns.sent(next, held.size);
                return Some(self.core.count_departure(held.leave(false)));
            }
            self.turns.was_empty(next);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.core.backlog
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        for Bucket { list, law } in &mut self.buckets {
            law.advance(now, list.backlog);
            law.set_rate(now, rate);
        }
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        for Bucket { list, law } in &mut self.buckets {
            self.pool.drain(list, |held| self.core.count_flushed(held, discard));
            *list = List::EMPTY;
            law.reset(now);
        }
        self.turns.reset();
        self.hash.reset();
    }

    fn stats(&self) -> &QueueStats {
        &self.core.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Duration, HintBits, Streams};

    fn fq() -> FqPie<u32> {
        FqPie::build(&FqPieParams::default(), Limit::Packets(10_000), false, Rate::from_mbps(8)).unwrap()
    }

    fn arrival(flow: u32, size: u32) -> Arrival {
        Arrival { flow, ..Arrival::new(size, HintBits::PAPER.largest()) }
    }

    #[test]
    fn a_flow_that_keeps_short_is_not_hit() {
        let (mut fq, mut random) = (fq(), Streams::new(1).stream("queue", "drop"));
        let mut dropped = [0; 3];
        // 1 ms a packet: flow 1 sends the link's rate, flow 2 a tenth of it.
        for ms in 0..20_000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            for flow in [1, 2].into_iter().take(if ms % 10 == 0 { 2 } else { 1 }) {
                let verdict = fq.enqueue(now, arrival(flow, 1000), flow, &mut random);
                dropped[flow as usize] += u32::from(matches!(verdict, Verdict::Drop(_)));
            }
            fq.dequeue(now);
        }
        assert_eq!(dropped[2], 0);
        assert!((1000..3000).contains(&dropped[1]), "a tenth of 20,000: {}", dropped[1]);
        assert!(fq.backlog().packets < 60, "{:?}", fq.backlog());
    }

    #[test]
    fn flows_get_the_same_bytes() {
        let (mut fq, mut random) = (fq(), Streams::new(1).stream("queue", "drop"));
        for (flow, size) in [(0, 1500), (1, 500)] {
            (0..300).for_each(|_| {
                fq.enqueue(Instant::ZERO, arrival(flow, size), flow, &mut random);
            });
        }
        let mut sent = [0_u64; 2];
        for _ in 0..100 {
            let departure = fq.dequeue(Instant::ZERO).unwrap();
            sent[departure.packet as usize] += u64::from(departure.size);
        }
        assert!(sent[0].abs_diff(sent[1]) <= 1514 + 1500, "{sent:?}");
    }
}
