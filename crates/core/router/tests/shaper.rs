//! A shaper through its public interface: conservation under any load, the schedule, and the accounting of bytes.

use crate::common::{Memory, frame, ip_frame};
use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams, registry};
use cutline_router::{DuplexShaper, Loss, Overhead, Shaper, ShaperParams};
use cutline_units::{Dscp, Duration, Hint, HintTable, Instant, Rate, RemarkTable, Streams};
use cutline_wire::Headers;
use proptest::prelude::*;

const MBIT: Rate = Rate::from_mbps(8);

fn drop_tail(limit: u32) -> QueueSpec {
    QueueSpec::drop_tail(Limit::Packets(limit), MBIT)
}

fn shaper(params: ShaperParams) -> Shaper {
    Shaper::new(params, Streams::new(1).stream("router", "drop")).unwrap()
}

fn plain(queue: QueueSpec) -> Shaper {
    shaper(ShaperParams { overhead: Overhead::Ip, ..ShaperParams::new(queue) })
}

fn at_us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// Every AQM, and TSQ over those that take it.
fn queues() -> Vec<QueueSpec> {
    let of = |name, tsq| QueueSpec {
        limit: Limit::Packets(20),
        ecn: true,
        aqm: AqmSpec::from_values(name, []).unwrap(),
        tsq,
        rate: MBIT,
    };
    let both = |aqm: registry::AqmDescription| {
        let tsq = aqm.takes_tsq.then(|| of(aqm.name, Some(TsqParams::default())));
        std::iter::once(of(aqm.name, None)).chain(tsq)
    };
    registry::describe().into_iter().flat_map(both).collect()
}

#[derive(Clone, Debug)]
enum Op {
    Frame { size: usize, traffic_class: u8, flow: u8 },
    Garbage(Vec<u8>),
    Wait(u64),
    Take { most: usize, lose: bool },
    Rate(u64),
    Wake,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (28..1600_usize, any::<u8>(), 0..4_u8)
            .prop_map(|(size, traffic_class, flow)| Op::Frame { size, traffic_class, flow }),
        1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Op::Garbage),
        4 => (0..3000_u64).prop_map(Op::Wait),
        3 => (0..10_usize, any::<bool>()).prop_map(|(most, lose)| Op::Take { most, lose }),
        1 => (1..20_u64).prop_map(Op::Rate),
        1 => Just(Op::Wake),
    ];
    prop::collection::vec(op, 0..200)
}

fn check_sums(shaper: &Shaper, queue: &str) {
    let (stats, mut lost) = (shaper.stats(), 0);
    for reason in Loss::ALL {
        lost += stats.lost(reason).packets;
    }
    assert_eq!(lost, stats.dropped().packets);
    assert_eq!(stats.received.packets, stats.sent.packets + lost + shaper.queued() as u64, "{queue}");
}

proptest! {
    /// received = sent + dropped + queued, whatever comes, in whatever order, over every queue.
    #[test]
    fn every_frame_is_accounted_for(which in 0..queues().len(), ops in ops()) {
        let spec = queues().swap_remove(which);
        let name = spec.aqm.name();
        let mut shaper = shaper(ShaperParams::new(spec));
        let (mut now, mut port) = (Instant::ZERO, Memory::default());
        for op in ops {
            match op {
                Op::Frame { size, traffic_class, flow } => shaper.receive(now, &ip_frame(size, traffic_class, flow)),
                Op::Garbage(bytes) => shaper.receive(now, &bytes),
                Op::Wait(us) => now += Duration::from_micros(us),
                Op::Take { most, lose } => {
                    (port.room, port.broken) = (most, lose);
                    shaper.send(&mut port).unwrap();
                }
                Op::Rate(mbit) => shaper.set_rate(now, Rate::from_mbps(mbit)),
                Op::Wake => { shaper.wake(now); shaper.advance(now); }
            }
            check_sums(&shaper, name);
        }
        while shaper.deadline() != Instant::FAR_FUTURE {
            shaper.advance(shaper.deadline());
        }
        (port.room, port.broken) = (usize::MAX, false);
        shaper.send(&mut port).unwrap();
        prop_assert_eq!(shaper.queued(), 0);
        let stats = shaper.stats();
        prop_assert_eq!(stats.received.bytes, stats.sent.bytes + stats.dropped().bytes);
        prop_assert_eq!(port.sent.len() as u64, stats.sent.packets);
    }

    /// A frame comes out with the bytes it came with, but for a mark, whatever it is.
    #[test]
    fn bytes_pass_unchanged(bytes in prop::collection::vec(any::<u8>(), 14..200)) {
        let mut shaper = plain(drop_tail(5));
        shaper.receive(Instant::ZERO, &bytes);
        prop_assert_eq!(shaper.departed().collect::<Vec<_>>(), vec![&bytes[..]]);
    }
}

#[test]
fn sendings_follow_the_schedule_at_late_calls() {
    let mut shaper = plain(drop_tail(100));
    (0..10).for_each(|_| shaper.receive(Instant::ZERO, &ip_frame(1000, 0, 0)));
    assert_eq!(shaper.departed().count(), 1, "an idle link takes the first at once");
    assert_eq!(shaper.deadline(), at_us(1000));
    shaper.advance(at_us(3500));
    assert_eq!((shaper.departed().count(), shaper.deadline()), (4, at_us(4000)));
}

#[test]
fn a_frame_arrives_at_the_queue_of_its_arrival_time() {
    let mut shaper = plain(drop_tail(1));
    for us in [0, 100, 1100, 1200] {
        // All are reported at 5 ms, with the times at which they came.
        shaper.receive(at_us(us), &ip_frame(1000, 0, 0));
    }
    let stats = shaper.stats();
    assert_eq!(
        (stats.received.packets, stats.lost(Loss::Overflow).packets),
        (4, 1),
        "the fourth came too soon"
    );
}

#[test]
fn a_late_schedule_is_moved() {
    let mut shaper = plain(drop_tail(1000));
    (0..1000).for_each(|_| shaper.receive(Instant::ZERO, &ip_frame(1000, 0, 0)));
    shaper.wake(at_us(500_000));
    shaper.advance(at_us(500_000));
    // One at time 0, and 10 ms worth of those that were due: at 490, 491, ... 500 ms.
    assert_eq!(shaper.departed().count(), 12);
    assert_eq!(shaper.stats().slipped, Duration::from_millis(489));
}

/// A second's frames have come at half the link's rate while the caller was stopped: none was due when it stopped.
#[test]
fn a_stopped_caller_does_not_send_its_backlog_as_a_burst() {
    let mut shaper = plain(drop_tail(1000));
    shaper.wake(at_us(1_000_000));
    (0..500).for_each(|number| shaper.receive(at_us(number * 2000), &ip_frame(1000, 0, 0)));
    shaper.advance(at_us(1_000_000));
    // What came before 990 ms counts as coming then: it goes at 990, 991, ... 1000 ms.
    assert_eq!(shaper.departed().count(), 11);
    assert_eq!(shaper.stats().slipped, Duration::from_millis(990));
}

#[test]
fn stamps_far_in_the_past_or_the_future_do_no_lasting_harm() {
    let mut shaper = plain(drop_tail(1000));
    let hour = Duration::from_secs(3600);
    let now = Instant::ZERO + hour;
    shaper.wake(now);
    shaper.advance(now);
    // The wall clock was set forward by more than an hour between stamp and reading: the frame counts as coming now.
    shaper.receive(Instant::ZERO, &ip_frame(1000, 0, 0));
    assert_eq!(shaper.departed().count(), 1);
    assert_eq!(shaper.deadline(), now + Duration::from_millis(1));
    // A caller with a stamp of the future moves the queue's time there, once; what comes then is served from then on.
    shaper.receive(now + hour, &ip_frame(1000, 0, 0));
    shaper.receive(now, &ip_frame(1000, 0, 0));
    assert_eq!(shaper.departed().count(), 2);
    assert_eq!(shaper.deadline(), now + hour + Duration::from_millis(1));
    assert_eq!((shaper.stats().slipped, shaper.queued()), (Duration::ZERO, 3));
}

#[test]
fn a_blocked_port_holds_the_link_and_memory_stays_bounded() {
    let mut shaper = plain(drop_tail(100));
    let mut port = Memory::default();
    for ms in 0..10_000 {
        shaper.wake(at_us(ms * 1000));
        shaper.receive(at_us(ms * 1000), &ip_frame(1000, 0, 0));
        shaper.advance(at_us(ms * 1000));
        shaper.send(&mut port).unwrap();
    }
    assert_eq!((shaper.departed().count(), shaper.backlog().packets), (4096, 100));
    assert_eq!(shaper.stats().lost(Loss::Overflow).packets, 10_000 - 4096 - 100);
    assert_eq!(
        shaper.deadline(),
        Instant::FAR_FUTURE,
        "there is no use in waking before the port takes something"
    );
    port.room = 10;
    shaper.send(&mut port).unwrap();
    shaper.wake(at_us(10_000_000));
    shaper.advance(at_us(10_000_000));
    assert_eq!(shaper.departed().count(), 4088, "ten were taken, and two follow since the last arrival");
    assert!(shaper.stats().slipped > Duration::from_secs(5));
}

#[test]
fn a_changed_rate_keeps_the_queue() {
    let mut shaper = plain(drop_tail(100));
    (0..10).for_each(|_| shaper.receive(Instant::ZERO, &ip_frame(1000, 0, 0)));
    shaper.set_rate(at_us(500), Rate::from_mbps(80));
    assert_eq!(shaper.deadline(), at_us(550), "the rest of the frame on the link is ten times as fast");
    shaper.advance(at_us(1000));
    assert_eq!(shaper.deadline(), at_us(1050));
    shaper.advance(at_us(1900));
    assert_eq!(shaper.departed().count(), 10);
    assert_eq!(shaper.stats().dropped().packets, 0);
}

#[test]
fn hints_and_code_points_follow_their_tables() {
    let ef = "EF".parse::<Dscp>().unwrap();
    let mut hints = HintTable::standard();
    hints.set(ef, Hint::LEAST_DELAY);
    let remark = RemarkTable::to_hints(&hints);
    let mut shaper = shaper(ShaperParams { hints, remark, ..ShaperParams::new(drop_tail(9)) });
    shaper.receive(Instant::ZERO, &ip_frame(100, ef.in_traffic_class(0b10), 0));
    let out = shaper.departed().next().unwrap().to_vec();
    let ip = Headers::parse(&out, 0).ip.unwrap();
    assert_eq!((ip.dscp().to_string(), ip.traffic_class & 3), ("hint-1".to_owned(), 0b10));
    assert_eq!(shaper.stats().hint(Hint::LEAST_DELAY).departed.packets, 1);
    assert_eq!(shaper.stats().remarked.packets, 1);
    shaper.set_remark(RemarkTable::unchanged());
    shaper.set_hints(HintTable::standard());
    shaper.receive(at_us(900), &ip_frame(100, ef.in_traffic_class(0), 0));
    assert_eq!(shaper.stats().hint(Hint::from_level(6)).departed.packets, 1);
    assert_eq!(shaper.stats().remarked.packets, 1);
}

#[test]
fn frames_without_ip_pass_as_unmarked() {
    let mut shaper = plain(drop_tail(9));
    shaper.receive(Instant::ZERO, &frame(0x0806, &[0; 46]));
    assert_eq!(shaper.stats().not_ip.packets, 1);
    assert_eq!(shaper.stats().hint(Hint::from_level(16)).departed.packets, 1);
}

#[test]
fn runts_and_giants_are_dropped_and_counted() {
    let mut shaper = plain(drop_tail(9));
    shaper.receive(Instant::ZERO, &[0; 13]);
    shaper.receive(Instant::ZERO, &ip_frame(1505, 0, 0));
    shaper.receive(Instant::ZERO, &ip_frame(1504, 0, 0));
    let lost = |reason| shaper.stats().lost(reason).packets;
    assert_eq!((lost(Loss::Runt), lost(Loss::Oversize), shaper.queued()), (1, 1, 1));
}

/// `CoDel` under a lasting overload, which marks on departure; the checksum stays right.
#[test]
fn only_ecn_capable_packets_are_marked() {
    let mut queue = drop_tail(400);
    queue.ecn = true;
    queue.aqm = AqmSpec::from_values("codel", []).unwrap();
    let mut shaper = plain(queue);
    for round in 0..3000 {
        let (now, ecn) = (at_us(round * 900), [0b00, 0b01, 0b10][round as usize % 3]);
        shaper.receive(now, &ip_frame(1000, ecn, ecn));
    }
    let marked = shaper.departed().filter(|frame| frame[15] & 3 == 3).count() as u64;
    assert_eq!(shaper.stats().marked.packets, marked);
    assert!(marked > 10 && shaper.stats().lost(Loss::Early).packets > 10, "{:?}", shaper.stats());
    for frame in shaper.departed().filter(|frame| frame[15] & 3 == 3) {
        assert_ne!(frame[14 + 15], 0b00, "the flow of that address is not ECN-capable");
        let sum: u32 = frame[14..34].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}

#[test]
fn a_wire_has_two_directions_of_their_own() {
    let mut duplex = DuplexShaper { forward: plain(drop_tail(5)), reverse: plain(drop_tail(5)) };
    let mut ports = [Memory::default(), Memory::default()];
    ports[0].arriving.extend([(at_us(0), ip_frame(1000, 0, 1)), (at_us(10), ip_frame(1000, 0, 1))]);
    ports[1].arriving.push_back((at_us(20), ip_frame(500, 0, 2)));
    (ports[0].room, ports[1].room) = (10, 10);
    let round = duplex.round(at_us(100), &mut ports).unwrap();
    assert_eq!((round.received, round.stuck), (3, false));
    assert_eq!((ports[0].sent.len(), ports[1].sent.len()), (1, 1));
    assert_eq!(duplex.deadline(), at_us(520));
    ports[1].room = 0;
    let round = duplex.round(at_us(1000), &mut ports).unwrap();
    assert!(round.stuck, "the second port takes nothing");
    ports[1].room = 1;
    assert!(!duplex.round(at_us(1000), &mut ports).unwrap().stuck);
    assert_eq!(ports[1].sent.len(), 2);
}

/// A queue that takes more than there is memory for: the newcomer is lost and counted.
#[test]
fn memory_is_bounded() {
    let queue = QueueSpec::drop_tail(Limit::Packets(1_000_000), MBIT);
    let params = ShaperParams { memory: 2 << 20, ..ShaperParams::new(queue) };
    let mut shaper = shaper(params);
    for _ in 0..20_000 {
        shaper.receive(at_us(0), &ip_frame(46, 0, 0));
    }
    let (lost, queued) = (shaper.stats().lost(Loss::Memory).packets, shaper.queued());
    // 64 B and 128 B each.
    assert!((9_000..=10_923).contains(&queued), "{queued}");
    assert_eq!(lost + queued as u64, 20_000);
    // A place that becomes free is taken.
    shaper.advance(at_us(1000));
    let mut port = Memory { room: usize::MAX, ..Memory::default() };
    shaper.send(&mut port).unwrap();
    shaper.receive(at_us(1000), &ip_frame(46, 0, 0));
    assert_eq!(shaper.stats().lost(Loss::Memory).packets, lost);
}

/// A port that takes nothing for seconds while frames come: no frame starts before it has arrived.
#[test]
fn frames_that_come_while_the_port_holds_the_link_start_after_they_have_arrived() {
    let mut shaper = plain(drop_tail(50));
    (0..6000).for_each(|number| shaper.receive(at_us(1000 * number), &ip_frame(500, 0, 1)));
    let mut port = Memory { room: usize::MAX, ..Memory::default() };
    shaper.send(&mut port).unwrap();
    shaper.advance(at_us(6_100_000));
    shaper.send(&mut port).unwrap();
    let stats = shaper.stats();
    assert_eq!(stats.received.packets, stats.sent.packets + stats.dropped().packets);
    assert!(stats.slipped > Duration::from_secs(1), "the link was held: {:?}", stats.slipped);
}
