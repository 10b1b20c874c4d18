//! Properties of TSQ: no starvation, order of each hint, no losses of its own, a fair charge.

use crate::support::{Always, Link, Wave};
use cutline_aqm::tsq::{charge, weight};
use cutline_aqm::{Aqm, Arrival};
use cutline_aqm::{
    DrainRate, DropProbability, DropReason, Fifo, Limit, NoEarlyDrop, Pi, PiParams, Queue, Tsq, TsqParams,
    Verdict,
};
use cutline_units::{Bytes, Duration, Hint, HintBits, Instant, Probability, Rate};
use proptest::prelude::*;

const RATE: Rate = Rate::from_mbps(15);
const LIMIT: Limit = Limit::Bytes(800_000);

fn tsq<A: DropProbability>(aqm: A) -> Link<Tsq<u32, A>> {
    let tsq = Tsq::new(&TsqParams::default(), LIMIT, true, RATE, aqm);
    Link::new(tsq.expect("the paper's parameters are allowed"), RATE)
}

fn packet_time(size: u32) -> Duration {
    RATE.transmission_time(Bytes::new(u64::from(size)))
}

/// A size, a hint, and the time since the previous packet in tenths of the packet's own transmission time.
fn traffic(gap: std::ops::Range<u64>) -> impl Strategy<Value = Vec<(u32, u16, u64)>> {
    proptest::collection::vec((40..=1500_u32, 1..=16_u16, gap), 1..600)
}

#[test]
fn a_flood_of_the_smallest_hint_at_link_rate_starves_no_other_hint() {
    let mut link = tsq(NoEarlyDrop);
    let victims: Vec<u16> = (0..300).map(|i| 2 + i % 15).collect();
    for &hint in &victims {
        link.arrive(1000, hint, false);
    }
    let standing = DrainRate::new(RATE).time(300_000);
    while link.now < Instant::ZERO + standing * 3 {
        link.arrive(1000, 1, false);
        link.wait(packet_time(1000));
    }
    let mut overtaken = 0;
    for (packet, &hint) in victims.iter().enumerate() {
        let packet = packet as u32;
        let (left, _) = link.sent.iter().find(|(_, sent)| sent.packet == packet).expect("it has left");
        // Newcomers get ahead until w = d td / 2^n; then the packets ahead drain, and the backlog stays.
        let until_w = weight(HintBits::PAPER, usize::from(hint) - 1, standing, Instant::ZERO);
        let bound = until_w + standing + packet_time(1000) * 2;
        assert!(*left <= bound, "hint {hint} left at {left}, the bound is {bound}");
        overtaken += u32::from(*left > Instant::ZERO + standing);
    }
    assert!(overtaken > 50, "the flood should overtake many, and overtakes {overtaken}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// In overload, whatever the mix: at most d td / 2^n + (limit + packet in service) / C.
    #[test]
    fn every_wait_is_bounded(traffic in traffic(0..9)) {
        let mut link = tsq(NoEarlyDrop);
        let mut promised = Vec::new();
        for (size, hint, tenths) in traffic {
            let offer = link.queue.offer(link.now, Hint::from_level(hint));
            promised.push(offer.weight);
            link.arrive(size, hint, false);
            link.wait(packet_time(size) * tenths / 10);
        }
        link.drain();
        let full = DrainRate::new(RATE).time(800_000) + packet_time(1500);
        for (left, departure) in link.sent {
            // A microsecond for rounding at each of the packets ahead.
            let bound = promised[departure.packet as usize] + full + Duration::from_micros(1);
            prop_assert!(left <= bound, "{left} is after {bound}");
        }
    }

    #[test]
    fn a_hint_keeps_its_order_even_if_the_rate_changes(
        traffic in traffic(0..15),
        rates in proptest::collection::vec(500..50_000_u64, 600),
    ) {
        let mut link = tsq(Wave::default());
        let hints: Vec<u16> = traffic.iter().map(|&(_, hint, _)| hint).collect();
        for (i, &(size, hint, tenths)) in traffic.iter().enumerate() {
            if i % 50 == 49 {
                link.set_rate(Rate::from_kbps(rates[i]));
            }
            link.arrive(size, hint, false);
            link.wait(packet_time(size) * tenths / 10);
        }
        link.drain();
        let mut last = [None; 17];
        for (_, departure) in &link.sent {
            let last = &mut last[usize::from(hints[departure.packet as usize])];
            prop_assert!(*last < Some(departure.packet));
            *last = Some(departure.packet);
        }
    }

    /// Invariant of the lanes: at a constant rate, w of one hint never decreases but for rounding.
    #[test]
    fn the_weight_of_a_hint_never_falls(traffic in traffic(0..15)) {
        let mut link = tsq(NoEarlyDrop);
        let mut last = [0; 16];
        for (size, hint, tenths) in traffic {
            let q = link.queue.offer(link.now, Hint::LEAST_DELAY).q;
            for (lane, last) in last.iter_mut().enumerate() {
                let w = weight(HintBits::PAPER, lane, q, link.now).as_nanos();
                prop_assert!(w + 3 >= *last, "lane {lane}: {w} after {last}");
                *last = w;
            }
            link.arrive(size, hint, false);
            link.wait(packet_time(size) * tenths / 10);
        }
    }

    #[test]
    fn the_charge_lies_between_p_and_one(
        p in 0.0..=1.0,
        l in 1_000_000..1_000_000_000_u64,
        q in 0..10_000_000_000_u64,
        ahead in 0.0..=1.0,
        max_ratio in prop_oneof![Just(f64::INFINITY), 1.0..1e6],
    ) {
        let [l, q] = [l, q].map(Duration::from_nanos);
        let p = Probability::new(p).unwrap();
        let p_prime = charge(p, l, q, q.mul_f64(ahead), max_ratio);
        prop_assert!(p <= p_prime && p_prime <= Probability::ONE);
        prop_assert!(p_prime.get() <= p.get() * max_ratio || p == Probability::ZERO);
        prop_assert_eq!(charge(p, l, q, q, max_ratio), p);
    }

    #[test]
    fn q_prime_is_at_most_the_whole_queue(traffic in traffic(0..12)) {
        let mut link = tsq(Wave::default());
        for (size, hint, tenths) in traffic {
            let offers: Vec<_> =
                (1..=16).map(|hint| link.queue.offer(link.now, Hint::from_level(hint))).collect();
            prop_assert!(offers.is_sorted_by_key(|offer| offer.q_prime), "{offers:?}");
            prop_assert_eq!(offers[15].q_prime, offers[15].q);
            link.arrive(size, hint, false);
            link.wait(packet_time(size) * tenths / 10);
        }
    }

    #[test]
    fn traffic_of_the_largest_hint_alone_sees_a_fifo(traffic in traffic(0..9)) {
        let pi = || Pi::build(&PiParams { q_ref: 5.0, a: 1e-3, b: 9e-4, ..PiParams::default() }, RATE).unwrap();
        let (mut tsq, mut fifo) = (tsq(pi()), Link::new(Fifo::new(LIMIT, true, pi()), RATE));
        for (size, hint, tenths) in traffic {
            let ecn_capable = hint % 2 == 0;
            prop_assert_eq!(tsq.arrive(size, 16, ecn_capable), fifo.arrive(size, 16, ecn_capable));
            tsq.wait(packet_time(size) * tenths / 10);
            fifo.wait(packet_time(size) * tenths / 10);
        }
        prop_assert_eq!(tsq.sent, fifo.sent);
    }
}

#[test]
fn packets_that_can_be_marked_are_marked_where_others_are_dropped() {
    // The same draws: each packet of the one is marked where its twin is dropped.
    let fates = |ecn_capable| {
        let mut link = tsq(Always(0.3));
        (1..=200).map(|i| link.arrive(1000, i % 16 + 1, ecn_capable)).collect::<Vec<_>>()
    };
    let hits = |fates: &[Verdict]| fates.iter().take_while(|&&fate| fate == Verdict::Pass).count();
    let (capable, incapable) = (fates(true), fates(false));
    assert_eq!(hits(&capable), hits(&incapable), "the first hit is the same");
    assert!(capable.contains(&Verdict::Mark) && !incapable.contains(&Verdict::Mark));
    assert!(!capable.contains(&Verdict::Drop(DropReason::Early)));
    let mut link = tsq(Always(1.0));
    assert_eq!(link.arrive(1000, 8, false), Verdict::Drop(DropReason::Early));
    assert_eq!(link.arrive(1000, 8, true), Verdict::Mark);
    assert_eq!(link.queue.stats().marked.packets, 1);
}

#[test]
fn without_ecn_nothing_is_marked() {
    let tsq = Tsq::new(&TsqParams::default(), LIMIT, false, RATE, Always(1.0)).unwrap();
    assert_eq!(Link::new(tsq, RATE).arrive(1000, 8, true), Verdict::Drop(DropReason::Early));
}

#[test]
fn a_full_queue_drops_at_any_hint_and_ecn() {
    let tsq = Tsq::new(&TsqParams::default(), Limit::Packets(3), true, RATE, Always(0.0)).unwrap();
    let mut link = Link::new(tsq, RATE);
    // One goes into service, three wait.
    assert!((0..4).all(|_| link.arrive(1000, 16, true) == Verdict::Pass));
    assert_eq!(link.arrive(1000, 1, true), Verdict::Drop(DropReason::Overflow));
    link.wait(packet_time(1000));
    assert_eq!(link.arrive(1000, 1, true), Verdict::Pass);
}

#[test]
fn drops_have_the_frequency_of_the_charge() {
    let mut dropped = 0;
    let mut link = tsq(Always(0.02));
    let mut expected = 0.0;
    for _ in 0..20_000 {
        while link.queue.backlog().packets < 100 {
            link.arrive(1000, 16, false);
        }
        let offer = link.queue.offer(link.now, Hint::LEAST_DELAY);
        let p = Probability::clamped(0.02);
        expected += charge(p, Duration::from_millis(40), offer.q, offer.q_prime, f64::INFINITY).get();
        dropped += u32::from(link.arrive(1000, 1, false) == Verdict::Drop(DropReason::Early));
        link.wait(packet_time(1000) * 10);
    }
    // A standard deviation is at most the root of the expected number; five of them.
    let dropped = f64::from(dropped);
    assert!(expected > 1000.0 && (dropped - expected).abs() < 5.0 * expected.sqrt(), "{dropped} {expected}");
}

#[test]
fn a_new_rate_changes_the_bytes_offered_from_then_on() {
    let mut link = tsq(NoEarlyDrop);
    link.arrive_many(101, 16);
    let before = link.queue.offer(link.now, Hint::from_level(8));
    link.set_rate(Rate::from_mbps(30));
    let after = link.queue.offer(link.now, Hint::from_level(8));
    // The packet in service ends as planned, all others take half as long.
    let in_service = packet_time(1000);
    assert_eq!(before.q, DrainRate::new(RATE).time(100_000) + in_service);
    assert_eq!(after.q, DrainRate::new(Rate::from_mbps(30)).time(100_000) + in_service);
    // Hint 16 is held back by the weights given at the old rate; the queue stays in order behind them.
    let largest = link.queue.offer(link.now, Hint::from_level(16));
    assert!(largest.weight > link.now + largest.q);
    let arrival = Arrival::new(1000, Hint::from_level(16));
    link.queue.enqueue(link.now, arrival, 999, &mut link.random);
    link.drain();
    assert_eq!(link.sent.last().map(|(_, departure)| departure.packet), Some(999));
}
