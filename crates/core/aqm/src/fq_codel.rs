//! FQ-CoDel: a CoDel queue for every flow, served in turn; new flows are served first.
//!
//! Source: RFC 8290 sections 3 and 4.
//!
//! ```text
//! arrival:    bucket = hash(flow, perturbation); a bucket that was empty joins the new flows with a full quantum
//! departure:  the first new flow, else the first old one
//!             out of credit: one quantum more, to the end of the old flows, next
//!             CoDel takes its packet; none left: a new flow goes to the end of the old ones, an old one leaves
//!             credit falls by the packet's size
//! too full:   up to 64 packets, and half of the packets there, leave the head of the bucket with most bytes
//! ```
//!
//! Linux and the RFC differ. The defaults are Linux's:
//!
//! | parameter | Linux | RFC 8290, ns-3 |
//! | --- | --- | --- |
//! | `spare`: CoDel drops nothing while at most `mtu` waits | `qdisc-backlog`: in all flows together | `flow-backlog`: in the packet's flow (ns-3; RFC 8289 section 5.6) |
//! | `half`: unit of the amount that leaves a full queue | `bytes` | `packets` (section 4.1) |
//! | `count-overflow`: packets that leave a full queue raise `count` of their flow's CoDel | `true` | `false` |
//! | `root`: the square root of CoDel's law | `newton` | `exact` (RFC 8289 section 5.6) |
//! | `renew-lone-flow`: an emptied new flow, while there is no old one, is new again with its next packet | `true` | `false` (section 4.2) |
//!
//! With `spare = "qdisc-backlog"` a flow with a single packet in the queue can lose it, if others wait and the flow's
//! packets have been later than `target` for an `interval`. With many slow flows this is most of the loss. Linux also
//! keeps the time since which a flow has been late while the flow is empty, and so does this choice.
//!
//! Worked number: 100 flows fall into 1024 buckets so that 1 - (1023 / 1024)^99 = 9.2 % of them share one
//! (`flows_collide_with_the_expected_frequency`).
//!
//! Other differences from Linux's `fq_codel`: the limit is that of the queue's description (Linux and section 5.2.3: 10240
//! packets); there is no limit on memory (Linux: 32 MB); `ce-threshold`, off by default in Linux, and filters that choose
//! the flow are not implemented.
//!
//! A newcomer that finds the queue full is stored, and other packets are shed. Its verdict is "pass" even if it is shed
//! itself at once. The perturbation is drawn from the queue's random stream with the first packet, and again after a
//! reset.
//!
//! # Validation
//!
//! Properties of the RFC's text:
//! - New flows first, and only once: `a_new_flow_is_served_first_once`,
//!   `an_emptied_new_flow_waits_its_turn_before_it_is_new_again` (section 4.2).
//! - Flows get the same bytes, whatever their packets: `flows_of_any_packet_size_get_the_same_bytes`.
//! - Room is made by half of the fattest flow, at most 64 packets: `a_full_queue_drops_a_batch_of_the_longest_flow`,
//!   `a_full_queue_drops_half_of_a_short_longest_flow` (section 4.1).
//! - Each flow has a CoDel: `each_flow_has_a_codel_of_its_own`. Collisions: `flows_collide_with_the_expected_frequency`.
//! - Linux's choices and the others: `a_flow_of_one_packet_is_spared_by_its_own_backlog_alone`,
//!   `packets_that_a_full_queue_drops_count_in_linux`, `a_lone_new_flow_is_new_again_in_linux`.
//! - Against Linux's own, in a virtual machine: `docs/validation/linux.md`.
//! - The hash is not the RFC's Jenkins hash, and flows come as numbers, not as addresses and ports.

use crate::buckets::FlowHash;
use crate::codel::{CoDelParams, Control, Exit, Root, Spare};
use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::turns::Turns;
use crate::{Arrival, Departure, Discipline, DropReason, Limit, Queue, Verdict};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Instant, RandomStream, Rate};

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct FqCoDelParams {
    /// CoDel's own, for each flow.
    #[group(
        default = CoDelParams { root: Root::Newton, ..CoDelParams::default() },
        sources(root = "Linux; RFC 8289 section 5.6 has the exact one")
    )]
    pub codel: CoDelParams,
    /// Bytes that a flow may send in its turn.
    #[param(default = 1514, range = (1, 1_000_000), unit = "B", source = "RFC 8290 section 5.2.4")]
    pub quantum: u64,
    /// The number of buckets that flows are hashed into.
    #[param(default = 1024, range = (1, 65_536), source = "RFC 8290 section 5.2.5")]
    pub flows: u64,
    /// Backlog that must exceed `mtu` for CoDel to drop: that of all flows together, or of the packet's flow.
    #[param(default = Spare::QdiscBacklog, source = "Linux; ns-3 has flow-backlog, after RFC 8289 section 5.6")]
    pub spare: Spare,
    /// Unit in which the fattest flow is halved when the queue is full.
    #[param(default = Half::Bytes, source = "Linux; RFC 8290 section 4.1 has packets")]
    pub half: Half,
    /// Largest number of packets dropped at once to make room.
    #[param(default = 64, range = (1, 100_000), source = "RFC 8290 section 4.1; Linux's drop_batch")]
    pub drop_batch: u64,
    /// Treatment of packets dropped because the queue is full as drops of their flow's CoDel.
    #[param(default = true, source = "Linux; not in RFC 8290")]
    pub count_overflow: bool,
    /// Renewal of a lone flow: a new flow that is empty while there is no old one is new again with its next packet.
    #[param(default = true, source = "Linux; RFC 8290 section 4.2 moves it to the old ones")]
    pub renew_lone_flow: bool,
}

/// Unit in which the fattest flow is halved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Half {
    /// The bytes that wait in the flow (Linux).
    Bytes,
    /// The packets that wait in the flow (RFC 8290 section 4.1).
    Packets,
}

/// The flows of one hash.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    list: List,
    control: Control,
}

/// FQ-CoDel.
#[derive(Clone, Debug)]
pub struct FqCoDel<P> {
    params: FqCoDelParams,
    hash: FlowHash,
    buckets: Vec<Bucket>,
    turns: Turns,
    pool: Pool<P>,
    core: QueueCore<P>,
}

impl Bucket {
    const EMPTY: Self = Self { list: List::EMPTY, control: Control::NEW };
}

impl<P: Copy> Discipline for FqCoDel<P> {
    type Params = FqCoDelParams;
    const NAME: &'static str = "fq-codel";
    const TITLE: &'static str = "FQ-CoDel";
    const SOURCE: &'static str = "RFC 8290";

    fn build(params: &FqCoDelParams, limit: Limit, ecn: bool, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let flows = params.flows as usize;
        Ok(Self {
            params: *params,
            hash: FlowHash::new(params.flows as u32),
            buckets: vec![Bucket::EMPTY; flows],
            turns: Turns::new(flows, params.quantum, params.renew_lone_flow),
            pool: Pool::new(),
            core: QueueCore::new(limit, ecn),
        })
    }
}

impl<P: Copy> FqCoDel<P> {
    /// RFC 8290 section 4.1: sheds from the head of the fattest bucket until the limit holds.
    #[cold]
    fn make_room(&mut self) {
        while !self.core.limit.holds(self.core.backlog) {
            let fattest = self.buckets.iter_mut().max_by_key(|bucket| bucket.list.backlog.bytes);
            let Bucket { list, control, .. } = fattest.expect("there is at least one bucket");
            let full = list.backlog;
            let (mut shed, mut bytes) = (0, 0);
            while let Some(held) = self.pool.pop(list) {
                shed += 1;
                bytes += u64::from(held.size);
                self.core.count_shed(held, DropReason::Overflow);
                let enough = match self.params.half {
                    Half::Bytes => bytes >= full.bytes / 2,
                    Half::Packets => shed >= full.packets.div_ceil(2),
                };
                if enough || u64::from(shed) >= self.params.drop_batch {
                    break;
                }
            }
            if self.params.count_overflow {
                control.count_overflow(shed);
            }
        }
    }

    /// The next packet of one bucket, if CoDel leaves any.
    fn take(&mut self, now: Instant, index: u32) -> Option<Departure<P>> {
        let bucket = &mut self.buckets[index as usize];
        let spare = self.params.spare;
        let exit = &mut Exit { pool: &mut self.pool, list: &mut bucket.list, core: &mut self.core, spare };
        bucket.control.dequeue(&self.params.codel, now, exit)
    }
}

impl<P: Copy> Queue<P> for FqCoDel<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        let Arrival { size, ecn_capable, .. } = arrival;
        let index = self.hash.bucket(arrival.flow, random);
        let bucket = &mut self.buckets[index];
        let may_mark = self.core.ecn && ecn_capable;
        self.pool.push(&mut bucket.list, Held { packet, size, arrived: now, may_mark });
        self.turns.arrived(index);
        let verdict = self.core.count_arrival(Verdict::Pass, size);
        if !self.core.limit.holds(self.core.backlog) {
            self.make_room();
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        loop {
            let next = self.turns.next()?;
            if let Some(departure) = self.take(now, next.flow) {
                self.turns.sent(next, departure.size);
                return Some(self.core.count_departure(departure));
            }
            self.turns.was_empty(next);
        }
    }

    forward_to_core!(P);

    fn reset(&mut self, _now: Instant, discard: &mut dyn FnMut(P)) {
        for bucket in &mut self.buckets {
            self.pool.drain(&mut bucket.list, |held| self.core.count_flushed(held, discard));
            *bucket = Bucket::EMPTY;
        }
        self.turns.reset();
        self.hash.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Duration, HintBits, Streams};

    fn fq(limit: u32) -> FqCoDel<u32> {
        with(FqCoDelParams::default(), limit)
    }

    fn with(params: FqCoDelParams, limit: u32) -> FqCoDel<u32> {
        FqCoDel::build(&params, Limit::Packets(limit), false, Rate::from_mbps(8)).unwrap()
    }

    fn stream(seed: u64) -> RandomStream {
        Streams::new(seed).stream("queue", "drop")
    }

    /// Packets are called by their flow.
    fn arrive(fq: &mut FqCoDel<u32>, random: &mut RandomStream, flow: u32, size: u32) {
        let arrival = Arrival { flow, ..Arrival::new(size, HintBits::PAPER.largest()) };
        fq.enqueue(Instant::ZERO, arrival, flow, random);
    }

    fn order(fq: &mut FqCoDel<u32>) -> Vec<u32> {
        std::iter::from_fn(|| fq.dequeue(Instant::ZERO)).map(|departure| departure.packet).collect()
    }

    #[test]
    fn flows_take_turns_by_bytes() {
        let (mut fq, mut random) = (fq(1000), stream(1));
        (0..6).for_each(|_| arrive(&mut fq, &mut random, 1, 757));
        (0..3).for_each(|_| arrive(&mut fq, &mut random, 2, 1514));
        // A quantum is two packets of 757 B or one of 1514 B.
        assert_eq!(order(&mut fq), [1, 1, 2, 1, 1, 2, 1, 1, 2]);
    }

    #[test]
    fn a_new_flow_is_served_first_once() {
        let (mut fq, mut random) = (fq(1000), stream(1));
        (0..4).for_each(|_| arrive(&mut fq, &mut random, 1, 1514));
        assert_eq!(fq.dequeue(Instant::ZERO).map(|departure| departure.packet), Some(1));
        assert_eq!(fq.dequeue(Instant::ZERO).map(|departure| departure.packet), Some(1));
        (0..2).for_each(|_| arrive(&mut fq, &mut random, 2, 1514));
        // Flow 2 is ahead with its first quantum; then flow 1, whose quantum is used up, waits a turn for the next.
        assert_eq!(order(&mut fq), [2, 2, 1, 1]);
    }

    #[test]
    fn an_emptied_new_flow_waits_its_turn_before_it_is_new_again() {
        let (mut fq, mut random) = (fq(1000), stream(1));
        let next = |fq: &mut FqCoDel<u32>| fq.dequeue(Instant::ZERO).map(|departure| departure.packet);
        (0..8).for_each(|_| arrive(&mut fq, &mut random, 1, 700));
        assert_eq!([0; 3].map(|_| next(&mut fq)), [Some(1); 3], "its first quantum");
        arrive(&mut fq, &mut random, 2, 100);
        assert_eq!(next(&mut fq), Some(2), "a new flow");
        assert_eq!(next(&mut fq), Some(1));
        // Found empty in its turn, flow 2 has gone to the old flows and not away: now it is not first again.
        arrive(&mut fq, &mut random, 2, 100);
        assert_eq!(fq.turns.new.len(), 0);
        assert_eq!([0; 2].map(|_| next(&mut fq)), [Some(1), Some(2)]);
    }

    #[test]
    fn a_full_queue_drops_a_batch_of_the_longest_flow() {
        // RFC 8290 section 4.1.
        let (mut fq, mut random) = (fq(200), stream(1));
        (0..190).for_each(|_| arrive(&mut fq, &mut random, 1, 1000));
        (0..11).for_each(|_| arrive(&mut fq, &mut random, 2, 1000));
        let shed: Vec<u32> = std::iter::from_fn(|| fq.shed()).map(|shed| shed.packet).collect();
        assert_eq!(shed, [1; 64], "half of 190 is more than a batch");
        assert_eq!(fq.backlog().packets, 201 - 64);
        assert_eq!(fq.stats().dropped(DropReason::Overflow).packets, 64);
    }

    #[test]
    fn a_full_queue_drops_half_of_a_short_longest_flow() {
        for (half, expected) in [(Half::Bytes, 3), (Half::Packets, 4)] {
            let (mut fq, mut random) =
                (with(FqCoDelParams { half, ..FqCoDelParams::default() }, 12), stream(1));
            (0..3).for_each(|_| arrive(&mut fq, &mut random, 1, 1500));
            (0..4).for_each(|_| arrive(&mut fq, &mut random, 1, 900));
            (0..6).for_each(|_| arrive(&mut fq, &mut random, 2, 1100));
            let shed: Vec<u32> = std::iter::from_fn(|| fq.shed()).map(|shed| shed.packet).collect();
            // 8100 B are more than 6600 B. Three large packets are more than half of the bytes, not of the packets.
            assert_eq!(shed, vec![1; expected], "{half:?}");
        }
    }

    #[test]
    fn packets_that_a_full_queue_drops_count_in_linux() {
        for count_overflow in [true, false] {
            let params = FqCoDelParams { count_overflow, ..FqCoDelParams::default() };
            let (mut fq, mut random) = (with(params, 100), stream(1));
            (0..101).for_each(|_| arrive(&mut fq, &mut random, 1, 1000));
            let shed = std::iter::from_fn(|| fq.shed()).count() as u32;
            assert_eq!(shed, 51, "half of the bytes");
            let fat = fq.buckets.iter().find(|bucket| !bucket.list.is_empty()).expect("50 packets wait");
            let mut raised = Control::NEW;
            raised.count_overflow(shed);
            assert_ne!(raised, Control::NEW);
            assert_eq!(fat.control, if count_overflow { raised } else { Control::NEW });
        }
    }

    /// Packets lost of 40 flows that send one packet each 100 ms: all at once, so that 40 packets of 1 ms wait.
    fn lost_by_slow_flows(spare: Spare) -> usize {
        let (mut fq, mut random) =
            (with(FqCoDelParams { spare, ..FqCoDelParams::default() }, 1000), stream(1));
        let mut lost = 0;
        for ms in 0..1000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            for flow in (0..40).filter(|_| ms % 100 == 0) {
                fq.enqueue(
                    now,
                    Arrival { flow, ..Arrival::new(1000, HintBits::PAPER.largest()) },
                    flow,
                    &mut random,
                );
            }
            fq.dequeue(now);
            lost += std::iter::from_fn(|| fq.shed()).count();
        }
        lost
    }

    #[test]
    fn a_flow_of_one_packet_is_spared_by_its_own_backlog_alone() {
        assert_eq!(lost_by_slow_flows(Spare::FlowBacklog), 0);
        assert!(lost_by_slow_flows(Spare::QdiscBacklog) > 40);
    }

    #[test]
    fn a_lone_new_flow_is_new_again_in_linux() {
        for renew_lone_flow in [true, false] {
            let params = FqCoDelParams { renew_lone_flow, ..FqCoDelParams::default() };
            let (mut fq, mut random) = (with(params, 100), stream(1));
            for flow in [1, 2] {
                arrive(&mut fq, &mut random, flow, 100);
            }
            let next = |fq: &mut FqCoDel<u32>| fq.dequeue(Instant::ZERO).map(|departure| departure.packet);
            assert_eq!([next(&mut fq), next(&mut fq)], [Some(1), Some(2)]);
            // Flow 1 was found empty with flow 2 new and none old.
            assert_eq!(fq.turns.old.len(), usize::from(!renew_lone_flow));
            for flow in [3, 1] {
                arrive(&mut fq, &mut random, flow, 100);
            }
            assert_eq!([next(&mut fq), next(&mut fq)], [Some(3), Some(1)]);
            assert_eq!(
                fq.turns.new.len(),
                usize::from(renew_lone_flow),
                "flow 1 is a new one, or an old one"
            );
        }
    }

    #[test]
    fn flows_of_any_packet_size_get_the_same_bytes() {
        let (mut fq, mut random, sizes) = (fq(1000), stream(1), [1500, 333, 60]);
        let mut sent = [0_u64; 3];
        for (flow, size) in (0..).zip(sizes) {
            (0..40).for_each(|_| arrive(&mut fq, &mut random, flow, size));
        }
        for _ in 0..20_000 {
            let departure = fq.dequeue(Instant::ZERO).expect("all of them wait");
            sent[departure.packet as usize] += u64::from(departure.size);
            arrive(&mut fq, &mut random, departure.packet, departure.size);
            // A credit lies within a quantum and the largest packet, each way.
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(most - least <= 1514 + 1500, "{sent:?}");
        }
    }

    #[test]
    fn each_flow_has_a_codel_of_its_own() {
        let (mut fq, mut random) = (fq(10_000), stream(1));
        (0..4000).for_each(|_| arrive(&mut fq, &mut random, 1, 1000));
        let mut shed = Vec::new();
        for ms in 0..400 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let arrival = Arrival { flow: 2, ..Arrival::new(100, HintBits::PAPER.largest()) };
            fq.enqueue(now, arrival, 2, &mut random);
            fq.dequeue(now);
            fq.dequeue(now);
            shed.extend(std::iter::from_fn(|| fq.shed()));
        }
        assert!(shed.len() >= 4 && shed.iter().all(|shed| shed.packet == 1), "{shed:?}");
    }

    #[test]
    fn flows_collide_with_the_expected_frequency() {
        let mut sharing = 0;
        for seed in 0..200 {
            let (mut hash, mut random) = (FlowHash::new(1024), stream(seed));
            let buckets: Vec<usize> = (0..100).map(|flow| hash.bucket(flow, &mut random)).collect();
            sharing +=
                buckets.iter().filter(|one| buckets.iter().filter(|other| one == other).count() > 1).count();
        }
        // 9.2 of 100; the standard error over 200 runs is 0.3.
        let mean = f64::from(sharing as u32) / 200.0;
        assert!((mean - 9.2).abs() < 1.2, "{mean}");
    }
}
