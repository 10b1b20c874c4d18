//! TSQ's lanes and charge inside a discipline: reserved packets first, all others in TSQ's order and at TSQ's price.

use crate::support::{Always, Link};
use cutline_aqm::{
    Arrival, Backlog, ChargedLanes, Departure, DropReason, Entry, Held, Limit, List, Pool, Queue, QueueCore,
    QueueStats, Shed, Tsq, TsqParams, Verdict,
};
use cutline_units::{Duration, Hint, Instant, Probability, RandomStream, Rate};
use proptest::prelude::*;

const RATE: Rate = Rate::from_mbps(15);
const LIMIT: Limit = Limit::Packets(400);
/// The flow that has reserved.
const RESERVED: u32 = 99;

/// Packets of the reserved flow leave first and are never dropped early. The others are drawn for with one probability,
/// charged as TSQ does.
#[derive(Clone, Debug)]
struct ReservedFirst {
    p: Probability,
    pool: Pool<u32>,
    reserved: List,
    others: ChargedLanes<u32>,
    core: QueueCore<u32>,
}

impl ReservedFirst {
    fn new(p: f64) -> Self {
        Self {
            p: Probability::new(p).expect("the test's p is a probability"),
            pool: Pool::new(),
            reserved: List::EMPTY,
            others: ChargedLanes::new(&TsqParams::default(), RATE)
                .expect("the paper's parameters are allowed"),
            core: QueueCore::new(LIMIT, false),
        }
    }
}

impl Queue<u32> for ReservedFirst {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: u32, random: &mut RandomStream) -> Verdict {
        let size = arrival.size;
        if !self.core.admits(size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        if arrival.flow == RESERVED {
            let held = Held { packet, size, arrived: now, may_mark: false };
            self.pool.push(&mut self.reserved, held);
            return self.core.count_arrival(Verdict::Pass, size);
        }
        let point = self.others.insertion_point(now, arrival.hint, arrival.waited);
        if self.others.hits(self.p, &point, random) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Early), size);
        }
        if !self.others.push(now, &point, size, packet) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        self.core.count_arrival(Verdict::Pass, size)
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<u32>> {
        let departure = if let Some(held) = self.pool.pop(&mut self.reserved) {
            // The link is busy with it, which is part of q and q' of the others.
            self.others.serve(now, held.size);
            held.leave(false)
        } else {
            let Entry { packet, size, arrived, .. } = self.others.pop(now)?;
            Departure { packet, size, arrived, marked: false }
        };
        Some(self.core.count_departure(departure))
    }

    fn shed(&mut self) -> Option<Shed<u32>> {
        self.core.next_shed()
    }

    fn backlog(&self) -> Backlog {
        self.core.backlog
    }

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.others.set_rate(rate);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(u32)) {
        let Self { core, others, pool, reserved, .. } = self;
        pool.drain(reserved, |held| core.count_flushed(held, discard));
        others.reset(now, |Entry { packet, size, arrived, .. }| {
            core.count_flushed(Held { packet, size, arrived, may_mark: false }, discard);
        });
    }

    fn stats(&self) -> &QueueStats {
        &self.core.stats
    }
}

fn packet_time() -> Duration {
    RATE.transmission_time(cutline_units::Bytes::new(1000))
}

proptest! {
    /// The pieces are TSQ: with nothing reserved, verdicts, order and draws are those of `Tsq` over the same p.
    #[test]
    fn without_reservations_it_is_tsq(
        traffic in proptest::collection::vec((40..=1500_u32, 1..=16_u16, 0..15_u64), 1..400),
        p in 0.0..0.3,
    ) {
        let tsq = Tsq::new(&TsqParams::default(), LIMIT, false, RATE, Always(p)).expect("they are allowed");
        let (mut pieces, mut whole) = (Link::new(ReservedFirst::new(p), RATE), Link::new(tsq, RATE));
        for (size, hint, tenths) in traffic {
            let arrival = Arrival { flow: 1, ..Arrival::new(size, Hint::from_level(hint)) };
            prop_assert_eq!(pieces.offer(arrival), whole.offer(arrival));
            pieces.wait(packet_time() * tenths / 10);
            whole.wait(packet_time() * tenths / 10);
        }
        pieces.drain();
        whole.drain();
        prop_assert_eq!(pieces.sent, whole.sent);
        prop_assert_eq!(pieces.random, whole.random);
        prop_assert_eq!(pieces.queue.stats(), whole.queue.stats());
    }
}

#[test]
fn reserved_packets_leave_first_and_the_others_in_the_order_of_tsq() {
    let mut link = Link::new(ReservedFirst::new(0.0), RATE);
    let hints = [16, 16, 16, 1];
    for hint in hints {
        link.offer(Arrival { flow: 1, ..Arrival::new(1000, Hint::from_level(hint)) });
    }
    link.offer(Arrival { flow: RESERVED, ..Arrival::new(1000, Hint::from_level(16)) });
    link.drain();
    let sent: Vec<u32> = link.sent.iter().map(|(_, departure)| departure.packet).collect();
    assert_eq!(sent, [0, 4, 3, 1, 2], "in service, reserved, hint 1, and the rest");
}

#[test]
fn packets_that_overtake_are_charged_in_a_discipline_too() {
    let mut link = Link::new(ReservedFirst::new(0.01), RATE);
    let (mut packets, mut dropped, mut expected) = ([0_u32; 3], [0_u32; 3], 0.0);
    for i in 0..60_000_u32 {
        let (kind, flow, hint) = match i % 10 {
            0 => (0, RESERVED, 16),
            3 => (1, 1, 1),
            _ => (2, 2, 16),
        };
        while link.queue.backlog().packets < 60 {
            link.queue.p = Probability::ZERO;
            link.offer(Arrival { flow: 2, ..Arrival::new(1000, Hint::from_level(16)) });
            link.queue.p = Probability::clamped(0.01);
        }
        if kind == 1 {
            let point = link.queue.others.insertion_point(link.now, Hint::LEAST_DELAY, Duration::ZERO);
            expected += link.queue.others.p_prime(link.queue.p, &point).get();
        }
        let verdict = link.offer(Arrival { flow, ..Arrival::new(1000, Hint::from_level(hint)) });
        packets[kind] += 1;
        dropped[kind] += u32::from(verdict == Verdict::Drop(DropReason::Early));
        link.wait(packet_time());
    }
    assert_eq!(dropped[0], 0, "reserved packets are never drawn for");
    let [_, jumping, bulk] = [0, 1, 2].map(|kind| f64::from(dropped[kind]) / f64::from(packets[kind]));
    assert!((bulk - 0.01).abs() < 0.003, "the largest hint pays p: {bulk}");
    assert!(jumping > 2.0 * bulk, "{jumping} against {bulk}");
    // Five standard deviations, which are at most the root of the expected number.
    let found = f64::from(dropped[1]);
    assert!(
        (found - expected).abs() < 5.0 * f64::sqrt(expected),
        "{found} drops, {expected} expected (TSQ eq. 5)"
    );
}

#[test]
fn a_reset_empties_both() {
    let mut link = Link::new(ReservedFirst::new(0.0), RATE);
    for flow in [1, RESERVED, 1, RESERVED] {
        link.offer(Arrival { flow, ..Arrival::new(1000, Hint::from_level(5)) });
    }
    let mut flushed = Vec::new();
    link.queue.reset(link.now, &mut |packet| flushed.push(packet));
    flushed.sort_unstable();
    assert_eq!((flushed, link.queue.backlog()), (vec![1, 2, 3], Backlog::default()));

    assert_eq!(link.queue.dequeue(link.now), None);
}
