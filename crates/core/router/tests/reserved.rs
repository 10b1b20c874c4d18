//! Reserved flows in a shaper: which packets are served first, how long they wait, and the rest for the others.

use crate::common::{Memory, frame};
use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_router::{
    CountedReservation, Loss, Overhead, ReservationError, ReservationId, Shaper, ShaperParams,
};
use cutline_units::{Bytes, Duration, Instant, Rate, Streams};
use etherparse::PacketBuilder;
use proptest::prelude::*;

const RATE: Rate = Rate::from_kbps(1500);

/// PI under TSQ at 1.5 Mbit/s, counted as IP packets, with room for ten reservations.
fn shaper_with(overhead: Overhead) -> Shaper {
    let queue = QueueSpec {
        limit: Limit::Packets(50),
        ecn: true,
        aqm: AqmSpec::from_values("pi", []).unwrap(),
        tsq: Some(TsqParams::default()),
        rate: RATE,
    };
    let params = ShaperParams { overhead, reservations: 10, ..ShaperParams::new(queue) };
    Shaper::new(params, Streams::new(1).stream("router", "drop")).unwrap()
}

fn shaper() -> Shaper {
    shaper_with(Overhead::Ip)
}

fn id(number: u64) -> ReservationId {
    ReservationId { owner: 1, number }
}

fn bucket(kbps: u64, bytes: u64) -> TrafficSpec {
    TrafficSpec {
        rate: Rate::from_kbps(kbps),
        bucket: Bytes::new(bytes),
        peak: TrafficSpec::UNKNOWN_PEAK,
        min_policed: Bytes::new(64),
        max_packet: Bytes::new(1500),
    }
}

/// From any port of 10.0.0.1 to a port of 10.0.1.1.
fn to_port(port: u16) -> FlowSelector {
    FlowSelector {
        destination: "10.0.1.1".parse().unwrap(),
        protocol: Some(17),
        destination_port: Some(port),
        source: Some("10.0.0.1".parse().unwrap()),
        source_port: Some(1000),
        flow_label: None,
    }
}

/// A frame with an IPv4 packet of `size` bytes.
fn udp(source: [u8; 4], ports: [u16; 2], size: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    let packet =
        PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(source, [10, 0, 1, 1], 64).udp(ports[0], ports[1]);
    packet.write(&mut frame, &vec![7; size - 28]).unwrap();
    frame
}

fn udp6(last: u8, ports: [u16; 2]) -> Vec<u8> {
    let mut source = [0xfd; 16];
    source[15] = last;
    let mut frame = Vec::new();
    let packet =
        PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6(source, [0xfe; 16], 64).udp(ports[0], ports[1]);
    packet.write(&mut frame, &[7; 100]).unwrap();
    frame
}

fn at_us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn only(shaper: &Shaper) -> CountedReservation {
    let mut all = shaper.reservations(None);
    let only = all.next().unwrap();
    assert!(all.next().is_none());
    only
}

fn assert_sums(shaper: &Shaper) {
    let (stats, queued) = (shaper.stats(), shaper.queued() as u64);
    assert_eq!(stats.received.packets, stats.sent.packets + stats.dropped().packets + queued);
    let waiting = shaper.departed().count() + shaper.backlog().packets as usize + shaper.reserved_waiting();
    assert_eq!(queued, waiting as u64);
    let reserved = stats.reserved;
    let settled = reserved.departed.packets + reserved.dropped.packets;
    assert_eq!(reserved.conforming.packets, settled + shaper.reserved_waiting() as u64);
    let sums = shaper.reservations(None).fold((0, 0), |(conforming, excess), reservation| {
        let counters = reservation.counters;
        (conforming + counters.conforming.packets, excess + counters.excess.packets)
    });
    assert_eq!(sums, (reserved.conforming.packets, reserved.excess.packets));
}

/// 640 kbit/s reserved, offered `kbps` in packets of 1000 B for 10 s, under a flood of 4 Mbit/s.
fn under_flood(kbps: u64) -> Shaper {
    let mut shaper = shaper();
    shaper.reserve(id(1), bucket(640, 2000), &[to_port(5)]).unwrap();
    let (mut flow, mut flood) = (at_us(0), at_us(1));
    let mut port = Memory { room: usize::MAX, ..Memory::default() };
    while flow < at_us(10_000_000) {
        if flow <= flood {
            shaper.receive(flow, &udp([10, 0, 0, 1], [1000, 5], 1000));
            flow += Rate::from_kbps(kbps).transmission_time(Bytes::new(1000));
        } else {
            shaper.receive(flood, &udp([10, 0, 0, 9], [1000, 5], 1500));
            flood += Duration::from_millis(3);
        }
        shaper.send(&mut port).unwrap();
    }
    assert_sums(&shaper);
    shaper
}

// RFC 2211 section 4: little or no loss, little or no queueing delay.
#[test]
fn conforming_packets_lose_nothing_and_wait_for_one_frame_and_the_buckets() {
    let shaper = under_flood(640);
    let reserved = shaper.stats().reserved;
    assert_eq!((reserved.conforming.packets, reserved.excess.packets, reserved.dropped.packets), (800, 0, 0));
    // The file's header: (2000 B + 1500 B) / C.
    assert!(reserved.longest_wait <= RATE.transmission_time(Bytes::new(3500)), "{reserved:?}");
    assert!(shaper.stats().lost(Loss::Early).packets + shaper.stats().lost(Loss::Overflow).packets > 1000);
}

// RFC 2211 section 7: excess is forwarded on a best-effort basis, and the flood still has its share.
#[test]
fn packets_above_the_bucket_go_into_the_queue() {
    let shaper = under_flood(1280);
    let reserved = shaper.stats().reserved;
    // 10 s at 640 kbit/s, and the bucket.
    assert!((800..=802).contains(&reserved.conforming.packets), "{reserved:?}");
    assert_eq!(reserved.conforming.packets + reserved.excess.packets, 1600);
    assert!(reserved.longest_wait <= RATE.transmission_time(Bytes::new(3500)), "{reserved:?}");
    let sent = shaper.stats().sent.bytes - 14 * shaper.stats().sent.packets;
    let others = sent - 1000 * reserved.departed.packets;
    assert!(others > 1_875_000 - 802_000 - 10_000, "{others} B of the queue's frames were sent");
    let counters = only(&shaper).counters;
    assert_eq!((counters.conforming, counters.excess), (reserved.conforming, reserved.excess));
}

/// Returns the frames that are served before a backlogged queue, with one reservation with these filters.
fn served_first(filters: &[FlowSelector], frames: &[Vec<u8>]) -> Vec<bool> {
    let mut shaper = shaper();
    shaper.reserve(id(1), bucket(64, 9000), filters).unwrap();
    let before = |shaper: &Shaper| shaper.stats().reserved.conforming.packets;
    let judged = |frame: &Vec<u8>| {
        let had = before(&shaper);
        shaper.receive(at_us(0), frame);
        before(&shaper) > had
    };
    frames.iter().map(judged).collect()
}

/// FF names everything, SE has several filters, WF names no source (RFC 2205 section 1.3).
#[test]
fn filters_of_each_style_find_their_packets() {
    let frames = [
        udp([10, 0, 0, 1], [1000, 5], 100),
        udp([10, 0, 0, 1], [1001, 5], 100),
        udp([10, 0, 0, 2], [1000, 5], 100),
        udp([10, 0, 0, 1], [1000, 6], 100),
        udp6(1, [1000, 5]),
        frame(0x0806, &[0; 46]),
    ];
    assert_eq!(served_first(&[to_port(5)], &frames), [true, false, false, false, false, false]);
    let second = FlowSelector { source: Some("10.0.0.2".parse().unwrap()), ..to_port(5) };
    assert_eq!(served_first(&[to_port(5), second], &frames), [true, false, true, false, false, false]);
    let any = FlowSelector { source: None, source_port: None, ..to_port(5) };
    assert_eq!(served_first(&[any], &frames), [true, true, true, false, false, false]);
    let host = FlowSelector { destination_port: None, ..any };
    assert_eq!(served_first(&[host], &frames), [true, true, true, true, false, false]);
    let other_protocol = FlowSelector { protocol: Some(6), ..any };
    assert_eq!(served_first(&[other_protocol], &frames), [false; 6]);
    let v6 = FlowSelector { destination: [0xfe_u8; 16].into(), ..any };
    assert_eq!(served_first(&[v6], &frames), [false, false, false, false, true, false]);
}

#[test]
fn a_fragment_has_no_ports() {
    let mut first = udp([10, 0, 0, 1], [1000, 5], 100);
    first[20] |= 0x20;
    let frames = [first];
    assert_eq!(served_first(&[to_port(5)], &frames), [false]);
    let host = FlowSelector { source_port: None, destination_port: None, ..to_port(5) };
    assert_eq!(served_first(&[host], &frames), [true]);
}

#[test]
fn the_most_specific_filter_applies() {
    let mut shaper = shaper();
    let any = FlowSelector { source: None, source_port: None, ..to_port(5) };
    shaper.reserve(id(1), bucket(64, 9000), &[any]).unwrap();
    shaper.reserve(id(2), bucket(64, 9000), &[to_port(5)]).unwrap();
    shaper.receive(at_us(0), &udp([10, 0, 0, 1], [1000, 5], 100));
    shaper.receive(at_us(0), &udp([10, 0, 0, 2], [1000, 5], 100));
    let counts: Vec<u64> = shaper.reservations(None).map(|of| of.counters.conforming.packets).collect();
    assert_eq!(counts, [1, 1]);
    shaper.end_reservation(id(2)).unwrap();
    shaper.receive(at_us(0), &udp([10, 0, 0, 1], [1000, 5], 100));
    assert_eq!(only(&shaper).counters.conforming.packets, 2);
}

/// A frame may be longer than its datagram. A sender who fills it up pays for it.
#[test]
fn bytes_behind_the_datagram_are_counted() {
    let mut shaper = shaper_with(Overhead::Ethernet);
    shaper.reserve(id(1), bucket(64, 1500), &[to_port(5)]).unwrap();
    let mut long = udp([10, 0, 0, 1], [1000, 5], 64);
    long.resize(1514, 0);
    shaper.receive(at_us(0), &long);
    shaper.receive(at_us(0), &long);
    let counters = only(&shaper).counters;
    assert_eq!((counters.conforming.packets, counters.excess.packets), (1, 1));
}

fn refusal(result: Result<(), ReservationError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn an_impossible_reservation_is_refused_with_the_range() {
    let mut shaper = shaper_with(Overhead::Ethernet);
    shaper.reserve(id(1), bucket(640, 2000), &[to_port(5)]).unwrap();
    let before = only(&shaper);
    let mixed = FlowSelector { source: Some("fd00::1".parse().unwrap()), ..to_port(6) };
    let every = FlowSelector { protocol: None, source_port: None, destination_port: None, ..to_port(6) };
    let labelled = FlowSelector {
        flow_label: Some(7),
        source: None,
        ..FlowSelector { destination: [0xfe; 16].into(), ..to_port(6) }
    };
    for (result, why) in [
        (
            shaper.reserve(id(1), bucket(1, 100), &[to_port(6)]),
            "reservation = 1: there is one of this number",
        ),
        (shaper.reserve(id(2), bucket(0, 100), &[]), "rate = 0 bit/s: allowed is from 8 bit/s"),
        (shaper.reserve(id(2), bucket(1, 1), &[]), "bucket = 1 B: allowed is from 64 B"),
        // 64 B are 102 on the link: 1020 kbit/s are taken, 330 of 1350 left.
        (
            shaper.reserve(id(2), bucket(300, 2000), &[to_port(6)]),
            "rate = 300 kbit/s (478.125 kbit/s on the link): allowed is at most 330 kbit/s",
        ),
        (
            shaper.reserve(id(2), bucket(1, 2000), &[to_port(5)]),
            "protocol 17: allowed is a filter that no other reservation has",
        ),
        (shaper.reserve(id(2), bucket(1, 2000), &[to_port(6), to_port(6)]), "allowed is each filter once"),
        (
            shaper.reserve(id(2), bucket(1, 2000), &[mixed]),
            "allowed is an address of the destination's version",
        ),
        (shaper.reserve(id(2), bucket(1, 2000), &[every]), "protocol = any: allowed is from 0 to 255"),
        (shaper.reserve(id(2), bucket(1, 2000), &[labelled]), "flow-label = 7: allowed is none"),
        (
            shaper.reserve(
                id(2),
                TrafficSpec { max_packet: Bytes::new(1501), ..bucket(1, 2000) },
                &[to_port(6)],
            ),
            "max-packet = 1501 B: allowed is at most 1500 B",
        ),
        (
            shaper.change_reservation(at_us(0), id(2), bucket(1, 2000)),
            "reservation = 2: there is none of this number",
        ),
        (shaper.change_reservation(at_us(0), id(1), bucket(900, 2000)), "rate = 900 kbit/s"),
        (shaper.remove_filter(id(1), &to_port(6)), "allowed is a filter of the reservation"),
        (shaper.end_reservation(id(3)), "reservation = 3: there is none of this number"),
    ] {
        let error = refusal(result);
        assert!(error.contains(why), "{error}\nnot: {why}");
        assert_eq!(only(&shaper), before);
    }
    for number in 2..=10 {
        shaper.reserve(id(number), bucket(1, 2000), &[to_port(100 + number as u16)]).unwrap();
    }
    let error = refusal(shaper.reserve(id(11), bucket(1, 2000), &[to_port(7)]));
    assert_eq!(error, "reservations = 11: allowed is at most 10 in a direction");
    assert_eq!(shaper.reservations(Some(id(8))).map(|of| of.id.number).collect::<Vec<_>>(), [9, 10]);
}

/// Changes, further filters, and the end: of one, and of all of an owner.
#[test]
fn a_reservation_changes_and_ends() {
    let mut shaper = shaper();
    let packet = |port| udp([10, 0, 0, 1], [1000, port], 1000);
    shaper.reserve(id(1), bucket(640, 1000), &[to_port(5)]).unwrap();
    shaper.receive(at_us(0), &packet(5));
    shaper.receive(at_us(0), &packet(5));
    shaper.change_reservation(at_us(0), id(1), bucket(800, 1000)).unwrap();
    shaper.add_filter(id(1), to_port(6)).unwrap();
    shaper.receive(at_us(10_000), &packet(6));
    let counters = only(&shaper).counters;
    assert_eq!((counters.conforming.packets, counters.excess.packets), (2, 1));
    shaper.remove_filter(id(1), &to_port(5)).unwrap();
    shaper.receive(at_us(20_000), &packet(5));
    assert_eq!(only(&shaper).counters, counters, "it belongs to no reservation any more");
    shaper.reserve(ReservationId { owner: 2, number: 1 }, bucket(64, 2000), &[to_port(5)]).unwrap();
    shaper.reserve(ReservationId { owner: 2, number: 7 }, bucket(64, 2000), &[to_port(7)]).unwrap();
    assert_eq!(shaper.reserved_rate(), Rate::from_kbps(800 + 128));
    assert!(!shaper.end_owner(2, 1) && shaper.end_owner(2, 1) && shaper.end_owner(2, 1));
    assert_eq!((only(&shaper).id, shaper.reserved_rate()), (id(1), Rate::from_kbps(800)));
    shaper.end_reservation(id(1)).unwrap();
    assert_eq!((shaper.reservation_count(), shaper.reserved_rate()), (0, Rate::ZERO));
    shaper.receive(at_us(30_000), &packet(6));
    assert_eq!(shaper.stats().reserved.conforming.packets, 2);
}

/// A new configuration keeps reservations, and recounts their share of the link.
#[test]
fn a_reload_keeps_reservations() {
    let mut shaper = shaper();
    shaper.reserve(id(1), bucket(640, 2000), &[to_port(5)]).unwrap();
    let queue = QueueSpec::drop_tail(Limit::Packets(9), Rate::from_kbps(800));
    let params = ShaperParams { overhead: Overhead::Ethernet, ..ShaperParams::new(queue) };
    shaper.reconfigure(at_us(0), params).unwrap();
    assert_eq!(shaper.reserved_rate(), Rate::from_kbps(640 * 102 / 64));
    shaper.receive(at_us(0), &udp([10, 0, 0, 1], [1000, 5], 1000));
    assert_eq!(only(&shaper).counters.conforming.packets, 1);
    assert!(shaper.reserve(id(2), bucket(1, 100), &[to_port(6)]).is_err(), "too much is reserved already");
    shaper.change_reservation(at_us(0), id(1), bucket(600, 2000)).expect("less is never denied");
}

/// A port that holds the link: frames without room in the class go into the queue, and the memory of the class is bounded.
#[test]
fn a_port_that_holds_the_link_fills_the_class_to_its_bound() {
    let mut shaper = shaper();
    shaper.reserve(id(1), bucket(1200, 20_000), &[to_port(5)]).unwrap();
    for number in 0..60_000 {
        shaper.receive(at_us(670 * number), &udp([10, 0, 0, 1], [1000, 5], 100));
    }
    assert_sums(&shaper);
    // The bucket, and 100 ms at 1200 kbit/s: 350 packets.
    assert_eq!(shaper.reserved_waiting(), 350);
    assert!(only(&shaper).counters.excess.packets > 0);
    let mut port = Memory { room: usize::MAX, ..Memory::default() };
    shaper.send(&mut port).unwrap();
    shaper.advance(at_us(100_000_000));
    shaper.send(&mut port).unwrap();
    assert_eq!((shaper.queued(), shaper.reserved_waiting()), (0, 0));
    assert_sums(&shaper);
}

/// Arrival of a frame: time after the last one, flow, and length.
type Coming = (u64, u8, usize);

proptest! {
    /// Two flows with reservations and a third one without, at random: in no interval more of a flow departs as reserved than its
    /// bucket allows, its delay is bounded, and the third one gets the rest.
    #[test]
    fn a_reservation_takes_no_more_than_its_rate(
        coming in prop::collection::vec((0..4000_u64, 0..3_u8, 64..1500_usize), 1..400),
        rates in [50..600_u64, 50..600_u64],
        buckets in [1500..6000_u64, 1500..6000_u64],
    ) {
        let mut shaper = shaper();
        for flow in 0..2 {
            let (rate, bytes) = (rates[flow], buckets[flow]);
            shaper.reserve(id(flow as u64), bucket(rate, bytes), &[to_port(5 + flow as u16)]).unwrap();
        }
        let mut port = Memory { room: usize::MAX, ..Memory::default() };
        let (mut now, mut passed) = (at_us(0), [const { Vec::<(Instant, u64)>::new() }; 2]);
        for (gap, flow, size) in coming as Vec<Coming> {
            now += Duration::from_micros(gap);
            let had = shaper.stats().reserved.conforming.packets;
            shaper.receive(now, &udp([10, 0, 0, 1], [1000, 5 + u16::from(flow)], size));
            if shaper.stats().reserved.conforming.packets > had {
                passed[usize::from(flow)].push((now, size as u64));
            }
            assert_sums(&shaper);
        }
        for flow in 0..2 {
            for (first, (since, _)) in passed[flow].iter().enumerate() {
                let mut sum = 0;
                for (at, size) in &passed[flow][first..] {
                    sum += size * 8_000_000_000;
                    let allowed = rates[flow] * 1000 * (*at - *since).as_nanos() + buckets[flow] * 8_000_000_000;
                    prop_assert!(sum <= allowed);
                }
            }
        }
        let bound = RATE.transmission_time(Bytes::new(buckets[0] + buckets[1] + 1500));
        prop_assert!(shaper.stats().reserved.longest_wait <= bound);
        prop_assert_eq!(shaper.stats().reserved.dropped.packets, 0);
        while shaper.deadline() != Instant::FAR_FUTURE {
            shaper.advance(shaper.deadline());
        }
        shaper.send(&mut port).unwrap();
        assert_sums(&shaper);
        prop_assert_eq!((shaper.queued(), shaper.reserved_waiting()), (0, 0));
    }

    /// The packets of each of the two sets keep their order.
    #[test]
    fn conforming_and_excess_packets_each_keep_their_order(gaps in prop::collection::vec(0..9000_u64, 1..200)) {
        let mut shaper = shaper();
        shaper.set_queue(at_us(0), QueueSpec::drop_tail(Limit::Packets(1000), RATE)).unwrap();
        shaper.reserve(id(1), bucket(640, 2000), &[to_port(5)]).unwrap();
        let (mut now, mut sets) = (at_us(0), [Vec::new(), Vec::new()]);
        for (number, gap) in gaps.into_iter().enumerate() {
            now += Duration::from_micros(gap);
            let had = shaper.stats().reserved.conforming.packets;
            let mut frame = udp([10, 0, 0, 1], [1000, 5], 1000);
            frame[50..54].copy_from_slice(&(number as u32).to_be_bytes());
            shaper.receive(now, &frame);
            sets[usize::from(shaper.stats().reserved.conforming.packets > had)].push(number);
        }
        while shaper.deadline() != Instant::FAR_FUTURE {
            shaper.advance(shaper.deadline());
        }
        let number = |frame: &[u8]| u32::from_be_bytes(*frame[50..].first_chunk().unwrap()) as usize;
        let sent: Vec<usize> = shaper.departed().map(number).collect();
        prop_assert_eq!(sent.len(), sets[0].len() + sets[1].len());
        for set in sets {
            let order: Vec<usize> = sent.iter().copied().filter(|number| set.contains(number)).collect();
            prop_assert_eq!(order, set);
        }
    }
}
