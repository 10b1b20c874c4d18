//! A first-in first-out queue under any AQM. With [`NoEarlyDrop`](crate::NoEarlyDrop) it is drop-tail.

use crate::queue::Waiting;
use crate::ring::Ring;
use crate::{
    Arrival, Backlog, Departure, DropProbability, DropReason, Limit, Queue, QueueStats, Readings, Verdict,
};
use cutline_units::{Instant, Probability, RandomStream, Rate};

/// A ring of packets and the law that guards its entrance.
#[derive(Clone, Debug)]
pub struct Fifo<P, A> {
    limit: Limit,
    ecn: bool,
    aqm: A,
    waiting: Ring<Waiting<P>>,
    backlog: Backlog,
    stats: QueueStats,
}

impl<P: Copy, A: DropProbability> Fifo<P, A> {
    /// An empty queue. With `ecn` a packet that can be marked is marked where it would be dropped early.
    pub fn new(limit: Limit, ecn: bool, aqm: A) -> Self {
        let (waiting, backlog) = (Ring::default(), Backlog::default());
        Self { limit, ecn, aqm, waiting, backlog, stats: QueueStats::default() }
    }

    /// The law.
    pub const fn aqm(&self) -> &A {
        &self.aqm
    }

    /// Reports to the law that packets are reordered, as TSQ does. In this queue they are not.
    pub(crate) fn reorders(&mut self) {
        self.aqm.reorders();
    }

    /// Returns the number of packets for which there is memory.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.waiting.room()
    }

    /// Gives memory back: leaves room for half as many packets more as wait now.
    pub fn give_back(&mut self) {
        self.waiting.give_back();
    }

    #[inline]
    fn judge(&mut self, now: Instant, arrival: Arrival, random: &mut RandomStream) -> Verdict {
        let p = self.aqm.arrive(now, arrival, self.backlog);
        if !self.limit.admits(self.backlog, arrival.size) {
            return Verdict::Drop(DropReason::Overflow);
        }
        let hit = random.chance(p);
        Verdict::from_hit(hit, hit && self.ecn && arrival.ecn_capable && self.aqm.may_mark())
    }
}

impl<P: Copy, A: DropProbability> Queue<P> for Fifo<P, A> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        self.aqm.advance(now, self.backlog);
        let verdict = self.judge(now, arrival, random);
        self.aqm.judged(now, arrival, verdict);
        self.stats.count_arrival(verdict, arrival.size);
        if !matches!(verdict, Verdict::Drop(_)) {
            self.waiting.push(Waiting { packet, size: arrival.size, arrived: now });
            self.backlog.add(arrival.size);
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.aqm.advance(now, self.backlog);
        let departure = self.waiting.pop()?.leave();
        self.backlog.remove(departure.size);
        self.aqm.departed(now, departure.size, departure.arrived, self.backlog);
        self.stats.dequeued.add(departure.size);
        Some(departure)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn probability(&self) -> Option<Probability> {
        self.aqm.probability()
    }

    fn readings(&self) -> Readings {
        self.aqm.readings()
    }

    fn advance(&mut self, now: Instant) {
        self.aqm.advance(now, self.backlog);
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.aqm.advance(now, self.backlog);
        self.aqm.set_rate(now, rate);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        while let Some(departure) = self.waiting.pop() {
            self.stats.flushed.add(departure.size);
            discard(departure.packet);
        }
        self.backlog = Backlog::default();
        self.aqm.reset(now);
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
