//! CAKE's promises, with packets of 1000 B that take a millisecond each.

use super::*;
use cutline_units::{Dscp, HintBits, HintTable};

const RATE: Rate = Rate::from_mbps(8);

fn cake(params: CakeParams, limit: u32) -> Cake<u32> {
    Cake::build(&params, Limit::Packets(limit), false, RATE).unwrap()
}

fn stream() -> RandomStream {
    Streams::new(1).stream("queue", "drop")
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A packet of a flow between hosts of its own, which is called by its flow.
fn arrival(flow: u32) -> Arrival {
    Arrival { flow, hosts: [flow; 2], ..Arrival::new(1000, HintBits::PAPER.largest()) }
}

fn sheds(cake: &mut Cake<u32>) -> Vec<u32> {
    std::iter::from_fn(|| cake.shed()).map(|shed| shed.packet).collect()
}

/// Returns the share of the link of each arrival, in packets, if all are always backlogged.
fn shares(params: CakeParams, arrivals: &[Arrival]) -> Vec<u32> {
    let (mut cake, mut random) = (cake(params, 10_000), stream());
    let mut got = vec![0; arrivals.len()];
    for ms in 0..4000 {
        for (index, arrival) in (0..).zip(arrivals) {
            if ms == 0 {
                (0..20).for_each(|_| {
                    cake.enqueue(at(ms), *arrival, index, &mut random);
                });
            }
        }
        if let Some(departure) = cake.dequeue(at(ms)) {
            got[departure.packet as usize] += 1;
            cake.enqueue(at(ms), arrivals[departure.packet as usize], departure.packet, &mut random);
        }
        for lost in sheds(&mut cake) {
            cake.enqueue(at(ms), arrivals[lost as usize], lost, &mut random);
        }
    }
    got
}

#[test]
fn a_sparse_flow_is_served_first() {
    let (mut cake, mut random) = (cake(CakeParams::default(), 1000), stream());
    (0..50).for_each(|_| {
        cake.enqueue(at(0), arrival(1), 1, &mut random);
    });
    let mut longest = 0;
    for ms in 1..2000 {
        cake.enqueue(at(ms), arrival(1), 1, &mut random);
        if ms % 20 == 0 {
            cake.enqueue(at(ms), arrival(2), 2, &mut random);
        }
        let departure = cake.dequeue(at(ms)).unwrap();
        if departure.packet == 2 {
            longest = longest.max(at(ms).saturating_since(departure.arrived).as_nanos() / 1_000_000);
        }
        sheds(&mut cake);
    }
    assert!(longest <= 2, "{longest} ms");
}

#[test]
fn hosts_share_before_flows_do() {
    // Host 100 sends one flow, host 200 nine.
    let flows: Vec<Arrival> = (0..10)
        .map(|flow| Arrival { hosts: [if flow == 0 { 100 } else { 200 }, flow], ..arrival(flow) })
        .collect();
    let of_host = |isolation| {
        let got = shares(CakeParams { isolation, ..CakeParams::default() }, &flows);
        f64::from(got[0]) / f64::from(got.iter().sum::<u32>())
    };
    assert!((of_host(Isolation::TripleIsolate) - 0.5).abs() < 0.05, "{}", of_host(Isolation::TripleIsolate));
    assert!((of_host(Isolation::DualSrchost) - 0.5).abs() < 0.05);
    assert!((of_host(Isolation::DualDsthost) - 0.1).abs() < 0.02, "each goes to a host of its own");
    assert!((of_host(Isolation::Flows) - 0.1).abs() < 0.02);
}

#[test]
fn voice_keeps_its_priority_up_to_a_quarter() {
    let params = CakeParams { tins: Tins::Diffserv4, ..CakeParams::default() };
    let voice = |every: u64| {
        let (mut cake, mut random) = (cake(params, 1000), stream());
        let mut waits = Vec::new();
        for ms in 0..4000 {
            cake.enqueue(at(ms), arrival(1), 1, &mut random);
            if ms % every == 0 {
                let arrival = Arrival { hint: Hint::LEAST_DELAY, ..arrival(2) };
                cake.enqueue(at(ms), arrival, 2, &mut random);
            }
            let departure = cake.dequeue(at(ms)).unwrap();
            if departure.packet == 2 {
                waits.push(at(ms).saturating_since(departure.arrived));
            }
            sheds(&mut cake);
        }
        waits.into_iter().max().unwrap()
    };
    assert!(voice(5) <= Duration::from_millis(2), "a fifth of the link: {:?}", voice(5));
    assert!(voice(1) > Duration::from_millis(50), "all of it: {:?}", voice(1));
}

#[test]
fn a_class_of_empty_flows_does_not_hold_up_the_others() {
    let params = CakeParams { tins: Tins::Diffserv4, ..CakeParams::default() };
    let (mut cake, mut random) = (cake(params, 10_000), stream());
    let mut sent = [0; 3];
    for ms in 0..3000 {
        cake.enqueue(at(ms), arrival(0), 0, &mut random);
        // Voice: one flow until it loses packets, so that it decays when it stops; then another with a packet now and then.
        let flow = if ms < 1000 { 1 } else { 2 };
        if ms < 1000 || ms % 50 == 0 {
            let arrival = Arrival { hint: Hint::LEAST_DELAY, ..arrival(flow) };
            cake.enqueue(at(ms), arrival, flow, &mut random);
        }
        let departure = cake.dequeue(at(ms)).expect("flow 0 waits");
        sent[departure.packet as usize] += 1;
        sheds(&mut cake);
    }
    assert_eq!(sent.iter().sum::<u32>(), 3000);
    assert_eq!(sent[2], 40);
}

#[test]
fn memory_is_counted_as_linux_does() {
    assert_eq!([100, 1000, 1514].map(memory_of), [768, 2304, 2304]);
    let params = CakeParams { memory_limit: Some(10 * 2304), ..CakeParams::default() };
    let (mut cake, mut random) = (cake(params, 10_000), stream());
    (0..12).for_each(|_| {
        cake.enqueue(at(0), arrival(1), 1, &mut random);
    });
    assert_eq!(sheds(&mut cake).len(), 2);
    let mut left = 0;
    while cake.dequeue(at(0)).is_some() {
        left += 1;
    }
    assert_eq!((left, cake.memory), (10, 0));
    assert_eq!(CakeParams::default().memory_limit(RATE), 4 << 20);
    assert_eq!(CakeParams::default().memory_limit(Rate::from_mbps(1000)), 50_000_000);
}

#[test]
fn classes_are_those_of_the_code_points() {
    let class =
        |tins: Tins, code_point: u8| tins.of(HintTable::standard().hint(Dscp::new(code_point).unwrap()));
    let (default, af21, af31, cs4, ef, cs6) = (0, 18, 26, 32, 46, 48);
    assert_eq!(
        [default, af21, af31, cs4, ef, cs6].map(|dscp| class(Tins::Diffserv4, dscp)),
        [0, 1, 1, 2, 2, 2]
    );
    assert_eq!([default, cs4, ef, cs6].map(|dscp| class(Tins::Diffserv3, dscp)), [0, 1, 1, 1]);
}

#[test]
fn far_fewer_flows_share_a_place_than_in_fq_codel() {
    let (mut cake, mut random) = (cake(CakeParams::default(), 10_000), stream());
    (0..200).for_each(|flow| {
        cake.enqueue(at(0), arrival(flow), flow, &mut random);
    });
    let used = cake.tins[0].flows.iter().filter(|flow| flow.list.backlog.packets > 0).count();
    // 1024 buckets of FQ-CoDel would hold 200 flows in 182.
    assert!(used >= 199, "{used} places for 200 flows");
}

#[test]
fn a_full_queue_drops_from_the_fattest_flow() {
    let (mut cake, mut random) = (cake(CakeParams::default(), 20), stream());
    (0..15).for_each(|_| {
        cake.enqueue(at(0), arrival(1), 1, &mut random);
    });
    (0..6).for_each(|_| {
        cake.enqueue(at(0), arrival(2), 2, &mut random);
    });
    assert_eq!(sheds(&mut cake), [1]);
    assert_eq!(cake.backlog().packets, 20);
}

#[test]
fn the_target_follows_the_rate() {
    let tin = Tin::new(1, &CakeParams::default(), Rate::from_mbps(1));
    // 1514 B at 1 Mbit/s are 12.112 ms.
    assert_eq!(tin.times.target.as_nanos() / 1000, 18_168);
    assert_eq!(tin.times.interval.as_nanos() / 1000, 113_168);
    assert_eq!(Tin::new(1, &CakeParams::default(), RATE).times.target, Duration::from_millis(5));
}
