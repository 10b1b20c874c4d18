//! Properties of RFC 9332's pseudo-code.

use super::*;
use cutline_units::{Hint, HintBits, Streams};

fn at(updates: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(16) * updates
}

/// The RFC's choices.
fn rfc() -> DualPi2Params {
    DualPi2Params {
        min_th: Duration::from_micros(800),
        range: Duration::from_micros(400),
        th_len: 1,
        not_ect: NotEct::AsClassic,
        hits: Hits::Even,
        mean_packet: 0,
        classic_share: 16,
        ..DualPi2Params::default()
    }
}

fn queue(params: DualPi2Params) -> DualPi2<u32> {
    DualPi2::build(&params, Limit::Packets(100_000), true, Rate::from_mbps(8)).expect("they are allowed")
}

fn classic() -> Arrival {
    Arrival::new(1000, HintBits::PAPER.largest())
}

fn scalable() -> Arrival {
    Arrival { ecn_capable: true, scalable: true, ..classic() }
}

fn arrive(queue: &mut DualPi2<u32>, now: Instant, arrival: Arrival, packet: u32) {
    let mut random = Streams::new(1).stream("queue", "drop");
    queue.enqueue(now, arrival, packet, &mut random);
}

#[test]
fn the_coupling() {
    // RFC 9332 appendix A.1.
    let mut queue = queue(rfc());
    let came = at(10) - Duration::from_millis(30);
    queue.clock.restart(at(9));
    arrive(&mut queue, came, classic(), 0);
    assert!(queue.controller.update(0.020));
    queue.controller.p_prime = 0.0;
    queue.update(at(10));
    assert!((queue.controller.p_prime - 0.0344).abs() < 1e-12, "{}", queue.controller.p_prime);
    assert!((queue.controller.squared() - 0.0344 * 0.0344).abs() < 1e-12);
}

#[test]
fn a_queue_that_grows() {
    for arrival in [classic(), scalable()] {
        let mut queue = queue(rfc());
        let mut p_primes = Vec::new();
        for updates in 1..=10 {
            if updates == 2 {
                arrive(&mut queue, Instant::ZERO + Duration::from_millis(24), arrival, 0);
            }
            queue.update(at(updates));
            p_primes.push(queue.controller.p_prime);
        }
        // Of either queue: the delay is 8, 24, 40, ... ms at the second update and after it.
        let expected = [0.0, 0.02448, 0.07712, 0.13232, 0.19008, 0.2504, 0.31328, 0.37872, 0.44672, 0.51728];
        for (p_prime, expected) in p_primes.iter().zip(expected) {
            assert!((p_prime - expected).abs() < 1e-12, "{p_primes:?}");
        }
    }
}

/// Returns the number of marked and the number of sent packets among a number of packets.
fn share(queue: &mut DualPi2<u32>, arrival: Arrival, packets: u32) -> (u32, u32) {
    (0..packets).for_each(|packet| arrive(queue, Instant::ZERO, arrival, packet));
    let sent: Vec<_> = std::iter::from_fn(|| queue.dequeue(Instant::ZERO)).collect();
    (sent.iter().filter(|sent| sent.marked).count() as u32, sent.len() as u32)
}

#[test]
fn scalable_packets_are_marked_and_classic_ones_dropped_by_the_law() {
    let with = |p_prime| {
        let mut queue = queue(rfc());
        queue.controller.p_prime = p_prime;
        queue
    };
    // k p' = 0.2; p'^2 = 0.01; evenly spaced, so to the packet.
    assert_eq!(share(&mut with(0.1), scalable(), 10_001), (2000, 10_001));
    assert_eq!(share(&mut with(0.1), classic(), 10_050), (0, 10_050 - 100));
    assert_eq!(share(&mut with(0.1), Arrival { ecn_capable: true, ..classic() }, 10_050), (100, 10_050));
}

#[test]
fn in_overload_a_quarter_is_dropped_on_either_side() {
    // RFC 9332 appendix A.2.
    let with = || {
        let mut queue = queue(rfc());
        queue.controller.p_prime = 0.5;
        queue
    };
    let capable = Arrival { ecn_capable: true, ..classic() };
    assert_eq!(share(&mut with(), capable, 4001).1, 3001, "marking no longer helps");
    let (marked, sent) = share(&mut with(), scalable(), 4001);
    assert_eq!(sent, 3001);
    assert!(marked >= 2999, "all that is spared is marked: {marked}");
}

#[test]
fn unresponsive_traffic_is_dropped_beyond_the_largest_mark_probability() {
    let with = || {
        let mut queue = queue(rfc());
        queue.controller.p_prime = 0.8;
        queue
    };
    let capable = Arrival { ecn_capable: true, ..classic() };
    // p_C = 0.64: it continues growing beyond p_Cmax = 0.25.
    for arrival in [classic(), capable, scalable()] {
        let sent = share(&mut with(), arrival, 10_000).1;
        assert!(sent.abs_diff(3600) <= 1, "{sent}");
    }
}

#[test]
fn the_larger_of_ramp_and_coupling_marks() {
    let marked = |p_prime, waited| {
        let mut queue = queue(rfc());
        (0..1001).for_each(|packet| arrive(&mut queue, Instant::ZERO, scalable(), packet));
        queue.controller.p_prime = p_prime;
        let now = Instant::ZERO + Duration::from_micros(waited);
        std::iter::from_fn(|| queue.dequeue(now)).filter(|sent| sent.marked).count()
    };
    assert_eq!([marked(0.1, 0), marked(0.1, 900), marked(0.1, 1000)], [200, 250, 500]);
}

#[test]
fn the_ramp_marks_packets_that_waited_a_millisecond() {
    let params = rfc();
    let us = Duration::from_micros;
    assert_eq!([800, 900, 1000, 1200, 9000].map(|t| ramp(&params, us(t))), [0.0, 0.25, 0.5, 1.0, 1.0]);
    let mut queue = queue(params);
    (0..3).for_each(|packet| arrive(&mut queue, Instant::ZERO, scalable(), packet));
    let late = Instant::ZERO + us(1300);
    let marked: Vec<bool> = (0..3).filter_map(|_| queue.dequeue(late)).map(|sent| sent.marked).collect();
    assert!(!marked[2], "the last one has nobody behind it");
    assert!(marked[1], "{marked:?}");
}

#[test]
fn scalable_packets_are_served_first_and_classic_ones_have_their_share() {
    // RFC 9332 section 2.5.2.
    let idle = DelayControlParams { alpha: 0.0, beta: 0.0, ..rfc().control };
    let mut queue = queue(DualPi2Params { control: idle, ..rfc() });
    (0..1000).for_each(|_| arrive(&mut queue, Instant::ZERO, classic(), 0));
    (0..1000).for_each(|_| arrive(&mut queue, Instant::ZERO, scalable(), 1));
    let sent: Vec<u32> =
        (0..800).filter_map(|_| queue.dequeue(Instant::ZERO)).map(|sent| sent.packet).collect();
    assert_eq!(sent[..15], [1; 15]);
    assert_eq!(sent.iter().filter(|&&packet| packet == 0).count(), 50, "one in sixteen");
}

#[test]
fn hints_may_choose_the_queue() {
    let mut queue = queue(DualPi2Params { low_delay_hints: 6, ..rfc() });
    for level in [16, 7, 6, 1] {
        let arrival = Arrival::new(1000, Hint::from_level(level));
        arrive(&mut queue, Instant::ZERO, arrival, u32::from(level));
    }
    let sent: Vec<u32> =
        std::iter::from_fn(|| queue.dequeue(Instant::ZERO)).map(|sent| sent.packet).collect();
    assert_eq!(sent, [6, 1, 16, 7]);
}

#[test]
fn packets_that_cannot_be_marked_in_the_scalable_queue() {
    // RFC 9332 section 2.5.1.1. Few wait, and not for long.
    let sent = |not_ect, waited| {
        let mut queue = queue(DualPi2Params { not_ect, low_delay_hints: 16, range: Duration::ZERO, ..rfc() });
        queue.controller.p_prime = 0.1;
        (0..10_001).for_each(|packet| arrive(&mut queue, Instant::ZERO, classic(), packet));
        let now = Instant::ZERO + Duration::from_micros(waited);
        std::iter::from_fn(|| queue.dequeue(now)).count()
    };
    // k p' = 0.2, p'^2 = 0.01; the last of them has no packet behind it.
    let choices = [NotEct::AsMarks, NotEct::AsClassic, NotEct::Spare];
    let counts = choices.map(|not_ect| sent(not_ect, 800));
    assert!(
        counts[0].abs_diff(8001) <= 1 && counts[1].abs_diff(9901) <= 1 && counts[2] == 10_001,
        "{counts:?}"
    );
    // Beyond the step, Linux drops them all.
    let counts = choices.map(|not_ect| sent(not_ect, 801));
    assert!(counts[0] <= 1 && counts[1].abs_diff(9901) <= 1 && counts[2] == 10_001, "{counts:?}");
}

#[test]
fn in_overload_packets_that_cannot_be_marked_are_dropped_with_the_square() {
    let params = DualPi2Params { not_ect: NotEct::AsMarks, low_delay_hints: 16, ..rfc() };
    let mut queue = queue(params);
    queue.controller.p_prime = 0.5;
    assert_eq!(share(&mut queue, classic(), 4001), (0, 3001));
}

#[test]
fn the_step_marks_all_beyond_a_millisecond() {
    let linux = DualPi2Params::default();
    let us = Duration::from_micros;
    assert_eq!([800, 1000, 1001].map(|t| ramp(&linux, us(t))), [0.0, 0.0, 1.0]);
    let marked = |th_len| {
        let mut queue = queue(DualPi2Params { th_len, ..linux });
        (0..3).for_each(|packet| arrive(&mut queue, Instant::ZERO, scalable(), packet));
        let late = Instant::ZERO + us(1300);
        [(); 3].map(|()| queue.dequeue(late).expect("it is marked, not dropped").marked)
    };
    assert_eq!(marked(0), [true; 3]);
    assert_eq!(marked(1), [true, true, false]);
    assert_eq!(marked(2), [true, false, false]);
}

#[test]
fn a_short_backlog_is_not_hit() {
    let sent = |mean_packet, packets| {
        let mut queue = queue(DualPi2Params { mean_packet, ..rfc() });
        queue.controller.p_prime = 1.0;
        (0..packets).for_each(|packet| arrive(&mut queue, Instant::ZERO, classic(), packet));
        std::iter::from_fn(|| queue.dequeue(Instant::ZERO)).count()
    };
    // The first is spared because its sum is not more than 1. So are the last two: less than 2 x 1000 B wait behind each.
    assert_eq!((sent(1000, 12), sent(0, 12)), (3, 1));
}

#[test]
fn overload_without_drops_caps_the_coupling() {
    let p_prime = |drop_overload| {
        let mut queue = queue(DualPi2Params { drop_overload, ..rfc() });
        arrive(&mut queue, Instant::ZERO, scalable(), 0);
        queue.update(at(100));
        let sent = share(&mut queue, scalable(), 1000).1;
        (queue.controller.p_prime, sent == 1001)
    };
    assert_eq!(p_prime(true), (1.0, false));
    assert_eq!(p_prime(false), (0.5, true), "1 / k: all are marked, none is dropped");
}

#[test]
fn hits_are_random_or_even() {
    let gaps = |hits| {
        let mut queue = queue(DualPi2Params { hits, ..rfc() });
        queue.controller.p_prime = 0.05;
        (0..10_000).for_each(|packet| arrive(&mut queue, Instant::ZERO, scalable(), packet));
        let marked: Vec<u32> = std::iter::from_fn(|| queue.dequeue(Instant::ZERO))
            .filter(|sent| sent.marked)
            .map(|sent| sent.packet)
            .collect();
        let gaps: Vec<u32> = marked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        (marked.len(), gaps.iter().copied().min(), gaps.iter().copied().max())
    };
    let (even, least, most) = gaps(Hits::Even);
    assert!(even.abs_diff(1000) <= 1 && least >= Some(9) && most <= Some(11), "{even} {least:?} {most:?}");
    let (random, least, most) = gaps(Hits::Random);
    // The standard deviation is 30.
    assert!(
        random.abs_diff(1000) < 120 && least == Some(1) && most > Some(30),
        "{random} {least:?} {most:?}"
    );
}
