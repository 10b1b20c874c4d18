//! TSQ on lanes against TSQ on the paper's plain sorted list: the same operations, the same order, the same q',
//! the same verdicts from the same random numbers.

#[path = "../benches/peers/sorted_list.rs"]
mod sorted_list;
use crate::support::{Link, Wave};
use cutline_aqm::tsq::{charge, weight};
use cutline_aqm::{
    Arrival, Backlog, Departure, DrainRate, DropProbability, DropReason, Entry, Limit, Offer, Queue,
    QueueStats, Tsq, TsqParams, Verdict,
};
use cutline_units::{Duration, Hint, HintBits, Instant, Probability, RandomStream, Rate};
use proptest::prelude::*;
use sorted_list::SortedList;

/// TSQ as the paper has it: sort by w, look for q' at every arrival, then draw.
struct Oracle<A> {
    bits: HintBits,
    params: TsqParams,
    limit: Limit,
    ecn: bool,
    drain: DrainRate,
    aqm: A,
    list: SortedList<u32>,
    service_ends: Instant,
    stats: QueueStats,
}

impl<A: DropProbability> Oracle<A> {
    fn new(params: TsqParams, limit: Limit, ecn: bool, rate: Rate, aqm: A) -> Self {
        let bits = HintBits::new(params.bits).expect("the test's bits are allowed");
        let (drain, list, stats) = (DrainRate::new(rate), SortedList::new(), QueueStats::default());
        Self { bits, params, limit, ecn, drain, aqm, list, service_ends: Instant::ZERO, stats }
    }

    fn offer(&self, now: Instant, hint: Hint) -> Offer {
        let lane = hint.min(self.bits.largest()).lane();
        let rest = self.service_ends.saturating_since(now);
        let q = self.drain.time(self.list.backlog().bytes) + rest;
        let weight = self.list.fit(lane, weight(self.bits, lane, q, now));
        let ahead = self.drain.time(self.list.bytes_ahead(weight)) + rest;
        let q_prime = if hint >= self.bits.largest() { q } else { ahead };
        Offer { lane, q, weight, q_prime }
    }

    fn judge(&mut self, now: Instant, arrival: Arrival, random: &mut RandomStream) -> Verdict {
        if !self.limit.admits(self.list.backlog(), arrival.size) {
            return Verdict::Drop(DropReason::Overflow);
        }
        let p = self.aqm.arrive(now, arrival, self.list.backlog());
        let Offer { q, q_prime, .. } = self.offer(now, arrival.hint);
        let max_ratio = self.params.max_ratio.unwrap_or(f64::INFINITY);
        let p_prime = charge(p, self.params.l, q, q_prime, max_ratio);
        // The largest hint draws as a FIFO does, the others whenever p is not 0.
        let hit = if arrival.hint >= self.bits.largest() || p == Probability::ZERO {
            random.chance(p)
        } else {
            random.uniform() < p_prime.get()
        };
        match (hit, self.ecn && arrival.ecn_capable) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop(DropReason::Early),
        }
    }
}

impl<A: DropProbability> Queue<u32> for Oracle<A> {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: u32, random: &mut RandomStream) -> Verdict {
        self.aqm.advance(now, self.list.backlog());
        let verdict = self.judge(now, arrival, random);
        self.stats.count_arrival(verdict, arrival.size);
        if !matches!(verdict, Verdict::Drop(_)) {
            let Offer { lane, weight, .. } = self.offer(now, arrival.hint);
            self.list.push(lane, Entry { weight, arrived: now, size: arrival.size, packet });
        }
        verdict
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<u32>> {
        self.aqm.advance(now, self.list.backlog());
        let Entry { arrived, size, packet, .. } = self.list.pop()?;
        self.service_ends = now + self.drain.time(u64::from(size));
        self.stats.dequeued.add(size);
        Some(Departure { packet, size, arrived, marked: false })
    }

    fn backlog(&self) -> Backlog {
        self.list.backlog()
    }

    fn probability(&self) -> Option<Probability> {
        self.aqm.probability()
    }

    fn advance(&mut self, now: Instant) {
        self.aqm.advance(now, self.list.backlog());
    }

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.drain = DrainRate::new(rate);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(u32)) {
        while let Some(entry) = self.list.pop() {
            self.stats.flushed.add(entry.size);
            discard(entry.packet);
        }
        self.service_ends = now;
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}

/// An operation on both queues.
#[derive(Clone, Debug)]
enum Op {
    Arrive {
        size: u32,
        hint: u16,
        ecn_capable: bool,
    },
    /// A query for the offer to a packet.
    Look {
        hint: u16,
    },
    /// An advance of the time, in which the link takes packets at its rate.
    Wait {
        us: u64,
    },
    /// The link takes a packet before it should.
    Pull,
    SetRate {
        kbps: u64,
    },
    Reset,
}

fn op() -> impl Strategy<Value = Op> {
    let arrive = (1..=1500_u32, 1..=17_u16, any::<bool>());
    prop_oneof![
        60 => arrive.prop_map(|(size, hint, ecn_capable)| Op::Arrive { size, hint, ecn_capable }),
        // Same size, same instant, neighbouring hints: ties.
        20 => (15..=16_u16).prop_map(|hint| Op::Arrive { size: 1, hint, ecn_capable: false }),
        15 => (1..=17_u16).prop_map(|hint| Op::Look { hint }),
        25 => (0..2000_u64).prop_map(|us| Op::Wait { us }),
        2 => Just(Op::Pull),
        2 => rate().prop_map(|kbps| Op::SetRate { kbps }),
        1 => Just(Op::Reset),
    ]
}

/// From a modem to a data centre, in kbit/s.
fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![Just(64), 1_000..20_000_u64, Just(100_000_000)]
}

fn spec() -> impl Strategy<Value = (TsqParams, Limit, bool, u64)> {
    let l = (1..200_u64).prop_map(Duration::from_millis);
    let params = (1..=8_u64, l, proptest::option::of(1.0..100.0))
        .prop_map(|(bits, l, max_ratio)| TsqParams { bits, l, max_ratio, age_credit: false });
    let limit = prop_oneof![(1..200_u32).prop_map(Limit::Packets), (1..100_000_u64).prop_map(Limit::Bytes)];
    (params, limit, any::<bool>(), rate())
}

/// Applies an operation and returns its visible results.
fn apply<Q: Queue<u32>>(link: &mut Link<Q>, op: &Op) -> (Option<Verdict>, Vec<u32>) {
    let (mut verdict, mut flushed) = (None, Vec::new());
    match *op {
        Op::Arrive { size, hint, ecn_capable } => verdict = Some(link.arrive(size, hint, ecn_capable)),
        Op::Wait { us } => link.wait(Duration::from_micros(us)),
        Op::Pull => link.pull(),
        Op::SetRate { kbps } => link.set_rate(Rate::from_kbps(kbps)),
        // Each queue has an `offer` of its own; the tests compare them.
        Op::Look { .. } => {}
        Op::Reset => link.queue.reset(link.now, &mut |packet| flushed.push(packet)),
    }
    (verdict, flushed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn lanes_have_the_order_of_the_sorted_list(
        (params, limit, ecn, kbps) in spec(),
        ops in proptest::collection::vec(op(), 1..500),
    ) {
        let rate = Rate::from_kbps(kbps);
        let tsq = Tsq::new(&params, limit, ecn, rate, Wave::default()).unwrap();
        let mut subject = Link::new(tsq, rate);
        let mut oracle = Link::new(Oracle::new(params, limit, ecn, rate, Wave::default()), rate);
        for op in &ops {
            if let Op::Look { hint } = *op {
                let (now, hint) = (oracle.now, Hint::from_level(hint));
                prop_assert_eq!(subject.queue.offer(now, hint), oracle.queue.offer(now, hint));
            }
            prop_assert_eq!(apply(&mut subject, op), apply(&mut oracle, op));
            prop_assert_eq!(subject.queue.backlog(), oracle.queue.backlog());
        }
        subject.drain();
        oracle.drain();
        prop_assert_eq!(&subject.sent, &oracle.sent);
        prop_assert_eq!(subject.queue.stats(), oracle.queue.stats());
        prop_assert_eq!(subject.random, oracle.random);
    }
}

/// Long queues and idle hints: the cursors' doubling steps, which short random runs seldom reach.
#[test]
fn the_order_holds_behind_a_long_queue() {
    let (params, rate, limit) = (TsqParams::default(), Rate::from_mbps(15), Limit::Packets(5000));
    let tsq = Tsq::new(&params, limit, false, rate, Wave::default()).unwrap();
    let mut subject = Link::new(tsq, rate);
    let mut oracle = Link::new(Oracle::new(params, limit, false, rate, Wave::default()), rate);
    for i in 0..4000_u32 {
        // Hints 6 and 1 come only every now and then, hint 1 more seldom.
        let hint = if i % 600 == 599 {
            1
        } else if i % 90 == 89 {
            6
        } else {
            9 + (i % 8) as u16
        };
        let op = Op::Arrive { size: 200 + i % 1000, hint, ecn_capable: false };
        if i % 7 == 0 || hint == 1 {
            let (now, hint) = (oracle.now, Hint::from_level(hint));
            assert_eq!(subject.queue.offer(now, hint), oracle.queue.offer(now, hint), "arrival {i}");
        }
        assert_eq!(apply(&mut subject, &op), apply(&mut oracle, &op), "arrival {i}");
        let pause = Op::Wait { us: 60 };
        assert_eq!(apply(&mut subject, &pause), apply(&mut oracle, &pause));
    }
    assert!(oracle.queue.backlog().packets > 1000, "the queue should be long");
    subject.drain();
    oracle.drain();
    assert_eq!(subject.sent, oracle.sent);
}
