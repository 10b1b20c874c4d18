//! Queues exchanged at work: no frame is lost, judged twice or overtaken by one that came after the exchange.

use crate::common::{Memory, ip_frame};
use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams, registry};
use cutline_router::{DuplexShaper, Overhead, Shaper, ShaperParams};
use cutline_units::{Duration, Hint, HintTable, Instant, Rate, RemarkTable, Streams};
use proptest::prelude::*;

const RATE: Rate = Rate::from_mbps(8);
/// The most queues that are served before the new one.
const RETIRED: usize = 32;
/// Behind Ethernet and IPv4 headers.
const NUMBER_AT: usize = 34;

/// Every AQM, with TSQ over those that take it, and with two limits.
fn queues() -> Vec<QueueSpec> {
    let of = |name, tsq, limit| QueueSpec {
        limit: Limit::Packets(limit),
        ecn: true,
        aqm: AqmSpec::from_values(name, []).unwrap(),
        tsq,
        rate: RATE,
    };
    let all = |aqm: registry::AqmDescription| {
        let tsq = aqm.takes_tsq.then(|| of(aqm.name, Some(TsqParams::default()), 30));
        [of(aqm.name, None, 15), of(aqm.name, None, 30)].into_iter().chain(tsq)
    };
    registry::describe().into_iter().flat_map(all).collect()
}

fn shaper(queue: QueueSpec) -> Shaper {
    let params = ShaperParams { overhead: Overhead::Ip, ..ShaperParams::new(queue) };
    Shaper::new(params, Streams::new(1).stream("router", "drop")).unwrap()
}

fn drop_tail(limit: u32) -> QueueSpec {
    QueueSpec::drop_tail(Limit::Packets(limit), RATE)
}

fn at_us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// A frame with a number that is found again where it comes out.
fn numbered(size: usize, traffic_class: u8, number: u32) -> Vec<u8> {
    let mut frame = ip_frame(size, traffic_class, (number % 5) as u8);
    frame[NUMBER_AT..NUMBER_AT + 4].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number_of(frame: &[u8]) -> usize {
    u32::from_be_bytes(*frame[NUMBER_AT..].first_chunk().unwrap()) as usize
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Frame { size: usize, traffic_class: u8 },
    Wait(u64),
    Exchange(usize),
    Rate(u64),
    Take,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        10 => (28..1500_usize, any::<u8>())
            .prop_map(|(size, traffic_class)| Op::Frame { size, traffic_class }),
        3 => (0..3000_u64).prop_map(Op::Wait),
        2 => (0..queues().len()).prop_map(Op::Exchange),
        1 => (1..20_u64).prop_map(Op::Rate),
        1 => Just(Op::Take),
    ];
    prop::collection::vec(op, 0..250)
}

/// The shaper, its arrivals, and the generation of queues that each came to.
struct World {
    shaper: Shaper,
    now: Instant,
    port: Memory,
    generation: usize,
    generation_of: Vec<usize>,
}

impl World {
    fn apply(&mut self, op: Op, queues: &[QueueSpec]) {
        match op {
            Op::Frame { size, traffic_class } => {
                let number = self.generation_of.len() as u32;
                self.generation_of.push(self.generation);
                self.shaper.receive(self.now, &numbered(size, traffic_class, number));
            }
            Op::Wait(us) => self.now += Duration::from_micros(us),
            Op::Exchange(which) => {
                // Due frames are due before.
                self.shaper.advance(self.now);
                let (old, before) = (self.shaper.params().queue.clone(), self.shaper.backlog());
                let new = QueueSpec { rate: old.rate, ..queues[which].clone() };
                self.generation += usize::from(new != old);
                let is_one_too_many = self.shaper.retired() == RETIRED;
                self.shaper.set_queue(self.now, new).unwrap();
                assert!(
                    self.shaper.backlog() == before || is_one_too_many,
                    "an exchange moves nothing: {before:?}, {:?}",
                    self.shaper.backlog()
                );
            }
            Op::Rate(mbit) => self.shaper.set_rate(self.now, Rate::from_mbps(mbit)),
            Op::Take => self.take(),
        }
        self.check_sums();
    }

    fn take(&mut self) {
        self.port.room = usize::MAX;
        self.shaper.send(&mut self.port).unwrap();
    }

    fn check_sums(&self) {
        let (stats, queued) = (self.shaper.stats(), self.shaper.queued() as u64);
        assert_eq!(stats.received.packets, stats.sent.packets + stats.dropped().packets + queued);
        let waiting = self.shaper.departed().count() as u64 + u64::from(self.shaper.backlog().packets);
        assert_eq!(queued, waiting, "what is kept is in a queue or on its way out");
    }

    fn finish(&mut self) {
        while self.shaper.deadline() != Instant::FAR_FUTURE {
            self.shaper.advance(self.shaper.deadline());
        }
        self.take();
        self.check_sums();
    }
}

proptest! {
    #[test]
    fn an_exchange_loses_nothing_and_keeps_the_order(first in 0..queues().len(), ops in ops()) {
        let queues = queues();
        let (shaper, port) = (shaper(queues[first].clone()), Memory::default());
        let mut world = World { shaper, now: at_us(5), port, generation: 0, generation_of: Vec::new() };
        for op in ops {
            world.apply(op, &queues);
        }
        world.finish();
        prop_assert_eq!((world.shaper.queued(), world.shaper.retired()), (0, 0));
        let numbers: Vec<usize> = world.port.sent.iter().map(|frame| number_of(frame)).collect();
        let generations: Vec<usize> = numbers.iter().map(|&number| world.generation_of[number]).collect();
        prop_assert!(generations.is_sorted(), "later ones do not overtake: {generations:?}");
        let stats = world.shaper.stats();
        let of_hint = |level| stats.hint(Hint::from_level(level));
        let judged: u64 = (1..=16).map(|l| of_hint(l).departed.packets + of_hint(l).dropped.packets).sum();
        prop_assert_eq!(judged, world.generation_of.len() as u64, "each is judged once");
        let mut once = numbers.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), numbers.len(), "none comes out twice");
    }

    /// From one FIFO to another, any number of times, nothing at all changes: order, times, waits.
    #[test]
    fn exchanged_fifos_are_one_fifo(exchanges in prop::collection::vec(0..200_usize, 0..20)) {
        let (mut one, mut many) = (shaper(drop_tail(1000)), shaper(drop_tail(1000)));
        for number in 0..200 {
            for _ in exchanges.iter().filter(|&&at| at == number) {
                let limit = if many.params().queue.limit == Limit::Packets(1000) { 2000 } else { 1000 };
                many.set_queue(at_us(701 * number as u64), drop_tail(limit)).unwrap();
            }
            for shaper in [&mut one, &mut many] {
                shaper.receive(at_us(701 * number as u64), &numbered(1000, 0, number as u32));
                prop_assert_eq!(shaper.queued(), number + 1);
            }
            prop_assert_eq!((one.deadline(), one.backlog()), (many.deadline(), many.backlog()));
        }
        one.advance(at_us(300_000));
        many.advance(at_us(300_000));
        prop_assert!(one.departed().eq(many.departed()));
        prop_assert_eq!(one.stats(), many.stats());
    }
}

#[test]
fn the_old_queue_is_served_before_the_new_one() {
    let mut shaper = shaper(drop_tail(100));
    (0..5).for_each(|number| shaper.receive(at_us(0), &numbered(1000, 0, number)));
    let tsq = QueueSpec { tsq: Some(TsqParams::default()), ..drop_tail(100) };
    shaper.set_queue(at_us(100), tsq).unwrap();
    assert_eq!((shaper.retired(), shaper.backlog().packets), (1, 4));
    // hint-1, and then hint-16: the first cuts in line of what came to its own queue, and no further.
    shaper.receive(at_us(200), &numbered(1000, 0b1111_1100, 5));
    (6..9).for_each(|number| shaper.receive(at_us(300), &numbered(1000, 0b1111_1100, number)));
    shaper.receive(at_us(400), &numbered(1000, 0b0000_1100, 9));
    shaper.advance(at_us(20_000));
    let order: Vec<usize> = shaper.departed().map(number_of).collect();
    assert_eq!(order[..5], [0, 1, 2, 3, 4]);
    assert!(order.iter().position(|&number| number == 9) < Some(8), "it cut in line: {order:?}");
    assert_eq!(shaper.retired(), 0);
}

#[test]
fn the_same_queue_stays_and_a_wrong_one_changes_nothing() {
    let mut shaper = shaper(drop_tail(100));
    (0..5).for_each(|number| shaper.receive(at_us(0), &numbered(1000, 0, number)));
    shaper.set_queue(at_us(100), QueueSpec { rate: Rate::from_mbps(80), ..drop_tail(100) }).unwrap();
    assert_eq!(shaper.retired(), 0, "only the rate is another");
    let refused = shaper.set_queue(at_us(100), drop_tail(0)).unwrap_err();
    assert_eq!(refused.parameter, "limit");
    assert_eq!((shaper.params().queue.rate, shaper.queued()), (Rate::from_mbps(80), 5));
    assert_eq!(shaper.deadline(), at_us(190), "the 900 B that are left are ten times as fast");
    shaper.advance(at_us(200));
    assert_eq!(shaper.deadline(), at_us(290));
}

#[test]
fn both_directions_change_or_neither() {
    let mut duplex = DuplexShaper { forward: shaper(drop_tail(10)), reverse: shaper(drop_tail(10)) };
    let params = |limit| ShaperParams {
        remark: RemarkTable::to_hints(&HintTable::standard()),
        largest_frame: 9000,
        salt: 9,
        ..ShaperParams::new(drop_tail(limit))
    };
    assert!(duplex.reconfigure(at_us(5), [params(20), params(0)]).is_err());
    assert_eq!(duplex.forward.params().queue, drop_tail(10));
    duplex.reconfigure(at_us(6), [params(20), params(30)]).unwrap();
    let limits = [&duplex.forward, &duplex.reverse].map(|shaper| shaper.params().queue.limit);
    assert_eq!(limits, [Limit::Packets(20), Limit::Packets(30)]);
    let forward = duplex.forward.params();
    assert_eq!((forward.largest_frame, forward.salt, forward.overhead), (1518, 0, Overhead::Ethernet));
    assert_eq!(forward.remark, RemarkTable::to_hints(&HintTable::standard()));
}

#[test]
fn a_departure_is_as_late_as_it_is_handed_over() {
    let mut shaper = shaper(drop_tail(100));
    let mut port = Memory { room: usize::MAX, ..Memory::default() };
    (0..3).for_each(|number| shaper.receive(at_us(0), &numbered(1000, 0, number)));
    // Due at 0, 1 and 2 ms.
    shaper.advance(at_us(40));
    shaper.send(&mut port).unwrap();
    shaper.advance(at_us(2500));
    assert_eq!(
        shaper.stats().departure_error().count(),
        1,
        "those that nobody has taken are not counted yet"
    );
    shaper.send(&mut port).unwrap();
    let error = shaper.stats().departure_error();
    assert_eq!(
        (error.count(), error.min(), error.max()),
        (3, Some(Duration::from_micros(40)), Some(Duration::from_micros(1500)))
    );
    assert_eq!(error.mean(), Some(Duration::from_micros((40 + 1500 + 500) / 3)));
}

/// The limit bounds the waiting frames of all queues together.
#[test]
fn replaced_queues_count_against_the_limit() {
    for (limit, least) in [(Limit::Packets(100), 100), (Limit::Bytes(100_000), 95)] {
        let mut shaper = shaper(QueueSpec { limit, ..drop_tail(1) });
        for exchange in 0..24 {
            (0..500).for_each(|number| shaper.receive(at_us(exchange), &numbered(1000, 0, number)));
            let tsq = (exchange % 2 == 0).then(TsqParams::default);
            shaper.set_queue(at_us(exchange), QueueSpec { limit, tsq, ..drop_tail(1) }).unwrap();
            // One is on the link.
            let waiting = shaper.backlog().packets;
            assert!((least..=100).contains(&waiting), "{waiting} wait after {exchange} exchanges");
        }
        let stats = shaper.stats();
        assert_eq!(stats.received.packets, stats.dropped().packets + shaper.queued() as u64);
    }
}

/// Exchanged faster than it is served: the oldest queue's frames are dropped, and counted.
#[test]
fn the_number_of_replaced_queues_is_bounded() {
    let mut shaper = shaper(drop_tail(100));
    for exchange in 0..50 {
        shaper.receive(at_us(exchange), &numbered(1000, 0, exchange as u32));
        shaper.set_queue(at_us(exchange), drop_tail(200 - (exchange % 2) as u32 * 100)).unwrap();
        assert!(shaper.retired() <= RETIRED, "{}", shaper.retired());
    }
    let stats = shaper.stats();
    assert_eq!((stats.received.packets, stats.dropped().packets, shaper.queued()), (50, 17, 33));
    shaper.advance(at_us(1_000_000));
    let left: Vec<usize> = shaper.departed().map(number_of).collect();
    let expected: Vec<usize> = std::iter::once(0).chain(18..50).collect();
    assert_eq!(left, expected, "the first was on the link");
}

#[test]
fn a_rate_out_of_range_changes_nothing() {
    let mut duplex = DuplexShaper { forward: shaper(drop_tail(10)), reverse: shaper(drop_tail(10)) };
    let params = |rate| ShaperParams::new(QueueSpec { rate, ..drop_tail(10) });
    for rate in [Rate::ZERO, Rate::from_bps(1), Rate::from_bps(999), Rate::from_bps(u64::MAX)] {
        for rates in [[RATE, rate], [rate, RATE]] {
            let error = duplex.reconfigure(at_us(5), rates.map(params)).unwrap_err();
            assert!(error.to_string().ends_with("allowed is from 1 kbit/s to 10000 Gbit/s"), "{error}");
        }
        assert!(Shaper::new(params(rate), Streams::new(1).stream("router", "drop")).is_err());
    }
    assert_eq!(duplex.forward.params().queue.rate, RATE);
}

/// A frame of 1000 B takes 8 s at the least rate; the link does not wait for it once the rate is another.
#[test]
fn a_schedule_far_ahead_is_computed_again() {
    let (slow, fast) = (Rate::from_kbps(1), Rate::from_mbps(10));
    let mut shaper = shaper(QueueSpec { rate: slow, ..drop_tail(100) });
    (0..3).for_each(|number| shaper.receive(at_us(0), &numbered(1000, 0, number)));
    assert_eq!(shaper.deadline(), at_us(8_000_000));
    shaper.set_rate(at_us(1_000), fast);
    let rest = Duration::from_nanos(799_900);
    assert_eq!(shaper.deadline(), at_us(1_000) + rest, "one bit has left, and 7999 follow");
    shaper.advance(at_us(20_000));
    assert_eq!(shaper.departed().count(), 3);
    // At a slower rate the rest takes longer.
    shaper.set_rate(at_us(20_000), Rate::from_kbps(100));
    shaper.receive(at_us(20_000), &numbered(100, 0, 3));
    assert_eq!(shaper.deadline(), at_us(28_000));
    shaper.set_rate(at_us(20_001), Rate::from_kbps(10));
    assert_eq!(shaper.deadline(), at_us(20_001 + 79_990));
}
